//! @NAME@: a composition function.

mod function;
mod input;

use clap::Parser;
use function::Greeter;
use transom_function::{ServeError, ServeOptions, serve};

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let options = ServeOptions::parse();
    options.init_logging();
    serve(Greeter, &options).await
}
