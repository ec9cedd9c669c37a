//! The composition root: the stages that a control plane is assembled from. Each stage is a value that the next one takes.
//!
//! | stage | takes | gives |
//! |---|---|---|
//! | [`DataLocation`] | flags | the directories, and what to remove when the start fails |
//! | [`open_store`] | the location | the store |
//! | [`ApiServer`](server::ApiServer) | the store, the location, `Links`(links::Links) | the API server, its certificates, its upkeep |
//! | [`kube::Client`] | `ApiServer::client`; for controllers on a cluster, a kubeconfig | the API |
//! | [`Packages`](packages::Packages) | flags, the location, the environment | registries or folders and files in their place, a cache of packages, and the trust root of keyless signatures |
//! | [`ControllerManager`](controllers::ControllerManager) | the client, `Links`, flags, package sources | running controllers and their functions |
//! | [`InitialContent`](initial::InitialContent) | the client, flags, packages | the packages that are installed at the start |
//! | [`Listener`](listener::Listener) | the API server, flags | an HTTPS endpoint |
//!
//! [`EmbeddedPlane`] is all of them in one process. Controllers take a client and nothing else of the server, so the
//! same stage serves controllers that run against a cluster. `Links` holds what would otherwise be a cycle between
//! stages. This module decides nothing about objects or requests: it only connects crates.

mod account_admission;
mod args;
mod audit;
mod cluster;
mod controllers;
mod conversions;
#[cfg(debug_assertions)]
mod crash_injection;
mod data_location;
mod embedded;
mod functions;
#[cfg(debug_assertions)]
mod idleness;
mod initial;
mod installation_admission;
mod kubeconfig;
mod links;
mod listen;
mod listener;
mod oidc;
mod packages;
mod pki;
#[cfg(target_os = "linux")]
mod provider_access;
mod providers;
mod rehearsing;
mod runtimes;
mod server;
mod store;
mod trust;
mod usage_protection;
mod webhook_caller;
mod webhooks;

pub(crate) use args::{ControllerArgs, DataArgs, ListenerArgs, PackageArgs};
pub(crate) use audit::AuditArgs;
pub(crate) use cluster::{ClusterOptions, ClusterPlane, ElectionArgs};
pub(crate) use controllers::system_clock;
pub(crate) use data_location::{DataLocation, default_data_dir, public_trust_root};
pub(crate) use embedded::{EmbeddedOptions, EmbeddedPlane};
pub(crate) use functions::is_builtin;
pub(crate) use oidc::AuthenticationArgs;
pub(crate) use pki::write_private;
pub(crate) use rehearsing::Rehearsing;
pub(crate) use runtimes::Runtimes;
pub(crate) use store::{explain, open_store};
pub(crate) use trust::read as read_trust_root;
pub(crate) use webhooks::WebhookArgs;

#[cfg(test)]
mod tests {
    use super::controllers::{ControllerManager, MachineAccess, ServerAccess};
    use super::links::Links;
    use super::server::{ApiServer, Requests};
    use super::*;
    use clap::Parser;
    use std::collections::{BTreeMap, BTreeSet};
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

    /// The types of families by name, as the tables of docs/metrics.md list them for the API server.
    fn documented_families() -> BTreeMap<String, String> {
        let page = include_str!("../../../../docs/metrics.md");
        let sections = page.split("\n## ").filter(|section| !section.starts_with("Function servers\n"));
        let rows = sections.flat_map(str::lines).filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
            let (name, metric_type) = (cells.next()?.trim_end_matches('`'), cells.next()?);
            let is_metric = ["counter", "gauge", "histogram"].contains(&metric_type);
            is_metric.then(|| (name.to_owned(), metric_type.to_owned()))
        });
        rows.collect()
    }

    async fn every_exposed_family_is_described_and_documented(links: &Links, api: &ApiServer) {
        let documented = documented_families();
        let registered = links.registry.families();
        let registered = registered.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned()));
        assert_eq!(documented, registered.collect(), "left: docs/metrics.md; right: the registry");
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let admin = api.client_of(transom_apiserver::Identity::admin("admin"));
        let exposed = admin.request_text(request).await.unwrap();
        let (mut described, mut found) = (BTreeMap::new(), BTreeSet::new());
        for line in exposed.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').unwrap();
                assert!(help.len() > 5 && help.ends_with('.'), "{line}");
                described.insert(name.to_owned(), String::new());
            } else if let Some((name, kind)) =
                line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' '))
            {
                kind.clone_into(described.get_mut(name).expect("HELP is before TYPE"));
            } else {
                let name = line.split(['{', ' ']).next().unwrap();
                let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|s| name.strip_suffix(s));
                found.insert(of_histogram.unwrap_or(name).to_owned());
            }
        }
        assert_eq!(found, described.keys().cloned().collect(), "left: samples; right: HELP");
        for (name, kind) in &described {
            assert_eq!(documented.get(name), Some(kind), "{name}");
        }
        for name in ["apiserver_request_total", "engine_controllers_started_total", "workqueue_depth"] {
            assert!(found.contains(name), "{name} is not in\n{exposed}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn controllers_need_a_client_and_no_listener() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = dir.path().join("data");
        let flags = Flags::parse_from(["test", "--in-memory", "--data-dir", data_dir.to_str().unwrap()]);
        let location = DataLocation::resolve(&flags.data).unwrap();
        let store = open_store(&flags.data, &location).unwrap();
        let links = Links::default();
        let api =
            ApiServer::start(store.clone(), &location, &links, true, Requests::default()).await.unwrap();
        let (_, is_ready) = links.controllers_ready();
        assert!(!is_ready(), "no controllers have started");
        let runtime = Handle::current();
        let packages = packages::open(&PackageArgs::default(), &flags.controllers, &location).await.unwrap();
        let address = "127.0.0.1:6443".parse().unwrap();
        let machine = MachineAccess { address, authority: String::new() };
        let server = ServerAccess { client: api.client(), from_machine: Some(machine) };
        let starting = ControllerManager::start(
            server,
            &flags.controllers,
            &location,
            packages,
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
        every_exposed_family_is_described_and_documented(&links, &api).await;
        drop(manager);
        api.server.stop();
        store.shutdown().await;
    }
}
