//! `transom function`: lists the built-in functions, and serves them to other control planes.

use crate::failure::Failure;
use clap::{Args, Subcommand};
use std::process::ExitCode;
use std::sync::Arc;
use transom_function::serve;
use transom_object::error_chain::chain;
use transom_object::suggest;

/// Work with the built-in functions.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  transom function list
  transom function serve function-auto-ready --insecure")]
pub(crate) enum Function {
    /// List the built-in functions
    #[command(after_help = "\
Examples:
  transom function list")]
    List,
    Serve(ServeFunction),
}

/// Serve a built-in function over gRPC, as its own image would
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom function serve function-auto-ready --insecure            in plain text on port 9443
  transom function serve function-auto-ready --tls-certs-dir ./tls  with mutual TLS")]
pub(crate) struct ServeFunction {
    /// The function; see `transom function list`
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    options: transom_function::ServeOptions,
}

pub(crate) fn run(command: Function) -> Result<ExitCode, Failure> {
    match command {
        Function::List => {
            let names: String = transom_builtins::names().map(|name| format!("{name}\n")).collect();
            crate::cli::print(names.as_bytes())
        }
        Function::Serve(options) => serve_built_in(&options),
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

fn serve_built_in(ServeFunction { name, options }: &ServeFunction) -> Result<ExitCode, Failure> {
    let function = find(name)?;
    options.init_logging();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("cannot start the runtime: {e}")))?;
    let served = runtime.block_on(serve(function, options));
    served.map_err(|e| Failure::new(chain(&e)))?;
    Ok(ExitCode::SUCCESS)
}
