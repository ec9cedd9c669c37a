//! Verification and repair of a store that is not in use.

use super::file::{FileHeader, FileKind, Listing};
use super::frame::Frame;
use super::reader::{FrameReader, Step};
use super::recovery::{Recovery, follow};
use super::{SKIPPED_REVISIONS, lock, new_id, snapshot};
use crate::disk::{Disk, SystemDisk};
use crate::open_error::OpenError;
use crate::options::HistoryLimits;
use crate::sequencer::now;
use crate::state::State;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What is in a store's directory.
#[derive(Debug)]
pub struct Report {
    /// The newest revision that can be read.
    pub revision: u64,
    /// The objects at that revision.
    pub objects: usize,
    /// The number of log files.
    pub segments: usize,
    /// The number of snapshot files.
    pub snapshots: usize,
    /// Bytes at the end of the log that belong to a write which was never acknowledged as durable.
    pub torn_bytes: u64,
    /// What cannot be read: files that opening needs, and files that are only kept to make up for others.
    pub damage: Vec<OpenError>,
    /// Whether the store opens as it is.
    pub opens: bool,
    /// Where a repair put the files it replaced.
    pub set_aside: Option<PathBuf>,
}

/// Reads everything in a store's directory and changes nothing.
pub fn verify(dir: &Path) -> Result<Report, OpenError> {
    let (listing, _lock) = take(dir)?;
    examine(dir, &listing)
}

/// Rewrites a damaged store as one snapshot, and moves all old files into a directory beside it. Keeps everything if
/// the store opens in spite of the damage, and otherwise what could be read up to it. Does not change an intact store.
pub fn repair(dir: &Path) -> Result<Report, OpenError> {
    let disk = &SystemDisk;
    let (listing, _lock) = take(dir)?;
    let mut report = examine(dir, &listing)?;
    if report.damage.is_empty() {
        return Ok(report);
    }
    let limits = HistoryLimits::default();
    let mut recovery = Recovery::new(disk, dir, &limits);
    recovery.salvage = !report.opens;
    // Where it stops this time is where the repaired store ends.
    let _ = recovery.run(&listing);
    let newest = listing.segments.iter().map(|base| newest_revision(disk, dir, *base)).max();
    let Recovery { mut state, store, position, .. } = recovery;
    // Revisions that clients have seen and the repair dropped must not be assigned again.
    state.skip_to(state.revision.max(position).max(newest.unwrap_or(0)).saturating_add(SKIPPED_REVISIONS));
    report.revision = state.revision;
    report.objects = count(&state);
    report.set_aside = Some(replace(disk, dir, &listing, store.unwrap_or_else(new_id), &state)?);
    Ok(report)
}

/// The files of a store that exists and is not in use.
fn take(dir: &Path) -> Result<(Listing, File), OpenError> {
    let listing = Listing::of(&SystemDisk, dir).map_err(OpenError::io(dir))?;
    if listing.segments.is_empty() && listing.snapshots.is_empty() {
        let missing = io::Error::new(io::ErrorKind::NotFound, "there is no store here");
        return Err(OpenError::io(dir)(missing));
    }
    let lock = lock(dir)?;
    // Once more, now that no other process can change it.
    Ok((Listing::of(&SystemDisk, dir).map_err(OpenError::io(dir))?, lock))
}

/// Fails when files cannot be read for other reasons than damage: a repair does not help then.
fn examine(dir: &Path, listing: &Listing) -> Result<Report, OpenError> {
    let mut damage = Vec::new();
    let mut note = |outcome: Result<(), OpenError>| match outcome {
        Err(error @ OpenError::Corrupt { .. }) => {
            // Recovery gives up on a snapshot that is in the list already.
            if !damage.iter().any(|known: &OpenError| known.to_string() == error.to_string()) {
                damage.push(error);
            }
            Ok(false)
        }
        other => other.map(|()| true),
    };
    for &revision in &listing.snapshots {
        let mut scratch = State::starting_at(revision, revision);
        note(snapshot::read(&SystemDisk, dir, revision, &mut scratch).map(drop))?;
    }
    let limits = HistoryLimits::default();
    let mut recovery = Recovery::new(&SystemDisk, dir, &limits);
    let opens = note(recovery.run(listing))?;
    for outcome in scan_all(dir, listing, recovery.store) {
        note(outcome)?;
    }
    if opens {
        damage.iter_mut().for_each(|found| found.mark_redundant(dir));
    }
    Ok(Report {
        revision: recovery.state.revision,
        objects: count(&recovery.state),
        segments: listing.segments.len(),
        snapshots: listing.snapshots.len(),
        torn_bytes: recovery.tail.torn,
        damage,
        opens,
        set_aside: None,
    })
}

