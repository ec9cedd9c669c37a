//! Log lines on stderr, for people or as JSON, and the flags that choose how much is logged.

use clap::{ArgAction, Args, ValueEnum};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "documentation of the values would be printed in the help of every flag")]
pub enum LogFormat {
    Text,
    Json,
}

/// The flags of commands that log.
#[derive(Args)]
#[command(next_help_heading = "Logging")]
pub struct LogArgs {
    /// The format of log lines
    #[arg(long, default_value = "text", value_name = "FORMAT")]
    pub log_format: LogFormat,

    /// Log more: -v every reconcile and debug messages, -vv everything
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
}

impl LogArgs {
    /// Starts logging to stderr. `RUST_LOG` takes precedence over `-v`.
    pub fn init(&self) {
        init(self.log_format, self.verbose);
    }
}

/// Starts logging to stderr for a command that otherwise does not log.
pub fn init_verbose() {
    init(LogFormat::Text, 1);
}

fn init(format: LogFormat, verbose: u8) {
    let level = match verbose {
        // A line for every reconcile would hide the messages for users.
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
