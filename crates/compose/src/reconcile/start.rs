//! The beginning of a reconcile: whether there is anything to compose, and by which Composition.

use super::{Mode, Moment, Phase, Reconcile, Setup, Todo, failure};
use crate::condition::Event;
use crate::inputs::Requirements;
use crate::json_equality::same;
use crate::lookup::Lookup;
use crate::plan::{Outcome, Plan, RefusalKind, Step};
use crate::reads::Reads;
use crate::requeue::Next;
use crate::selecting::{self, Trouble};
use crate::world::World;
use serde_json::Value;
use std::collections::BTreeSet;
use transom_object::error_chain::chain;
use transom_object::{GroupVersionKind, meta};
use transom_xapi::AccountReference;
use transom_xapi::composite::Composite;
use transom_xapi::conditions::Condition;
use transom_xapi::constants::{event, finalizer};
use transom_xapi::metadata as notes;

impl<'a> Reconcile<'a> {
    /// Starts to reconcile a composite resource, whose steps required this in the last run.
    pub fn start(setup: &'a Setup<'a>, xr: Value, required: Requirements, moment: &Moment) -> (Self, Todo) {
        let mut reconcile = Self {
            setup,
            stored_status: xr.get("status").cloned().unwrap_or_default(),
            xr: Composite::new(xr, setup.layout),
            unsaved: false,
            started: moment.now,
            chosen: None,
            required,
            revisions: Default::default(),
            reads: Default::default(),
            observation: None,
            relied_on: Vec::new(),
            first: None,
            phase: Phase::Idle,
            result: None,
        };
        let todo = reconcile.first_steps(moment);
        (reconcile, todo)
    }

    fn first_steps(&mut self, moment: &Moment) -> Todo {
        self.mark([moment.responsive()], moment.now);
        if self.setup.mode == Mode::Offline {
            return Todo::Prepare;
        }
        if notes::is_paused(&self.xr.object) {
            return self.pause(moment);
        }
        let mut events = Vec::new();
        if let Some(token) = notes::reconcile_request(&self.xr.object).map(str::to_owned)
            && self.xr.last_handled_reconcile_at() != token
        {
            let reason = event::composite::RECONCILE_REQUEST_HANDLED;
            events.push(Event::normal(reason, "Handling reconcile request"));
            self.xr.set_last_handled_reconcile_at(&token);
        }
        let events = self.events(events);
        if meta::is_deleting(&self.xr.object) {
            return self.release(events, moment);
        }
        self.execute(Phase::Requested, events, moment)
    }

    fn pause(&mut self, moment: &Moment) -> Todo {
        let message = "Reconciliation is paused via the pause annotation";
        let events = self.events(vec![Event::normal(event::composite::PAUSED, message)]);
        self.mark([Condition::reconcile_paused()], moment.now);
        let steps = events.into_iter().chain(self.replace_status()).collect();
        self.end(Next::Wait, steps, moment)
    }

    /// Removes our finalizer. Composed resources go with their owner: garbage collection deletes them.
    fn release(&mut self, mut steps: Vec<Step>, moment: &Moment) -> Todo {
        steps.push(Step::Forget { uid: meta::uid(&self.xr.object).to_owned() });
        if notes::has_finalizer(&self.xr.object, finalizer::COMPOSITE) {
            let mut object = self.xr.object.clone();
            notes::remove_finalizer(&mut object, finalizer::COMPOSITE);
            steps.push(Step::RemoveFinalizer { object });
        }
        self.execute(Phase::Releasing, steps, moment)
    }

