//! `transom adopt --check`: what would change if Transom's controllers took over a cluster.
//!
//! The controllers themselves run, on a client whose writes are dry runs.

use crate::plane::{ControllerArgs, DataLocation, PackageArgs, Rehearsing};
use clap::{Args, ValueEnum};
use std::process::ExitCode;
use std::time::Duration;
use transom_console::control_plane::{ControlPlaneArgs, explain};
use transom_console::{Failure, LogArgs, block_on, duration, print};
use transom_engine::Cluster;
use transom_migrate::{Rehearsal, as_json, as_text, unsupported};

/// The exit code when something would change or is not supported.
const EXIT_WOULD_CHANGE: u8 = 2;

/// Check what would change if Transom controlled a cluster in place of Crossplane. Nothing is written.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom adopt --check
  transom adopt --check --kubeconfig ./admin --output json

It ends with 0 if nothing would change, and with 2 if something would or is not supported.")]
pub(crate) struct Adopt {
    /// Only check. To take over, stop Crossplane and start transom controller
    #[arg(long, required = true)]
    check: bool,

    /// The format of the result
    #[arg(long, short, default_value = "text", value_name = "FORMAT")]
    output: Format,

    /// How long the controllers may take to look at everything
    #[arg(long, default_value = "10m", value_parser = duration, value_name = "DURATION")]
    timeout: Duration,

    #[command(flatten)]
    cluster: ControlPlaneArgs,

    #[command(flatten)]
    controllers: ControllerArgs,

    #[command(flatten)]
    packages: PackageArgs,

    #[command(flatten)]
    log: LogArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn adopt(options: &Adopt) -> Result<ExitCode, Failure> {
    options.log.init();
    block_on(run(options))
}

async fn run(options: &Adopt) -> Result<ExitCode, Failure> {
    let client = options.cluster.client().await?;
    let location = DataLocation::for_cache(None)?;
    let rehearsal = Rehearsal::default();
    let runtime = tokio::runtime::Handle::current();
    let starting = Rehearsing::start(
        rehearsal.client(client.clone()),
        &options.controllers,
        &options.packages,
        &location,
        &runtime,
    );
    let looked = match starting.await {
        Ok(controllers) => controllers.finish(options.timeout).await,
        Err(failure) => Err(failure),
    };
    location.discard();
    looked?;
    let unsupported = unsupported(&Cluster::new(client)).await.map_err(|e| explain("adopt", &e))?;
    let writes = rehearsal.writes();
    let report = match options.output {
        Format::Text => as_text(&writes, &unsupported),
        Format::Json => format!("{}\n", as_json(&writes, &unsupported)),
    };
    print(report.as_bytes())?;
    Ok(if writes.is_empty() && unsupported.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_WOULD_CHANGE)
    })
}
