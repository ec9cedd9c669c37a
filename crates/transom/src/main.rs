//! The `transom` binary: commands, and the one place that sees every crate.

mod bench;
mod cli;
mod db;
mod failure;
mod logging;
mod up;

use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let outcome = match cli.command {
        cli::Command::Up(options) => up::run(*options),
        cli::Command::Db(command) => db::run(command),
        cli::Command::Bench(options) => bench::run(&options),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
