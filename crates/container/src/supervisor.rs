//! Runs a container for as long as it is wanted: starts it again when it ends, at growing intervals, and drains it before
//! it is stopped.

use crate::container::{Container, Ended};
use crate::engine::Engine;
use crate::logs::LogFile;
use crate::remarks::{Remark, Remarks, size};
use crate::spec::{ContainerSpec, Limits};
use crate::workspace::Workspace;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// How long a container must run to be started again at once when it ends.
const RESET_DELAY_AFTER: Duration = Duration::from_secs(60);
/// The first and the longest time between an end and the next start.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// The intervals at which a container that was started is connected to: at first, and later.
const FIRST_CONNECT_INTERVAL: Duration = Duration::from_millis(10);
const LATER_CONNECT_INTERVAL: Duration = Duration::from_millis(250);
/// How long after the start the shorter interval applies.
const FIRST_CONNECT_PERIOD: Duration = Duration::from_secs(3);
/// How long a container may take to accept connections before its condition reports that it does not.
const REPORT_NO_CONNECTION_AFTER: Duration = Duration::from_secs(5);
/// How often the cgroups of a container are read.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// How long a program without a port must run to count as running.
const RUNS_AFTER: Duration = Duration::from_secs(1);

/// What a container is run with.
#[derive(Clone)]
pub struct Settings {
    /// The directories of this process.
    pub workspace: Arc<Workspace>,
    /// What runs it.
    pub engine: Engine,
    /// Whether it runs in namespaces without an OCI runtime if the OCI runtime does not work.
    pub may_fall_back: bool,
    /// What is run.
    pub spec: ContainerSpec,
    /// Where its output goes.
    pub log: Arc<LogFile>,
    /// How long it may take to end when it is asked to.
    pub grace: Duration,
}

/// How a supervised container is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was started and cannot be connected to yet. With what is remarkable about that.
    Starting(Option<String>),
    /// It can be connected to.
    Running,
    /// It ended, and is started again later. In a sentence, why.
    Ended(String),
    /// It is stopped for good.
    Stopped,
}

type Current = Arc<Mutex<Option<Arc<crate::control::Control>>>>;

/// A container that is started again when it ends. It ends when this is dropped.
pub struct Supervised {
    standing: watch::Receiver<Standing>,
    stop: watch::Sender<bool>,
    current: Current,
    remarks: Arc<Remarks>,
    task: JoinHandle<()>,
}

impl Supervised {
    /// Starts a container. `changed` is called whenever its standing has changed, or there is another remark about it.
    pub fn start(settings: Settings, changed: impl Fn() + Send + Sync + 'static) -> Self {
        let (sender, standing) = watch::channel(Standing::Starting(None));
        let (stop, stopping) = watch::channel(false);
        let current = Current::default();
        let changed: Arc<dyn Fn() + Send + Sync> = Arc::new(changed);
        let remarked = changed.clone();
        let remarks = Arc::new(Remarks::new(settings.spec.limits, settings.grace, move || remarked()));
        let supervisor = Supervisor {
            settings,
            standing: sender,
            changed,
            stopping,
            current: current.clone(),
            remarks: remarks.clone(),
        };
        let task = tokio::spawn(supervisor.run());
        Self { standing, stop, current, remarks, task }
    }

    /// How the container is doing.
    pub fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Which limits the container reached since this was made, and whether it had to be killed, as conditions have them.
    /// Only what this process can see: without cgroups, what its output and its end say.
    pub fn remarks(&self) -> Option<String> {
        self.remarks.words()
    }

    /// Whether the container did not end in its time of grace, and was killed.
    pub fn was_killed(&self) -> bool {
        self.remarks.has(Remark::Killed)
    }

    /// A call of the container's program took too long: it is remarkable if its limit of processors was the reason.
    pub fn call_given_up(&self) {
        self.remarks.call_given_up();
    }

    /// Waits until the container can be connected to, or has ended.
    pub async fn until_started_or_ended(&self) -> Standing {
        let mut standing = self.standing.clone();
        let settled = standing.wait_for(|standing| !matches!(standing, Standing::Starting(_))).await;
        settled.map_or(Standing::Stopped, |standing| standing.clone())
    }

