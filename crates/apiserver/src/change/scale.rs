//! Writing a Scale: it changes the object's replica count, and the owners of the count in the Scale's managedFields are
//! carried back to the object's.

use super::patch::{Patch, printed, undecodable};
use super::{Change, Existing};
use crate::ownership;
use crate::request::WriteOptions;
use crate::resource::{Resource, ScalePaths};
use crate::scale::{self, API_VERSION, TYPE};
use serde_json::Value;
use transom_object::{GroupKind, Status, field};
use transom_schema::own;

/// Stands for a count that the object does not have while a Scale is changed: smaller than any count can be.
const NO_COUNT: i64 = i32::MIN as i64;

/// The body of a write to the scale subresource.
pub(crate) enum ScaleBody {
    Replace(Value),
    Patch(Patch),
}

/// A change of an object through its Scale.
pub(crate) struct WriteScale<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) paths: &'a ScalePaths,
    pub(crate) name: &'a str,
    pub(crate) body: ScaleBody,
    pub(crate) options: &'a WriteOptions,
}

impl Change for WriteScale<'_> {
    fn apply(&mut self, existing: &Existing<'_>) -> Result<Value, Status> {
        let missing = || Status::not_found(&self.resource.group_resource(), self.name);
        let live = existing.value.ok_or_else(missing)?;
        let owners = self.replica_paths();
        let mut scale = scale::of(live, self.paths);
        if lacks_count(self.resource, live, self.paths) {
            scale["spec"]["replicas"] = NO_COUNT.into();
        }
        let managed = live["metadata"].get("managedFields");
        let of_object = own::scale::to_scale(managed, &owners).map_err(Status::internal)?;
        set_or_remove(&mut scale["metadata"], of_object);
        let scale = self.changed(&scale, existing.now)?;
        let mut next = live.clone();
        scale::set_replicas(&mut next, self.paths, self.replicas(&scale)?);
        let of_scale = scale["metadata"].get("managedFields");
        let back = own::scale::to_parent(managed, of_scale, &self.resource.api_version(), &owners)
            .map_err(Status::internal)?;
        set_or_remove(&mut next["metadata"], back);
        if let Some(rv) = scale["metadata"]["resourceVersion"].as_str() {
            next["metadata"]["resourceVersion"] = rv.into();
        }
        Ok(next)
    }
}

impl WriteScale<'_> {
    /// The changed Scale, with managedFields that name the owners of the count.
    fn changed(&self, scale: &Value, now: &str) -> Result<Value, Status> {
        let manager = &self.options.field_manager;
        let mut new = match &self.body {
            ScaleBody::Patch(Patch::Apply { config, .. }) => {
                let force = self.options.force.unwrap_or(false);
                return with_context(now, |ctx| own::apply(ctx, Some(scale), config, manager, force))
                    .map_err(|e| e.to_status());
            }
            ScaleBody::Replace(given) => given.clone(),
            ScaleBody::Patch(patch) => patch.change(scale, transom_kinds::schema(TYPE).as_deref())?,
        };
        let changed = new.clone();
        transom_kinds::normalize(&mut new, TYPE).map_err(|e| match self.body {
            ScaleBody::Patch(_) => undecodable(printed(&changed), &e.to_string()),
            ScaleBody::Replace(_) => {
                Status::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {e}"))
            }
        })?;
        with_context(now, |ctx| own::update(ctx, Some(scale), &mut new, manager));
        Ok(new)
    }

    /// The count in a Scale. The schema of a custom kind validates it as part of the object.
    fn replicas(&self, scale: &Value) -> Result<i64, Status> {
        let n = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        if self.resource.definition.is_some() {
            let path = scale::replicas_path(self.paths);
            let empty = || Status::bad_request(format!("the spec replicas field {path:?} cannot be empty"));
            return if n == NO_COUNT { Err(empty()) } else { Ok(n) };
        }
        if n >= 0 {
            return Ok(n);
        }
        let path = field::Path::new("spec").child("replicas");
        let error = field::Error::invalid(&path, n, "must be greater than or equal to 0");
        Err(Status::invalid(&GroupKind::new("autoscaling", "Scale"), self.name, &[error]))
    }

    fn replica_paths(&self) -> own::scale::ReplicaPaths {
        let names: Vec<&str> = self.paths.spec_replicas.iter().map(String::as_str).collect();
        self.resource.schemas.keys().map(|version| (version.clone(), Some(own::Path::of(&names)))).collect()
    }
}

/// Objects of custom kinds may have no count, which differs from a count of zero.
pub(crate) fn lacks_count(resource: &Resource, object: &Value, paths: &ScalePaths) -> bool {
    resource.definition.is_some() && scale::replicas(object, paths).is_none_or(Value::is_null)
}

fn with_context<T>(now: &str, run: impl FnOnce(&own::Context<'_>) -> T) -> T {
    ownership::of_type(TYPE, API_VERSION, "scale", now, run)
}

fn set_or_remove(metadata: &mut Value, managed_fields: Option<Value>) {
    if let Some(metadata) = metadata.as_object_mut() {
        match managed_fields {
            Some(fields) => metadata.insert("managedFields".into(), fields),
            None => metadata.remove("managedFields"),
        };
    }
}
