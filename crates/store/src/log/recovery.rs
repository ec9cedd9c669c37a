//! Recovery: rebuilds the state and its history from the files of a directory.
//!
//! The newest readable snapshot is where history begins; every frame after it is applied as it was when it
//! was written. A frame that cannot be read ends the log if it can be the remains of a write that was never
//! made durable, and otherwise means that something durable is lost: then opening is refused.

use super::codec::{Decoder, Record};
use super::file::{FileKind, Listing};
use super::frame::{Frame, Kind};
use super::reader::{FrameReader, Step};
use super::snapshot;
use crate::disk::Disk;
use crate::model::Event;
use crate::open_error::OpenError;
use crate::options::HistoryLimits;
use crate::state::{EMPTY_STORE_REVISION, State};
use std::path::Path;
use std::sync::Arc;

pub(crate) struct Recovery<'a> {
    disk: &'a dyn Disk,
    pub(crate) dir: &'a Path,
    limits: &'a HistoryLimits,
    /// Keep what can be read instead of failing at the first inconsistency.
    pub(crate) salvage: bool,
    pub(crate) state: State,
    pub(crate) store: Option<u128>,
    /// The revision to start from: that of the snapshot, if one was used.
    base: u64,
    pub(crate) snapshot: Option<u64>,
    /// The last revision in the log.
    pub(crate) position: u64,
    /// The last revision that is known to have been durable.
    pub(crate) durable: u64,
    pub(crate) segments: Vec<Segment>,
    pub(crate) tail: Tail,
}

/// A segment file and the revisions it covers: after `base`, up to `last`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) base: u64,
    pub(crate) last: u64,
    pub(crate) len: u64,
}

/// How the log ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tail {
    /// The store was closed properly.
    pub(crate) sealed: bool,
    /// Bytes of the last segment that belong to no durable write.
    pub(crate) torn: u64,
}

impl<'a> Recovery<'a> {
    pub(crate) fn new(disk: &'a dyn Disk, dir: &'a Path, limits: &'a HistoryLimits) -> Self {
        Self {
            disk,
            dir,
            limits,
            salvage: false,
            state: State::empty(),
            store: None,
            base: EMPTY_STORE_REVISION,
            position: EMPTY_STORE_REVISION,
            durable: EMPTY_STORE_REVISION,
            snapshot: None,
            segments: Vec::new(),
            tail: Tail::default(),
        }
    }

    /// Reads everything. After an error the state holds what came before the damage.
    pub(crate) fn run(&mut self, listing: &Listing) -> Result<(), OpenError> {
        self.load_base(listing)?;
        let used = listing.segments.partition_point(|base| *base <= self.base);
        let Some(first) = used.checked_sub(1) else {
            let path = FileKind::Segment.path(self.dir, self.base);
            return Err(OpenError::corrupt(&path, 0, "the file is missing"));
        };
        self.position = listing.segments[first];
        for (index, &base) in listing.segments.iter().enumerate() {
            let next = listing.segments.get(index + 1);
            if index < first {
                // Covered by the snapshot; only its name is needed, to remove it later.
                self.segments.push(Segment { base, last: *next.unwrap_or(&base), len: 0 });
                continue;
            }
            let len = self.replay(base, next.is_none())?;
            self.segments.push(Segment { base, last: self.position, len });
        }
        if self.position < self.base {
            let path = FileKind::Segment.path(self.dir, self.segments.last().map_or(0, |last| last.base));
            let what = format!("the log ends before revision {} of the snapshot", self.base);
            return Err(OpenError::corrupt(&path, 0, what));
        }
        Ok(())
    }

