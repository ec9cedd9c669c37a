//! `kill -9` at every step of a run of a container function, in namespaces without an OCI runtime: of the process that runs it, and of the
//! container's own. Nothing is left after the next start. `conformance/xfn` does the same with OCI runtimes, as an ordinary user, and with planes.

use super::containers::shell;
use super::packages::Registry;
use serde_json::json;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use transom_oci::testing::images::image;
use transom_testkit::process::{WAIT_LIMIT, transom};

/// Leaves a process behind, reads all of its input, and answers.
const PROGRAM: &str = "sleep 1000 & while read -r line; do :; done; echo 'desired: {}'";
const ANSWER: &str = "desired: {}\n";

/// A registry with the image, and the directory that all runs share.
struct Setup {
    registry: Registry,
    dir: TempDir,
    /// The names of their sessions begin with these.
    pids: BTreeSet<u32>,
}

impl Setup {
    async fn new() -> Self {
        let registry = Registry::start().await;
        let config = json!({"config": {"Entrypoint": ["/bin/sh", "-c", PROGRAM]}}).to_string();
        registry.0.push("acme/answer", "v1", &image(&config, &[shell()], false));
        Self { registry, dir: tempfile::tempdir().unwrap(), pids: BTreeSet::new() }
    }

    /// Runs the function, and is killed at a step.
    fn run(&mut self, die_at: Option<&str>) -> Output {
        let (cache, image) = (self.dir.path().to_str().unwrap(), self.registry.at("acme/answer:v1"));
        let (input, flag) = (self.dir.path().join("input.yaml"), "--accept-unenforced-limits");
        std::fs::write(&input, "desired: {}\n").unwrap();
        let input = input.to_str().unwrap();
        let mut command = transom(&["xfn", "run", &image, input, "--cache-dir", cache, flag]);
        command.args(super::containers::CHROOT).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(die_at.map(|at| ("TRANSOM_DIE_AT", at)));
        let child = command.spawn().unwrap();
        self.pids.insert(child.id());
        tokio::task::block_in_place(|| child.wait_with_output()).unwrap()
    }

    /// Processes that were started from the directory, or see it mounted: those of its containers do.
    fn processes(&self) -> Vec<PathBuf> {
        processes_with(self.dir.path().file_name().unwrap().to_str().unwrap())
    }

