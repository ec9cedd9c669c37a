//! Runs a container for as long as it is wanted: starts it again when it ends, at growing intervals, and drains it before
//! it is stopped.

use crate::container::{Container, Ended};
use crate::engine::Engine;
use crate::logs::LogFile;
use crate::spec::ContainerSpec;
use crate::workspace::Workspace;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// How long a container must run to be started again at once when it ends.
const STEADY: Duration = Duration::from_secs(60);
/// The first and the longest time between an end and the next start.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// How often it is tried whether a container that was started can be connected to: at first, and later.
const EAGER: Duration = Duration::from_millis(10);
const PATIENT: Duration = Duration::from_millis(250);
/// For how long a container is tried eagerly.
const EAGERLY: Duration = Duration::from_secs(3);
/// How long a container may take until it is remarkable that it cannot be connected to.
const SHOULD_LISTEN: Duration = Duration::from_secs(5);

/// What a container is run with.
#[derive(Clone)]
pub struct Settings {
    /// The directories of this process.
    pub workspace: Arc<Workspace>,
    /// What runs it.
    pub engine: Engine,
    /// Whether namespaces alone run it if an OCI runtime cannot.
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
    task: JoinHandle<()>,
}

impl Supervised {
    /// Starts a container. `changed` is called whenever its standing has changed.
    pub fn start(settings: Settings, changed: impl Fn() + Send + Sync + 'static) -> Self {
        let (sender, standing) = watch::channel(Standing::Starting(None));
        let (stop, stopping) = watch::channel(false);
        let current = Current::default();
        let supervisor = Supervisor {
            settings,
            standing: sender,
            changed: Box::new(changed),
            stopping,
            current: current.clone(),
        };
        let task = tokio::spawn(supervisor.run());
        Self { standing, stop, current, task }
    }

    /// How the container is doing.
    pub fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Waits until the container can be connected to, or has ended.
    pub async fn settled(&self) -> Standing {
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
        // When nobody listens, the task has ended.
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
    changed: Box<dyn Fn() + Send + Sync>,
    stopping: watch::Receiver<bool>,
    current: Current,
}

impl Supervisor {
    async fn run(mut self) {
        let mut delay = FIRST_DELAY;
        loop {
            let began = Instant::now();
            let Some((ended, problem)) = self.run_once().await else { break };
            if self.falls_back(&ended) {
                let (container, engine) = (&self.settings.spec.name, &self.settings.engine);
                tracing::warn!(%container, %engine, problem, "the OCI runtime cannot be used; runs in namespaces alone");
                self.settings.engine = Engine::Chroot;
                continue;
            }
            if began.elapsed() >= STEADY {
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
        self.set(Standing::Stopped);
    }

    fn falls_back(&self, ended: &Ended) -> bool {
        let is_oci = self.settings.engine != Engine::Chroot;
        is_oci && self.settings.may_fall_back && matches!(ended, Ended::NotStarted(_))
    }

    /// Runs a container until it ends, and returns how, and why in a sentence; or until it is to be stopped.
    async fn run_once(&mut self) -> Option<(Ended, String)> {
        let Settings { workspace, engine, spec, log, grace, .. } = self.settings.clone();
        let mut container = match Container::start(&workspace, &engine, &spec, &log) {
            Ok(container) => container,
            Err(error) => return Some((Ended::Killed, format!("the container cannot be started: {error}"))),
        };
        // Why it ended before is more than that it starts, which it may do every minute.
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(container.control.clone());
        let control = container.control.clone();
        let mut stopping = self.stopping.clone();
        let ended = tokio::select! {
            ended = container.ended() => Some(ended),
            () = async { self.await_port(&control).await; std::future::pending().await } => None,
            _ = stopping.wait_for(|stop| *stop) => None,
        };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        match ended {
            Some(ended) => {
                let problem = sentence(&ended, &engine, log.last_lines());
                Some((ended, problem))
            }
            None => {
                container.stop(grace).await;
                None
            }
        }
    }

    /// Tries to connect until it succeeds.
    async fn await_port(&self, control: &crate::control::Control) {
        let began = Instant::now();
        loop {
            if control.connect().await.is_ok() {
                self.set(Standing::Running);
                return;
            }
            if began.elapsed() >= SHOULD_LISTEN {
                let port = self.settings.spec.port;
                self.set(Standing::Starting(Some(format!(
                    "the program runs, but does not accept connections on port {port}"
                ))));
            }
            sleep(if began.elapsed() < EAGERLY { EAGER } else { PATIENT }).await;
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

fn sentence(ended: &Ended, engine: &Engine, last_lines: Option<String>) -> String {
    let how = match ended {
        // OCI runtimes report signals as shells do.
        Ended::Exited(code @ 129..=159) if *engine != Engine::Chroot => {
            return sentence(&Ended::Signalled(code - 128), engine, last_lines);
        }
        Ended::Exited(code) => format!("the program ended with exit code {code}"),
        Ended::Signalled(9) => {
            "the program was killed (signal 9), which is how the limit of memory is enforced".to_owned()
        }
        Ended::Signalled(signal) => format!("the program was ended by signal {signal}"),
        Ended::NotStarted(problem) => format!("the container cannot be started with {engine}: {problem}"),
        Ended::Killed => "the processes of the container were killed".to_owned(),
    };
    match last_lines {
        Some(lines) => format!("{how}; it printed last: {lines}"),
        None => how,
    }
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
                "the container cannot be started with namespaces alone: cannot x: no",
            ),
        ] {
            assert_eq!(sentence(&ended, &chroot, lines.map(str::to_owned)), words);
        }
    }
}
