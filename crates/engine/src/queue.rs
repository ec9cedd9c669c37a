//! The work queue of one controller: keys, never objects.
//!
//! A key is queued at most once and never handed out twice at the same time. What woke it is remembered only as long
//! as it takes to tell news from echoes: a reconcile reports which versions of which objects it read and wrote
//! ([`SeenVersions`]), and a change that it knew of wakes nobody.
//!
//! A key that is woken without end is slowed down, not dropped: beyond a burst its wake-ups are merged into one per
//! second, so its last event is always acted upon and other keys never wait for it.

use super::seen_versions::{ChangeNotice, ObjectHash, SeenVersions};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// An object of the controller's kind: namespace (empty for cluster-scoped ones) and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Key {
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

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

/// How long failing keys wait, and how fast busy ones run.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub first_backoff: Duration,
    pub longest_backoff: Duration,
    /// Wake-ups that are acted upon at once before a key is slowed down.
    pub burst: u32,
    /// How long a slowed key waits between runs; also how long one wake-up of the burst takes to come back.
    pub refill: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            first_backoff: Duration::from_secs(1),
            longest_backoff: Duration::from_secs(60),
            burst: 100,
            refill: Duration::from_secs(1),
        }
    }
}

impl Pace {
    fn backoff(&self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first_backoff.saturating_mul(factor).min(self.longest_backoff)
    }
}

/// What a reconcile wants to happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until something changes.
    Wait,
    /// Run again after this long, or sooner if something changes.
    After(Duration),
    /// Run again at once: what was read is no longer what is.
    Again,
    /// Try again later, and later still if it goes on like this.
    Backoff,
    /// The same, because of an error that was told to whom it concerns.
    Failed,
    /// Someone else was faster: look again at once, and only back off if that goes on.
    Conflict,
    /// Nothing: the object is gone.
    Gone,
}

/// The longest that a key waits: longer than a process runs, and short enough to be added to any time.
const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Conflicts in a row after which a key backs off.
const CONFLICTS: u32 = 3;

#[derive(Debug, Default)]
struct Entry {
    phase: Phase,
    failures: u32,
    /// When the key is due again, if it waits for that.
    due: Option<(Instant, u64)>,
    seen: SeenVersions,
    /// What happened while the key ran.
    meanwhile: Vec<ChangeNotice>,
    /// Something happened while the key ran that is news whatever the run knew.
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

/// Objects that are told apart when it is asked who wakes a key so often.
const NOISY: usize = 64;

/// Changes remembered while a key runs; beyond that it simply runs again. A run that writes thousands of objects must
/// be able to recognise the echoes of all of them.
const MEANWHILE: usize = 1 << 14;

#[derive(Debug)]
struct Bucket {
    left: u32,
    since: Instant,
    /// Whether a wake-up had to wait since there last were any left.
    slowed: bool,
    /// How often which object woke the key, since more than half of the burst is gone.
    noise: BTreeMap<ObjectHash, u32>,
}

impl Bucket {
    /// Says whether that ends its being slowed down.
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

    fn hear(&mut self, pace: &Pace, object: ObjectHash) {
        let known = self.noise.len() < NOISY || self.noise.contains_key(&object);
        if self.left <= pace.burst / 2 && known {
            *self.noise.entry(object).or_default() += 1;
        }
    }
}

/// What a queue did so far, and what it does now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys that are ready to run.
    pub ready: u64,
    /// Keys that run.
    pub running: u64,
    /// How often a key became ready.
    pub adds: u64,
    /// How often a key has to be tried again.
    pub retries: u64,
    /// Wake-ups that made a key ready at once.
    pub at_once: u64,
    /// Wake-ups that wait because their key is slowed down; those that come in the meantime are part of them.
    pub delayed: u64,
    /// How often a key was slowed down.
    pub slowed: u64,
    /// How often a key was no longer slowed down.
    pub recovered: u64,
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

pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
    pace: Pace,
}

impl Queue {
    pub fn new(pace: Pace) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), pace }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the key soon, whatever it knows.
    pub fn wake(&self, key: &Key) {
        let mut state = self.lock();
        state.entry(key).dirty = true;
        if state.wake(key, &self.pace) {
            self.changed.notify_one();
        }
    }

    /// Runs the key soon unless it already knows of this version of the object.
    pub fn wake_by(&self, key: &Key, notice: ChangeNotice) {
        let mut state = self.lock();
        let entry = state.entry(key);
        match entry.phase {
            Phase::Running if entry.meanwhile.len() < MEANWHILE => {
                entry.meanwhile.push(notice);
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
            bucket.hear(&self.pace, notice.object);
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

    /// The key's run ended: what it knows by now, and what it wants next.
    pub fn done(&self, key: &Key, next: Next, seen: SeenVersions) {
        let mut state = self.lock();
        let now = Instant::now();
        state.counts.running = state.counts.running.saturating_sub(1);
        let failed = matches!(next, Next::Backoff | Next::Failed | Next::Conflict);
        state.counts.retries += u64::from(failed);
        let entry = state.entry(key);
        let mut meanwhile = std::mem::take(&mut entry.meanwhile);
        meanwhile.retain(|notice| !seen.includes(*notice));
        if let Some(bucket) = &mut entry.bucket {
            meanwhile.iter().for_each(|notice| bucket.hear(&self.pace, notice.object));
        }
        let news = entry.dirty || !meanwhile.is_empty();
        entry.phase = Phase::Idle;
        entry.seen = seen;
        entry.failures = if failed { entry.failures.saturating_add(1) } else { 0 };
        let failures = entry.failures;
        let again = match next {
            Next::Conflict if failures <= CONFLICTS => true,
            Next::Backoff | Next::Failed | Next::Conflict => {
                state.delay(key, now + self.pace.backoff(failures));
                false
            }
            Next::After(delay) => {
                state.delay(key, now + delay.min(LONGEST));
                false
            }
            Next::Gone if !news => {
                state.remove(key);
                return;
            }
            Next::Wait | Next::Gone => false,
            Next::Again => true,
        };
        if news || again {
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

    /// The object that woke the key most often of late, if it was woken often.
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

    /// Whether no key runs or could.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        state.ready.is_empty() && state.counts.running == 0
    }

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

    /// Makes an idle key ready, or due as soon as its pace allows. Says whether anything changed.
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
