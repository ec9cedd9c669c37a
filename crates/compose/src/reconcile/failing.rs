//! Reports a reconcile that failed before or while its plan was executed.

use super::{Moment, Phase, Reconcile, Todo, failure};
use crate::condition::Event;
use crate::failure::{Cause, Failure};
use crate::observe::ObserveError;
use crate::plan::{
    ACCOUNT_COMPOSE_VERBS, ACCOUNT_READ_VERBS, COMPOSE_VERBS, Outcome, Plan, READ_VERBS, Refusal,
    RefusalKind, Step,
};
use crate::requeue::Next;
use crate::selecting::Trouble;
use crate::world::ForbiddenRead;
use serde_json::Value;
use transom_object::error_chain::chain;
use transom_object::meta;
use transom_xapi::conditions::Condition;
use transom_xapi::constants::{event, message};

/// A failure that is about to be reported.
pub(super) struct Failing {
    failure: Failure,
    /// Why a write was refused, if one was.
    refusal: Option<RefusalKind>,
}

impl Reconcile<'_> {
    /// Reports a failure of the pipeline.
    pub(super) fn fail(&mut self, failure: Failure, moment: &Moment) -> Todo {
        let review = self.review_of_read(&failure);
        self.prepare_to_fail(Failing { failure, refusal: None }, review, moment)
    }

    /// Reports that a write was refused.
    pub(super) fn fail_refused(
        &mut self,
        cause: Cause,
        kind: RefusalKind,
        composed: Option<Value>,
        moment: &Moment,
    ) -> Todo {
        let review = composed.filter(|_| kind == RefusalKind::Forbidden).and_then(|composed| {
            let namespace = meta::namespace(&composed).to_owned();
            Some(Step::ReviewRights { kind: meta::gvk(&composed)?, namespace, verbs: self.compose_verbs() })
        });
        self.prepare_to_fail(Failing { failure: cause.into(), refusal: Some(kind) }, review, moment)
    }

    fn prepare_to_fail(&mut self, failing: Failing, review: Option<Step>, moment: &Moment) -> Todo {
        if let Some(first) = self.first.take() {
            first.mark(&mut self.xr.object, self.setup.layout, moment.now);
        }
        let save = self.unsaved.then(|| self.save());
        let steps = save.into_iter().chain(review).collect();
        self.execute(Phase::Failing(Box::new(failing)), steps, moment)
    }

    /// The configuration is saved, and missing rights are known.
    pub(super) fn ready_to_fail(
        &mut self,
        failing: Failing,
        plan: &Plan,
        outcomes: Vec<Outcome>,
        moment: &Moment,
    ) -> Todo {
        if let Some(failed) = plan.failed(&outcomes) {
            return self.not_saved(failed, moment);
        }
        let mut missing_rights = None;
        for outcome in outcomes {
            match outcome {
                Outcome::Written(object) => self.refreshed(object),
                Outcome::MissingRights(missing) => missing_rights = missing,
                _ => {}
            }
        }
        self.report_failure(failing, missing_rights, moment)
    }

    fn report_failure(&mut self, failing: Failing, missing: Option<String>, moment: &Moment) -> Todo {
        let failure = &failing.failure;
        let why = chain(failure);
        let error = format!("cannot compose resources: {why}");
        let mut events = vec![Event::warning(event::composite::COMPOSE, &*error)];
        let mut condition = match failing.refusal {
            Some(RefusalKind::Invalid) => {
                format!("cannot compose resources: {}: {why}", message::INVALID_RESOURCES)
            }
            _ => error.clone(),
        };
        if let Some(missing) = missing {
            condition = format!("{condition}\n{missing}");
            events.push(Event::warning(event::composite::RBAC, missing));
        }
        let report = failure.conclude(&self.xr.object, &condition);
        events.extend(report.events.iter().cloned());
        let mut steps = self.events(events);
        report.mark(&mut self.xr.object, self.setup.layout, moment.now);
        // Replaces what an interim status reported about a function that was slow to respond.
        self.mark([moment.responsive()], moment.now);
        self.record_watched();
        // What was read led to the failure: a change of it is a reason to try again, and nothing else is. That does not
        // depend on whether the status can be written.
        steps.extend(self.watch(Step::Follow(self.reads().all())));
        steps.extend(self.replace_status());
        self.result = Some(Err(failing.failure));
        self.end_ignoring_failures(Next::Failed(error), steps, moment)
    }

    /// The configuration could not be saved.
    pub(super) fn not_saved(&mut self, (step, refusal): (&Step, &Refusal), moment: &Moment) -> Todo {
        if refusal.is_conflict() {
            return Todo::Done(Next::Conflict);
        }
        self.report(Trouble::new(event::composite::INIT, step.explain(refusal)), moment)
    }

    /// A step failed whose error ends the reconcile.
    pub(super) fn step_failed(
        &mut self,
        reason: &'static str,
        (step, refusal): (&Step, &Refusal),
        moment: &Moment,
    ) -> Todo {
        match failure(step, refusal) {
            Next::Error(message) => self.report(Trouble::new(reason, message), moment),
            next => Todo::Done(next),
        }
    }

    /// Reports an error before or after composing. A status that cannot be written is written next time.
    pub(super) fn report(&mut self, trouble: Trouble, moment: &Moment) -> Todo {
        let Trouble { reason, message } = trouble;
        let mut steps = self.events(vec![Event::warning(reason, &*message)]);
        self.mark([Condition::reconcile_error(&*message), moment.responsive()], moment.now);
        steps.extend(self.replace_status());
        self.end_ignoring_failures(Next::Error(message), steps, moment)
    }

    /// The review of the rights on what could not be read. What was composed must be written too.
    fn review_of_read(&self, failure: &Failure) -> Option<Step> {
        let ForbiddenRead { kind, namespace, .. } = failure.forbidden_read()?;
        let verbs = match failure.cause {
            Cause::Observe(ObserveError::Get(_)) => self.compose_verbs(),
            _ if self.setup.account.is_some() => ACCOUNT_READ_VERBS,
            _ => READ_VERBS,
        };
        Some(Step::ReviewRights { kind: kind.clone(), namespace: namespace.clone(), verbs })
    }

    fn compose_verbs(&self) -> &'static [&'static str] {
        if self.setup.account.is_some() { ACCOUNT_COMPOSE_VERBS } else { COMPOSE_VERBS }
    }
}