/// Reads every segment but the last, whether an opening would read it or not. Only the last may end in the middle of
/// a frame, which recovery handles.
fn scan_all(dir: &Path, listing: &Listing, store: Option<u128>) -> Vec<Result<(), OpenError>> {
    let oldest = listing.snapshots.first().copied().unwrap_or(0);
    let mut outcomes = Vec::new();
    for pair in listing.segments.windows(2) {
        let [base, next] = [pair[0], pair[1]];
        outcomes.push(scan(dir, base, store).and_then(|last| {
            // Revisions before the oldest snapshot are not needed.
            if last == next || next <= oldest {
                return Ok(());
            }
            let what = format!("the log is missing from revision {} on", last.saturating_add(1));
            Err(OpenError::corrupt(&FileKind::Segment.path(dir, next), 0, what))
        }));
    }
    outcomes
}

/// Checks that the frames of a segment are intact and follow each other, and returns the revision of the last.
fn scan(dir: &Path, base: u64, store: Option<u128>) -> Result<u64, OpenError> {
    let (header, mut reader) = FrameReader::open(&SystemDisk, dir, FileKind::Segment, base)?;
    if store.is_some_and(|store| store != header.store) {
        return Err(reader.corrupt("the file belongs to another store"));
    }
    let mut position = base;
    loop {
        match reader.next()? {
            Step::Frame(frame) => {
                follow(position, &frame).map_err(|what| reader.corrupt(what))?;
                position = frame.last();
            }
            Step::Unreadable => return Err(reader.corrupt("a frame's checksum is wrong")),
            Step::End => return Ok(position),
        }
    }
}

fn count(state: &State) -> usize {
    state.resources.values().map(|resource| resource.objects.len()).sum()
}

/// The newest revision that any intact frame of a segment has, before or after damage.
fn newest_revision(disk: &dyn Disk, dir: &Path, base: u64) -> u64 {
    let mut bytes = Vec::new();
    let path = FileKind::Segment.path(dir, base);
    if disk.read(&path).and_then(|mut file| file.read_to_end(&mut bytes)).is_err() {
        return base;
    }
    Frame::scan(&bytes, 0).map(|frame| frame.last().max(frame.durable)).fold(base, u64::max)
}

/// Writes `state` as the only thing in `dir`. The new files are complete before the old ones are removed, and take
/// precedence over them: an interruption at any point leaves a store that opens.
fn replace(
    disk: &dyn Disk,
    dir: &Path,
    listing: &Listing,
    store: u128,
    state: &State,
) -> Result<PathBuf, OpenError> {
    let revision = state.revision;
    // First the segment: a snapshot alone would not open.
    let segment = FileHeader { kind: FileKind::Segment, store, revision };
    segment.create(disk, dir, |_| Ok(())).map_err(OpenError::io(dir))?;
    let header = FileHeader { kind: FileKind::Snapshot, store, revision };
    snapshot::write(disk, dir, header, state).map_err(OpenError::io(dir))?;
    let aside = dir.join(format!("damaged-{}", now()));
    std::fs::create_dir(&aside).map_err(OpenError::io(&aside))?;
    let segments = listing.segments.iter().map(|base| FileKind::Segment.name(*base));
    let snapshots = listing.snapshots.iter().map(|revision| FileKind::Snapshot.name(*revision));
    for name in segments.chain(snapshots) {
        let path = dir.join(&name);
        disk.rename(&path, &aside.join(&name)).map_err(OpenError::io(&path))?;
    }
    disk.sync_dir(dir).map_err(OpenError::io(dir))?;
    Ok(aside)
}
