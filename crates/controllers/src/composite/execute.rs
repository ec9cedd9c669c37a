//! Does what a plan says, in its order, and decides nothing.
//!
//! What is no longer wanted is deleted while it is still referenced; references are persisted before what they refer
//! to is created; nothing is sent that would change nothing. The first error ends it, except that an invalid composed
//! resource does not hold up the others.

use super::Composites;
use super::prepare::Stored;
use super::undeclared::{Applied, warning as undeclared};
use crate::usage::is_in_use;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use transom_compose::{
    Application, Event, EventType, Observed, ObservedResource, Plan, Reason, Target, Unsynced, upgrade,
};
use transom_engine::{DeleteOptions, Error, ErrorContext, Result, RunLog, found, is_settled, same};
use transom_object::meta;
use transom_xapi::composite::{Composite, Schema};
use transom_xapi::constants::{event, owner};
use transom_xapi::metadata::TypedReference;

/// Composed resources of one composite resource that are applied at the same time: they share a sync of the disk.
const AT_ONCE: usize = 16;
/// The field with references to what is composed.
const REFERENCES: &str = "resourceRefs";

/// What came of a plan.
#[derive(Default)]
pub(super) struct Executed {
    pub(super) unsynced: Unsynced,
    pub(super) events: Vec<Event>,
    /// Whether anything that functions can see is different now.
    pub(super) changed: bool,
    /// Whether something could not be deleted because it is used.
    pub(super) blocked: bool,
    /// The composed resources that changed, as they are now.
    pub(super) applied: BTreeMap<String, Value>,
}

/// A write that was refused.
pub(super) struct Refused {
    pub(super) error: Error,
    /// The composed resource that it concerns.
    pub(super) composed: Option<Value>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { error, composed: None }
    }
}

impl Composites {
    pub(super) async fn execute(
        &self,
        log: &RunLog,
        xr: &mut Composite,
        stored: &mut Stored,
        plan: &Plan,
        observed: &Observed,
    ) -> Result<Executed, Refused> {
        let mut executed = Executed::default();
        let mut in_use = Vec::new();
        if !plan.delete.is_empty() {
            self.save(log, xr, stored).await?;
        }
        for deletion in &plan.delete {
            match self.delete(log, deletion).await {
                // It stays referenced, so that it goes once nothing uses it any longer; nothing else waits for that.
                Err(e) if is_in_use(&e) => {
                    executed.events.push(warning(&e));
                    in_use.push(&deletion.object);
                }
                deleted => {
                    let deleted = deleted
                        .context("cannot garbage collect composed resources that are no longer desired");
                    let composed = || Some(deletion.object.clone());
                    deleted.map_err(|error| Refused { error, composed: composed() })?;
                    executed.changed = true;
                }
            }
        }
        executed.blocked = !in_use.is_empty();
        executed.changed |= self
            .apply_references(log, xr, stored, plan, &in_use)
            .await
            .context("cannot update composed resource references")?;
        for resource in observed.values() {
            self.upgrade(log, resource).await.context(
                "cannot upgrade composed resource's managed fields from client-side to server-side apply",
            )?;
        }
        for some in plan.apply.chunks(AT_ONCE) {
            let mut applying = Vec::with_capacity(some.len());
            for application in some {
                applying.push(self.apply(log, plan, application, observed.get(&application.name)));
            }
            for (Application { name, object, .. }, outcome) in some.iter().zip(join_all(applying).await) {
                let answer = outcome.as_ref().err().map(|e| e.chain().to_string());
                match outcome.context(format!("cannot apply composed resource {name:?}")) {
                    Ok((changed, warning)) => {
                        executed.events.extend(warning);
                        if let Some(object) = changed {
                            executed.changed = true;
                            executed.applied.insert(name.clone(), object);
                        }
                    }
                    Err(e) if e.is_invalid() => {
                        executed.unsynced.insert(name.clone(), answer.unwrap_or_default());
                        executed.events.push(warning(&e));
                    }
                    Err(error) => return Err(Refused { error, composed: Some(object.clone()) }),
                }
            }
        }
        Ok(executed)
    }

