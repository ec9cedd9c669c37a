//! A provider: its kinds, started and stopped together.

use crate::config::{ConfigKinds, ConfigReference, Forget};
use crate::external::External;
use crate::kind::ManagedKind;
use crate::pace::{Limiter, Settings};
use crate::reconcile::{API_TIMEOUT, Managed, Shared};
use crate::targets::{CONTROLLER, Targets};
use crate::waking::Waker;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use transom_engine::{
    Clock, Cluster, Controller, Depth, Engine, Following, Key, Metrics, Mirror, Next, Ownership, Queue,
    Reconciler, Result, RunLog, install_definitions,
};
use transom_object::GroupVersionKind;

type Start = Box<dyn FnOnce(&Arc<Shared>) -> Controller + Send + Sync>;

/// A provider that does not run yet.
pub struct Provider {
    name: &'static str,
    settings: Settings,
    configs: Vec<ConfigKinds>,
    crds: Vec<Value>,
    starts: Vec<Start>,
    groups: BTreeSet<&'static str>,
    user: Option<String>,
    forget: Forget,
}

/// What a provider runs with.
pub struct Context {
    /// The client of the API server.
    pub client: kube::Client,
    /// The source of time.
    pub clock: Clock,
    /// The metrics of the controllers.
    pub metrics: Arc<Metrics>,
    /// The seed of random choices.
    pub seed: u64,
    /// Which objects this process reconciles.
    pub ownership: Ownership,
}

impl Provider {
    /// A provider without kinds. Its name is also that of the manager of the fields that it writes.
    pub fn new(name: &'static str, settings: Settings) -> Self {
        let (configs, crds, starts, groups, user) = Default::default();
        Self {
            name,
            settings,
            configs,
            crds,
            starts,
            groups,
            user,
            forget: Arc::new(|_: &ConfigReference| ()),
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Changes how it behaves.
    #[must_use]
    pub fn with_settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Has it act as another user where users decide what it reads and writes in its own cluster. Its client must have the
    /// right to impersonate that user. Without this it acts as the user of its client.
    #[must_use]
    pub fn acting_as(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()), ..self }
    }

    /// Calls this when a ProviderConfig is gone, so that what was kept for it can be closed.
    #[must_use]
    pub fn forgetting(self, forget: impl Fn(&ConfigReference) + Send + Sync + 'static) -> Self {
        Self { forget: Arc::new(forget), ..self }
    }

    /// Adds the kinds of its configuration.
    #[must_use]
    pub fn configs(mut self, configs: ConfigKinds) -> Self {
        self.crds.extend(configs.crds());
        self.groups.insert(configs.group);
        self.configs.push(configs);
        self
    }

    /// Adds a kind of managed resources.
    #[must_use]
    pub fn manages(self, kind: ManagedKind, external: impl External) -> Self {
        let crd = kind.crd();
        self.manages_as(kind, crd, external)
    }

    /// Adds a kind of managed resources with a CustomResourceDefinition of its own.
    #[must_use]
    pub fn manages_as(mut self, kind: ManagedKind, crd: Value, external: impl External) -> Self {
        self.crds.push(crd);
        self.groups.insert(kind.group);
        self.starts.push(Box::new(move |shared| start(shared, kind, external)));
        self
    }

    /// Adds a kind with a reconciler of its own, which is given what it works with.
    #[must_use]
    pub fn reconciles<R: Reconciler>(
        mut self,
        crd: Value,
        gvk: GroupVersionKind,
        make: impl FnOnce(Equipment) -> R + Send + Sync + 'static,
    ) -> Self {
        self.crds.push(crd);
        self.starts.push(Box::new(move |shared| {
            let name = format!("managed/{}.{}", gvk.kind.to_lowercase(), gvk.group);
            let mut controller = shared.engine.controller(name.clone(), shared.settings.pace());
            controller.watch_own(&gvk, CONTROLLER);
            let following = controller.follow(|_| true);
            let queue = controller.queue().clone();
            let equipment = Equipment { shared: shared.clone(), following, queue, controller: name.into() };
            controller.start(make(equipment))
        }));
        self
    }

    /// The CustomResourceDefinitions of its kinds.
    pub fn crds(&self) -> &[Value] {
        &self.crds
    }

