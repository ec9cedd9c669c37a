//! Objects of custom kinds whose versions a webhook converts.
//!
//! Strategies are synchronous, so entries of another version are converted before they reach one: what
//! [`Inner::in_version`] returns is in the version of the resource, whatever is stored. Kinds without a conversion
//! webhook pass through untouched.

use crate::resource::Resource;
use crate::server::Inner;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use transom_admission::conversion;
use transom_object::error_chain::chain;
use transom_object::{Status, json};
use transom_store::Entry;

/// How long a conversion may take.
const CONVERSION_TIMEOUT: Duration = Duration::from_secs(30);

impl Inner {
    /// Entries in the version of the resource: those that are stored in another one are converted, all in one call.
    pub(crate) async fn in_version(
        &self,
        resource: &Resource,
        entries: Vec<Arc<Entry>>,
    ) -> Result<Vec<Arc<Entry>>, Status> {
        if resource.conversion.is_none() {
            return Ok(entries);
        }
        let wanted = resource.api_version();
        let (mut others, mut places) = (Vec::new(), Vec::new());
        for (place, entry) in entries.iter().enumerate() {
            let value: Value = serde_json::from_slice(&entry.body).map_err(Status::internal)?;
            if value["apiVersion"] != wanted {
                others.push(value);
                places.push(place);
            }
        }
        let mut entries = entries;
        for (place, converted) in places.into_iter().zip(self.convert(resource, &wanted, others).await?) {
            let entry = &entries[place];
            entries[place] = Arc::new(Entry {
                revision: entry.revision,
                header: entry.header.clone(),
                body: json::encode(&converted).into(),
                // Converted objects are always decoded before they are shown.
                revision_at: 0..0,
            });
        }
        Ok(entries)
    }

    /// One entry in the version of the resource.
    pub(crate) async fn one_in_version(
        &self,
        resource: &Resource,
        entry: &Arc<Entry>,
    ) -> Result<Arc<Entry>, Status> {
        if resource.conversion.is_none() {
            return Ok(entry.clone());
        }
        let mut converted = self.in_version(resource, vec![entry.clone()]).await?;
        converted.pop().ok_or_else(|| Status::internal("a converted object is missing"))
    }

    /// An object as it is stored.
    pub(crate) async fn to_storage<'v>(
        &self,
        resource: &Resource,
        value: &'v Value,
    ) -> Result<Cow<'v, Value>, Status> {
        let storage = resource.strategy.storage_version();
        if resource.conversion.is_none() || storage == resource.version {
            return Ok(resource.strategy.convert_to_storage(value));
        }
        let desired = format!("{}/{storage}", resource.group);
        let converted = self.convert(resource, &desired, vec![value.clone()]).await?.pop();
        let converted = converted.ok_or_else(|| Status::internal("a converted object is missing"))?;
        Ok(Cow::Owned(resource.strategy.convert_to_storage(&converted).into_owned()))
    }

    async fn convert(
        &self,
        resource: &Resource,
        desired: &str,
        objects: Vec<Value>,
    ) -> Result<Vec<Value>, Status> {
        let Some(client) = resource.conversion.as_ref().filter(|_| !objects.is_empty()) else {
            return Ok(objects);
        };
        let failed = |why: String| {
            let gvk = objects[0]["apiVersion"].as_str().unwrap_or_default();
            Status::new(
                500,
                "",
                format!("conversion webhook for {gvk}, Kind={} failed: {why}", resource.names.kind),
            )
        };
        let uid = self.new_uid();
        let review = conversion::review(&uid, desired, &objects);
        let body = self.call_webhook(client, &review, CONVERSION_TIMEOUT).await.map_err(failed)?;
        conversion::read(&uid, desired, &objects, &body).map_err(|error| failed(chain(&error)))
    }
}