    /// Waits until the kernel has ended all processes, and with them their namespaces and mounts.
    async fn until_no_process(&self, at: &str) {
        let started = Instant::now();
        while !self.processes().is_empty() {
            assert!(started.elapsed() < WAIT_LIMIT, "{at}: {:?}", self.processes());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The next start answers, and leaves nothing of those before.
    async fn answers_and_leaves_nothing(&mut self, at: &str) {
        self.until_no_process(at).await;
        let output = self.run(None);
        assert!(output.status.success(), "{at}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout), ANSWER, "{at}");
        self.until_no_process(at).await;
        let names = |folder: &str| {
            let entries =
                std::fs::read_dir(self.dir.path().join("containers").join(folder)).unwrap().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("run"), [""; 0], "{at}");
        let images = names("images");
        let of_tags = images.iter().filter(|name| name.starts_with("tag-")).count();
        assert_eq!((images.len(), of_tags), (2, 1), "{at}: {images:?}");
        assert_eq!(cgroups_of(&self.pids), [""; 0], "{at}");
    }

    /// Kills the process that runs the function at every step of a point, each after `prepare`. The names of the steps.
    async fn kill_at_every_step(&mut self, point: &str, prepare: fn(&mut Self)) -> Vec<String> {
        let mut steps = Vec::new();
        for n in 1.. {
            prepare(self);
            let at = format!("{point}:{n}");
            let output = self.run(Some(&at));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() {
                break;
            }
            assert_eq!(output.status.signal(), Some(9), "{at}: {said}");
            let step = said.lines().find_map(|line| line.strip_prefix(&format!("killed at {point}: ")));
            steps.push(step.unwrap_or_else(|| panic!("{at}: {said}")).to_owned());
            self.answers_and_leaves_nothing(&format!("{at}, {said}")).await;
        }
        steps
    }
}

/// Processes that have a text in their command line, or in the list of what they see mounted.
pub(super) fn processes_with(text: &str) -> Vec<PathBuf> {
    let mentions = |process: &Path, file: &str| {
        let read = std::fs::read(process.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&read).contains(text)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    all.filter(|process| mentions(process, "cmdline") || mentions(process, "mountinfo")).collect()
}

/// The cgroups of the containers of some processes.
pub(super) fn cgroups_of(pids: &BTreeSet<u32>) -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let roots = mounts.lines().filter(|line| line.contains(" - cgroup"));
    let parents = roots.filter_map(|line| Some(Path::new(line.split(' ').nth(4)?).join("transom")));
    let entries = parents.flat_map(|parent| std::fs::read_dir(parent).into_iter().flatten().flatten());
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_one = |name: &String| pids.iter().any(|pid| name.starts_with(&format!("transom-{pid}-")));
    names.filter(is_one).collect()
}

fn as_it_is(_: &mut Setup) {}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_at_any_step_of_a_run_leaves_nothing() {
    let mut place = Setup::new().await;
    let steps = place.kill_at_every_step("run", as_it_is).await;
    let all = [
        "its directory is made",
        "its cgroups are made",
        "its plan is written",
        "its first process is started",
        "its input is written",
        "its first process has ended",
        "its output is read",
        "the limits that it reached are read",
        "its cgroups are removed",
        "its directory is removed",
    ];
    // Ordinary users may make no cgroups.
    let expected = all.into_iter().filter(|step| *step != all[1] || steps.iter().any(|found| found == step));
    assert_eq!(steps, expected.collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_while_it_unpacks_an_image_leaves_nothing() {
    let mut place = Setup::new().await;
    let without_image = |place: &mut Setup| {
        let _ = std::fs::remove_dir_all(place.dir.path().join("containers/images"));
    };
    let steps = place.kill_at_every_step("pull", without_image).await;
    let expected = [
        "its directories are made",
        "it is unpacked",
        "its description is written",
        "it is moved to its place",
        "a directory for the digest of its tag is made",
        "the digest of its tag is kept",
    ];
    assert_eq!(steps, expected);
}

/// The removal of what a killed process left is killed itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_while_it_removes_what_another_left_leaves_nothing() {
    let mut place = Setup::new().await;
    let kill_another = |place: &mut Setup| {
        let output = place.run(Some("run:4"));
        assert_eq!(output.status.signal(), Some(9), "{}", String::from_utf8_lossy(&output.stderr));
        // As long as the kernel has not ended them, their cgroups stay, and with these the directory of the session.
        let ended = place.until_no_process("killed at run:4");
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(ended));
    };
    let steps = place.kill_at_every_step("open", kill_another).await;
    let expected = [
        "the cgroups of an abandoned session are removed",
        "an abandoned session is removed",
        "the directories are made",
        "the directory of its session is made",
        "its session is locked",
    ];
    assert_eq!(steps, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_of_which_anything_is_killed_at_any_step_leaves_nothing() {
    let mut place = Setup::new().await;
    for (stage, least) in [("outer", 4), ("init", 5), ("enter", 8)] {
        let steps = place.kill_at_every_step(stage, as_it_is).await;
        assert!(steps.len() >= least, "{stage}: {steps:?}");
        // The process of the container itself. Whether there is an answer depends on whether it was needed any more.
        for n in 1..=steps.len() {
            let at = format!("{stage}-alone:{n}");
            let output = place.run(Some(&at));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code().is_some_and(|code| code <= 1), "{at}: {:?} {said}", output.status);
            if !output.status.success() {
                assert!(output.stdout.is_empty() && said.contains("cannot run"), "{at}: {said}");
            }
            place.answers_and_leaves_nothing(&format!("{at}, {said}")).await;
        }
    }
}
