//! Log lines, on stderr.

use clap::{ArgAction, Args, ValueEnum};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The flags of commands that log.
#[derive(Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LogArgs {
    /// The format of log lines
    #[arg(long, default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    /// Log more: -v every reconcile and debug messages, -vv everything
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
}

impl LogArgs {
    /// Starts logging to stderr. `RUST_LOG` takes precedence over `-v`.
    pub(crate) fn init(&self) {
        init(self.log_format, self.verbose);
    }
}

fn init(format: LogFormat, verbose: u8) {
    let level = match verbose {
        // A line for every reconcile would hide the sentences for people.
        0 => "warn,transom=info,transom_controllers=warn,transom_engine=warn",
        1 => "info,transom=debug,transom_apiserver=debug,transom_store=debug",
        _ => "debug,transom=trace,transom_apiserver=trace,transom_store=trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A line that cannot be written, on a full disk for example, must not end the process.
    let builder = builder.log_internal_errors(false);
    match format {
        LogFormat::Json => {
            builder.json().init();
            std::panic::set_hook(Box::new(|panic| tracing::error!(target: "transom", "{panic}")));
        }
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).init(),
    }
}
