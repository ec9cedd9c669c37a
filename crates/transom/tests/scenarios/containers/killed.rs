//! `kill -9` of the plane at every step of the start, the upgrade and the stop of a function that runs from its package. After the next
//! start nothing is left of what ran before, and composite resources are as they were.

use super::super::killed_functions::{cgroups_of, processes_with};
use super::*;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use transom_engine::Cluster;
use transom_testkit::process::{Plane, Refused, up};

/// A plane that is started, has its function upgraded, and is stopped; and is killed on the way.
struct Life {
    user: User,
    registry: Registry,
    digests: [Digest; 2],
    /// What was composed before anything was killed.
    things: Vec<Value>,
    pids: BTreeSet<u32>,
    /// The version that was installed last: 0 or 1.
    version: usize,
    kills: usize,
}

impl Life {
    async fn new() -> Self {
        let registry = Registry::start().await;
        let (user, digests) = with_packaged(&registry).await;
        user.until_idle().await;
        let things = lasting(&user).await;
        Self { user, registry, digests, things, pids: BTreeSet::new(), version: 0, kills: 0 }
    }

    fn package(&self, version: usize) -> String {
        self.registry.at(&format!("acme/{PACKAGED}:v{}", version + 1))
    }

    fn revision(&self, version: usize) -> String {
        revision_of(PACKAGED, &self.digests[version])
    }

    /// Lives through start, upgrade and stop, and returns at which step it was killed, if it was.
    async fn killed_at(&mut self, point: &str) -> Option<String> {
        self.user.plane.kill();
        let mut command = up(&self.user.home, &[&["--with-controllers"][..], &CHROOT].concat());
        command.env("TRANSOM_DIE_AT", point);
        let home = &self.user.home;
        let launched = tokio::task::block_in_place(|| Plane::launch(home, &mut command));
        self.version = 1 - self.version;
        let status = match launched {
            Err(Refused { status, .. }) => status,
            Ok(plane) => self.upgraded_and_stopped(plane).await,
        };
        if status.success() {
            return None;
        }
        let log = self.user.home.log();
        assert_eq!(status.signal(), Some(9), "{point}: {log}");
        let mut kills = log.lines().filter_map(|line| line.strip_prefix("killed at "));
        let step = kills.clone().next_back().and_then(|step| step.split_once(": ")).expect("a step");
        self.kills += 1;
        assert_eq!(kills.by_ref().count(), self.kills, "{point}: {log}");
        Some(step.1.to_owned())
    }

    async fn upgraded_and_stopped(&mut self, mut plane: Plane) -> ExitStatus {
        self.pids.insert(plane.pid());
        let package = documents(&install_function(PACKAGED, &self.package(self.version)));
        let cluster = connect(&self.user.home).await;
        let started = Instant::now();
        // Requests fail when it is killed.
        let mut is_asked = false;
        loop {
            assert!(started.elapsed() < WAIT_LIMIT, "{}", self.user.home.log());
            if let Some(status) = plane.ended_within(Duration::from_millis(5)).await {
                return status;
            }
            if !is_asked {
                is_asked = cluster.apply(&package[0], "kubectl").await.is_ok();
            } else if self.is_upgraded(&cluster, plane.pid()).await {
                break;
            }
        }
        plane.signal(Signal::TERM);
        plane.ended_within(WAIT_LIMIT).await.expect("it ends")
    }

    /// Whether the new revision runs, and nothing of the one before.
    async fn is_upgraded(&self, cluster: &Cluster, plane: u32) -> bool {
        let healthy = |version: usize| async move {
            let found = cluster.get(&gvk(FUNCTION_REVISION), "", &self.revision(version)).await;
            found.ok().flatten().map(|revision| status_of(&revision, "RuntimeHealthy").to_owned())
        };
        healthy(self.version).await.as_deref() == Some("True")
            && healthy(1 - self.version).await.as_deref() != Some("True")
            && below(plane).len() == 3
    }

    /// The next start runs the version that was asked for, and leaves nothing of what was killed.
    async fn works_again(&mut self, at: &str) {
        let data = self.user.home.data();
        let left = || processes_with(&data.join("containers").to_string_lossy());
        until(&format!("{at}: all processes end"), || left().is_empty()).await;
        self.user.restart(&CHROOT).await;
        let pid = self.user.plane.pid();
        self.user.apply(&install_function(PACKAGED, &self.package(self.version))).await;
        self.user.until_true(FUNCTION_REVISION, &self.revision(self.version), "RuntimeHealthy").await;
        until(&format!("{at}: one container runs"), || below(pid).len() == 3).await;
        self.user.until_idle().await;
        assert_eq!(names(&self.user, "run").len(), 1, "{at}: that of this process");
        assert_eq!(cgroups_of(&self.pids), [""; 0], "{at}");
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&*data.to_string_lossy()), "{at}: {mounts}");
        until_things_are(&self.user, &self.things, at).await;
    }
}

/// What the process of the plane does for a container, with how often it does in a life: once for each version, or once.
const STEPS: [(&str, usize); 15] = [
    ("its directory is made", 2),
    ("its cgroups are made", 2),
    ("its plan is written", 2),
    ("its first process is started", 2),
    ("it accepts connections", 2),
    ("its calls are awaited", 1),
    ("its calls have ended", 1),
    ("it is asked to end", 2),
    ("its first process has ended", 2),
    ("the limits that it reached are read", 2),
    ("its cgroups are removed", 2),
    ("its directory is removed", 2),
    ("it is stopped", 2),
    ("all are stopped", 1),
    ("the directory of its session is removed", 1),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_plane_that_is_killed_at_any_step_of_a_functions_life_leaves_nothing() {
    let mut life = Life::new().await;
    let mut without_cgroups = Vec::new();
    for (step, times) in STEPS {
        for n in 1..=times {
            let at = format!("supervised/{step}:{n}");
            match life.killed_at(&at).await {
                Some(found) => assert_eq!(found, step),
                None => without_cgroups.push(step),
            }
            life.works_again(&at).await;
        }
    }
    // Not every user may make them.
    without_cgroups.dedup();
    let expected: &[&str] = &["its cgroups are made", "its cgroups are removed"];
    assert!(without_cgroups.is_empty() || without_cgroups == expected, "{without_cgroups:?}");
}

/// The processes of the container end with the plane, however far they are.
#[tokio::test(flavor = "multi_thread")]
async fn a_plane_that_is_killed_at_any_step_of_a_functions_processes_leaves_nothing() {
    let mut life = Life::new().await;
    for (stage, least) in [("outer", 4), ("init", 5), ("enter", 8)] {
        let mut steps = Vec::new();
        for n in 1.. {
            let Some(step) = life.killed_at(&format!("{stage}:{n}")).await else { break };
            life.works_again(&format!("{stage}:{n}, {step}")).await;
            steps.push(step);
        }
        assert!(steps.len() >= least, "{stage}: {steps:?}");
    }
}
