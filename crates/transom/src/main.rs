//! The `transom` binary: reads the command line and runs one command. It is the only crate that connects all others; what a
//! command decides belongs into a crate below.

#![warn(missing_docs)]

mod cli;
mod containers;
mod controller;
mod convert;
mod db;
mod former;
mod function;
mod install;
mod moving;
mod plane;
mod provider;
mod render;
mod rollout;
mod up;
mod user;
mod xfn;
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
        cli::Command::Controller(options) => controller::run(&options),
        cli::Command::Install(options) => install::install(&options),
        cli::Command::Uninstall(options) => install::uninstall(&options),
        cli::Command::Adopt(options) => moving::adopt(&options),
        cli::Command::Export(options) => moving::export(&options),
        cli::Command::Import(options) => moving::import(&options),
        cli::Command::Db(command) => db::run(command),
        cli::Command::Render(options) => render::run(*options),
        cli::Command::Convert(options) => convert::run(&options),
        cli::Command::Function(command) => function::run(command),
        cli::Command::Provider(command) => provider::run(command),
        cli::Command::Xfn(command) => xfn::run(command),
        cli::Command::Xpkg(command) => xpkg::run(command),
        cli::Command::Rollout(command) => transom_rollout::run(*command),
        cli::Command::User(command) => user::run(*command),
        cli::Command::Completion { shell } => cli::complete(shell),
        cli::Command::Version => cli::print_version(),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
