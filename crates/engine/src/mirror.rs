//! A mirror of one kind: a cache of what exists, as far as controllers need it, kept up to date by a watch.
//!
//! list → watch from there → watch again when the stream ends → list again when the version is too old for the server.
//! Observers receive every change exactly once and in order, under the mirror's lock: they only wake queues, and must
//! not call the mirror.

use super::index::{self, Index};
use super::queue::{Key, Queue};
use super::seen_versions::{ChangeNotice, ObjectHash, Via};
use super::sighting::{Depth, Line, Notice, Page, Seen};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use http_body_util::BodyExt;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use transom_object::GroupVersionKind;

/// The wait before a failed list or watch is tried again for the first time. It doubles with each further attempt.
const MIN_RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// The longest wait before a failed list or watch is tried again.
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// How long one watch request lives on the server.
const STREAM_SECONDS: u64 = 290;
/// A stream without data for longer than the server may keep it open is treated as ended.
const STREAM_TIMEOUT: Duration = Duration::from_secs(STREAM_SECONDS + 30);
/// The most bytes of a line of a watch. No object is as large.
const MAX_LINE_BYTES: usize = 64 << 20;

/// An object was created (`before` is none), changed, or deleted (`after` is none).
pub struct Change<'a> {
    /// The kind of the object.
    pub gvk: &'a GroupVersionKind,
    /// The object before the change.
    pub before: Option<&'a Seen>,
    /// The object after the change.
    pub after: Option<&'a Seen>,
    /// The version of the change.
    pub version: u64,
    /// Whether changes before this one may have been missed: it was found by a list.
    pub gap: bool,
}

impl Change<'_> {
    /// Wakes a key because of this change.
    pub fn wake(&self, queue: &Queue, key: &Key) {
        if let Some(object) = self.object() {
            let hash = ObjectHash::new(self.gvk, &object.key.namespace, &object.key.name);
            let via = if self.gap { Via::List } else { Via::Watch };
            queue.wake_by(key, ChangeNotice { object: hash, version: self.version, via });
        }
    }

    /// Whether the object was created, deleted, replaced by another of its name, or got other labels.
    pub fn is_of_identity(&self) -> bool {
        let (Some(before), Some(after)) = (self.before, self.after) else { return true };
        self.gap || before.uid != after.uid || before.labels != after.labels
    }

    /// Whether the deletion of the object began or ended.
    fn is_deletion(&self) -> bool {
        let begins = |after: &Seen| after.deleting && self.before.is_none_or(|before| !before.deleting);
        self.after.is_none_or(begins)
    }

    /// The object as it is, or as it last was.
    pub fn object(&self) -> Option<&Seen> {
        self.after.or(self.before)
    }
}

/// Receives the changes of a kind. Called under the mirror's lock: implementations are quick, and do not call the mirror.
pub trait Observer: Send + Sync {
    /// An object changed.
    fn changed(&self, change: &Change<'_>);

    /// Everything was listed, and `changed` was called for every difference to what the mirror had. Objects that were
    /// created and deleted between two lists were not reported.
    fn listed(&self, _: &Listing<'_>) {}
}

/// All objects of a kind at a version.
pub struct Listing<'a> {
    /// The kind.
    pub gvk: &'a GroupVersionKind,
    /// The objects.
    pub objects: &'a BTreeMap<Key, Arc<Seen>>,
    /// The version of the list.
    pub version: u64,
    /// Whether this is the first list of the mirror.
    pub first: bool,
}

impl<F: Fn(&Change<'_>) + Send + Sync> Observer for F {
    fn changed(&self, change: &Change<'_>) {
        self(change);
    }
}

/// Wakes the key of the object that changed. A deletion ends the slowing down of the key, so that neither the deletion
/// nor a new object of the same name waits.
pub fn wake_itself(queue: Arc<Queue>) -> Arc<dyn Observer> {
    Arc::new(move |change: &Change<'_>| {
        if let Some(object) = change.object() {
            if change.is_deletion() {
                queue.calm(&object.key);
            }
            change.wake(&queue, &object.key);
        }
    })
}

