//! Which keys this process reconciles, and until when it may write.
//!
//! Keys are divided into shards. A process holds a shard for a [`Term`], which ends when it is given up, or by itself at a
//! deadline on the monotonic clock: a process that was stopped for longer finds the deadline passed when it continues.
//! Before each request that writes, [`Cluster`](crate::Cluster) checks the term of the run that sends it, so that a holder
//! stops to write before another process may begin ([`crate::Election`] has the rules of Leases).
//!
//! The first shard is that of the leader: whatever is not divided belongs to it. Runs of these controllers are not
//! withheld from other processes, only their writes: a run that has nothing to write does the same everywhere, starts
//! controllers of definitions and makes functions callable. So every process is ready to take over.

use crate::error::{Error, Result};
use crate::queue::Key;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use transom_object::hash::fnv1a;

/// The shard of everything that is not divided.
pub const LEADER_SHARD: u32 = 0;

/// The time in which this process holds a shard.
#[derive(Debug)]
pub struct Term {
    started: Instant,
    /// Nanoseconds after `started` at which it ends unless it is extended.
    deadline: AtomicU64,
    ended: AtomicBool,
    /// Set when no run may begin any longer, so that the shard can be handed over.
    closing: AtomicBool,
    runs: AtomicUsize,
}

impl Term {
    fn until(deadline: Instant) -> Self {
        let started = Instant::now();
        let term = Self {
            started,
            deadline: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            runs: AtomicUsize::new(0),
        };
        term.extend(deadline);
        term
    }

