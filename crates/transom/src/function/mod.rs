//! `transom function`: lists the built-in functions, serves them to other control planes, and prints the logs of functions
//! that run from their packages.

use crate::containers::logs::{self, Logs};
use crate::failure::Failure;
use clap::{Args, Subcommand};
use std::process::ExitCode;
use std::sync::Arc;
use transom_builtins::GoTemplating;
use transom_function::serve;
use transom_object::error_chain::chain;
use transom_object::suggest;

/// Work with functions.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  transom function list
  transom function serve function-auto-ready --insecure
  transom function logs function-status -f")]
pub(crate) enum Function {
    /// List the built-in functions
    #[command(after_help = "\
Examples:
  transom function list")]
    List,
    Serve(ServeFunction),
    Logs(Logs),
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

    /// Folder with the templates of inputs that name no source; function-go-templating alone. Otherwise
    /// $FUNCTION_GO_TEMPLATING_DEFAULT_SOURCE
    #[arg(long, value_name = "DIR")]
    default_source: Option<String>,

    /// Options of inputs that have none, separated by commas; function-go-templating alone. Otherwise
    /// $FUNCTION_GO_TEMPLATING_DEFAULT_OPTIONS
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
            crate::cli::print(names.as_bytes())
        }
        Function::Serve(options) => serve_built_in(&options),
        Function::Logs(options) => logs::run(&options),
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
    let function = command.function()?;
    let options = &command.options;
    options.init_logging();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("cannot start the runtime: {e}")))?;
    let served = runtime.block_on(serve(function, options));
    served.map_err(|e| Failure::new(chain(&e)))?;
    Ok(ExitCode::SUCCESS)
}
