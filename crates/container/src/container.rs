//! One container: started, connected to, stopped.

use crate::bundle;
use crate::cgroup::{Hierarchies, OutOfMemory, reached};
use crate::control::{Control, Report};
use crate::engine::Engine;
use crate::logs::LogFile;
use crate::remarks::{Remark, Remarks};
use crate::shim;
use crate::spec::{ContainerSpec, Plan};
use crate::workspace::{Workspace, remove_cgroups};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::thread::CapabilitySet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The user and group of containers, which are Crossplane's for packages.
pub(crate) const USER_ID: u32 = 2000;
/// The users of containers whose processes are counted by user, each another one. Those below are given to users, services and
/// machines by convention.
const FIRST_COUNTED_USER: u32 = 0x7000_0000;
/// How much of what a container prints is read in a second.
const LOG_BYTES_PER_SECOND: usize = 1 << 20;
const LOG_CHUNK_BYTES: usize = 16 << 10;

/// Names a step of a container that is supervised, see `crash_injection`.
fn reached_step(step: &str) {
    crate::reached("supervised", step);
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Exited(i32),
    Signalled(i32),
    /// It never ran.
    NotStarted(String),
    /// Its first processes were killed.
    Killed,
}

/// A container that was started.
pub(crate) struct Container {
    pub(crate) control: Arc<Control>,
    /// Whether its processes have ended. What is left of it is removed after that.
    is_over: watch::Receiver<bool>,
    ended: watch::Receiver<Option<Ended>>,
}

impl Container {
    /// Starts a container. Whether it runs is known later.
    pub(crate) fn start(
        workspace: &Arc<Workspace>,
        engine: &Engine,
        spec: &ContainerSpec,
        log: &Arc<LogFile>,
        remarks: &Arc<Remarks>,
    ) -> io::Result<Self> {
        let plan = plan_limited(workspace, engine, spec)?;
        let (id, has_cgroups) = (plan.id.clone(), !plan.own_cgroups().is_empty());
        let started = Self::start_planned(plan, workspace, log, remarks);
        if started.is_err() && has_cgroups {
            remove_cgroups(&id);
        }
        started
    }

    fn start_planned(
        plan: Plan,
        workspace: &Arc<Workspace>,
        log: &Arc<LogFile>,
        remarks: &Arc<Remarks>,
    ) -> io::Result<Self> {
        write_plan(&plan)?;
        reached_step("its plan is written");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let (reader, writer) = io::pipe()?;
        let printed = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let control = Arc::new(Control::new(ours)?);
        log.begin();
        let writer = OwnedFd::from(writer);
        let process = spawn(&plan.folder, theirs, writer.try_clone()?, writer)?;
        reached_step("its first process is started");
        let (sender, ended) = watch::channel(None);
        let (over, is_over) = watch::channel(false);
        remarks.started(plan.own_cgroups());
        let running = Running {
            process,
            control: control.clone(),
            log: log.clone(),
            workspace: workspace.clone(),
            remarks: remarks.clone(),
            over,
            out_of_memory: OutOfMemory::of(plan.own_cgroups()),
        };
        tokio::spawn(async move { drop(sender.send(Some(running.until_end(printed, plan).await))) });
        Ok(Self { control, is_over, ended })
    }

    /// How the container ended, when it has and nothing of it is left.
    pub(crate) async fn ended(&mut self) -> Ended {
        match self.ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or(Ended::Killed),
            Err(_) => Ended::Killed,
        }
    }

    /// Asks the container to end, and ends it if it has not by then.
    pub(crate) async fn stop(&mut self, grace: Duration, remarks: &Remarks) -> Ended {
        self.control.terminate();
        reached_step("it is asked to end");
        // The time that it takes to remove what is left is not that of the program. Without a sender nothing runs any more.
        if tokio::time::timeout(grace, self.is_over.wait_for(|over| *over)).await.is_err() {
            remarks.add(Remark::Killed);
            self.control.kill();
        }
        self.ended().await
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.control.kill();
    }
}

/// Decides how a container runs here, where no cgroups limit it.
pub(crate) fn plan(workspace: &Workspace, engine: &Engine, spec: &ContainerSpec) -> io::Result<Plan> {
    let folder = workspace.new_folder("container")?;
    let number = workspace.next_number();
    let may_administer = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::SETUID));
    let is_root = rustix::process::geteuid().is_root() && may_administer;
    let oci_runtime = match engine {
        Engine::Oci(program) => Some(program.clone()),
        Engine::Chroot => None,
    };
    let counted = FIRST_COUNTED_USER + u32::try_from(number % (1 << 24)).unwrap_or_default();
    let id = workspace.container_id(number);
    Ok(Plan {
        spec: spec.clone(),
        id,
        user_namespace: !is_root,
        user: if is_root { counted } else { 0 },
        oci_runtime,
        folder,
        counted_by: Vec::new(),
        once: None,
    })
}

