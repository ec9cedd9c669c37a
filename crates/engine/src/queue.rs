//! The work queue of one controller: keys, never objects.
//!
//! A key is queued at most once and never handed out twice at the same time. A run reports which versions of which
//! objects it read and wrote ([`SeenVersions`]); a change of such a version is an echo and does not wake the key. Changes
//! that arrive during a run are kept until the run reports. See `README.md` of this crate.
//!
//! A key that is woken very often is slowed down, and no change is dropped: after a burst its wake-ups are merged into
//! one per second, so that its last change is always acted upon and other keys do not wait for it.

use super::seen_versions::{ChangeNotice, ObjectHash, SeenVersions};
use crate::pace::Pace;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Identifies an object of the controller's kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of this namespace and name.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object.
    pub fn of(object: &serde_json::Value) -> Self {
        Self::new(transom_object::meta::namespace(object), transom_object::meta::name(object))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// What happens to a key after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until something changes.
    Wait,
    /// Run again after this long, or sooner if something changes.
    After(Duration),
    /// Run again at once: what was read is out of date.
    Again,
    /// Run again later, after longer and longer waits.
    Backoff,
    /// The same, because of an error that the reconciler has reported itself.
    Failed,
    /// The same, and not before this long: a server asked for that.
    FailedFor(Duration),
    /// Another client changed the object first: run again at once, and back off if that happens repeatedly.
    Conflict,
    /// Nothing: the object is gone, and the queue forgets its key.
    Gone,
}

/// The longest that a key waits: longer than a process runs, and short enough to be added to any time.
const MAX_DELAY: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// How many conflicts in a row are retried at once; after that a key backs off.
const MAX_IMMEDIATE_CONFLICTS: u32 = 3;

#[derive(Debug, Default)]
struct Entry {
    phase: Phase,
    failures: u32,
    /// When the key runs again, if it waits for a time.
    due: Option<(Instant, u64)>,
    seen: SeenVersions,
    /// The changes that arrived while the key runs.
    pending: Vec<ChangeNotice>,
    /// Whether the key must run again after the current run, regardless of the versions that the run has seen.
    dirty: bool,
    bucket: Option<Bucket>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    Queued,
    Running,
}

/// How many objects are counted separately to find the one that wakes a key most often.
const MAX_NOISY_OBJECTS: usize = 64;

/// How many changes are kept while a key runs; if there are more, the key runs again. A run that writes thousands of
/// objects must be able to recognise the echoes of all of them.
const MAX_PENDING_CHANGES: usize = 1 << 14;

#[derive(Debug)]
struct Bucket {
    left: u32,
    since: Instant,
    /// Whether a wake-up had to wait since the burst was last used up.
    slowed: bool,
    /// How often each object woke the key since more than half of the burst was used.
    noise: BTreeMap<ObjectHash, u32>,
}

impl Bucket {
    /// Adds the wake-ups that became available. Returns whether the key is no longer slowed down because of that.
    fn refill(&mut self, pace: &Pace, now: Instant) -> bool {
        let periods = now.duration_since(self.since).as_millis() / pace.refill.as_millis().max(1);
        let periods = u32::try_from(periods).unwrap_or(u32::MAX);
        if periods > 0 {
            self.left = self.left.saturating_add(periods).min(pace.burst);
            self.since += pace.refill.saturating_mul(periods);
        }
        if self.left > pace.burst / 2 {
            self.noise.clear();
        }
        self.left > 0 && std::mem::take(&mut self.slowed)
    }

    /// Counts a wake-up by an object, while more than half of the burst is used.
    fn count(&mut self, pace: &Pace, object: ObjectHash) {
        let counted = self.noise.len() < MAX_NOISY_OBJECTS || self.noise.contains_key(&object);
        if self.left <= pace.burst / 2 && counted {
            *self.noise.entry(object).or_default() += 1;
        }
    }
}

/// The state of a queue, and what it did since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys that are ready to run.
    pub ready: u64,
    /// Keys that are running.
    pub running: u64,
    /// How often a key became ready.
    pub adds: u64,
    /// How often a run failed and its key was queued again.
    pub retries: u64,
    /// Wake-ups that made a key ready at once.
    pub at_once: u64,
    /// Wake-ups that wait because their key is slowed down. Further wake-ups of a waiting key are not counted.
    pub delayed: u64,
    /// How often a key was slowed down.
    pub slowed: u64,
    /// How often a key was no longer slowed down.
    pub recovered: u64,
}

