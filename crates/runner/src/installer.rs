//! Makes functions callable: has the runtime run their revisions, and routes calls to them.
//!
//! Guarantees: a function that has a ready revision keeps it until an active one is ready, so an upgrade does not interrupt
//! its calls. Of several active revisions those that are ready are called, and of these the one that a step wants or the
//! newest, whichever was installed last. A revision is released only after calls are routed elsewhere. Nothing here knows
//! how revisions are run, or reads or writes objects.

use crate::revision::{RevisionId, RevisionSpec};
use crate::router::{Callable, Router};
use crate::runtime::{Changed, FunctionRuntime, Reason, RuntimeState};
use crate::source::{Resolver, Source};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;
use transom_xapi::Function;
use transom_xapi::function::FunctionRevision;

/// How often it is looked whether a program that starts can be called.
const START_INTERVAL: Duration = Duration::from_millis(20);

/// Installs and removes revisions of functions. Calls for one function take turns.
#[derive(Clone)]
pub struct Installer {
    resolver: Resolver,
    runtime: Arc<dyn FunctionRuntime>,
    router: Arc<Router>,
    functions: Arc<Mutex<BTreeMap<String, Arc<Turn<()>>>>>,
}

impl Installer {
    /// An installer that has functions run by a runtime and called by a router.
    pub fn new(resolver: Resolver, runtime: Arc<dyn FunctionRuntime>, router: Arc<Router>) -> Self {
        Self { resolver, runtime, router, functions: Arc::default() }
    }

    /// Where the implementation of a Function comes from.
    pub fn source(&self, function: &Function) -> Source {
        self.resolver.resolve(function)
    }

    /// What is to be installed for a FunctionRevision.
    pub fn revision(&self, revision: &FunctionRevision) -> RevisionSpec {
        RevisionSpec::of(revision, &self.resolver)
    }

    /// Makes an active revision of a function callable, and returns its state. Call it again when the revision or its state
    /// may have changed.
    ///
    /// A revision that is not ready is called only if no other is: calls then fail with the reason.
    pub async fn install(&self, revision: &RevisionSpec) -> RuntimeState {
        let turn = self.turn(&revision.id.function);
        let _turn = turn.lock().await;
        let state = self.runtime.ensure(revision).await;
        let callable = match &state {
            RuntimeState::Ready(instance) => Callable::Ready(instance.clone()),
            RuntimeState::Pending { instance: Some(instance), .. } => Callable::Unready(instance.clone()),
            RuntimeState::Pending { problem, .. } | RuntimeState::Failed(problem) => {
                Callable::Not(problem.message.clone())
            }
        };
        self.router.set(revision, callable);
        self.release_superseded(&revision.id.function).await;
        state
    }

    /// Makes a revision callable, and waits while its package is pulled and then its program starts, which may take as long
    /// as `starting`. A function at an endpoint is not waited for: it may just be starting, and calls report it otherwise.
    pub async fn install_and_wait(&self, revision: &RevisionSpec, starting: Duration) -> RuntimeState {
        let is_package = matches!(revision.source, Source::Package { .. });
        let mut pulled = None;
        loop {
            let state = self.install(revision).await;
            let RuntimeState::Pending { problem, .. } = &state else { return state };
            let waits = match problem.reason {
                Reason::Pulling => true,
                Reason::Starting | Reason::NotServing => {
                    pulled.get_or_insert_with(Instant::now).elapsed() < starting
                }
                _ => false,
            };
            if !is_package || !waits {
                return state;
            }
            tokio::time::sleep(START_INTERVAL).await;
        }
    }

    /// Ends a revision whose function goes on: it is called until an active one is ready.
    pub async fn retire(&self, id: &RevisionId) {
        let turn = self.turn(&id.function);
        let _turn = turn.lock().await;
        if self.router.revisions(&id.function).contains(id) {
            self.router.retire(id);
            self.release_superseded(&id.function).await;
        } else {
            // What a process before this one ran, and did not get to release.
            self.runtime.release(id).await;
        }
    }

    /// Ends a revision, even if it is called.
    pub async fn discard(&self, id: &RevisionId) {
        let turn = self.turn(&id.function);
        let _turn = turn.lock().await;
        self.release(id).await;
    }

    /// Ends all revisions of a function that goes on without any. Calls fail with the reason.
    pub async fn deactivate(&self, function: &str, reason: &str) {
        self.remove(function).await;
        self.router.explain(function, reason);
    }

    /// Makes a function not callable any more, and releases all its revisions.
    pub async fn remove(&self, function: &str) {
        let turn = self.turn(function);
        let _turn = turn.lock().await;
        for revision in self.router.remove(function) {
            self.runtime.release(&revision).await;
        }
    }

    /// What users should know about how a revision ended that does not run any more.
    pub fn remark(&self, id: &RevisionId) -> Option<String> {
        self.runtime.remark(id)
    }

    /// Says why a function that is installed cannot be called, for as long as it cannot.
    pub fn explain(&self, function: &str, reason: &str) {
        self.router.explain(function, reason);
    }

    /// Has `changed` called with the revision that became reachable or unreachable, as calls or the runtime find out.
    pub fn on_change(&self, changed: impl Fn(&RevisionId) + Send + Sync + 'static) {
        let changed: Changed = Arc::new(changed);
        self.router.on_change(changed.clone());
        self.runtime.on_change(changed);
    }

    /// After which time a revision that was installed has to be installed again although nothing of it changes.
    pub fn due_in(&self, id: &RevisionId) -> Option<Duration> {
        self.runtime.due_in(id)
    }

    /// Has `rerouted` called with a function after its calls may have begun to be routed in another way.
    pub fn on_reroute(&self, rerouted: impl Fn(&str) + Send + Sync + 'static) {
        self.router.on_reroute(Arc::new(rerouted));
    }

    /// The lock of a function. Locks are never removed: a waiting task and a new one must use the same lock.
    fn turn(&self, function: &str) -> Arc<Turn<()>> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        functions.entry(function.to_owned()).or_default().clone()
    }

    /// Releases the revisions of a function that are not active any more and need not be called.
    async fn release_superseded(&self, function: &str) {
        for id in self.router.superseded(function) {
            self.release(&id).await;
        }
    }

    async fn release(&self, id: &RevisionId) {
        self.router.remove_revision(id);
        self.runtime.release(id).await;
    }
}
