//! The `transom` binary: dispatches commands. The only crate that depends on all others.

#![warn(missing_docs)]

mod cli;
mod containers;
mod db;
mod failure;
mod former;
mod function;
mod logging;
mod plane;
mod render;
mod rollout;
mod up;
mod xpkg;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything starts a thread.
    #[cfg(target_os = "linux")]
    if let Some(code) = transom_container::shim::run(&std::env::args_os().collect::<Vec<_>>()) {
        return code;
    }
    let cli = match cli::read(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let outcome = match cli.command {
        cli::Command::Up(options) => up::run(&options),
        cli::Command::Db(command) => db::run(command),
        cli::Command::Render(options) => render::run(*options),
        cli::Command::Function(command) => function::run(command),
        cli::Command::Xpkg(command) => xpkg::run(command),
        cli::Command::Rollout(command) => rollout::run(*command),
        cli::Command::Completion { shell } => cli::complete(shell),
        cli::Command::Version => cli::print_version(),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
