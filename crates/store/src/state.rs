//! One immutable state of the store, and how a change leads from one to the next.
//!
//! A [`State`] holds the live objects and the recent history of every resource in persistent maps, so cloning
//! it is O(1) and a change copies only the path it touches. The sequencer works on its own clone (which is
//! thereby the overlay of pending writes) and publishes it whole; readers keep whichever state they loaded.

use crate::model::{
    Committed, Compacted, Entry, Event, Expect, Key, ObjectKey, Snapshot, Write, WriteError, WriteOp,
};
use crate::options::HistoryLimits;
use imbl::{OrdMap, Vector};
use std::sync::Arc;

/// The memory of an event without the body that it keeps: itself, its key, and its entries in two rings.
const EVENT_OVERHEAD_BYTES: u64 = 256;

/// The revision of an empty store. Not 0, which clients use for "any".
pub(crate) const EMPTY_STORE_REVISION: u64 = 1;

#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) revision: u64,
    pub(crate) resources: OrdMap<Arc<str>, Arc<Resource>>,
    /// The history of all resources together.
    pub(crate) history: Ring,
    /// Revisions that clients may have seen and that were then lost with a crash: open intervals.
    gaps: Vector<(u64, u64)>,
    /// Bytes of the bodies of live objects.
    pub(crate) live_bytes: u64,
    history_bytes: u64,
    /// The revision before which nothing is known of any resource.
    origin: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Resource {
    pub(crate) objects: OrdMap<ObjectKey, Arc<Entry>>,
    pub(crate) history: Ring,
}

/// Events in revision order, without the oldest ones. Watches address them by their number since the beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    events: Vector<Arc<Event>>,
    evicted: u64,
    /// The revision of the last event that was dropped: all later events are kept.
    pub(crate) floor: u64,
}

impl Ring {
    fn starting_at(floor: u64) -> Self {
        Self { floor, ..Self::default() }
    }

    /// The number of the first event after `revision`.
    pub(crate) fn position_after(&self, revision: u64) -> u64 {
        let found = self.events.binary_search_by(|event| event.revision.cmp(&revision));
        self.evicted + found.map_or_else(|next| next, |at| at + 1) as u64
    }

    pub(crate) fn end(&self) -> u64 {
        self.evicted + self.events.len() as u64
    }

    /// The event at `position`: `Err` when it was dropped, `None` when it has not happened.
    pub(crate) fn get(&self, position: u64) -> Result<Option<&Arc<Event>>, Gone> {
        let index = position.checked_sub(self.evicted).ok_or(Gone)?;
        Ok(usize::try_from(index).ok().and_then(|i| self.events.get(i)))
    }

    fn push(&mut self, event: Arc<Event>) {
        self.events.push_back(event);
    }

    fn evict(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?;
        self.evicted += 1;
        self.floor = event.revision;
        Some(event)
    }

    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().rev()
    }
}

pub(crate) struct Gone;

impl State {
    pub(crate) fn empty() -> Self {
        Self::starting_at(EMPTY_STORE_REVISION, 0)
    }

