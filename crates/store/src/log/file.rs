//! The files of a store's directory: their names and their first bytes.

use crate::disk::{Disk, DiskFile};
use crate::open_error::OpenError;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) const HEADER_BYTES: usize = 44;
const FORMAT: u32 = 1;
const TEMPORARY: &str = ".tmp";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Frames after the revision in its name.
    Segment,
    /// All objects at the revision in its name.
    Snapshot,
}

impl FileKind {
    fn parts(self) -> (&'static str, &'static str, &'static [u8; 8]) {
        match self {
            Self::Segment => ("log-", ".seg", b"TRANSOML"),
            Self::Snapshot => ("state-", ".snap", b"TRANSOMS"),
        }
    }

    /// Sorts by revision: the digits are padded.
    pub(crate) fn name(self, revision: u64) -> String {
        let (prefix, suffix, _) = self.parts();
        format!("{prefix}{revision:020}{suffix}")
    }

    pub(crate) fn path(self, dir: &Path, revision: u64) -> PathBuf {
        dir.join(self.name(revision))
    }

    fn revision(self, name: &str) -> Option<u64> {
        let (prefix, suffix, _) = self.parts();
        let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
        (digits.len() == 20).then(|| digits.parse().ok())?
    }
}

/// The revisions in the names of a directory's files, ascending.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) segments: Vec<u64>,
    pub(crate) snapshots: Vec<u64>,
    pub(crate) temporary: Vec<String>,
}

impl Listing {
    pub(crate) fn of(disk: &dyn Disk, dir: &Path) -> io::Result<Self> {
        let mut listing = Self::default();
        for name in disk.list(dir)? {
            if let Some(revision) = FileKind::Segment.revision(&name) {
                listing.segments.push(revision);
            } else if let Some(revision) = FileKind::Snapshot.revision(&name) {
                listing.snapshots.push(revision);
            } else if name.ends_with(TEMPORARY) && (name.starts_with("log-") || name.starts_with("state-")) {
                listing.temporary.push(name);
            }
        }
        listing.segments.sort_unstable();
        listing.snapshots.sort_unstable();
        Ok(listing)
    }
}

/// The first bytes of every file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) kind: FileKind,
    /// Drawn once for a directory: files of different stores must not be mixed.
    pub(crate) store: u128,
    pub(crate) revision: u64,
}

impl FileHeader {
    pub(crate) fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(self.kind.parts().2);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.store.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.revision.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..40]);
        bytes[40..44].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Checks the first bytes of the file that should hold `kind` at `revision`.
    pub(crate) fn decode(
        kind: FileKind,
        revision: u64,
        path: &Path,
        bytes: &[u8],
    ) -> Result<Self, OpenError> {
        let damaged = |what| Err(OpenError::corrupt(path, 0, what));
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return damaged("the file header is cut short");
        };
        if bytes[..8] != *kind.parts().2 {
            return damaged("this is not a file of the store");
        }
        let u32_at = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        if crc32c::crc32c(&bytes[..40]) != u32_at(40) {
            return damaged("the file header's checksum is wrong");
        }
        // A newer format keeps these first 44 bytes, so that an older program can report what is wrong.
        if u32_at(8) != FORMAT {
            return Err(OpenError::NewerFormat {
                file: path.to_owned(),
                found: u32_at(8),
                supported: FORMAT,
            });
        }
        let store = bytes[16..32].try_into().map_or(0, u128::from_le_bytes);
        let header = Self { kind, store, revision: bytes[32..40].try_into().map_or(0, u64::from_le_bytes) };
        if header.revision != revision {
            return damaged("the file is named after another revision");
        }
        Ok(header)
    }

    /// Creates the file through a temporary one, so that a file with its proper name is always complete:
    /// header, what `fill` writes, synced.
    pub(crate) fn create(
        self,
        disk: &dyn Disk,
        dir: &Path,
        fill: impl FnOnce(&mut dyn DiskFile) -> io::Result<()>,
    ) -> io::Result<()> {
        let path = self.kind.path(dir, self.revision);
        let mut temporary = path.clone().into_os_string();
        temporary.push(TEMPORARY);
        let temporary = PathBuf::from(temporary);
        let written = (|| {
            let mut file = disk.create(&temporary)?;
            file.write_all(&self.encode())?;
            fill(&mut *file)?;
            file.sync()?;
            disk.rename(&temporary, &path)?;
            disk.sync_dir(dir)
        })();
        if written.is_err() {
            // The next opening tries again; what matters is the first error.
            let _ = disk.remove(&temporary);
        }
        written
    }
}
