//! The command line.

use crate::failure::Failure;
use crate::render::Render;
use crate::up::Listen;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// A Crossplane-compatible composition control plane in one binary.
#[derive(Parser)]
#[command(
    name = "transom",
    version,
    about,
    after_help = "\
Examples:
  transom render xr.yaml composition.yaml   show what a Composition makes of a composite resource
  transom up                                run a control plane, to be used with kubectl
  transom function list                     list the functions that are built in"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Render(Box<Render>),
    Up(Box<Up>),
    #[command(subcommand)]
    Function(Function),
    #[command(subcommand)]
    Db(Db),
    /// Print a script that completes commands and flags in a shell
    #[command(after_help = "\
Examples:
  source <(transom completion bash)                                  for this session of bash
  transom completion zsh > \"${fpath[1]}/_transom\"                  for every session of zsh
  transom completion fish > ~/.config/fish/completions/transom.fish  for every session of fish")]
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Print the version
    #[command(after_help = "\
Examples:
  transom version")]
    Version,
    #[command(subcommand, hide = true)]
    Composition(Composition),
    #[command(subcommand, hide = true)]
    Beta(Beta),
}

/// Work with Compositions.
#[derive(Subcommand)]
pub(crate) enum Composition {
    Render(Box<Render>),
}

/// Where commands were before they were finished.
#[derive(Subcommand)]
pub(crate) enum Beta {
    Render(Box<Render>),
}

/// Work with the functions that are built in.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  transom function list
  transom function serve function-auto-ready --insecure")]
pub(crate) enum Function {
    /// List the functions that are built in
    #[command(after_help = "\
Examples:
  transom function list")]
    List,
    Serve(ServeFunction),
}

/// Serve a built-in function over gRPC, as its own image would
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom function serve function-auto-ready --insecure            in plain text on port 9443
  transom function serve function-auto-ready --tls-certs-dir ./tls  with mutual TLS")]
pub(crate) struct ServeFunction {
    /// Which one; see `transom function list`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) options: transom_function::ServeOptions,
}

/// Run the control plane: an embedded Kubernetes API server on a durable store, controllers and functions.
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

    /// Address or name, and port, to serve HTTPS on; port 0 picks a free one, :PORT is on the loopback address
    #[arg(long, default_value = "127.0.0.1:6443", value_parser = Listen::parse, value_name = "HOST:PORT")]
    pub(crate) listen: Listen,

    /// Keep everything in memory: nothing is written but the kubeconfig, and nothing survives
    #[arg(long)]
    pub(crate) in_memory: bool,

    /// Serve the API alone: no controllers, and none of Crossplane's kinds
    #[arg(long)]
    pub(crate) api_server_only: bool,

    /// Where to write the admin kubeconfig [default: DIR/kubeconfig]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Another DNS name or IP address for the server's certificate; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_san: Vec<String>,

    /// Certificates (tls.crt, tls.key, ca.crt) to call functions with over mutual TLS; in plain text without
    #[arg(long, env = "TLS_CLIENT_CERTS_DIR", value_name = "DIR")]
    pub(crate) tls_client_certs_dir: Option<PathBuf>,

    /// Refuse what functions require in their answers; what a Composition gives them is given all the same
    #[arg(long)]
    pub(crate) disable_extra_resources: bool,

    /// Cache the responses of functions for as long as they allow (their TTL)
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set, value_name = "BOOL")]
    pub(crate) enable_function_response_cache: bool,

    /// The longest that a response is cached, whatever its TTL; 0 for no limit
    #[arg(long, default_value = "24h", value_parser = duration, value_name = "DURATION")]
    pub(crate) xfn_cache_max_ttl: Duration,

    /// The most memory that cached responses may take, in MiB
    #[arg(long, default_value_t = 64, value_name = "MIB")]
    pub(crate) xfn_cache_max_size: usize,

    /// Watch what composite resources compose and require; =false polls instead
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set, value_name = "BOOL")]
    pub(crate) enable_realtime_compositions: bool,

    /// Without realtime compositions: how often a composite resource that is ready is reconciled
    #[arg(long, default_value = "1m", value_parser = duration, value_name = "DURATION")]
    pub(crate) poll_interval: Duration,

    /// The shortest interval that the annotation crossplane.io/poll-interval or a function's TTL may ask for
    #[arg(long, default_value = "1s", value_parser = duration, value_name = "DURATION")]
    pub(crate) min_poll_interval: Duration,

    /// How long past changes are kept for watches to resume from
    #[arg(long, default_value = "5m", value_parser = duration, value_name = "DURATION")]
    pub(crate) history_window: Duration,

    /// How log lines look
    #[arg(long, default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    /// Log more: -v every reconcile and debug messages, -vv everything
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
    /// Read everything and report damage; fails if there is any
    #[command(after_help = "\
Examples:
  transom db verify --data-dir ./plane")]
    Verify(DbPlace),
    /// Write a damaged store anew: without loss where it still opens, else up to the first damage. Keeps the old files
    #[command(after_help = "\
Examples:
  transom db repair --data-dir ./plane")]
    Repair(DbPlace),
}

