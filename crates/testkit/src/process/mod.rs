//! A control plane as a process of the `transom` binary, clients for it over HTTPS, and terminals for other commands. Processes
//! and their directories end with the values that own them.
//!
//! It uses the binary as users do: nothing here knows what is inside of the process.

mod client;
mod idle;
mod terminal;

pub use client::{Access, Client, Gone, Lines, Reply};
pub use terminal::{Terminal, screen};

use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a test waits for a condition that should soon be true, on a busy machine, before it fails.
pub const WAIT_LIMIT: Duration = Duration::from_secs(120);

/// A temporary directory with the data and the logs of planes.
pub struct Home {
    root: TempDir,
    launched: AtomicUsize,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// An empty folder, which is removed when dropped.
    pub fn new() -> Self {
        Self { root: TempDir::new().expect("a temporary directory"), launched: AtomicUsize::new(0) }
    }

    /// The data directory of the plane.
    pub fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// The folder.
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

    /// A panic is a bug even if the request alone failed.
    pub fn assert_no_panic(&self) {
        let log = self.log();
        assert!(!log.contains("panicked"), "the server panicked:\n{log}");
    }
}

/// `transom up`, answering requests.
pub struct Plane {
    child: Child,
    /// How it is reached.
    pub access: Access,
}

/// A plane that ended instead of serving, with its stderr.
#[derive(Debug)]
pub struct Refused {
    /// How the process ended.
    pub status: ExitStatus,
    /// What it printed to stderr.
    pub stderr: String,
}

impl Plane {
    /// Starts a plane and waits until it serves.
    pub fn start(home: &Home) -> Self {
        Self::start_with(home, &[])
    }

    /// The same, with more arguments.
    pub fn start_with(home: &Home, args: &[&str]) -> Self {
        Self::launch(home, &mut up(home, args)).expect("the plane starts")
    }

    /// The same; a plane that ends instead is not a failure of the test.
    pub fn try_start(home: &Home, args: &[&str]) -> Result<Self, Refused> {
        Self::launch(home, &mut up(home, args))
    }

    /// Runs a command that becomes `transom up`, and waits until it serves.
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

    /// The id of the process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.rustix_pid(), signal).expect("the process can be signalled");
    }

    /// The id of the process, for signals.
    pub fn rustix_pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends SIGKILL and waits until the process has ended.
    pub fn kill(&mut self) {
        self.child.kill().expect("the process can be killed");
        self.child.wait().expect("the process can be waited for");
    }

    /// How the process ended, or `None` if it has not within the limit.
    pub async fn ended_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the process can be waited for") {
                return Some(status);
            }
            if started.elapsed() > limit {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Resident memory, in MiB.
    pub fn resident_mib(&self) -> u64 {
        self.memory_mib("VmRSS:")
    }

    /// The most memory that was ever resident, in MiB.
    pub fn peak_mib(&self) -> u64 {
        self.memory_mib("VmHWM:")
    }

    fn memory_mib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("proc status");
        let line = status.lines().find(|l| l.starts_with(field)).expect("the field of /proc/PID/status");
        let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number of kB");
        kib / 1024
    }

    /// A client of the plane.
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

/// `transom up` as a command to run: on a free port, with its data in `home`, and without controllers, unless the
/// arguments have `--listen`, `--data-dir` or `--with-controllers`, which is not a flag of the binary.
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

/// The binary, without the settings in the environment of the person who runs the tests.
pub fn transom(args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).env_remove("TRANSOM_DATA_DIR").env_remove("RUST_LOG").env_remove("RUST_BACKTRACE");
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    command
}

/// The binary that belongs to the running test: Cargo puts tests into the folder `deps` beside it.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test");
    let binary = test.parent().and_then(Path::parent).expect("the folder of binaries").join("transom");
    assert!(binary.exists(), "{} does not exist; build it with `cargo build -p transom`", binary.display());
    binary
}

/// Waits until a condition is true, looking every few milliseconds; fails the test after [`WAIT_LIMIT`].
pub async fn wait_until(description: &str, mut condition: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < WAIT_LIMIT, "after {WAIT_LIMIT:?} still not true: {description}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
