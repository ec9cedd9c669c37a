//! One reconcile of a composite resource, from its key to its status.

use super::execute::{Executed, Refused};
use super::pause::Rest;
use super::prepare::Stored;
use super::punctual::{Punctual, SILENCE};
use super::report::Report;
use super::rights::Missing;
use super::status::{functions_see_the_same, record_watched};
use super::world::Reading;
use super::{Composites, prepare};
use crate::composition::verdict;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use transom_compose::{Application, Cause, Failure, Inputs, Observation, Observed, Outcome, Plan};
use transom_engine::{Dependency, Error, ErrorContext, Key, Next, ReportedError, Result, RunLog};
use transom_object::meta;
use transom_xapi::composite::Composite;
use transom_xapi::conditions::{self, Condition};
use transom_xapi::constants::{condition, event, finalizer, message};
use transom_xapi::metadata as notes;
use transom_xapi::{CompositionRevision, CompositionSpec, revision};

/// How long composing may take, functions included.
const TIMEOUT: Duration = Duration::from_secs(120);
/// If composing and applying took longer than this, the status is written before anything is decided again.
const PROMPT: Duration = Duration::from_secs(10);

impl Composites {
    pub(super) async fn run(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &self.gvk, &key.namespace, &key.name).await;
        let Some(object) = read.context("cannot get composite resource")? else {
            self.forget(key);
            return Ok(Next::Gone);
        };
        let report = Report::before(self, &object);
        let mut xr = Composite::new(object, self.schema);
        let next = self.advance(key, log, &mut xr).await;
        report.after(&xr.object);
        next
    }

    async fn advance(&self, key: &Key, log: &RunLog, xr: &mut Composite) -> Result<Next> {
        let status = xr.object.get("status").cloned().unwrap_or_default();
        let mut stored = Stored { status, unsaved: false };
        self.mark(xr, [self.responsive(key)]);
        if notes::is_paused(&xr.object) {
            let words = "Reconciliation is paused via the pause annotation";
            self.normal(xr, event::composite::PAUSED, words);
            self.mark(xr, [Condition::reconcile_paused()]);
            self.write_status(log, xr, &stored.status).await?;
            return Ok(Next::Wait);
        }
        if let Some(token) = notes::reconcile_request(&xr.object).map(str::to_owned)
            && xr.last_handled_reconcile_at() != token
        {
            self.normal(xr, event::composite::RECONCILE_REQUEST_HANDLED, "Handling reconcile request");
            xr.set_last_handled_reconcile_at(&token);
        }
        if meta::is_deleting(&xr.object) {
            return self.finalize(key, log, xr, &stored.status).await;
        }
        match self.compose_and_apply(key, log, xr, &mut stored).await {
            Ok(next) => Ok(next),
            Err(trouble) if trouble.error.is_conflict() => Err(trouble.error),
            Err(trouble) => {
                self.warning(xr, trouble.reason, trouble.error.chain().to_string());
                self.mark(xr, [Condition::reconcile_error(trouble.error.chain().to_string())]);
                // The error is what matters; a status that cannot be written is written next time.
                if let Err(e) = self.write_status(log, xr, &stored.status).await {
                    tracing::warn!(controller = self.name, %key, error = %e.chain(), "cannot update status");
                }
                Err(trouble.error)
            }
        }
    }

    /// Whether events are acted upon at once. Upstream breaks a circuit and drops them; here they are merged.
    fn responsive(&self, key: &Key) -> Condition {
        if !self.queue.is_slowed(key) {
            return Condition::watch_circuit_closed();
        }
        let noisiest = self.queue.noisiest(key).and_then(|source| self.following.find(key, source));
        let (kind, object) = noisiest.unwrap_or_else(|| (self.gvk.kind.to_string(), key.clone()));
        let mut from = format!("{kind}/{}", object.name);
        if !object.namespace.is_empty() {
            let _ = write!(from, " ({})", object.namespace);
        }
        Condition::watch_circuit_open(&from)
    }

    /// Composed resources go with their owner: garbage collection deletes them.
    async fn finalize(&self, key: &Key, log: &RunLog, xr: &mut Composite, before: &Value) -> Result<Next> {
        self.forget(key);
        self.plane.nesting.forget(&xr.object);
        let released = match self.release(log, xr).await.context("cannot remove composite resource finalizer")
        {
            Err(e) if e.is_not_found() => return Ok(Next::Gone),
            Err(e) if e.is_conflict() => return Err(e),
            released => released,
        };
        let synced = match &released {
            Ok(()) => Condition::reconcile_success(),
            Err(e) => {
                self.warning(xr, event::composite::DELETE, e.chain().to_string());
                Condition::reconcile_error(e.chain().to_string())
            }
        };
        let mut written = Ok(());
        if !meta::finalizers(&xr.object).is_empty() {
            // Something still holds it: say what it waits for.
            self.mark(xr, [Condition::deleting(), synced]);
            written = self.write_status(log, xr, before).await;
        }
        released.and(written).map(|()| Next::Wait)
    }

    /// Takes its finalizer away.
    async fn release(&self, log: &RunLog, xr: &mut Composite) -> Result<()> {
        if !notes::has_finalizer(&xr.object, finalizer::COMPOSITE) {
            return Ok(());
        }
        let mut free = xr.object.clone();
        notes::remove_finalizer(&mut free, finalizer::COMPOSITE);
        self.plane.update(log, &mut free).await?;
        xr.object = free;
        Ok(())
    }

    async fn compose_and_apply(
        &self,
        key: &Key,
        log: &RunLog,
        xr: &mut Composite,
        stored: &mut Stored,
    ) -> Result<Next, ReportedError> {
        let nesting = self.plane.nesting.check(&self.plane.cluster, &xr.object).await;
        nesting.context("cannot compose resources").with_event_reason(event::composite::COMPOSE)?;
        let revision = match self.choose_revision(xr, stored) {
            Ok(Some(revision)) => revision,
            undecided => {
                self.save(log, xr, stored).await.with_event_reason(event::composite::INIT)?;
                // The revision wakes it once it is there; that alone is nothing to report.
                return undecided.map(|_| Next::Backoff);
            }
        };
        let composed = xr.resource_refs().into_iter().map(|mut reference| {
            if !meta::namespace(&xr.object).is_empty() {
                meta::namespace(&xr.object).clone_into(&mut reference.namespace);
            }
            reference
        });
        let reading = Reading::new(&self.plane.cluster, log, key, self).composing(composed.collect());
        let working = self.compose(key, log, xr, stored, &revision, &reading);
        let worked = tokio::time::timeout(TIMEOUT, working).await.unwrap_or_else(|_| {
            let late = Cause::Resources("context deadline exceeded".to_owned());
            Err(Stop::Failed(Box::new(late.into())))
        });
        let stop = match worked {
            Ok((plan, executed)) => {
                return self.conclude(key, log, xr, &stored.status, &plan, executed, &reading).await;
            }
            Err(Stop::Refused(refused)) if refused.error.is_conflict() => {
                return Err(refused.error).with_event_reason(event::composite::COMPOSE);
            }
            Err(stop) => stop,
        };
        self.save(log, xr, stored).await.with_event_reason(event::composite::INIT)?;
        match stop {
            Stop::Failed(failure) => self.fail(key, log, xr, &stored.status, &failure, None, &reading).await,
            Stop::Refused(refused) => {
                let failure = Cause::Resources(refused.error.chain().to_string()).into();
                self.fail(key, log, xr, &stored.status, &failure, Some(*refused), &reading).await
            }
        }
    }

    /// The revision to compose by, if it is valid; none while the first one of the Composition is still being made.
    fn choose_revision(
        &self,
        xr: &mut Composite,
        stored: &mut Stored,
    ) -> Result<Option<Arc<CompositionRevision>>, ReportedError> {
        let Some(revision) = prepare::prepare(self, xr, stored)? else { return Ok(None) };
        revision::must_be_valid(&revision, || verdict(&self.plane.catalog, &revision))
            .map_err(Error::unfit)
            .with_event_reason(event::composite::COMPOSE)?;
        Ok(Some(revision))
    }

    /// Observes, decides and does. What was just applied is looked at once more before anyone is told: most composed
    /// resources are as they should be as soon as they exist.
    async fn compose(
        &self,
        key: &Key,
        log: &RunLog,
        xr: &mut Composite,
        stored: &mut Stored,
        revision: &CompositionRevision,
        reading: &Reading<'_>,
    ) -> Result<(Plan, Executed), Stop> {
        let began = Instant::now();
        let composition = &revision.spec.composition;
        let mut observation = transom_compose::observe(&xr.object, self.schema, composition, reading)
            .await
            .map_err(|e| Stop::because(e.to_string()))?;
        let (plan, mut executed) =
            self.look(key, log, xr, stored, composition, &observation, reading).await?;
        if began.elapsed() > PROMPT || !observation.spare.is_empty() {
            return Ok((plan, executed));
        }
        let Some(first) = self.another_look(key, xr, stored, &plan, &executed, reading) else {
            return Ok((plan, executed));
        };
        self.tell(xr, &plan.events).await;
        drop(plan);
        for (name, object) in std::mem::take(&mut executed.applied) {
            log.read(&object);
            observation.observed.entry(name).or_default().object = object.into();
        }
        let second = self.look(key, log, xr, stored, composition, &observation, reading).await;
        if second.is_err() {
            first.mark(&mut xr.object, self.schema, self.plane.clock.now());
        }
        second
    }

    /// Decides and does.
    #[expect(clippy::too_many_arguments, reason = "what is decided from, each used once")]
    async fn look(
        &self,
        key: &Key,
        log: &RunLog,
        xr: &mut Composite,
        stored: &mut Stored,
        composition: &CompositionSpec,
        Observation { observed, spare }: &Observation,
        reading: &Reading<'_>,
    ) -> Result<(Plan, Executed), Stop> {
        let own = transom_compose::connection_details(&xr.object, reading).await;
        let required_before = self.required().get(key).cloned().unwrap_or_default();
        let inputs = Inputs {
            xr: &xr.object,
            shown: None,
            schema: self.schema,
            connection_details: own.map_err(|e| {
                Stop::because(format!("cannot fetch composite resource connection details: {e}"))
            })?,
            composition,
            observed,
            spare,
            required_before: &required_before,
            context: Map::new(),
            now: self.plane.clock.now(),
            options: transom_compose::Options {
                extra_resources: self.plane.options.extra_resources,
                scopes_known: true,
                ..transom_compose::Options::default()
            },
        };
        let runner = Punctual::new(&*self.plane.runner, TIMEOUT);
        let composing = transom_compose::compose(inputs, &runner, reading);
        let (plan, shown) = self.watch_over(log, xr, stored, &runner, composing).await;
        if let Some(shown) = shown {
            xr.object = shown;
            self.mark(xr, [self.responsive(key)]);
        }
        let (required, in_vain) = match &plan {
            Ok(plan) => (&plan.requirements, &plan.in_vain),
            Err(failure) => (&failure.requirements, &failure.in_vain),
        };
        self.remember(key, required);
        reading.forget(in_vain);
        let plan = plan.map_err(|failure| Stop::Failed(Box::new(failure)))?;
        self.expect(reading, xr, &plan, observed);
        let executed = self.execute(log, xr, stored, &plan, observed).await;
        let executed = executed.map_err(|refused| Stop::Refused(Box::new(refused)))?;
        Ok((plan, executed))
    }

    /// What came of a first look, if it is better to decide again at once, with what was applied in place of what was
    /// observed, than to write a status that holds for a moment. Not if functions would see that status: they may have
    /// put in it what they need.
    fn another_look(
        &self,
        key: &Key,
        xr: &Composite,
        stored: &Stored,
        plan: &Plan,
        executed: &Executed,
        reading: &Reading<'_>,
    ) -> Option<Outcome> {
        let has_details = |a: &Application| a.object.pointer("/spec/writeConnectionSecretToRef").is_some();
        let simple = plan.delete.is_empty()
            && plan.connection_details.is_empty()
            && executed.unsynced.is_empty()
            && !plan.apply.iter().any(has_details);
        // Who is woken without end has one look at a time.
        if !executed.changed || !simple || self.queue.is_slowed(key) {
            return None;
        }
        let outcome = plan.conclude(&executed.unsynced);
        let mut next = xr.clone();
        self.keep_own_status(&mut next, &plan.status, reading);
        outcome.mark(&mut next.object, self.schema, self.plane.clock.now());
        functions_see_the_same(&stored.status, &next.object["status"]).then_some(outcome)
    }

    /// Composes, and says in the meantime which function keeps the composite resource waiting. Returns it as it is
    /// since that was said.
    async fn watch_over<T>(
        &self,
        log: &RunLog,
        xr: &Composite,
        stored: &mut Stored,
        runner: &Punctual<'_>,
        composing: impl Future<Output = T>,
    ) -> (T, Option<Value>) {
        let (mut unanswered, mut shown) = (runner.unanswered(), None);
        let mut composing = pin!(composing);
        loop {
            let waiting = tokio::select! {
                biased;
                composed = &mut composing => return (composed, shown),
                Ok(()) = unanswered.changed() => unanswered.borrow_and_update().clone(),
            };
            let Some(waiting) = waiting else { continue };
            let mut said = Composite::new(shown.clone().unwrap_or_else(|| xr.object.clone()), self.schema);
            if stored.unsaved {
                if self.save(log, &mut said, stored).await.is_err() {
                    continue;
                }
                shown = Some(said.object.clone());
            }
            self.mark(
                &mut said,
                [Condition::waiting_for_function(&waiting.step, &waiting.function, SILENCE)],
            );
            // Whoever changed it at the same time has it composed anew, so nobody needs to be told.
            if self.plane.update_status(log, &mut said.object).await.is_ok() {
                stored.status = said.object.get("status").cloned().unwrap_or_default();
                shown = Some(said.object);
            }
        }
    }

    /// Everything that is about to be written is depended upon before it is.
    fn expect(&self, reading: &Reading<'_>, xr: &Composite, plan: &Plan, observed: &Observed) {
        let own_namespace = meta::namespace(&xr.object);
        let wanted = plan.apply.iter().map(|a| &a.object).chain(observed.values().map(|o| &*o.object));
        for object in wanted {
            let namespace = if own_namespace.is_empty() { meta::namespace(object) } else { own_namespace };
            if let Some(gvk) = meta::gvk(object) {
                let (namespace, name) = (namespace.to_owned(), meta::name(object).to_owned());
                reading.note(Dependency::Named { gvk, namespace, name });
            }
        }
    }

    /// Nothing was changed, or not all: says so, and what is now unknown. What was read is what led to the failure, so a
    /// change to it is a reason to try again, and nothing else is.
    #[expect(clippy::too_many_arguments, reason = "what a reconcile knows in the end, each used once")]
    async fn fail(
        &self,
        key: &Key,
        log: &RunLog,
        xr: &mut Composite,
        before: &Value,
        failure: &Failure,
        refused: Option<Refused>,
        reading: &Reading<'_>,
    ) -> Result<Next, ReportedError> {
        let words = format!("cannot compose resources: {failure}");
        self.warning(xr, event::composite::COMPOSE, words.clone());
        let invalid = refused.as_ref().is_some_and(|refused| refused.error.is_invalid());
        let mut shown = if invalid {
            format!("cannot compose resources: {}: {failure}", message::INVALID_RESOURCES)
        } else {
            words.clone()
        };
        if let Some(missing) = self.explain(refused).await {
            self.warning(xr, event::composite::RBAC, missing.to_string());
            shown = format!("{shown}\n{missing}");
        }
        let outcome = failure.conclude(&xr.object, &shown);
        self.tell(xr, &outcome.events).await;
        outcome.mark(&mut xr.object, self.schema, self.plane.clock.now());
        record_watched(xr, reading);
        if let Err(e) = self.write_status(log, xr, before).await
            && !e.is_conflict()
        {
            tracing::warn!(controller = self.name, %key, error = %e.chain(), "cannot update status");
        }
        if self.plane.options.realtime {
            self.following.replace(key, &reading.dependencies());
        }
        tracing::warn!(controller = self.name, %key, error = %words, "cannot reconcile");
        Ok(Next::Failed)
    }

    /// The rights whose lack explains a refusal. Not finding out fails nothing.
    async fn explain(&self, refused: Option<Refused>) -> Option<Missing> {
        let composed = refused.filter(|refused| refused.error.is_forbidden())?.composed?;
        self.missing_rights(&meta::gvk(&composed)?, meta::namespace(&composed)).await.ok().flatten()
    }

    /// Everything was done: publishes details, says how it is, and when to look again.
    #[expect(clippy::too_many_arguments, reason = "what a reconcile knows in the end, each used once")]
    async fn conclude(
        &self,
        key: &Key,
        log: &RunLog,
        xr: &mut Composite,
        before: &Value,
        plan: &Plan,
        executed: Executed,
        reading: &Reading<'_>,
    ) -> Result<Next, ReportedError> {
        let published = self.publish(log, xr, &plan.connection_details).await;
        let outcome = plan.explain(plan.conclude(&executed.unsynced), &executed.unsynced);
        let mut events = executed.events;
        events.extend(outcome.events.iter().chain(&plan.remarks).cloned());
        self.keep_own_status(xr, &plan.status, reading);
        match &published {
            Ok(true) => {
                let now = transom_object::time::format(self.plane.clock.now());
                xr.set_last_published_time(&now);
                self.normal(xr, event::composite::PUBLISH, "Successfully published connection details");
            }
            Ok(false) => {}
            Err(e) if e.is_conflict() => {}
            Err(e) => {
                self.warning(xr, event::composite::PUBLISH, e.chain().to_string());
                self.mark(xr, [Condition::reconcile_error(e.chain().to_string())]);
            }
        }
        // What was marked at first spoke of a generation that may have passed.
        self.mark(xr, [self.responsive(key)]);
        if published.is_ok() {
            self.tell(xr, &events).await;
            outcome.mark(&mut xr.object, self.schema, self.plane.clock.now());
        }
        let changed =
            self.apply_status(log, xr, before).await.with_event_reason(event::composite::COMPOSE)?;
        let news = published.with_event_reason(event::composite::PUBLISH)?;
        if self.plane.options.realtime {
            self.following.replace(key, &reading.dependencies());
        }
        // Functions are shown the published details of the composite resource.
        if executed.changed || changed || news {
            return Ok(Next::Again);
        }
        let rest = Rest {
            blocked: executed.blocked,
            unfinished: !outcome.unsynced.is_empty() || !outcome.unready.is_empty(),
            ttl: plan.ttl,
            asked: notes::poll_interval(&xr.object),
        };
        Ok(rest.next(&self.plane.options, &self.plane.rng))
    }
}

/// Why there is nothing to conclude.
enum Stop {
    Failed(Box<Failure>),
    Refused(Box<Refused>),
}

impl Stop {
    fn because(words: String) -> Self {
        Self::Failed(Box::new(Cause::Resources(words).into()))
    }
}

/// Whether a condition of an object is true.
pub(super) fn is_true(object: &Value, kind: &str) -> bool {
    conditions::get(&conditions::of(object), kind).is_true()
}

pub(super) const READY: &str = condition::READY;
