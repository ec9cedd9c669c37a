//! A whole control plane in one process: every stage on one store.

use super::args::{ControllerArgs, ListenerArgs};
use super::controllers::ControllerManager;
use super::data_location::DataLocation;
use super::kubeconfig;
use super::links::Links;
use super::listener::{Listener, Listening};
use super::packages::package_sources;
use super::server::ApiServer;
use crate::failure::Failure;
use std::net::SocketAddr;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use transom_apiserver::Server;
use transom_controllers::Announce;
use transom_store::Store;

/// A plane that answers requests.
pub(crate) struct EmbeddedPlane {
    server: Server,
    controllers: Option<ControllerManager>,
    upkeep: JoinHandle<()>,
    listening: Listening,
}

/// What the stages after the store are made with.
pub(crate) struct EmbeddedOptions<'a> {
    pub(crate) listener: &'a ListenerArgs,
    /// Without them only the API is served.
    pub(crate) controllers: Option<&'a ControllerArgs>,
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
        let api = ApiServer::start(store.clone(), location, &links, options.controllers.is_some()).await?;
        // Before the controllers: a port in use is reported at once.
        let listener = Listener::bind(options.listener, &api.authority).await?;
        kubeconfig::write(&location.kubeconfig, listener.address(), &api.authority)?;
        let controllers = match options.controllers {
            None => None,
            Some(args) => {
                let templates = location.templates_dir();
                let packages = package_sources(location).await?;
                let starting = ControllerManager::start(
                    api.client(),
                    args,
                    &templates,
                    packages,
                    &links,
                    options.announce,
                    working,
                );
                Some(starting.await?)
            }
        };
        #[cfg(debug_assertions)]
        if let Some(manager) = &controllers {
            links.idleness.observe(store, api.server.clone(), api.client(), manager.controllers());
        }
        let upkeep = api.start_upkeep(working);
        let listening = listener.serve(api.server.clone());
        Ok(Self { server: api.server, controllers, upkeep, listening })
    }

    /// The address that requests are served on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// Stops in the reverse order. Open requests may finish.
    pub(crate) async fn stop(self) {
        tracing::debug!("stopping");
        drop(self.controllers);
        self.server.stop();
        self.listening.stop().await;
        let _ = self.upkeep.await;
    }
}
