//! Runs a container once: its program reads its input, writes its output, and ends.
//!
//! Every run ends within its time, with all that it started: everything it writes is read as it comes
//! and bounded, and at the end the kernel kills its namespace. A run whose caller gives up ends as well.

use crate::cgroup::{Hierarchies, OutOfMemory, Reached, reached, reached_so_far};
use crate::container::{USER_ID, plan, spawn, write_plan};
use crate::control::{Control, Report, Request, send};
use crate::engine::Engine;
use crate::spec::{ContainerSpec, Once, Plan};
use crate::workspace::{Workspace, remove_cgroups};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::sync::{Notify, oneshot};

/// How much of the end of standard error is kept for messages, in bytes.
const TAIL_BYTES: usize = 2 << 10;
const CHUNK_BYTES: usize = 64 << 10;

/// What is done where cgroups cannot limit a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceLimits {
    /// It is not run.
    Required,
    /// It is run; its processes are limited, each by itself, where there are no cgroups.
    WherePossible,
    /// It is run without cgroups.
    PerProcess,
}

/// Names a step of a run, see `crash_injection`.
fn reached_step(step: &str) {
    crate::reached("run", step);
}

/// How a container is run once.
#[derive(Clone, Debug)]
pub struct OnceSettings {
    /// What runs it.
    pub engine: Engine,
    /// What is run. The port is not used.
    pub spec: ContainerSpec,
    /// What is done where its limits cannot be enforced.
    pub limits: OnceLimits,
    /// How long it may take.
    pub timeout: Duration,
    /// How much it may write, in bytes.
    pub stdout_bytes_max: usize,
    /// How much it may write to standard error, in bytes.
    pub stderr_bytes_max: usize,
}

/// Why a run has no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnceError {
    /// Its limits cannot be enforced here.
    #[error("its limits of memory, processors and processes cannot be enforced here: {0}")]
    Limits(String),
    /// It never ran.
    #[error("its container cannot be started with {engine}: {problem}")]
    NotStarted {
        /// What was to run it.
        engine: String,
        /// Why it did not.
        problem: String,
    },
    /// It took too long.
    #[error("it did not end within {} s{}", .within.as_secs_f64(), .remarks)]
    Timeout {
        /// How long it was given.
        within: Duration,
        /// The limits that it reached, and what it wrote.
        remarks: String,
    },
    /// It wrote too much.
    #[error("it wrote more than {max} bytes to standard {stream}{remarks}")]
    TooMuch {
        /// `output` or `error`.
        stream: &'static str,
        /// How many it may write.
        max: usize,
        /// The limits that it reached.
        remarks: String,
    },
    /// It ended with an error.
    #[error("it ended {how}{remarks}")]
    Failed {
        /// With which exit code, or by which signal.
        how: String,
        /// The limits that it reached, and what it wrote last.
        remarks: String,
    },
}

/// Runs a container until it ends, and returns what it wrote.
pub async fn run_once(
    workspace: &Arc<Workspace>,
    settings: &OnceSettings,
    input: Vec<u8>,
) -> Result<Vec<u8>, OnceError> {
    let engine = settings.engine.to_string();
    let failed = |problem: String| OnceError::NotStarted { engine: engine.clone(), problem };
    // Before anything is made: what waits for the end of all runs waits for this one.
    let counted = workspace.begin_run().ok_or_else(|| failed("this process is stopping".to_owned()))?;
    let plan = plan_once(workspace, settings)?;
    let (id, folder, has_cgroups) = (plan.id.clone(), plan.folder.clone(), !plan.own_cgroups().is_empty());
    let started = Running::start(plan, settings.clone(), workspace.clone());
    let running = match started {
        Ok(running) => running,
        Err(error) => {
            if has_cgroups {
                remove_cgroups(&id);
            }
            // The error of the start is the one to report.
            let _ = std::fs::remove_dir_all(folder);
            return Err(failed(error.to_string()));
        }
    };
    let _ended = EndWhenDropped(running.cancelled.clone());
    let (sender, receiver) = oneshot::channel();
    // A task of its own: what is left of the container is removed even if the caller gives up.
    tokio::spawn(async move {
        let outcome = running.until_end(input).await;
        drop(counted);
        // The caller may have given up.
        drop(sender.send(outcome));
    });
    receiver.await.unwrap_or_else(|_| Err(failed("the run was given up".to_owned())))
}

struct EndWhenDropped(Arc<Notify>);