impl Counts {
    /// Whether no key runs or is ready to run.
    pub fn is_idle(&self) -> bool {
        self.ready == 0 && self.running == 0
    }
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ready: self.ready + other.ready,
            running: self.running + other.running,
            adds: self.adds + other.adds,
            retries: self.retries + other.retries,
            at_once: self.at_once + other.at_once,
            delayed: self.delayed + other.delayed,
            slowed: self.slowed + other.slowed,
            recovered: self.recovered + other.recovered,
        }
    }
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    ready: VecDeque<Key>,
    delayed: BTreeMap<(Instant, u64), Key>,
    sequence: u64,
    closed: bool,
    counts: Counts,
}

/// The work queue of one controller.
pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
    pace: Pace,
}

impl Queue {
    /// An empty queue.
    pub fn new(pace: Pace) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), pace }
    }

    /// Whether the metrics show the slowing down of keys as a circuit breaker.
    pub(crate) fn has_circuit_breaker(&self) -> bool {
        self.pace.circuit_breaker
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the key soon, regardless of the versions that it has seen.
    pub fn wake(&self, key: &Key) {
        let mut state = self.lock();
        state.entry(key).dirty = true;
        if state.wake(key, &self.pace) {
            self.changed.notify_one();
        }
    }

    /// Runs the key soon, unless its last run has seen this version of the object.
    pub fn wake_by(&self, key: &Key, notice: ChangeNotice) {
        let mut state = self.lock();
        let entry = state.entry(key);
        match entry.phase {
            Phase::Running if entry.pending.len() < MAX_PENDING_CHANGES => {
                entry.pending.push(notice);
                return;
            }
            Phase::Running => {
                entry.dirty = true;
                return;
            }
            _ if entry.seen.includes(notice) => return,
            _ => {}
        }
        if let Some(bucket) = &mut entry.bucket {
            bucket.count(&self.pace, notice.object);
        }
        if state.wake(key, &self.pace) {
            self.changed.notify_one();
        }
    }

    /// The next key to run; `None` once the queue is closed. [`done`](Self::done) must follow.
    pub async fn next(&self) -> Option<Key> {
        loop {
            let changed = self.changed.notified();
            let until = {
                let mut state = self.lock();
                if state.closed {
                    return None;
                }
                state.promote(Instant::now());
                if let Some(key) = state.ready.pop_front() {
                    let entry = state.entry(&key);
                    entry.phase = Phase::Running;
                    entry.dirty = false;
                    state.counts.running += 1;
                    if !state.ready.is_empty() {
                        self.changed.notify_one();
                    }
                    return Some(key);
                }
                state.delayed.keys().next().map(|(due, _)| *due)
            };
            match until {
                None => changed.await,
                Some(due) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = tokio::time::sleep_until(due) => {}
                },
            }
        }
    }

    /// Ends a run of the key: `seen` is what it read and wrote, `next` what happens to the key.
    pub fn done(&self, key: &Key, next: Next, seen: SeenVersions) {
        let mut state = self.lock();
        let now = Instant::now();
        state.counts.running = state.counts.running.saturating_sub(1);
        let failed = matches!(next, Next::Backoff | Next::Failed | Next::FailedFor(_) | Next::Conflict);
        state.counts.retries += u64::from(failed);
        let entry = state.entry(key);
        let mut pending = std::mem::take(&mut entry.pending);
        pending.retain(|notice| !seen.includes(*notice));
        if let Some(bucket) = &mut entry.bucket {
            pending.iter().for_each(|notice| bucket.count(&self.pace, notice.object));
        }
        let changed = entry.dirty || !pending.is_empty();
        entry.phase = Phase::Idle;
        entry.seen = seen;
        entry.failures = if failed { entry.failures.saturating_add(1) } else { 0 };
        let failures = entry.failures;
        let again = match next {
            Next::Conflict if failures <= MAX_IMMEDIATE_CONFLICTS => true,
            Next::Backoff | Next::Failed | Next::Conflict => {
                state.delay(key, now + self.pace.backoff(key, failures));
                false
            }
            Next::FailedFor(asked) => {
                let wait = self.pace.backoff_of_at_least(key, failures, asked.min(MAX_DELAY));
                state.delay(key, now + wait);
                false
            }
            Next::After(delay) => {
                state.delay(key, now + delay.min(MAX_DELAY));
                false
            }
            Next::Gone if !changed => {
                state.remove(key);
                return;
            }
            Next::Wait | Next::Gone => false,
            Next::Again => true,
        };
        if changed || again {
            state.wake(key, &self.pace);
        }
        self.changed.notify_one();
    }

    /// Whether the key is being slowed down.
    pub fn is_slowed(&self, key: &Key) -> bool {
        let mut state = self.lock();
        let now = Instant::now();
        let Some(bucket) = state.entries.get_mut(key).and_then(|e| e.bucket.as_mut()) else { return false };
        let recovered = bucket.refill(&self.pace, now);
        let slowed = bucket.left == 0;
        state.counts.recovered += u64::from(recovered);
        slowed
    }

    /// Forgets how often the key was woken.
    pub fn calm(&self, key: &Key) {
        let mut state = self.lock();
        let bucket = state.entries.get_mut(key).and_then(|entry| entry.bucket.take());
        let recovered = bucket.is_some_and(|bucket| bucket.slowed);
        state.counts.recovered += u64::from(recovered);
    }

    /// The object that recently woke the key most often, if the key was woken often.
    pub fn noisiest(&self, key: &Key) -> Option<ObjectHash> {
        let state = self.lock();
        let noise = &state.entries.get(key)?.bucket.as_ref()?.noise;
        noise.iter().max_by_key(|(_, times)| **times).map(|(object, _)| *object)
    }

    /// Hands out no more keys.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Whether no key runs or is ready to run.
    pub fn is_idle(&self) -> bool {
        self.counts().is_idle()
    }

    /// Whether a key waits because its last run failed, or because it is slowed down.
    pub fn awaits_retry(&self) -> bool {
        let state = self.lock();
        state.delayed.values().any(|key| {
            let waits = |entry: &Entry| entry.failures > 0 || entry.bucket.as_ref().is_some_and(|b| b.slowed);
            state.entries.get(key).is_some_and(waits)
        })
    }

    /// What the queue does and did.
    pub fn counts(&self) -> Counts {
        let state = self.lock();
        Counts { ready: u64::try_from(state.ready.len()).unwrap_or(u64::MAX), ..state.counts }
    }
}

