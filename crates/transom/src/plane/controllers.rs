//! The controllers and their functions, on any client: of the server in this process, or of a cluster.

use super::args::ControllerArgs;
use super::data_location::DataLocation;
use super::functions::Functions;
use super::links::Links;
use super::packages::Packages;
use super::providers::Providers;
use crate::containers::FunctionRuntimes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use transom_console::Failure;
use transom_controllers::{Announce, Context, Controllers, Options, PackageSources, RoleManager};
#[cfg(target_os = "linux")]
use transom_deploy::CertificateStore;
#[cfg(debug_assertions)]
use transom_engine::Mirror;
use transom_engine::{Clock, Cluster};
#[cfg(target_os = "linux")]
use transom_machine::PlaneAccess;
use transom_machine::{HostResources, SecretCredentials};
use transom_object::time::Timestamp;
use transom_oci::ImageSource;

/// How long a function in a container may take to end when it is asked to.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// How the server is reached.
pub(crate) struct ServerAccess {
    /// By the controllers.
    pub(crate) client: kube::Client,
    /// By what packages run. Without it packages run in the cluster of the server.
    pub(crate) from_machine: Option<MachineAccess>,
}

/// How programs of packages reach the server from this machine.
pub(crate) struct MachineAccess {
    pub(crate) address: SocketAddr,
    /// The authority of the server's certificate, in PEM.
    pub(crate) authority: String,
}

impl ServerAccess {
    /// The server of a cluster.
    pub(crate) fn of_cluster(client: kube::Client) -> Self {
        Self { client, from_machine: None }
    }
}

/// What controllers are started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To control the API server in this process.
    Plane,
    /// To control a cluster.
    Cluster,
    /// To find out what they would do: the kinds are not installed.
    Rehearsal,
}

/// Running controllers, and the tasks that belong to them. They stop when dropped.
pub(crate) struct ControllerManager {
    controllers: Arc<Controllers>,
    roles: Option<RoleManager>,
    #[cfg_attr(
        not(debug_assertions),
        expect(dead_code, reason = "only tests look at it; dropping it stops it")
    )]
    providers: Arc<Providers>,
    cache_expiry: Option<AbortHandle>,
    runtimes: FunctionRuntimes,
}

/// The system clock, and a seed that differs between starts.
pub(crate) fn system_clock() -> (Clock, u64) {
    let now = Timestamp::now();
    (Clock::starting_at(now), u64::try_from(now.as_microsecond()).unwrap_or_default())
}

impl Drop for ControllerManager {
    fn drop(&mut self) {
        self.roles = None;
        if let Some(task) = &self.cache_expiry {
            task.abort();
        }
    }
}

impl ControllerManager {
    /// Starts the controllers and everything they do on `runtime`. Functions read templates below one directory only, and
    /// those from packages keep their files in another one.
    pub(crate) async fn start(
        server: ServerAccess,
        args: &ControllerArgs,
        location: &DataLocation,
        packages: Packages,
        links: &Links,
        announce: Announce,
        runtime: &Handle,
    ) -> Result<Self, Failure> {
        install_telemetry(args, runtime)?;
        let client = server.client.clone();
        let (clock, seed) = system_clock();
        let functions = functions(server, args, location, packages.images, links, clock)?;
        let (cache, runtimes) = (functions.cache(), functions.runtimes());
        let (metrics, ownership) = (links.metrics.clone(), links.ownership.clone());
        let namespace = args.namespace.clone();
        let providers = Providers::new(client.clone(), clock, metrics, seed, ownership, namespace);
        let providers = Arc::new(providers);
        let packages = PackageSources { builtin_providers: providers.clone(), ..packages.sources };
        let context = Context {
            providers: runtimes.providers(),
            announce,
            metrics: links.metrics.clone(),
            protection: links.protection.clone(),
            ownership: links.ownership.clone(),
            options: Options {
                seed,
                remote: links.purpose != Purpose::Plane,
                install: links.purpose != Purpose::Rehearsal,
                conversion: links.conversion.clone(),
                ..args.options()
            },
            ..Context::new(client, functions.runner(), functions.installer(), packages, clock)
        };
        let controllers = start_all(context, providers.clone(), links.purpose, runtime).await?;
        links.set_readiness(controllers.readiness());
        let cache_expiry =
            cache.map(|cache| runtime.spawn(async move { cache.expire().await }).abort_handle());
        Ok(Self { controllers: Arc::new(controllers), roles: None, providers, cache_expiry, runtimes })
    }

