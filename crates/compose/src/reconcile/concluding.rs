//! The end of a reconcile: connection details, conditions, events, the status, and when to run again.

use super::{Applied, Conclusion, Mode, Moment, Phase, Reconcile, Todo};
use crate::condition::Event;
use crate::plan::{Outcome, Plan, Step};
use crate::report::Report;
use crate::requeue::{Next, Requeue};
use crate::selecting::Trouble;
use crate::status::{functions_see_the_same, intent, must_fit, with_own_fields, without_leftovers};
use serde_json::{Value, json};
use transom_object::{meta, time};
use transom_xapi::composite::Layout;
use transom_xapi::conditions::{self, Condition};
use transom_xapi::connection::{self, Publication};
use transom_xapi::constants::event;
use transom_xapi::metadata as notes;

impl Reconcile<'_> {
    /// Everything was applied: publishes connection details, if there are any.
    pub(super) fn publish(&mut self, applied: Applied, moment: &Moment) -> Todo {
        let Some(secret) = self.connection_secret(&applied) else {
            return self.conclude(applied, Ok(false), moment);
        };
        let (namespace, name) = (meta::namespace(&secret).to_owned(), meta::name(&secret).to_owned());
        let steps = vec![Step::ReadSecret { namespace, name }];
        self.execute(Phase::ReadingSecret(Box::new(applied)), steps, moment)
    }

    /// The Secret that a legacy composite resource publishes its connection details in.
    fn connection_secret(&self, applied: &Applied) -> Option<Value> {
        if self.setup.layout == Layout::Modern || self.setup.mode == Mode::Offline {
            return None;
        }
        let details = &applied.decision.connection_details;
        connection::published(&self.xr, details, self.setup.connection_secret_keys)
    }

    pub(super) fn secret_read(
        &mut self,
        applied: Applied,
        plan: &Plan,
        mut outcomes: Vec<Outcome>,
        moment: &Moment,
    ) -> Todo {
        if let Some((_, refusal)) = plan.failed(&outcomes) {
            let trouble = Trouble::new(event::composite::PUBLISH, &*refusal.message);
            return match refusal.is_conflict() {
                true => self.conclude_after_conflict(&applied, moment),
                false => self.conclude(applied, Err(trouble), moment),
            };
        }
        let live = match outcomes.pop() {
            Some(Outcome::Read(live)) => live,
            _ => None,
        };
        let Some(secret) = self.connection_secret(&applied) else {
            return self.conclude(applied, Ok(false), moment);
        };
        let step = match connection::publication(&secret, live.as_ref(), meta::uid(&self.xr.object)) {
            Ok(Publication::Create) => Step::CreateSecret { object: secret },
            Ok(Publication::Patch(patch)) => Step::PatchSecret { object: secret, patch },
            // It is news if the run that wrote it ended before it could report so.
            Ok(Publication::Unchanged) => {
                let news = self.xr.last_published_time().is_none();
                return self.conclude(applied, Ok(news), moment);
            }
            Err(e) => {
                let message = format!("cannot publish connection details: {e}");
                return self.conclude(applied, Err(Trouble::new(event::composite::PUBLISH, message)), moment);
            }
        };
        self.execute(Phase::WritingSecret(Box::new(applied)), vec![step], moment)
    }

    pub(super) fn secret_written(
        &mut self,
        applied: Applied,
        plan: &Plan,
        outcomes: &[Outcome],
        moment: &Moment,
    ) -> Todo {
        match plan.failed(outcomes) {
            None => self.conclude(applied, Ok(true), moment),
            Some((_, refusal)) if refusal.is_conflict() => self.conclude_after_conflict(&applied, moment),
            Some((step, refusal)) => {
                let trouble = Trouble::new(event::composite::PUBLISH, step.explain(refusal));
                self.conclude(applied, Err(trouble), moment)
            }
        }
    }

    /// Writes the status without a report: another client wrote the Secret first, and the reconcile is repeated.
    fn conclude_after_conflict(&mut self, applied: &Applied, moment: &Moment) -> Todo {
        self.set_final_status(applied, moment);
        self.mark([moment.responsive()], moment.now);
        let steps = self.write_status();
        self.end(Next::Conflict, steps, moment)
    }

    /// Decides on the final status.
    fn conclude(&mut self, applied: Applied, published: Result<bool, Trouble>, moment: &Moment) -> Todo {
        let mut report = self.final_report(&applied);
        self.set_final_status(&applied, moment);
        let mut events = Vec::new();
        match &published {
            Ok(true) => {
                self.xr.set_last_published_time(&time::format(moment.now));
                let message = "Successfully published connection details";
                events.push(Event::normal(event::composite::PUBLISH, message));
            }
            Ok(false) => {}
            Err(trouble) => {
                events.push(Event::warning(event::composite::PUBLISH, &*trouble.message));
                self.mark([Condition::reconcile_error(&*trouble.message)], moment.now);
            }
        }
        // The status was replaced, and the generation may have changed.
        self.mark([moment.responsive()], moment.now);
        if published.is_ok() {
            report.mark(&mut self.xr.object, self.setup.layout, moment.now);
            self.add_revisions(&applied, &mut report);
            events.extend(applied.events.iter().chain(&report.events).cloned());
            if self.setup.mode == Mode::ControlPlane {
                events.extend(applied.decision.remarks.iter().cloned());
            }
        }
        let mut steps = self.events(events);
        if let Err(why) = must_fit(self.xr.object.get("status").unwrap_or(&Value::Null)) {
            return self.too_large(steps, &why, moment);
        }
        let is_published = published.is_ok();
        steps.extend(self.write_status());
        if is_published {
            steps.extend(self.watch(Step::Follow(self.reads().all())));
        }
        let conclusion = Conclusion { applied, report, published };
        self.execute(Phase::Concluding(Box::new(conclusion)), steps, moment)
    }

    fn final_report(&self, applied: &Applied) -> Report {
        let report = applied.decision.conclude(&applied.unsynced);
        match self.setup.mode {
            Mode::ControlPlane => applied.decision.explain(report, &applied.unsynced),
            Mode::Offline => report,
        }
    }

    /// The status that functions want, the control plane's own fields, and what is watched.
    fn set_final_status(&mut self, applied: &Applied, moment: &Moment) {
        let wanted = applied.decision.status.get("status").cloned().unwrap_or_default();
        if self.setup.mode == Mode::Offline {
            self.xr.object["status"] = Some(wanted).filter(Value::is_object).unwrap_or_else(|| json!({}));
            return;
        }
        let old = self.xr.object.get("status").cloned().unwrap_or_default();
        // What was reported while functions were called is newer than what the decision began with.
        let known = conditions::of(&self.xr.object);
        self.xr.object["status"] = with_own_fields(&wanted, &old);
        conditions::mark(&mut self.xr.object, known, moment.now);
        self.record_watched();
    }

    /// Applies the status. From here on the composite resource of this run is the stored one.
    fn write_status(&mut self) -> Vec<Step> {
        let wanted = self.xr.object.get("status").cloned().unwrap_or_default();
        self.reset_status();
        let live = &self.xr.object;
        let intent = intent(live, wanted.clone());
        let cleaned = without_leftovers(live, &wanted).map(|object| Step::ReplaceStatus { object });
        let apply = Step::ApplyStatus { live: live.clone(), intent };
        cleaned.into_iter().chain([apply]).collect()
    }

    fn reset_status(&mut self) {
        let stored = &self.stored_status;
        self.xr.object["status"] = if stored.is_null() { json!({}) } else { stored.clone() };
    }

    fn too_large(&mut self, mut steps: Vec<Step>, why: &str, moment: &Moment) -> Todo {
        self.reset_status();
        let message = format!("cannot apply composite resource status: {why}");
        steps.extend(self.events(vec![Event::warning(event::composite::COMPOSE, &*message)]));
        self.mark([Condition::reconcile_error(&*message)], moment.now);
        steps.extend(self.replace_status());
        self.end_ignoring_failures(Next::Error(message), steps, moment)
    }

    /// The status was written.
    pub(super) fn concluded(
        &mut self,
        conclusion: Conclusion,
        plan: &Plan,
        outcomes: Vec<Outcome>,
        moment: &Moment,
    ) -> Todo {
        let failed = plan.failed(&outcomes).map(|(step, refusal)| (step.clone(), refusal.clone()));
        for outcome in outcomes {
            if let Outcome::Written(object) = outcome {
                self.xr.object = object;
            }
        }
        if let Some((step, refusal)) = failed {
            return self.step_failed(event::composite::COMPOSE, (&step, &refusal), moment);
        }
        let Conclusion { applied, report, published } = conclusion;
        let published = match published {
            Ok(published) => published,
            Err(trouble) => return self.report(trouble, moment),
        };
        let after = self.xr.object.get("status").unwrap_or(&Value::Null);
        let status_changed = !functions_see_the_same(&self.stored_status, after);
        let again = applied.changed || status_changed || published;
        let requeue = Requeue {
            blocked: applied.blocked,
            unfinished: !report.unsynced.is_empty() || !report.unready.is_empty(),
            ttl: applied.decision.ttl,
            asked: notes::poll_interval(&self.xr.object),
        };
        self.result = Some(Ok(applied.decision));
        // Functions are given the published details of the composite resource.
        Todo::Done(if again { Next::Again } else { requeue.next(&self.setup.polling, moment.random) })
    }
}
