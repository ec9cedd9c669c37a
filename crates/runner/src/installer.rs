//! Makes functions callable: has the runtime run their revisions, and routes calls to one of them.
//!
//! Guarantees: a function that has a ready revision keeps it until another one is ready, so an upgrade does not interrupt
//! its calls. Of two ready revisions the newer is called, whichever was installed last. A revision is released only after
//! calls are routed elsewhere. Nothing here knows how revisions are run, or reads or writes objects.

use crate::instance::Instance;
use crate::revision::{RevisionId, RevisionSpec};
use crate::router::Router;
use crate::runtime::{Changed, FunctionRuntime, RuntimeState};
use crate::source::{Resolver, Source};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Mutex as Turn;
use transom_xapi::Function;
use transom_xapi::function::FunctionRevision;

/// Installs and removes revisions of functions. Calls for one function take turns.
#[derive(Clone)]
pub struct Installer {
    resolver: Resolver,
    runtime: Arc<dyn FunctionRuntime>,
    router: Arc<Router>,
    functions: Arc<Mutex<BTreeMap<String, Arc<Turn<Revisions>>>>>,
}

/// What is known of the revisions of one function, by name.
type Revisions = BTreeMap<String, Standing>;

/// Which of several revisions is called.
struct Standing {
    number: i64,
    /// Whether it is called only until another revision is ready.
    retired: bool,
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

    /// Makes a revision of a function callable under the function's name, and returns its state. Call it again when the
    /// revision or its state may have changed.
    ///
    /// The function's previous revision is called until the new one is ready. A revision that is not ready is called
    /// only if no other is: calls then fail with the reason.
    pub async fn install(&self, revision: &RevisionSpec) -> RuntimeState {
        let turn = self.turn(&revision.id.function);
        let mut known = turn.lock().await;
        let standing = Standing { number: revision.number, retired: false };
        known.insert(revision.id.revision.clone(), standing);
        let state = self.runtime.ensure(revision).await;
        let Some(instance) = state.instance() else {
            if let Some(problem) = state.problem() {
                self.router.explain(&revision.id.function, &problem.message);
            }
            return state;
        };
        self.router.add(revision.id.clone(), &revision.package, instance.clone());
        if self.takes_over(&known, revision, state.is_ready()).await {
            self.router.activate(&revision.id);
        }
        self.release_unused(&mut known, &revision.id).await;
        state
    }

    /// Ends a revision whose function goes on: it is called until another one is ready, and not at all if it is not
    /// called now.
    pub async fn retire(&self, id: &RevisionId) {
        let turn = self.turn(&id.function);
        let mut known = turn.lock().await;
        if self.router.active(&id.function).is_some_and(|(active, _)| active == *id) {
            if let Some(standing) = known.get_mut(&id.revision) {
                standing.retired = true;
            }
            return;
        }
        self.release(&mut known, id).await;
    }

    /// Ends a revision, even if it is called.
    pub async fn discard(&self, id: &RevisionId) {
        let turn = self.turn(&id.function);
        self.release(&mut *turn.lock().await, id).await;
    }

    /// Ends all revisions of a function that goes on without any. Calls fail with the reason.
    pub async fn deactivate(&self, function: &str, reason: &str) {
        self.remove(function).await;
        self.router.explain(function, reason);
    }

    /// Makes a function not callable any more, and releases all its revisions.
    pub async fn remove(&self, function: &str) {
        let turn = self.turn(function);
        let mut known = turn.lock().await;
        known.clear();
        for revision in self.router.remove(function) {
            self.runtime.release(&revision).await;
        }
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

    /// Kept for names that were ever used: whoever waits for a turn must not miss one that begins meanwhile.
    fn turn(&self, function: &str) -> Arc<Turn<Revisions>> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        functions.entry(function.to_owned()).or_default().clone()
    }

    /// Whether calls go to this revision from now on.
    async fn takes_over(&self, known: &Revisions, revision: &RevisionSpec, is_ready: bool) -> bool {
        let Some((active, instance)) = self.router.active(&revision.id.function) else { return true };
        if active == revision.id {
            return true;
        }
        let standing = known.get(&active.revision);
        let is_newer = standing.is_some_and(|other| !other.retired && other.number > revision.number);
        if is_newer { is_ready && !reaches(&instance).await } else { is_ready || !reaches(&instance).await }
    }

    /// Releases the revisions of a function that are neither called nor about to be.
    async fn release_unused(&self, known: &mut Revisions, wanted: &RevisionId) {
        let active = self.router.active(&wanted.function).map(|(active, _)| active);
        for revision in self.router.revisions(&wanted.function) {
            if revision != *wanted && Some(&revision) != active.as_ref() {
                self.release(known, &revision).await;
            }
        }
    }

    async fn release(&self, known: &mut Revisions, id: &RevisionId) {
        known.remove(&id.revision);
        self.router.remove_revision(id);
        self.runtime.release(id).await;
    }
}

async fn reaches(instance: &Arc<dyn Instance>) -> bool {
    instance.probe().await.is_ok()
}
