//! The cgroups that limit a container: of version 1, of version 2, or both.
//!
//! Limits are on `transom/ID` in every hierarchy; an OCI runtime puts the container into a cgroup below that. So what was
//! reached is still known when the container and its own cgroup are gone.

use crate::spec::Limits;
use crate::workspace::CGROUP_PARENT;
use rustix::event::{EventfdFlags, eventfd};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The length of a period in which a container may use its share of the processors, in microseconds.
pub(crate) const CPU_PERIOD_MICROS: u64 = 100_000;
/// The least share of a period that kernels accept, in microseconds.
const MIN_CPU_QUOTA_MICROS: u64 = 1000;
/// The cgroup below, which an OCI runtime makes.
pub(crate) const RUN: &str = "run";
/// How often the creation of a cgroup is attempted whose parent is removed at the same time.
const MAX_CREATION_ATTEMPTS: usize = 10;
/// What containers that run once are limited in.
const CONTROLLERS: [&str; 3] = ["memory", "cpu", "pids"];

/// The hierarchies that limit memory, processors and processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchies {
    roots: Vec<Root>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Root {
    dir: PathBuf,
    /// Whether it is the one of version 2, which has all controllers.
    is_unified: bool,
    controllers: Vec<&'static str>,
}

/// Which limits a container reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) memory: bool,
    pub(crate) processes: bool,
    pub(crate) processors: bool,
}

impl Hierarchies {
    /// The hierarchies of this machine, or why limits cannot be enforced.
    pub(crate) fn find() -> Result<Self, String> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let unified = |dir: &Path| fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default();
        let found = Self::of(&mounts, unified)?;
        for root in &found.roots {
            found.prepare(root)?;
        }
        Ok(found)
    }

    /// The hierarchies in the text of `mountinfo`, given the controllers of one of version 2.
    fn of(mountinfo: &str, controllers: impl Fn(&Path) -> String) -> Result<Self, String> {
        let mut roots: Vec<Root> = Vec::new();
        let mut read_only = Vec::new();
        for (kind, dir, is_writable, options) in mountinfo.lines().filter_map(mount) {
            let is_unified = kind == "cgroup2";
            let listed = if is_unified { controllers(&dir) } else { options.replace(',', " ") };
            let has = |name: &&str| listed.split_whitespace().any(|listed| listed == *name);
            let taken = |name: &&str| !roots.iter().any(|root| root.controllers.contains(name));
            let ours: Vec<&'static str> = CONTROLLERS.into_iter().filter(has).filter(taken).collect();
            match (ours.is_empty(), is_writable) {
                (true, _) => {}
                (false, false) => read_only.push(dir.display().to_string()),
                (false, true) => roots.push(Root { dir, is_unified, controllers: ours }),
            }
        }
        let has = |name: &&&str| roots.iter().any(|root| root.controllers.contains(*name));
        let missing: Vec<&str> = CONTROLLERS.iter().filter(|name| !has(name)).copied().collect();
        if missing.is_empty() {
            return Ok(Self { roots });
        }
        let why = if read_only.is_empty() {
            "no file system of cgroups has them".to_owned()
        } else {
            format!("{} is mounted for reading only", read_only.join(", "))
        };
        Err(format!("there are no cgroups for {}: {why}", missing.join(", ")))
    }

    /// Makes the cgroup that all containers are in.
    fn prepare(&self, root: &Root) -> Result<(), String> {
        let parent = root.dir.join(CGROUP_PARENT);
        let failed = |e: io::Error| format!("cgroups cannot be made below {}: {e}", root.dir.display());
        make(&parent).map_err(failed)?;
        if !root.is_unified {
            return Ok(());
        }
        let all: Vec<String> = root.controllers.iter().map(|name| format!("+{name}")).collect();
        for dir in [&root.dir, &parent] {
            fs::write(dir.join("cgroup.subtree_control"), all.join(" ")).map_err(|e| {
                let dir = dir.display();
                format!("the controllers of cgroups cannot be enabled in {dir}, where processes are: {e}")
            })?;
        }
        Ok(())
    }

    /// Makes the cgroups of a container, and returns them. An OCI runtime limits processor time itself, when the container is ready
    /// to run: its own work is not the program's.
    pub(crate) fn limit(&self, id: &str, limits: &Limits, is_oci: bool) -> io::Result<Vec<PathBuf>> {
        let mut made = Vec::new();
        for root in &self.roots {
            let dir = root.dir.join(CGROUP_PARENT).join(id);
            make_below(&root.dir.join(CGROUP_PARENT), &dir)?;
            made.push(dir.clone());
            for controller in root.controllers.iter().filter(|name| !(is_oci && **name == "cpu")) {
                for (file, text, is_required) in settings(controller, root.is_unified, limits) {
                    match fs::write(dir.join(file), text) {
                        Err(error) if is_required => return Err(error),
                        _ => {}
                    }
                }
            }
        }
        Ok(made)
    }
}

