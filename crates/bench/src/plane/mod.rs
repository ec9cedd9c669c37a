//! A whole control plane, measured by what its users wait for.
//!
//! The plane is `transom up` on a disk, in a process of its own, or any plane that a kubeconfig names: the client, the
//! manifests and the order of the scenarios are the same. Users are one connection that writes and one that watches.
//! Only what needs Transom's own counters, or a restart, is left out for a plane that was given.

mod changing;
mod creating;
mod platform;
mod resting;
pub(super) mod running;

use super::client::Watch;
use super::load::Timings;
use super::{Figure, factor};
use crate::failure::Failure;
use clap::Args;
use running::{OwnPlane, Plane};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// A change that takes longer to have its effect fails the run. Crossplane's polls are a minute apart.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(150);

/// Measure a whole control plane: how soon composite resources are ready, what they cost, how soon drift is reverted
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom-bench plane                   start a throw-away plane, measure it, stop it
  transom-bench plane --large 100000    also compare the cost of a reconcile among 100,000 composite resources
  transom-bench plane --kubeconfig ./plane/kubeconfig --pid 4711   measure a plane that runs: use a throw-away one
  conformance/run bench -- --only plane                            measure Transom and the real Crossplane")]
pub(super) struct Options {
    /// A running plane to measure, instead of starting one
    #[arg(long, value_name = "FILE", requires = "pid", conflicts_with_all = ["data_dir", "large"])]
    kubeconfig: Option<PathBuf>,

    /// A process of the running plane; repeated for each of its processes
    #[arg(long, value_name = "PID", requires = "kubeconfig")]
    pid: Vec<u32>,

    /// When the running plane was started, in seconds since 1970
    #[arg(long, value_name = "SECONDS", requires = "kubeconfig", value_parser = seconds)]
    started: Option<Duration>,

    /// An empty directory on the disk to measure [default: a new one for temporary files]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Send this multiple of the usual number of requests
    #[arg(long, default_value = "1", value_parser = factor, value_name = "FACTOR")]
    scale: f64,

    /// Number of composite resources that are created at once
    #[arg(long, default_value = "1000", value_name = "N")]
    burst: usize,

    /// Milliseconds between two changes that are measured one at a time
    #[arg(long, default_value = "200", value_name = "MILLISECONDS")]
    pause: u16,

    /// Seconds until a plane is considered quiet, before memory and counters are read
    #[arg(long, default_value = "10", value_name = "SECONDS")]
    quiet: u16,

    /// Seconds to measure the idle plane
    #[arg(long, default_value = "60", value_name = "SECONDS")]
    idle: u16,

    /// Total number of composite resources at the end, to see whether each costs more among many
    #[arg(long, default_value = "0", value_name = "N")]
    large: usize,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let parsed = text.parse().map_err(|e| format!("{e}"))?;
    Duration::try_from_secs_f64(parsed).map_err(|e| e.to_string())
}

pub(super) async fn run_all(transom: &Path, options: &Options) -> Result<Vec<Figure>, Failure> {
    if let Some(kubeconfig) = &options.kubeconfig {
        return measure_given(kubeconfig, options).await;
    }
    let temporary = std::env::temp_dir().join(format!("transom-bench-plane-{}", std::process::id()));
    let data_dir = options.data_dir.as_deref().unwrap_or(&temporary);
    let figures = measure_own(transom, options, data_dir).await;
    if options.data_dir.is_none() {
        let _ = std::fs::remove_dir_all(&temporary);
    }
    figures
}

async fn measure_given(kubeconfig: &Path, options: &Options) -> Result<Vec<Figure>, Failure> {
    let running_for =
        options.started.and_then(|at| SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + at).ok());
    let began = running_for.and_then(|age| Instant::now().checked_sub(age));
    let mut run = Run::new(Plane::given(kubeconfig, options.pid.clone())?, options);
    run.scenarios(began).await?;
    Ok(run.figures)
}

