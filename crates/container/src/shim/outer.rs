//! The first process of a container: makes the namespaces, starts process 1 in them, and waits for it.

use super::{Doing, ShimError, loopback, stage};
use crate::spec::Plan;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::UnshareFlags;
use std::process::{ExitCode, Stdio};

pub(super) fn run(plan: &Plan) -> Result<ExitCode, ShimError> {
    if plan.user_namespace {
        enter_user_namespace()?;
    }
    let flags = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS;
    unshare(flags).doing("make namespaces for the container (is it allowed on this machine?)")?;
    // What is mounted from here on is not seen by others.
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).doing("separate the mounts of the container")?;
    loopback::up().doing("start the loopback interface of the container")?;
    let control = rustix::io::dup(rustix::stdio::stdin()).doing("pass on the control socket")?;
    let mut init = stage("init", &plan.folder);
    let child = init.stdin(Stdio::from(control)).spawn();
    let ended = child.and_then(|mut child| child.wait()).doing("run the first process of the container")?;
    Ok(if ended.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(deprecated, reason = "without CLONE_FILES it is safe, and this process has one thread")]
pub(super) fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Makes this process root in a namespace of users with one user: the one that it is.
fn enter_user_namespace() -> Result<(), ShimError> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let advice = "make a user namespace (this machine may forbid it to ordinary users: see the sysctls \
                  user.max_user_namespaces, kernel.unprivileged_userns_clone and \
                  kernel.apparmor_restrict_unprivileged_userns)";
    unshare(UnshareFlags::NEWUSER).doing(advice)?;
    let write = |file: &str, text: String| std::fs::write(format!("/proc/self/{file}"), text);
    write("setgroups", "deny".to_owned()).doing(advice)?;
    write("uid_map", format!("0 {} 1", user.as_raw())).doing(advice)?;
    write("gid_map", format!("0 {} 1", group.as_raw())).doing(advice)
}
