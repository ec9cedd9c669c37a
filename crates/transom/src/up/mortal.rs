//! A disk at which the process dies: how tests kill a plane at a chosen write. Builds for release have no such thing.
//!
//! `TRANSOM_DIE_AT=PLACE:N` ends the process with SIGKILL at the N-th sync that makes something durable. What is
//! written is held back until it is synced, so that each place is what a power cut could leave behind:
//!
//! | place | on the disk | who was told |
//! |---|---|---|
//! | `lost` | nothing of it | nobody |
//! | `torn` | half of it | nobody |
//! | `durable` | all of it | nobody |

use rustix::process::{Signal, getpid, kill_process};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use transom_store::{Disk, DiskFile, Options, SystemDisk};

const DIE_AT: &str = "TRANSOM_DIE_AT";

/// Lets the store die where the environment says. Writes are synced one by one then, so that each has its own moment.
pub(super) fn settle(mut options: Options) -> Options {
    let asked = std::env::var(DIE_AT).ok();
    if let Some(end) = asked.as_deref().and_then(End::parse) {
        options.batch.max_writes = 1;
        options.disk = Arc::new(MortalDisk(Arc::new(end)));
    }
    options
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Lost,
    Torn,
    Durable,
}

/// When and how the process ends.
#[derive(Debug)]
struct End {
    place: Place,
    at: u64,
    synced: AtomicU64,
}

impl End {
    fn parse(text: &str) -> Option<Self> {
        let (place, at) = text.split_once(':')?;
        let place = match place {
            "lost" => Place::Lost,
            "torn" => Place::Torn,
            "durable" => Place::Durable,
            _ => return None,
        };
        Some(Self { place, at: at.parse().ok()?, synced: AtomicU64::new(0) })
    }

    /// Whether this sync is the last one.
    fn has_come(&self) -> bool {
        self.synced.fetch_add(1, Ordering::Relaxed) + 1 == self.at
    }
}

fn die() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    loop {
        std::thread::park();
    }
}

#[derive(Debug)]
struct MortalDisk(Arc<End>);

impl Disk for MortalDisk {
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        SystemDisk.list(dir)
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        SystemDisk.read(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        SystemDisk.create(path)
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = SystemDisk.append(path)?;
        Ok(Box::new(MortalFile { file, held: Vec::new(), end: self.0.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        SystemDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        SystemDisk.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        SystemDisk.sync_dir(dir)
    }
}

struct MortalFile {
    file: Box<dyn DiskFile>,
    held: Vec<u8>,
    end: Arc<End>,
}

impl MortalFile {
    /// Writes the first so many of the bytes that were held back.
    fn release(&mut self, bytes: usize) -> io::Result<()> {
        let mut written = 0;
        while written < bytes {
            match self.file.write(&self.held[written..bytes])? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                more => written += more,
            }
        }
        self.held.clear();
        Ok(())
    }
}

impl DiskFile for MortalFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return self.file.sync();
        }
        let last = self.end.has_come();
        match self.end.place {
            Place::Lost if last => die(),
            Place::Torn if last => {
                self.release(self.held.len() / 2)?;
                die()
            }
            _ => {
                self.release(self.held.len())?;
                self.file.sync()?;
            }
        }
        if last { die() } else { Ok(()) }
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.release(self.held.len())?;
        self.file.truncate(len)
    }
}
