//! @NAME@: a composition function.

mod function;
mod input;

use clap::Parser;
use function::Greeter;
use function_sdk_rust::{Args, Error, logging, serve};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let args = Args::parse();
    logging::configure(args.debug);
    serve(Greeter, &args).await
}