    /// A state without objects at `revision`, without any history before `origin`.
    pub(crate) fn starting_at(revision: u64, origin: u64) -> Self {
        Self {
            revision,
            resources: OrdMap::new(),
            history: Ring::starting_at(origin),
            gaps: Vector::new(),
            live_bytes: 0,
            history_bytes: 0,
            origin,
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Entry>> {
        self.resources.get(&key.resource)?.objects.get(&key.object)
    }

    /// Checks the precondition and applies the write as the next revision.
    pub(crate) fn write(&mut self, write: Write, at: u64) -> Result<(Arc<Event>, Committed), WriteError> {
        write.check()?;
        let Write { key, expect, op, .. } = write;
        let (key, old) = self.resolve(key);
        match (expect, &old) {
            (Expect::Absent, None) => {}
            (Expect::Revision(expected), Some(entry)) if entry.revision == expected => {}
            _ => return Err(WriteError::Mismatch(old)),
        }
        let revision = self.revision + 1;
        let new = match op {
            WriteOp::Put(put) => Some(Arc::new(put.stamp(revision))),
            WriteOp::Delete => None,
        };
        let event = Arc::new(Event { revision, at, key, old, new });
        self.apply(Arc::clone(&event));
        let committed = Committed { revision, old: event.old.clone(), new: event.new.clone() };
        Ok((event, committed))
    }

    /// The key as stored, so that events share one copy of it, and what it holds.
    pub(crate) fn resolve(&self, key: Key) -> (Key, Option<Arc<Entry>>) {
        let Some((resource, state)) = self.resources.get_key_value(&key.resource) else { return (key, None) };
        let resource = Arc::clone(resource);
        match state.objects.get_key_value(&key.object) {
            Some((object, entry)) => (Key { resource, object: object.clone() }, Some(Arc::clone(entry))),
            None => (Key { resource, ..key }, None),
        }
    }

    /// Makes an event part of the state. Its `old` must be what the key holds.
    pub(crate) fn apply(&mut self, event: Arc<Event>) {
        self.revision = event.revision;
        self.live_bytes += body_len(event.new.as_ref());
        self.live_bytes -= body_len(event.old.as_ref());
        self.history_bytes += event_bytes(&event);
        let resource = self.resource_mut(&event.key.resource);
        match &event.new {
            Some(entry) => resource.objects.insert(event.key.object.clone(), Arc::clone(entry)),
            None => resource.objects.remove(&event.key.object),
        };
        resource.history.push(Arc::clone(&event));
        self.history.push(event);
    }

    /// Puts an object there without history, as when a snapshot is loaded.
    pub(crate) fn load(&mut self, key: Key, entry: Arc<Entry>) {
        self.live_bytes += entry.body.len() as u64;
        self.resource_mut(&key.resource).objects.insert(key.object, entry);
    }

    fn resource_mut(&mut self, name: &Arc<str>) -> &mut Resource {
        let origin = self.origin;
        let resource = self.resources.entry(Arc::clone(name)).or_insert_with(|| {
            Arc::new(Resource { objects: OrdMap::new(), history: Ring::starting_at(origin) })
        });
        Arc::make_mut(resource)
    }

    /// Moves to `revision` without a change; the revisions between may have been assigned and lost.
    pub(crate) fn skip_to(&mut self, revision: u64) {
        self.gaps.push_back((self.revision, revision));
        self.revision = revision;
    }

    /// Drops the events that the limits no longer cover at time `now`, but no more than `most`. Returns their number.
    pub(crate) fn trim(&mut self, limits: &HistoryLimits, now: u64, most: usize) -> usize {
        let min_age = u64::try_from(limits.min_age.as_millis()).unwrap_or(u64::MAX);
        let mut gone = 0;
        while let Some(oldest) = self.history.events.front().filter(|_| gone < most) {
            let len = self.history.events.len();
            let over = len > limits.max_events || self.history_bytes > limits.max_bytes;
            let stale = len > limits.min_events && now.saturating_sub(oldest.at) > min_age;
            if !over && !stale {
                break;
            }
            let Some(event) = self.history.evict() else { break };
            self.history_bytes -= event_bytes(&event);
            self.resource_mut(&event.key.resource).history.evict();
            gone += 1;
        }
        let floor = self.history.floor;
        while self.gaps.front().is_some_and(|(_, to)| *to <= floor) {
            self.gaps.pop_front();
        }
        gone
    }

    /// The oldest revision of `resource` that can still be read exactly.
    pub(crate) fn floor(&self, resource: &str) -> u64 {
        self.resources.get(resource).map_or(self.origin, |resource| resource.history.floor)
    }

    /// Whether everything after `revision` is known, given the `floor` of the resource.
    pub(crate) fn reaches(&self, revision: u64, floor: u64) -> Result<(), Compacted> {
        if revision < floor {
            return Err(Compacted { requested: revision, oldest: floor });
        }
        match self.gaps.iter().find(|(from, to)| (*from < revision) && (revision < *to)) {
            Some((_, to)) => Err(Compacted { requested: revision, oldest: *to }),
            None => Ok(()),
        }
    }

    pub(crate) fn snapshot(&self, resource: &str) -> Snapshot {
        let objects =
            self.resources.get(resource).map(|resource| resource.objects.clone()).unwrap_or_default();
        Snapshot { revision: self.revision, objects }
    }

    /// The resource as it was at `revision`, found by undoing what happened since.
    pub(crate) fn snapshot_at(&self, resource: &str, revision: u64) -> Result<Snapshot, Compacted> {
        self.reaches(revision, self.floor(resource))?;
        let Snapshot { mut objects, revision: now } = self.snapshot(resource);
        if let Some(resource) = self.resources.get(resource) {
            for event in resource.history.newest_first().take_while(|event| event.revision > revision) {
                match &event.old {
                    Some(entry) => objects.insert(event.key.object.clone(), Arc::clone(entry)),
                    None => objects.remove(&event.key.object),
                };
            }
        }
        Ok(Snapshot { revision: revision.min(now), objects })
    }
}

fn body_len(entry: Option<&Arc<Entry>>) -> u64 {
    entry.map_or(0, |entry| entry.body.len() as u64)
}

/// Only the old body is kept by the event alone: the new one is live, or a later event's old one.
fn event_bytes(event: &Event) -> u64 {
    EVENT_OVERHEAD_BYTES + body_len(event.old.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_goes_bit_by_bit() {
        let mut state = State::empty();
        for revision in 2..=1_001 {
            let name = ObjectKey { namespace: "n".into(), name: revision.to_string().as_str().into() };
            let key = Key { resource: "things".into(), object: name };
            state.apply(Arc::new(Event { revision, at: 0, key, old: None, new: None }));
        }
        let limits = HistoryLimits { min_events: 100, ..HistoryLimits::default() };
        let later = u64::try_from(limits.min_age.as_millis()).unwrap() + 1;
        assert_eq!(state.trim(&limits, later, 256), 256);
        assert_eq!(state.floor("things"), 257, "the oldest are gone");
        assert_eq!(state.trim(&limits, later, 1_000), 900 - 256);
        assert_eq!(state.trim(&limits, later, 1_000), 0, "the newest stay");
    }
}
