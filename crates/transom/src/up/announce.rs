//! The messages of `transom up` to the user: sentences, or JSON objects with `--log-format json`.

use crate::plane::DataLocation;
use anstyle::{AnsiColor, Style};
use std::fmt::Display;
use std::io::Write;
use std::net::SocketAddr;
use transom_console::{Failure, LogFormat};
use transom_controllers::Notice;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

#[derive(Clone, Copy)]
pub(super) struct Announcer {
    pub(super) format: LogFormat,
    pub(super) in_memory: bool,
}

impl Announcer {
    /// The plane answers requests. The line on stdout is machine-readable.
    pub(super) fn serving(self, address: SocketAddr, location: &DataLocation) {
        let kubeconfig = location.kubeconfig.display();
        let data = location.data_dir.display();
        match (self.format, self.in_memory) {
            (LogFormat::Json, true) => {
                tracing::info!(target: "transom", version = VERSION, %address, %kubeconfig, in_memory = true, "serving");
            }
            (LogFormat::Json, false) => {
                tracing::info!(target: "transom", version = VERSION, %address, %kubeconfig, data_dir = %data, "serving");
            }
            (LogFormat::Text, true) => {
                print(format!(
                    "Transom {VERSION} serves https://{address}, data in memory (nothing survives a stop)."
                ));
            }
            (LogFormat::Text, false) => {
                print(format!("Transom {VERSION} serves https://{address}, data in {data}."));
            }
        }
        if self.format == LogFormat::Text {
            print("In another terminal:");
        }
        // The parent process may have closed stdout.
        let _ = writeln!(anstream::stdout(), "export KUBECONFIG={kubeconfig}");
        if self.format == LogFormat::Text {
            print("kubectl get namespaces");
        }
    }

    /// An object that users wait for became ready, or failed.
    pub(super) fn notice(self, notice: &Notice) {
        let Notice { kind, namespace, name, problem } = notice;
        match (self.format, problem) {
            (LogFormat::Json, None) => tracing::info!(target: "transom", kind, namespace, name, "ready"),
            (LogFormat::Json, Some(problem)) => {
                tracing::warn!(target: "transom", kind, namespace, name, problem, "does not work");
            }
            (LogFormat::Text, problem) => {
                let slash = if namespace.is_empty() { "" } else { "/" };
                let object = format!("{kind} {namespace}{slash}{name}");
                match problem {
                    None => print(format!("{GOOD}{object} is ready.{GOOD:#}")),
                    Some(problem) => print(format!("{BAD}{object} does not work:{BAD:#} {problem}")),
                }
            }
        }
    }

    /// The plane stopped on a signal.
    pub(super) fn stopped(self) {
        match (self.format, self.in_memory) {
            (LogFormat::Json, _) => tracing::info!(target: "transom", "stopped"),
            (LogFormat::Text, true) => print("Stopped; nothing is kept."),
            (LogFormat::Text, false) => print("Stopped; everything acknowledged is on disk."),
        }
    }

    pub(super) fn failed(self, failure: &Failure) {
        let text = failure.to_string();
        match self.format {
            LogFormat::Json => {
                tracing::error!(target: "transom", "{}", text.strip_prefix("error: ").unwrap_or(&text));
            }
            LogFormat::Text => print(text),
        }
    }
}

/// Prints a line for the user. A failure to print, on a full disk for example, must not end the process.
fn print(line: impl Display) {
    let _ = writeln!(anstream::stderr(), "{line}");
}
