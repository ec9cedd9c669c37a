//! From a decision to a plan, and from the outcomes of the plan to what comes next.

use super::{Applied, Mode, Moment, Phase, Reconcile, Todo};
use crate::condition::Event;
use crate::decision::{Application, Decision};
use crate::failure::Cause;
use crate::lookup::Lookup;
use crate::plan::{Outcome, Plan, Refusal, RefusalKind, Step};
use crate::references::{PersistReferences, refer};
use crate::report::Report;
use crate::requeue::Next;
use crate::status::{functions_see_the_same, with_own_fields};
use crate::{undeclared, upgrade};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use transom_object::meta;
use transom_xapi::constants::{event, owner};

/// If composing and applying took longer than this, the status is written before anything is decided again.
const SECOND_LOOK_WITHIN: Duration = Duration::from_secs(10);

impl Reconcile<'_> {
    pub(super) fn apply(&mut self, decision: Decision) -> Todo {
        let dependencies = self.written(&decision);
        self.reads().depend_on(&dependencies);
        let mut steps: Vec<Step> = Vec::from_iter(self.watch(Step::Depend(dependencies)));
        if self.unsaved && self.saves_first(&decision) {
            steps.push(self.save());
        }
        for deletion in &decision.delete {
            steps.extend(deletion.labelled.then(|| Step::Disown(deletion.clone())));
            steps.push(Step::Delete(deletion.clone()));
        }
        steps.push(self.refer(&decision));
        steps.extend(self.upgrades());
        steps.extend(decision.apply.iter().cloned().map(Step::Apply));
        self.phase = Phase::Applying(Box::new(decision));
        Todo::Execute(Plan { steps, within_deadline: true })
    }

    /// Everything that is about to be written, and what is observed.
    fn written(&self, decision: &Decision) -> BTreeSet<Lookup> {
        let own = meta::namespace(&self.xr.object);
        let observed = self.observation.iter().flat_map(|o| o.observed.values()).map(|o| &*o.object);
        let objects = decision.apply.iter().map(|application| &application.object).chain(observed);
        let namespace =
            |object: &Value| if own.is_empty() { meta::namespace(object) } else { own }.to_owned();
        objects.filter_map(|object| Lookup::of_object(object, &namespace(object))).collect()
    }

    /// Whether the configuration is written before the references. What is deleted must be referenced until it is gone,
    /// so references change after deletions. Crossplane never writes both at once.
    fn saves_first(&self, decision: &Decision) -> bool {
        !decision.delete.is_empty() || self.setup.mode == Mode::Offline
    }

    /// Persists the references: with the configuration if possible, otherwise on their own.
    fn refer(&self, decision: &Decision) -> Step {
        let layout = self.setup.layout;
        if !self.unsaved || self.saves_first(decision) {
            let persist = PersistReferences::new(&decision.references, &self.xr.object, layout);
            return Step::PersistReferences(persist);
        }
        let mut object = self.xr.object.clone();
        refer(&mut object, &decision.references, layout);
        Step::Configure { object, with_references: true }
    }

    fn upgrades(&self) -> impl Iterator<Item = Step> {
        let observed = self.observation.iter().flat_map(|o| o.observed.values());
        observed.filter_map(|resource| {
            let is_ours = |manager: &str| manager.starts_with(owner::COMPOSED_PREFIX);
            let patch = upgrade(&resource.object, is_ours)?;
            Some(Step::UpgradeFields { object: resource.object.clone(), patch })
        })
    }

    /// The plan was executed, as far as it could be.
    pub(super) fn applied(
        &mut self,
        decision: Decision,
        plan: &Plan,
        outcomes: Vec<Outcome>,
        moment: &Moment,
    ) -> Todo {
        if let Some((step, refusal)) = plan.failed(&outcomes) {
            if refusal.is_conflict() {
                return Todo::Done(Next::Conflict);
            }
            let (message, kind) = (explain(step, refusal), refusal.kind);
            let composed = step.composed().cloned();
            self.take_over(plan, outcomes);
            return self.fail_refused(Cause::Resources(message), kind, composed, moment);
        }
        let (applied, objects) = self.collect(decision, plan, outcomes);
        match self.second_look(&applied, moment) {
            Some(first) => self.look_again(first, applied, objects, moment),
            None => self.publish(applied, moment),
        }
    }

    /// Takes over the composite resource from the outcomes.
    fn take_over(&mut self, plan: &Plan, outcomes: Vec<Outcome>) {
        for (step, outcome) in plan.steps.iter().zip(outcomes) {
            if let (Step::Configure { .. } | Step::PersistReferences(_), Outcome::Written(object)) =
                (step, outcome)
            {
                self.refreshed(object);
            }
        }
    }

    /// What came of the plan, and the composed resources that changed, as they are now.
    fn collect(
        &mut self,
        decision: Decision,
        plan: &Plan,
        outcomes: Vec<Outcome>,
    ) -> (Applied, Vec<(String, Value)>) {
        let blocked = plan.in_use(&outcomes).next().is_some();
        let references_changed = decision.references.changed && !blocked;
        let mut applied =
            Applied { decision, unsynced: Default::default(), events: Vec::new(), changed: false, blocked };
        let mut objects = Vec::new();
        for (step, outcome) in plan.steps.iter().zip(outcomes) {
            match (step, outcome) {
                (Step::Apply(application), outcome) => applied.take(application, step, outcome, &mut objects),
                (Step::Delete(_), Outcome::Refused(refusal)) => {
                    applied.warn(step.explain(&refusal));
                }
                (Step::Delete(_), _) => applied.changed = true,
                (Step::Configure { with_references, .. }, Outcome::Written(object)) => {
                    applied.changed |= with_references & references_changed;
                    self.refreshed(object);
                }
                (Step::PersistReferences(_), Outcome::Written(object)) => {
                    applied.changed |= references_changed;
                    self.refreshed(object);
                }
                _ => {}
            }
        }
        (applied, objects)
    }

    /// Whether to compose once more before the status is written: most resources are ready as soon as they exist, so the
    /// first status would be out of date at once. The applied objects are then used as observed ones. Returns the report
    /// of the first time. Not done if functions would see the status, because they may store data in it.
    fn second_look(&self, applied: &Applied, moment: &Moment) -> Option<Report> {
        let decision = &applied.decision;
        let has_details =
            |a: &Arc<Application>| a.object.pointer("/spec/writeConnectionSecretToRef").is_some();
        let simple = decision.delete.is_empty()
            && decision.connection_details.is_empty()
            && applied.unsynced.is_empty()
            && !decision.apply.iter().any(has_details);
        let spare = self.observation.as_ref().is_none_or(|observation| !observation.spare.is_empty());
        let late = moment.now.duration_since(self.started).unsigned_abs() > SECOND_LOOK_WITHIN;
        if self.first.is_some() || late || spare || !applied.changed || !simple || moment.slowed_by.is_some()
        {
            return None;
        }
        let report = decision.conclude(&applied.unsynced);
        let mut next = self.xr.object.clone();
        let wanted = decision.status.get("status").cloned().unwrap_or_default();
        next["status"] = with_own_fields(&wanted, next.get("status").unwrap_or(&Value::Null));
        report.mark(&mut next, self.setup.layout, moment.now);
        functions_see_the_same(&self.stored_status, &next["status"]).then_some(report)
    }

    fn look_again(
        &mut self,
        first: Report,
        applied: Applied,
        objects: Vec<(String, Value)>,
        moment: &Moment,
    ) -> Todo {
        self.first = Some(first);
        if let Some(observation) = &mut self.observation {
            for (name, object) in objects {
                let object = Arc::new(object);
                self.relied_on.push(object.clone());
                observation.observed.entry(name).or_default().object = object;
            }
        }
        let events = self.events(applied.decision.events);
        self.execute(Phase::Looking, events, moment)
    }
}

impl Applied {
    fn warn(&mut self, message: String) {
        self.events.push(Event::warning(event::composite::COMPOSE, message));
    }

    fn take(
        &mut self,
        application: &Application,
        step: &Step,
        outcome: Outcome,
        objects: &mut Vec<(String, Value)>,
    ) {
        match outcome {
            Outcome::Applied { object, undeclared } => {
                if !undeclared.is_empty() {
                    self.events.push(undeclared::warning(application, &undeclared));
                }
                if let Some(object) = object {
                    self.changed = true;
                    objects.push((application.name.clone(), object));
                }
            }
            Outcome::Refused(refusal) => {
                self.warn(step.explain(&refusal));
                self.unsynced.insert(application.name.clone(), refusal.message);
            }
            _ => {}
        }
    }
}

/// A refusal in terms of the whole plan.
fn explain(step: &Step, refusal: &Refusal) -> String {
    let message = step.explain(refusal);
    match step {
        _ if refusal.kind == RefusalKind::DeadlineExceeded => message,
        Step::Disown(_) | Step::Delete(_) => {
            format!("cannot garbage collect composed resources that are no longer desired: {message}")
        }
        _ => message,
    }
}