#[derive(Args)]
pub(crate) struct DbPlace {
    /// The data directory of `transom up`
    #[arg(long, env = "TRANSOM_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// What the wrong use of a command exits with, as Crossplane's own command line does.
const USAGE: u8 = 80;

/// Prints help to stdout, and what is wrong with the command line to stderr.
pub(crate) fn explain(mut usage: clap::Error) -> ExitCode {
    suggest_only_what_is_shown(&mut usage);
    // If printing fails there is nowhere left to report that.
    let _ = usage.print();
    if usage.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// Removes commands that the help does not list from the suggestions of an error.
fn suggest_only_what_is_shown(usage: &mut clap::Error) {
    let suggested = match usage.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names.clone(),
        Some(ContextValue::String(name)) => vec![name.clone()],
        _ => return,
    };
    let hidden: Vec<String> = Cli::command()
        .get_subcommands()
        .filter(|command| command.is_hide_set())
        .map(|command| command.get_name().to_owned())
        .collect();
    let shown: Vec<String> = suggested.into_iter().filter(|name| !hidden.contains(name)).collect();
    match shown.is_empty() {
        true => drop(usage.remove(ContextKind::SuggestedSubcommand)),
        false => drop(usage.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(shown))),
    }
}

pub(crate) fn complete(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown(), "transom", &mut script);
    print(&script)
}

/// The command line without commands that the help does not list.
fn shown() -> clap::Command {
    let all = Cli::command();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new("transom").version(env!("CARGO_PKG_VERSION")).subcommands(commands)
}

pub(crate) fn print_version() -> Result<ExitCode, Failure> {
    print(Cli::command().render_version().as_bytes())
}

/// Prints the result of a command. A reader that has seen enough, such as `head`, is no failure.
pub(crate) fn print(text: &[u8]) -> Result<ExitCode, Failure> {
    match std::io::stdout().lock().write_all(text) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to stdout: {e}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Go's durations, which Kubernetes users write: `90s`, `5m`, `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let nanos = transom_object::time::parse_duration(text)
        .map_err(|_| format!("{text:?} is not a duration; write it like 90s, 5m or 1h30m"))?;
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| "a duration cannot be negative".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// What a wrong command line is answered with.
    fn said(arguments: &[&str]) -> String {
        let mut usage = match Cli::try_parse_from([&["transom"], arguments].concat()) {
            Ok(_) => panic!("{arguments:?} is understood"),
            Err(usage) => usage,
        };
        suggest_only_what_is_shown(&mut usage);
        usage.render().to_string()
    }

    #[test]
    fn hidden_commands_are_not_suggested() {
        assert!(said(&["rendr"]).contains("'render'"), "{}", said(&["rendr"]));
        for hidden in ["compositon", "bets"] {
            let said = said(&[hidden]);
            assert!(!said.contains("'composition'") && !said.contains("'beta'"), "{said}");
        }
    }

    fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, String)>) {
        let path = format!("{path} {}", command.get_name());
        found.push((path.clone(), command.get_after_help().map(ToString::to_string).unwrap_or_default()));
        command.get_subcommands().filter(|c| !c.is_hide_set()).for_each(|c| leaves(c, &path, found));
    }

    #[test]
    fn every_help_has_examples_that_are_understood() {
        let mut commands = Vec::new();
        leaves(&Cli::command(), "", &mut commands);
        for (command, help) in commands {
            let examples: Vec<&str> = help.lines().filter(|line| line.starts_with("  transom ")).collect();
            assert!(help.starts_with("Examples:"), "{command}: {help}");
            for example in examples {
                // What an example is for stands after two spaces.
                let words = example.trim().split("  ").next().unwrap_or_default().split_whitespace();
                let words: Vec<&str> = words.take_while(|word| *word != ">").collect();
                if let Err(usage) = Cli::try_parse_from(&words) {
                    panic!("{example}: {usage}");
                }
            }
        }
    }

    #[test]
    fn every_flag_of_up_is_documented() {
        let page = include_str!("../../../docs/flags.md");
        let command = Cli::command();
        let up = command.find_subcommand("up").unwrap();
        let flags: Vec<&str> = up.get_arguments().filter_map(|flag| flag.get_long()).collect();
        assert!(flags.len() > 15, "{flags:?}");
        for flag in &flags {
            let row = |line: &str| {
                let cell =
                    line.strip_prefix("| `").unwrap_or_default().split(" |").next().unwrap_or_default();
                cell.split(['`', ' ', '[', ',']).any(|word| word.strip_prefix("--") == Some(*flag))
            };
            assert!(page.lines().any(row), "docs/flags.md has no row for --{flag}");
        }
        let documented = page.lines().filter(|line| line.starts_with("| `-")).count();
        assert_eq!(documented, flags.len(), "docs/flags.md has a row for a flag that does not exist");
        for variable in up.get_arguments().filter_map(|flag| flag.get_env()) {
            assert!(page.contains(variable.to_str().unwrap()), "{variable:?}");
        }
    }

    #[test]
    fn durations_are_go_durations() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert!(duration("5 minutes").is_err());
        assert!(duration("-5s").is_err());
    }
}
