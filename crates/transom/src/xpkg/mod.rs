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
//! | `bundle` | a package and all that it depends on in one file |
//! | `get_crds` | the CRDs that packages bring, as files |
//! | `init` | a new package from a template |
//! | `batch` | the packages of a family of providers |
//! | `progress` | how transfers are shown |
//!
//! The environment is read here and nowhere below: proxies, certificate authorities, Docker's configuration. Results go
//! to stdout, all else to stderr.

mod batch;
pub(crate) mod build;
mod bundle;
mod extract;
mod files;
mod get_crds;
mod init;
mod inspect;
mod install;
pub(crate) mod origin;
mod plan;
mod progress;
pub(crate) mod push;
mod stream;
mod verify;

use clap::{Args, Subcommand};
use serde_json::Value;
use std::process::ExitCode;
use transom_console::{Failure, Format};

/// Build, push, inspect and install packages.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg build -f ./platform                                    make a package of the files in a folder
  transom xpkg push registry.example.org/acme/platform:v1.0.0         push the package in this folder
  transom xpkg inspect registry.example.org/acme/platform:v1.0.0      show what a package holds
  transom xpkg install configuration registry.example.org/acme/platform:v1.0.0
  transom xpkg bundle registry.example.org/acme/platform:v1.0.0 -o platform.tar")]
pub(crate) struct Xpkg {
    #[command(subcommand)]
    command: Command,

    /// Log to stderr what is done, such as requests that are sent again
    #[arg(long, global = true)]
    verbose: bool,
}

#[derive(Subcommand)]
enum Command {
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

/// The flag of commands whose `-o` names what they write, as in the original.
#[derive(Args)]
struct ResultFormat {
    /// How the result is printed: as text, or with more of it for programs
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

impl ResultFormat {
    const TEXT: Self = Self { format: Format::Text };

    /// Prints a result; `text` is what people read.
    fn print(&self, result: &Value, text: &str) -> Result<ExitCode, Failure> {
        transom_console::print(self.format.write(result, |_| text.to_owned()).as_bytes())
    }
}

pub(crate) fn run(xpkg: Xpkg) -> Result<ExitCode, Failure> {
    if xpkg.verbose {
        transom_console::init_verbose();
    }
    match xpkg.command {
        Command::Build(options) => build::run(&options),
        Command::Push(options) => block_on(push::run(options)),
        Command::Inspect(options) => block_on(inspect::run(options)),
        Command::Extract(options) => block_on(extract::run(options)),
        Command::Verify(options) => block_on(verify::run(*options)),
        Command::Plan(options) => block_on(plan::run(options)),
        Command::Install(options) => block_on(install::install(options)),
        Command::Update(options) => block_on(install::update(options)),
        Command::Bundle(options) => block_on(bundle::run(options)),
        Command::GetCrds(options) => block_on(get_crds::run(options)),
        Command::Init(options) => init::run(&options),
        Command::Batch(options) => block_on(batch::run(*options)),
    }
}

/// Runs a command that may pull or push images, and removes the line that shows transfers.
pub(crate) fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let result = transom_console::block_on(command);
    progress::clear();
    result
}
