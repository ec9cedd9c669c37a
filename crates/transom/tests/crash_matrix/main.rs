//! A plane is killed with SIGKILL between any two durable writes of a scenario, and the next process finishes the work:
//! every object is then as after a run without kills, and nothing was deleted or left without an owner on the way.
//!
//! A plane kills itself at the n-th sync of its log, see `src/plane/crash_injection.rs`: before it (nothing of the write is
//! left, or half of it) or after it, before any client has the response. There are three kinds of runs:
//!
//! - **each**: for every step and every n, a plane dies at the n-th write of the step, and the next one finishes.
//! - **repeatedly**: planes die one after the other, each at its n-th write, until the step is done.
//! - **drawn**: the same, but chance draws for each plane where it dies and what is left of the write.
//!
//! `TRANSOM_CRASH_MATRIX` chooses how much is run, see the constants below: unset is a small sample, `ci` a larger one with at
//! least 1,000 kills of the scenario with packages, `full` takes every write of all scenarios. `TRANSOM_CRASH_ONLY=claim` takes the runs whose name contains that.

#![allow(clippy::panic, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "the number of kills is what the test is for")]

mod history;
mod packages;
mod platform;
mod run;
mod scenario;
mod snapshot;

use run::{Crash, Ended, Run};
use scenario::{Scenario, composing};
use snapshot::Snapshot;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use transom_testkit::rng::Rng;

const POINTS: [&str; 3] = ["lost", "durable", "torn"];
/// Runs at the same time, of all tests together: some of them are always waiting.
static LANES: Semaphore = Semaphore::const_new(4);
/// No step takes more writes than this.
const MAX_WRITES: u64 = 400;
/// After this many kills at the same write, a plane may live one write longer.
const WITHOUT_END: usize = 50;

/// How much of the matrix a run goes through.
#[derive(Clone, Copy)]
struct Extent {
    /// Every how many writes a plane dies in `each`.
    stride: u64,
    /// How many of [`POINTS`] there are in `each`.
    points: usize,
    /// Repeated kills: what is left of the last write of each plane, and the number of that write.
    repeated: &'static [(&'static str, u64)],
    /// How many runs draw their kills.
    drawn: u64,
    /// A run with fewer kills has left something out.
    kills: usize,
}

const QUICK: Extent = Extent { stride: 16, points: 2, repeated: &[("durable", 3)], drawn: 0, kills: 40 };
const SAMPLE: Extent =
    Extent { stride: 4, points: 2, repeated: &[("durable", 3), ("torn", 2)], drawn: 0, kills: 150 };
const FULL: Extent = Extent {
    stride: 1,
    points: 3,
    repeated: &[("durable", 1), ("durable", 2), ("durable", 3), ("lost", 2), ("lost", 3), ("torn", 2)],
    drawn: 4,
    kills: 1000,
};
/// Steps of packages take many more writes.
const PACKAGES_QUICK: Extent =
    Extent { stride: 80, points: 1, repeated: &[("durable", 4)], drawn: 0, kills: 25 };
const PACKAGES_CI: Extent = Extent {
    stride: 6,
    points: 3,
    repeated: &[("durable", 1), ("durable", 2), ("lost", 2), ("torn", 3)],
    drawn: 6,
    kills: 1000,
};

/// The extents for composite resources and for packages.
fn extents() -> [Extent; 2] {
    match std::env::var("TRANSOM_CRASH_MATRIX").as_deref() {
        Ok("full") => [FULL, FULL],
        Ok("ci") => [SAMPLE, PACKAGES_CI],
        Ok(other) => panic!("TRANSOM_CRASH_MATRIX is `ci`, `full` or not set, not {other:?}"),
        Err(_) => [QUICK, PACKAGES_QUICK],
    }
}