/// Receives the kernel's notifications that a cgroup of version 1 ran out of memory.
///
/// Version 1 has no count of that where the limit is: `oom_kill` is counted in the cgroup of the process, which an OCI runtime has
/// removed by the time the container has ended, and recent kernels leave `memory.failcnt` at 0. A notification is sent for
/// the cgroup whose limit was reached.
pub(crate) struct OutOfMemory {
    /// Counts the notifications. Removing the cgroup counts as one as well, so it is read before.
    events: OwnedFd,
}

impl OutOfMemory {
    /// Registers for those of the cgroup that limits memory, if it is of version 1.
    pub(crate) fn of(cgroups: &[PathBuf]) -> Option<Self> {
        let dir = cgroups.iter().find(|dir| dir.join("memory.oom_control").exists())?;
        let registered = Self::register(dir);
        if let Err(error) = &registered {
            tracing::debug!(%error, cgroup = %dir.display(), "the kernel does not notify of a lack of memory");
        }
        registered.ok()
    }

    fn register(dir: &Path) -> io::Result<Self> {
        let events = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let control = File::open(dir.join("memory.oom_control"))?;
        let (of, on) = (events.as_raw_fd(), control.as_raw_fd());
        fs::write(dir.join("cgroup.event_control"), format!("{of} {on}"))?;
        Ok(Self { events })
    }

    fn has_happened(&self) -> bool {
        let mut count = [0; 8];
        rustix::io::read(&self.events, &mut count).is_ok_and(|_| u64::from_ne_bytes(count) > 0)
    }
}

/// Which limits a container reached, by its cgroups, before they are removed.
pub(crate) fn reached(cgroups: &[PathBuf], out_of_memory: Option<&OutOfMemory>) -> Reached {
    let mut reached =
        Reached { memory: out_of_memory.is_some_and(OutOfMemory::has_happened), ..Reached::default() };
    for dir in cgroups {
        let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap_or_default();
        let number = |file: &str| read(file).trim().parse::<u64>().ok();
        let is_at_peak = number("pids.max").is_some_and(|max| number("pids.peak") >= Some(max));
        // Also counts memory that was reclaimed: it is used where there are no notifications only.
        let is_short = out_of_memory.is_none()
            && ["memory.failcnt", "memory.memsw.failcnt"].into_iter().any(|file| number(file) > Some(0));
        reached.memory |= count(&read("memory.events"), "oom_kill") > 0 || is_short;
        reached.processes |= count(&read("pids.events"), "max") > 0 || is_at_peak;
        reached.processors |= count(&read("cpu.stat"), "nr_throttled") > 0;
    }
    reached
}

/// Which limits a container that runs has reached so far, and in how many periods its processors were limited. An OCI
/// runtime puts it into a cgroup below its own, where some kernels count.
pub(crate) fn reached_so_far(cgroups: &[PathBuf]) -> (Reached, u64) {
    let (mut found, mut throttled) = (Reached::default(), 0);
    for dir in cgroups.iter().flat_map(|dir| [dir.clone(), dir.join(RUN)]) {
        let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap_or_default();
        // Of version 1, the second one, for the processes in this cgroup alone.
        let killed = |file| count(&read(file), "oom_kill") > 0;
        found.memory |= killed("memory.events") || killed("memory.oom_control");
        found.processes |= count(&read("pids.events"), "max") > 0;
        throttled += count(&read("cpu.stat"), "nr_throttled");
    }
    found.processors = throttled > 0;
    (found, throttled)
}

