//! `transom bench`: what things cost, measured from outside.
//!
//! | command | measures |
//! |---|---|
//! | `bench server` | any Kubernetes API server: latency, throughput, memory |
//! | `bench plane` | a whole control plane that it starts itself: from a composite resource to what it composes |
//! | `bench large` | a control plane with composite resources of thousands of resources, and what others wait for |
//!
//! Every scenario runs a fixed number of requests and stops.

mod client;
mod large;
mod load;
mod plane;
mod process;
mod server;
mod target;

use crate::cli::{Bench, BenchFormat};
use crate::failure::Failure;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;

/// One number, by a name that stays the same from run to run.
pub(crate) struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
}

impl Figure {
    fn new(name: &'static str, value: f64, unit: &'static str) -> Self {
        Self { name, value, unit }
    }
}

pub(crate) fn run(command: &Bench) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("cannot start the runtime: {e}")))?;
    let (figures, format) = match command {
        Bench::Server(options) => {
            let target = Arc::new(target::read(&options.kubeconfig)?);
            (runtime.block_on(server::run_all(&target, options))?, options.output)
        }
        Bench::Plane(options) => (runtime.block_on(plane::run_all(options))?, options.output),
        Bench::Large(options) => (runtime.block_on(large::run_all(options))?, options.output),
    };
    print(&figures, format);
    Ok(ExitCode::SUCCESS)
}

fn print(figures: &[Figure], format: BenchFormat) {
    match format {
        BenchFormat::Text => {
            for figure in figures {
                anstream::println!("{:<44} {:>12.2} {}", figure.name, figure.value, figure.unit);
            }
        }
        BenchFormat::Json => {
            let all: Value =
                figures.iter().map(|f| json!({"name": f.name, "value": f.value, "unit": f.unit})).collect();
            anstream::println!("{all}");
        }
    }
}