    fn load_base(&mut self, listing: &Listing) -> Result<(), OpenError> {
        let mut damage = None;
        for &revision in listing.snapshots.iter().rev() {
            let mut state = State::starting_at(revision, revision);
            match snapshot::read(self.disk, self.dir, revision, &mut state) {
                Ok(store) => {
                    (self.state, self.base, self.store) = (state, revision, Some(store));
                    self.snapshot = Some(revision);
                    return Ok(());
                }
                Err(error @ OpenError::Corrupt { .. }) => {
                    tracing::warn!(%error, "a snapshot is damaged, trying the one before it");
                    if damage.is_none() {
                        damage = Some((error, state));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        // Before the second snapshot is written, the log is still there from the beginning.
        let Some((error, partial)) = damage else { return Ok(()) };
        if listing.segments.first() == Some(&EMPTY_STORE_REVISION) {
            return Ok(());
        }
        (self.base, self.state) = (partial.revision, partial);
        if self.salvage { Ok(()) } else { Err(error) }
    }

    /// Applies a segment and returns the length of its intact part.
    fn replay(&mut self, base: u64, is_last: bool) -> Result<u64, OpenError> {
        let (header, mut reader) = FrameReader::open(self.disk, self.dir, FileKind::Segment, base)?;
        if *self.store.get_or_insert(header.store) != header.store {
            return Err(reader.corrupt("the file belongs to another store"));
        }
        if base != self.position {
            let what = format!("the log is missing from revision {} on", self.position.saturating_add(1));
            return Err(reader.corrupt(what));
        }
        loop {
            match reader.next()? {
                Step::Frame(frame) => {
                    self.apply(&frame, reader.body()).map_err(|what| reader.corrupt(what))?;
                    self.tail.sealed = frame.kind == Kind::Seal;
                }
                Step::Unreadable => return self.end_early(reader, is_last),
                Step::End => return Ok(reader.offset() as u64),
            }
        }
    }

    /// Decides what it means that a frame cannot be read. A later frame may record that it had been durable.
    fn end_early(&mut self, reader: FrameReader, is_last: bool) -> Result<u64, OpenError> {
        let offset = reader.offset() as u64;
        let damage = reader.corrupt("a frame's checksum is wrong");
        let rest = reader.rest()?;
        if !is_last || Frame::scan(&rest, 1).any(|later| later.durable > self.position) {
            return Err(damage);
        }
        self.tail = Tail { sealed: false, torn: rest.len() as u64 };
        tracing::warn!(offset, bytes = self.tail.torn, "dropping a torn write at the end of the log");
        Ok(offset)
    }

    fn apply(&mut self, frame: &Frame, body: &[u8]) -> Result<(), String> {
        follow(self.position, frame)?;
        match frame.kind {
            Kind::Batch if frame.last() > self.base => self.apply_batch(frame, body)?,
            Kind::Skip if frame.revision > self.base => self.state.skip_to(frame.revision),
            _ => {}
        }
        self.position = frame.last();
        self.durable = self.durable.max(frame.durable);
        Ok(())
    }

    fn apply_batch(&mut self, frame: &Frame, body: &[u8]) -> Result<(), String> {
        let mut records = Decoder::new(body);
        for revision in frame.revision..=frame.last() {
            let record = records.record().map_err(|malformed| malformed.0.to_owned())?;
            if revision > self.base {
                let event = self.event(record, revision, frame.at)?;
                self.state.apply(Arc::new(event));
            }
        }
        if !records.is_empty() {
            return Err("a batch has more entries than its header".to_owned());
        }
        self.state.trim(self.limits, frame.at, usize::MAX);
        Ok(())
    }

    fn event(&self, record: Record, revision: u64, at: u64) -> Result<Event, String> {
        let Record { key, replaced, new } = record;
        let (key, old) = self.state.resolve(key);
        let found = old.as_ref().map_or(0, |old| old.revision);
        if found != replaced && !self.salvage {
            return Err(format!("revision {revision} replaces {replaced} where there is {found}"));
        }
        if new.as_ref().is_some_and(|new| new.revision != revision) {
            return Err(format!(
                "an object that was written at revision {revision} has another resourceVersion"
            ));
        }
        Ok(Event { revision, at, key, old, new: new.map(Arc::new) })
    }
}

/// Whether a frame of the log may come after revision `position`.
pub(crate) fn follow(position: u64, frame: &Frame) -> Result<(), String> {
    let (kind, revision) = (frame.kind, frame.revision);
    let follows = match kind {
        Kind::Batch => position.checked_add(1) == Some(revision),
        Kind::Skip => revision > position,
        Kind::Mark | Kind::Seal => revision == position,
        Kind::Objects | Kind::End => false,
    };
    let problem = || format!("{kind:?} of revision {revision} does not follow revision {position}");
    if follows { Ok(()) } else { Err(problem()) }
}
