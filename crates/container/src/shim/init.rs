//! Process 1 of a container's process namespace. When it ends, the kernel ends all others in the namespace.

use super::outer::unshare;
use super::temporary_files::{Look, TemporaryFiles, timespec};
use super::{Doing, ShimError, stage};
use crate::control::{Report, Request, receive, send};
use crate::spec::Plan;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};
use rustix::thread::UnshareFlags;
use std::ffi::OsStr;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

pub(super) fn run(plan: &Plan) -> Result<ExitCode, ShimError> {
    // Ends with the first process, too, which ends only after this one unless it is killed.
    let signal = Some(Signal::KILL);
    rustix::process::set_parent_process_death_signal(signal).doing("tie the container to its parent")?;
    let reached = |step| crate::reached("init", step);
    reached("it is tied to its parent");
    let input = input(plan)?;
    reached("the input is received");
    let mut child = match &plan.oci_runtime {
        Some(program) => start_by(program, plan, input)?,
        None => start_alone(plan, input)?,
    };
    reached("the container is started");
    let pid = Pid::from_child(&child);
    let exit = rustix::process::pidfd_open(pid, PidfdFlags::empty()).doing("watch the container")?;
    let ended = Running { plan, pid, exit, files: TemporaryFiles::new() }.watch()?;
    reached("the container has ended");
    // Already reaped.
    let _ = child.try_wait();
    if let Some(report) = ended {
        send(rustix::stdio::stdin(), &report, None).doing("report the end of the container")?;
    }
    reached("its end is reported");
    Ok(ExitCode::SUCCESS)
}

/// The standard input of the container: nothing, unless it runs once.
fn input(plan: &Plan) -> Result<Stdio, ShimError> {
    if plan.once.is_none() {
        return Ok(Stdio::null());
    }
    let control = rustix::stdio::stdin();
    let action = "receive the input of the container";
    let mut readable = [PollFd::new(&control, PollFlags::IN)];
    poll(&mut readable, None).doing(action)?;
    match receive::<Request>(control).doing(action)? {
        Some((Request::Input, Some(input))) => Ok(Stdio::from(input)),
        _ => Err(ShimError::new(format!("cannot {action}"), io::ErrorKind::UnexpectedEof)),
    }
}

/// Starts the container with an OCI runtime, which stays in the foreground.
fn start_by(program: &Path, plan: &Plan, input: Stdio) -> Result<Child, ShimError> {
    // OCI runtimes look for their own processes there.
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).doing("mount /proc for the OCI runtime")?;
    let mut command = Command::new(program);
    command.arg0(program).arg("--root").arg(plan.state_dir());
    let name = program.file_name().and_then(OsStr::to_str).unwrap_or_default();
    match (name, !plan.own_cgroups().is_empty()) {
        ("crun", true) => drop(command.arg("--cgroup-manager=cgroupfs")),
        ("crun", false) => drop(command.arg("--cgroup-manager=disabled")),
        ("runc", false) => drop(command.args(["--rootless", "true"])),
        _ => {}
    }
    command.args(["run", "--bundle"]).arg(&plan.folder).arg("--pid-file").arg(plan.pid_file()).arg(&plan.id);
    // Only its own directories: it must not use what the user has configured for others.
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("XDG_RUNTIME_DIR", plan.state_dir());
    let started = command.stdin(input).spawn();
    started.doing(&format!("run {}", program.display()))
}

/// Starts the container in namespaces without an OCI runtime: in a process namespace of its own, so that it does not see this process.
fn start_alone(plan: &Plan, input: Stdio) -> Result<Child, ShimError> {
    if plan.once.is_none() {
        // Numbers of processes are those of this namespace then. A kernel may refuse it where parts of /proc are hidden; then
        // nothing is seen of the container's files.
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let _ = mount("proc", "/proc", "proc", flags, None);
    }
    unshare(UnshareFlags::NEWPID).doing("make a process namespace for the container")?;
    stage("enter", &plan.folder).stdin(input).spawn().doing("start the container")
}

/// A container that was started.
struct Running<'a> {
    plan: &'a Plan,
    /// Of the OCI runtime, or of the container's program.
    pid: Pid,
    /// Readable when that has ended.
    exit: OwnedFd,
    files: TemporaryFiles,
}

impl Running<'_> {
    /// Answers requests until the container has ended, and returns how; or until the other side is gone.
    fn watch(&mut self) -> Result<Option<Report>, ShimError> {
        let control = rustix::stdio::stdin();
        loop {
            let until_look = if self.plan.once.is_none() { self.files.until_next_look() } else { None };
            if until_look.is_some_and(|wait| wait.is_zero()) {
                self.look()?;
                continue;
            }
            let mut watched = [
                PollFd::new(&control, PollFlags::IN),
                PollFd::from_borrowed_fd(self.exit.as_fd(), PollFlags::IN),
            ];
            match poll(&mut watched, until_look.map(timespec).as_ref()) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error).doing("wait for the container"),
            }
            let [asked, ended] = watched.map(|watched| !watched.revents().is_empty());
            if ended && let Some(report) = self.reap()? {
                self.look()?;
                return Ok(Some(report));
            }
            if asked && !self.serve()? {
                return Ok(None);
            }
        }
    }

    /// Reports once that the container has filled its directory for temporary files.
    fn look(&mut self) -> Result<(), ShimError> {
        let pid = match &self.plan.oci_runtime {
            Some(_) => std::fs::read_to_string(self.plan.pid_file()).unwrap_or_default(),
            None => self.pid.as_raw_nonzero().to_string(),
        };
        if self.plan.once.is_none()
            && self.files.look(pid.trim(), self.plan.spec.limits.tmp_bytes) == Look::Full
        {
            send(rustix::stdio::stdin(), &Report::Full, None).doing("report that /tmp is full")?;
        }
        Ok(())
    }

    /// Serves one request. False when the other side is gone.
    fn serve(&self) -> Result<bool, ShimError> {
        let control = rustix::stdio::stdin();
        match receive::<Request>(control) {
            Ok(None) => return Ok(false),
            Ok(Some((Request::Terminate, _))) => {
                // It may have ended just now.
                let _ = rustix::process::kill_process(self.pid, Signal::TERM);
            }
            // The input was received before.
            Ok(Some((Request::Input, _))) => {}
            Ok(Some((Request::Connect, _))) => {
                let sent = match self.connect() {
                    Ok(socket) => send(control, &Report::Connecting, Some(socket.as_fd())),
                    Err(error) => send(control, &Report::CannotConnect(error.to_string()), None),
                };
                sent.doing("pass on a connection")?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).doing("read the control socket"),
        }
        Ok(true)
    }

    /// A socket that is connected to the container's port, or about to be.
    fn connect(&self) -> io::Result<OwnedFd> {
        let no_port = || io::Error::new(io::ErrorKind::Unsupported, "the container has no port");
        let port = self.plan.spec.port.ok_or_else(no_port)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        match connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
            Err(error) => Err(error.into()),
        }
    }

    fn end(&self, status: WaitStatus) -> Report {
        let is_started = self.plan.oci_runtime.is_none() || self.plan.pid_file().exists();
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) if !is_started => {
                Report::Failed(format!("the OCI runtime ended with exit code {code}"))
            }
            (_, Some(signal)) => Report::Signalled(signal),
            (code, None) => Report::Exited(code.unwrap_or_default()),
        }
    }

    /// Buries processes that have ended, and returns how the container did if it is among them.
    fn reap(&self) -> Result<Option<Report>, ShimError> {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => return Ok(Some(self.end(status))),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(None),
                Err(error) => return Err(error).doing("wait for the container"),
            }
        }
    }
}