    /// A connection to the container's port.
    pub async fn connect(&self) -> io::Result<TcpStream> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let refused = |why: String| io::Error::new(io::ErrorKind::ConnectionRefused, why);
        match current {
            Some(control) => control.connect().await,
            None => Err(refused(match self.standing() {
                Standing::Ended(problem) => problem,
                _ => "the container is not running".to_owned(),
            })),
        }
    }

    /// Stops the container: asks it to end, and ends it after its time of grace.
    pub async fn stop(&self) {
        // Without a receiver, the task has ended.
        let _ = self.stop.send(true);
        let _ = self.standing.clone().wait_for(|standing| *standing == Standing::Stopped).await;
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // The container ends with the task that holds it.
        self.task.abort();
    }
}

struct Supervisor {
    settings: Settings,
    standing: watch::Sender<Standing>,
    changed: Arc<dyn Fn() + Send + Sync>,
    stopping: watch::Receiver<bool>,
    current: Current,
    remarks: Arc<Remarks>,
}

impl Supervisor {
    async fn run(mut self) {
        let mut delay = FIRST_DELAY;
        loop {
            let began = Instant::now();
            let Some((ended, problem)) = self.run_once().await else { break };
            if self.falls_back(&ended) {
                let (container, engine) = (&self.settings.spec.name, &self.settings.engine);
                tracing::warn!(%container, %engine, problem, "the OCI runtime cannot be used; falling back to namespaces without one");
                self.settings.engine = Engine::Chroot;
                continue;
            }
            if began.elapsed() >= RESET_DELAY_AFTER {
                delay = FIRST_DELAY;
            }
            tracing::info!(
                container = self.settings.spec.name,
                problem,
                "a container ended; it is started again"
            );
            self.set(Standing::Ended(problem));
            let mut stopping = self.stopping.clone();
            tokio::select! {
                () = sleep(delay) => {}
                _ = stopping.wait_for(|stop| *stop) => break,
            }
            delay = (delay * 2).min(LONGEST_DELAY);
        }
        crate::reached("supervised", "it is stopped");
        self.set(Standing::Stopped);
    }

    fn falls_back(&self, ended: &Ended) -> bool {
        let is_oci = self.settings.engine != Engine::Chroot;
        is_oci && self.settings.may_fall_back && matches!(ended, Ended::NotStarted(_))
    }

    /// Runs a container until it ends, and returns how, and why in a sentence; or until it is to be stopped.
    async fn run_once(&mut self) -> Option<(Ended, String)> {
        let Settings { workspace, engine, spec, log, grace, .. } = self.settings.clone();
        let mut container = match Container::start(&workspace, &engine, &spec, &log, &self.remarks) {
            Ok(container) => container,
            Err(error) => return Some((Ended::Killed, format!("the container cannot be started: {error}"))),
        };
        // Why it ended before is more than that it starts, which it may do every minute.
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(container.control.clone());
        let control = container.control.clone();
        let mut stopping = self.stopping.clone();
        let ended = tokio::select! {
            ended = container.ended() => Some(ended),
            () = async { tokio::join!(self.await_port(&control), self.look()); } => None,
            _ = stopping.wait_for(|stop| *stop) => None,
        };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        match ended {
            Some(ended) => {
                let limits = (!self.remarks.counts()).then_some(&spec.limits);
                let problem = sentence(&ended, &engine, limits, log.last_lines());
                Some((ended, problem))
            }
            None => {
                container.stop(grace, &self.remarks).await;
                None
            }
        }
    }

    /// Looks at the container's cgroups again and again.
    async fn look(&self) {
        loop {
            sleep(LOOK_INTERVAL).await;
            self.remarks.look();
        }
    }

