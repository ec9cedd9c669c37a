//! One container: started, connected to, stopped.

use crate::bundle;
use crate::control::{Control, Report};
use crate::engine::Engine;
use crate::logs::LogFile;
use crate::shim;
use crate::spec::{ContainerSpec, Plan};
use crate::workspace::{Workspace, may_use_cgroups, remove_cgroups};
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
const USER: u32 = 2000;
/// The users of containers whose processes are counted by user, each another one. Those below are given to users, services and
/// machines by convention.
const FIRST_COUNTED_USER: u32 = 0x7000_0000;
/// How much of what a container prints is read in a second.
const LOG_BYTES_PER_SECOND: usize = 1 << 20;
const LOG_CHUNK_BYTES: usize = 16 << 10;

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
    ended: watch::Receiver<Option<Ended>>,
}

impl Container {
    /// Starts a container. Whether it runs is known later.
    pub(crate) fn start(
        workspace: &Arc<Workspace>,
        engine: &Engine,
        spec: &ContainerSpec,
        log: &Arc<LogFile>,
    ) -> io::Result<Self> {
        let plan = plan(workspace, engine, spec)?;
        write_plan(&plan)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let (reader, writer) = io::pipe()?;
        let printed = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let control = Arc::new(Control::new(ours)?);
        log.begin();
        let process = spawn(&plan.folder, theirs, OwnedFd::from(writer))?;
        let (sender, ended) = watch::channel(None);
        let running =
            Running { process, control: control.clone(), log: log.clone(), workspace: workspace.clone() };
        tokio::spawn(async move { drop(sender.send(Some(running.until_end(printed, plan).await))) });
        Ok(Self { control, ended })
    }

    /// How the container ended, when it has and nothing of it is left.
    pub(crate) async fn ended(&mut self) -> Ended {
        match self.ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or(Ended::Killed),
            Err(_) => Ended::Killed,
        }
    }

    /// Asks the container to end, and ends it if it has not by then.
    pub(crate) async fn stop(&mut self, grace: Duration) -> Ended {
        self.control.terminate();
        if let Ok(ended) = tokio::time::timeout(grace, self.ended()).await {
            return ended;
        }
        self.control.kill();
        self.ended().await
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.control.kill();
    }
}

/// Decides how a container runs here.
fn plan(workspace: &Workspace, engine: &Engine, spec: &ContainerSpec) -> io::Result<Plan> {
    let folder = workspace.new_folder("container")?;
    let number = workspace.next_number();
    let may_administer = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::SETUID));
    let is_root = rustix::process::geteuid().is_root() && may_administer;
    let oci_runtime = match engine {
        Engine::Oci(program) => Some(program.clone()),
        Engine::Chroot => None,
    };
    let cgroups = is_root && oci_runtime.is_some() && may_use_cgroups();
    let user = match (is_root, cgroups) {
        (false, _) => 0,
        (true, true) => USER,
        (true, false) => FIRST_COUNTED_USER + u32::try_from(number % (1 << 24)).unwrap_or_default(),
    };
    let id = format!("transom-{}-{number}", workspace.session_name());
    Ok(Plan { spec: spec.clone(), id, user_namespace: !is_root, user, cgroups, oci_runtime, folder })
}

fn write_plan(plan: &Plan) -> io::Result<()> {
    std::fs::write(plan.folder.join(Plan::FILE), serde_json::to_vec(plan)?)?;
    if plan.oci_runtime.is_some() {
        std::fs::create_dir(plan.state_dir())?;
        std::fs::write(plan.folder.join("config.json"), serde_json::to_vec(&bundle::config(plan))?)?;
    }
    Ok(())
}

fn spawn(folder: &Path, control: OwnedFd, log: OwnedFd) -> io::Result<Child> {
    let mut command = shim::stage("outer", folder);
    // Signals for this process' group, such as from a terminal, are not for containers: they are drained first.
    command.stdin(Stdio::from(control)).process_group(0);
    command.stdout(Stdio::from(log.try_clone()?)).stderr(Stdio::from(log));
    Command::from(command).spawn()
}

/// The processes of a container, and what belongs to them.
struct Running {
    process: Child,
    control: Arc<Control>,
    log: Arc<LogFile>,
    workspace: Arc<Workspace>,
}

impl Running {
    /// Waits until nothing of the container is left.
    async fn until_end(mut self, printed: pipe::Receiver, plan: Plan) -> Ended {
        let copying = copy_log(printed, &self.log);
        let running = async {
            let last = self.control.run().await;
            if let Err(error) = self.process.wait().await {
                tracing::debug!(%error, "the first process of a container cannot be waited for");
            }
            last
        };
        let (last, ()) = tokio::join!(running, copying);
        let removed = tokio::task::spawn_blocking(move || {
            if plan.cgroups {
                remove_cgroups(&plan.id);
            }
            std::fs::remove_dir_all(&plan.folder)
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
async fn copy_log(mut printed: pipe::Receiver, log: &LogFile) {
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
            sleep_until(second).await;
        }
    }
}
