//! `transom function bench`: what a call of a function costs, of a built-in in this process and of servers elsewhere, all
//! asked the same question by the same client, one call at a time.
//!
//! Processor time is what the kernel says the server's threads ran for, its share of the network included.

use crate::cli::BenchFunction;
use crate::failure::Failure;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use transom_compose::{FunctionRunner, StepRef};
use transom_function::RunFunctionRequest;
use transom_runner::{Endpoint, Functions, Options};

/// Calls before those that count, for caches and connections.
const WARM_UP: usize = 200;
/// Questions are copied in advance, so many at a time.
const BATCH: usize = 100;

pub(super) fn run(options: &BenchFunction) -> Result<ExitCode, Failure> {
    let request = question(&options.request)?;
    let built_in = super::find(&options.name)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("cannot start the runtime: {e}")))?;
    let functions = Functions::new(Options::default());
    functions.run_in_process("in process", built_in);
    let calls = Calls { functions, request, count: options.calls };
    runtime.block_on(async {
        calls.measure("in process", std::process::id()).await?;
        for (address, pid) in options.servers() {
            calls.functions.call_at(address, Endpoint::plaintext(address)).map_err(|e| {
                Failure::new(format!("cannot call {address}: {e}")).remedy("give --at as host:port")
            })?;
            calls.measure(address, pid).await?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The question, in the protocol's JSON form.
fn question(file: &Path) -> Result<RunFunctionRequest, Failure> {
    let cannot =
        |why: String| Failure::new(format!("cannot read the question from {}: {why}", file.display()));
    let text = std::fs::read(file).map_err(|e| cannot(e.to_string()))?;
    serde_json::from_slice(&text).map_err(|e| cannot(e.to_string()))
}

struct Calls {
    functions: Functions,
    request: RunFunctionRequest,
    count: usize,
}

impl Calls {
    /// Calls a function often, and prints what a call took and what processor time it cost the process that serves it.
    async fn measure(&self, name: &str, pid: u32) -> Result<(), Failure> {
        self.call(name, WARM_UP).await?;
        let before = processor_time(pid)?;
        let took = self.call(name, self.count).await?;
        let used = processor_time(pid)? - before;
        let each = |seconds: f64| seconds * 1e6 / self.count as f64;
        anstream::println!(
            "{name:<24}{:>10.1} µs a call{:>10.1} µs of processor time",
            each(took),
            each(used)
        );
        Ok(())
    }

    /// The seconds that so many calls take.
    async fn call(&self, name: &str, count: usize) -> Result<f64, Failure> {
        let step = StepRef { name: "bench", index: 0, iteration: 0, function: name };
        let mut seconds = 0.0;
        for batch in (0..count).step_by(BATCH) {
            let requests = vec![self.request.clone(); BATCH.min(count - batch)];
            let began = Instant::now();
            for request in requests {
                self.functions.run(step, request).await.map_err(|e| Failure::new(e.to_string()))?;
            }
            seconds += began.elapsed().as_secs_f64();
        }
        Ok(seconds)
    }
}

/// The seconds that the threads of a process have run.
fn processor_time(pid: u32) -> Result<f64, Failure> {
    let cannot = |e: std::io::Error| {
        Failure::new(format!("cannot tell the processor time of process {pid}: {e}"))
            .remedy("name the running process that listens at --at with --pid")
    };
    let mut nanoseconds = 0.0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).map_err(cannot)? {
        // A thread may end meanwhile.
        let Ok(text) = std::fs::read_to_string(thread.map_err(cannot)?.path().join("schedstat")) else {
            continue;
        };
        nanoseconds += text.split(' ').next().and_then(|first| first.parse::<f64>().ok()).unwrap_or_default();
    }
    Ok(nanoseconds / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_grows() {
        let before = processor_time(std::process::id()).unwrap();
        let began = Instant::now();
        while began.elapsed().as_millis() < 50 {
            std::hint::spin_loop();
        }
        assert!(processor_time(std::process::id()).unwrap() > before);
        assert!(processor_time(u32::MAX).is_err());
    }
}
