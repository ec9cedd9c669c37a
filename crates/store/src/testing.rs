//! A hostile disk for tests: it fills up, writes halves, fails, is slow, and loses what was not synced.

use crate::disk::{Disk, DiskFile, SystemDisk};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What goes wrong from now on.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// How many more bytes can be written before the disk is full.
    pub space: Option<u64>,
    /// No call writes more than this.
    pub longest_write: Option<usize>,
    /// Every write fails like this.
    pub write: Option<io::ErrorKind>,
    /// Every sync of a file fails.
    pub sync: Option<io::ErrorKind>,
    /// Every truncation fails.
    pub truncate: Option<io::ErrorKind>,
    /// No file can be created.
    pub create: Option<io::ErrorKind>,
    /// Applies only to files with this in their names; to all if empty.
    pub only: &'static str,
}

impl Faults {
    fn applies_to(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name.to_string_lossy().contains(self.only))
    }
}

/// The system's disk with [`Faults`]. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct HostileDisk {
    inner: Arc<Mutex<Inner>>,
    released: Arc<Condvar>,
}

#[derive(Debug, Default)]
struct Inner {
    faults: Faults,
    files: BTreeMap<PathBuf, Extent>,
    syncs: u64,
    /// Syncs wait while this is set.
    held: bool,
    waiting: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    written: u64,
    synced: u64,
}

impl HostileDisk {
    /// Replaces the faults.
    pub fn set(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Makes every sync wait until [`Self::release_syncs`].
    pub fn hold_syncs(&self) {
        self.lock().held = true;
    }

    /// Lets the syncs that wait, and all later ones, go on.
    pub fn release_syncs(&self) {
        self.lock().held = false;
        self.released.notify_all();
    }

    /// Whether a sync waits to be released.
    pub fn holds_a_sync(&self) -> bool {
        self.lock().waiting > 0
    }

    fn wait_until_released(&self) {
        let mut inner = self.lock();
        inner.waiting += 1;
        while inner.held {
            inner = self.released.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        inner.waiting -= 1;
    }

    /// How often a file was synced.
    pub fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// Drops what was written but not synced, as a power failure may. The store that wrote it must be closed.
    pub fn lose_power(&self) -> io::Result<()> {
        for (path, extent) in &self.lock().files {
            if extent.written > extent.synced && path.exists() {
                OpenOptions::new().write(true).open(path)?.set_len(extent.synced)?;
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self, path: &Path) -> Faults {
        let faults = self.lock().faults.clone();
        if faults.applies_to(path) { faults } else { Faults::default() }
    }

    fn wrap(&self, path: &Path, file: Box<dyn DiskFile>, len: u64) -> Box<dyn DiskFile> {
        let extent = Extent { written: len, synced: len };
        self.lock().files.insert(path.to_owned(), extent);
        Box::new(HostileFile { disk: self.clone(), path: path.to_owned(), file })
    }
}

fn fail(fault: Option<io::ErrorKind>) -> io::Result<()> {
    fault.map_or(Ok(()), |kind| Err(io::Error::new(kind, format!("injected: {kind}"))))
}

impl Disk for HostileDisk {
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        SystemDisk.list(dir)
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        SystemDisk.read(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        fail(self.faults(path).create)?;
        Ok(self.wrap(path, SystemDisk.create(path)?, 0))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let len = std::fs::metadata(path)?.len();
        Ok(self.wrap(path, SystemDisk.append(path)?, len))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        SystemDisk.rename(from, to)?;
        let mut inner = self.lock();
        if let Some(extent) = inner.files.remove(from) {
            inner.files.insert(to.to_owned(), extent);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.lock().files.remove(path);
        SystemDisk.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        SystemDisk.sync_dir(dir)
    }
}

struct HostileFile {
    disk: HostileDisk,
    path: PathBuf,
    file: Box<dyn DiskFile>,
}

impl HostileFile {
    fn extent<T>(&self, change: impl FnOnce(&mut Extent) -> T) -> T {
        change(self.disk.lock().files.entry(self.path.clone()).or_default())
    }
}

impl DiskFile for HostileFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let faults = self.disk.faults(&self.path);
        fail(faults.write)?;
        let longest = faults.longest_write.unwrap_or(usize::MAX).min(bytes.len());
        let space = faults.space.map_or(usize::MAX, |space| usize::try_from(space).unwrap_or(usize::MAX));
        if space == 0 && longest > 0 {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "injected: no space left on device"));
        }
        let written = self.file.write(&bytes[..longest.min(space)])?;
        let mut inner = self.disk.lock();
        if let Some(space) = &mut inner.faults.space
            && faults.space.is_some()
        {
            *space = space.saturating_sub(written as u64);
        }
        drop(inner);
        self.extent(|extent| extent.written += written as u64);
        Ok(written)
    }

    fn sync(&mut self) -> io::Result<()> {
        let faults = self.disk.faults(&self.path);
        self.disk.wait_until_released();
        fail(faults.sync)?;
        self.file.sync()?;
        self.disk.lock().syncs += 1;
        self.extent(|extent| extent.synced = extent.written);
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        fail(self.disk.faults(&self.path).truncate)?;
        self.file.truncate(len)?;
        self.extent(|extent| *extent = Extent { written: len, synced: extent.synced.min(len) });
        Ok(())
    }
}