/// Decides how a container runs here that is supervised. Where this process can make cgroups, they limit the container, and
/// count what it reaches: the counts outlive the cgroup that an OCI runtime makes.
fn plan_limited(workspace: &Workspace, engine: &Engine, spec: &ContainerSpec) -> io::Result<Plan> {
    let mut plan = plan(workspace, engine, spec)?;
    reached_step("its directory is made");
    if plan.user_namespace {
        return Ok(plan);
    }
    let is_oci = plan.oci_runtime.is_some();
    let made = Hierarchies::find()
        .and_then(|found| found.limit(&plan.id, &spec.limits, is_oci).map_err(|error| error.to_string()));
    match made {
        Ok(cgroups) => {
            reached_step("its cgroups are made");
            plan.counted_by = cgroups;
            plan.user = USER_ID;
        }
        Err(problem) => {
            remove_cgroups(&plan.id);
            tracing::debug!(container = spec.name, problem, "no cgroups count what a container reaches");
        }
    }
    Ok(plan)
}

pub(crate) fn write_plan(plan: &Plan) -> io::Result<()> {
    std::fs::write(plan.folder.join(Plan::FILE), serde_json::to_vec(plan)?)?;
    if plan.oci_runtime.is_some() {
        std::fs::create_dir(plan.state_dir())?;
        std::fs::write(plan.folder.join("config.json"), serde_json::to_vec(&bundle::config(plan))?)?;
    }
    Ok(())
}

pub(crate) fn spawn(folder: &Path, control: OwnedFd, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Child> {
    #[cfg(debug_assertions)]
    crate::crash_injection::listen(folder)?;
    let mut command = shim::stage("outer", folder);
    // Signals for this process' group, such as from a terminal, are not for containers: they are drained first.
    command.stdin(Stdio::from(control)).process_group(0);
    command.stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    Command::from(command).spawn()
}

/// The processes of a container, and what belongs to them.
struct Running {
    process: Child,
    control: Arc<Control>,
    log: Arc<LogFile>,
    workspace: Arc<Workspace>,
    remarks: Arc<Remarks>,
    over: watch::Sender<bool>,
    out_of_memory: Option<OutOfMemory>,
}

impl Running {
    /// Waits until nothing of the container is left.
    async fn until_end(mut self, printed: pipe::Receiver, plan: Plan) -> Ended {
        let copying = copy_log(printed, &self.log, &self.remarks);
        let running = async {
            let last = self.control.run_noticing(|| self.remarks.add(Remark::Files)).await;
            if let Err(error) = self.process.wait().await {
                tracing::debug!(%error, "the first process of a container cannot be waited for");
            }
            self.over.send_replace(true);
            reached_step("its first process has ended");
            last
        };
        let (last, ()) = tokio::join!(running, copying);
        self.remarks.ended(reached(plan.own_cgroups(), self.out_of_memory.as_ref()));
        reached_step("the limits that it reached are read");
        let removed = tokio::task::spawn_blocking(move || {
            if !plan.own_cgroups().is_empty() {
                remove_cgroups(&plan.id);
                reached_step("its cgroups are removed");
            }
            let removed = std::fs::remove_dir_all(&plan.folder);
            reached_step("its directory is removed");
            removed
        });
        if let Ok(Err(error)) = removed.await {
            tracing::debug!(%error, "the directory of a container cannot be removed");
        }
        drop(self.workspace);
        match last {
            Some(Report::Exited(code)) => Ended::Exited(code),
            Some(Report::Signalled(signal)) => Ended::Signalled(signal),
            Some(Report::Failed(problem)) => Ended::NotStarted(problem),
            _ => Ended::Killed,
        }
    }
}

/// Copies what a container prints, as fast as it may: a container that prints without end must not keep this process busy.
async fn copy_log(mut printed: pipe::Receiver, log: &LogFile, remarks: &Remarks) {
    let mut chunk = vec![0; LOG_CHUNK_BYTES];
    let (mut began, mut bytes) = (Instant::now(), 0);
    loop {
        match printed.read(&mut chunk).await {
            Ok(0) => return,
            Ok(read) => {
                log.append(chunk.get(..read).unwrap_or_default());
                bytes += read;
            }
            Err(error) => {
                tracing::debug!(%error, "what a container prints cannot be read");
                return;
            }
        }
        let second = began + Duration::from_secs(1);
        if Instant::now() >= second {
            (began, bytes) = (Instant::now(), 0);
        } else if bytes >= LOG_BYTES_PER_SECOND {
            remarks.add(Remark::Output);
            sleep_until(second).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Limits;

    fn remarks(grace: Duration) -> Remarks {
        Remarks::new(Limits::default(), grace, || ())
    }

    /// However long it takes to remove what is left of it.
    #[tokio::test]
    async fn a_program_that_ended_in_its_time_was_not_killed() {
        let (ours, _theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
        .unwrap();
        let (over, is_over) = watch::channel(false);
        let (sender, ended) = watch::channel(None);
        let mut container = Container { control: Arc::new(Control::new(ours).unwrap()), is_over, ended };
        let grace = Duration::from_millis(20);
        let kept = remarks(grace);
        over.send_replace(true);
        let removal = async {
            tokio::time::sleep(grace * 5).await;
            sender.send_replace(Some(Ended::Exited(0)));
        };
        let (stopped, ()) = tokio::join!(container.stop(grace, &kept), removal);
        assert_eq!((stopped, kept.has(Remark::Killed)), (Ended::Exited(0), false));
        // One that has not ended by then is.
        let lost = remarks(grace);
        over.send_replace(false);
        container.stop(grace, &lost).await;
        assert!(lost.has(Remark::Killed));
    }
}