    /// Makes the server serve its kinds.
    pub async fn install(&self, cluster: &Cluster) -> Result<()> {
        install_definitions(cluster, &self.crds, self.name).await
    }

    /// Starts its controllers. A kind that the server does not serve yet is reconciled as soon as it does.
    pub fn start(self, context: Context) -> RunningProvider {
        let engine = Engine::start(Cluster::new(context.client), context.clock, context.metrics, self.name);
        let engine = Arc::new(engine.sharing(context.ownership));
        let identity = match &self.user {
            Some(user) => engine.cluster.acting_as(user),
            None => engine.cluster.clone(),
        };
        let shared = Arc::new(Shared {
            engine: engine.clone(),
            identity,
            settings: self.settings,
            limiter: Limiter::new(self.settings.max_reconcile_rate),
            seed: context.seed,
            targets: Targets::default(),
            manager: self.name,
        });
        let mut gate = engine.controller(format!("crd-gate/{}", self.name), self.settings.pace());
        gate.watch_own(&definition(), Depth::Header);
        let gate = gate.start(Gate { engine: engine.clone(), groups: self.groups });
        let pace = self.settings.pace();
        let mut controllers: Vec<Controller> =
            self.configs.into_iter().flat_map(|configs| configs.start(&engine, pace, &self.forget)).collect();
        controllers.extend(self.starts.into_iter().map(|start| start(&shared)));
        controllers.push(gate);
        RunningProvider { _controllers: controllers, engine }
    }
}

fn start(shared: &Arc<Shared>, kind: ManagedKind, external: impl External) -> Controller {
    let (gvk, name) = (kind.gvk(), kind.controller());
    let mut controller = shared.engine.controller(name.clone(), shared.settings.pace());
    controller.watch_own(&gvk, CONTROLLER);
    let following = controller.follow(|_| true);
    let queue = controller.queue().clone();
    let shared = shared.clone();
    controller.start(Managed { shared, external, kind, gvk, name: name.into(), following, queue })
}

/// What a reconciler of a kind that is not a managed resource works with.
pub struct Equipment {
    shared: Arc<Shared>,
    following: Arc<Following>,
    queue: Arc<Queue>,
    controller: Arc<str>,
}

impl Equipment {
    /// The engine that it runs on.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// The cluster with the rights that the provider has for what users ask for: see [`Provider::acting_as`].
    pub fn identity(&self) -> &Cluster {
        &self.shared.identity
    }

    /// Which objects trigger reconciles of which keys.
    pub fn following(&self) -> &Following {
        &self.following
    }

    /// Triggers reconciles of a key.
    pub fn waker(&self, key: &Key) -> Waker {
        Waker::new(&self.controller, key, &self.queue)
    }

    /// How long a reconcile may take.
    pub fn timeout(&self) -> Duration {
        self.shared.settings.timeout + API_TIMEOUT
    }

    /// How long until an object is looked at again.
    pub fn poll_after(&self, object: &Value) -> Option<Duration> {
        let now = self.shared.engine.clock.now();
        self.shared.settings.poll_after(object, now, self.shared.seed)
    }
}

fn definition() -> GroupVersionKind {
    GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
}

/// Begins to watch a kind as soon as it is served, and again when it returns.
struct Gate {
    engine: Arc<Engine>,
    groups: BTreeSet<&'static str>,
}

impl Reconciler for Gate {
    async fn reconcile(&self, key: &Key, _: &RunLog) -> Result<Next> {
        if let Some((_, group)) = key.name.split_once('.')
            && self.groups.contains(group)
        {
            self.engine.cluster.forget_group(group);
            self.engine.watches.definitions_changed(group);
        }
        Ok(Next::Wait)
    }
}

/// A provider that runs. It stops when dropped; the one that starts next continues its work.
pub struct RunningProvider {
    _controllers: Vec<Controller>,
    engine: Arc<Engine>,
}

impl RunningProvider {
    /// What its watches have reported.
    pub fn mirrors(&self) -> Vec<Arc<Mirror>> {
        self.engine.watches.mirrors()
    }

    /// Whether all events are written.
    pub fn is_idle(&self) -> bool {
        self.engine.events.is_idle()
    }
}

impl Drop for RunningProvider {
    fn drop(&mut self) {
        self.engine.stop();
    }
}