    /// Starts what makes the roles of definitions and providers, on `runtime`, with a client that may do that. `deployed_in`
    /// is the namespace in which providers run as Deployments.
    pub(super) fn start_roles(
        &mut self,
        client: kube::Client,
        links: &Links,
        runtime: &Handle,
        deployed_in: Option<String>,
    ) {
        let _tasks_run_there = runtime.enter();
        let (clock, _) = system_clock();
        let (metrics, ownership) = (links.metrics.clone(), links.ownership.clone());
        self.roles = Some(RoleManager::start(client, clock, metrics, ownership, deployed_in));
    }

    /// Stops the controllers, then what runs functions.
    pub(super) async fn stop(self) {
        let runtimes = self.runtimes.clone();
        drop(self);
        runtimes.stop().await;
    }

    /// What the watches of the role manager have reported.
    #[cfg(debug_assertions)]
    pub(super) fn role_mirrors(&self) -> Vec<Arc<Mirror>> {
        self.roles.iter().flat_map(RoleManager::mirrors).collect()
    }

    /// The controllers.
    pub(super) fn controllers(&self) -> &Arc<Controllers> {
        &self.controllers
    }

    /// The providers that come with the binary.
    #[cfg(debug_assertions)]
    pub(super) fn providers(&self) -> &Arc<Providers> {
        &self.providers
    }
}

/// Sends spans to the collector that the flags name, if they name one.
fn install_telemetry(args: &ControllerArgs, runtime: &Handle) -> Result<(), Failure> {
    let Some(endpoint) = &args.otlp_endpoint else { return Ok(()) };
    let _entered = runtime.enter();
    transom_telemetry::install(endpoint, "transom").map_err(|error| {
        Failure::new(error.to_string())
            .remedy("give --otlp-endpoint the address of a collector, or leave it out")
    })
}

/// What runs functions and providers: on this machine, or in the cluster of the server.
fn functions(
    server: ServerAccess,
    args: &ControllerArgs,
    location: &DataLocation,
    images: Arc<dyn ImageSource>,
    links: &Links,
    clock: Clock,
) -> Result<Functions, Failure> {
    let ServerAccess { client, from_machine } = server;
    let credentials = SecretCredentials { client: client.clone(), namespace: args.namespace.clone() };
    let place = HostResources {
        dir: location.containers_dir(),
        images,
        credentials: Arc::new(credentials),
        grace: STOP_WITHIN,
    };
    let cluster = Cluster::new(client.clone()).writing_by(&links.ownership);
    let in_cluster = from_machine.is_none().then(|| (cluster.clone(), clock));
    let templates = location.templates_dir();
    let mut functions = Functions::new(&templates, args, place, links.account.clone(), in_cluster)?;
    #[cfg(target_os = "linux")]
    if let Some(MachineAccess { address, authority }) = from_machine {
        let certificates = CertificateStore::new(cluster.clone(), &args.namespace, clock);
        let (namespace, privileged) = (args.namespace.clone(), links.privileged.clone());
        let access = PlaneAccess { address, authority, namespace, client, cluster, certificates, privileged };
        functions = functions.with_providers(args, access);
    }
    Ok(match args.cache() {
        Some(options) => functions.cached(options),
        None => functions,
    })
}

/// Starts the controllers, and the providers that always run.
async fn start_all(
    context: Context,
    providers: Arc<Providers>,
    purpose: Purpose,
    runtime: &Handle,
) -> Result<Controllers, Failure> {
    let starting = async move {
        let controllers = Controllers::start(context).await?;
        if purpose != Purpose::Rehearsal {
            providers.start_always().await?;
        }
        Ok::<_, transom_engine::Error>(controllers)
    };
    let failed = |e: String| Failure::new(format!("cannot start the controllers: {e}"));
    let started = runtime.spawn(starting).await.map_err(|e| failed(e.to_string()))?;
    started.map_err(|e| failed(e.chain().to_string()))
}
