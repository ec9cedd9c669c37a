//! `transom function`: the functions that are built in, for others to use.

use crate::cli::{Function, ServeFunction};
use crate::failure::Failure;
use std::process::ExitCode;
use std::sync::Arc;
use transom_function::serve;
use transom_object::suggest;

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
    served.map_err(|e| Failure::new(e.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
