//! The store on disk: an append-only log of batches in segments, and snapshots that make its beginning obsolete.
//!
//! A directory holds `log-R.seg` (the frames after revision R), `state-R.snap` (all objects at R) and `LOCK`.
//! The snapshot is taken *where history begins*, not at the newest revision: replaying the log from there
//! rebuilds both the live objects and the history that watches resume from, and one path does both. Two
//! snapshots are kept with the log since the older, so one of them may become unreadable.
//!
//! Opening writes nothing. What an opening has to record — that revisions after a crash are skipped, or that the
//! closing frame is no longer the end — is written and synced with the first batch.

mod codec;
mod compaction;
mod file;
mod frame;
mod reader;
mod recovery;
mod snapshot;

pub(crate) mod check;
pub(crate) mod copy;

use crate::backend::{AppendError, Backend};
use crate::disk::{Disk, DiskFile, private};
use crate::model::Event;
use crate::open_error::OpenError;
use crate::options::Options;
use crate::sequencer::{MAX_UNSYNCED_WRITES, now};
use crate::state::{EMPTY_STORE_REVISION, State};
use compaction::Compaction;
use file::{FileHeader, FileKind, Listing};
use frame::{Frame, Kind};
use recovery::{Recovery, Segment};
use std::fs::{DirBuilder, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Revisions that are skipped after a crash: more than may have been seen and lost.
const SKIPPED_REVISIONS: u64 = 2 * MAX_UNSYNCED_WRITES as u64;
/// The encoding buffer is not kept when a batch made it larger than this.
const MAX_KEPT_BUFFER_BYTES: usize = 1 << 20;

pub(crate) struct Log {
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    store: u128,
    segment_bytes: u64,
    /// The segment being written.
    file: Box<dyn DiskFile>,
    segment: Segment,
    /// The segments before it, oldest first.
    closed: Vec<Segment>,
    durable: u64,
    /// The last revision that a frame in the log calls durable.
    marked: u64,
    /// What this opening has to record before its first batch.
    opening: Option<Opening>,
    /// There may be bytes after the end of the segment that have to be cut off first.
    ragged: bool,
    buffer: Vec<u8>,
    compaction: Compaction,
    /// The last field, so that it is released last.
    _lock: File,
}

#[derive(Clone, Copy)]
struct Opening {
    kind: Kind,
    revision: u64,
}

impl Log {
    /// Opens or creates the log in `dir`.
    pub(crate) fn open(dir: &Path, options: &Options) -> Result<(State, Self), OpenError> {
        let disk = &*options.disk;
        create_dir(disk, dir).map_err(OpenError::io(dir))?;
        let lock = lock(dir)?;
        let mut listing = Listing::of(disk, dir).map_err(OpenError::io(dir))?;
        for name in &listing.temporary {
            disk.remove(&dir.join(name)).map_err(OpenError::io(dir))?;
        }
        if listing.segments.is_empty() && listing.snapshots.is_empty() {
            let header =
                FileHeader { kind: FileKind::Segment, store: new_id(), revision: EMPTY_STORE_REVISION };
            header.create(disk, dir, |_| Ok(())).map_err(OpenError::io(dir))?;
            listing.segments.push(EMPTY_STORE_REVISION);
        }
        let mut recovery = Recovery::new(disk, dir, &options.history);
        recovery.run(&listing)?;
        Self::after(recovery, &listing, lock, options)
    }

    fn after(
        recovery: Recovery<'_>,
        listing: &Listing,
        lock: File,
        options: &Options,
    ) -> Result<(State, Self), OpenError> {
        let Recovery { dir, mut state, store, position, mut segments, snapshot, tail, .. } = recovery;
        let segment = segments.pop().unwrap_or(Segment { base: position, last: position, len: 0 });
        let path = FileKind::Segment.path(dir, segment.base);
        let mut file = options.disk.append(&path).map_err(OpenError::io(&path))?;
        let fresh =
            segment.base == EMPTY_STORE_REVISION && segment.last == EMPTY_STORE_REVISION && tail.torn == 0;
        if !tail.sealed && !fresh {
            // What was just read may be in the system's cache alone, and is about to become visible to readers.
            file.sync().map_err(OpenError::io(&path))?;
            state.skip_to(position.saturating_add(SKIPPED_REVISIONS));
        }
        state.trim(&options.history, now(), usize::MAX);
        let kind = if state.revision > position { Kind::Skip } else { Kind::Mark };
        let opening = Some(Opening { kind, revision: state.revision });
        let log = Self {
            dir: dir.to_owned(),
            disk: Arc::clone(&options.disk),
            store: store.unwrap_or_default(),
            segment_bytes: options.log.segment_bytes,
            file,
            segment,
            closed: segments,
            durable: position,
            marked: position,
            opening,
            ragged: tail.torn > 0,
            buffer: Vec::new(),
            compaction: Compaction::new(snapshot, &listing.snapshots, options.log.compact_bytes),
            _lock: lock,
        };
        Ok((state, log))
    }

    /// Cuts off what a failed write, or the last crash, left behind the end.
    fn cut(&mut self) -> Result<(), AppendError> {
        if self.ragged {
            self.file.truncate(self.segment.len).map_err(AppendError::Refused)?;
            self.ragged = false;
            self.file.sync().map_err(AppendError::Lost)?;
        }
        Ok(())
    }

    /// Begins a new segment. Nothing is ever written to the old one again, so it must be durable first.
    fn rotate(&mut self) -> Result<(), AppendError> {
        self.sync().map_err(AppendError::Lost)?;
        let base = self.segment.last;
        let header = FileHeader { kind: FileKind::Segment, store: self.store, revision: base };
        header.create(&*self.disk, &self.dir, |_| Ok(())).map_err(AppendError::Refused)?;
        let path = FileKind::Segment.path(&self.dir, base);
        self.file = self.disk.append(&path).map_err(AppendError::Refused)?;
        self.closed.push(self.segment);
        self.segment = Segment { base, last: base, len: file::HEADER_BYTES as u64 };
        Ok(())
    }

    /// Adds a frame without records to the buffer.
    fn note(&mut self, kind: Kind, revision: u64) {
        let start = Frame::start(&mut self.buffer);
        let frame = Frame { durable: self.durable, at: now(), ..Frame::new(kind, revision) };
        frame.finish(&mut self.buffer, start);
    }

    /// Writes the buffer, whole or not at all.
    fn write(&mut self, last: u64) -> Result<(), AppendError> {
        if let Err(error) = self.file.write_all(&self.buffer) {
            self.ragged = true;
            // If this also fails, it is repeated before the next write.
            return match self.cut() {
                Err(lost @ AppendError::Lost(_)) => Err(lost),
                _ => Err(AppendError::Refused(error)),
            };
        }
        self.segment.len += self.buffer.len() as u64;
        self.segment.last = last;
        self.marked = self.durable;
        Ok(())
    }

    /// Syncs everything, and writes a frame that records it as durable.
    fn mark_durable(&mut self, kind: Kind) -> io::Result<()> {
        self.sync()?;
        self.buffer.clear();
        self.note(kind, self.segment.last);
        match self.cut().and_then(|()| self.write(self.segment.last)) {
            Ok(()) => self.sync(),
            // It would have been good to have, no more.
            Err(AppendError::Refused(_)) => Ok(()),
            Err(AppendError::Lost(error)) => Err(error),
        }
    }
}

impl Backend for Log {
    fn append(&mut self, batch: &[Arc<Event>]) -> Result<(), AppendError> {
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return Ok(()) };
        self.cut()?;
        if self.segment.len >= self.segment_bytes {
            self.rotate()?;
        }
        self.buffer.clear();
        self.buffer.shrink_to(MAX_KEPT_BUFFER_BYTES);
        if let Some(Opening { kind, revision }) = self.opening {
            self.note(kind, revision);
        }
        let start = Frame::start(&mut self.buffer);
        for event in batch {
            codec::put_record(&mut self.buffer, event);
        }
        let count = u32::try_from(batch.len()).unwrap_or(u32::MAX);
        let frame =
            Frame { count, durable: self.durable, at: first.at, ..Frame::new(Kind::Batch, first.revision) };
        frame.finish(&mut self.buffer, start);
        self.write(last.revision)?;
        if self.opening.take().is_some() {
            // From here on a loss must not look like the seal or the crash before this opening.
            self.sync().map_err(AppendError::Lost)?;
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()?;
        self.durable = self.segment.last;
        Ok(())
    }

    /// Writes as many zeros as the refused batch had bytes and cuts them off again. Zeros are not a frame: after a
    /// crash in between they are a torn end, where the batch itself would come back.
    fn probe(&mut self) -> Result<(), AppendError> {
        self.cut()?;
        if self.segment.len >= self.segment_bytes {
            self.rotate()?;
        }
        let written = self.file.write_all(&vec![0; self.buffer.len()]);
        self.ragged = true;
        self.cut()?;
        written.map_err(AppendError::Refused)
    }

    fn maintain(&mut self, state: &State) {
        let header =
            FileHeader { kind: FileKind::Snapshot, store: self.store, revision: state.history.floor };
        if header.revision <= self.durable {
            self.compaction.advance(&self.disk, &self.dir, header, state, &mut self.closed);
        }
    }

    fn on_idle(&mut self) -> io::Result<()> {
        if self.marked < self.segment.last { self.mark_durable(Kind::Mark) } else { Ok(()) }
    }

    fn close(&mut self) -> io::Result<()> {
        self.compaction.wait();
        // Nothing was written since the opening: what the log ends with still holds.
        if self.opening.is_some() { Ok(()) } else { self.mark_durable(Kind::Seal) }
    }
}

/// Creates the directory with those above it, durably: syncing the files in it would not keep it.
fn create_dir(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let dir = std::path::absolute(dir)?;
    let missing: Vec<&Path> = dir.ancestors().take_while(|path| !path.exists()).collect();
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(&dir)?;
    missing.iter().filter_map(|path| path.parent()).try_for_each(|parent| disk.sync_dir(parent))
}

/// Locks the directory for this process, until the file is dropped.
fn lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join("LOCK");
    let opened = private().create(true).read(true).write(true).truncate(false).open(&path);
    let mut file = opened.map_err(OpenError::io(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // Only for the message: the lock itself has been refused already.
            let _ = file.take(20).read_to_string(&mut pid);
            return Err(OpenError::Locked { dir: dir.to_owned(), by: pid.trim().parse().ok() });
        }
        Err(TryLockError::Error(error)) => return Err(OpenError::io(&path)(error)),
    }
    let noted =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    if let Err(error) = noted {
        // A store on a full disk must stay readable.
        tracing::debug!(%error, "could not note the process in the lock file");
    }
    Ok(file)
}

/// A number no other store has, from the hasher's random keys.
fn new_id() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(now()));
    (half() << 64) | half()
}
