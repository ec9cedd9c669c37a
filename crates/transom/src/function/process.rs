//! The program of a project: built and started by the commands of its language, stopped when it is no longer needed.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use transom_authoring::language::Language;
use transom_console::Failure;

/// How long a program may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How often it is looked whether it listens.
const START_INTERVAL: Duration = Duration::from_millis(20);
/// How long a program may take to end after it was asked to.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The folder of a project.
#[derive(Clone, Debug)]
pub(super) struct Project {
    pub(super) folder: PathBuf,
    language: Language,
}

impl Project {
    pub(super) fn open(folder: &Path) -> Result<Self, Failure> {
        let language = Language::of_project(|file| folder.join(file).is_file());
        let language = language.ok_or_else(|| {
            let markers = Language::ALL.map(Language::marker).join(", ");
            Failure::new(format!("{} is not the project of a function", folder.display()))
                .remedy(format!("it must have one of {markers}; `transom function init` makes one"))
        })?;
        Ok(Self { folder: folder.to_owned(), language })
    }

    /// Builds the project, if its language needs that.
    pub(super) async fn build(&self) -> Result<(), Failure> {
        let Some(words) = self.language.build_command() else { return Ok(()) };
        let mut command = self.command(&words);
        // stdout is for results.
        let status = command.stdout(Stdio::from(std::io::stderr())).status().await;
        let status = status.map_err(|e| cannot_run(&words, &e))?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure::new(format!("`{}` failed: {status}", words.join(" ")))),
        }
    }

    /// Serves the built project, and returns once it listens.
    pub(super) async fn serve(&self, address: &str) -> Result<Served, Failure> {
        let has_file = |file: &str| self.folder.join(file).is_file();
        let words = self.language.serve_command(address, has_file);
        let mut command = self.command(&words);
        command.stdin(Stdio::null()).stdout(Stdio::from(std::io::stderr())).kill_on_drop(true);
        // Some SDKs serve metrics at a fixed port, which programs that are served beside each other cannot share.
        command.env("METRICS_ADDRESS", "");
        let child = command.spawn().map_err(|e| cannot_run(&words, &e))?;
        let mut served = Served { child, address: address.to_owned() };
        served.listens(&words).await?;
        Ok(served)
    }

    fn command(&self, words: &[String]) -> Command {
        let (program, arguments) = words.split_first().map_or(("", &[][..]), |(p, a)| (p.as_str(), a));
        // A path is one in the project.
        let program = match program.contains('/') {
            true => std::path::absolute(self.folder.join(program)).unwrap_or_else(|_| program.into()),
            false => program.into(),
        };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder);
        command
    }
}

fn cannot_run(words: &[String], error: &std::io::Error) -> Failure {
    let program = words.first().map_or("", String::as_str);
    Failure::new(format!("cannot run `{}`: {error}", words.join(" ")))
        .remedy(format!("install {program}, or build the project first"))
}

/// A program that runs.
pub(super) struct Served {
    child: Child,
    pub(super) address: String,
}

impl Served {
    async fn listens(&mut self, words: &[String]) -> Result<(), Failure> {
        let began = tokio::time::Instant::now();
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Failure::new(format!(
                    "`{}` ended before it listened: {status}",
                    words.join(" ")
                )));
            }
            if tokio::net::TcpStream::connect(&self.address).await.is_ok() {
                return Ok(());
            }
            if began.elapsed() > START_TIMEOUT {
                return Err(Failure::new(format!(
                    "`{}` does not listen on {}",
                    words.join(" "),
                    self.address
                ))
                .remedy("the program must serve at the address of its flag --address"));
            }
            tokio::time::sleep(START_INTERVAL).await;
        }
    }

    /// Asks the program to end, so that it can finish calls, and waits for that.
    pub(super) async fn stop(mut self) {
        let pid =
            self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // One that ended just now need not be asked.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        if tokio::time::timeout(STOP_TIMEOUT, self.child.wait()).await.is_err() {
            // It is killed when it is dropped as well.
            drop(self.child.kill().await);
        }
    }
}

/// An address on this machine that nothing listens on.
pub(super) fn free_address() -> Result<String, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener
        .map(|address| address.to_string())
        .map_err(|e| Failure::new(format!("cannot find a free port: {e}")))
}
