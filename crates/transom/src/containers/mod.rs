//! What runs packages: this machine in containers, or a cluster.
//!
//! | module | what it holds |
//! |---|---|
//! | `args` | the flags for containers |
//! | `logs` | `transom function logs`, `transom provider logs` |
//!
//! `FunctionRuntimes` chooses the `FunctionRuntime` of a command, and stops it: `plane::functions` makes it for `up` and
//! `controller`, `render::runtime` for `render`, `rollout` and `function test`.

mod args;
pub(crate) mod logs;

pub(crate) use args::ContainerArgs;

use std::sync::Arc;
use transom_deploy::ClusterRuntime;
use transom_machine::HostResources;
#[cfg(target_os = "linux")]
use transom_machine::{PackageRuntime, PlaneAccess, ProviderContainers};
use transom_runner::{
    FunctionRuntime, LocalRuntime, Options, Problem, ProviderRuntime, Reason, WithoutProviders,
};

/// What runs functions: in this process, at endpoints, and from their packages if that can be done here.
#[derive(Clone)]
pub(crate) struct FunctionRuntimes {
    runtime: Arc<dyn FunctionRuntime>,
    #[cfg(target_os = "linux")]
    packages: Option<Arc<PackageRuntime>>,
    /// Runs inline functions.
    #[cfg(target_os = "linux")]
    programs: Option<Arc<transom_xfn::Programs>>,
    #[cfg(target_os = "linux")]
    providers: Option<Arc<ProviderContainers>>,
    /// What runs packages in a cluster.
    cluster: Option<Arc<ClusterRuntime>>,
    /// Why Providers are not run.
    without_providers: String,
}

impl FunctionRuntimes {
    #[cfg(target_os = "linux")]
    pub(crate) fn new(
        args: &ContainerArgs,
        place: HostResources,
        local: LocalRuntime,
        options: Options,
    ) -> Self {
        match args.engine() {
            Ok(engine) => {
                tracing::debug!(%engine, "runs functions from their packages");
                let packages = PackageRuntime::new(args.containers(engine), place, local, options);
                let packages = Arc::new(packages);
                let without_providers = "providers are run in a control plane only".to_owned();
                Self {
                    runtime: packages.clone(),
                    packages: Some(packages),
                    programs: None,
                    providers: None,
                    cluster: None,
                    without_providers,
                }
            }
            Err(problem) => Self {
                without_providers: problem.to_string(),
                ..Self::local(local.without_packages(problem.to_string()))
            },
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn new(args: &ContainerArgs, _: HostResources, local: LocalRuntime, _: Options) -> Self {
        let problem = args.engine().err().map(|problem| problem.to_string()).unwrap_or_default();
        Self { without_providers: problem.clone(), ..Self::local(local.without_packages(problem)) }
    }

    /// A runtime without containers.
    pub(crate) fn local(local: LocalRuntime) -> Self {
        Self {
            runtime: Arc::new(local),
            #[cfg(target_os = "linux")]
            packages: None,
            #[cfg(target_os = "linux")]
            programs: None,
            #[cfg(target_os = "linux")]
            providers: None,
            cluster: None,
            without_providers: String::new(),
        }
    }

    /// Packages run in a cluster.
    pub(crate) fn on_cluster(runtime: ClusterRuntime) -> Self {
        let cluster = Arc::new(runtime);
        Self {
            runtime: cluster.clone(),
            #[cfg(target_os = "linux")]
            packages: None,
            #[cfg(target_os = "linux")]
            programs: None,
            #[cfg(target_os = "linux")]
            providers: None,
            cluster: Some(cluster),
            without_providers: String::new(),
        }
    }

    /// Waits for the programs of images as well, when all is stopped.
    #[cfg(target_os = "linux")]
    pub(crate) fn with_programs(mut self, programs: Arc<transom_xfn::Programs>) -> Self {
        self.programs = Some(programs);
        self
    }

    pub(crate) fn runtime(&self) -> Arc<dyn FunctionRuntime> {
        self.runtime.clone()
    }

    /// Runs Providers as well, as clients of a plane.
    #[cfg(target_os = "linux")]
    pub(crate) fn with_providers(mut self, args: &ContainerArgs, access: PlaneAccess) -> Self {
        let packages = self.packages.as_ref();
        let containers = packages.map(|packages| packages.providers(access, args.provider_memory()));
        self.providers = containers.map(Arc::new);
        self
    }

    /// What runs Providers.
    pub(crate) fn providers(&self) -> Arc<dyn ProviderRuntime> {
        if let Some(cluster) = &self.cluster {
            return cluster.clone();
        }
        #[cfg(target_os = "linux")]
        if let Some(providers) = &self.providers {
            return providers.clone();
        }
        let why = format!(
            "the program of a Provider is not run: {}; its managed resources can be created but are not reconciled",
            self.without_providers
        );
        Arc::new(WithoutProviders(Problem::new(Reason::UnsupportedPackage, why)))
    }

    /// Stops all containers, and waits until nothing of them is left.
    pub(crate) async fn stop(&self) {
        #[cfg(target_os = "linux")]
        if let Some(providers) = &self.providers {
            providers.stop().await;
        }
        #[cfg(target_os = "linux")]
        if let Some(packages) = &self.packages {
            packages.stop().await;
        }
        #[cfg(target_os = "linux")]
        if let Some(programs) = &self.programs {
            programs.idle().await;
        }
    }
}
