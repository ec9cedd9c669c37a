//! One run of one definition: an active one has a CRD, which is applied by server-side apply.
//!
//! A CRD that a provider's package installed before there were definitions is adopted as it is: the first apply takes
//! over its fields, and it is never deleted.

use crate::catalog::kinds;
use crate::plane::Plane;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use transom_compose::upgrade;
use transom_engine::{Error, ErrorContext, Key, Next, Reconciler, Result, RunLog, apply_is_noop};
use transom_object::meta;
use transom_xapi::constants::{event, message, owner};
use transom_xapi::definition::is_established;
use transom_xapi::managed::{self, ControlledByAnother};
use transom_xapi::{Condition, ManagedResourceDefinition, conditions, metadata};

pub(super) const NAME: &str = "mrd/managedresourcedefinition";

pub(super) struct Definitions {
    pub(super) plane: Arc<Plane>,
}

/// Why an active definition has no CRD, or not the one that it should have.
enum Blocked {
    /// Another attempt may succeed: the reason of the event, what the condition says, and the error.
    Retry(&'static str, &'static str, Error),
    /// Something else controls the CRD. A change of the CRD wakes the definition.
    Taken(ControlledByAnother),
}

impl Blocked {
    fn by(event: &'static str, message: &'static str) -> impl Fn(Error) -> Self {
        move |error| Self::Retry(event, message, error)
    }
}

impl Reconciler for Definitions {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &kinds::managed_definition(), "", &key.name).await;
        let Some(mut object) = read.context("cannot get ManagedResourceDefinition")? else {
            return Ok(Next::Gone);
        };
        if meta::is_deleting(&object) {
            return self.mark(log, &mut object, Condition::managed_terminating()).await;
        }
        if metadata::is_paused(&object) {
            self.plane.events.normal(NAME, &object, event::managed::PAUSED, message::MANAGED_PAUSED);
            return Ok(Next::Wait);
        }
        let definition = ManagedResourceDefinition::deserialize(&object).map_err(Error::permanent)?;
        if !definition.is_active() {
            return self.mark(log, &mut object, Condition::managed_inactive()).await;
        }
        match self.apply(log, &object, &definition).await {
            Ok(crd) if is_established(&crd) => {
                self.mark(log, &mut object, Condition::managed_established()).await
            }
            Ok(_) => self.mark(log, &mut object, Condition::managed_pending()).await,
            Err(blocked) => self.block(log, &mut object, blocked).await,
        }
    }
}

impl Definitions {
    /// Sets the condition of a definition, unless it is set already.
    async fn mark(&self, log: &RunLog, object: &mut Value, condition: Condition) -> Result<Next> {
        let before = object.get("status").cloned().unwrap_or_default();
        conditions::mark_observed(object, [condition], self.plane.clock.now());
        let written = self.plane.write_status(log, object, &before).await;
        written.context("cannot update status of ManagedResourceDefinition")?;
        Ok(Next::Wait)
    }

    /// Reports why there is no CRD.
    async fn block(&self, log: &RunLog, object: &mut Value, blocked: Blocked) -> Result<Next> {
        let (event, message, error) = match blocked {
            Blocked::Retry(_, _, error) if error.is_conflict() => return Err(error),
            Blocked::Retry(event, message, error) => (event, message.to_owned(), error),
            Blocked::Taken(taken) => {
                self.plane.events.warning(NAME, object, event::managed::APPLY_CRD, taken.to_string());
                return self.mark(log, object, Condition::managed_blocked(taken.to_string())).await;
            }
        };
        self.plane.events.warning(NAME, object, event, error.chain().to_string());
        // The error is what matters; a status that cannot be written is written next time.
        if let Err(e) = self.mark(log, object, Condition::managed_blocked(message)).await {
            tracing::debug!(controller = NAME, key = %Key::of(object), error = %e.chain(), "cannot update status");
        }
        Err(error)
    }

    /// Applies the CRD of an active definition, unless it is as it should be. Returns it.
    async fn apply(
        &self,
        log: &RunLog,
        object: &Value,
        definition: &ManagedResourceDefinition,
    ) -> Result<Value, Blocked> {
        let unread = "unable to get CustomResourceDefinition, see events";
        let read = self.plane.read(log, &kinds::crd(), "", &definition.metadata.name).await;
        let read = read.context("cannot get CustomResourceDefinition");
        let live = read.map_err(Blocked::by(event::managed::RECONCILE, unread))?;
        let live = match live {
            Some(live) => Some(self.adopt(log, live, definition).await?),
            None => None,
        };
        let unformed = "unable to form CustomResourceDefinition, see events";
        let formed = managed::crd(definition).map_err(Error::permanent);
        let formed = formed.context("cannot form CustomResourceDefinition");
        let wanted = formed.map_err(Blocked::by(event::managed::RECONCILE, unformed))?;
        if let Some(live) = live.as_ref().filter(|live| apply_is_noop(live, &wanted, owner::MANAGED, "")) {
            return Ok(live.clone());
        }
        let unapplied = "unable to apply CustomResourceDefinition, see events";
        let applied = self.plane.cluster.apply(&wanted, owner::MANAGED).await;
        let applied = applied.context("cannot apply CustomResourceDefinition");
        let applied = applied.map_err(Blocked::by(event::managed::APPLY_CRD, unapplied))?;
        log.wrote(&applied);
        self.plane.cluster.forget_group(wanted["spec"]["group"].as_str().unwrap_or_default());
        let is_changed = |live: &Value| meta::resource_version(live) != meta::resource_version(&applied);
        if live.as_ref().is_none_or(is_changed) {
            let words = "Successfully applied CustomResourceDefinition";
            self.plane.events.normal(NAME, object, event::managed::APPLY_CRD, words);
        }
        self.upgrade(log, applied, Vec::new()).await
    }

    /// Prepares a CRD that exists for the first apply, if it was not applied before.
    async fn adopt(
        &self,
        log: &RunLog,
        live: Value,
        definition: &ManagedResourceDefinition,
    ) -> Result<Value, Blocked> {
        let releases = managed::adoption(&live, definition).map_err(Blocked::Taken)?;
        self.upgrade(log, live, releases).await
    }

    /// Makes server-side apply the owner of what was written by updates, and makes these changes with it.
    async fn upgrade(&self, log: &RunLog, crd: Value, changes: Vec<Value>) -> Result<Value, Blocked> {
        let Some(patch) = upgrade(&crd, |manager| manager == owner::MANAGED) else { return Ok(crd) };
        // A run that did not get further removed the managers already.
        let managers = crd.pointer("/metadata/managedFields").and_then(Value::as_array);
        let is_managed = managers.is_some_and(|managers| !managers.is_empty());
        if !is_managed && changes.is_empty() {
            return Ok(crd);
        }
        let operations = patch.as_array().into_iter().flatten();
        let operations =
            operations.filter(|operation| is_managed || operation["path"] != "/metadata/managedFields");
        let patch: Vec<Value> = changes.into_iter().chain(operations.cloned()).collect();
        let patched = self.plane.cluster.json_patch(&crd, &json!(patch), owner::DEFAULT).await;
        let patched = patched.context("cannot upgrade managed fields");
        let words = "unable to upgrade managed fields, see events";
        let patched = patched.map_err(Blocked::by(event::managed::RECONCILE, words))?;
        log.wrote(&patched);
        Ok(patched)
    }
}
