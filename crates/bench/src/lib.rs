//! `transom-bench`: benchmarks of servers, planes and functions, from outside of their processes.
//!
//! | command | measures |
//! |---|---|
//! | `server` | any Kubernetes API server: latency, throughput, memory |
//! | `plane` | a whole control plane, its own or one that runs: from a composite resource to what it composes |
//! | `large` | a control plane with composite resources of thousands of resources, and the latency of other requests meanwhile |
//! | `function` | one call of a function: of a built-in function in this process, and of function servers |
//! | `solver` | the resolution of dependencies between many packages, in this process |
//!
//! Every scenario runs a fixed number of requests and stops. Servers and planes are used only through the Kubernetes
//! API: this crate must not know how they work inside, so that any implementation can be measured.

#![warn(missing_docs)]

mod client;
mod failure;
mod function;
mod large;
mod load;
mod plane;
mod process;
mod server;
mod solver;
mod target;

pub use failure::Failure;

use clap::{Parser, Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Measure Transom, or any Kubernetes API server.
#[derive(Parser)]
#[command(
    name = "transom-bench",
    version,
    after_help = "\
Examples:
  transom-bench plane
  transom-bench server --kubeconfig ./plane/kubeconfig --pid 4711"
)]
pub struct Bench {
    #[command(subcommand)]
    command: Command,

    /// The format of the figures
    #[arg(short, long, global = true, default_value = "text", value_name = "FORMAT")]
    output: Format,

    /// The transom binary to start planes with [default: the one beside this binary]
    #[arg(long, global = true, env = "TRANSOM_BIN", value_name = "FILE")]
    transom: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    Server(server::Options),
    Plane(plane::Options),
    Large(large::Options),
    Function(function::Options),
    Solver(solver::Options),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// One number, by a name that stays the same from run to run.
#[derive(Debug)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// How much.
    pub value: f64,
    /// The unit of the value.
    pub unit: &'static str,
}

impl Figure {
    fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit }
    }
}

impl Bench {
    /// Measures what the command line asks for.
    pub fn run(&self) -> Result<Vec<Figure>, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|e| Failure::new(format!("cannot start the runtime: {e}")))?;
        match &self.command {
            Command::Server(options) => runtime.block_on(server::run_all(options)),
            Command::Plane(options) => runtime.block_on(plane::run_all(&self.transom()?, options)),
            Command::Large(options) => runtime.block_on(large::run_all(&self.transom()?, options)),
            Command::Function(options) => function::run(options),
            Command::Solver(options) => solver::run(options),
        }
    }

    /// Prints figures to stdout in the format that the command line asks for.
    pub fn print(&self, figures: &[Figure]) {
        match self.output {
            Format::Text => {
                for Figure { name, value, unit } in figures {
                    anstream::println!("{name:<44} {value:>12.2} {unit}");
                }
            }
            Format::Json => {
                let figure = |f: &Figure| json!({"name": f.name, "value": f.value, "unit": f.unit});
                let all: Value = figures.iter().map(figure).collect();
                anstream::println!("{all}");
            }
        }
    }

    fn transom(&self) -> Result<PathBuf, Failure> {
        if let Some(file) = &self.transom {
            return Ok(file.clone());
        }
        let this = std::env::current_exe().map_err(|e| {
            Failure::new(format!("cannot find the transom binary: {e}")).remedy("pass --transom FILE")
        })?;
        Ok(this.with_file_name("transom"))
    }
}

/// A multiple of the usual number of requests.
fn factor(text: &str) -> Result<f64, String> {
    let within = |factor: &f64| (0.001..=100.0).contains(factor);
    text.parse().ok().filter(within).ok_or_else(|| "a factor is a number from 0.001 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Bench::command().debug_assert();
    }

    #[test]
    fn factors_are_bounded() {
        assert_eq!(factor("0.5"), Ok(0.5));
        for bad in ["", "x", "0", "-1", "inf", "NaN", "101"] {
            assert!(factor(bad).is_err(), "{bad}");
        }
    }

    /// Every command with its path and its help.
    fn commands(command: &clap::Command, path: &str, found: &mut Vec<(String, String)>) {
        let path = format!("{path} {}", command.get_name());
        found.push((path.clone(), command.get_after_help().map(ToString::to_string).unwrap_or_default()));
        command.get_subcommands().for_each(|c| commands(c, &path, found));
    }

    #[test]
    fn every_help_has_examples_that_are_understood() {
        let mut found = Vec::new();
        commands(&Bench::command(), "", &mut found);
        for (command, help) in found {
            assert!(help.starts_with("Examples:"), "{command}: {help}");
            for example in help.lines().filter(|line| line.starts_with("  transom-bench ")) {
                // The explanation of an example starts after two spaces.
                let words = example.trim().split("  ").next().unwrap_or_default().split_whitespace();
                if let Err(usage) = Bench::try_parse_from(words) {
                    panic!("{example}: {usage}");
                }
            }
        }
    }
}
