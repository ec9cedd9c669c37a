//! One reconciler per kind.
//!
//! [`Controllers::start`] turns any Kubernetes API server into a control plane: it installs Crossplane's kinds and runs
//! their controllers over a `kube::Client`, which may lead to a cluster or to a server in this process. A controller shows
//! only its own decisions: queues, watches, status writes, events and errors are the engine's, decisions about one XR are
//! compose's. Controllers must not know how the server stores objects.
//!
//! | module | what it holds |
//! |---|---|
//! | `definition` | XRDs: CRDs, and the controllers of what they define |
//! | `conversion` | versions of composite resources that are converted by rules, and migration to another stored version |
//! | `composition` | Compositions: revisions, and whether they can run |
//! | `composite` | composite resources: compose, execute, report |
//! | `claim` | claims: synchronised with their composite resources |
//! | `package` | packages: revisions, their objects, dependencies, and which functions can be called |
//! | `managed` | definitions of managed resources: CRDs, and policies that activate them |
//! | `usage` | usages: objects that must not be deleted while they are used |
//! | `roles` | ClusterRoles of definitions and providers, where they are wanted |
//! | `validation` | the validation of definitions, Compositions and packages before they are stored |
//! | `borrowing` | whether the author of a definition may use the service account that it names |
//! | `webhooks` | how the API server is made to call webhooks |
//! | `catalog` | a cache of Compositions, their revisions, those of Functions, and ImageConfigs |
//! | `plane` | what the controllers share |
//!
//! A new kind is a type, a CRD in `crds()` and names in `constants` of `transom_xapi`, its `GroupVersionKind` in
//! `catalog::kinds`, and a module here whose controllers `Controllers` keeps. `transom_migrate` lists what is exported,
//! `transom_packages` what packages may hold. A new API group needs rules in `xapi/src/roles/control_plane.rs` and in
//! `deploy/chart/templates`.

#![warn(missing_docs)]

mod borrowing;
mod catalog;
mod claim;
mod composite;
mod composition;
mod conversion;
mod definition;
mod managed;
mod openapi;
mod package;
mod plane;
mod roles;
mod usage;
mod validation;
mod webhooks;

pub use borrowing::{borrowed_account, review_account};
pub use conversion::{CONVERSION_PATH, ConversionEndpoint, Conversions};
pub use package::{BuiltinProviders, NoProviders, PackageSources, PullSecretError, PullSecretReader};
pub use plane::{Announce, Notice, Options};
pub use roles::RoleManager;
pub use usage::{DeletionDecision, DeletionRequest, IN_USE_REASON, Protection, WEBHOOK};
pub use validation::{VALIDATED, admission_response, installation_problems, refusal, reviewed};
pub use webhooks::{ACCOUNTS_PATH, USAGES_PATH, VALIDATION_PATH, webhook_configurations};

use catalog::Catalog;
use definition::DefinitionControllers;
use package::PackageControllers;
use plane::Plane;
use std::sync::Arc;
use tokio::sync::Semaphore;
use transom_compose::FunctionRunner;
use transom_engine::{
    Clock, Cluster, Controller, Engine, Metrics, Mirror, Ownership, Readiness, Result, Rng, Subscription,
    install_definitions,
};
use transom_runner::{Installer, Problem, ProviderRuntime, Reason, WithoutProviders};
use transom_xapi::constants::owner;
use usage::UsageControllers;

/// What the controllers need.
pub struct Context {
    /// The client of the API server.
    pub client: kube::Client,
    /// Calls functions.
    pub runner: Arc<dyn FunctionRunner>,
    /// Makes functions callable.
    pub functions: Installer,
    /// Runs the programs of Providers.
    pub providers: Arc<dyn ProviderRuntime>,
    /// Where packages come from.
    pub packages: PackageSources,
    /// The source of time.
    pub clock: Clock,
    /// Is called when an object that users wait for becomes ready or fails.
    pub announce: Announce,
    /// The metrics of the controllers.
    pub metrics: Arc<Metrics>,
    /// The usages, which the server asks before it deletes an object.
    pub protection: Arc<Protection>,
    /// Which objects this process reconciles.
    pub ownership: Ownership,
    /// How they behave.
    pub options: Options,
}

