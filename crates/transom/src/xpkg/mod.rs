//! `transom xpkg`: builds, pushes, inspects and installs packages.
//!
//! | module | purpose |
//! |---|---|
//! | `build`, `files`, `stream` | from the files of a folder to a package; mistakes are shown in those files |
//! | `origin` | where a reference is read from: a registry, or a folder or file in place of it |
//! | `inspect`, `extract` | what a package holds |
//! | `verify` | who signed a package |
//! | `push` | from a file to a registry |
//! | `install`, `plan` | the objects in a control plane that install packages, and what they would change |
//! | `control_plane` | the control plane of the kubeconfig |
//! | `bundle` | a package and all that it depends on in one file |
//! | `get_crds` | the CRDs that packages bring, as files |
//! | `init` | a new package from a template |
//! | `batch` | the packages of a family of providers |
//! | `format`, `progress` | how results and transfers are shown |
//!
//! The environment is read here and nowhere below: proxies, certificate authorities, Docker's configuration. Results go
//! to stdout, all else to stderr.

mod batch;
mod build;
mod bundle;
pub(crate) mod control_plane;
mod extract;
mod files;
pub(crate) mod format;
mod get_crds;
mod init;
mod inspect;
mod install;
pub(crate) mod origin;
mod plan;
mod progress;
mod push;
mod stream;
mod verify;

use crate::failure::Failure;
use clap::Subcommand;
use std::process::ExitCode;

/// Build, push, inspect and install packages.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  transom xpkg build -f ./platform                                    make a package of the files in a folder
  transom xpkg push registry.example.org/acme/platform:v1.0.0         push the package in this folder
  transom xpkg inspect registry.example.org/acme/platform:v1.0.0      show what a package holds
  transom xpkg install configuration registry.example.org/acme/platform:v1.0.0
  transom xpkg bundle registry.example.org/acme/platform:v1.0.0 -o platform.tar")]
pub(crate) enum Xpkg {
    Build(build::Build),
    Push(push::Push),
    Inspect(inspect::Inspect),
    Extract(extract::Extract),
    Verify(Box<verify::Verify>),
    Plan(plan::Plan),
    Install(install::Install),
    Update(install::Update),
    Bundle(bundle::Bundle),
    GetCrds(get_crds::GetCrds),
    Init(init::Init),
    Batch(Box<batch::Batch>),
}

pub(crate) fn run(command: Xpkg) -> Result<ExitCode, Failure> {
    match command {
        Xpkg::Build(options) => build::run(&options),
        Xpkg::Push(options) => block_on(push::run(options)),
        Xpkg::Inspect(options) => block_on(inspect::run(options)),
        Xpkg::Extract(options) => block_on(extract::run(options)),
        Xpkg::Verify(options) => block_on(verify::run(*options)),
        Xpkg::Plan(options) => block_on(plan::run(options)),
        Xpkg::Install(options) => block_on(install::install(options)),
        Xpkg::Update(options) => block_on(install::update(options)),
        Xpkg::Bundle(options) => block_on(bundle::run(options)),
        Xpkg::GetCrds(options) => block_on(get_crds::run(options)),
        Xpkg::Init(options) => init::run(&options),
        Xpkg::Batch(options) => block_on(batch::run(*options)),
    }
}

fn block_on(command: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("cannot start the runtime: {e}")))?;
    let result = runtime.block_on(command);
    progress::clear();
    // A thread that still waits for a name server must not delay the end of the command.
    runtime.shutdown_background();
    result
}
