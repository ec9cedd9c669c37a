//! Log lines, on stderr.

use crate::cli::LogFormat;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// `RUST_LOG` wins over `-v`.
pub(crate) fn init(format: LogFormat, verbose: u8) {
    let level = match verbose {
        0 => "warn,transom=info",
        1 => "info,transom=debug,transom_apiserver=debug,transom_store=debug",
        _ => "debug,transom=trace,transom_apiserver=trace,transom_store=trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Json => builder.json().init(),
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).init(),
    }
}
