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