impl State {
    fn entry(&mut self, key: &Key) -> &mut Entry {
        if !self.entries.contains_key(key) {
            self.entries.insert(key.clone(), Entry::default());
        }
        self.entries.entry(key.clone()).or_default()
    }

    /// Makes an idle key ready, or lets it wait as long as its pace requires. Returns whether anything changed.
    fn wake(&mut self, key: &Key, pace: &Pace) -> bool {
        let now = Instant::now();
        let entry = self.entry(key);
        if entry.phase != Phase::Idle {
            return false;
        }
        let fresh = Bucket { left: pace.burst, since: now, slowed: false, noise: BTreeMap::new() };
        let bucket = entry.bucket.get_or_insert(fresh);
        let recovered = bucket.refill(pace, now);
        if bucket.left == 0 {
            let due = bucket.since + pace.refill;
            let newly = !std::mem::replace(&mut bucket.slowed, true);
            let sooner = entry.due.is_none_or(|(current, _)| current > due);
            self.counts.slowed += u64::from(newly);
            if sooner {
                self.counts.delayed += 1;
                self.delay(key, due);
            }
            return sooner;
        }
        bucket.left -= 1;
        self.counts.recovered += u64::from(recovered);
        self.counts.at_once += 1;
        self.make_ready(key);
        true
    }

    fn make_ready(&mut self, key: &Key) {
        let entry = self.entry(key);
        entry.phase = Phase::Queued;
        let due = entry.due.take();
        self.counts.adds += 1;
        if let Some(due) = due {
            self.delayed.remove(&due);
        }
        self.ready.push_back(key.clone());
    }

    fn delay(&mut self, key: &Key, due: Instant) {
        self.sequence += 1;
        let at = (due, self.sequence);
        if let Some(before) = self.entry(key).due.replace(at) {
            self.delayed.remove(&before);
        }
        self.delayed.insert(at, key.clone());
    }

    fn promote(&mut self, now: Instant) {
        while let Some((at, key)) = self.delayed.first_key_value() {
            if at.0 > now {
                return;
            }
            let key = key.clone();
            self.delayed.pop_first();
            let entry = self.entry(&key);
            entry.due = None;
            if entry.phase == Phase::Idle {
                self.make_ready(&key);
            }
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key)
            && let Some(due) = entry.due
        {
            self.delayed.remove(&due);
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