impl Context {
    /// For a process that has all shards, reports to nothing and runs no programs of Providers, with options by default.
    /// Whatever assembles controllers begins with this and replaces the fields that it has values for.
    pub fn new(
        client: kube::Client,
        runner: Arc<dyn FunctionRunner>,
        functions: Installer,
        packages: PackageSources,
        clock: Clock,
    ) -> Self {
        let unsupported = Problem::new(Reason::UnsupportedPackage, "providers are not run here");
        Self {
            client,
            runner,
            functions,
            providers: Arc::new(WithoutProviders(unsupported)),
            packages,
            clock,
            announce: Arc::new(|_: &Notice| {}),
            metrics: Arc::default(),
            protection: Arc::default(),
            ownership: Ownership::whole(),
            options: Options::default(),
        }
    }
}

/// The running controllers. They stop when dropped; the controllers that start next continue their work.
pub struct Controllers {
    _definitions: DefinitionControllers,
    _compositions: [Controller; 2],
    _packages: PackageControllers,
    _managed: [Controller; 2],
    _usages: UsageControllers,
    _catalog: Vec<Subscription>,
    readiness: Arc<Readiness>,
    plane: Arc<Plane>,
}

impl Controllers {
    /// Installs the kinds and starts their controllers.
    pub async fn start(context: Context) -> Result<Self> {
        let cluster = Cluster::new(context.client);
        let cluster = if context.options.remote { cluster.remote() } else { cluster };
        if context.options.install {
            install_definitions(&cluster, &transom_xapi::crds().collect::<Vec<_>>(), owner::DEFAULT).await?;
            managed::ensure_default_policy(&cluster, &context.options.activations).await?;
        }
        let plane = Arc::new(Plane {
            engine: Engine::start(cluster, context.clock, context.metrics, owner::DEFAULT)
                .sweeping_every(context.options.sweep_interval)
                .sharing(context.ownership),
            catalog: Arc::<Catalog>::default(),
            rng: Rng::new(context.options.seed),
            runner: context.runner,
            options: context.options,
            announce: context.announce,
            nesting: Default::default(),
            callers: Default::default(),
            large_runs: Semaphore::new(plane::MAX_LARGE_RUNS),
        });
        let catalog = plane.catalog.follow(&plane.watches);
        // Before composite resources are reconciled, their Compositions are cached and their functions can be called.
        for subscription in &catalog {
            subscription.mirror().ready().await?;
        }
        package::resume(&plane, &context.functions).await?;
        let compositions = composition::start(&plane);
        let packages =
            PackageControllers::start(&plane, context.packages, context.functions, context.providers);
        let definitions = DefinitionControllers::start(&plane);
        let managed = managed::start(&plane);
        let queues = definitions
            .queues()
            .chain(packages.queues())
            .chain(managed.iter().map(|controller| controller.queue().clone()))
            .collect();
        let readiness = Arc::new(Readiness::new(plane.watches.clone(), queues));
        Ok(Self {
            _compositions: compositions,
            _packages: packages,
            _managed: managed,
            _usages: UsageControllers::start(&plane, &context.protection),
            _definitions: definitions,
            _catalog: catalog,
            readiness,
            plane,
        })
    }

    /// Whether they have seen everything that existed when they started.
    pub fn readiness(&self) -> Arc<Readiness> {
        self.readiness.clone()
    }

    /// Whether nothing is left to do at the moment: no key runs or is ready to run, and all events are written. Keys that
    /// wait for a time, and changes that the watches have not reported yet, do not count.
    pub fn is_idle(&self) -> bool {
        self.plane.metrics.queues().is_idle() && self.plane.events.is_idle()
    }

    /// Whether something is tried again after a while without a change from outside.
    pub fn awaits_retry(&self) -> bool {
        self.plane.metrics.awaits_retry()
    }

    /// What the watches have reported.
    pub fn mirrors(&self) -> Vec<Arc<Mirror>> {
        self.plane.watches.mirrors()
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        self.plane.stop();
    }
}
