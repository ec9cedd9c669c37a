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
//! sessions, with the cgroups of their containers. A session with a cgroup that cannot be removed yet is left to the next
//! process that opens the workspace.

use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The cgroup that those of all containers are in.
pub(crate) const CGROUP_PARENT: &str = "transom";
const LOCK_FILE: &str = "lock";
/// How often the removal of a cgroup is tried: it is refused until the kernel has ended its last process.
const CGROUP_ATTEMPTS: u32 = 50;
const CGROUP_RETRY: Duration = Duration::from_millis(10);

/// Why the directories cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the directory {} for containers; check its permissions and free space", dir.display())]
pub struct WorkspaceError {
    dir: PathBuf,
    source: io::Error,
}

/// The containers that run once now.
#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    count: usize,
    /// Whether no other one may be started.
    is_over: bool,
}

/// The directories of this process. Removed when dropped, but for the images.
pub struct Workspace {
    dir: PathBuf,
    session: PathBuf,
    count: AtomicU64,
    runs: Arc<watch::Sender<Runs>>,
    /// Held for as long as this process uses the session.
    _lock: File,
}

impl Workspace {
    /// Makes the directories of this process, and removes those of processes that have ended.
    pub fn open(dir: &Path) -> Result<Self, WorkspaceError> {
        let failed = |source| WorkspaceError { dir: dir.to_owned(), source };
        Self::try_open(dir).map_err(failed)
    }

    /// Removes what processes that have ended left, if there is anything. [`open`](Self::open) does so as well.
    pub fn clean(dir: &Path) -> Result<(), WorkspaceError> {
        let run = dir.join("run");
        if fs::read_dir(&run).map_or(true, |mut sessions| sessions.next().is_none()) {
            return Ok(());
        }
        let cleaned = lock(dir).and_then(|_all| remove_abandoned(&run));
        cleaned.map_err(|source| WorkspaceError { dir: dir.to_owned(), source })
    }

