//! Connection details of legacy composite resources: a Secret that only ever gains keys.

use super::{Composites, Details};
use crate::catalog::kinds;
use serde_json::json;
use transom_engine::{Error, ErrorContext, Result, RunLog};
use transom_object::meta;
use transom_xapi::composite::{Composite, Schema};
use transom_xapi::connection;
use transom_xapi::constants::owner;

impl Composites {
    /// Publishes what the definition allows. Says whether that is news: it was written, or whoever wrote it died before
    /// it could say so.
    pub(super) async fn publish(&self, log: &RunLog, xr: &Composite, details: &Details) -> Result<bool> {
        if self.schema == Schema::Modern {
            return Ok(false);
        }
        let keys = &self.definition.spec.connection_secret_keys;
        let Some(secret) = connection::published(xr, details, keys) else { return Ok(false) };
        let (namespace, name) = (meta::namespace(&secret), meta::name(&secret));
        let live = self.plane.cluster.get(&kinds::secret(), namespace, name).await?;
        let written = match live {
            None => self.plane.cluster.create(&secret, owner::DEFAULT).await,
            Some(live) => {
                let allowed = connection::must_be_controllable_by(&live, meta::uid(&xr.object));
                allowed
                    .map_err(|e| Error::unfit(e.to_string()))
                    .context("cannot publish connection details")?;
                let (published, wanted) = (connection::details(&live), connection::details(&secret));
                let owned = meta::controller_of(&live).is_some();
                if owned && wanted.iter().all(|(key, value)| published.get(key) == Some(value)) {
                    return Ok(xr.last_published_time().is_none());
                }
                let patch = json!({
                    "metadata": {"ownerReferences": secret["metadata"]["ownerReferences"]},
                    "data": secret.get("data").cloned().unwrap_or_else(|| json!({})),
                });
                self.plane.cluster.merge_patch(&secret, &patch, owner::DEFAULT).await
            }
        };
        let written =
            written.context("cannot apply connection secret").context("cannot publish connection details")?;
        log.wrote(&written);
        Ok(true)
    }
}