impl Drop for EndWhenDropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Decides how the container runs here.
fn plan_once(workspace: &Workspace, settings: &OnceSettings) -> Result<Plan, OnceError> {
    let engine = settings.engine.to_string();
    let failed = |e: io::Error| OnceError::NotStarted { engine: engine.clone(), problem: e.to_string() };
    let may_limit = match settings.limits {
        OnceLimits::PerProcess => Err("they are not asked for".to_owned()),
        _ if !rustix::process::geteuid().is_root() => {
            Err("only root can create cgroups, and this process does not run as root".to_owned())
        }
        _ => Hierarchies::find(),
    };
    let hierarchies = match may_limit {
        Ok(found) => Some(found),
        Err(why) if settings.limits == OnceLimits::Required => return Err(OnceError::Limits(why)),
        Err(_) => None,
    };
    let mut plan = plan(workspace, &settings.engine, &settings.spec).map_err(failed)?;
    reached_step("its directory is made");
    let mut once = Once::default();
    if let Some(found) = hierarchies {
        let is_oci = plan.oci_runtime.is_some();
        once.cgroups = found.limit(&plan.id, &settings.spec.limits, is_oci).map_err(|e| {
            remove_cgroups(&plan.id);
            let _ = std::fs::remove_dir_all(&plan.folder);
            OnceError::Limits(e.to_string())
        })?;
        reached_step("its cgroups are made");
        // Its processes are counted by its cgroup.
        plan.user = if plan.user_namespace { 0 } else { USER_ID };
    }
    plan.once = Some(once);
    Ok(plan)
}

/// The processes of a container, and what belongs to them.
struct Running {
    plan: Plan,
    settings: OnceSettings,
    process: Child,
    control: Control,
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    out_of_memory: Option<OutOfMemory>,
    cancelled: Arc<Notify>,
    /// Its directory is removed after that of this container.
    workspace: Arc<Workspace>,
}

/// What was read of a stream: all of it, or its end.
#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    is_too_much: bool,
}

impl Running {
    fn start(plan: Plan, settings: OnceSettings, workspace: Arc<Workspace>) -> io::Result<Self> {
        write_plan(&plan)?;
        reached_step("its plan is written");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let (input, stdin) = io::pipe()?;
        let (stdout, output) = io::pipe()?;
        let (stderr, errors) = io::pipe()?;
        send(&ours, &Request::Input, Some(OwnedFd::from(input).as_fd()))?;
        let out_of_memory = OutOfMemory::of(plan.own_cgroups());
        let process = spawn(&plan.folder, theirs, output.into(), errors.into())?;
        reached_step("its first process is started");
        Ok(Self {
            plan,
            settings,
            process,
            control: Control::new(ours)?,
            stdin: pipe::Sender::from_owned_fd(stdin.into())?,
            stdout: pipe::Receiver::from_owned_fd(stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into())?,
            out_of_memory,
            cancelled: Arc::default(),
            workspace,
        })
    }

    /// Waits until nothing of the container is left.
    async fn until_end(self, input: Vec<u8>) -> Result<Vec<u8>, OnceError> {
        let Self {
            plan,
            settings,
            mut process,
            control,
            stdin,
            stdout,
            stderr,
            out_of_memory,
            cancelled,
            workspace,
        } = self;
        let (stdout_max, stderr_max) = (settings.stdout_bytes_max, settings.stderr_bytes_max);
        let over = Notify::new();
        let reading = async {
            tokio::join!(capture(stdout, stdout_max, &over), capture_end(stderr, stderr_max, &over))
        };
        let ending = async {
            let last = control.run().await;
            if let Err(error) = process.wait().await {
                tracing::debug!(%error, "the first process of a container cannot be waited for");
            }
            reached_step("its first process has ended");
            last
        };
        let limiting = async {
            let is_late = tokio::select! {
                () = tokio::time::sleep(settings.timeout) => true,
                () = over.notified() => false,
                () = cancelled.notified() => false,
            };
            // The cgroup below, which an OCI runtime makes, may be gone when the container has ended.
            let was_throttled = is_late && reached_so_far(plan.own_cgroups()).0.processors;
            control.kill();
            (is_late, was_throttled)
        };
        // Writing ends with the program at the latest: nothing else has the other end of its input.
        let work = async { tokio::join!(reading, ending, feed(stdin, &input)) };
        tokio::pin!(work);
        let (((stdout, stderr), last, ()), (is_late, was_throttled)) = tokio::select! {
            done = &mut work => (done, (false, false)),
            // What was read so far is the result; the rest ends soon.
            limited = limiting => (work.await, limited),
        };
        reached_step("its output is read");
        let mut reached = clear(plan, out_of_memory).await;
        reached.processors |= was_throttled;
        drop(workspace);
        outcome(&settings, last, is_late, stdout, &stderr, reached)
    }
}

