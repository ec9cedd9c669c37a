//! Enters the root file system of a container, gives up all privileges, and becomes its program.

use super::outer::unshare;
use super::{Doing, ShimError};
use crate::spec::{MASKED_PATHS, Mount, Plan, READ_ONLY_PATHS, SHARED_MEMORY_BYTES};
use rustix::fs::{Mode, OFlags, ResolveFlags, mkdirat, open, openat, openat2};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, mount_remount, unmount,
};
use rustix::process::{Gid, Resource, Rlimit, Uid, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The devices of a container.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// The highest capability that a kernel may have.
const CAPABILITIES_MAX: u32 = 63;

pub(super) fn run(plan: &Plan) -> Result<ExitCode, ShimError> {
    let spec = &plan.spec;
    let reached = |step| crate::reached("enter", step);
    let cgroups = open_cgroups(plan)?;
    reached("its cgroups are open");
    unshare(UnshareFlags::NEWNS).doing("separate the mounts of the container")?;
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).doing("separate the mounts of the container")?;
    reached("the mounts are separate");
    rustix::system::sethostname(spec.name.as_bytes()).doing("set the host name of the container")?;
    make_root(plan)?;
    reached("the root file system is mounted");
    enter(&spec.root)?;
    reached("the root file system is entered");
    // Not before: making the root is not the program's own work.
    for mut cgroup in cgroups {
        cgroup.write_all(b"0").doing("enter the cgroups of the container")?;
    }
    reached("the cgroups are entered");
    give_up_privileges(plan)?;
    reached("its privileges are given up");
    std::env::set_current_dir(&spec.cwd).doing(&format!("enter the working directory {}", spec.cwd))?;
    let Some((program, arguments)) = spec.args.split_first() else {
        return Err(ShimError::new("cannot start the container", std::io::ErrorKind::InvalidInput));
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear();
    for variable in &spec.env {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        command.env(name, value);
    }
    if plan.once.is_some() {
        let restricted = crate::seccomp::restrict().map_err(std::io::Error::other);
        restricted.doing("restrict the system calls of the container")?;
    }
    // Last: this process may use more memory already than the program may, and then gets no more.
    limit(plan)?;
    reached("the program is about to run");
    let error = command.exec();
    Err(ShimError::new(format!("cannot run {program:?}, which the image names as its program"), error))
}

/// The files by which this process enters the cgroups of the container, which are not seen from its root.
fn open_cgroups(plan: &Plan) -> Result<Vec<File>, ShimError> {
    let mut files = Vec::new();
    for cgroup in plan.own_cgroups() {
        let file = File::options().write(true).open(cgroup.join("cgroup.procs"));
        files.push(file.doing("open the cgroups of the container")?);
    }
    Ok(files)
}

/// Mounts the root file system for reading only, and what belongs into it.
fn make_root(plan: &Plan) -> Result<(), ShimError> {
    let root = &plan.spec.root;
    let harmless = MountFlags::NOSUID | MountFlags::NODEV;
    mount_bind(root, root).doing("mount the root file system")?;
    crate::reached("enter", "the root file system is bound");
    let tmp = format!("mode=1777,size={}", plan.spec.limits.tmp_bytes);
    tmpfs(&root.join("tmp"), &tmp, harmless)?;
    let processes = mount("proc", root.join("proc"), "proc", harmless | MountFlags::NOEXEC, None);
    match processes {
        Ok(()) => hide(root)?,
        // In a container whose /proc has hidden parts the kernel refuses it. Most programs do without.
        Err(error) => tracing::debug!(%error, "the container has no /proc"),
    }
    crate::reached("enter", "the processes are mounted");
    make_devices(&root.join("dev"))?;
    crate::reached("enter", "the devices are made");
    for mount in &plan.spec.mounts {
        let action = format!("mount {} in the container", mount.target);
        bind(root, mount).doing(&action)?;
    }
    let read_only = MountFlags::BIND | MountFlags::RDONLY | harmless;
    mount_remount(root, read_only, "").doing("make the root file system read-only")
}

/// Mounts a file or folder of this machine for reading only. The path is looked up as if the container's root was the root:
/// links in an image must not lead out of it.
fn bind(root: &Path, mount: &Mount) -> io::Result<()> {
    let root = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let is_folder = std::fs::metadata(&mount.source)?.is_dir();
    let names: Vec<&str> = mount.target.split('/').filter(|name| !name.is_empty()).collect();
    let mut path = String::from(".");
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let mut place = openat2(&root, ".", flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
    for (at, name) in names.iter().enumerate() {
        path = format!("{path}/{name}");
        place = match openat2(&root, &*path, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
            Err(Errno::NOENT) => {
                if is_folder || at + 1 < names.len() {
                    mkdirat(&place, *name, Mode::from_raw_mode(0o755))?;
                } else {
                    let new = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                    drop(openat(&place, *name, new, Mode::from_raw_mode(0o644))?);
                }
                openat2(&root, &*path, flags, Mode::empty(), ResolveFlags::IN_ROOT)?
            }
            found => found?,
        };
    }
    let place = format!("/proc/self/fd/{}", place.as_raw_fd());
    mount_bind(&mount.source, &*place)?;
    let flags =
        MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // The descriptor is of what was below the mount: the path leads to what is on top of it now.
    let mounted =
        openat2(&root, &*path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::IN_ROOT)?;
    Ok(mount_remount(format!("/proc/self/fd/{}", mounted.as_raw_fd()), flags, "")?)
}

/// Where a path of the container is while its root file system is not yet the root.
fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Hides what of `/proc` is about the machine, and makes read-only what configures it.
fn hide(root: &Path) -> Result<(), ShimError> {
    let action = "hide parts of /proc";
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    for path in MASKED_PATHS.map(|path| below(root, path)) {
        if path.is_dir() {
            mount("tmpfs", &path, "tmpfs", flags | MountFlags::RDONLY, c"size=0").doing(action)?;
        } else if path.exists() {
            mount_bind("/dev/null", &path).doing(action)?;
        }
    }
    for path in READ_ONLY_PATHS.map(|path| below(root, path)).iter().filter(|path| path.exists()) {
        mount_bind(path, path).doing(action)?;
        mount_remount(path, MountFlags::BIND | MountFlags::RDONLY | flags, "").doing(action)?;
    }
    Ok(())
}

fn make_devices(dev: &Path) -> Result<(), ShimError> {
    let action = "make the devices of the container";
    tmpfs(dev, "mode=755,size=65536", MountFlags::NOSUID)?;
    for name in DEVICES {
        let device = dev.join(name);
        File::create(&device).doing(action)?;
        mount_bind(Path::new("/dev").join(name), &device).doing(action)?;
    }
    for (name, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        symlink(format!("/proc/self/fd{target}"), dev.join(name)).doing(action)?;
    }
    let shared = dev.join("shm");
    std::fs::create_dir(&shared).doing(action)?;
    let options = format!("mode=1777,size={SHARED_MEMORY_BYTES}");
    tmpfs(&shared, &options, MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC)?;
    mount_remount(dev, MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID, "").doing(action)
}

fn tmpfs(target: &Path, options: &str, flags: MountFlags) -> Result<(), ShimError> {
    let options = CString::new(options).unwrap_or_default();
    let mounted = mount("tmpfs", target, "tmpfs", flags, &*options);
    mounted.doing("mount a temporary file system in the container")
}

/// Makes a folder the root, and unmounts everything outside of it.
fn enter(root: &Path) -> Result<(), ShimError> {
    let action = "enter the root file system";
    std::env::set_current_dir(root).doing(action)?;
    // The old root is mounted on top of the new one, where it is found again.
    rustix::process::pivot_root(".", ".").doing(action)?;
    unmount(".", UnmountFlags::DETACH).doing(action)?;
    std::env::set_current_dir("/").doing(action)
}

fn limit(plan: &Plan) -> Result<(), ShimError> {
    let limits = &plan.spec.limits;
    let mut all = vec![(Resource::Core, 0), (Resource::Nofile, plan.open_files_max())];
    if plan.own_cgroups().is_empty() {
        all.extend([(Resource::Nproc, limits.processes), (Resource::Data, limits.memory_bytes)]);
    }
    for (resource, most) in all {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).doing("limit the container")?;
    }
    Ok(())
}

fn give_up_privileges(plan: &Plan) -> Result<(), ShimError> {
    let action = "give up the privileges of the container";
    rustix::thread::set_no_new_privs(true).doing(action)?;
    for number in 0..=CAPABILITIES_MAX {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        // Refused for numbers that the kernel does not know.
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    rustix::thread::clear_ambient_capability_set().doing(action)?;
    if !plan.user_namespace {
        let (user, group) = (Uid::from_raw(plan.user), Gid::from_raw(plan.user));
        rustix::thread::set_thread_groups(&[]).doing(action)?;
        rustix::thread::set_thread_res_gid(group, group, group).doing(action)?;
        rustix::thread::set_thread_res_uid(user, user, user).doing(action)?;
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).doing(action)
}