/// The objects that a mirror contained at a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// Their keys.
    pub keys: Vec<Key>,
    /// The version at which these, and no others, were selected.
    pub version: u64,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Key, Arc<Seen>>,
    /// Built when it is first used.
    index: Option<Index>,
    /// Everything up to this version is in the mirror.
    version: u64,
    observers: Vec<(u64, Arc<dyn Observer>)>,
    next_observer: u64,
}

/// A cache of the objects of one kind.
pub struct Mirror {
    gvk: GroupVersionKind,
    depth: Depth,
    state: Mutex<State>,
    /// `None` until the first list ended; then whether the mirror is up to date, or why not.
    condition: watch::Sender<Option<Result<(), Arc<Error>>>>,
    /// The version of the state, for waiting until it reaches another.
    reached: watch::Sender<u64>,
    retry: Notify,
}

impl Mirror {
    pub(super) fn new(gvk: GroupVersionKind, depth: Depth) -> Self {
        let (condition, _) = watch::channel(None);
        let (reached, _) = watch::channel(0);
        Self { gvk, depth, state: Mutex::default(), condition, reached, retry: Notify::new() }
    }

    /// The kind.
    pub fn gvk(&self) -> &GroupVersionKind {
        &self.gvk
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One object.
    pub fn get(&self, key: &Key) -> Option<Arc<Seen>> {
        self.lock().objects.get(key).cloned()
    }

    /// All objects.
    pub fn all(&self) -> Vec<Arc<Seen>> {
        self.lock().objects.values().cloned().collect()
    }

    /// The objects with all these labels, in one namespace or in all. The cost grows with the number of objects that have
    /// the rarest of the labels; without labels, with the number of objects in the namespace.
    pub fn select(&self, namespace: Option<&str>, labels: &BTreeMap<String, String>) -> Selected {
        let mut state = self.lock();
        let State { objects, index, version, .. } = &mut *state;
        if !labels.is_empty() && index.is_none() {
            *index = Some(Index::of(objects));
        }
        let keys = match index.as_ref().and_then(|index| index.candidates(labels)) {
            Some(candidates) => {
                let has = |seen: &Arc<Seen>| labels.iter().all(|(k, v)| seen.labels.get(k) == Some(v));
                let candidates = index::within(candidates, namespace);
                candidates.filter(|key| objects.get(*key).is_some_and(has)).cloned().collect()
            }
            None => {
                let here = |key: &&Key| namespace.is_none_or(|namespace| &*key.namespace == namespace);
                let from = Key::new(namespace.unwrap_or_default(), "");
                objects.range(from..).map(|(key, _)| key).take_while(here).cloned().collect()
            }
        };
        Selected { keys, version: *version }
    }

    /// Waits until the mirror has everything up to a version. Returns false if its watch does not work or takes longer
    /// than `deadline`.
    pub async fn reaches(&self, version: u64, deadline: Duration) -> bool {
        let waiting = async {
            if self.ready().await.is_err() {
                return false;
            }
            self.reached.subscribe().wait_for(|reached| *reached >= version).await.is_ok()
        };
        tokio::time::timeout(deadline, waiting).await.unwrap_or(false)
    }

    /// Waits until a list has succeeded. From then on every deletion is reported; one before the first list is not.
    /// Returns false after `deadline`.
    pub async fn filled(&self, deadline: Duration) -> bool {
        let mut reached = self.reached.subscribe();
        let waiting = reached.wait_for(|version| *version > 0);
        tokio::time::timeout(deadline, waiting).await.is_ok_and(|reached| reached.is_ok())
    }

    /// Notes that everything up to a version is in the mirror.
    fn advance(&self, state: &mut State, version: u64) {
        if version > state.version {
            state.version = version;
            self.reached.send_replace(version);
        }
    }

    /// Whether the first list ended, successfully or not.
    pub(super) fn is_attempted(&self) -> bool {
        self.condition.borrow().is_some()
    }

    /// Waits until the first list ended; an error says why the mirror is not up to date.
    pub async fn ready(&self) -> Result<()> {
        let mut condition = self.condition.subscribe();
        let attempted = condition.wait_for(Option::is_some).await;
        match attempted.as_deref() {
            Ok(Some(Err(why))) => Err(Error::Watch(why.clone())),
            Ok(_) => Ok(()),
            Err(_) => Err(Error::WatchStopped),
        }
    }

    /// Adds an observer, and reports to it what exists.
    pub(super) fn observe(&self, observer: Arc<dyn Observer>) -> u64 {
        let mut state = self.lock();
        for seen in state.objects.values() {
            observer.changed(&Change {
                gvk: &self.gvk,
                before: None,
                after: Some(seen),
                version: seen.version,
                gap: true,
            });
        }
        if state.version > 0 {
            let (objects, version) = (&state.objects, state.version);
            observer.listed(&Listing { gvk: &self.gvk, objects, version, first: false });
        }
        state.next_observer += 1;
        let id = state.next_observer;
        state.observers.push((id, observer));
        id
    }

    /// Removes an observer. Returns whether it was the last.
    pub(super) fn unsubscribe(&self, id: u64) -> bool {
        let mut state = self.lock();
        state.observers.retain(|(other, _)| *other != id);
        state.observers.is_empty()
    }

    /// Ends the wait before the next attempt, if there is one.
    pub(super) fn retry(&self) {
        self.retry.notify_one();
    }

    /// Keeps the mirror up to date. Never returns.
    pub(super) async fn follow(&self, cluster: &Cluster) {
        let mut wait = MIN_RETRY_INTERVAL;
        let mut from = None;
        loop {
            let ended = match from.take() {
                None => self.list(cluster).await,
                Some(version) => self.watch(cluster, version).await,
            };
            match ended {
                Ok(version) => {
                    from = Some(version);
                    wait = MIN_RETRY_INTERVAL;
                }
                Err(e) => {
                    if e.is_not_found() || e.is_unknown_kind() {
                        // The kind is not served (any longer): nothing of it exists.
                        cluster.forget_group(&self.gvk.group);
                        self.replace(BTreeMap::new(), 0);
                    } else if e.is_interruption() {
                        // Nothing was missed: the watch goes on from here, unless the server has forgotten the version.
                        from = self.resumable();
                    }
                    tracing::debug!(kind = %self.gvk.kind, error = %e.chain(), "a watch failed");
                    self.condition.send_replace(Some(Err(Arc::new(e))));
                    tokio::select! {
                        biased;
                        () = self.retry.notified() => wait = MIN_RETRY_INTERVAL,
                        () = tokio::time::sleep(wait) => wait = (wait * 2).min(MAX_RETRY_INTERVAL),
                    }
                }
            }
        }
    }

    /// The version up to which everything is in the mirror.
    fn resumable(&self) -> Option<String> {
        let version = self.lock().version;
        (version > 0).then(|| version.to_string())
    }

    /// Lists everything. Returns the version to watch from.
    async fn list(&self, cluster: &Cluster) -> Result<String> {
        let kind = cluster.kind(&self.gvk).await?;
        let mut objects = BTreeMap::new();
        let (mut token, mut length) = (String::new(), 0);
        let version = loop {
            let bytes = cluster.page(&kind, &token, self.depth.extent(), &mut length).await?;
            let page: Page<'_> = serde_json::from_slice(&bytes).map_err(unreadable)?;
            for item in page.items.unwrap_or_default() {
                let seen = Seen::read(item, self.depth).map_err(unreadable)?;
                objects.insert(seen.key.clone(), Arc::new(seen));
            }
            if page.metadata.token.is_empty() {
                break page.metadata.resource_version;
            }
            token = page.metadata.token;
        };
        self.replace(objects, super::version(&version));
        self.condition.send_replace(Some(Ok(())));
        Ok(version)
    }

    /// Replaces the contents of the mirror, and reports the differences.
    fn replace(&self, mut objects: BTreeMap<Key, Arc<Seen>>, version: u64) {
        let mut state = self.lock();
        let gone: Vec<Arc<Seen>> =
            state.objects.values().filter(|old| !objects.contains_key(&old.key)).cloned().collect();
        for old in gone {
            state.take(&old.key);
            state.notify(&Change { gvk: &self.gvk, before: Some(&old), after: None, version, gap: true });
        }
        while let Some((_, seen)) = objects.pop_first() {
            state.put(&self.gvk, &seen, true);
        }
        let first = state.version == 0;
        let listing = Listing { gvk: &self.gvk, objects: &state.objects, version, first };
        state.observers.iter().for_each(|(_, observer)| observer.listed(&listing));
        self.advance(&mut state, version);
    }

    /// Watches until the stream ends. Returns the version to continue from.
    async fn watch(&self, cluster: &Cluster, mut version: String) -> Result<String> {
        let kind = cluster.kind(&self.gvk).await?;
        let mut body = cluster.watch(&kind, &version, STREAM_SECONDS, self.depth.extent()).await?;
        self.condition.send_replace(Some(Ok(())));
        let mut buffer = Vec::new();
        loop {
            let frame = match tokio::time::timeout(STREAM_TIMEOUT, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(e))) => return Err(Error::transport(e)),
                Ok(None) | Err(_) => return Ok(version),
            };
            let Ok(data) = frame.into_data() else { continue };
            buffer.extend_from_slice(&data);
            let mut start = 0;
            while let Some(end) = buffer[start..].iter().position(|b| *b == b'\n') {
                self.line(&buffer[start..start + end], &mut version)?;
                start += end + 1;
            }
            buffer.drain(..start);
            if buffer.len() > MAX_LINE_BYTES {
                return Err(Error::unreadable("cannot read a watch", "a line has no end"));
            }
        }
    }

    fn line(&self, text: &[u8], version: &mut String) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let line: Line<'_> = serde_json::from_slice(text).map_err(unreadable)?;
        match &*line.kind {
            "ADDED" | "MODIFIED" => {
                let seen = Seen::read(line.object, self.depth).map_err(unreadable)?;
                *version = seen.version.to_string();
                let mut state = self.lock();
                state.put(&self.gvk, &Arc::new(seen), false);
                self.advance(&mut state, super::version(version));
            }
            "DELETED" => {
                let seen = Seen::read(line.object, self.depth).map_err(unreadable)?;
                *version = seen.version.to_string();
                let mut state = self.lock();
                let before = state.take(&seen.key);
                let before = before.as_deref().unwrap_or(&seen);
                state.notify(&Change {
                    gvk: &self.gvk,
                    before: Some(before),
                    after: None,
                    version: seen.version,
                    gap: false,
                });
                self.advance(&mut state, seen.version);
            }
            "BOOKMARK" => {
                let notice: Notice = read(line.object)?;
                *version = notice.metadata.resource_version;
                self.advance(&mut self.lock(), super::version(version));
            }
            _ => {
                let notice: Notice = read(line.object)?;
                let reason = String::new();
                return Err(Error::Refused { code: notice.code, reason, message: notice.message });
            }
        }
        Ok(())
    }
}

impl State {
    fn put(&mut self, gvk: &GroupVersionKind, seen: &Arc<Seen>, gap: bool) {
        let before = self.objects.insert(seen.key.clone(), seen.clone());
        if let Some(index) = &mut self.index
            && before.as_ref().is_none_or(|before| before.labels != seen.labels)
        {
            before.iter().for_each(|before| index.remove(before));
            index.add(seen);
        }
        if before.as_ref().is_some_and(|b| b.version == seen.version && b.uid == seen.uid) {
            return;
        }
        let version = seen.version;
        self.notify(&Change { gvk, before: before.as_deref(), after: Some(seen), version, gap });
    }

    fn take(&mut self, key: &Key) -> Option<Arc<Seen>> {
        let seen = self.objects.remove(key)?;
        if let Some(index) = &mut self.index {
            index.remove(&seen);
        }
        Some(seen)
    }

    fn notify(&self, change: &Change<'_>) {
        for (_, observer) in &self.observers {
            observer.changed(change);
        }
    }
}

fn read(text: &RawValue) -> Result<Notice> {
    serde_json::from_str(text.get()).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::unreadable("cannot read a list or watch", error)
}