/// Writes the input, until the program does not want more: it need not read it.
async fn feed(mut stdin: pipe::Sender, input: &[u8]) {
    if let Err(error) = stdin.write_all(input).await {
        tracing::debug!(%error, "a program did not read its input");
    }
    reached_step("its input is written");
}

/// Reads all of a stream.
async fn capture(mut stream: pipe::Receiver, max: usize, over: &Notify) -> Captured {
    let mut captured = Captured::default();
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(read @ 1..) = stream.read(&mut chunk).await {
        if captured.bytes.len() + read > max {
            captured.is_too_much = true;
            over.notify_one();
        } else {
            captured.bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
        }
    }
    captured
}

/// Reads all of a stream, and keeps its end.
async fn capture_end(mut stream: pipe::Receiver, max: usize, over: &Notify) -> Captured {
    let mut captured = Captured::default();
    let (mut chunk, mut total) = (vec![0; CHUNK_BYTES], 0);
    while let Ok(read @ 1..) = stream.read(&mut chunk).await {
        total += read;
        captured.bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let excess = captured.bytes.len().saturating_sub(TAIL_BYTES);
        captured.bytes.drain(..excess);
        if total > max {
            captured.is_too_much = true;
            over.notify_one();
        }
    }
    captured
}

/// Removes what is left of a container, and returns the limits that it reached.
async fn clear(plan: Plan, out_of_memory: Option<OutOfMemory>) -> Reached {
    let cleared = tokio::task::spawn_blocking(move || {
        let found = reached(plan.own_cgroups(), out_of_memory.as_ref());
        reached_step("the limits that it reached are read");
        if !plan.own_cgroups().is_empty() {
            remove_cgroups(&plan.id);
        }
        reached_step("its cgroups are removed");
        if let Err(error) = std::fs::remove_dir_all(&plan.folder) {
            tracing::debug!(%error, "the directory of a container cannot be removed");
        }
        reached_step("its directory is removed");
        found
    });
    cleared.await.unwrap_or_default()
}

fn outcome(
    settings: &OnceSettings,
    last: Option<Report>,
    is_late: bool,
    stdout: Captured,
    stderr: &Captured,
    reached: Reached,
) -> Result<Vec<u8>, OnceError> {
    // Most programs wait for their next share of a processor at some time: it is remarkable if they are late.
    let reached = Reached { processors: reached.processors && is_late, ..reached };
    let limits = limits(settings, reached);
    let remarks = format!("{limits}{}", printed(&stderr.bytes));
    let too_much = |stream, max| OnceError::TooMuch { stream, max, remarks: limits.clone() };
    if is_late {
        return Err(OnceError::Timeout { within: settings.timeout, remarks });
    }
    if stdout.is_too_much {
        return Err(too_much("output", settings.stdout_bytes_max));
    }
    if stderr.is_too_much {
        return Err(too_much("error", settings.stderr_bytes_max));
    }
    let is_oci = settings.engine != Engine::Chroot;
    let how = match last {
        Some(Report::Exited(0)) => return Ok(stdout.bytes),
        // OCI runtimes report signals as shells do.
        Some(Report::Exited(code @ 129..=159)) if is_oci => format!("by signal {}", code - 128),
        Some(Report::Exited(code)) => format!("with exit code {code}"),
        Some(Report::Signalled(signal)) => format!("by signal {signal}"),
        Some(Report::Failed(problem)) => {
            let problem = format!("{problem}{}", printed(&stderr.bytes));
            return Err(OnceError::NotStarted { engine: settings.engine.to_string(), problem });
        }
        _ => "because its processes were killed".to_owned(),
    };
    Err(OnceError::Failed { how, remarks })
}

fn limits(settings: &OnceSettings, reached: Reached) -> String {
    let limits = &settings.spec.limits;
    let mut all = String::new();
    if reached.memory {
        all.push_str(&format!("; it reached its limit of memory, {} MiB", limits.memory_bytes >> 20));
    }
    if reached.processes {
        all.push_str(&format!("; it reached its limit of {} processes", limits.processes));
    }
    if reached.processors {
        all.push_str(&format!("; it used all of its {} m of processor time", limits.cpu_millis));
    }
    all
}

/// What a program wrote to standard error last, in one line.
fn printed(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(5)..).unwrap_or_default().join(" | ");
    let last: String = last.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if last.is_empty() { last } else { format!("; it wrote last: {last}") }
}
