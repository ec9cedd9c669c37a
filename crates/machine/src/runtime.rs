//! The runtime of functions from packages.

use crate::HostResources;
use crate::ends::Ends;
use crate::images::Images;
use crate::providers::{PlaneAccess, ProviderContainers};
use crate::revision::Revision;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::task::JoinSet;
use transom_container::{Engine, Limits, Workspace};
use transom_object::error_chain::chain;
use transom_runner::{
    Changed, FunctionRuntime, LocalRuntime, Options, Problem, Reason, RevisionId, RevisionSpec, RuntimeState,
    Source,
};

/// How long the first look at a revision waits for it to run: an image that is here takes less.
const START_WITHIN: Duration = Duration::from_secs(3);

/// Runs functions from their packages; all others as [`LocalRuntime`] does.
pub struct PackageRuntime {
    local: LocalRuntime,
    shared: Arc<Shared>,
    revisions: Mutex<BTreeMap<RevisionId, Arc<Revision>>>,
    /// The revisions that are being stopped.
    stopping: Mutex<JoinSet<()>>,
    /// What is remarkable about the end of revisions that were stopped.
    ends: Arc<Ends<RevisionId>>,
}

/// How containers are run.
pub struct ContainerOptions {
    /// What runs them.
    pub engine: Engine,
    /// Whether namespaces without an OCI runtime are used if the OCI runtime does not work.
    pub may_fall_back: bool,
    /// What each may use, unless its runtime config says otherwise.
    pub limits: Limits,
}

/// What all revisions use.
pub(crate) struct Shared {
    pub(crate) place: HostResources,
    pub(crate) images: Images,
    pub(crate) containers: ContainerOptions,
    pub(crate) options: Options,
    workspace: OnceLock<Arc<Workspace>>,
    changed: RwLock<Option<Changed>>,
}

impl Shared {
    /// The directories of this process, which are made when they are first needed.
    pub(crate) fn workspace(&self) -> Result<Arc<Workspace>, Problem> {
        if let Some(workspace) = self.workspace.get() {
            return Ok(workspace.clone());
        }
        let opened = Workspace::open(&self.place.dir);
        let opened = opened.map_err(|error| Problem::new(Reason::ImageUnavailable, chain(&error)))?;
        // Of two that are made at once, one is dropped.
        Ok(self.workspace.get_or_init(|| Arc::new(opened)).clone())
    }

    /// Reports that the state of a revision has changed.
    pub(crate) fn changed(&self, id: &RevisionId) {
        let changed = self.changed.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(changed) = changed {
            changed(id);
        }
    }
}

impl PackageRuntime {
    /// With what runs all other functions, and how functions are called.
    pub fn new(
        containers: ContainerOptions,
        place: HostResources,
        local: LocalRuntime,
        options: Options,
    ) -> Self {
        let shared = Shared {
            images: Images::new(),
            containers,
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
        Self {
            local,
            shared: Arc::new(shared),
            revisions: Mutex::default(),
            stopping: Mutex::default(),
            ends: Arc::default(),
        }
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
                    self.stop_later(spec.id.clone(), other);
                }
            }
            None => {}
        }
        self.ends.remove(&spec.id);
        let started = Arc::new(Revision::start(spec, &self.shared)?);
        revisions.insert(spec.id.clone(), started.clone());
        Ok((started, true))
    }

    /// Runs providers as well, as clients of a plane: from the same images, each within this memory.
    pub fn providers(&self, access: PlaneAccess, memory_bytes: u64) -> ProviderContainers {
        ProviderContainers::new(self.shared.clone(), access, memory_bytes)
    }

    fn stop_later(&self, id: RevisionId, revision: Arc<Revision>) {
        let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        while stopping.try_join_next().is_some() {}
        let (ends, shared) = (self.ends.clone(), self.shared.clone());
        stopping.spawn(async move {
            if let Some(end) = revision.stop(true).await {
                tracing::info!(revision = %id, end, "a function was stopped");
                ends.insert(id.clone(), end);
                shared.changed(&id);
            }
        });
    }

    /// Stops all revisions, and waits until nothing of them is left.
    pub async fn stop(&self) {
        let mut all = {
            let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *stopping)
        };
        for (_, revision) in std::mem::take(&mut *self.revisions()) {
            all.spawn(async move { drop(revision.stop(false).await) });
        }
        while all.join_next().await.is_some() {}
        transom_container::reached("supervised", "all are stopped");
        if let Some(workspace) = self.shared.workspace.get() {
            workspace.clear();
            transom_container::reached("supervised", "the directory of its session is removed");
        }
    }
}

/// Whether a running revision is the one that is wanted.
fn is_same(running: &Revision, wanted: &RevisionSpec) -> bool {
    running.program.is_of(&wanted.image) && running.config == wanted.config
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
                    revision.program.until_started_or_failed(START_WITHIN).await;
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
            self.stop_later(id.clone(), revision);
        }
    }

    fn remark(&self, id: &RevisionId) -> Option<String> {
        self.ends.get(id)
    }

    fn on_change(&self, changed: Changed) {
        *self.shared.changed.write().unwrap_or_else(PoisonError::into_inner) = Some(changed);
    }
}
