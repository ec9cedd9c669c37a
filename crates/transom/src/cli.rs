//! The command line: which commands there are. The flags of a command are beside the command.

use crate::db::Db;
use crate::failure::Failure;
use crate::former;
use crate::function::Function;
use crate::render::Render;
use crate::rollout::Rollout;
use crate::up::Up;
use crate::xpkg::Xpkg;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::io::Write;
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
  transom up                                run a control plane, to be used with kubectl
  transom render xr.yaml composition.yaml   print the resources that a Composition composes
  transom function list                     list the built-in functions
  transom xpkg build                        make a package of the files in this folder
  transom rollout start apps                move composite resources to a new revision, in waves"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Up(Box<Up>),
    Render(Box<Render>),
    #[command(subcommand)]
    Function(Function),
    #[command(subcommand)]
    Xpkg(Xpkg),
    #[command(subcommand)]
    Rollout(Box<Rollout>),
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
}

/// The exit code for a wrong command line, as of Crossplane's own.
const USAGE_ERROR: u8 = 80;

/// Reads the command line, whatever names its command had before. Otherwise the process ends with this code: help was
/// printed to stdout, or an error of the command line to stderr.
pub(crate) fn read(arguments: Vec<OsString>) -> Result<Cli, ExitCode> {
    let (arguments, notice) = former::translate(arguments).map_err(|failure| {
        failure.report();
        ExitCode::from(USAGE_ERROR)
    })?;
    if let Some(notice) = notice {
        anstream::eprintln!("notice: {notice}");
    }
    Cli::try_parse_from(arguments).map_err(|usage| {
        // If printing fails there is nowhere left to report that.
        let _ = usage.print();
        if usage.use_stderr() { ExitCode::from(USAGE_ERROR) } else { ExitCode::SUCCESS }
    })
}

pub(crate) fn complete(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "transom", &mut script);
    print(&script)
}

pub(crate) fn print_version() -> Result<ExitCode, Failure> {
    print(Cli::command().render_version().as_bytes())
}

/// Prints the result of a command. A reader that closes the pipe early, such as `head`, is not a failure.
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
                // The explanation of an example starts after two spaces.
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
        let flags: Vec<&str> = up
            .get_arguments()
            .filter(|flag| !flag.is_hide_set())
            .filter_map(|flag| flag.get_long())
            .collect();
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
