//! The `transom-bench` binary: parses the command line, runs one benchmark, and prints its figures. Everything else is in the
//! library.

use clap::Parser;
use std::process::ExitCode;
use transom_bench::Bench;

// What `transom` uses: a built-in function that is measured in this process must cost the same as there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let bench = Bench::parse();
    match bench.run() {
        Ok(figures) => {
            bench.print(&figures);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            anstream::eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