    fn try_open(dir: &Path) -> io::Result<Self> {
        let dir = std::path::absolute(dir)?;
        for folder in [dir.join("images"), dir.join("run")] {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        reached_step("the directories are made");
        let _all = lock(&dir)?;
        remove_abandoned(&dir.join("run"))?;
        let (session, lock) = new_session(&dir.join("run"))?;
        reached_step("its session is locked");
        let runs = Arc::new(watch::Sender::new(Runs::default()));
        Ok(Self { dir, session, count: AtomicU64::new(0), runs, _lock: lock })
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

    /// Removes the directories of this process, and cgroups that could not be removed before. To be called when no container is
    /// left.
    pub fn clear(&self) {
        let removed = match remove_cgroups_of(&self.session_name()) {
            // The next process that opens the directory removes them.
            false => return,
            true => fs::remove_dir_all(&self.session),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::debug!(%error, dir = %self.session.display(), "a directory of containers cannot be removed");
            }
            _ => {}
        }
        remove_cgroup_parents();
    }

    /// Waits until no container runs once any more, so that nothing of them is left. No other one is started from here on.
    pub async fn idle(&self) {
        self.runs.send_modify(|runs| runs.is_over = true);
        // The sender is a field of this value.
        let _ = self.runs.subscribe().wait_for(|runs| runs.count == 0).await;
    }

    /// Counts a container that runs once, until it is dropped. None when no other one may be started.
    pub(crate) fn begin_run(&self) -> Option<RunGuard> {
        let counts = |runs: &mut Runs| {
            runs.count += usize::from(!runs.is_over);
            !runs.is_over
        };
        self.runs.send_if_modified(counts).then(|| RunGuard(self.runs.clone()))
    }

    /// A number that no other container of this process has.
    pub(crate) fn next_number(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    /// The name of this process' session, which is unique on this machine as long as the process lives.
    pub(crate) fn session_name(&self) -> String {
        session_name(&self.session)
    }

    /// The id of a container of this process with a number.
    pub(crate) fn container_id(&self, number: u64) -> String {
        format!("{}{number}", id_prefix(&self.session_name()))
    }
}

/// A container that runs once.
pub(crate) struct RunGuard(Arc<watch::Sender<Runs>>);

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.0.send_modify(|runs| runs.count = runs.count.saturating_sub(1));
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Locks the sessions of a directory, until the file is dropped.
fn lock(dir: &Path) -> io::Result<File> {
    let all = File::create(dir.join(LOCK_FILE))?;
    flock(&all, FlockOperation::LockExclusive)?;
    Ok(all)
}

fn new_session(run: &Path) -> io::Result<(PathBuf, File)> {
    for attempt in 0u32.. {
        let session = run.join(format!("{}-{attempt}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&session) {
            Ok(()) => {
                reached_step("the directory of its session is made");
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
        tracing::debug!(dir = %session.display(), "removes what a process that ended has left");
        // Not by their plans: a container may have cgroups before its plan is written. The directory is the only trace of cgroups
        // whose processes have not ended yet, so it stays as long as they do.
        if !remove_cgroups_of(&session_name(&session)) {
            continue;
        }
        reached_step("the cgroups of an abandoned session are removed");
        fs::remove_dir_all(&session)?;
        reached_step("an abandoned session is removed");
    }
    Ok(())
}

fn session_name(session: &Path) -> String {
    session.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What the ids of the containers of a session begin with.
fn id_prefix(session: &str) -> String {
    format!("transom-{session}-")
}

/// Removes the cgroups of all containers of a session, and returns whether none is left. Blocks.
fn remove_cgroups_of(session: &str) -> bool {
    let prefix = id_prefix(session);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let all = cgroup_mounts(&mounts).into_iter();
    let entries =
        all.flat_map(|mount| fs::read_dir(mount.join(CGROUP_PARENT)).into_iter().flatten().flatten());
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let ids: BTreeSet<String> = names.filter(|name| name.starts_with(&prefix)).collect();
    // All of them, also after one that is left.
    ids.iter().filter(|id| !remove_cgroups(id)).count() == 0
}

/// Names a step of opening a workspace, see `crash_injection`.
fn reached_step(step: &str) {
    crate::reached("open", step);
}

/// Removes the cgroups of a container that has ended, and returns whether none is left: as long as the kernel has not ended all of
/// its processes, they cannot be removed. Blocks.
pub(crate) fn remove_cgroups(id: &str) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let all = cgroup_mounts(&mounts).into_iter().map(|mount| mount.join(CGROUP_PARENT).join(id));
    all.filter(|cgroup| !remove_cgroup(cgroup)).count() == 0
}

fn remove_cgroup(cgroup: &Path) -> bool {
    for attempt in 0..CGROUP_ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(CGROUP_RETRY);
        }
        // What an OCI runtime made in it, which it removes unless it is killed.
        remove_children(cgroup);
        match fs::remove_dir(cgroup) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            _ => return true,
        }
    }
    tracing::debug!(cgroup = %cgroup.display(), "a cgroup cannot be removed yet");
    false
}

/// Removes the cgroup that those of all containers are in, unless it has others in it. Not after every container: another one may
/// just be put into it.
fn remove_cgroup_parents() {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for mount in cgroup_mounts(&mounts) {
        let _ = fs::remove_dir(mount.join(CGROUP_PARENT));
    }
}

fn remove_children(cgroup: &Path) {
    for child in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if child.path().is_dir() {
            let _ = fs::remove_dir(child.path());
        }
    }
}

/// Where the file systems of cgroups, of both versions, are mounted, in the text of `mountinfo`.
fn cgroup_mounts(mountinfo: &str) -> Vec<PathBuf> {
    let mount = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let kind = right.split(' ').next()?;
        let is_one = ["cgroup", "cgroup2"].contains(&kind);
        left.split(' ').nth(4).filter(|_| is_one).map(PathBuf::from)
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
        assert_eq!(found, ["/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"].map(PathBuf::from));
    }

    #[tokio::test]
    async fn no_container_is_started_when_the_end_of_all_is_awaited() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        let run = workspace.begin_run().unwrap();
        let idle = workspace.idle();
        tokio::pin!(idle);
        let waits = tokio::time::timeout(Duration::ZERO, &mut idle).await;
        assert!(waits.is_err(), "one runs");
        assert!(workspace.begin_run().is_none());
        drop(run);
        idle.await;
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

    /// As root where cgroups can be used: a process that the kernel has not ended yet.
    #[test]
    fn a_session_stays_as_long_as_its_cgroups() {
        let found = crate::cgroup::Hierarchies::find();
        let Some(found) = found.ok().filter(|_| rustix::process::geteuid().is_root()) else {
            println!("did not run: it needs cgroups, and root");
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let name = format!("test-{}", std::process::id());
        let session = dir.path().join("run").join(&name);
        fs::create_dir_all(&session).unwrap();
        let id = format!("{}0", id_prefix(&name));
        let cgroups = found.limit(&id, &crate::spec::Limits::default(), false).unwrap();
        let mut process = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        for cgroup in &cgroups {
            fs::write(cgroup.join("cgroup.procs"), process.id().to_string()).unwrap();
        }
        drop(Workspace::open(dir.path()).unwrap());
        assert!(session.exists(), "otherwise no process knows of its cgroups");
        process.kill().unwrap();
        process.wait().unwrap();
        drop(Workspace::open(dir.path()).unwrap());
        assert!(!session.exists());
        assert!(cgroups.iter().all(|cgroup| !cgroup.exists()), "{cgroups:?}");
    }
}
