//! The directories of a process that runs containers, and the removal of what others left behind.
//!
//! ```text
//! DIR/lock              held while sessions are made and removed
//! DIR/images/…          for images, filled by the caller: whole or not there, shared by all processes
//! DIR/run/SESSION/lock  held for as long as the process lives
//! DIR/run/SESSION/…     unfinished images, and a directory for each container
//! ```
//!
//! A session whose lock is free belongs to a process that ended without removing it. Opening a workspace removes such
//! sessions, with the cgroups of their containers.

use crate::spec::Plan;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The cgroup that those of all containers are in.
pub(crate) const CGROUP_PARENT: &str = "transom";
const LOCK_FILE: &str = "lock";
/// How often the removal of a cgroup is tried: it is refused until the kernel has buried its last process.
const CGROUP_ATTEMPTS: u32 = 50;
const CGROUP_RETRY: Duration = Duration::from_millis(10);

/// Why the directories cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the directory {} for containers; check its permissions and free space", dir.display())]
pub struct WorkspaceError {
    dir: PathBuf,
    source: io::Error,
}

/// The directories of this process. Removed when dropped, but for the images.
pub struct Workspace {
    dir: PathBuf,
    session: PathBuf,
    count: AtomicU64,
    /// Held for as long as this process uses the session.
    _lock: File,
}

impl Workspace {
    /// Makes the directories of this process, and removes those of processes that have ended.
    pub fn open(dir: &Path) -> Result<Self, WorkspaceError> {
        let failed = |source| WorkspaceError { dir: dir.to_owned(), source };
        Self::try_open(dir).map_err(failed)
    }

    fn try_open(dir: &Path) -> io::Result<Self> {
        let dir = std::path::absolute(dir)?;
        for folder in [dir.join("images"), dir.join("run")] {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let all = File::create(dir.join(LOCK_FILE))?;
        flock(&all, FlockOperation::LockExclusive)?;
        remove_abandoned(&dir.join("run"))?;
        let (session, lock) = new_session(&dir.join("run"))?;
        Ok(Self { dir, session, count: AtomicU64::new(0), _lock: lock })
    }

    /// Where images are kept.
    pub fn images(&self) -> PathBuf {
        self.dir.join("images")
    }

    /// A new empty directory of this process, on the file system of the images.
    pub fn new_folder(&self, purpose: &str) -> io::Result<PathBuf> {
        let folder = self.session.join(format!("{purpose}-{}", self.count.fetch_add(1, Ordering::Relaxed)));
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(folder)
    }

    /// Removes the directories of this process. To be called when no container is left.
    pub fn clear(&self) {
        match fs::remove_dir_all(&self.session) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::debug!(%error, dir = %self.session.display(), "a directory of containers cannot be removed");
            }
            _ => {}
        }
    }

    /// A number that no other container of this process has.
    pub(crate) fn next_number(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    /// The name of this process' session, which is unique on this machine as long as the process lives.
    pub(crate) fn session_name(&self) -> String {
        self.session.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.clear();
    }
}

fn new_session(run: &Path) -> io::Result<(PathBuf, File)> {
    for attempt in 0u32.. {
        let session = run.join(format!("{}-{attempt}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&session) {
            Ok(()) => {
                let lock = File::create(session.join(LOCK_FILE))?;
                flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
                return Ok((session, lock));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("no name is left for a directory"))
}

fn remove_abandoned(run: &Path) -> io::Result<()> {
    for session in fs::read_dir(run)? {
        let session = session?.path();
        let in_use = File::open(session.join(LOCK_FILE))
            .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err());
        if in_use {
            continue;
        }
        for folder in fs::read_dir(&session).into_iter().flatten().flatten() {
            let plan = fs::read(folder.path().join(Plan::FILE)).ok();
            if let Some(plan) = plan.and_then(|plan| serde_json::from_slice::<Plan>(&plan).ok()) {
                remove_cgroups(&plan.id);
            }
        }
        tracing::debug!(dir = %session.display(), "removes what a process that ended has left");
        fs::remove_dir_all(&session)?;
    }
    Ok(())
}

/// Removes the cgroups of a container that has ended. Blocks.
pub(crate) fn remove_cgroups(id: &str) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for root in cgroup_mounts(&mounts).iter().map(|mount| &mount.root) {
        let parent = root.join(CGROUP_PARENT);
        let cgroup = parent.join(id);
        let mut attempts = 0;
        while let Err(error) = fs::remove_dir(&cgroup) {
            attempts += 1;
            if error.kind() == io::ErrorKind::NotFound || attempts == CGROUP_ATTEMPTS {
                break;
            }
            std::thread::sleep(CGROUP_RETRY);
        }
        // Refused as long as it has others in it.
        let _ = fs::remove_dir(parent);
    }
}

/// Whether this process may make cgroups: root may, unless they are mounted for reading only, as in most containers.
pub(crate) fn may_use_cgroups() -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts = cgroup_mounts(&mounts);
    !mounts.is_empty() && mounts.iter().all(|mount| mount.is_writable)
}

#[derive(Debug, PartialEq, Eq)]
struct CgroupMount {
    root: PathBuf,
    is_writable: bool,
}

/// The file systems of cgroups, of both versions, in the text of `mountinfo`.
fn cgroup_mounts(mountinfo: &str) -> Vec<CgroupMount> {
    let mount = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let kind = right.split(' ').next()?;
        if !["cgroup", "cgroup2"].contains(&kind) {
            return None;
        }
        let mut fields = left.split(' ').skip(4);
        let (root, options) = (fields.next()?, fields.next()?);
        let is_writable = options.split(',').any(|option| option == "rw");
        Some(CgroupMount { root: root.into(), is_writable })
    };
    mountinfo.lines().filter_map(mount).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_of_both_versions_are_found() {
        let text = "\
24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 24 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
31 24 0:27 / /sys/fs/cgroup/unified ro,relatime shared:9 - cgroup2 cgroup2 rw
";
        let found = cgroup_mounts(text);
        let mount = |root: &str, is_writable| CgroupMount { root: root.into(), is_writable };
        assert_eq!(found, [mount("/sys/fs/cgroup/memory", true), mount("/sys/fs/cgroup/unified", false)]);
    }

    #[test]
    fn what_an_ended_process_left_is_removed_and_what_others_use_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let abandoned = dir.path().join("run/1-0/unpack-0");
        fs::create_dir_all(&abandoned).unwrap();
        fs::write(dir.path().join("run/1-0/lock"), "").unwrap();
        let first = Workspace::open(dir.path()).unwrap();
        assert!(!abandoned.exists());
        let kept = first.new_folder("unpack").unwrap();
        let second = Workspace::open(dir.path()).unwrap();
        assert!(kept.exists(), "the first is in use");
        assert_ne!(first.session_name(), second.session_name());
        fs::create_dir(first.images().join("image")).unwrap();
        drop(first);
        assert!(!kept.exists());
        assert!(second.images().join("image").exists(), "images stay");
    }
}
