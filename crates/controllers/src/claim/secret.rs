//! The connection secret of a claim: a copy of its composite resource's.

use crate::plane::Plane;
use serde_json::Value;
use transom_engine::{Error, ErrorContext, Result, RunLog};
use transom_object::meta;
use transom_xapi::connection;
use transom_xapi::constants::owner;

/// The Secret of a claim.
pub(super) struct SecretCopy<'a> {
    /// The Secret as it should be.
    pub(super) wanted: Value,
    /// The Secret as it is stored.
    pub(super) live: Option<&'a Value>,
    /// The uid of the claim.
    pub(super) owner: &'a str,
}

impl SecretCopy<'_> {
    /// Creates the Secret, or gives it exactly the wanted keys, and returns whether it was written. Refuses to touch a Secret that another object
    /// controls.
    pub(super) async fn write(mut self, plane: &Plane, log: &RunLog) -> Result<bool> {
        let written = match self.live {
            None => plane.cluster.create(&self.wanted, owner::DEFAULT).await,
            Some(live) => {
                connection::must_be_controllable_by(live, self.owner).map_err(Error::permanent)?;
                if connection::same_data(live, &self.wanted) {
                    return Ok(false);
                }
                meta::set_resource_version(&mut self.wanted, meta::resource_version(live));
                plane.cluster.update(&self.wanted, owner::DEFAULT).await
            }
        };
        log.wrote(&written.context("cannot create or update connection secret")?);
        Ok(true)
    }
}
