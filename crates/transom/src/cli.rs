//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A Crossplane-compatible composition control plane in one binary.
#[derive(Parser)]
#[command(name = "transom", version, about, after_help = "Start with `transom up`, then use kubectl.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Up(Box<Up>),
    #[command(subcommand)]
    Db(Db),
}

/// Run the control plane: an embedded Kubernetes API server on a durable store.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom up                                   keep data in the default directory
  transom up --data-dir ./plane                keep data and certificates in ./plane
  transom up --in-memory --listen 127.0.0.1:0  a throw-away plane on a free port")]
pub(crate) struct Up {
    /// Where objects, certificates and the kubeconfig are kept [default: $XDG_DATA_HOME/transom or ~/.local/share/transom]
    #[arg(long, env = "TRANSOM_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Address to serve HTTPS on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:6443", value_name = "ADDR")]
    pub(crate) listen: SocketAddr,

    /// Keep everything in memory: nothing is written but the kubeconfig, and nothing survives
    #[arg(long)]
    pub(crate) in_memory: bool,

    /// Where to write the admin kubeconfig [default: DIR/kubeconfig]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Another DNS name or IP address for the server's certificate; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_san: Vec<String>,

    /// How long past changes are kept for watches to resume from
    #[arg(long, default_value = "5m", value_parser = duration, value_name = "DURATION")]
    pub(crate) history_window: Duration,

    /// How log lines look
    #[arg(long, default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    /// Say more; -vv for everything
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Look after a data directory while no server uses it.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  transom db verify --data-dir ./plane
  transom db repair --data-dir ./plane")]
pub(crate) enum Db {
    /// Read everything and report the first damage
    Verify(DbPlace),
    /// Cut the log at the first damage, keeping a copy of what is cut
    Repair(DbPlace),
}

#[derive(Args)]
pub(crate) struct DbPlace {
    /// The data directory of `transom up`
    #[arg(long, env = "TRANSOM_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// Go's durations, which Kubernetes users write: `90s`, `5m`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let nanos = transom_object::time::parse_duration(text)
        .map_err(|_| format!("{text:?} is not a duration; write it like 90s, 5m or 1h30m"))?;
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| "a duration cannot be negative".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_are_go_durations() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert!(duration("5 minutes").is_err());
        assert!(duration("-5s").is_err());
    }
}
