//! `transom function`: lists the built-in functions, serves them to other control planes, prints the logs of functions
//! that run from their packages, and has the tools of people who write functions.
//!
//! | module | purpose |
//! |---|---|
//! | `init` | a new project |
//! | `build` | from a project and a program to a package |
//! | `test` | sends requests to a function, and compares its responses |
//! | `called` | what can be called: a function in this process, at an address, from a package or a project |
//! | `adapt` | from the image of a container function to a package |
//! | `run` | serves a project to a control plane, again after every change |
//! | `process` | the program of a project, built and started by the command of its language |

mod adapt;
mod build;
mod called;
mod init;
mod process;
mod run;
mod test;

use crate::containers::logs::{self, Logs};
use crate::xpkg::block_on;
use clap::{Args, Subcommand};
use std::process::ExitCode;
use std::sync::Arc;
use transom_builtins::GoTemplating;
use transom_console::Failure;
use transom_function::serve;
use transom_machine::Printed;
use transom_object::error_chain::chain;
use transom_object::suggest;

/// Work with functions.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  transom function list
  transom function serve function-auto-ready --insecure
  transom function logs function-status -f
  transom function init function-hello --language go
  transom function build --binary function
  transom function push registry.example.org/acme/function-hello:v0.1.0
  transom function test . cases
  transom function run
  transom function adapt --from-oci-tarball size.tar")]
pub(crate) enum Function {
    /// List the built-in functions
    #[command(after_help = "\
Examples:
  transom function list")]
    List,
    Serve(ServeFunction),
    /// Print what a function that runs from its package has printed
    #[command(after_help = "\
Examples:
  transom function logs function-status              of the revision that printed last
  transom function logs function-status -f           and what it prints from now on
  transom function logs function-status --revision function-status-1a2b3c4d5e6f")]
    Logs(Logs),
    Init(init::Init),
    Build(build::Build),
    /// Push the package of a function to a registry; the same as `transom xpkg push`
    #[command(after_help = "\
Examples:
  transom function push registry.example.org/acme/function-hello:v0.1.0                        the only package in this folder
  transom function push registry.example.org/acme/function-hello:v0.1.0 -f amd64.xpkg,arm64.xpkg    for several platforms")]
    Push(crate::xpkg::push::Push),
    Test(Box<test::Test>),
    Adapt(adapt::Adapt),
    Run(Box<run::Run>),
    /// Serve the program of an image that `transom function adapt` has made
    #[command(hide = true)]
    Adapted(transom_function::ServeOptions),
}

/// Serve a built-in function over gRPC, as its own image would
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom function serve function-auto-ready --insecure            in plain text on port 9443
  transom function serve function-auto-ready --tls-certs-dir ./tls  with mutual TLS
  transom function serve function-go-templating --insecure --default-options missingkey=error")]
pub(crate) struct ServeFunction {
    /// The function; see `transom function list`
    #[arg(value_name = "NAME")]
    name: String,

    /// Folder with the templates of inputs that name no source; only for function-go-templating [default:
    /// $FUNCTION_GO_TEMPLATING_DEFAULT_SOURCE]
    #[arg(long, value_name = "DIR")]
    default_source: Option<String>,

    /// Options of inputs that have none, separated by commas; only for function-go-templating [default:
    /// $FUNCTION_GO_TEMPLATING_DEFAULT_OPTIONS]
    #[arg(long)]
    default_options: Option<String>,

    #[command(flatten)]
    options: transom_function::ServeOptions,
}

/// The function that has defaults for its inputs.
const GO_TEMPLATING: &str = "function-go-templating";

pub(crate) fn run(command: Function) -> Result<ExitCode, Failure> {
    match command {
        Function::List => {
            let names: String = transom_builtins::names().map(|name| format!("{name}\n")).collect();
            transom_console::print(names.as_bytes())
        }
        Function::Serve(options) => serve_built_in(&options),
        Function::Logs(options) => logs::run(&options, Printed::Function),
        Function::Init(options) => init::run(&options),
        Function::Build(options) => build::run(&options),
        Function::Push(options) => crate::xpkg::block_on(crate::xpkg::push::run(options)),
        Function::Test(options) => crate::xpkg::block_on(test::run(*options)),
        Function::Adapt(options) => adapt::run(&options),
        Function::Run(options) => crate::xpkg::block_on(run::run(*options)),
        Function::Adapted(options) => serve_adapted(&options),
    }
}

fn find(name: &str) -> Result<Arc<dyn transom_function::Function>, Failure> {
    transom_builtins::find(name).ok_or_else(|| {
        let known: Vec<&str> = transom_builtins::names().collect();
        let meant = suggest::did_you_mean(name, known.iter().copied());
        let otherwise = || format!("there are {}", known.join(", "));
        Failure::new(format!("there is no built-in function {name:?}"))
            .remedy(meant.unwrap_or_else(otherwise))
    })
}

impl ServeFunction {
    fn function(&self) -> Result<Arc<dyn transom_function::Function>, Failure> {
        let function = find(&self.name)?;
        if self.name == GO_TEMPLATING {
            let default = |flag: &Option<String>, variable| {
                flag.clone().or_else(|| std::env::var(variable).ok()).unwrap_or_default()
            };
            let source = default(&self.default_source, "FUNCTION_GO_TEMPLATING_DEFAULT_SOURCE");
            let options = default(&self.default_options, "FUNCTION_GO_TEMPLATING_DEFAULT_OPTIONS");
            let function = GoTemplating::default().with_default_source(source).with_default_options(&options);
            return Ok(Arc::new(function));
        }
        let flags =
            [("--default-source", &self.default_source), ("--default-options", &self.default_options)];
        match flags.iter().find(|(_, given)| given.is_some()) {
            Some((flag, _)) => Err(Failure::new(format!("{} has no {flag}", self.name))
                .remedy(format!("leave it out; it is a flag of {GO_TEMPLATING}"))),
            None => Ok(function),
        }
    }
}

fn serve_built_in(command: &ServeFunction) -> Result<ExitCode, Failure> {
    serve_function(command.function()?, &command.options)
}

fn serve_adapted(options: &transom_function::ServeOptions) -> Result<ExitCode, Failure> {
    let document = std::env::var(adapt::DOCUMENT).ok();
    let function = adapt::adapted(std::env::var(adapt::COMMAND).ok(), document.as_deref())?;
    serve_function(Arc::new(function), options)
}

fn serve_function(
    function: Arc<dyn transom_function::Function>,
    options: &transom_function::ServeOptions,
) -> Result<ExitCode, Failure> {
    options.init_logging();
    block_on(async {
        let served = serve(function, options).await;
        served.map(|()| ExitCode::SUCCESS).map_err(|e| Failure::new(chain(&e)))
    })
}
