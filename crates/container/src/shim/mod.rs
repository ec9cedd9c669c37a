//! What runs in the container's own processes before its program does. Each is this binary again, with one thread: that is
//! what the kernel demands for most of what is done here.
//!
//! | stage | does |
//! |---|---|
//! | `outer` | makes the namespaces, starts the next stage in them, and waits for it |
//! | `init` | process 1 of the container's process namespace: starts the container, makes connections, reports its end |
//! | `enter` | without an OCI runtime: enters the root file system, gives up privileges, becomes the program |
//!
//! Standard input of the first two is the control socket; standard output and standard error of all are the log.

mod enter;
mod init;
mod loopback;
mod outer;
mod temporary_files;

use crate::control::{Report, send};
use crate::spec::Plan;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The first argument of this binary's processes in containers.
pub const COMMAND: &str = "container-shim";
/// The exit code of a stage that could not do its work.
const NOT_STARTED: u8 = 125;
/// The most characters of a message.
const MESSAGE_CHARACTERS_MAX: usize = 1000;

/// Runs a stage if the arguments of the process ask for one. To be called first of all, before any thread is started.
pub fn run(arguments: &[OsString]) -> Option<ExitCode> {
    if arguments.get(1)?.to_str()? != COMMAND {
        return None;
    }
    let (stage, plan) = (arguments.get(2)?.to_str()?, arguments.get(3)?);
    #[cfg(debug_assertions)]
    crate::crash_injection::attach(stage, Path::new(plan));
    let done = read_plan(Path::new(plan)).and_then(|plan| match stage {
        "outer" => outer::run(&plan),
        "init" => init::run(&plan),
        "enter" => enter::run(&plan),
        other => Err(ShimError::new(format!("there is no stage {other:?}"), io::ErrorKind::InvalidInput)),
    });
    Some(done.unwrap_or_else(|error| {
        report(stage, &error);
        ExitCode::from(NOT_STARTED)
    }))
}

/// What a stage could not do.
#[derive(Debug, thiserror::Error)]
#[error("{action}")]
struct ShimError {
    action: String,
    source: io::Error,
}

impl ShimError {
    fn new(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self { action: action.into(), source: source.into() }
    }
}

/// Names what failed.
trait Doing<T> {
    fn doing(self, action: &str) -> Result<T, ShimError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, action: &str) -> Result<T, ShimError> {
        self.map_err(|error| ShimError::new(format!("cannot {action}"), error))
    }
}

/// The last stage has no control socket: what it cannot do is in the log, and in its exit code.
fn report(stage: &str, error: &ShimError) {
    let message = format!("{error}: {}", error.source);
    let message: String = message.chars().take(MESSAGE_CHARACTERS_MAX).collect();
    if stage == "enter" || send(rustix::stdio::stdin(), &Report::Failed(message.clone()), None).is_err() {
        use std::io::Write;
        let _ = writeln!(io::stderr(), "{message}");
    }
}

fn read_plan(folder: &Path) -> Result<Plan, ShimError> {
    let read = std::fs::read(folder.join(Plan::FILE)).doing("read the plan of the container")?;
    serde_json::from_slice(&read).doing("read the plan of the container")
}

/// This binary as another stage.
pub(crate) fn stage(name: &str, folder: &Path) -> Command {
    // Also works if the file was replaced or removed since this process started.
    let mut command = Command::new("/proc/self/exe");
    command.args([OsString::from(COMMAND), name.into(), PathBuf::from(folder).into()]).env_clear();
    #[cfg(debug_assertions)]
    crate::crash_injection::pass_on(&mut command);
    command
}
