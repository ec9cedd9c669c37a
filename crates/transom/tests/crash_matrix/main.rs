//! A plane is killed with SIGKILL between any two durable writes of a scenario, and the next process finishes the work:
//! every object is then as after a run without kills.
//!
//! A plane kills itself at the n-th sync of its log, see `src/plane/crash_injection.rs`: before it (nothing of the write is
//! left, or half of it) or after it, before any client has the response. There are two kinds of runs:
//!
//! - **each**: for every step and every n, a plane dies at the n-th write of the step, and the next one finishes.
//! - **repeatedly**: planes die one after the other, each at its n-th write, until the step is done.
//!
//! A plain run takes a sample: every fourth write, and two kinds of repeated kills. `TRANSOM_CRASH_MATRIX=full` takes all.
//! `TRANSOM_CRASH_ONLY=claim` takes the runs whose name contains that.

#![allow(clippy::panic, reason = "a test that cannot go on has failed")]

mod platform;
mod run;
mod scenario;
mod snapshot;

use run::{Crash, Ended, Run};
use scenario::{Scenario, scenarios};
use snapshot::Snapshot;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const POINTS: [&str; 2] = ["lost", "durable"];
/// Repeated kills: what is left of the last write of each plane, and the number of that write.
const REPEATED: [(&str, u64); 6] =
    [("durable", 1), ("durable", 2), ("durable", 3), ("lost", 2), ("lost", 3), ("torn", 2)];
/// Runs at the same time: some of them are always waiting.
const PARALLEL_RUNS: usize = 4;
/// No step takes more writes than this.
const MAX_WRITES: u64 = 300;

/// How much of the matrix a run goes through.
#[derive(Clone, Copy)]
struct Extent {
    /// Every how many writes a plane dies in `each`.
    stride: u64,
    /// Those of [`REPEATED`] that are run.
    repeated: &'static [(&'static str, u64)],
    /// A run with fewer kills has left something out.
    kills: usize,
}

const SAMPLE: Extent = Extent { stride: 4, repeated: &[("durable", 3), ("torn", 2)], kills: 150 };
const FULL: Extent = Extent { stride: 1, repeated: &REPEATED, kills: 1000 };

impl Extent {
    fn from_environment() -> Self {
        match std::env::var("TRANSOM_CRASH_MATRIX").as_deref() {
            Ok("full") => FULL,
            Ok(other) => panic!("TRANSOM_CRASH_MATRIX is `full` or not set, not {other:?}"),
            Err(_) => SAMPLE,
        }
    }
}

/// A scenario, the objects after each step, and the data directory before each step.
struct Recorded {
    scenario: Scenario,
    snapshots: Vec<Snapshot>,
    data: TempDir,
}

impl Recorded {
    async fn new(scenario: Scenario) -> Self {
        let data = TempDir::new().expect("a temporary directory");
        let run = Run::prepared(&scenario).await;
        let mut snapshots = Vec::new();
        for (n, step) in scenario.steps.iter().enumerate() {
            run.keep(&data.path().join(n.to_string()));
            snapshots.push(run.undisturbed(step).await);
        }
        run.assert_idle().await;
        Self { scenario, snapshots, data }
    }

    fn data_before(&self, step: usize) -> PathBuf {
        self.data.path().join(step.to_string())
    }

    /// One step in which a plane dies at its n-th write. Returns whether there was such a write.
    async fn each(&self, step: usize, crash: Crash) -> bool {
        let name = format!("{} {} {crash:?}", self.scenario.name, self.scenario.steps[step].name);
        let run = Run::from(&self.data_before(step), name);
        let ended = run.attempt(&self.scenario.steps[step], &self.snapshots[step], Some(crash)).await;
        if ended == Ended::Killed {
            run.attempt(&self.scenario.steps[step], &self.snapshots[step], None).await;
            run.assert_idle().await;
        }
        ended == Ended::Killed
    }