fn count(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
}

/// Makes a directory and its parent, which another process may just have removed with its last container.
fn make_below(parent: &Path, dir: &Path) -> io::Result<()> {
    for _ in 0..MAX_CREATION_ATTEMPTS {
        make(parent)?;
        match make(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            made => return made,
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

fn make(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// The share of a period that a container may use, in microseconds.
pub(crate) fn cpu_quota(limits: &Limits) -> u64 {
    (limits.cpu_millis * CPU_PERIOD_MICROS / 1000).max(MIN_CPU_QUOTA_MICROS)
}

/// The files of a controller with what is written to them, and whether they must exist.
fn settings(controller: &str, is_unified: bool, limits: &Limits) -> Vec<(&'static str, String, bool)> {
    let quota = cpu_quota(limits);
    let (memory, processes) = (limits.memory_bytes.to_string(), limits.processes.to_string());
    match (controller, is_unified) {
        ("memory", true) => vec![("memory.max", memory, true), ("memory.swap.max", "0".into(), false)],
        ("memory", false) => vec![
            // Kernels before 5.11 apply a limit to the cgroups below only then.
            ("memory.use_hierarchy", "1".into(), false),
            ("memory.limit_in_bytes", memory.clone(), true),
            // Of memory and swap together. Kernels may not count swap.
            ("memory.memsw.limit_in_bytes", memory, false),
        ],
        ("cpu", true) => vec![("cpu.max", format!("{quota} {CPU_PERIOD_MICROS}"), true)],
        ("cpu", false) => vec![
            ("cpu.cfs_period_us", CPU_PERIOD_MICROS.to_string(), true),
            ("cpu.cfs_quota_us", quota.to_string(), true),
        ],
        _ => vec![("pids.max", processes, true)],
    }
}

/// The kind, directory and options of a mounted file system of cgroups, and whether it can be written.
fn mount(line: &str) -> Option<(String, PathBuf, bool, String)> {
    let (left, right) = line.split_once(" - ")?;
    let mut right = right.split(' ');
    let (kind, _, options) = (right.next()?, right.next()?, right.next()?);
    if !["cgroup", "cgroup2"].contains(&kind) {
        return None;
    }
    let mut fields = left.split(' ').skip(4);
    let (dir, flags) = (fields.next()?, fields.next()?);
    let is_writable = flags.split(',').any(|flag| flag == "rw");
    Some((kind.to_owned(), dir.into(), is_writable, options.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "\
30 24 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
31 24 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
32 24 0:28 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
";
    const UNIFIED: &str = "33 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn dirs(mounts: &str, controllers: &str) -> Result<Vec<(String, bool)>, String> {
        let found = Hierarchies::of(mounts, |_| controllers.to_owned())?;
        Ok(found.roots.iter().map(|root| (root.dir.display().to_string(), root.is_unified)).collect())
    }

    #[test]
    fn version_1_version_2_and_both_are_used() {
        assert_eq!(dirs(V1, "").unwrap().len(), 3);
        let unified = ("/sys/fs/cgroup/unified".to_owned(), true);
        assert_eq!(dirs(UNIFIED, "cpuset cpu io memory pids").unwrap(), std::slice::from_ref(&unified));
        assert!(!dirs(&format!("{V1}{UNIFIED}"), "").unwrap().contains(&unified), "hybrid");
        let without_memory: String = V1.lines().skip(1).map(|line| format!("{line}\n")).collect();
        let hybrid = dirs(&format!("{without_memory}{UNIFIED}"), "memory").unwrap();
        assert!(hybrid.len() == 3 && hybrid.contains(&unified), "{hybrid:?}");
    }

    #[test]
    fn what_cannot_be_limited_is_named() {
        let error = dirs("", "").unwrap_err();
        assert!(error.contains("memory, cpu, pids"), "{error}");
        let error = dirs(&V1.replace("memory rw", "memory ro"), "").unwrap_err();
        assert!(error.contains("for memory: /sys/fs/cgroup/memory is mounted for reading only"), "{error}");
    }

    #[test]
    fn limits_are_those_of_crossplane() {
        let limits = Limits { memory_bytes: 128 << 20, cpu_millis: 100, processes: 64, tmp_bytes: 0 };
        let text = |controller, unified| {
            let all = settings(controller, unified, &limits);
            all.into_iter().map(|(file, text, _)| format!("{file}={text}")).collect::<Vec<_>>()
        };
        assert_eq!(text("cpu", true), ["cpu.max=10000 100000"]);
        assert_eq!(text("cpu", false), ["cpu.cfs_period_us=100000", "cpu.cfs_quota_us=10000"]);
        assert_eq!(text("pids", true), ["pids.max=64"]);
        assert_eq!(text("memory", false)[0], "memory.use_hierarchy=1", "before there are cgroups below");
        let least = Limits { cpu_millis: 1, ..limits };
        assert_eq!(settings("cpu", true, &least)[0].1, "1000 100000");
    }

    #[test]
    fn reached_limits_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(reached(&[dir.path().to_owned()], None), Reached::default());
        fs::write(dir.path().join("memory.events"), "low 0\noom 3\noom_kill 1\n").unwrap();
        fs::write(dir.path().join("pids.events"), "max 0\n").unwrap();
        fs::write(dir.path().join("cpu.stat"), "nr_periods 9\nnr_throttled 4\n").unwrap();
        let found = reached(&[dir.path().to_owned()], None);
        assert_eq!(found, Reached { memory: true, processes: false, processors: true });
        for (file, text) in
            [("memory.events", ""), ("memory.failcnt", "0\n"), ("pids.max", "7\n"), ("pids.peak", "7\n")]
        {
            fs::write(dir.path().join(file), text).unwrap();
        }
        let found = reached(&[dir.path().to_owned()], None);
        assert_eq!(found, Reached { memory: false, processes: true, processors: true });
        fs::write(dir.path().join("memory.failcnt"), "106\n").unwrap();
        assert!(reached(&[dir.path().to_owned()], None).memory);
    }

    /// On a machine with cgroups of version 1, as root: a program that needs more than its limit, in a cgroup below it that is
    /// removed before the limits are read, as an OCI runtime does.
    #[test]
    fn a_lack_of_memory_is_seen_after_the_cgroup_of_the_program_is_gone() {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let version_1 =
            |root: &Root| !root.is_unified && root.controllers.contains(&"memory") && root.dir.exists();
        let hierarchies = Hierarchies::of(&mounts, |_| String::new());
        let is_here = hierarchies.is_ok_and(|found| found.roots.iter().any(version_1));
        if !is_here || !rustix::process::geteuid().is_root() {
            println!("did not run: it needs cgroups of version 1, and root");
            return;
        }
        let found = Hierarchies::find().unwrap();
        for (megabytes, expected) in [(4, false), (200, true)] {
            let id = format!("transom-test-{}-{megabytes}", std::process::id());
            let limits = Limits { memory_bytes: 64 << 20, cpu_millis: 1000, processes: 64, tmp_bytes: 0 };
            let cgroups = found.limit(&id, &limits, true).unwrap();
            let out_of_memory = OutOfMemory::of(&cgroups);
            assert!(out_of_memory.is_some());
            let memory = cgroups.iter().find(|dir| dir.join("memory.oom_control").exists()).unwrap();
            let run = memory.join("run");
            fs::create_dir(&run).unwrap();
            let script = format!(
                "echo $$ > {}/cgroup.procs && exec dd if=/dev/zero of=/dev/null bs={megabytes}M count=1",
                run.display()
            );
            let ended = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(ended.status.success(), !expected, "{ended:?}");
            while fs::remove_dir(&run).is_err() {
                std::thread::yield_now();
            }
            assert_eq!(reached(&cgroups, out_of_memory.as_ref()).memory, expected, "{megabytes} MiB");
            crate::workspace::remove_cgroups(&id);
        }
    }
}
