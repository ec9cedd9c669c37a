//! A control plane in a process of its own, and clients for it: what the tests of the binary stand on.
#![allow(dead_code, unused_imports, reason = "each test file uses a part of it")]

mod client;

pub use client::{Access, Client, Gone, Lines, Reply};

use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything that should be quick may take on a busy machine before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Where planes keep their data and their log; removed with the value.
pub struct Home {
    root: TempDir,
    launched: AtomicUsize,
}

impl Home {
    pub fn new() -> Self {
        Self { root: TempDir::new().expect("a temporary directory"), launched: AtomicUsize::new(0) }
    }

    pub fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Everything that planes of this home have logged.
    pub fn log(&self) -> String {
        let logs = 0..self.launched.load(Ordering::Relaxed);
        logs.map(|n| std::fs::read_to_string(self.log_path(n)).unwrap_or_default()).collect()
    }

    fn log_path(&self, n: usize) -> PathBuf {
        self.root.path().join(format!("log-{n}"))
    }

    /// A panic that was caught and answered is a bug all the same.
    pub fn assert_no_panic(&self) {
        let log = self.log();
        assert!(!log.contains("panicked"), "the server panicked:\n{log}");
    }
}

/// `transom up`, answering requests.
pub struct Plane {
    child: Child,
    pub access: Access,
}

/// A plane that ended instead of serving, with what it said on stderr.
#[derive(Debug)]
pub struct Refused {
    pub status: ExitStatus,
    pub stderr: String,
}

impl Plane {
    pub fn start(home: &Home) -> Self {
        Self::start_with(home, &[])
    }

    pub fn start_with(home: &Home, args: &[&str]) -> Self {
        Self::launch(home, &mut up(home, args)).expect("the plane starts")
    }

    pub fn try_start(home: &Home, args: &[&str]) -> Result<Self, Refused> {
        Self::launch(home, &mut up(home, args))
    }

    /// Runs a command that ends up being `transom up`, and waits until it serves.
    pub fn launch(home: &Home, command: &mut Command) -> Result<Self, Refused> {
        let log = home.log_path(home.launched.fetch_add(1, Ordering::Relaxed));
        let stderr = File::create(&log).expect("a log file");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().expect("the binary runs");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("stdout is readable");
        match line.trim_end().strip_prefix("export KUBECONFIG=") {
            Some(path) => Ok(Self { child, access: Access::from_kubeconfig(Path::new(path)) }),
            None => {
                let status = child.wait().expect("the process can be waited for");
                Err(Refused { status, stderr: std::fs::read_to_string(log).unwrap_or_default() })
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.rustix_pid(), signal).expect("the process can be signalled");
    }

    pub fn rustix_pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// SIGKILL, and the end of it.
    pub fn kill(&mut self) {
        self.child.kill().expect("the process can be killed");
        self.child.wait().expect("the process can be waited for");
    }

    /// How the process ended, or `None` if it has not after `patience`.
    pub async fn ended_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the process can be waited for") {
                return Some(status);
            }
            if started.elapsed() > patience {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Resident memory, in MiB.
    pub fn resident_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("proc status");
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("VmRSS");
        let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number of kB");
        kib / 1024
    }

    pub async fn client(&self) -> Client {
        Client::connect(&self.access).await.expect("the plane accepts connections")
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `transom up` with the data in `home` unless `args` say otherwise, on a free port, as a command to run.
/// `transom up` as the tests of the API server want it: alone, unless `--with-controllers` is among the arguments.
pub fn up(home: &Home, args: &[&str]) -> Command {
    let mut command = transom(&["up"]);
    if !args.contains(&"--with-controllers") {
        command.arg("--api-server-only");
    }
    if !args.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    if !args.contains(&"--data-dir") {
        command.arg("--data-dir").arg(home.data());
    }
    command.args(args.iter().filter(|a| **a != "--with-controllers"));
    command
}

/// The binary, without what the environment of whoever runs the tests would tell it.
pub fn transom(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_transom"));
    command.args(args).env_remove("TRANSOM_DATA_DIR").env_remove("RUST_LOG").env_remove("RUST_BACKTRACE");
    command
}