    pub(super) fn released(&mut self, plan: &Plan, outcomes: &[Outcome], moment: &Moment) -> Todo {
        if let Some(Outcome::Written(object)) = outcomes.last() {
            self.xr.object.clone_from(object);
        }
        let failed = plan.failed(outcomes);
        let (synced, next, events) = match failed {
            Some((_, refusal)) if refusal.kind == RefusalKind::NotFound => return Todo::Done(Next::Gone),
            Some((_, refusal)) if refusal.is_conflict() => return Todo::Done(Next::Conflict),
            Some((step, refusal)) => {
                let message = step.explain(refusal);
                let events = vec![Event::warning(event::composite::DELETE, &*message)];
                (Condition::reconcile_error(message), failure(step, refusal), events)
            }
            None => (Condition::reconcile_success(), Next::Wait, Vec::new()),
        };
        let mut steps = self.events(events);
        if !meta::finalizers(&self.xr.object).is_empty() {
            // Another finalizer is left: report what the deletion waits for.
            self.mark([Condition::deleting(), synced], moment.now);
            steps.extend(self.replace_status());
        }
        self.end(next, steps, moment)
    }

    /// Replaces the status, if it is not what it was.
    pub(super) fn replace_status(&self) -> Option<Step> {
        let status = self.xr.object.get("status")?;
        let changed = !same(status, &self.stored_status);
        changed.then(|| Step::ReplaceStatus { object: self.xr.object.clone() })
    }

    /// Checks that the composite resource may be composed, and chooses by which Composition and revision.
    pub async fn prepare(&mut self, world: &dyn World, moment: &Moment) -> Todo {
        if let Err(why) = self.setup.nesting.check(world, &self.xr.object).await {
            let message = format!("cannot compose resources: {why}");
            return self.report(Trouble::new(event::composite::COMPOSE, message), moment);
        }
        if let Err(why) = self.check_account(world).await {
            return self.report(Trouble::new(event::composite::COMPOSE, why), moment);
        }
        let selected = selecting::select(&mut self.xr, &self.setup.selection, moment.random);
        self.unsaved = selected.changed;
        let mut steps = self.events(selected.events);
        let phase = match selected.chosen {
            Ok(Some(chosen)) => {
                self.reads = Reads::of(&self.xr).into();
                self.depend_on_account();
                self.chosen = Some(chosen);
                Phase::Selecting
            }
            undecided => {
                steps.extend(self.unsaved.then(|| self.save()));
                Phase::Saving(undecided.err())
            }
        };
        self.execute(phase, steps, moment)
    }

    /// Fails if the service account to compose under does not exist: API servers let a client act as any name.
    async fn check_account(&self, world: &dyn World) -> Result<(), String> {
        let Some(account) = &self.setup.account else { return Ok(()) };
        if self.setup.watches() {
            world.depends_on(&account_lookup(account));
        }
        match world.account_exists(account).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!(
                "cannot compose resources: service account {account}, which spec.serviceAccountRef of the definition of {} \
                 names, does not exist: create it",
                meta::kind(&self.xr.object)
            )),
            Err(e) => {
                Err(format!("cannot compose resources: cannot get service account {account}: {}", chain(&e)))
            }
        }
    }

    /// A change of the account is a reason to compose again.
    fn depend_on_account(&mut self) {
        if let Some(account) = &self.setup.account {
            self.reads().depend_on(&BTreeSet::from([account_lookup(account)]));
        }
    }

    /// The configuration was saved, or need not be; there is nothing to compose.
    pub(super) fn saved(
        &mut self,
        plan: &Plan,
        mut outcomes: Vec<Outcome>,
        trouble: Option<Trouble>,
        moment: &Moment,
    ) -> Todo {
        if let Some(failed) = plan.failed(&outcomes) {
            return self.not_saved(failed, moment);
        }
        if let Some(Outcome::Written(object)) = outcomes.pop() {
            self.refreshed(object);
        }
        match trouble {
            Some(trouble) => self.report(trouble, moment),
            // The revision causes a reconcile once it exists. Until then there is nothing to report.
            None => Todo::Done(Next::Backoff),
        }
    }
}

fn account_lookup(account: &AccountReference) -> Lookup {
    let AccountReference { namespace, name } = account.clone();
    Lookup::Named { kind: GroupVersionKind::new("", "v1", "ServiceAccount"), namespace, name }
}
