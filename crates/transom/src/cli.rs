//! The command line: which commands there are. The flags of a command are beside the command.
//!
//! `former` reads the arguments first: a new command that has a row in `former::PATHS` is not reached until that row is
//! removed. The help of each command ends with examples.

use crate::controller::Controller;
use crate::convert::Convert;
use crate::db::Db;
use crate::former;
use crate::function::Function;
use crate::install::{Install, Uninstall};
use crate::moving::{Adopt, Export, Import};
use crate::provider::ProviderCommand;
use crate::render::Render;
use crate::rollout::PlanArgs;
use crate::up::Up;
use crate::user::User;
use crate::xfn::Xfn;
use crate::xpkg::Xpkg;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::process::ExitCode;
use transom_console::{Failure, print};
use transom_rollout::Rollout;

/// A Crossplane-compatible composition control plane in one binary.
#[derive(Parser)]
#[command(
    name = "transom",
    version,
    about,
    after_help = "\
Examples:
  transom up                                run a control plane, to be used with kubectl
  transom controller                        run the controllers against a Kubernetes cluster
  transom render xr.yaml composition.yaml   print the resources that a Composition composes
  transom convert platform.yaml             print the kinds of the first design as today's
  transom function list                     list the built-in functions
  transom provider list                     list the providers that come with the binary
  transom xpkg build                        make a package of the files in this folder
  transom rollout start apps                move composite resources to a new revision, in waves
  transom user add jane --role view         print a kubeconfig that may only read"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Up(Box<Up>),
    Controller(Box<Controller>),
    Install(Box<Install>),
    Uninstall(Box<Uninstall>),
    Adopt(Box<Adopt>),
    Export(Export),
    Import(Import),
    Render(Box<Render>),
    Convert(Convert),
    #[command(subcommand)]
    Function(Function),
    #[command(subcommand)]
    Provider(ProviderCommand),
    #[command(subcommand)]
    Xfn(Xfn),
    Xpkg(Xpkg),
    #[command(subcommand)]
    Rollout(Box<Rollout<PlanArgs>>),
    #[command(subcommand)]
    User(Box<User>),
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

    /// Flags that `up` has as well are in docs/flags.md.
    #[test]
    fn every_flag_of_the_controller_is_documented() {
        let pages = [include_str!("../../../docs/cluster.md"), include_str!("../../../docs/flags.md")];
        let command = Cli::command();
        let controller = command.find_subcommand("controller").unwrap();
        for argument in controller.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let Some(flag) = argument.get_long() else { continue };
            let texts = [format!("`--{flag}`"), format!("`--{flag} "), format!("`--{flag}[")];
            let is_named = |page: &str| texts.iter().any(|text| page.contains(text.as_str()));
            assert!(pages.into_iter().any(is_named), "--{flag} is in no document");
        }
    }
}
