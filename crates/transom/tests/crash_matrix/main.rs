//! Killed with SIGKILL between any two durable writes in the life of a composite resource, the next process finishes the
//! work: the world is the one that a calm life ends in, to the last object.
//!
//! A plane kills itself at the n-th sync of its log, see `src/up/mortal.rs`: before it (nothing of the write is left, or
//! half of it) or after it, when nobody has been told yet. Two ways to go through a life:
//!
//! - **each**: for every act and every n, a plane dies at the n-th write of the act, and the next one finishes.
//! - **creeping**: planes die one after the other, each after so many writes, until the act is done.
//!
//! A plain run takes a sample: every fourth write, and two ways to creep. `TRANSOM_CRASH_MATRIX=full` takes all.
//! `TRANSOM_CRASH_ONLY=claim` takes the lives whose name contains that.

#![allow(clippy::panic, reason = "a test that cannot go on has failed")]

mod life;
#[path = "../plane/mod.rs"]
mod plane;
mod platform;
mod story;
mod world;

use life::{Death, Ended, Life};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use story::{Story, stories};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use world::World;

const PLACES: [&str; 2] = ["lost", "durable"];
/// How planes creep: what is left of the last write of each, and how many it makes.
const PACES: [(&str, u64); 6] =
    [("durable", 1), ("durable", 2), ("durable", 3), ("lost", 2), ("lost", 3), ("torn", 2)];
/// Lives at the same time: some of them always wait for something.
const LANES: usize = 4;
/// No act takes more writes than that.
const MANY: u64 = 300;
/// How much of the matrix a run goes through.
#[derive(Clone, Copy)]
struct Extent {
    /// Every how many writes a plane dies in `each`.
    stride: u64,
    paces: &'static [(&'static str, u64)],
    /// A run with fewer kills has left something out.
    kills: usize,
}

const SAMPLE: Extent = Extent { stride: 4, paces: &[("durable", 3), ("torn", 2)], kills: 150 };
const FULL: Extent = Extent { stride: 1, paces: &PACES, kills: 1000 };

impl Extent {
    fn asked() -> Self {
        match std::env::var("TRANSOM_CRASH_MATRIX").as_deref() {
            Ok("full") => FULL,
            Ok(other) => panic!("TRANSOM_CRASH_MATRIX is `full` or not set, not {other:?}"),
            Err(_) => SAMPLE,
        }
    }
}

/// A story, what the world is after each act, and the data to begin each act with.
struct Rehearsed {
    story: Story,
    worlds: Vec<World>,
    stages: TempDir,
}

impl Rehearsed {
    async fn new(story: Story) -> Self {
        let stages = TempDir::new().expect("a temporary directory");
        let life = Life::prepared(&story).await;
        let mut worlds = Vec::new();
        for (n, act) in story.acts.iter().enumerate() {
            life.keep(&stages.path().join(n.to_string()));
            worlds.push(life.calm(act).await);
        }
        life.must_rest().await;
        Self { story, worlds, stages }
    }

    fn stage(&self, act: usize) -> PathBuf {
        self.stages.path().join(act.to_string())
    }

    /// One act in which a plane dies at its n-th write. Says whether there was such a write.
    async fn each(&self, act: usize, death: Death) -> bool {
        let name = format!("{} {} {death:?}", self.story.name, self.story.acts[act].name);
        let life = Life::from(&self.stage(act), name);
        let ended = life.attempt(&self.story.acts[act], &self.worlds[act], Some(death)).await;
        if ended == Ended::Killed {
            life.attempt(&self.story.acts[act], &self.worlds[act], None).await;
            life.must_rest().await;
        }
        ended == Ended::Killed
    }

