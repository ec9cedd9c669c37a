//! `transom controller`: the controllers of a plane against a Kubernetes cluster.
//!
//! The stages of [`crate::plane`] from the client on, with the probes and metrics that a pod has.

mod args;
mod probes;

pub(crate) use args::Controller;

use crate::plane::{ClusterOptions, ClusterPlane, DataLocation, Runtimes};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::runtime::Handle;
use transom_console::{Failure, Signals};
use transom_controllers::Notice;

pub(crate) fn run(options: &Controller) -> Result<ExitCode, Failure> {
    options.log.init();
    Runtimes::start()?.run(|working| serve(options, working))?;
    tracing::info!(target: "transom", "stopped");
    Ok(ExitCode::SUCCESS)
}

async fn serve(options: &Controller, working: Handle) -> Result<(), Failure> {
    let signals = Signals::handle()?;
    let location = DataLocation::for_cache(options.serving.cache_dir.clone())?;
    let ended = control(options, &location, working, signals).await;
    if location.temporary {
        location.discard();
    }
    ended
}

async fn control(
    options: &Controller,
    location: &DataLocation,
    working: Handle,
    mut signals: Signals,
) -> Result<(), Failure> {
    let client = options.cluster.client().await?;
    let probes = probes::Probes::default();
    let endpoints = probes.serve(&options.serving).await?;
    for address in &endpoints.addresses() {
        tracing::info!(target: "transom", %address, "serves probes and metrics");
    }
    let stages = ClusterOptions {
        client,
        controllers: &options.controllers,
        packages: &options.packages,
        announce: Arc::new(announce),
        webhooks: options.webhooks.webhooks(options.serving.listen_address),
        roles: options.webhooks.enable_rbac_manager,
        election: options.sharing.election(&options.controllers.namespace),
    };
    let starting = ClusterPlane::start(stages, location, &working);
    let plane = tokio::select! {
        started = starting => started?,
        () = signals.received() => return Ok(()),
    };
    probes.started(&plane);
    tracing::info!(target: "transom", version = env!("CARGO_PKG_VERSION"), "controls the cluster");
    signals.received().await;
    signals.exit_on_next();
    plane.stop().await;
    drop(endpoints);
    Ok(())
}

fn announce(notice: &Notice) {
    let Notice { kind, namespace, name, problem } = notice;
    match problem {
        None => tracing::info!(target: "transom", kind, namespace, name, "ready"),
        Some(problem) => tracing::warn!(target: "transom", kind, namespace, name, problem, "does not work"),
    }
}
