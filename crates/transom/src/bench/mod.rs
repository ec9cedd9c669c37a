//! `transom bench`: what one Kubernetes API server costs, measured from outside.
//!
//! A kubeconfig goes in, numbers come out; the same client and the same work for every server, so that two runs
//! compare servers and nothing else. Every scenario makes what it needs in a namespace of its own, runs a fixed
//! number of requests and stops. Memory is read from `/proc` for the processes named with `--pid`.

mod client;
mod load;
mod memory;
mod objects;
mod scenario;
mod target;

use crate::cli::{Bench, BenchFormat};
use crate::failure::Failure;
use serde_json::{Value, json};
use std::process::ExitCode;

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

pub(crate) fn run(options: &Bench) -> Result<ExitCode, Failure> {
    let target = target::read(&options.kubeconfig)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("cannot start the runtime: {e}")))?;
    let figures = runtime.block_on(scenario::run_all(&target, options))?;
    print(&figures, options.output);
    Ok(ExitCode::SUCCESS)
}

fn print(figures: &[Figure], format: BenchFormat) {
    match format {
        BenchFormat::Text => {
            for figure in figures {
                anstream::println!("{:<32} {:>12.2} {}", figure.name, figure.value, figure.unit);
            }
        }
        BenchFormat::Json => {
            let all: Value =
                figures.iter().map(|f| json!({"name": f.name, "value": f.value, "unit": f.unit})).collect();
            anstream::println!("{all}");
        }
    }
}