    /// A whole life in which every plane dies after so many writes. Says how many did.
    async fn creep(&self, death: Death) -> usize {
        let life = Life::from(&self.stage(0), format!("{} creeping {death:?}", self.story.name));
        let mut kills = 0;
        for (act, wanted) in self.story.acts.iter().zip(&self.worlds) {
            let before = kills;
            while life.attempt(act, wanted, Some(death)).await == Ended::Killed {
                kills += 1;
                assert!(
                    kills - before < MANY as usize,
                    "{} {death:?}: {} does not end",
                    self.story.name,
                    act.name
                );
            }
            life.must_rest().await;
        }
        kills
    }
}

/// Which lives are lived, in parallel, and how many planes died in them.
struct Matrix {
    lanes: Arc<Semaphore>,
    running: JoinSet<()>,
    kills: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Matrix {
    fn live(&mut self, name: String, life: impl Future<Output = usize> + Send + 'static) {
        if std::env::var("TRANSOM_CRASH_ONLY").is_ok_and(|only| !name.contains(&only)) {
            return;
        }
        let (lanes, kills) = (self.lanes.clone(), self.kills.clone());
        self.running.spawn(async move {
            let _lane = lanes.acquire().await.expect("lanes are never closed");
            let died = life.await;
            kills.lock().expect("nobody panics with it").insert(name, died);
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn a_life_in_which_any_write_is_the_last_ends_as_a_calm_one() {
    let (started, extent) = (Instant::now(), Extent::asked());
    let mut matrix =
        Matrix { lanes: Arc::new(Semaphore::new(LANES)), running: JoinSet::new(), kills: Arc::default() };
    for story in stories() {
        let rehearsed = Arc::new(Rehearsed::new(story).await);
        for (act, n) in rehearsed.story.acts.iter().map(|a| a.name).zip(0..) {
            for (place, offset) in PLACES.into_iter().zip(0..) {
                let rehearsed = rehearsed.clone();
                matrix.live(format!("each {} {act} {place}", rehearsed.story.name), async move {
                    // A sample begins at another write in every act and for every place.
                    let (mut at, mut kills) = (1 + (n as u64 + 2 * offset) % extent.stride, 0);
                    while rehearsed.each(n, Death { place, at }).await {
                        (at, kills) = (at + extent.stride, kills + 1);
                        assert!(at < MANY, "{act} does not end");
                    }
                    kills
                });
            }
        }
        for &(place, at) in extent.paces {
            let rehearsed = rehearsed.clone();
            matrix.live(format!("creeping {} {place} {at}", rehearsed.story.name), async move {
                rehearsed.creep(Death { place, at }).await
            });
        }
    }
    let mut failures = 0;
    while let Some(ended) = matrix.running.join_next().await {
        failures += usize::from(ended.is_err());
    }
    let kills = matrix.kills.lock().expect("nobody panics with it").clone();
    for (life, kills) in &kills {
        println!("{kills:4} {life}");
    }
    let total: usize = kills.values().sum();
    println!("{total} kills in {:?}", started.elapsed());
    assert_eq!(failures, 0, "lives did not end well, see above");
    if std::env::var_os("TRANSOM_CRASH_ONLY").is_none() {
        assert!(total >= extent.kills, "only {total} kills; does the binary have debug assertions?");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_calm_life_has_everything_that_is_compared() {
    let story = stories().remove(0);
    let life = Life::prepared(&story).await;
    let created = life.calm(&story.acts[0]).await;
    let count = |world: &World| {
        ["ConfigMap", "Secret", "NopResource", "Store", "XStore", "Cell"].map(|kind| world.count(kind))
    };
    // Two of the store and one of the cell, beside the certificates of four namespaces.
    assert_eq!(count(&created), [3 + 4, 3, 1, 1, 1, 1], "{created:#?}");
    let mut deleted = created.clone();
    for act in &story.acts[1..] {
        deleted = life.calm(act).await;
    }
    assert_eq!(count(&deleted), [4, 0, 0, 0, 0, 0], "{deleted:#?}");
    assert_eq!(deleted.count("CompositionRevision"), 5);
    assert!(!created.differences(&deleted).is_empty());
}
