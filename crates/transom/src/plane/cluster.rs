//! Controllers against a cluster: the stages from the client on.

use super::args::{ControllerArgs, PackageArgs};
use super::controllers::{ControllerManager, Purpose, ServerAccess};
use super::data_location::DataLocation;
use super::initial::InitialContent;
use super::links::Links;
use super::packages;
use super::webhooks::{self, WebhookArgs};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use transom_apiserver::Check;
use transom_console::Failure;
use transom_controllers::Announce;
use transom_engine::{Clock, Cluster, Election, ElectionOptions, Ownership};
use transom_hosting::Webhooks;
use transom_metrics::MetricsRegistry;
use transom_object::time::Timestamp;
use transom_xapi::AccountReference;

/// What the stages after the client are made with.
pub(crate) struct ClusterOptions<'a> {
    pub(crate) client: kube::Client,
    pub(crate) controllers: &'a ControllerArgs,
    pub(crate) packages: &'a PackageArgs,
    pub(crate) announce: Announce,
    /// Without one, this process is alone.
    pub(crate) election: Option<ElectionArgs>,
    /// Without them, used objects can be deleted.
    pub(crate) webhooks: Option<WebhookArgs>,
    /// Whether ClusterRoles are kept for definitions and providers.
    pub(crate) roles: bool,
}

/// How the work is shared with other processes.
pub(crate) struct ElectionArgs {
    pub(crate) options: ElectionOptions,
    pub(crate) shards: u32,
}

/// A part in an election, which goes on until it is stopped.
struct Electing {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Electing {
    fn start(args: ElectionArgs, client: kube::Client, ownership: Ownership, runtime: &Handle) -> Self {
        let (stop, stopped) = watch::channel(false);
        let clock = Clock::starting_at(Timestamp::now());
        let election = Election::new(Cluster::new(client), clock, args.options, ownership);
        Self { stop, task: runtime.spawn(election.run(stopped)) }
    }

    /// Hands everything over to the other processes.
    async fn stop(self) {
        self.stop.send_replace(true);
        let _ = self.task.await;
    }
}

/// Running controllers of a cluster.
pub(crate) struct ClusterPlane {
    controllers: ControllerManager,
    /// Installs what could not be installed at once.
    initial: Option<AbortHandle>,
    election: Option<Electing>,
    _webhooks: Option<Webhooks>,
    links: Links,
}

impl ClusterPlane {
    /// Starts the controllers on `working`.
    pub(crate) async fn start(
        options: ClusterOptions<'_>,
        location: &DataLocation,
        working: &Handle,
    ) -> Result<Self, Failure> {
        let ClusterOptions {
            client,
            controllers: args,
            packages: wanted,
            announce,
            election,
            webhooks,
            roles,
        } = options;
        let shards = election.as_ref().map(|election| election.shards);
        let ownership = shards.map_or_else(Ownership::whole, Ownership::shared);
        let links = Links::of(Purpose::Cluster, ownership.clone());
        let packages = packages::open(wanted, args, location).await?;
        let registry = packages.sources.registry.clone();
        let initial = InitialContent::of(wanted, &packages.given).await?;
        let starting = ControllerManager::start(
            ServerAccess::of_cluster(client.clone()),
            args,
            location,
            packages,
            &links,
            announce.clone(),
            working,
        );
        let mut controllers = starting.await?;
        if roles {
            controllers.start_roles(client.clone(), &links, working, Some(args.namespace.clone()));
        }
        // The caches of the controllers are filled: what this process takes is worked on at once.
        let election = election.map(|args| Electing::start(args, client.clone(), ownership, working));
        let webhooks = match webhooks {
            Some(webhooks) => {
                let own = AccountReference {
                    namespace: args.namespace.clone(),
                    name: args.service_account.clone(),
                };
                Some(webhooks::start(webhooks, client.clone(), own, &links).await?)
            }
            None => None,
        };
        let later = initial.install(client, registry, announce).await?;
        let initial = later.map(|later| working.spawn(later.run()).abort_handle());
        Ok(Self { controllers, initial, election, _webhooks: webhooks, links })
    }

    /// All metrics of the process.
    pub(crate) fn registry(&self) -> MetricsRegistry {
        self.links.registry.clone()
    }

    /// Whether the controllers have seen everything that existed when they started.
    pub(crate) fn ready_check(&self) -> Check {
        self.links.controllers_ready().1
    }

    /// Stops the controllers.
    pub(crate) async fn stop(self) {
        if let Some(initial) = &self.initial {
            initial.abort();
        }
        if let Some(election) = self.election {
            election.stop().await;
        }
        self.controllers.stop().await;
    }
}
