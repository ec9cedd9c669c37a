//! One reconcile of a composite resource, from its key to what comes next: does what the state machine of
//! `transom_compose` asks for, until it is done.

use super::announcement::Announcement;
use super::deadline::DeadlineRunner;
use super::execute::{Executor, Memory};
use super::world::{LiveWorld, dependency};
use super::{Composites, Run};
use serde_json::Map;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, timeout_at};
use transom_compose::{
    Composed, FrequentChange, Lookup, Mode, Moment, Polling, Reconcile, Selection, Setup, Todo,
};
use transom_engine::{Error, ErrorContext, Key, Next, Result, RunLog};
use transom_xapi::AccountReference;

/// How long composing may take, functions included.
const COMPOSE_TIMEOUT: Duration = Duration::from_secs(120);
/// A plan of more steps than this waits until fewer than [`MAX_LARGE_RUNS`](crate::plane::MAX_LARGE_RUNS) such plans
/// are carried out: what they write and observe again takes memory.
const LARGE_PLAN_STEPS: usize = 256;

impl Composites {
    pub(super) async fn run(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &self.gvk, &key.namespace, &key.name).await;
        let Some(xr) = read.context("cannot get composite resource")? else {
            self.forget(key);
            return Ok(Next::Gone);
        };
        let announcement = Announcement::before(&xr);
        let account = self.definition.account(&key.namespace);
        let own = &self.plane.cluster;
        let composed = account.as_ref().map_or_else(|| own.clone(), |account| own.acting_as(&account.user()));
        let setup = self.setup(account.clone());
        let run = Run {
            composites: self,
            key,
            log,
            started: Instant::now(),
            account,
            composed,
            waited: OnceLock::new(),
            followed: Mutex::default(),
        };
        let required = self.required().get(key).cloned().unwrap_or_default();
        let (mut reconcile, todo) = Reconcile::start(&setup, xr, required, &run.moment());
        reconcile.report_revisions(self.composed_by().get(key).cloned());
        let next = run.drive(&mut reconcile, todo).await;
        if let Some(composed_by) = reconcile.composed_by() {
            self.composed_by().insert(key.clone(), composed_by);
        }
        self.callers.replace(key, &run.take_followed());
        announcement.after(&self.plane.announce, reconcile.xr());
        run.next(next)
    }

    fn setup(&self, account: Option<AccountReference>) -> Setup<'_> {
        let options = &self.plane.options;
        Setup {
            mode: Mode::ControlPlane,
            layout: self.layout,
            selection: Selection::Catalog { catalog: &*self.plane.catalog, definition: &self.definition },
            connection_secret_keys: &self.definition.spec.connection_secret_keys,
            context: Map::new(),
            extra_resources: options.extra_resources,
            polling: Polling {
                realtime: options.realtime,
                interval: options.poll_interval,
                min_interval: options.min_poll_interval,
            },
            nesting: &self.plane.nesting,
            account,
        }
    }
}

