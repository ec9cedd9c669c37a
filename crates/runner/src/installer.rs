//! Makes Functions callable: resolves each to a revision, has the runtime run it, and routes calls to it.
//!
//! Guarantees: a function that has a ready revision keeps it until another one is ready, so a change of a Function does
//! not interrupt its calls. A revision is released only after calls are routed elsewhere. Nothing here knows how
//! revisions are run, or reads or writes Function objects.

use crate::revision::{RevisionId, RevisionSpec};
use crate::router::Router;
use crate::runtime::{FunctionRuntime, RuntimeState};
use crate::source::{Resolver, Source};
use std::sync::Arc;
use transom_xapi::Function;

/// Installs and removes functions. Calls for one function must not overlap; those for several may.
#[derive(Clone)]
pub struct Installer {
    resolver: Resolver,
    runtime: Arc<dyn FunctionRuntime>,
    router: Arc<Router>,
}

impl Installer {
    /// An installer that has functions run by a runtime and called by a router.
    pub fn new(resolver: Resolver, runtime: Arc<dyn FunctionRuntime>, router: Arc<Router>) -> Self {
        Self { resolver, runtime, router }
    }

    /// Where the implementation of a Function comes from.
    pub fn source(&self, function: &Function) -> Source {
        self.resolver.resolve(function)
    }

    /// Makes a Function callable under its name, and returns the state of its revision. Call it again when the Function
    /// or the state may have changed.
    ///
    /// The function's previous revision is called until the new one is ready. A revision that is not ready is called
    /// only if the function has none that was: calls then fail with the reason.
    pub async fn install(&self, function: &Function) -> RuntimeState {
        let revision = RevisionSpec::of(function, &self.resolver);
        let state = self.runtime.ensure(&revision).await;
        let Some(instance) = state.instance() else { return state };
        self.router.add(revision.id.clone(), &revision.package, instance.clone());
        if state.is_ready() || !self.has_other_ready(&revision.id).await {
            self.router.activate(&revision.id);
        }
        self.release_unused(&revision.id).await;
        state
    }

    /// Makes a function not callable any more, and releases all its revisions.
    pub async fn remove(&self, function: &str) {
        for revision in self.router.remove(function) {
            self.runtime.release(&revision).await;
        }
    }

    /// Has `changed` called with the name of a function that became reachable or unreachable, as calls find out.
    pub fn on_change(&self, changed: impl Fn(&str) + Send + Sync + 'static) {
        self.router.on_change(Arc::new(changed));
    }

    /// Whether calls go to another revision of the function, and reach it.
    async fn has_other_ready(&self, revision: &RevisionId) -> bool {
        match self.router.active(&revision.function) {
            Some((active, instance)) => active != *revision && instance.probe().await.is_ok(),
            None => false,
        }
    }

    /// Releases the revisions of a function that are neither called nor about to be.
    async fn release_unused(&self, wanted: &RevisionId) {
        let active = self.router.active(&wanted.function).map(|(active, _)| active);
        for revision in self.router.revisions(&wanted.function) {
            if revision != *wanted && Some(&revision) != active.as_ref() {
                self.router.remove_revision(&revision);
                self.runtime.release(&revision).await;
            }
        }
    }
}
