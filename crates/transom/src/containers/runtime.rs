//! The runtime of functions from packages.

use super::images::Images;
use super::revision::Revision;
use super::{ContainerArgs, Place};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::task::JoinSet;
use transom_container::{Engine, Limits, Workspace};
use transom_function::async_trait;
use transom_object::error_chain::chain;
use transom_runner::{
    Changed, FunctionRuntime, LocalRuntime, Options, Problem, Reason, RevisionId, RevisionSpec, RuntimeState,
    Source,
};

/// How long the first look at a revision waits for it to run: an image that is here takes less.
const START_WITHIN: Duration = Duration::from_secs(3);

/// Runs functions from their packages; all others as [`LocalRuntime`] does.
pub(super) struct PackageRuntime {
    local: LocalRuntime,
    shared: Arc<Shared>,
    revisions: Mutex<BTreeMap<RevisionId, Arc<Revision>>>,
    /// The revisions that are being stopped.
    stopping: Mutex<JoinSet<()>>,
}

/// What all revisions use.
pub(super) struct Shared {
    pub(super) place: Place,
    pub(super) images: Images,
    pub(super) engine: Engine,
    /// Whether namespaces alone may take the place of an OCI runtime that does not work.
    pub(super) may_fall_back: bool,
    pub(super) limits: Limits,
    pub(super) options: Options,
    workspace: OnceLock<Arc<Workspace>>,
    changed: RwLock<Option<Changed>>,
}

impl Shared {
    /// The directories of this process, which are made when they are first needed.
    pub(super) fn workspace(&self) -> Result<Arc<Workspace>, Problem> {
        if let Some(workspace) = self.workspace.get() {
            return Ok(workspace.clone());
        }
        let opened = Workspace::open(&self.place.dir);
        let opened = opened.map_err(|error| Problem::new(Reason::ImageUnavailable, chain(&error)))?;
        // Of two that are made at once, one is dropped.
        Ok(self.workspace.get_or_init(|| Arc::new(opened)).clone())
    }

    /// Tells of a revision whose state has changed.
    pub(super) fn changed(&self, id: &RevisionId) {
        let changed = self.changed.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(changed) = changed {
            changed(id);
        }
    }
}

impl PackageRuntime {
    pub(super) fn new(
        args: &ContainerArgs,
        engine: Engine,
        place: Place,
        local: LocalRuntime,
        options: Options,
    ) -> Self {
        let shared = Shared {
            images: Images::new(),
            engine,
            may_fall_back: args.may_fall_back(),
            limits: args.limits(),
            options,
            workspace: OnceLock::new(),
            changed: RwLock::default(),
            place,
        };
        if shared.place.dir.exists()
            && let Err(problem) = shared.workspace()
        {
            // What an earlier process left stays; it is reported again when a function is to run.
            tracing::warn!(%problem, "functions cannot be run from their packages");
        }
        Self { local, shared: Arc::new(shared), revisions: Mutex::default(), stopping: Mutex::default() }
    }

    fn revisions(&self) -> MutexGuard<'_, BTreeMap<RevisionId, Arc<Revision>>> {
        self.revisions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The running revision, and whether it was started just now. One whose image is another is stopped.
    fn revision(&self, spec: &RevisionSpec) -> Result<(Arc<Revision>, bool), Problem> {
        let mut revisions = self.revisions();
        match revisions.get(&spec.id) {
            Some(found) if is_same(found, spec) => return Ok((found.clone(), false)),
            Some(_) => {
                if let Some(other) = revisions.remove(&spec.id) {
                    self.stop_later(other);
                }
            }
            None => {}
        }
        let started = Arc::new(Revision::start(&spec.id, spec.image.clone(), &self.shared)?);
        revisions.insert(spec.id.clone(), started.clone());
        Ok((started, true))
    }

    fn stop_later(&self, revision: Arc<Revision>) {
        let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        while stopping.try_join_next().is_some() {}
        stopping.spawn(async move { revision.stop(true).await });
    }

    /// Stops all revisions, and waits until nothing of them is left.
    pub(super) async fn stop(&self) {
        let mut all = {
            let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *stopping)
        };
        for (_, revision) in std::mem::take(&mut *self.revisions()) {
            all.spawn(async move { revision.stop(false).await });
        }
        while all.join_next().await.is_some() {}
        if let Some(workspace) = self.shared.workspace.get() {
            workspace.clear();
        }
    }
}

/// Whether a running revision is the one that is wanted. How it was pulled does not matter.
fn is_same(running: &Revision, wanted: &RevisionSpec) -> bool {
    match (&running.image.digest, &wanted.image.digest) {
        (Some(running), Some(wanted)) => running == wanted,
        _ => running.image.reference == wanted.image.reference,
    }
}

#[async_trait]
impl FunctionRuntime for PackageRuntime {
    async fn ensure(&self, spec: &RevisionSpec) -> RuntimeState {
        if !matches!(spec.source, Source::Package { .. }) {
            return self.local.ensure(spec).await;
        }
        match self.revision(spec) {
            Ok((revision, is_new)) => {
                if is_new {
                    revision.settle(START_WITHIN).await;
                }
                revision.state().await
            }
            Err(problem) => RuntimeState::Failed(problem),
        }
    }

    async fn release(&self, id: &RevisionId) {
        self.local.release(id).await;
        let released = self.revisions().remove(id);
        if let Some(revision) = released {
            self.stop_later(revision);
        }
    }

    fn on_change(&self, changed: Changed) {
        *self.shared.changed.write().unwrap_or_else(PoisonError::into_inner) = Some(changed);
    }
}