impl Run<'_> {
    /// Has the composite resource composed again when the revisions of a function change.
    pub(super) fn follow_function(&self, function: &str) {
        self.composites.callers.add(self.key, function);
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).insert(function.to_owned());
    }

    fn take_followed(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.followed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn drive(&self, reconcile: &mut Reconcile<'_>, mut todo: Todo) -> transom_compose::Next {
        let world = LiveWorld(self);
        // Kept until the run ends: what a large plan wrote is observed once more.
        let mut turn = None;
        loop {
            todo = match todo {
                Todo::Prepare => reconcile.prepare(&world, &self.moment()).await,
                Todo::Compose => self.compose(reconcile, &world, &self.executor()).await,
                Todo::Execute(plan) => {
                    if turn.is_none() && plan.steps.len() > LARGE_PLAN_STEPS {
                        turn = self.turn().await;
                    }
                    let outcomes = self.executor().execute(&plan).await;
                    reconcile.executed(&plan, outcomes, &self.moment())
                }
                Todo::Done(next) => return next,
            };
        }
    }

    /// Composes, and writes in the meantime which function the composite resource waits for.
    async fn compose(
        &self,
        reconcile: &mut Reconcile<'_>,
        world: &LiveWorld<'_>,
        executor: &Executor<'_>,
    ) -> Todo {
        let plane = &self.composites.plane;
        let runner = DeadlineRunner::new(&*plane.runner, self.started, COMPOSE_TIMEOUT);
        let (mut slow_calls, mut interim) = (runner.slow_calls(), reconcile.interim());
        let composed = {
            let composing = reconcile.compose(plane.clock.now(), &runner, world);
            let mut composing = pin!(timeout_at(self.deadline(), composing));
            loop {
                tokio::select! {
                    biased;
                    composed = &mut composing => break composed,
                    Ok(()) = slow_calls.changed() => {}
                }
                let call = slow_calls.borrow_and_update().clone();
                call.into_iter().for_each(|call| interim.waits_for(call));
                while let Some(plan) = interim.next(reconcile, plane.clock.now()) {
                    interim.executed(reconcile, executor.execute(&plan).await);
                }
            }
        };
        let composed = composed.unwrap_or_else(|_| Composed::deadline_exceeded());
        let todo = reconcile.composed(composed, interim, &self.moment());
        self.composites.remember(self.key, reconcile.requirements());
        todo
    }

    fn executor(&self) -> Executor<'_> {
        let Composites { plane, name, .. } = self.composites;
        Executor {
            cluster: &plane.cluster,
            composed: &self.composed,
            account: self.account.as_ref(),
            log: self.log,
            memory: self,
            recorder: &plane.events,
            controller: name,
            deadline: self.deadline(),
        }
    }

    /// Waits until few enough other runs carry out large plans.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        let since = Instant::now();
        let permit = self.composites.plane.large_runs.acquire().await.ok();
        let _ = self.waited.set(since.elapsed());
        permit
    }

    fn deadline(&self) -> Instant {
        self.started + COMPOSE_TIMEOUT + self.waited.get().copied().unwrap_or_default()
    }

    fn moment(&self) -> Moment {
        let plane = &self.composites.plane;
        Moment { now: plane.clock.now(), random: plane.rng.draw(), slowed_by: self.slowed_by() }
    }

    /// What changes so often that this composite resource is reconciled at intervals.
    fn slowed_by(&self) -> Option<FrequentChange> {
        let Composites { queue, following, gvk, .. } = self.composites;
        if !queue.is_slowed(self.key) {
            return None;
        }
        let noisiest = queue.noisiest(self.key).and_then(|object| following.find(self.key, object));
        let (kind, object) = noisiest.unwrap_or_else(|| (gvk.kind.to_string(), self.key.clone()));
        let (namespace, name) = (object.namespace.to_string(), object.name.to_string());
        Some(FrequentChange { kind, namespace, name })
    }

    fn next(&self, next: transom_compose::Next) -> Result<Next> {
        use transom_compose::Next as Decided;
        Ok(match next {
            Decided::Wait => Next::Wait,
            Decided::After(pause) => Next::After(pause),
            Decided::Again => Next::Again,
            Decided::Backoff => Next::Backoff,
            Decided::Failed(error) => {
                let (controller, key) = (&self.composites.name, self.key);
                tracing::warn!(controller, %key, error, "cannot reconcile");
                Next::Failed
            }
            Decided::Error(error) => return Err(Error::domain(error)),
            Decided::Conflict => Next::Conflict,
            Decided::Gone => Next::Gone,
        })
    }
}

impl Memory for Run<'_> {
    fn depend(&self, lookup: &Lookup) {
        self.composites.following.add(self.key, dependency(lookup));
    }

    fn follow(&self, lookups: &BTreeSet<Lookup>) {
        let dependencies = lookups.iter().map(dependency).collect();
        self.composites.following.replace(self.key, &dependencies);
    }

    fn forget(&self, uid: &str) {
        self.composites.forget(self.key);
        self.composites.plane.nesting.forget(uid);
    }
}
