//! One reconcile of a composite resource, as a state machine without I/O of its own.
//!
//! Everything about the composite resource is decided here. The caller does what [`Todo`] says and reports back, until
//! the machine is done:
//!
//! ```text
//! Reconcile::start ──▶ Todo ─┬─ Prepare ─────▶ prepare(world)            nesting, Composition, revision, configuration
//!                            ├─ Compose ─────▶ compose(runner, world) ─▶ composed(…)
//!                            ├─ Execute(plan) ─────────────────────────▶ executed(plan, outcomes)
//!                            └─ Done(next)
//! ```
//!
//! | file | decides |
//! |---|---|
//! | `start` | paused, reconcile requests, deletion, selection |
//! | `composing` | observing and running the pipeline, and what to write while a function is slow |
//! | `applying` | deletions, references and applies, and whether to look once more before the status is written |
//! | `concluding` | connection details, conditions, events, status, when to run again |
//! | `failing` | what to report when something went wrong |
//! | `composed_by` | when an event names the FunctionRevisions that composed |
//!
//! A control plane executes the plans against an API server; [`offline`](crate::offline) keeps them.

mod applying;
mod composed_by;
mod composing;
mod concluding;
mod failing;
mod start;

pub use composed_by::ComposedBy;
pub use composing::{Composed, Interim, SlowCall};

use crate::condition::Event;
use crate::decision::Decision;
use crate::failure::Failure;
use crate::inputs::{Observation, Options, Requirements};
use crate::nesting::Nesting;
use crate::plan::{Outcome, Plan, Refusal, Step};
use crate::reads::Reads;
use crate::report::{Report, Unsynced};
use crate::requeue::{Next, Polling};
use crate::selecting::{Chosen, Selection, Trouble};
use crate::status::record_watched;
use composed_by::Revisions;
use failing::Failing;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_object::time::Timestamp;
use transom_xapi::AccountReference;
use transom_xapi::composite::{Composite, Layout};
use transom_xapi::conditions::{self, Condition};

/// Where a composite resource is reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In a control plane.
    ControlPlane,
    /// From files, as Crossplane's own `render` does it: it does not matter whether the composite resource is paused or
    /// being deleted, conditions and events have Crossplane's wording and no more, fields of the status that the control
    /// plane keeps are left out, nothing is published, observed resources need not be controlled by the composite
    /// resource to be deleted, and every kind counts as namespaced.
    Offline,
}

/// What does not change from one reconcile of a composite resource to the next.
#[derive(Clone)]
pub struct Setup<'a> {
    /// Where the reconcile happens.
    pub mode: Mode,
    /// Where the composite resource keeps what belongs to Crossplane.
    pub layout: Layout,
    /// How its Composition is chosen.
    pub selection: Selection<'a>,
    /// The keys of connection details that are published; without any, all are.
    pub connection_secret_keys: &'a [String],
    /// The pipeline's initial context.
    pub context: Map<String, Value>,
    /// Whether functions may require resources.
    pub extra_resources: bool,
    /// How often it is reconciled although nothing changed.
    pub polling: Polling,
    /// A cache of how deep composite resources are nested.
    pub nesting: &'a Nesting,
    /// The service account that it is composed under, if its definition names one. The caller reads what functions are
    /// given as this account, and writes composed resources as it.
    pub account: Option<AccountReference>,
}

impl Setup<'_> {
    /// Whether changes of what a composite resource depends on are watched.
    fn watches(&self) -> bool {
        self.polling.realtime
    }

    fn options(&self) -> Options {
        let offline = self.mode == Mode::Offline;
        Options {
            extra_resources: self.extra_resources,
            delete_uncontrolled: offline,
            scopes_known: !offline,
            ..Options::default()
        }
    }
}

/// The state of the caller's clock, random source and queue when a decision is made.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The time.
    pub now: Timestamp,
    /// A number drawn at random.
    pub random: u32,
    /// If something changes so often that the composite resource is reconciled at intervals: what it is.
    pub slowed_by: Option<FrequentChange>,
}

