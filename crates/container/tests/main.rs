//! Containers in namespaces without an OCI runtime, which need nothing but Linux: the limits that their programs reach are
//! remarked, and so is an end by force. This program is a stage of its own containers, so it has a `main` of its own.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;
use transom_container::{
    ContainerSpec, Engine, Limits, LogFile, Network, Settings, Standing, Supervised, Workspace,
};

/// How long a limit may take to be reached, on a busy machine.
const WITHIN: Duration = Duration::from_secs(120);
/// The time of grace of programs that do not use it, and of one that does, on a busy machine.
const SHORT_GRACE_PERIOD: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(30);
/// A text of 16 KiB.
const TEXT: &str = "text=0123456789abcdef; for doubled in 1 2 3 4 5 6 7 8 9 10; do text=$text$text; done";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = transom_container::shim::run(&arguments) {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        what_a_program_reaches_is_remarked().await;
        a_program_that_ignores_sigterm_is_killed().await;
        a_program_that_behaves_has_no_remarks().await;
    });
    ExitCode::SUCCESS
}

/// The root file system of a shell, with the libraries that it is linked with.
fn shell(root: &Path) {
    let mut files = BTreeSet::from(["/bin/sh".to_owned(), "/bin/sleep".to_owned()]);
    for program in files.clone() {
        let linked = Command::new("ldd").arg(program).output().expect("ldd runs");
        let linked = String::from_utf8_lossy(&linked.stdout).into_owned();
        files.extend(linked.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned));
    }
    for file in files {
        let target = root.join(file.trim_start_matches('/'));
        std::fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
        let copied = std::fs::copy(&file, &target);
        assert!(copied.is_ok(), "{file}: {copied:?}");
    }
    for folder in ["proc", "tmp", "dev"] {
        std::fs::create_dir(root.join(folder)).expect("a folder");
    }
}

/// A machine with a root file system, and what is changed there.
struct Machine {
    dir: tempfile::TempDir,
    root: PathBuf,
    workspace: Arc<Workspace>,
    changed: Arc<Notify>,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        // The user of the container looks its files up.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("its mode");
        let root = dir.path().join("root");
        std::fs::create_dir(&root).expect("a folder");
        shell(&root);
        let workspace = Arc::new(Workspace::open(&dir.path().join("containers")).expect("a workspace"));
        Self { dir, root, workspace, changed: Arc::default() }
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.log"))
    }

    /// Waits until a program has printed a line, which it does when its traps are set.
    async fn until_printed(&self, name: &str, line: &str) {
        let printed = async {
            loop {
                let log = std::fs::read_to_string(self.log(name)).unwrap_or_default();
                if log.lines().any(|found| found.contains(line)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        assert!(timeout(WITHIN, printed).await.is_ok(), "{name} does not print {line}");
    }

    fn start(&self, name: &str, script: &str, grace: Duration) -> Supervised {
        let spec = ContainerSpec {
            name: name.to_owned(),
            root: self.root.clone(),
            args: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            env: vec!["PATH=/bin".to_owned()],
            cwd: "/".to_owned(),
            port: None,
            network: Network::None,
            mounts: Vec::new(),
            limits: Limits { memory_bytes: 64 << 20, cpu_millis: 1000, processes: 20, tmp_bytes: 4 << 20 },
        };
        let settings = Settings {
            workspace: self.workspace.clone(),
            engine: Engine::Chroot,
            may_fall_back: false,
            spec,
            log: Arc::new(LogFile::new(self.log(name))),
            grace,
        };
        let changed = self.changed.clone();
        Supervised::start(settings, move || changed.notify_one())
    }

    /// Waits until a container has an answer.
    async fn until<T>(
        &self,
        what: &str,
        container: &Supervised,
        find: impl Fn(&Supervised) -> Option<T>,
    ) -> T {
        let found = async {
            loop {
                if let Some(found) = find(container) {
                    return found;
                }
                self.changed.notified().await;
            }
        };
        let found = timeout(WITHIN, found).await;
        assert!(found.is_ok(), "{what}: {:?}, {:?}", container.standing(), container.remarks());
        found.expect("it was found")
    }
}

/// The words of conditions about a container.
fn words(container: &Supervised) -> String {
    let end = match container.standing() {
        Standing::Ended(problem) => problem,
        _ => String::new(),
    };
    [end, container.remarks().unwrap_or_default()].join("; ")
}

async fn what_a_program_reaches_is_remarked() {
    let place = Machine::new();
    let memory = format!("{TEXT}; while :; do text=$text$text; done");
    let files = format!("{TEXT}; (while echo $text; do :; done) > /tmp/large 2>/dev/null; sleep 1000");
    let output = format!("{TEXT}; while :; do echo $text; done");
    // Where cgroups count, the first words are found; otherwise the program has ended, and its output is about the limit.
    for (name, script, expected) in [
        (
            "memory",
            memory.as_str(),
            ["it reached its limit of memory (64 MiB)", "its limit of memory is 64 MiB for each process"],
        ),
        (
            "processes",
            "while :; do sleep 1000 & done",
            [
                "it reached its limit of processes and threads (20)",
                "its limit of processes and threads is 20",
            ],
        ),
        ("files", files.as_str(), ["it filled /tmp (4 MiB)"; 2]),
        ("output", output.as_str(), ["it printed more than 1 MiB in a second"; 2]),
    ] {
        let container = place.start(name, script, SHORT_GRACE_PERIOD);
        let is_named = |container: &Supervised| {
            let words = words(container);
            expected.iter().any(|expected| words.contains(expected)).then_some(words)
        };
        place.until(name, &container, is_named).await;
        container.stop().await;
    }
}

async fn a_program_that_ignores_sigterm_is_killed() {
    let place = Machine::new();
    let script = "trap '' TERM; echo ready; while :; do sleep 1000; done";
    let container = place.start("stubborn", script, SHORT_GRACE_PERIOD);
    place.until_printed("stubborn", "ready").await;
    assert_eq!((container.remarks(), container.was_killed()), (None, false));
    container.stop().await;
    assert!(container.was_killed());
    assert_eq!(container.remarks().as_deref(), Some("it did not end within 1 s of SIGTERM and was killed"));
}

async fn a_program_that_behaves_has_no_remarks() {
    let place = Machine::new();
    let script = "trap 'exit 0' TERM; echo small > /tmp/file; echo ready; sleep 1000 & wait";
    let container = place.start("behaved", script, LONG);
    place.until_printed("behaved", "ready").await;
    container.stop().await;
    assert_eq!((container.remarks(), container.was_killed()), (None, false));
}
