//! The function, and the runtime that its revisions have.

use super::{NAME, composed_version, version_of};
use crate::simulation::platform::Parts;
use crate::simulation::wire::Wire;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use transom_function::{Error, Function, RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_runner::{
    Changed, FunctionRuntime, InProcess, Instance, Problem, Reason, RevisionId, RevisionSpec, RuntimeState,
};

/// How the revisions of a version are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Health {
    #[default]
    Well,
    /// It has not opened its port.
    Starting,
    /// It has opened its port, and says that it cannot serve; calls fail.
    Silent,
    /// It cannot be run.
    Broken,
}

/// A revision that runs.
struct Maker {
    version: u64,
    revision: String,
    wire: Arc<Wire>,
    health: Arc<Mutex<BTreeMap<u64, Health>>>,
    released: AtomicBool,
}

#[async_trait]
impl Function for Maker {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        if self.health.lock().unwrap().get(&self.version).copied().unwrap_or_default() != Health::Well {
            return Err(Error::fatal("cannot serve, says chance"));
        }
        let input = request.input.as_ref().map(|input| input.as_value().clone()).unwrap_or_default();
        self.wire.ledger().called(&self.revision, &input, self.released.load(Ordering::SeqCst));
        let version = input["version"].as_f64().unwrap_or_default() as u64;
        if let Some(input) = request.input.as_mut() {
            let version = composed_version(version, self.version);
            input.fields_mut().insert("version".to_owned(), version.into());
        }
        Parts(self.wire.clone()).run(request).await
    }
}

#[derive(Default)]
struct Running {
    makers: BTreeMap<RevisionId, (Arc<Maker>, Arc<dyn Instance>)>,
    changed: Option<Changed>,
}

/// Runs the revisions of the simulated function. All others can always be called.
pub(crate) struct Makers {
    wire: Arc<Wire>,
    others: Arc<dyn Instance>,
    health: Arc<Mutex<BTreeMap<u64, Health>>>,
    running: Mutex<Running>,
}

impl Makers {
    pub(crate) fn new(wire: Arc<Wire>) -> Self {
        let others = Arc::new(InProcess::new(Arc::new(Parts(wire.clone()))));
        Self { wire, others, health: Arc::default(), running: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap()
    }

    /// The revisions of a version become as they are to be, and the runtime notices.
    pub(crate) fn set_health(&self, version: u64, health: Health) {
        self.health.lock().unwrap().insert(version, health);
        let (concerned, changed) = {
            let running = self.lock();
            let of = running.makers.iter().filter(|(_, (maker, _))| maker.version == version);
            (of.map(|(id, _)| id.clone()).collect::<Vec<_>>(), running.changed.clone())
        };
        if let Some(changed) = changed {
            concerned.iter().for_each(|id| changed(id));
        }
    }

    /// The process ends, and with it everything that it runs.
    pub(crate) fn stop_all(&self) {
        *self.lock() = Running::default();
        self.wire.ledger().functions.running.clear();
    }

    fn instance(&self, id: &RevisionId, version: u64) -> Arc<dyn Instance> {
        self.wire.ledger().functions.running.insert(id.revision.clone());
        let mut running = self.lock();
        let start = || {
            let maker = Arc::new(Maker {
                version,
                revision: id.revision.clone(),
                wire: self.wire.clone(),
                health: self.health.clone(),
                released: AtomicBool::new(false),
            });
            let instance: Arc<dyn Instance> = Arc::new(InProcess::new(maker.clone()));
            (maker, instance)
        };
        running.makers.entry(id.clone()).or_insert_with(start).1.clone()
    }
}

#[async_trait]
impl FunctionRuntime for Makers {
    async fn ensure(&self, revision: &RevisionSpec) -> RuntimeState {
        if revision.id.function != NAME {
            return RuntimeState::Ready(self.others.clone());
        }
        let Some(version) = version_of(&revision.id.revision) else {
            return RuntimeState::Failed(Problem::new(Reason::InvalidImage, "there is no such version"));
        };
        let instance = self.instance(&revision.id, version);
        let problem = |reason| Problem::new(reason, format!("v{version} is ill, says chance"));
        match self.health.lock().unwrap().get(&version).copied().unwrap_or_default() {
            Health::Well => RuntimeState::Ready(instance),
            Health::Starting => RuntimeState::Pending { problem: problem(Reason::Starting), instance: None },
            Health::Silent => {
                RuntimeState::Pending { problem: problem(Reason::NotServing), instance: Some(instance) }
            }
            Health::Broken => RuntimeState::Failed(problem(Reason::InvalidImage)),
        }
    }

    async fn release(&self, revision: &RevisionId) {
        let removed = self.lock().makers.remove(revision);
        if let Some((maker, _)) = removed {
            self.wire.ledger().functions.running.remove(&revision.revision);
            maker.released.store(true, Ordering::SeqCst);
        }
    }

    fn on_change(&self, changed: Changed) {
        self.lock().changed = Some(changed);
    }
}

/// What a step chose, from its input: a revision, or a channel.
pub(super) fn chosen(input: &Value) -> (Option<&str>, Option<&str>) {
    (input["revision"].as_str(), input["channel"].as_str())
}