/// An object that changes often.
#[derive(Clone, Debug)]
pub struct FrequentChange {
    /// Its kind.
    pub kind: String,
    /// Its namespace, if it has one.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Moment {
    /// Whether changes are acted upon at once: the condition `Responsive`. Crossplane breaks a circuit and drops changes;
    /// here they are merged.
    fn responsive(&self) -> Condition {
        let Some(FrequentChange { kind, namespace, name }) = &self.slowed_by else {
            return Condition::watch_circuit_closed();
        };
        let namespace = if namespace.is_empty() { String::new() } else { format!(" ({namespace})") };
        Condition::watch_circuit_open(&format!("{kind}/{name}{namespace}"))
    }
}

/// What the caller does next.
#[derive(Debug)]
pub enum Todo {
    /// Call [`Reconcile::prepare`].
    Prepare,
    /// Call [`Reconcile::compose`] and hand the result to [`Reconcile::composed`].
    Compose,
    /// Execute a plan and call [`Reconcile::executed`].
    Execute(Plan),
    /// Nothing: the reconcile is done.
    Done(Next),
}

/// One reconcile of a composite resource.
pub struct Reconcile<'a> {
    setup: &'a Setup<'a>,
    /// As it is in this run: what was decided may not be written yet.
    xr: Composite,
    /// Its status, as it is stored.
    stored_status: Value,
    /// Whether its configuration is not written yet.
    unsaved: bool,
    started: Timestamp,
    chosen: Option<Chosen<'a>>,
    /// What the steps required in the last run, then in this one.
    required: Requirements,
    reads: Mutex<Reads>,
    revisions: Revisions,
    observation: Option<Observation>,
    /// What was applied and is now part of the observation.
    relied_on: Vec<Arc<Value>>,
    /// The report of the first look, if what was applied is looked at once more.
    first: Option<Report>,
    phase: Phase,
    result: Option<Result<Decision, Failure>>,
}

/// What the plan is for that is being executed.
enum Phase {
    /// None is.
    Idle,
    /// To remove the finalizer.
    Releasing,
    /// To record that a request to reconcile is handled.
    Requested,
    /// To record the events of the selection.
    Selecting,
    /// To save the configuration although there is nothing to compose; then this is to be reported.
    Saving(Option<Trouble>),
    /// To make the world as the pipeline wants it.
    Applying(Box<Decision>),
    /// To record events before what was applied is looked at once more.
    Looking,
    /// To publish connection details: the Secret is being read.
    ReadingSecret(Box<Applied>),
    /// To publish connection details: the Secret is being written.
    WritingSecret(Box<Applied>),
    /// To write the final status.
    Concluding(Box<Conclusion>),
    /// To save the configuration and to find out about rights, before a failure is reported.
    Failing(Box<Failing>),
    /// The last writes. `next` follows; if a write fails, the failure does, unless `ignore_failures`.
    Ending { next: Next, ignore_failures: bool },
}

/// A decision that was carried out.
struct Applied {
    decision: Decision,
    unsynced: Unsynced,
    /// Events about writes.
    events: Vec<Event>,
    /// Whether anything that functions can see is different now.
    changed: bool,
    /// Whether something could not be deleted because it is in use.
    blocked: bool,
}

/// What remains to be known when the status is written.
struct Conclusion {
    applied: Applied,
    report: Report,
    /// Whether connection details were published, or why they could not be.
    published: Result<bool, Trouble>,
}

impl<'a> Reconcile<'a> {
    /// The composite resource as far as this run knows it.
    pub fn xr(&self) -> &Value {
        &self.xr.object
    }

    /// What the steps required, for the next run.
    pub fn requirements(&self) -> &Requirements {
        &self.required
    }

    /// The result of the pipeline, if it was run and the reconcile is done.
    pub fn into_result(self) -> Option<Result<Decision, Failure>> {
        self.result
    }

