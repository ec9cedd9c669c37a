//! One plane after the other on the same data, most of them killed.

use crate::history;
use crate::scenario::{Scenario, Step, apply_one};
use crate::snapshot::Snapshot;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};
use transom_testkit::process::{Client, Gone, Home, Plane, WAIT_LIMIT, up};

const POLL_INTERVAL: Duration = Duration::from_millis(4);
const SIGKILL: i32 = 9;

/// When a plane kills itself: at which write since it started, and what is left of that write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crash {
    pub point: &'static str,
    pub at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Killed,
    Done,
}

/// One plane after the other on the same data directory.
pub(crate) struct Run {
    home: Home,
    name: String,
    /// What the snapshots of this run have beside the kinds of composite resources.
    compared: &'static [&'static str],
}

impl Run {
    /// A run that begins with a copy of a data directory.
    pub(crate) fn from(data: &Path, scenario: &Scenario, name: &str) -> Self {
        let home = Home::new();
        copy(data, &home.data());
        Self { home, name: format!("{} {name}", scenario.name), compared: scenario.compared }
    }

    /// A plane on which a scenario can begin.
    pub(crate) async fn prepared(scenario: &Scenario) -> Self {
        let name = format!("the run without kills of {}", scenario.name);
        let run = Self { home: Home::new(), name, compared: scenario.compared };
        let mut plane = Plane::start_with(&run.home, &["--with-controllers"]);
        let client = plane.client().await;
        for object in crate::platform::documents(&scenario.initial) {
            apply_one(&client, &object).await.expect("the plane runs");
        }
        client.until_settled().await.expect("the plane runs");
        plane.kill();
        run
    }

    /// Copies the data directory as it is now.
    pub(crate) fn keep(&self, to: &Path) {
        copy(&self.home.data(), to);
    }

    /// Carries out a step on a plane that is not killed before it is done. Returns the objects after it.
    pub(crate) async fn undisturbed(&self, step: &Step) -> Snapshot {
        let mut plane = Plane::start_with(&self.home, &["--with-controllers"]);
        let client = plane.client().await;
        step.perform(&client).await.expect("the plane runs");
        let started = Instant::now();
        while !step.looks_done(&client).await.expect("the plane runs") {
            assert!(
                started.elapsed() < WAIT_LIMIT,
                "{}: {} is not done\n{}",
                self.name,
                step.name,
                self.home.log()
            );
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        client.until_settled().await.expect("the plane runs");
        let snapshot = Snapshot::look(&client, self.compared).await.expect("the plane runs");
        plane.kill();
        snapshot
    }

    /// Carries out a step, or continues it, until the objects are as wanted or the plane is dead.
    pub(crate) async fn attempt(&self, step: &Step, wanted: &Snapshot, crash: Option<Crash>) -> Ended {
        let mut command = up(&self.home, &["--with-controllers"]);
        if let Some(Crash { point, at }) = crash {
            command.env("TRANSOM_DIE_AT", format!("{point}:{at}"));
        }
        let mut plane = match tokio::task::block_in_place(|| Plane::launch(&self.home, &mut command)) {
            Ok(plane) => plane,
            Err(refused) if crash.is_some() && refused.status.signal() == Some(SIGKILL) => {
                return Ended::Killed;
            }
            Err(refused) => panic!("{}: {refused:?}", self.name),
        };
        let doing = async {
            let client = Client::connect(&plane.access).await?;
            step.perform(&client).await?;
            self.until(&client, step, wanted).await
        };
        if doing.await.is_ok() && (crash.is_none() || plane.ended_within(Duration::ZERO).await.is_none()) {
            plane.kill();
            return Ended::Done;
        }
        let status = plane.ended_within(WAIT_LIMIT).await;
        let killed = crash.is_some() && status.is_some_and(|s| s.signal() == Some(SIGKILL));
        assert!(killed, "{}: in {}: {status:?}\n{}", self.name, step.name, self.home.log());
        Ended::Killed
    }

    async fn until(&self, client: &Client, step: &Step, wanted: &Snapshot) -> Result<(), Gone> {
        let started = Instant::now();
        loop {
            let overdue = started.elapsed() > WAIT_LIMIT;
            if overdue || step.looks_done(client).await? {
                let snapshot = Snapshot::look(client, self.compared).await?;
                if snapshot == *wanted {
                    // Nothing is left to do that could change it.
                    client.until_settled().await?;
                    if Snapshot::look(client, self.compared).await? == *wanted {
                        return Ok(());
                    }
                }
                assert!(
                    !overdue,
                    "{}: {} ends with other objects:\n{}\n{}",
                    self.name,
                    step.name,
                    snapshot.differences(wanted).join("\n"),
                    self.home.log()
                );
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// A plane that has nothing to do writes nothing, and the store is intact.
    pub(crate) async fn assert_idle(&self) {
        let before = history::newest_revision(&self.home.data());
        let mut plane =
            tokio::task::block_in_place(|| Plane::start_with(&self.home, &["--with-controllers"]));
        plane.until_idle().await;
        plane.kill();
        let written = history::changes_since(&self.home.data(), before).await;
        let written: Vec<String> = written.iter().map(|change| history::describe(change)).collect();
        assert!(
            written.is_empty(),
            "{}: a restart wrote\n{}\n{}",
            self.name,
            written.join("\n"),
            self.home.log()
        );
        self.home.assert_no_panic();
    }

    /// The newest revision. No plane runs.
    pub(crate) fn revision(&self) -> u64 {
        history::newest_revision(&self.home.data())
    }

    /// Since a revision, nothing was written that must not be written in a step. No plane runs.
    pub(crate) async fn assert_unharmed(&self, step: &Step, since: u64) {
        let changes = history::changes_since(&self.home.data(), since).await;
        let wrong: Vec<String> =
            changes.iter().filter_map(|change| history::wrong_in(step, change)).collect();
        if !wrong.is_empty() {
            let all: Vec<String> = changes.iter().map(|change| history::describe(change)).collect();
            panic!("{}: {}\n{}\nall writes:\n{}", self.name, step.name, wrong.join("\n"), all.join("\n"));
        }
    }
}

/// Copies a directory with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).expect("a file");
        }
    }
}
