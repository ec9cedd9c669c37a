//! Enters the root file system of a container, gives up all privileges, and becomes its program.

use super::outer::unshare;
use super::{Doing, ShimError};
use crate::spec::{OPEN_FILES_MAX, Plan};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, mount_remount, unmount,
};
use rustix::process::{Gid, Resource, Rlimit, Uid, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};
use std::ffi::CString;
use std::fs::File;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The devices of a container.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// What a container may keep in shared memory, in bytes.
const SHARED_MEMORY_BYTES: u64 = 16 << 20;
/// The highest capability that a kernel may have.
const CAPABILITIES_MAX: u32 = 63;

pub(super) fn run(plan: &Plan) -> Result<ExitCode, ShimError> {
    let spec = &plan.spec;
    unshare(UnshareFlags::NEWNS).doing("separate the mounts of the container")?;
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).doing("separate the mounts of the container")?;
    rustix::system::sethostname(spec.name.as_bytes()).doing("set the host name of the container")?;
    make_root(plan)?;
    enter(&spec.root)?;
    limit(plan)?;
    give_up_privileges(plan)?;
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
    let error = command.exec();
    Err(ShimError::new(format!("cannot run {program:?}, which the image names as its program"), error))
}

/// Mounts the root file system for reading only, and what belongs into it.
fn make_root(plan: &Plan) -> Result<(), ShimError> {
    let root = &plan.spec.root;
    let harmless = MountFlags::NOSUID | MountFlags::NODEV;
    mount_bind(root, root).doing("mount the root file system")?;
    let tmp = format!("mode=1777,size={}", plan.spec.limits.tmp_bytes);
    tmpfs(&root.join("tmp"), &tmp, harmless)?;
    let processes = mount("proc", root.join("proc"), "proc", harmless | MountFlags::NOEXEC, None);
    if let Err(error) = processes {
        // In a container whose /proc has hidden parts the kernel refuses it. Most programs do without.
        tracing::debug!(%error, "the container has no /proc");
    }
    make_devices(&root.join("dev"))?;
    let read_only = MountFlags::BIND | MountFlags::RDONLY | harmless;
    mount_remount(root, read_only, "").doing("make the root file system read-only")
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
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Nofile, OPEN_FILES_MAX),
        (Resource::Nproc, limits.processes),
        (Resource::Data, limits.memory_bytes),
    ] {
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
