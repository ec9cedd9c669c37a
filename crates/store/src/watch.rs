//! Watching: a cursor over the history of a resource.
//!
//! A watch owns no queue. It keeps the number of its next event, looks it up in the newest published state, and
//! waits for the resource's [`Notify`] when it does not exist yet. A watch that is so slow that its next event is no
//! longer in the history ends; it never delays a writer or other watches.

use crate::model::{Compacted, Event};
use crate::state::{Ring, State};
use crate::store::Shared;
use std::collections::BTreeMap;
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

    /// Waits for the next change. `None` when its next event is no longer in the history, or the store was shut down.
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        let wake = Arc::clone(&self.wake);
        loop {
            let mut woken = std::pin::pin!(wake.notified());
            // Subscribe before reading; a change between the two would otherwise be missed.
            woken.as_mut().enable();
            match self.poll() {
                Step::Event(event) => return Some(event),
                Step::Ended => return None,
                Step::Pending if self.shared.is_closed() => return None,
                Step::Pending => woken.await,
            }
        }
    }

    /// The next change if it is available already.
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        match self.poll() {
            Step::Event(event) => Some(event),
            Step::Ended | Step::Pending => None,
        }
    }

    /// The revision up to which this watch has delivered everything, for bookmarks. Increases with the revision of the
    /// store while its resource does not change.
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
                    // A watch may start after a future revision.
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

/// The watches to notify, by resource.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    /// Woken by every change.
    pub(crate) all: Arc<Notify>,
    by_resource: Mutex<BTreeMap<Arc<str>, Arc<Notify>>>,
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
                // Notifying twice is harmless; consecutive events of a batch are mostly of one resource.
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

    pub(crate) fn wake_all(&self) {
        for topic in self.lock().values() {
            topic.notify_waiters();
        }
        self.all.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<Notify>>> {
        // Nothing can panic halfway through a change of this map.
        self.by_resource.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
