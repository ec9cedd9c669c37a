//! A control plane in virtual time: the real server over a store without a thread, and the real controllers, which die
//! and are started anew.

use crate::simulation::functions::maker::Makers;
use crate::simulation::ledger::Ledger;
use crate::simulation::packages::registry::SimulatedRegistry;
use crate::simulation::platform::{self, Parts, Sort};
use crate::simulation::wire::Wire;
use crate::usage_protection::UsageProtection;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use transom_apiserver::{Environment, Identity, Server};
use transom_controllers::{Context, Controllers, Options, PackageSources, Protection};
use transom_engine::Clock;
use transom_engine::Cluster;
use transom_function::async_trait;
use transom_object::time::Timestamp;
use transom_packages::trust::{Authority, Evidence, SignatureVerifier};
use transom_packages::{Credentials, Reference};
use transom_runner::{Installer, Resolver, Router};
use transom_store::Store;
use transom_testkit::embedded;
use transom_testkit::rng::Rng;

/// Time from the runtime's clock, chance from a seed.
struct Virtual {
    began: Instant,
    rng: Mutex<Rng>,
}

/// When every simulation begins: 2024-01-01.
fn epoch() -> Timestamp {
    Timestamp::from_second(1_704_067_200).unwrap()
}

fn now(began: Instant) -> Timestamp {
    epoch().checked_add(began.elapsed()).unwrap()
}

impl Environment for Virtual {
    fn now(&self) -> Timestamp {
        now(self.began)
    }

    fn random(&self) -> u128 {
        let mut rng = self.rng.lock().unwrap();
        (u128::from(rng.next_u64()) << 64) | u128::from(rng.next_u64())
    }
}

pub(super) struct Plane {
    pub wire: Arc<Wire>,
    /// The client of the user, whose requests do not pass the wire.
    pub user: Cluster,
    /// Where packages come from.
    pub registry: Arc<SimulatedRegistry>,
    /// What runs the revisions of the simulated function.
    pub makers: Arc<Makers>,
    server: Server,
    tasks: Vec<AbortHandle>,
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.server.stop();
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Plane {
    /// A plane whose platform is established, and whose store remembers so many changes.
    pub(super) async fn new(rng: &mut Rng, history: usize) -> Self {
        let began = Instant::now();
        let history = transom_store::HistoryLimits { max_events: history, ..Default::default() };
        let store = Store::in_step(transom_store::Options { history, ..Default::default() });
        let protection: Arc<Protection> = Arc::default();
        let options = transom_apiserver::Options {
            admission: vec![Box::new(UsageProtection(protection.clone()))],
            environment: Box::new(Virtual { began, rng: Mutex::new(rng.split()) }),
            ..Default::default()
        };
        let wire = Arc::new(Wire::new(rng.split(), Ledger::new(&store)));
        let server = embedded::server_with(&store, options).await;
        let upkeep = server.clone();
        let upkeep = tokio::spawn(async move { upkeep.run_upkeep().await });
        let registry = Arc::new(SimulatedRegistry::new(wire.clone()));
        let makers = Arc::new(Makers::new(wire.clone()));
        let keeper = Keeper {
            server: server.clone(),
            registry: registry.clone(),
            wire: wire.clone(),
            makers: makers.clone(),
            protection,
            rng: rng.split(),
            began,
        };
        let keeper = tokio::spawn(keeper.keep());
        let user = Cluster::new(embedded::kube_client(&server, Identity::admin("user")));
        let tasks = vec![upkeep.abort_handle(), keeper.abort_handle()];
        let plane = Self { wire, user, registry, makers, server, tasks };
        plane.establish().await;
        plane
    }

    async fn establish(&self) {
        let definition = transom_object::GroupVersionKind::new(
            "apiextensions.crossplane.io",
            "v1",
            "CompositeResourceDefinition",
        );
        while self.user.kind(&definition).await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
        self.apply(&platform::function()).await;
        for sort in Sort::ALL {
            self.apply(&platform::definition(sort)).await;
            self.apply(&platform::composition(sort, 0)).await;
        }
        for kind in Sort::ALL.map(Sort::gvk).into_iter().chain([platform::claim_kind()]) {
            while self.user.kind(&kind).await.is_err() {
                sleep(Duration::from_millis(50)).await;
            }
        }
        for namespace in ["one", "two"] {
            let namespace = serde_json::json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
            });
            self.apply(&namespace).await;
        }
    }

    pub(super) async fn apply(&self, object: &Value) -> Value {
        self.user.apply(object, "kubectl").await.unwrap()
    }
}

/// Keeps controllers running.
struct Keeper {
    server: Server,
    registry: Arc<SimulatedRegistry>,
    wire: Arc<Wire>,
    makers: Arc<Makers>,
    protection: Arc<Protection>,
    rng: Rng,
    began: Instant,
}

impl Keeper {
    async fn keep(mut self) {
        let wire = self.wire.clone();
        loop {
            let starting = self.start();
            let started = tokio::select! {
                biased;
                () = wire.crash.notified() => continue,
                started = starting => started,
            };
            match started {
                Ok(controllers) => {
                    wire.crash.notified().await;
                    drop(controllers);
                }
                // A process that cannot start is started again.
                Err(_) => wire.cut(),
            }
            sleep(self.rng.duration(12)).await;
        }
    }

    fn start(&mut self) -> impl Future<Output = transom_engine::Result<Controllers>> + use<> {
        // As every process: names that one generated are not those of the next.
        let options = Options { seed: self.rng.next_u64(), ..Options::default() };
        self.makers.stop_all();
        let functions = Arc::new(Router::default());
        functions.run_in_process("parts", Arc::new(Parts(self.wire.clone())));
        let installer = Installer::new(Resolver::new(["parts"]), self.makers.clone(), functions.clone());
        let read_pull_secret = Arc::new(|_: &_| Ok(Vec::new()));
        let packages = PackageSources::new(self.registry.clone(), read_pull_secret, Arc::new(NoSignatures));
        let (client, clock) = (self.wire.connect(&self.server), Clock::starting_at(now(self.began)));
        let context = Context::new(client, functions, installer, packages, clock);
        Controllers::start(Context { protection: self.protection.clone(), options, ..context })
    }
}

/// Nothing in the simulation is signed.
struct NoSignatures;

#[async_trait]
impl SignatureVerifier for NoSignatures {
    fn trust_root(&self) -> &'static str {
        ""
    }

    async fn evidence(&self, _: &Reference, _: &[Authority], _: &[Credentials]) -> Vec<Evidence> {
        Vec::new()
    }
}
