//! Compaction: writes a snapshot and removes the log before it, on a thread of its own.

use super::file::{FileHeader, FileKind};
use super::recovery::Segment;
use super::snapshot;
use crate::disk::Disk;
use crate::state::State;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Before the next attempt after a snapshot could not be written.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

pub(crate) struct Compaction {
    compact_bytes: u64,
    /// Readable snapshots, oldest first.
    snapshots: Vec<u64>,
    /// Snapshot files that nothing needs.
    obsolete: Vec<u64>,
    running: Option<JoinHandle<io::Result<Done>>>,
    not_before: Option<Instant>,
}

/// The result of a compaction.
pub(crate) struct Done {
    snapshots: Vec<u64>,
    /// The log up to this revision is removed.
    removed_to: u64,
}

impl Compaction {
    /// `used` is the snapshot that the store was opened with, among all that are `there`.
    pub(crate) fn new(used: Option<u64>, there: &[u64], compact_bytes: u64) -> Self {
        // Older ones were not read; newer ones were, and are damaged.
        let (snapshots, obsolete) = there.iter().partition(|revision| Some(**revision) <= used);
        Self { compact_bytes, snapshots, obsolete, running: None, not_before: None }
    }

    /// Records the result of a finished compaction, and starts one if it is due. `header` is that of the
    /// snapshot to write.
    pub(crate) fn advance(
        &mut self,
        disk: &Arc<dyn Disk>,
        dir: &Path,
        header: FileHeader,
        state: &State,
        closed: &mut Vec<Segment>,
    ) {
        if self.running.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(done) = self.wait()
        {
            closed.retain(|segment| segment.last > done.removed_to);
        }
        let waiting = self.not_before.is_some_and(|time| Instant::now() < time);
        if self.running.is_some() || waiting || !self.is_due(header.revision, state, closed) {
            return;
        }
        let job = self.job(Arc::clone(disk), dir, header, state.clone(), closed);
        let started = std::thread::Builder::new().name("store-compaction".to_owned()).spawn(job);
        match started {
            Ok(running) => self.running = Some(running),
            Err(error) => self.postpone(&error),
        }
    }

    fn is_due(&self, floor: u64, state: &State, closed: &[Segment]) -> bool {
        let newest = self.snapshots.last().copied().unwrap_or(0);
        let covered = closed.iter().filter(|segment| newest < segment.last && segment.last <= floor);
        let reclaimable: u64 = covered.map(|segment| segment.len).sum();
        reclaimable > 0 && reclaimable >= self.compact_bytes.max(state.live_bytes)
    }

    fn job(
        &self,
        disk: Arc<dyn Disk>,
        dir: &Path,
        header: FileHeader,
        state: State,
        closed: &[Segment],
    ) -> impl FnOnce() -> io::Result<Done> + use<> {
        // Two generations stay: the new one, and the one before with the log since it.
        let previous = self.snapshots.last().copied();
        let old = self.snapshots.iter().copied().filter(|revision| Some(*revision) != previous);
        let snapshots: Vec<u64> = self.obsolete.iter().copied().chain(old).collect();
        let removed_to = previous.unwrap_or(0);
        let segments: Vec<u64> =
            closed.iter().filter(|segment| segment.last <= removed_to).map(|segment| segment.base).collect();
        let dir = dir.to_owned();
        move || {
            snapshot::write(&*disk, &dir, header, &state)?;
            drop(state);
            let snapshots = snapshots.iter().map(|revision| FileKind::Snapshot.path(&dir, *revision));
            let segments = segments.iter().map(|base| FileKind::Segment.path(&dir, *base));
            for path in snapshots.chain(segments) {
                if let Err(error) = disk.remove(&path) {
                    // After the next opening it is listed as obsolete and removed.
                    tracing::warn!(%error, file = %path.display(), "could not remove an old file");
                }
            }
            let snapshots = previous.into_iter().chain([header.revision]).collect();
            Ok(Done { snapshots, removed_to })
        }
    }

    /// Waits for the compaction that is running, if one is.
    pub(crate) fn wait(&mut self) -> Option<Done> {
        let result = self.running.take()?.join();
        match result.unwrap_or_else(|_| Err(io::Error::other("it panicked"))) {
            Ok(done) => {
                self.snapshots.clone_from(&done.snapshots);
                self.obsolete.clear();
                Some(done)
            }
            Err(error) => {
                self.postpone(&error);
                None
            }
        }
    }

    fn postpone(&mut self, error: &io::Error) {
        tracing::warn!(%error, "could not compact the log");
        self.not_before = Some(Instant::now() + RETRY_INTERVAL);
    }
}

impl Drop for Compaction {
    /// The directory must not change after its lock is released.
    fn drop(&mut self) {
        self.wait();
    }
}