    fn extend(&self, deadline: Instant) {
        let after = deadline.saturating_duration_since(self.started).as_nanos();
        self.deadline.store(u64::try_from(after).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// How long requests may still be sent; none when the term is over.
    pub fn remaining(&self) -> Option<Duration> {
        if self.ended.load(Ordering::SeqCst) {
            return None;
        }
        let deadline = Duration::from_nanos(self.deadline.load(Ordering::SeqCst));
        deadline.checked_sub(self.started.elapsed()).filter(|left| !left.is_zero())
    }
}

/// Counts a run for as long as it lasts.
struct Counted(Arc<Term>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.runs.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Which shards this process holds. Clones share their content.
#[derive(Clone)]
pub struct Ownership(Option<Arc<Shared>>);

struct Shared {
    /// Into how many shards divided keys fall; with one, all belong to the leader.
    shards: u32,
    terms: Mutex<Vec<Option<Arc<Term>>>>,
    changed: watch::Sender<u64>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Arc<Term>>>> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ownership {
    /// This process is alone, and holds everything for as long as it runs.
    pub fn whole() -> Self {
        Self(None)
    }

    /// This process shares its work with others, and holds nothing yet. With one shard, the leader does everything;
    /// with more, divided keys fall into that many shards, which are held apart from the leader's.
    pub fn shared(shards: u32) -> Self {
        let shards = shards.max(1);
        let held = if shards == 1 { 1 } else { shards as usize + 1 };
        let (changed, _) = watch::channel(0);
        Self(Some(Arc::new(Shared { shards, terms: Mutex::new(vec![None; held]), changed })))
    }

    /// How many shards can be held, that of the leader included.
    pub fn held_apart(&self) -> u32 {
        self.0.as_ref().map_or(1, |shared| if shared.shards == 1 { 1 } else { shared.shards + 1 })
    }

    /// The shard of a key of a divided controller: the same in every process of every version.
    pub fn shard_of(&self, controller: &str, key: &Key) -> u32 {
        let Some(shared) = self.0.as_ref().filter(|shared| shared.shards > 1) else { return LEADER_SHARD };
        let parts = [controller.as_bytes(), key.namespace.as_bytes(), key.name.as_bytes()];
        let hash = spread(parts);
        1 + u32::try_from(hash % u64::from(shared.shards)).unwrap_or_default()
    }

    fn term(&self, shard: u32) -> Option<Arc<Term>> {
        self.0.as_ref()?.lock().get(shard as usize)?.clone()
    }

    /// Whether this process holds a shard now.
    pub fn holds(&self, shard: u32) -> bool {
        self.0.is_none() || self.term(shard).is_some_and(|term| term.remaining().is_some())
    }

    /// Begins a term, which ends at the deadline unless it is extended.
    pub(crate) fn begin(&self, shard: u32, deadline: Instant) {
        if let Some(shared) = &self.0 {
            if let Some(held) = shared.lock().get_mut(shard as usize) {
                *held = Some(Arc::new(Term::until(deadline)));
            }
            shared.changed.send_modify(|n| *n += 1);
        }
    }

    /// Moves the deadline of a term, unless the term is over.
    pub(crate) fn extend(&self, shard: u32, deadline: Instant) {
        if let Some(term) = self.term(shard).filter(|term| term.remaining().is_some()) {
            term.extend(deadline);
        }
    }

    /// Ends a term at once.
    pub(crate) fn end(&self, shard: u32) {
        if let Some(shared) = &self.0
            && let Some(term) = shared.lock().get_mut(shard as usize).and_then(Option::take)
        {
            term.ended.store(true, Ordering::SeqCst);
            shared.changed.send_modify(|n| *n += 1);
        }
    }

    /// Lets no run of a shard begin any longer, waits for those that have begun, and ends the term.
    pub(crate) async fn hand_over(&self, shard: u32, within: Duration) {
        let Some(term) = self.term(shard) else { return };
        term.closing.store(true, Ordering::SeqCst);
        let ended = async {
            while term.runs.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // Runs that take longer can no longer write.
        let _ = tokio::time::timeout(within, ended).await;
        self.end(shard);
    }

    /// Receives a number that grows whenever a term begins or ends.
    pub(crate) fn changes(&self) -> Option<watch::Receiver<u64>> {
        self.0.as_ref().map(|shared| shared.changed.subscribe())
    }

    /// Runs a reconcile of a shard. `None` if it must not begin, or if it was refused to write: the key has to run again
    /// once this process holds the shard.
    pub(crate) async fn run<T>(&self, shard: u32, run: impl Future<Output = T>) -> Option<T> {
        if self.0.is_none() {
            return Some(run.await);
        }
        let term = self.term(shard).filter(|term| term.remaining().is_some());
        let closing = term.as_ref().is_some_and(|term| term.closing.load(Ordering::SeqCst));
        if (term.is_none() && shard != LEADER_SHARD) || closing {
            return None;
        }
        let _counted = term.clone().map(|term| {
            term.runs.fetch_add(1, Ordering::SeqCst);
            Counted(term)
        });
        let writing = Arc::new(Writing { term, refused: AtomicBool::new(false) });
        let result = WRITING.scope(writing.clone(), run).await;
        (!writing.refused.load(Ordering::SeqCst)).then_some(result)
    }

    /// How long a request that writes may take; an error if it must not be sent. Outside of runs, the term of the leader
    /// counts.
    pub(crate) fn may_write(&self) -> Result<Option<Duration>> {
        if self.0.is_none() {
            return Ok(None);
        }
        let writing = WRITING.try_with(Arc::clone).ok();
        let term = match &writing {
            Some(writing) => writing.term.clone(),
            None => self.term(LEADER_SHARD),
        };
        match term.and_then(|term| term.remaining()) {
            Some(left) => Ok(Some(left)),
            None => {
                writing.iter().for_each(|writing| writing.refused.store(true, Ordering::SeqCst));
                Err(Error::NotHeld)
            }
        }
    }
}

/// What a run may write by.
struct Writing {
    term: Option<Arc<Term>>,
    refused: AtomicBool,
}

tokio::task_local! {
    static WRITING: Arc<Writing>;
}

/// A number made of texts. The low bits of FNV depend on the last bytes most; mixing spreads names that differ in one digit.
fn spread<const N: usize>(parts: [&[u8]; N]) -> u64 {
    let hash = fnv1a(parts.into_iter().flat_map(|part| part.iter().copied().chain([0])));
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_seconds(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[test]
    fn keys_always_fall_into_the_same_shards_and_evenly() {
        let shared = Ownership::shared(4);
        let of = |name: &str| shared.shard_of("composite/apps.example.org", &Key::new("", name));
        // Processes of different versions work side by side during an upgrade: these numbers must not change.
        assert_eq!(["a", "b", "c", "shop"].map(of), PINNED);
        let mut counts = [0u32; 5];
        (0..4000).for_each(|n| counts[of(&format!("app-{n}")) as usize] += 1);
        assert!(counts[0] == 0 && counts[1..].iter().all(|n| (800..1200).contains(n)), "{counts:?}");
        assert_eq!(Ownership::shared(1).shard_of("composite/x", &Key::new("", "a")), LEADER_SHARD);
    }

    const PINNED: [u32; 4] = [2, 2, 1, 1];

    #[tokio::test(start_paused = true)]
    async fn a_term_ends_by_itself() {
        let shared = Ownership::shared(1);
        shared.begin(LEADER_SHARD, in_seconds(10));
        let run = shared.run(LEADER_SHARD, async {
            assert!(shared.may_write().is_ok());
            // The process is stopped for longer than its term, in the middle of a run.
            tokio::time::advance(Duration::from_secs(11)).await;
            shared.may_write()
        });
        assert!(run.await.is_none(), "the key has to run again");
        assert!(!shared.holds(LEADER_SHARD) && shared.may_write().is_err());
        shared.extend(LEADER_SHARD, in_seconds(10));
        assert!(!shared.holds(LEADER_SHARD), "a term that is over is not extended");
        shared.begin(LEADER_SHARD, in_seconds(10));
        assert!(shared.may_write().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_of_an_earlier_term_cannot_write_in_a_later_one() {
        let shared = Ownership::shared(2);
        shared.begin(1, in_seconds(10));
        let run = shared.run(1, async {
            shared.end(1);
            shared.begin(1, in_seconds(10));
            shared.may_write()
        });
        assert!(run.await.is_none());
        assert!(shared.run(1, async { shared.may_write() }).await.is_some_and(|may| may.is_ok()));
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_leaders_controllers_run_without_a_term_and_cannot_write() {
        let shared = Ownership::shared(2);
        assert!(shared.run(1, async {}).await.is_none());
        assert_eq!(shared.run(LEADER_SHARD, async { 7 }).await, Some(7), "nothing to write");
        assert!(shared.run(LEADER_SHARD, async { shared.may_write() }).await.is_none());
        assert!(Ownership::whole().may_write().is_ok_and(|limit| limit.is_none()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_shard_is_handed_over_after_its_runs() {
        let shared = Ownership::shared(2);
        shared.begin(1, in_seconds(60));
        let running = shared.run(1, async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            shared.may_write().is_ok()
        });
        let handing = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            shared.hand_over(1, Duration::from_secs(5)).await;
        };
        let (wrote, ()) = tokio::join!(running, handing);
        assert_eq!(wrote, Some(true), "what had begun could finish");
        assert!(!shared.holds(1) && shared.run(1, async {}).await.is_none());
    }
}
