//! Watching: a cursor over the history of a resource.
//!
//! A watch owns no queue. It remembers the number of the event it wants next, looks it up in the newest
//! published state, and sleeps on the resource's [`Notify`] when it is not there yet. A watch that is so slow
//! that its next event left the history ends; it never holds up a writer or other watches.

use crate::model::{Compacted, Event};
use crate::state::{Ring, State};
use crate::store::Shared;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The changes of one resource, or of all, in revision order.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    /// `None` watches everything.
    resource: Option<Arc<str>>,
    wake: Arc<Notify>,
    position: u64,
    /// Everything up to here has been delivered.
    seen: u64,
}

impl Watch {
    pub(crate) fn new(
        shared: Arc<Shared>,
        resource: Option<Arc<str>>,
        after: u64,
    ) -> Result<Self, Compacted> {
        let state = shared.state.load_full();
        let floor = resource.as_ref().map_or(state.history.floor, |resource| state.floor(resource));
        state.reaches(after, floor)?;
        let position = ring(&state, resource.as_deref()).map_or(0, |ring| ring.position_after(after));
        let wake = shared.topics.topic(resource.as_ref());
        Ok(Self { shared, resource, wake, position, seen: after })
    }

    /// The next change, waiting for it. `None` once the watch fell out of the history, or the store was shut
    /// down. Cancel safe.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        let wake = Arc::clone(&self.wake);
        loop {
            let mut woken = std::pin::pin!(wake.notified());
            // Listening starts before looking, or a change between the two would be slept through.
            woken.as_mut().enable();
            match self.poll() {
                Step::Event(event) => return Some(event),
                Step::Ended => return None,
                Step::Pending if self.shared.is_closed() => return None,
                Step::Pending => woken.await,
            }
        }
    }

    /// The next change if it is there already.
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        match self.poll() {
            Step::Event(event) => Some(event),
            Step::Ended | Step::Pending => None,
        }
    }

    /// The revision up to which this watch has delivered everything, for bookmarks. Moves on with the store
    /// while nothing of interest happens.
    pub fn revision(&self) -> u64 {
        let state = self.shared.state.load();
        let caught_up = match ring(&state, self.resource.as_deref()) {
            Some(ring) => self.position >= ring.end(),
            None => true,
        };
        if caught_up { self.seen.max(state.revision) } else { self.seen }
    }

    fn poll(&mut self) -> Step {
        let state = self.shared.state.load();
        let Some(ring) = ring(&state, self.resource.as_deref()) else { return Step::Pending };
        loop {
            match ring.get(self.position) {
                Err(_) => return Step::Ended,
                Ok(None) => return Step::Pending,
                Ok(Some(event)) => {
                    self.position += 1;
                    // A watch may start after a revision that is yet to come.
                    if event.revision > self.seen {
                        self.seen = event.revision;
                        return Step::Event(Arc::clone(event));
                    }
                }
            }
        }
    }
}

enum Step {
    Event(Arc<Event>),
    Pending,
    Ended,
}

fn ring<'a>(state: &'a State, resource: Option<&str>) -> Option<&'a Ring> {
    match resource {
        Some(resource) => state.resources.get(resource).map(|resource| &resource.history),
        None => Some(&state.history),
    }
}

/// Who is to be woken by which resource.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    /// Woken by every change.
    pub(crate) all: Arc<Notify>,
    by_resource: Mutex<HashMap<Arc<str>, Arc<Notify>>>,
}

impl Topics {
    fn topic(&self, resource: Option<&Arc<str>>) -> Arc<Notify> {
        let Some(resource) = resource else { return Arc::clone(&self.all) };
        let mut topics = self.lock();
        if let Some(topic) = topics.get(resource) {
            return Arc::clone(topic);
        }
        // A topic that only this map refers to has no watches.
        topics.retain(|_, topic| Arc::strong_count(topic) > 1);
        Arc::clone(topics.entry(Arc::clone(resource)).or_default())
    }

    /// Wakes the watches of the resources that `events` changed.
    pub(crate) fn wake(&self, events: &[Arc<Event>]) {
        let mut last: Option<&str> = None;
        {
            let topics = self.lock();
            for event in events {
                let resource = &event.key.resource;
                // Waking twice is harmless; batches mostly touch one resource in a row.
                if last != Some(&**resource) {
                    if let Some(topic) = topics.get(resource) {
                        topic.notify_waiters();
                    }
                    last = Some(&**resource);
                }
            }
        }
        self.all.notify_waiters();
    }

    pub(crate) fn wake_everyone(&self) {
        for topic in self.lock().values() {
            topic.notify_waiters();
        }
        self.all.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Notify>>> {
        // Nothing can panic halfway through a change of this map.
        self.by_resource.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
