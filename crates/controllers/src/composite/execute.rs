//! Carries plans out. Nothing is decided here: which steps there are, in which order, what a refusal means and whether
//! to go on is decided by `transom_compose`.
//!
//! Nothing is sent that would change nothing, and the version of every object that is written is noted in the
//! [`RunLog`], so that the run's own writes do not cause another run.

use super::rights::missing_rights;
use crate::catalog::kinds;
use crate::usage::is_in_use;
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::BTreeSet;
use tokio::time::{Instant, timeout_at};
use transom_compose::{Application, Deletion, Event, Lookup, Outcome, Plan, Refusal, RefusalKind, Step};
use transom_engine::{Cluster, DeleteOptions, Error, Recorder, Result, RunLog, apply_is_noop, found};
use transom_object::{GroupVersion, meta};
use transom_xapi::AccountReference;
use transom_xapi::constants::owner;
use transom_xapi::metadata::TypedReference;

/// What a controller remembers about the composite resource of a run.
pub(super) trait Memory: Send + Sync {
    /// Watches one thing more.
    fn depend(&self, lookup: &Lookup);

    /// Watches these and nothing else.
    fn follow(&self, lookups: &BTreeSet<Lookup>);

    /// Forgets a composite resource that is being deleted.
    fn forget(&self, uid: &str);
}

/// Executes plans against an API server.
pub(super) struct Executor<'a> {
    pub(super) cluster: &'a Cluster,
    /// Writes composed resources.
    pub(super) composed: &'a Cluster,
    /// The service account that it does this as, if it is not the control plane itself.
    pub(super) account: Option<&'a AccountReference>,
    pub(super) log: &'a RunLog,
    pub(super) memory: &'a dyn Memory,
    pub(super) recorder: &'a Recorder,
    /// The name of the controller that events are recorded for.
    pub(super) controller: &'a str,
    /// When steps that must be done in time are given up.
    pub(super) deadline: Instant,
}