    /// Continues after a plan was executed. There are as many outcomes as steps, unless a step ended the plan.
    pub fn executed(&mut self, plan: &Plan, outcomes: Vec<Outcome>, moment: &Moment) -> Todo {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => Todo::Done(Next::Wait),
            Phase::Releasing => self.released(plan, &outcomes, moment),
            Phase::Requested => Todo::Prepare,
            Phase::Selecting | Phase::Looking => Todo::Compose,
            Phase::Saving(trouble) => self.saved(plan, outcomes, trouble, moment),
            Phase::Applying(decision) => self.applied(*decision, plan, outcomes, moment),
            Phase::ReadingSecret(applied) => self.secret_read(*applied, plan, outcomes, moment),
            Phase::WritingSecret(applied) => self.secret_written(*applied, plan, &outcomes, moment),
            Phase::Concluding(conclusion) => self.concluded(*conclusion, plan, outcomes, moment),
            Phase::Failing(failing) => self.ready_to_fail(*failing, plan, outcomes, moment),
            Phase::Ending { next, ignore_failures } => self.ended(next, ignore_failures, plan, &outcomes),
        }
    }

    /// Executes steps; without any, goes on at once.
    fn execute(&mut self, phase: Phase, steps: Vec<Step>, moment: &Moment) -> Todo {
        self.phase = phase;
        let plan = Plan::new(steps);
        if plan.steps.is_empty() { self.executed(&plan, Vec::new(), moment) } else { Todo::Execute(plan) }
    }

    /// The last writes.
    fn end(&mut self, next: Next, steps: Vec<Step>, moment: &Moment) -> Todo {
        self.execute(Phase::Ending { next, ignore_failures: false }, steps, moment)
    }

    /// The last writes, whose failures are ignored.
    fn end_ignoring_failures(&mut self, next: Next, steps: Vec<Step>, moment: &Moment) -> Todo {
        self.execute(Phase::Ending { next, ignore_failures: true }, steps, moment)
    }

    fn ended(&mut self, next: Next, ignore_failures: bool, plan: &Plan, outcomes: &[Outcome]) -> Todo {
        for outcome in outcomes {
            if let Outcome::Written(object) = outcome {
                self.xr.object.clone_from(object);
            }
        }
        Todo::Done(match plan.failed(outcomes) {
            Some((step, refusal)) if !ignore_failures => failure(step, refusal),
            _ => next,
        })
    }

    /// Marks conditions that are about the current generation.
    fn mark(&mut self, new: impl IntoIterator<Item = Condition>, now: Timestamp) {
        conditions::mark_observed(&mut self.xr.object, new, now);
    }

    fn events(&self, events: Vec<Event>) -> Vec<Step> {
        Step::events(&self.xr.object, self.xr.claim_ref(), events)
    }

    /// The step that watches what the composite resource depends on, if anything is watched.
    fn watch(&self, step: Step) -> Option<Step> {
        self.setup.watches().then_some(step)
    }

    fn reads(&self) -> MutexGuard<'_, Reads> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists in the status what was read and is not composed.
    fn record_watched(&mut self) {
        if self.setup.mode == Mode::ControlPlane {
            let watched = self.reads().required();
            record_watched(&mut self.xr.object, watched);
        }
    }

    /// Writes the configuration.
    fn save(&self) -> Step {
        Step::Configure { object: self.xr.object.clone(), with_references: false }
    }

    /// Takes over the composite resource as the server returned it. The status in it is the stored one; what is known
    /// since is written later.
    fn refreshed(&mut self, object: Value) {
        let status = self.xr.object.get_mut("status").map(Value::take);
        self.xr.object = object;
        if let Some(status) = status {
            self.xr.object["status"] = status;
        }
        self.unsaved = false;
    }
}

/// What comes after a step that failed.
fn failure(step: &Step, refusal: &Refusal) -> Next {
    if refusal.is_conflict() { Next::Conflict } else { Next::Error(step.explain(refusal)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_that_slows_a_composite_resource_down_is_named() {
        let moment = |slowed_by| Moment { now: Timestamp::UNIX_EPOCH, random: 0, slowed_by };
        assert_eq!(moment(None).responsive(), Condition::watch_circuit_closed());
        let change = |namespace: &str| {
            let (kind, name) = ("ConfigMap".to_owned(), "a".to_owned());
            Some(FrequentChange { kind, namespace: namespace.to_owned(), name })
        };
        let open = |from| Condition::watch_circuit_open(from);
        assert_eq!(moment(change("")).responsive(), open("ConfigMap/a"));
        assert_eq!(moment(change("default")).responsive(), open("ConfigMap/a (default)"));
    }
}
