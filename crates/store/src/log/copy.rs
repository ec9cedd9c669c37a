//! Copying a store that may be in use.
//!
//! Snapshots never change, segments only grow at their end, and the oldest of both are removed now and then. So the files of
//! one listing, copied in their order, are the store at a moment between the start and the end of copying: the last segment
//! may end in the middle of a batch, as after a crash, and opening drops that. Everything that was acknowledged before the
//! start is in the copy. If a file is removed meanwhile, copying starts over.

use super::file::{FileKind, Listing};
use crate::disk::{Disk, SystemDisk};
use std::io::{self, Read};
use std::path::Path;

const MAX_COPY_ATTEMPTS: usize = 20;

/// Copies the store in `from`, which may be in use, into the empty directory `to`. Verify the copy before you rely on it.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let disk = &SystemDisk;
    for attempt in 1.. {
        match copy_listed(disk, from, to) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && attempt < MAX_COPY_ATTEMPTS => clear(disk, to)?,
            other => return other,
        }
    }
    Ok(())
}

fn copy_listed(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
    let listing = Listing::of(disk, from)?;
    if listing.segments.is_empty() && listing.snapshots.is_empty() {
        return Err(io::Error::other("there is no store here"));
    }
    // Snapshots first: they are what is removed together with the segments that they made obsolete.
    let snapshots = listing.snapshots.iter().map(|revision| FileKind::Snapshot.name(*revision));
    let segments = listing.segments.iter().map(|base| FileKind::Segment.name(*base));
    for name in snapshots.chain(segments) {
        copy_file(disk, &from.join(&name), &to.join(&name))?;
    }
    disk.sync_dir(to)
}

fn copy_file(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
    let (mut source, mut target) = (disk.read(from)?, disk.create(to)?);
    let mut buffer = vec![0; 1 << 20];
    loop {
        match source.read(&mut buffer)? {
            0 => return target.sync(),
            read => target.write_all(&buffer[..read])?,
        }
    }
}

fn clear(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    disk.list(dir)?.iter().try_for_each(|name| disk.remove(&dir.join(name)))
}
