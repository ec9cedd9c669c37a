//! Observing and running the pipeline, and what to write in the meantime.

use super::{Moment, Reconcile, Todo};
use crate::decision::Decision;
use crate::engine::compose;
use crate::failure::{Cause, Failure};
use crate::inputs::{Inputs, Observation};
use crate::observe::{connection_details, observe};
use crate::plan::{Outcome, Plan, Step};
use crate::reads::Recorder;
use crate::runner::FunctionRunner;
use crate::world::World;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use transom_object::time::Timestamp;
use transom_xapi::composite::{Composite, Layout};
use transom_xapi::conditions::{self, Condition};

/// What came of [`Reconcile::compose`].
pub struct Composed {
    /// The composed resources, if they were observed anew.
    observation: Option<Observation>,
    result: Result<Decision, Failure>,
    /// Whether the pipeline ended, one way or the other, so that it is known what its steps require.
    ended: bool,
}

impl Composed {
    /// Composing took longer than it may.
    pub fn deadline_exceeded() -> Self {
        Self::failed(Cause::DeadlineExceeded)
    }

    fn failed(cause: Cause) -> Self {
        Self { observation: None, result: Err(cause.into()), ended: false }
    }
}

impl Reconcile<'_> {
    /// Observes what exists and runs the pipeline.
    pub async fn compose(&self, now: Timestamp, runner: &dyn FunctionRunner, world: &dyn World) -> Composed {
        let Some(chosen) = &self.chosen else {
            return Composed::failed(Cause::NoComposition);
        };
        let (xr, composition) = (&self.xr.object, chosen.spec());
        self.reads().forget_revisions();
        let recorder = Recorder::new(world, self.setup.watches(), &self.reads);
        self.relied_on.iter().for_each(|object| recorder.relies_on(object));
        let mut fresh = None;
        let observation = match &self.observation {
            Some(observation) => observation,
            None => match observe(xr, self.setup.layout, composition, &recorder).await {
                Ok(observed) => fresh.insert(observed),
                Err(e) => return Composed::failed(e.into()),
            },
        };
        let own = match self.setup.layout {
            Layout::Legacy => connection_details(xr, &recorder).await,
            Layout::Modern => Ok(BTreeMap::new()),
        };
        let connection_details = match own {
            Ok(own) => own,
            Err(e) => return Composed::failed(Cause::Connection(e)),
        };
        let inputs = Inputs {
            xr,
            visible_xr: None,
            layout: self.setup.layout,
            connection_details,
            composition,
            observed: &observation.observed,
            spare: &observation.spare,
            required_before: &self.required,
            context: self.setup.context.clone(),
            now,
            options: self.setup.options(),
        };
        let result = compose(inputs, runner, &recorder).await;
        Composed { observation: fresh, result, ended: true }
    }

    /// Takes what came of composing, and what was written in the meantime.
    pub fn composed(&mut self, composed: Composed, interim: Interim, moment: &Moment) -> Todo {
        interim.resume(self);
        if composed.ended {
            let (required, unused_lookups) = match &composed.result {
                Ok(decision) => (&decision.requirements, &decision.unused_lookups),
                Err(failure) => (&failure.requirements, &failure.unused_lookups),
            };
            self.required.clone_from(required);
            self.reads().forget(unused_lookups);
        }
        if composed.observation.is_some() {
            self.observation = composed.observation;
        }
        match composed.result {
            Ok(decision) => self.apply(decision),
            Err(failure) => self.fail(failure, moment),
        }
    }

    /// What to write while functions are called, as long as nothing is known to be slow: nothing.
    pub fn interim(&self) -> Interim {
        Interim { xr: None, stored_status: None, saved: false, slow: None, stage: Stage::Done }
    }
}

/// A call of a function that has not returned for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowCall {
    /// The step of the pipeline.
    pub step: String,
    /// Its function.
    pub function: String,
    /// How long it has not returned.
    pub after: Duration,
}

/// What is written while functions are called: which function the composite resource waits for. Users see it although
/// the reconcile is not done.
pub struct Interim {
    /// The composite resource, as it was written.
    xr: Option<Composite>,
    /// Its status, as it was written.
    stored_status: Option<Value>,
    /// Whether its configuration was written.
    saved: bool,
    slow: Option<SlowCall>,
    stage: Stage,
}

enum Stage {
    Save,
    Report,
    Done,
}

impl Interim {
    /// A call is slow.
    pub fn waits_for(&mut self, call: SlowCall) {
        self.slow = Some(call);
        self.stage = Stage::Save;
    }

    /// The next plan to execute, if any.
    pub fn next(&mut self, reconcile: &Reconcile<'_>, now: Timestamp) -> Option<Plan> {
        let xr = self.xr.as_ref().unwrap_or(&reconcile.xr);
        if matches!(self.stage, Stage::Save) && (self.saved || !reconcile.unsaved) {
            self.stage = Stage::Report;
        }
        let step = match self.stage {
            Stage::Save => Step::Configure { object: xr.object.clone(), with_references: false },
            Stage::Report => {
                let SlowCall { step, function, after } = self.slow.as_ref()?;
                let mut object = xr.object.clone();
                let waiting = Condition::waiting_for_function(step, function, *after);
                conditions::mark_observed(&mut object, [waiting], now);
                Step::ReplaceStatus { object }
            }
            Stage::Done => return None,
        };
        Some(Plan::new(vec![step]))
    }

    /// Takes what became of the plan. Another client that changed the composite resource at the same time causes a
    /// reconcile, so a refusal need not be reported.
    pub fn executed(&mut self, reconcile: &Reconcile<'_>, mut outcomes: Vec<Outcome>) {
        let written = match outcomes.pop() {
            Some(Outcome::Written(object)) => object,
            _ => return self.stage = Stage::Done,
        };
        let mut xr = Composite::new(written, reconcile.setup.layout);
        if matches!(self.stage, Stage::Save) {
            let known = self.xr.as_ref().unwrap_or(&reconcile.xr);
            if let Some(status) = known.object.get("status") {
                xr.object["status"] = status.clone();
            }
            self.saved = true;
            self.stage = Stage::Report;
        } else {
            self.stored_status = Some(xr.object.get("status").cloned().unwrap_or_default());
            self.stage = Stage::Done;
        }
        self.xr = Some(xr);
    }

    fn resume(self, reconcile: &mut Reconcile<'_>) {
        if let Some(xr) = self.xr {
            reconcile.xr = xr;
        }
        if let Some(status) = self.stored_status {
            reconcile.stored_status = status;
        }
        reconcile.unsaved &= !self.saved;
    }
}
