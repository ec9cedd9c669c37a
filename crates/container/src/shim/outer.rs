//! The first process of a container: makes the namespaces, starts process 1 in them, and waits for it.

use super::{Doing, ShimError, loopback, stage};
use crate::spec::{Network, Plan};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::UnshareFlags;
use std::process::{ExitCode, Stdio};

pub(super) fn run(plan: &Plan) -> Result<ExitCode, ShimError> {
    let reached = |step| crate::reached("outer", step);
    reached("it has begun");
    if plan.user_namespace {
        enter_user_namespace()?;
        reached("the namespace of users is made");
    }
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    if plan.spec.network == Network::None {
        flags |= UnshareFlags::NEWNET;
    }
    unshare(flags).doing("make namespaces for the container (is it allowed on this machine?)")?;
    reached("the namespaces are made");
    // What is mounted from here on is not seen by others.
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).doing("separate the mounts of the container")?;
    if plan.spec.network == Network::None {
        loopback::up().doing("start the loopback interface of the container")?;
    }
    reached("mounts and network are separate");
    let control = rustix::io::dup(rustix::stdio::stdin()).doing("pass on the control socket")?;
    let mut init = stage("init", &plan.folder);
    let action = "run the first process of the container";
    let mut child = init.stdin(Stdio::from(control)).spawn().doing(action)?;
    reached("the first process of the namespace is started");
    let ended = child.wait().doing(action)?;
    reached("the namespace of processes has ended");
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
