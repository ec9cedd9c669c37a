//! What the server does on its own: garbage collection by owner references, emptying of deleted namespaces and
//! definitions, the initial content of new namespaces, the rules of aggregated ClusterRoles, signatures of approved certificate requests,
//! expiry of events.
//!
//! One task follows the store's log of changes and adds a key to a queue for each. The action for a key depends only on
//! what is stored now, never on the event, so that it can be repeated.

mod aggregation;
mod certificates;
mod definitions;
mod expiry;
pub(crate) mod identity;
mod namespaces;
mod owners;

use crate::crd;
use crate::server::{Inner, Server};
use aggregation::AggregatedRoles;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use owners::OwnerIndex;
use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use transom_object::Status;
use transom_store::{Event, Key};

/// Keys that are processed at the same time; their writes share the syncs of the disk.
const MAX_RUNNING_ACTIONS: usize = 64;
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// When no write under an old schema can be under way any more: longer than any request may take.
const SERVE_VERBATIM_AFTER: Duration = Duration::from_secs(65);
const EXPIRY_INTERVAL: Duration = Duration::from_secs(15);
const CLEANING_INTERVAL: Duration = Duration::from_secs(300);

/// A key of the queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Work {
    /// An object with owners, or whose deletion waits for or orphans its dependents.
    Owned(Key),
    Namespace(Arc<str>),
    /// A namespace that should have its service account and root certificate.
    Fill(Arc<str>),
    Definition(Arc<str>),
    /// A certificate signing request that may be approved.
    Certificate(Arc<str>),
    /// All certificate signing requests that are out of date, as one action: it may take a while, and leaves the other
    /// actions at a time to other keys.
    OldCertificates,
    /// An aggregated ClusterRole.
    Aggregate(Arc<str>),
    /// A namespace whose quotas may be charged with more than is used.
    Quotas(Arc<str>),
    /// A definition that changed a while ago.
    ServeVerbatim(Arc<str>),
}

#[derive(Default)]
struct Queue {
    due: VecDeque<Work>,
    waiting: HashSet<Work>,
    running: HashSet<Work>,
    /// Added again while running.
    again: HashSet<Work>,
    /// Not before a time. Few, so they are searched.
    later: Vec<(Instant, Work)>,
}

impl Queue {
    fn add(&mut self, work: Work) {
        if self.running.contains(&work) {
            self.again.insert(work);
        } else if self.waiting.insert(work.clone()) {
            self.due.push_back(work);
        }
    }

    fn take(&mut self) -> Option<Work> {
        let work = self.due.pop_front()?;
        self.waiting.remove(&work);
        self.running.insert(work.clone());
        Some(work)
    }

    fn add_later(&mut self, work: Work, delay: Duration) {
        self.later.push((Instant::now() + delay, work));
    }

    /// Adds it after a delay. Without one, what already waits for its time is not brought forward.
    fn add_after(&mut self, work: Work, delay: Duration) {
        if !delay.is_zero() {
            self.add_later(work, delay);
        } else if !self.later.iter().any(|(_, waiting)| *waiting == work) {
            self.add(work);
        }
    }

    /// Whether nothing that can change an object waits or runs. Serving a definition verbatim changes none.
    fn is_idle(&self) -> bool {
        let changes = |(_, work): &(Instant, Work)| !matches!(work, Work::ServeVerbatim(_));
        self.due.is_empty() && self.running.is_empty() && !self.later.iter().any(changes)
    }

    fn next_later(&self) -> Option<Instant> {
        self.later.iter().map(|(at, _)| *at).min()
    }

    /// Moves what has come due.
    fn advance(&mut self) {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.later).into_iter().partition(|(at, _)| *at <= now);
        self.later = later;
        let due: Vec<(Instant, Work)> = due;
        due.into_iter().for_each(|(_, work)| self.add(work));
    }

    fn done(&mut self, work: &Work) {
        self.running.remove(work);
        if self.again.remove(work) {
            self.add(work.clone());
        }
    }
}

impl Server {
    /// The newest revision, if upkeep has seen everything up to it and has nothing left to do. Objects that expire at a later
    /// time do not count.
    pub fn upkeep_idle_at(&self) -> Option<u64> {
        let revision = self.inner.store.revision();
        (self.inner.upkeep_idle_at.load(Ordering::Acquire) == revision).then_some(revision)
    }

