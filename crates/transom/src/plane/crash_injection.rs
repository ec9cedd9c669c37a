//! Lets tests kill a plane at a chosen write. Release builds do not contain this module.
//!
//! `TRANSOM_DIE_AT=POINT:N` ends the process with SIGKILL at the N-th sync that makes data durable. Written data is held
//! back until it is synced, so that each point leaves what a power cut could leave. No client has received a response
//! for the write at any of the points:
//!
//! | point | on the disk |
//! |---|---|
//! | `lost` | nothing of the write |
//! | `torn` | half of it |
//! | `durable` | all of it |

use rustix::process::{Signal, getpid, kill_process};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use transom_store::{Disk, DiskFile, Options, SystemDisk};

const DIE_AT: &str = "TRANSOM_DIE_AT";

/// Sets up the crash that the environment asks for. Writes are then synced one by one, so that each has its own sync.
pub(super) fn apply(mut options: Options) -> Options {
    let requested = std::env::var(DIE_AT).ok();
    if let Some(crash) = requested.as_deref().and_then(Crash::parse) {
        options.batch.max_writes = 1;
        options.disk = Arc::new(CrashingDisk(Arc::new(crash)));
    }
    options
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    Lost,
    Torn,
    Durable,
}

/// When and how the process ends.
#[derive(Debug)]
struct Crash {
    point: Point,
    /// The number of the sync, from one.
    at: u64,
    synced: AtomicU64,
}

impl Crash {
    fn parse(text: &str) -> Option<Self> {
        let (point, at) = text.split_once(':')?;
        let point = match point {
            "lost" => Point::Lost,
            "torn" => Point::Torn,
            "durable" => Point::Durable,
            _ => return None,
        };
        Some(Self { point, at: at.parse().ok()?, synced: AtomicU64::new(0) })
    }

    /// Counts a sync. Whether it is the last one.
    fn is_due(&self) -> bool {
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
struct CrashingDisk(Arc<Crash>);

impl Disk for CrashingDisk {
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
        Ok(Box::new(CrashingFile { file, held: Vec::new(), crash: self.0.clone() }))
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

struct CrashingFile {
    file: Box<dyn DiskFile>,
    held: Vec<u8>,
    crash: Arc<Crash>,
}

impl CrashingFile {
    /// Writes the first `bytes` of the data that was held back.
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

impl DiskFile for CrashingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return self.file.sync();
        }
        let last = self.crash.is_due();
        match self.crash.point {
            Point::Lost if last => die(),
            Point::Torn if last => {
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
