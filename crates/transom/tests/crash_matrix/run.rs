//! One plane after the other on the same data, most of them killed.

use crate::scenario::{Scenario, Step, apply_one};
use crate::snapshot::Snapshot;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};
use transom_testkit::process::{Client, Gone, Home, Plane, WAIT_LIMIT, up};

/// After this time without a write no work is left.
const QUIET_PERIOD: Duration = Duration::from_millis(120);
const POLL_INTERVAL: Duration = Duration::from_millis(4);
const SIGKILL: i32 = 9;

/// When a plane kills itself: at which write since it started, and what is left of that write.
#[derive(Clone, Copy, Debug)]
pub struct Crash {
    pub point: &'static str,
    pub at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Killed,
    Done,
}

/// One plane after the other on the same data directory.
pub struct Run {
    home: Home,
    name: String,
}

impl Run {
    /// A run that begins with a copy of a data directory.
    pub fn from(data: &Path, name: String) -> Self {
        let home = Home::new();
        copy(data, &home.data());
        Self { home, name }
    }

    /// A plane on which a scenario can begin.
    pub async fn prepared(scenario: &Scenario) -> Self {
        let run = Self { home: Home::new(), name: format!("the run without kills of {}", scenario.name) };
        let mut plane = Plane::start_with(&run.home, &["--with-controllers"]);
        let client = plane.client().await;
        for object in crate::platform::documents(&scenario.initial) {
            apply_one(&client, &object).await.expect("the plane runs");
        }
        run.wait_until_quiet().await;
        plane.kill();
        run
    }

    /// Copies the data directory as it is now.
    pub fn keep(&self, to: &Path) {
        copy(&self.home.data(), to);
    }

    fn log_length(&self) -> u64 {
        let entries = fs::read_dir(self.home.data().join("store")).expect("a store");
        let logs = entries
            .map(|e| e.expect("an entry"))
            .filter(|e| e.path().extension().is_some_and(|x| x == "seg"));
        logs.map(|e| e.metadata().map_or(0, |m| m.len())).sum()
    }

    /// Waits until nothing is written any longer.
    async fn wait_until_quiet(&self) {
        let (mut length, mut since) = (self.log_length(), Instant::now());
        while since.elapsed() < QUIET_PERIOD {
            tokio::time::sleep(POLL_INTERVAL).await;
            let now = self.log_length();
            if now != length {
                (length, since) = (now, Instant::now());
            }
        }
    }

    /// Carries out a step on a plane that is not killed before it is done. Returns the objects after it.
    pub async fn undisturbed(&self, step: &Step) -> Snapshot {
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
        self.wait_until_quiet().await;
        let snapshot = Snapshot::look(&client).await.expect("the plane runs");
        plane.kill();
        snapshot
    }

    /// Carries out a step, or continues it, until the objects are as wanted or the plane is dead.
    pub async fn attempt(&self, step: &Step, wanted: &Snapshot, crash: Option<Crash>) -> Ended {
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
        if doing.await.is_ok() {
            self.wait_until_quiet().await;
            if crash.is_none() || plane.ended_within(Duration::ZERO).await.is_none() {
                plane.kill();
                return Ended::Done;
            }
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
                let snapshot = Snapshot::look(client).await?;
                if snapshot == *wanted {
                    return Ok(());
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
    pub async fn assert_idle(&self) {
        let before = self.log_length();
        let mut plane =
            tokio::task::block_in_place(|| Plane::start_with(&self.home, &["--with-controllers"]));
        plane.until_idle().await;
        plane.kill();
        let written = self.log_length() - before;
        assert_eq!(written, 0, "{}: a restart wrote {written} bytes\n{}", self.name, self.home.log());
        let report = transom_store::verify(&self.home.data().join("store")).expect("a store");
        assert!(report.opens && report.damage.is_empty(), "{}: {report:?}", self.name);
        self.home.assert_no_panic();
    }
}

fn copy(from: &Path, to: &Path) {
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