impl Executor<'_> {
    /// Executes a plan as far as possible: one outcome for each step, unless a step ended the plan.
    pub(super) async fn execute(&self, plan: &Plan) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(plan.steps.len());
        if !plan.within_deadline {
            self.steps(plan, &mut outcomes).await;
        } else if timeout_at(self.deadline, self.steps(plan, &mut outcomes)).await.is_err() {
            outcomes.push(Outcome::Refused(Refusal::deadline_exceeded()));
        }
        outcomes
    }

    async fn steps(&self, plan: &Plan, outcomes: &mut Vec<Outcome>) {
        for batch in plan.batches() {
            let first = outcomes.len();
            let steps = (first..first + batch.len()).filter_map(|index| plan.step(index, outcomes));
            let done = join_all(steps.map(|step| self.step(step.into_owned()))).await;
            let ended = batch.iter().zip(&done).any(|(step, outcome)| step.ends_plan(outcome));
            outcomes.extend(done);
            if ended {
                return;
            }
        }
    }

    /// Attempts a step, and what is to be done in its place if it is refused.
    async fn step(&self, mut step: Step) -> Outcome {
        loop {
            let refusal = match self.attempt(&step).await {
                Ok(outcome) => return outcome,
                Err(error) => refusal(&error),
            };
            match step.instead(&refusal) {
                Some(instead) => step = instead,
                None => {
                    if let Some(message) = step.log_message(&refusal) {
                        tracing::warn!(controller = self.controller, error = %refusal, "{message}");
                    }
                    return Outcome::Refused(refusal);
                }
            }
        }
    }

    async fn attempt(&self, step: &Step) -> Result<Outcome> {
        match step {
            Step::Configure { object, .. } | Step::RemoveFinalizer { object } => {
                self.written(self.cluster.update(object, owner::DEFAULT).await)
            }
            Step::Disown(Deletion { object, .. }) => {
                self.log.changed();
                self.if_found(self.composed.update(object, owner::DEFAULT).await)
            }
            Step::Delete(deletion) => self.delete(&deletion.object).await,
            Step::PersistReferences(references) if references.is_persisted() => Ok(Outcome::Unchanged),
            Step::PersistReferences(references) => {
                self.written(self.cluster.apply(&references.intent, owner::COMPOSITE).await)
            }
            Step::UpgradeFields { object, patch } => {
                self.if_found(self.composed.json_patch(object, patch, owner::DEFAULT).await)
            }
            Step::Apply(application) => self.apply(application).await,
            Step::ReadSecret { namespace, name } => {
                Ok(Outcome::Read(self.cluster.get(&kinds::secret(), namespace, name).await?))
            }
            Step::CreateSecret { object } => self.written(self.cluster.create(object, owner::DEFAULT).await),
            Step::PatchSecret { object, patch } => {
                self.written(self.cluster.merge_patch(object, patch, owner::DEFAULT).await)
            }
            Step::ReplaceStatus { object } => {
                self.if_found(self.cluster.update_status(object, owner::DEFAULT).await)
            }
            Step::PatchConditions { object, patch, .. } => {
                self.written(self.cluster.merge_patch_status(object, patch, owner::DEFAULT).await)
            }
            Step::ApplyStatus { live, intent } if apply_is_noop(live, intent, owner::COMPOSITE, "status") => {
                Ok(Outcome::Unchanged)
            }
            Step::ApplyStatus { intent, .. } => {
                self.written(self.cluster.apply_status(intent, owner::COMPOSITE).await)
            }
            Step::ReviewRights { kind, namespace, verbs } => {
                let missing = missing_rights(self.composed, self.account, kind, namespace, verbs).await;
                Ok(Outcome::MissingRights(missing.map(|missing| missing.to_string())))
            }
            Step::Events { .. }
            | Step::ClaimEvents { .. }
            | Step::Depend(_)
            | Step::Follow(_)
            | Step::Forget { .. } => {
                self.note(step).await;
                Ok(Outcome::Done)
            }
        }
    }

    /// Does what changes no object.
    async fn note(&self, step: &Step) {
        match step {
            Step::Events { about, events } => self.record(about, events),
            Step::ClaimEvents { claim, events } => {
                if let Some(claim) = self.claim(claim).await {
                    self.record(&claim, events);
                }
            }
            Step::Depend(lookups) => lookups.iter().for_each(|lookup| self.memory.depend(lookup)),
            Step::Follow(lookups) => self.memory.follow(lookups),
            Step::Forget { uid } => self.memory.forget(uid),
            _ => {}
        }
    }

    fn written(&self, written: Result<Value>) -> Result<Outcome> {
        let object = written?;
        self.log.wrote(&object);
        Ok(Outcome::Written(object))
    }

    /// An object that is gone needs no change.
    fn if_found(&self, written: Result<Value>) -> Result<Outcome> {
        match found(written)? {
            Some(object) => self.written(Ok(object)),
            None => Ok(Outcome::Done),
        }
    }

    /// Deletes an object if it is still the same.
    async fn delete(&self, object: &Value) -> Result<Outcome> {
        self.log.changed();
        let Some(kind) = meta::gvk(object) else { return Ok(Outcome::Done) };
        let options = DeleteOptions { propagation: Some("Foreground"), uid: Some(meta::uid(object)) };
        self.composed.delete(&kind, meta::namespace(object), meta::name(object), options).await?;
        Ok(Outcome::Done)
    }

    async fn apply(&self, application: &Application) -> Result<Outcome> {
        let Application { object, observed, field_owner, .. } = application;
        let undeclared = application.undeclared.clone().unwrap_or_default();
        if observed.as_ref().is_some_and(|observed| apply_is_noop(observed, object, field_owner, "")) {
            return Ok(Outcome::Applied { object: None, undeclared });
        }
        let before = observed.as_ref().map(|observed| meta::resource_version(observed));
        let after = self.composed.apply(object, field_owner).await?;
        let changed = Some(after).filter(|after| before != Some(meta::resource_version(after)));
        changed.iter().for_each(|after| self.log.wrote(after));
        Ok(Outcome::Applied { object: changed, undeclared })
    }

    fn record(&self, about: &Value, events: &[Event]) {
        for event in events {
            self.recorder.record(self.controller, about, event.r#type, &event.reason, &event.text());
        }
    }

    /// A claim, to record events about it. Not finding it fails nothing.
    async fn claim(&self, reference: &TypedReference) -> Option<Value> {
        let kind = GroupVersion::parse(&reference.api_version)?.with_kind(&*reference.kind);
        self.cluster.get(&kind, &reference.namespace, &reference.name).await.ok().flatten()
    }
}

fn refusal(error: &Error) -> Refusal {
    let kind = match error {
        // A refusal because of a Usage has the code of a conflict.
        e if is_in_use(e) => RefusalKind::InUse,
        e if e.is_conflict() => RefusalKind::Conflict,
        e if e.is_not_found() => RefusalKind::NotFound,
        e if e.is_invalid() => RefusalKind::Invalid,
        e if e.is_forbidden() => RefusalKind::Forbidden,
        e if e.is_too_large() => RefusalKind::TooLarge,
        _ => RefusalKind::Other,
    };
    Refusal { kind, message: error.chain().to_string() }
}

#[cfg(test)]
mod tests;