    /// Tries to connect until it succeeds.
    async fn await_port(&self, control: &crate::control::Control) {
        let Some(port) = self.settings.spec.port else {
            sleep(RUNS_AFTER).await;
            return self.set(Standing::Running);
        };
        let began = Instant::now();
        loop {
            if control.connect().await.is_ok() {
                crate::reached("supervised", "it accepts connections");
                self.set(Standing::Running);
                return;
            }
            if began.elapsed() >= REPORT_NO_CONNECTION_AFTER {
                self.set(Standing::Starting(Some(format!(
                    "the program runs, but does not accept connections on port {port}"
                ))));
            }
            let is_new = began.elapsed() < FIRST_CONNECT_PERIOD;
            sleep(if is_new { FIRST_CONNECT_INTERVAL } else { LATER_CONNECT_INTERVAL }).await;
        }
    }

    fn set(&self, standing: Standing) {
        let is_new = self.standing.send_if_modified(|current| {
            let is_new = *current != standing;
            *current = standing;
            is_new
        });
        if is_new {
            (self.changed)();
        }
    }
}

/// How a container ended. With its limits where no cgroups count what it reaches.
fn sentence(ended: &Ended, engine: &Engine, limits: Option<&Limits>, last_lines: Option<String>) -> String {
    let how = match ended {
        // OCI runtimes report signals as shells do.
        Ended::Exited(code @ 129..=159) if *engine != Engine::Chroot => {
            return sentence(&Ended::Signalled(code - 128), engine, limits, last_lines);
        }
        Ended::Exited(code) => format!("the program ended with exit code {code}"),
        Ended::Signalled(9) => "the program was killed (signal 9)".to_owned(),
        Ended::Signalled(signal) => format!("the program was ended by signal {signal}"),
        Ended::NotStarted(problem) => format!("the container cannot be started with {engine}: {problem}"),
        Ended::Killed => "the processes of the container were killed".to_owned(),
    };
    let hint = limits.zip(last_lines.as_deref()).and_then(|(limits, lines)| hint(limits, lines));
    let how = hint.map_or(how.clone(), |hint| format!("{how}; {hint}"));
    match last_lines {
        Some(lines) => format!("{how}; it printed last: {lines}"),
        None => how,
    }
}

/// The limit that a program seems to have reached, by what it printed: where there are no cgroups the kernel refuses it what is
/// beyond its limit, and counts nothing.
fn hint(limits: &Limits, lines: &str) -> Option<String> {
    let lines = lines.to_lowercase();
    let prints = |texts: &[&str]| texts.iter().any(|text| lines.contains(text));
    if prints(&[
        "out of memory",
        "out of space",
        "cannot allocate memory",
        "memoryerror",
        "memory allocation of",
    ]) {
        return Some(format!("its limit of memory is {} for each process", size(limits.memory_bytes)));
    }
    if prints(&[
        "resource temporarily unavailable",
        "cannot fork",
        "failed to create new os thread",
        "can't start new thread",
    ]) {
        return Some(format!("its limit of processes and threads is {}", limits.processes));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_explained() {
        let chroot = Engine::Chroot;
        for (ended, lines, words) in [
            (Ended::Exited(3), None, "the program ended with exit code 3"),
            (Ended::Exited(1), Some("boom"), "the program ended with exit code 1; it printed last: boom"),
            (Ended::Signalled(11), None, "the program was ended by signal 11"),
            (
                Ended::NotStarted("cannot x: no".into()),
                None,
                "the container cannot be started with namespaces without an OCI runtime: cannot x: no",
            ),
        ] {
            assert_eq!(sentence(&ended, &chroot, None, lines.map(str::to_owned)), words);
        }
    }

    #[test]
    fn a_limit_is_named_where_nothing_counts_it() {
        let limits = Limits::default();
        for (printed, words) in [
            (
                "fatal error: runtime: out of memory",
                Some("; its limit of memory is 512 MiB for each process; "),
            ),
            ("fork: Resource temporarily unavailable", Some("; its limit of processes and threads is 512; ")),
            ("boom", None),
        ] {
            let text = sentence(&Ended::Exited(2), &Engine::Chroot, Some(&limits), Some(printed.to_owned()));
            assert_eq!(text.contains("its limit of"), words.is_some(), "{text}");
            assert!(words.is_none_or(|words| text.contains(words)), "{text}");
            let counted = sentence(&Ended::Exited(2), &Engine::Chroot, None, Some(printed.to_owned()));
            assert!(!counted.contains("its limit of"), "{counted}");
        }
    }
}