async fn measure_own(transom: &Path, options: &Options, data_dir: &Path) -> Result<Vec<Figure>, Failure> {
    let began = Instant::now();
    let own = OwnPlane::start(transom, data_dir)?;
    let mut run = Run::new(own.plane().clone(), options);
    run.note("start to serving", millis(began.elapsed()), "ms");
    run.scenarios(Some(began)).await?;
    let few = run.cost().await?;
    run.note("cost of a reconcile", few, "ms");
    let _own = run.restart(own, || OwnPlane::start(transom, data_dir)).await?;
    if options.large > run.made {
        run.burst(options.large - run.made).await?;
        let many = run.cost().await?;
        run.note("cost of a reconcile among many", many, "ms");
        run.note("ratio to the cost among few", many / few.max(f64::EPSILON), "");
        run.note("memory, many composite resources", run.quiet_memory().await?, "MiB");
    }
    Ok(run.figures)
}

/// A measurement under way.
struct Run<'a> {
    plane: Plane,
    options: &'a Options,
    figures: Vec<Figure>,
    /// How many composite resources there are; they are numbered.
    made: usize,
}

impl<'a> Run<'a> {
    fn new(plane: Plane, options: &'a Options) -> Self {
        Self { plane, options, figures: Vec::new(), made: 0 }
    }

    /// What is measured of every plane. Few composite resources exist while changes are measured: Crossplane applies
    /// all of them again every minute, and with a thousand that would be most of what is measured.
    async fn scenarios(&mut self, began: Option<Instant>) -> Result<(), Failure> {
        self.note("memory, nothing defined", self.plane.memory()?, "MiB");
        self.first(began).await?;
        self.note("memory, one definition", self.quiet_memory().await?, "MiB");
        self.one_at_a_time(self.scaled(200)).await?;
        self.edits(self.scaled(100)).await?;
        self.drifts(self.scaled(100)).await?;
        self.deletions(self.scaled(1_000)).await?;
        self.measured_burst(self.scaled(self.options.burst)).await?;
        self.burst(self.scaled(1_400).saturating_sub(self.made)).await?;
        self.note("memory, 1,400 composite resources", self.quiet_memory().await?, "MiB");
        self.idle().await?;
        self.note("memory, 1,400 composite resources at rest", self.plane.memory()?, "MiB");
        Ok(())
    }

    fn note(&mut self, name: &'static str, value: f64, unit: &'static str) {
        anstream::eprintln!("{name}: {value:.2} {unit}");
        self.figures.push(Figure::new(name, value, unit));
    }

    /// The usual figures of a change that was measured often, by their names.
    fn note_times(&mut self, median: &'static str, late: &'static str, each: Vec<Duration>) -> Timings {
        let timings = Timings::new(each, Duration::from_secs(1));
        self.note(median, timings.percentile(0.5), "ms");
        self.note(late, timings.percentile(0.99), "ms");
        timings
    }

    fn scaled(&self, count: usize) -> usize {
        ((count as f64 * self.options.scale) as usize).max(1)
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(self.options.pause.into())
    }

    /// Waits until the work that earlier requests caused should be done: the time of `--quiet`.
    async fn quiet(&self) {
        tokio::time::sleep(Duration::from_secs(self.options.quiet.into())).await;
    }

    async fn quiet_memory(&self) -> Result<f64, Failure> {
        self.quiet().await;
        self.plane.memory()
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn name(number: usize) -> String {
    format!("stack-{number:06}")
}

/// Reads on until an event is the expected one, and returns its object.
async fn until(watch: &mut Watch, expected: impl Fn(&str, &Value) -> bool) -> Result<Value, Failure> {
    let reading = async {
        loop {
            let (word, object) = watch.next().await?;
            if expected(&word, &object) {
                return Ok(object);
            }
        }
    };
    let late = || Failure::new(format!("a change had no effect within {} s", EFFECT_TIMEOUT.as_secs()));
    tokio::time::timeout(EFFECT_TIMEOUT, reading).await.map_err(|_| late())?
}

/// Reads and ignores events for a while: what was received before a change must not delay what is received after it.
async fn skim(watch: &mut Watch, pause: Duration) -> Result<(), Failure> {
    let reading = async {
        loop {
            watch.next().await?;
        }
    };
    tokio::time::timeout(pause, reading).await.unwrap_or(Ok(()))
}