    /// Runs until the server stops. Spawn it once.
    pub async fn run_upkeep(&self) {
        let mut stopping = self.inner.stopping.subscribe();
        tokio::select! {
            biased;
            () = upkeep(&self.inner) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    }
}

/// The index is shared with running actions, which look up dependents.
type SharedIndex = Arc<Mutex<OwnerIndex>>;

/// What is remembered of changes, besides owners.
#[derive(Default)]
struct Notes {
    expiry: expiry::Expiry,
    aggregated: AggregatedRoles,
}

async fn upkeep(server: &Arc<Inner>) {
    loop {
        let mut queue = Queue::default();
        let index: SharedIndex = Arc::default();
        let mut notes = Notes::default();
        let start = server.store.revision();
        load(server, &index, &mut notes, &mut queue);
        let Ok(mut changes) = server.store.watch_all(start) else { continue };
        let mut running = FuturesUnordered::new();
        let mut expire = tokio::time::interval(EXPIRY_INTERVAL);
        let mut clean = tokio::time::interval(CLEANING_INTERVAL);
        loop {
            while running.len() < MAX_RUNNING_ACTIONS {
                let Some(work) = queue.take() else { break };
                let (server, index) = (server.clone(), index.clone());
                running.push(async move {
                    // A panic, in an admission plugin for example, concerns this key alone.
                    let result = AssertUnwindSafe(look_at(&server, &index, &work)).catch_unwind().await;
                    (work, result.unwrap_or_else(|_| Err(Status::internal("upkeep of the object panicked"))))
                });
            }
            let idle_at = if queue.is_idle() { changes.revision() } else { 0 };
            server.upkeep_idle_at.store(idle_at, Ordering::Release);
            let next_later = queue.next_later();
            // In order, so that a simulation can be replayed.
            tokio::select! {
                biased;
                Some((work, result)) = running.next() => {
                    queue.done(&work);
                    if let Err(status) = result {
                        tracing::debug!(?work, error = %status, "upkeep will try again");
                        queue.add_later(work, RETRY_INTERVAL);
                    }
                }
                () = sleep_until(next_later), if next_later.is_some() => queue.advance(),
                _ = expire.tick() => notes.expiry.expire(server).await,
                _ = clean.tick() => queue.add(Work::OldCertificates),
                change = changes.next() => match change {
                    Some(event) => note(server, &index, &mut notes, &mut queue, &event),
                    // The watch fell out of the history: start over from what is stored.
                    None => break,
                },
            }
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}

/// Everything that is stored, as if it had just changed.
fn load(server: &Inner, index: &SharedIndex, notes: &mut Notes, queue: &mut Queue) {
    for resource in server.store.resources() {
        for (object, entry) in &server.store.snapshot(&resource).objects {
            let key = Key { resource: resource.clone(), object: object.clone() };
            let event = Event { revision: entry.revision, at: 0, key, old: None, new: Some(entry.clone()) };
            note(server, index, notes, queue, &event);
        }
    }
}

/// The keys that a change adds.
fn note(server: &Inner, index: &SharedIndex, notes: &mut Notes, queue: &mut Queue, event: &Event) {
    index.lock().unwrap_or_else(PoisonError::into_inner).note(event, |key| queue.add(Work::Owned(key)));
    namespaces::note(server, event, |work, delay| queue.add_after(work, delay));
    definitions::note(server, event, |work| queue.add(work));
    certificates::note(server, event, |work| queue.add(work));
    if definitions::changed(event) {
        queue.add_later(Work::ServeVerbatim(event.key.object.name.clone()), SERVE_VERBATIM_AFTER);
    }
    // A new object is charged when it is created.
    let freed = event.new.is_none() || event.old.is_some() || &*event.key.resource == "resourcequotas";
    if freed && server.has_quotas(&event.key.object.namespace) {
        queue.add(Work::Quotas(event.key.object.namespace.clone()));
    }
    notes.aggregated.note(event, |work| queue.add(work));
    notes.expiry.note(event);
}

async fn look_at(server: &Arc<Inner>, index: &SharedIndex, work: &Work) -> Result<(), Status> {
    match work {
        Work::Owned(key) => owners::look_at(server, index, key).await,
        Work::Namespace(name) => namespaces::empty(server, name).await,
        Work::Fill(name) => namespaces::fill(server, name).await,
        Work::Definition(name) => definitions::empty(server, name).await,
        Work::Certificate(name) => certificates::sign(server, name).await,
        Work::OldCertificates => {
            certificates::clean(server).await;
            Ok(())
        }
        Work::Aggregate(name) => aggregation::aggregate(server, name).await,
        Work::Quotas(namespace) => server.count_quotas(namespace).await,
        Work::ServeVerbatim(name) => {
            crd::serve_verbatim(server, name).await;
            Ok(())
        }
    }
}

/// Removed already, or changed in the meantime, which adds the key again: not a failure.
fn ignore_superseded(result: Result<(), Status>) -> Result<(), Status> {
    match result {
        Err(status) if matches!(status.code, 404 | 409) => Ok(()),
        other => other,
    }
}
