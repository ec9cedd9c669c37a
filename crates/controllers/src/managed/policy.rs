//! One run of one policy: activates the definitions that its patterns match. It never deactivates one, as a definition
//! that is active stays active.

use crate::catalog::kinds;
use crate::plane::Plane;
use futures_util::stream::{self, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use transom_engine::{Error, ErrorContext, Key, Mirror, Next, Reconciler, Result, RunLog, found};
use transom_object::meta;
use transom_xapi::constants::{event, kind, message, owner};
use transom_xapi::managed::matches_pattern;
use transom_xapi::package::ACTIVE;
use transom_xapi::{Condition, ManagedResourceActivationPolicy, conditions, metadata};

pub(super) const NAME: &str = "mrap/managedresourceactivationpolicy";

/// How many definitions are activated at a time.
const MAX_PARALLEL_WRITES: usize = 10;
/// How long to wait for a watch that should report what was just written. A definition that it shows as inactive
/// nevertheless is activated once more, which changes nothing.
const WATCH_LAG_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct Policies {
    pub(super) plane: Arc<Plane>,
    /// All definitions. A change of one that matters wakes the policies that match it.
    pub(super) definitions: Arc<Mirror>,
}

/// Whether one of these patterns matches a name.
pub(super) fn matches<'p>(mut patterns: impl Iterator<Item = &'p str>, name: &str) -> bool {
    patterns.any(|pattern| matches_pattern(pattern, name))
}

impl Reconciler for Policies {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let plane = &self.plane;
        let read = plane.read(log, &kinds::activation_policy(), "", &key.name).await;
        let Some(mut object) = read.context("cannot get ManagedResourceActivationPolicy")? else {
            return Ok(Next::Gone);
        };
        let before = object.get("status").cloned().unwrap_or_default();
        if meta::is_deleting(&object) {
            self.mark(&mut object, Condition::policy_terminating());
            return self.write_status(log, &mut object, &before).await.map(|()| Next::Wait);
        }
        if metadata::is_paused(&object) {
            plane.events.normal(NAME, &object, event::activation_policy::PAUSED, message::MANAGED_PAUSED);
            return Ok(Next::Wait);
        }
        if let Err(error) = self.definitions.ready().await {
            let words = "cannot list ManagedResourceDefinition";
            self.mark(&mut object, Condition::policy_blocked(words));
            self.write_status(log, &mut object, &before).await?;
            return Err(error).context(words);
        }
        let failed = self.activate(log, &mut object).await?;
        self.write_status(log, &mut object, &before).await?;
        match failed {
            None => Ok(Next::Wait),
            // The next run resolves a conflict.
            Some(error) => Err(error).context("cannot activate ManagedResourceDefinition"),
        }
    }
}

impl Policies {
    fn mark(&self, object: &mut Value, condition: Condition) {
        conditions::mark_observed(object, [condition], self.plane.clock.now());
    }

    async fn write_status(&self, log: &RunLog, object: &mut Value, before: &Value) -> Result<()> {
        let written = self.plane.write_status(log, object, before).await;
        written.map(drop).context("cannot update status of ManagedResourceActivationPolicy")
    }

    /// Activates the definitions that match, and records which they are. Returns the first error.
    async fn activate(&self, log: &RunLog, object: &mut Value) -> Result<Option<Error>> {
        let policy = ManagedResourceActivationPolicy::deserialize(&*object).map_err(Error::permanent)?;
        let written = self.plane.cluster.newest_written(&kinds::managed_definition());
        self.definitions.reaches(written, WATCH_LAG_TIMEOUT).await;
        let (mut activated, mut inactive) = (Vec::new(), Vec::new());
        for definition in self.definitions.all() {
            let name = &*definition.key.name;
            if !policy.activates(name) {
                continue;
            }
            if super::is_active(&definition) {
                activated.push(name.to_owned());
            } else {
                inactive.push(name.to_owned());
            }
        }
        let mut attempts = Vec::new();
        for name in &inactive {
            attempts.push(self.activate_one(log, name));
        }
        let attempts: Vec<Result<bool>> =
            stream::iter(attempts).buffered(MAX_PARALLEL_WRITES).collect().await;
        let mut errors = Vec::new();
        for (name, attempt) in inactive.iter().zip(attempts) {
            match attempt {
                Ok(true) => {
                    let words = "Successfully activated ManagedResourceDefinition";
                    self.plane.events.normal(NAME, object, event::activation_policy::ACTIVATE, words);
                    activated.push(name.clone());
                }
                Ok(false) => {}
                Err(error) => {
                    let words = error.chain().to_string();
                    self.plane.events.warning(NAME, object, event::activation_policy::ACTIVATE, words);
                    errors.push(error);
                }
            }
        }
        activated.sort_unstable();
        self.mark(object, health(errors.len(), activated.len()));
        record(object, &activated);
        Ok(errors.into_iter().next())
    }

    /// Activates a definition. Returns false if it is gone.
    async fn activate_one(&self, log: &RunLog, name: &str) -> Result<bool> {
        let definition = json!({
            "apiVersion": kind::APIEXTENSIONS_V1ALPHA1, "kind": kind::MRD, "metadata": {"name": name},
        });
        let patch = json!({"spec": {"state": ACTIVE}});
        let patched = self.plane.cluster.merge_patch(&definition, &patch, owner::DEFAULT).await;
        let patched = found(patched).context(format!("cannot activate {} {name:?}", kind::MRD))?;
        patched.iter().for_each(|definition| log.wrote(definition));
        Ok(patched.is_some())
    }
}

fn health(failed: usize, activated: usize) -> Condition {
    if failed == 0 {
        return Condition::policy_healthy();
    }
    Condition::policy_unhealthy(format!(
        "failed to activate {failed} of {activated} ManagedResourceDefinitions"
    ))
}

/// Records the definitions that a policy activated.
fn record(object: &mut Value, activated: &[String]) {
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    if activated.is_empty() {
        status.remove("activated");
    } else {
        status.insert("activated".to_owned(), json!(activated));
    }
}
