//! A whole control plane in one process: every stage on one store.

use super::args::{ControllerArgs, ListenerArgs, PackageArgs};
use super::audit::AuditArgs;
use super::controllers::{ControllerManager, MachineAccess, ServerAccess};
use super::data_location::DataLocation;
use super::initial::InitialContent;
use super::kubeconfig;
use super::links::Links;
use super::listener::{Listener, Listening};
use super::oidc::AuthenticationArgs;
use super::packages;
use super::server::{ApiServer, Requests};
use std::net::SocketAddr;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};
use transom_apiserver::Server;
use transom_console::Failure;
use transom_controllers::Announce;
use transom_store::Store;

/// A plane that answers requests.
pub(crate) struct EmbeddedPlane {
    server: Server,
    controllers: Option<ControllerManager>,
    /// Installs what could not be installed at once.
    initial: Option<AbortHandle>,
    upkeep: JoinHandle<()>,
    listening: Listening,
}

/// What the stages after the store are made with.
pub(crate) struct EmbeddedOptions<'a> {
    pub(crate) listener: &'a ListenerArgs,
    pub(crate) audit: &'a AuditArgs,
    pub(crate) authentication: &'a AuthenticationArgs,
    /// Without them only the API is served.
    pub(crate) controllers: Option<&'a ControllerArgs>,
    pub(crate) packages: &'a PackageArgs,
    pub(crate) announce: Announce,
}

impl EmbeddedPlane {
    /// Serves requests on the runtime it is called on; controllers and upkeep run on `working`.
    pub(crate) async fn start(
        options: EmbeddedOptions<'_>,
        location: &DataLocation,
        store: Store,
        working: &Handle,
    ) -> Result<Self, Failure> {
        let links = Links::default();
        let requests =
            Requests { audit: options.audit.open()?, authenticators: options.authentication.open()? };
        let starting =
            ApiServer::start(store.clone(), location, &links, options.controllers.is_some(), requests);
        let api = starting.await?;
        // Before the controllers: a port in use is reported at once.
        let listener = Listener::bind(options.listener, &api.authority).await?;
        kubeconfig::write(&location.kubeconfig, listener.address(), &api.authority)?;
        let (controllers, initial) = match options.controllers {
            None => (None, None),
            Some(args) => {
                let packages = packages::open(options.packages, args, location).await?;
                let registry = packages.sources.registry.clone();
                let wanted = InitialContent::of(options.packages, &packages.given).await?;
                let machine = MachineAccess {
                    address: kubeconfig::reachable(listener.address()),
                    authority: api.authority.certificate_pem().to_owned(),
                };
                let server = ServerAccess { client: api.client(), from_machine: Some(machine) };
                let starting = ControllerManager::start(
                    server,
                    args,
                    location,
                    packages,
                    &links,
                    options.announce.clone(),
                    working,
                );
                let mut manager = starting.await?;
                manager.start_roles(api.role_client(), &links, working, None);
                let later = wanted.install(api.client(), registry, options.announce).await?;
                (Some(manager), later.map(|later| working.spawn(later.run()).abort_handle()))
            }
        };
        #[cfg(debug_assertions)]
        if let Some(manager) = &controllers {
            links.idleness.observe(
                store,
                api.server.clone(),
                api.client(),
                manager.controllers(),
                manager.role_mirrors(),
                manager.providers(),
            );
        }
        let upkeep = api.start_upkeep(working);
        let listening = listener.serve(api.server.clone());
        Ok(Self { server: api.server, controllers, initial, upkeep, listening })
    }

    /// The address that requests are served on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// Stops in the reverse order. Open requests may finish.
    pub(crate) async fn stop(self) {
        tracing::debug!("stopping");
        if let Some(initial) = &self.initial {
            initial.abort();
        }
        if let Some(controllers) = self.controllers {
            controllers.stop().await;
        }
        self.server.stop();
        self.listening.stop().await;
        let _ = self.upkeep.await;
    }
}