    /// Takes away the labels that say whose it is, then deletes it, if it is still the same object.
    async fn delete(&self, log: &RunLog, deletion: &transom_compose::Deletion) -> Result<()> {
        let object = &deletion.object;
        let (kind, name) = (meta::kind(object), meta::name(object));
        log.changed();
        if deletion.labelled {
            let disowned =
                found(self.plane.cluster.update(object, owner::DEFAULT).await).context(format!(
                    "cannot cleanup composed resource labels of resource {:?} (a {kind} named {name})",
                    deletion.name
                ))?;
            disowned.iter().for_each(|o| log.wrote(o));
        }
        let Some(gvk) = meta::gvk(object) else { return Ok(()) };
        let options = DeleteOptions { propagation: Some("Foreground"), uid: Some(meta::uid(object)) };
        let deleted = self.plane.cluster.delete(&gvk, meta::namespace(object), name, options).await;
        deleted
            .context(format!("cannot delete composed resource {:?} (a {kind} named {name})", deletion.name))
    }

    async fn apply_references(
        &self,
        log: &RunLog,
        xr: &mut Composite,
        stored: &mut Stored,
        plan: &Plan,
        kept: &[&Value],
    ) -> Result<bool> {
        let mut intent = plan.references.object.clone();
        for object in kept {
            keep(&mut intent, self.schema, object);
        }
        let changed = plan.references.changed && kept.is_empty();
        let references = |object| self.schema.machinery(object).and_then(|fields| fields.get(REFERENCES));
        let wanted = references(&intent);
        if stored.unsaved {
            let fields = self.schema.machinery_mut(&mut xr.object);
            if let (Some(fields), Some(wanted)) = (fields, wanted) {
                fields.insert(REFERENCES.to_owned(), wanted.clone());
            }
            self.save(log, xr, stored).await?;
            return Ok(changed);
        }
        // The list is owned as a whole, so whoever wrote it wrote all of it.
        if wanted.zip(references(&xr.object)).is_some_and(|(wanted, live)| same(wanted, live)) {
            return Ok(false);
        }
        let status = xr.object.get("status").cloned();
        xr.object = self.plane.cluster.apply(&intent, owner::COMPOSITE).await?;
        log.wrote(&xr.object);
        if let Some(status) = status {
            xr.object["status"] = status;
        }
        Ok(changed)
    }

    /// Objects that were once written without server-side apply are migrated.
    async fn upgrade(&self, log: &RunLog, resource: &ObservedResource) -> Result<()> {
        let Some(patch) = upgrade(&resource.object, |manager| manager.starts_with(owner::COMPOSED_PREFIX))
        else {
            return Ok(());
        };
        let upgraded = found(self.plane.cluster.json_patch(&resource.object, &patch, owner::DEFAULT).await)?;
        upgraded.iter().for_each(|o| log.wrote(o));
        Ok(())
    }

    /// Applies a composed resource unless that would change nothing. Returns it if it changed, and a warning about what
    /// was left out.
    async fn apply(
        &self,
        log: &RunLog,
        plan: &Plan,
        application: &Application,
        observed: Option<&ObservedResource>,
    ) -> Result<(Option<Value>, Option<Event>)> {
        // What is observed may be of another kind, and then is another object.
        let observed = observed.filter(|_| application.reason == Reason::Wanted);
        if observed.is_some_and(|o| is_settled(&o.object, &application.object, &plan.field_owner, "")) {
            return Ok((None, None));
        }
        let before = observed.map(|o| meta::resource_version(&o.object));
        let applied = match self.plane.cluster.apply(&application.object, &plan.field_owner).await {
            Err(refused) if plan.prunes_undeclared => {
                self.apply_declared(application, &plan.field_owner, observed, refused).await?
            }
            applied => Applied { object: Some(applied?), undeclared: Vec::new() },
        };
        let warning = (!applied.undeclared.is_empty()).then(|| undeclared(application, &applied.undeclared));
        let changed = applied.object.filter(|after| before != Some(meta::resource_version(after)));
        if let Some(after) = &changed {
            log.wrote(after);
        }
        Ok((changed, warning))
    }
}

/// Adds a reference to an object to the others, in their order.
fn keep(intent: &mut Value, schema: Schema, object: &Value) {
    let mut reference = TypedReference::to(object);
    if !meta::namespace(intent).is_empty() {
        reference.namespace.clear();
    }
    let references = schema.machinery_mut(intent).and_then(|m| m.get_mut(REFERENCES));
    if let Some(references) = references.and_then(Value::as_array_mut) {
        references.push(json!(reference));
        references.sort_by_cached_key(|r| {
            let text = |field: &str| r.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            ["apiVersion", "kind", "name", "namespace"].map(text).concat()
        });
    }
}

fn warning(error: &Error) -> Event {
    Event {
        r#type: EventType::Warning,
        reason: event::composite::COMPOSE.to_owned(),
        message: error.chain().to_string(),
        step: None,
        target: Target::Composite,
    }
}
