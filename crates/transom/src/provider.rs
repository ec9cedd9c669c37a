//! `transom provider`: lists the providers that come with the binary, runs them against any cluster, and prints the logs of
//! those that run from their packages.

use crate::containers::logs::{self, Logs};
use crate::plane::system_clock;
use clap::{Args, Subcommand};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use transom_console::control_plane::ControlPlaneArgs;
use transom_console::{Failure, LogArgs, Signals};
use transom_engine::{Cluster, Metrics, Ownership};
use transom_machine::Printed;
use transom_object::suggest;
use transom_provider::{Context, Provider};

/// Work with providers.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  transom provider list
  transom provider serve provider-sql --kubeconfig ~/.kube/config
  transom provider logs provider-kubernetes -f")]
pub(crate) enum ProviderCommand {
    /// List the providers that come with this binary
    #[command(after_help = "\
Examples:
  transom provider list")]
    List,
    /// Print the CustomResourceDefinitions of a provider, as a list in JSON
    #[command(after_help = "\
Examples:
  transom provider crds provider-sql > crds.json")]
    Crds {
        /// The provider; see `transom provider list`
        #[arg(value_name = "NAME")]
        name: String,
    },
    Serve(ServeProvider),
    /// Print what a provider that runs from its package has printed
    #[command(after_help = "\
Examples:
  transom provider logs provider-kubernetes          of the revision that printed last
  transom provider logs provider-kubernetes -f       and what it prints from now on")]
    Logs(Logs),
}

/// Run a provider against a cluster until a signal arrives. One process at a time: there is no leader election yet
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom provider serve provider-sql                                  the cluster of $KUBECONFIG
  transom provider serve provider-sql --kubeconfig ./plane/kubeconfig  another cluster
  transom provider serve provider-sql --poll 1m                        look at everything once a minute")]
pub(crate) struct ServeProvider {
    /// The provider; see `transom provider list`
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    cluster: ControlPlaneArgs,

    /// How often a managed resource that is as it should be is looked at
    #[arg(long, value_parser = transom_console::duration, value_name = "DURATION")]
    poll: Option<Duration>,

    /// How many reconciles begin in a second
    #[arg(long, value_name = "NUMBER")]
    max_reconcile_rate: Option<u32>,

    /// Do not install the CustomResourceDefinitions
    #[arg(long)]
    skip_crds: bool,

    #[command(flatten)]
    log: LogArgs,
}

pub(crate) fn run(command: ProviderCommand) -> Result<ExitCode, Failure> {
    match command {
        ProviderCommand::List => {
            let names: String = transom_providers::names().map(|name| format!("{name}\n")).collect();
            transom_console::print(names.as_bytes())
        }
        ProviderCommand::Crds { name } => {
            let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": find(&name)?.crds()});
            transom_console::print(format!("{list:#}\n").as_bytes())
        }
        ProviderCommand::Logs(options) => logs::run(&options, Printed::Provider),
        ProviderCommand::Serve(options) => {
            options.log.init();
            transom_console::block_on(serve(options))
        }
    }
}

fn find(name: &str) -> Result<Provider, Failure> {
    transom_providers::find(name).ok_or_else(|| {
        let known: Vec<&str> = transom_providers::names().collect();
        let meant = suggest::did_you_mean(name, known.iter().copied());
        Failure::new(format!("no provider {name:?} comes with this binary"))
            .remedy(meant.unwrap_or_else(|| format!("there are {}", known.join(", "))))
    })
}

async fn serve(options: ServeProvider) -> Result<ExitCode, Failure> {
    let provider = find(&options.name)?.with_settings(|settings| {
        settings.poll_interval = options.poll.or(settings.poll_interval);
        settings.max_reconcile_rate = options.max_reconcile_rate.unwrap_or(settings.max_reconcile_rate);
    });
    let client = options.cluster.client().await?;
    if !options.skip_crds {
        let installed = provider.install(&Cluster::new(client.clone())).await;
        installed.map_err(|e| Failure::new(e.chain().to_string()))?;
    }
    let (clock, seed) = system_clock();
    let running = provider.start(Context {
        client,
        clock,
        metrics: Arc::new(Metrics::default()),
        seed,
        ownership: Ownership::whole(),
    });
    anstream::eprintln!("{} runs", options.name);
    Signals::handle()?.received().await;
    drop(running);
    Ok(ExitCode::SUCCESS)
}