    /// A whole scenario in which every plane dies at its n-th write. Returns the number of kills.
    async fn repeatedly(&self, crash: Crash) -> usize {
        let run = Run::from(&self.data_before(0), format!("{} repeatedly {crash:?}", self.scenario.name));
        let mut kills = 0;
        for (step, wanted) in self.scenario.steps.iter().zip(&self.snapshots) {
            let before = kills;
            while run.attempt(step, wanted, Some(crash)).await == Ended::Killed {
                kills += 1;
                assert!(
                    kills - before < MAX_WRITES as usize,
                    "{} {crash:?}: {} does not end",
                    self.scenario.name,
                    step.name
                );
            }
            run.assert_idle().await;
        }
        kills
    }
}

/// Runs in parallel, and the number of kills in each.
struct Matrix {
    lanes: Arc<Semaphore>,
    running: JoinSet<()>,
    kills: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Matrix {
    fn start(&mut self, name: String, run: impl Future<Output = usize> + Send + 'static) {
        if std::env::var("TRANSOM_CRASH_ONLY").is_ok_and(|only| !name.contains(&only)) {
            return;
        }
        let (lanes, kills) = (self.lanes.clone(), self.kills.clone());
        self.running.spawn(async move {
            let _lane = lanes.acquire().await.expect("the semaphore is never closed");
            let died = run.await;
            kills.lock().expect("no holder panics").insert(name, died);
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn a_run_with_kills_at_any_write_ends_as_one_without() {
    let (started, extent) = (Instant::now(), Extent::from_environment());
    let mut matrix = Matrix {
        lanes: Arc::new(Semaphore::new(PARALLEL_RUNS)),
        running: JoinSet::new(),
        kills: Arc::default(),
    };
    for scenario in scenarios() {
        let recorded = Arc::new(Recorded::new(scenario).await);
        for (step, n) in recorded.scenario.steps.iter().map(|a| a.name).zip(0..) {
            for (point, offset) in POINTS.into_iter().zip(0..) {
                let recorded = recorded.clone();
                matrix.start(format!("each {} {step} {point}", recorded.scenario.name), async move {
                    // A sample begins at another write in every step and for every point.
                    let (mut at, mut kills) = (1 + (n as u64 + 2 * offset) % extent.stride, 0);
                    while recorded.each(n, Crash { point, at }).await {
                        (at, kills) = (at + extent.stride, kills + 1);
                        assert!(at < MAX_WRITES, "{step} does not end");
                    }
                    kills
                });
            }
        }
        for &(point, at) in extent.repeated {
            let recorded = recorded.clone();
            matrix.start(format!("repeatedly {} {point} {at}", recorded.scenario.name), async move {
                recorded.repeatedly(Crash { point, at }).await
            });
        }
    }
    let mut failures = 0;
    while let Some(ended) = matrix.running.join_next().await {
        failures += usize::from(ended.is_err());
    }
    let kills = matrix.kills.lock().expect("no holder panics").clone();
    for (run, kills) in &kills {
        println!("{kills:4} {run}");
    }
    let total: usize = kills.values().sum();
    println!("{total} kills in {:?}", started.elapsed());
    assert_eq!(failures, 0, "runs did not end well, see above");
    if std::env::var_os("TRANSOM_CRASH_ONLY").is_none() {
        assert!(total >= extent.kills, "only {total} kills; does the binary have debug assertions?");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_kills_has_everything_that_is_compared() {
    let scenario = scenarios().remove(0);
    let run = Run::prepared(&scenario).await;
    let created = run.undisturbed(&scenario.steps[0]).await;
    let count = |snapshot: &Snapshot| {
        ["ConfigMap", "Secret", "NopResource", "Store", "XStore", "Cell"].map(|kind| snapshot.count(kind))
    };
    // Two of the store and one of the cell, beside the certificates of four namespaces.
    assert_eq!(count(&created), [3 + 4, 3, 1, 1, 1, 1], "{created:#?}");
    let mut deleted = created.clone();
    for step in &scenario.steps[1..] {
        deleted = run.undisturbed(step).await;
    }
    assert_eq!(count(&deleted), [4, 0, 0, 0, 0, 0], "{deleted:#?}");
    assert_eq!(deleted.count("CompositionRevision"), 5);
    assert!(!created.differences(&deleted).is_empty());
}