/// Where the planes of a repeated run die.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// All at the same.
    Same(Crash),
    /// As chance decides from this seed.
    Drawn(u64),
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
            let since = run.revision();
            snapshots.push(run.undisturbed(step).await);
            run.assert_unharmed(step, since).await;
        }
        run.assert_idle().await;
        Self { scenario, snapshots, data }
    }

    fn data_before(&self, step: usize) -> PathBuf {
        self.data.path().join(step.to_string())
    }

    /// One step in which a plane dies at its n-th write. Returns whether there was such a write.
    async fn each(&self, n: usize, crash: Crash) -> bool {
        let (step, wanted) = (&self.scenario.steps[n], &self.snapshots[n]);
        let run = Run::from(&self.data_before(n), &self.scenario, &format!("{} {crash:?}", step.name));
        let since = run.revision();
        let ended = run.attempt(step, wanted, Some(crash)).await;
        if ended == Ended::Killed {
            run.attempt(step, wanted, None).await;
            run.assert_unharmed(step, since).await;
            run.assert_idle().await;
        }
        ended == Ended::Killed
    }

    /// A whole scenario in which planes die by a pattern. Returns the number of kills.
    async fn repeatedly(&self, pattern: Pattern) -> usize {
        let run = Run::from(&self.data_before(0), &self.scenario, &format!("repeatedly {pattern:?}"));
        let mut rng = Rng::new(if let Pattern::Drawn(seed) = pattern { seed } else { 0 });
        let mut kills = 0;
        for (step, wanted) in self.scenario.steps.iter().zip(&self.snapshots) {
            let (before, since) = (kills, run.revision());
            loop {
                let crash = match pattern {
                    // The first write of a plane may be an event: one that dies at the second may never get further.
                    Pattern::Same(crash) => {
                        let more = (kills - before) / WITHOUT_END;
                        Crash { at: crash.at + more as u64, ..crash }
                    }
                    Pattern::Drawn(_) => {
                        let point: &&str = rng.pick(&POINTS);
                        Crash { point, at: 1 + rng.below(6) }
                    }
                };
                if run.attempt(step, wanted, Some(crash)).await == Ended::Done {
                    break;
                }
                kills += 1;
                let endless = kills - before > MAX_WRITES as usize;
                assert!(!endless, "{} {pattern:?}: {} does not end", self.scenario.name, step.name);
            }
            run.assert_unharmed(step, since).await;
            run.assert_idle().await;
        }
        kills
    }
}

