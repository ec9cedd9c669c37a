//! Publishing connection details: a Secret is created, or updated if its owner may do so.

use crate::plane::Plane;
use serde_json::{Value, json};
use transom_engine::{Error, ErrorContext, Result, RunLog};
use transom_object::meta;
use transom_xapi::connection;
use transom_xapi::constants::owner;

/// How a Secret that exists is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// It gets exactly the wanted keys.
    Replace,
    /// It gains the wanted keys and keeps all others.
    AddKeys,
}

impl Update {
    /// Whether there is nothing to update.
    fn is_done(self, live: &Value, wanted: &Value) -> bool {
        if self == Self::Replace {
            return connection::same_data(live, wanted);
        }
        let (published, wanted) = (connection::details(live), connection::details(wanted));
        wanted.iter().all(|(key, value)| published.get(key) == Some(value))
    }

    /// The merge patch; a replacement has none.
    fn patch(self, wanted: &Value) -> Option<Value> {
        let data = wanted.get("data").cloned().unwrap_or_else(|| json!({}));
        match self {
            Self::Replace => None,
            Self::AddKeys => Some(json!({"data": data})),
        }
    }
}

/// A Secret to publish.
pub(crate) struct ConnectionSecret<'a> {
    /// The Secret as it should be.
    pub(crate) wanted: Value,
    /// The Secret as it is stored.
    pub(crate) live: Option<&'a Value>,
    /// The uid of the object whose connection details these are.
    pub(crate) owner: &'a str,
    /// What happens to a Secret that exists.
    pub(crate) update: Update,
    /// What an error of writing says was attempted.
    pub(crate) attempt: &'static str,
}

impl ConnectionSecret<'_> {
    /// Creates or updates the Secret, and returns whether it was written. Refuses to touch a Secret that another object
    /// controls.
    pub(crate) async fn publish(mut self, plane: &Plane, log: &RunLog) -> Result<bool> {
        let written = match self.live {
            None => plane.cluster.create(&self.wanted, owner::DEFAULT).await,
            Some(live) => {
                connection::must_be_controllable_by(live, self.owner).map_err(Error::unfit)?;
                if self.update.is_done(live, &self.wanted) {
                    return Ok(false);
                }
                if let Some(patch) = self.update.patch(&self.wanted) {
                    plane.cluster.merge_patch(&self.wanted, &patch, owner::DEFAULT).await
                } else {
                    meta::set_resource_version(&mut self.wanted, meta::resource_version(live));
                    plane.cluster.update(&self.wanted, owner::DEFAULT).await
                }
            }
        };
        log.wrote(&written.context(self.attempt)?);
        Ok(true)
    }
}
