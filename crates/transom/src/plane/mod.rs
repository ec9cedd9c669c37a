//! The composition root: the stages that a control plane is assembled from. Each stage is a value that the next one takes.
//!
//! | stage | takes | gives |
//! |---|---|---|
//! | [`DataLocation`] | flags | the directories, and what to remove when the start fails |
//! | [`open_store`] | the location | the store |
//! | [`ApiServer`](server::ApiServer) | the store, the location, `Links`(links::Links) | the API server, its certificates, its upkeep |
//! | [`kube::Client`] | `ApiServer::client`; for controllers on a cluster, a kubeconfig | the API |
//! | [`ControllerManager`](controllers::ControllerManager) | the client, `Links`, flags | running controllers and their functions |
//! | [`Listener`](listener::Listener) | the API server, flags | an HTTPS endpoint |
//!
//! [`EmbeddedPlane`] is all of them in one process. Controllers take a client and nothing else of the server, so the
//! same stage serves controllers that run against a cluster. `Links` holds what would otherwise be a cycle between
//! stages. This module decides nothing about objects or requests: it only connects crates.

mod args;
mod controllers;
#[cfg(debug_assertions)]
mod crash_injection;
mod data_location;
mod embedded;
mod functions;
mod kubeconfig;
mod links;
mod listen;
mod listener;
mod pki;
mod runtimes;
mod server;
mod slow_headers;
mod store;
mod usage_protection;

pub(crate) use args::{ControllerArgs, DataArgs, ListenerArgs};
pub(crate) use data_location::{DataLocation, default_data_dir};
pub(crate) use embedded::{EmbeddedOptions, EmbeddedPlane};
pub(crate) use runtimes::Runtimes;
pub(crate) use store::{explain, open_store};

#[cfg(test)]
mod tests {
    use super::controllers::ControllerManager;
    use super::links::Links;
    use super::server::ApiServer;
    use super::*;
    use clap::Parser;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::runtime::Handle;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        data: DataArgs,
        #[command(flatten)]
        controllers: ControllerArgs,
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn controllers_need_a_client_and_no_listener() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = dir.path().join("data");
        let flags = Flags::parse_from(["test", "--in-memory", "--data-dir", data_dir.to_str().unwrap()]);
        let location = DataLocation::resolve(&flags.data).unwrap();
        let store = open_store(&flags.data, &location).unwrap();
        let links = Links::default();
        let api = ApiServer::start(store.clone(), &location, &links, true).await.unwrap();
        let (_, is_ready) = links.controllers_ready();
        assert!(!is_ready(), "no controllers have started");
        let (templates, runtime) = (location.templates_dir(), Handle::current());
        let starting = ControllerManager::start(
            api.client(),
            &flags.controllers,
            &templates,
            &links,
            Arc::new(|_| {}),
            &runtime,
        );
        let manager = starting.await.unwrap();
        let ready = async {
            while !is_ready() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), ready).await.expect("the controllers become ready");
        drop(manager);
        api.server.stop();
        store.shutdown().await;
    }
}
