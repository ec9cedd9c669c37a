//! Connection details of legacy composite resources: a Secret that only ever gains keys.

use super::{Composites, Details};
use crate::catalog::kinds;
use crate::connection_secret::{ConnectionSecret, Update};
use transom_engine::{ErrorContext, Result, RunLog};
use transom_object::meta;
use transom_xapi::composite::{Composite, Schema};
use transom_xapi::connection;

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
        let secret = ConnectionSecret {
            live: live.as_ref(),
            wanted: secret,
            owner: meta::uid(&xr.object),
            update: Update::AddKeysAndOwner,
            attempt: "cannot apply connection secret",
        };
        let written = secret.publish(&self.plane, log).await.context("cannot publish connection details")?;
        Ok(written || xr.last_published_time().is_none())
    }
}