/// Runs in parallel, and the number of kills in each.
struct Matrix {
    running: JoinSet<()>,
    kills: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Matrix {
    fn start(&mut self, name: String, run: impl Future<Output = usize> + Send + 'static) {
        if std::env::var("TRANSOM_CRASH_ONLY").is_ok_and(|only| !name.contains(&only)) {
            return;
        }
        let kills = self.kills.clone();
        self.running.spawn(async move {
            let _lane = LANES.acquire().await.expect("the semaphore is never closed");
            let died = run.await;
            kills.lock().expect("no holder panics").insert(name, died);
        });
    }

    /// Starts the runs of one scenario.
    fn start_all(&mut self, recorded: &Arc<Recorded>, extent: Extent) {
        let scenario = recorded.scenario.name;
        for (step, n) in recorded.scenario.steps.iter().map(|a| a.name).zip(0..) {
            for (point, offset) in POINTS.into_iter().take(extent.points).zip(0..) {
                let recorded = recorded.clone();
                self.start(format!("each {scenario} {step} {point}"), async move {
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
        let same = extent.repeated.iter().map(|&(point, at)| Pattern::Same(Crash { point, at }));
        for pattern in same.chain((0..extent.drawn).map(Pattern::Drawn)) {
            let recorded = recorded.clone();
            self.start(format!("repeatedly {scenario} {pattern:?}"), async move {
                recorded.repeatedly(pattern).await
            });
        }
    }

    /// Waits for all runs. Returns the number of kills.
    async fn end(mut self) -> usize {
        let mut failures = 0;
        while let Some(ended) = self.running.join_next().await {
            failures += usize::from(ended.is_err());
        }
        let kills = self.kills.lock().expect("no holder panics").clone();
        for (run, kills) in &kills {
            println!("{kills:4} {run}");
        }
        assert_eq!(failures, 0, "runs did not end well, see above");
        kills.values().sum()
    }
}

/// Goes through the matrix of some scenarios.
async fn run_matrix(scenarios: Vec<Scenario>, extent: Extent) {
    let started = Instant::now();
    let mut matrix = Matrix { running: JoinSet::new(), kills: Arc::default() };
    for scenario in scenarios {
        matrix.start_all(&Arc::new(Recorded::new(scenario).await), extent);
    }
    let total = matrix.end().await;
    println!("{total} kills in {:?}", started.elapsed());
    if std::env::var_os("TRANSOM_CRASH_ONLY").is_none() {
        assert!(total >= extent.kills, "only {total} kills; does the binary have debug assertions?");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn composite_resources_end_as_without_kills() {
    run_matrix(composing(), extents()[0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn packages_end_as_without_kills() {
    let registry = packages::registry().await;
    run_matrix(vec![packages::scenario(&registry.host)], extents()[1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_kills_has_everything_that_is_compared() {
    let scenario = composing().remove(0);
    let run = Run::prepared(&scenario).await;
    let created = run.undisturbed(&scenario.steps[0]).await;
    let count = |snapshot: &Snapshot| {
        ["ConfigMap", "Secret", "NopResource", "Store", "XStore", "Cell"].map(|kind| snapshot.count(kind))
    };
    // Two of the store and one of the cell, beside the certificates of four namespaces and the date since which tokens are tracked.
    assert_eq!(count(&created), [3 + 5, 3, 1, 1, 1, 1], "{created:#?}");
    let mut deleted = created.clone();
    for step in &scenario.steps[1..] {
        deleted = run.undisturbed(step).await;
    }
    assert_eq!(count(&deleted), [5, 0, 0, 0, 0, 0], "{deleted:#?}");
    assert_eq!(deleted.count("CompositionRevision"), 5);
    assert!(!created.differences(&deleted).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_without_kills_have_everything_that_is_compared() {
    let registry = packages::registry().await;
    let scenario = packages::scenario(&registry.host);
    let run = Run::prepared(&scenario).await;
    let mut counted = Vec::new();
    for step in &scenario.steps {
        let snapshot = run.undisturbed(step).await;
        let kinds = [
            "Configuration",
            "ConfigurationRevision",
            "Provider",
            "CompositeResourceDefinition",
            "CustomResourceDefinition",
            "Composition",
            "Hall",
            "Function",
        ];
        let entries = snapshot.find("Lock /lock").map(|lock| lock.matches("\"source\":").count());
        counted.push((step.name, kinds.map(|kind| snapshot.count(kind)), entries.unwrap_or_default()));
    }
    let expected = [
        ("install", [2, 2, 1, 2, 3, 3, 0, 1]),
        ("use", [2, 2, 1, 2, 3, 3, 1, 1]),
        ("upgrade", [3, 4, 1, 3, 4, 5, 1, 1]),
        ("change dependency", [3, 5, 1, 3, 4, 5, 1, 1]),
        ("roll back", [3, 5, 1, 3, 4, 5, 1, 1]),
        ("remove", [2, 3, 1, 1, 2, 2, 0, 1]),
        ("remove dependency", [1, 1, 1, 0, 1, 1, 0, 1]),
    ];
    for ((name, kinds, entries), expected) in counted.iter().zip(expected) {
        assert_eq!((*name, *kinds), expected, "{counted:#?}");
        // Active revisions of Configurations and Providers, and of Functions if they have any.
        let active = kinds[0] + kinds[2];
        assert!([active, active + 1].contains(entries), "{counted:#?}");
    }
}
