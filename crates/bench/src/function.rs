//! `transom-bench function`: the cost of one call of a function, of a built-in function in this process and of function
//! servers. All get the same request from the same client, one call at a time.
//!
//! Processor time is the run time of the server's threads according to the kernel, its share of the network included.

use super::Figure;
use crate::failure::Failure;
use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use transom_compose::{FunctionRunner, RevisionTraits, StepRef, WantedRevision};
use transom_function::error_chain::chain;
use transom_function::{Function, RunFunctionRequest};
use transom_runner::{Callable, Endpoint, InProcess, PackageImage, RevisionId, RevisionSpec, Router, Source};

/// Calls before those that count, for caches and connections.
const WARM_UP_CALLS: usize = 200;
/// Active revisions that one is selected from.
const REVISIONS: i64 = 10;
/// Requests that are copied in advance at a time, outside of the measured time.
const BATCH_CALLS: usize = 100;

/// Measure the cost of a function call: of a built-in function in this process, and of function servers
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom-bench function function-auto-ready --request request.json
  transom-bench function function-auto-ready --request request.json --at localhost:9443 --pid 4711")]
pub(super) struct Options {
    /// The built-in function; see `transom function list`
    #[arg(value_name = "NAME")]
    name: String,

    /// File with the RunFunctionRequest to send, in JSON
    #[arg(long, value_name = "FILE")]
    request: PathBuf,

    /// Number of calls that are measured
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER")]
    calls: usize,

    /// Address of a function server to measure as well, without TLS; needs --pid; may be repeated
    #[arg(long, value_name = "HOST:PORT", requires = "pid")]
    at: Vec<String>,

    /// The process of the server at the address, in the order of --at
    #[arg(long, value_name = "PID", requires = "at")]
    pid: Vec<u32>,
}

pub(super) fn run(options: &Options) -> Result<Vec<Figure>, Failure> {
    let request = read_request(&options.request)?;
    let built_in = transom_builtins::find(&options.name).ok_or_else(|| {
        Failure::new(format!("there is no built-in function {:?}", options.name))
            .remedy("`transom function list` lists them")
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("cannot start the runtime: {e}")))?;
    let functions = Router::new(transom_runner::Options::default());
    functions.run_in_process("in process", built_in.clone());
    let calls = Calls { functions, request, count: options.calls };
    runtime.block_on(async {
        let mut figures = Vec::from(calls.measure("in process", std::process::id()).await?);
        figures.push(selecting(&built_in, options.calls)?);
        for (address, pid) in options.at.iter().zip(options.pid.iter().copied()) {
            calls.functions.call_at(address, Endpoint::plaintext(address)).map_err(|e| {
                Failure::new(format!("cannot call {address}: {}", chain(&e))).remedy("give --at as host:port")
            })?;
            figures.extend(calls.measure(address, pid).await?);
        }
        Ok(figures)
    })
}

/// What it costs to select one of several active revisions by its labels.
fn selecting(function: &Arc<dyn Function>, count: usize) -> Result<Figure, Failure> {
    let functions = Router::new(transom_runner::Options::default());
    let labels = |number: i64| BTreeMap::from([("number".to_owned(), number.to_string())]);
    for number in 1..=REVISIONS {
        let id = RevisionId { function: "f".to_owned(), revision: format!("f-{number}") };
        let traits = RevisionTraits { labels: labels(number), ..RevisionTraits::default() };
        let (source, package) = (Source::Builtin("f".to_owned()), String::new());
        let spec = RevisionSpec {
            id,
            number,
            package,
            source,
            traits,
            image: PackageImage::default(),
            config: Arc::default(),
        };
        functions.set(&spec, Callable::Ready(Arc::new(InProcess::new(function.clone()))));
    }
    let wanted = labels(1);
    let step = StepRef { revision: WantedRevision::Labelled(&wanted), ..StepRef::calling("f") };
    let began = Instant::now();
    for _ in 0..count {
        let chosen = functions.revision_for(step).map_err(|e| Failure::new(e.to_string()))?;
        std::hint::black_box(chosen);
    }
    let each = began.elapsed().as_secs_f64() * 1e6 / count as f64;
    Ok(Figure::new(format!("selecting one of {REVISIONS} revisions by labels"), each, "µs"))
}

/// The request, in the protocol's JSON form.
fn read_request(file: &Path) -> Result<RunFunctionRequest, Failure> {
    let cannot =
        |why: String| Failure::new(format!("cannot read the request from {}: {why}", file.display()));
    let text = std::fs::read(file).map_err(|e| cannot(e.to_string()))?;
    serde_json::from_slice(&text).map_err(|e| cannot(e.to_string()))
}

struct Calls {
    functions: Router,
    request: RunFunctionRequest,
    count: usize,
}

impl Calls {
    /// Calls a function often: the time that a call takes, and its processor time in the process that serves it.
    async fn measure(&self, name: &str, pid: u32) -> Result<[Figure; 2], Failure> {
        self.call(name, WARM_UP_CALLS).await?;
        let before = processor_time(pid)?;
        let took = self.call(name, self.count).await?;
        let used = processor_time(pid)? - before;
        let each = |seconds: f64| seconds * 1e6 / self.count as f64;
        Ok([
            Figure::new(format!("{name}, each call"), each(took), "µs"),
            Figure::new(format!("{name}, processor time for each call"), each(used), "µs"),
        ])
    }

    /// The seconds that this number of calls takes.
    async fn call(&self, name: &str, count: usize) -> Result<f64, Failure> {
        let step = StepRef { name: "bench", ..StepRef::calling(name) };
        let mut seconds = 0.0;
        for batch in (0..count).step_by(BATCH_CALLS) {
            let requests = vec![self.request.clone(); BATCH_CALLS.min(count - batch)];
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
        Failure::new(format!("cannot read the processor time of process {pid}: {e}"))
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
