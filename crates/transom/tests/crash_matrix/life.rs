//! One plane after the other on the same data, most of them killed.

use crate::plane::{Client, Gone, Home, PATIENCE, Plane, up};
use crate::story::{Act, Story, apply_one};
use crate::world::World;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// After so long without a write nothing is going on any longer.
const QUIET: Duration = Duration::from_millis(120);
const LOOK_AGAIN: Duration = Duration::from_millis(4);
const SIGKILL: i32 = 9;

/// When a plane kills itself: at which write since it started, and what is left of that write.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    pub place: &'static str,
    pub at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Killed,
    Done,
}

/// Data of a plane, and who asks.
pub struct Life {
    home: Home,
    name: String,
}

impl Life {
    /// A life that begins where another one stood.
    pub fn from(stage: &Path, name: String) -> Self {
        let home = Home::new();
        copy(stage, &home.data());
        Self { home, name }
    }

    /// A plane on which a story can begin.
    pub async fn prepared(story: &Story) -> Self {
        let life = Self { home: Home::new(), name: format!("the calm life of {}", story.name) };
        let mut plane = Plane::start_with(&life.home, &["--with-controllers"]);
        let client = plane.client().await;
        for object in crate::platform::documents(&story.standing) {
            apply_one(&client, &object).await.expect("the plane lives");
        }
        life.settle().await;
        plane.kill();
        life
    }

    /// Keeps what there is now.
    pub fn keep(&self, stage: &Path) {
        copy(&self.home.data(), stage);
    }

    fn log_length(&self) -> u64 {
        let entries = fs::read_dir(self.home.data().join("store")).expect("a store");
        let logs = entries
            .map(|e| e.expect("an entry"))
            .filter(|e| e.path().extension().is_some_and(|x| x == "seg"));
        logs.map(|e| e.metadata().map_or(0, |m| m.len())).sum()
    }

    /// Waits until nothing is written any longer.
    async fn settle(&self) {
        let (mut length, mut since) = (self.log_length(), Instant::now());
        while since.elapsed() < QUIET {
            tokio::time::sleep(LOOK_AGAIN).await;
            let now = self.log_length();
            if now != length {
                (length, since) = (now, Instant::now());
            }
        }
    }

    /// Does an act on a plane without end, and tells how the world looks then.
    pub async fn calm(&self, act: &Act) -> World {
        let mut plane = Plane::start_with(&self.home, &["--with-controllers"]);
        let client = plane.client().await;
        act.perform(&client).await.expect("the plane lives");
        let started = Instant::now();
        while !act.looks_done(&client).await.expect("the plane lives") {
            assert!(
                started.elapsed() < PATIENCE,
                "{}: {} is not done\n{}",
                self.name,
                act.name,
                self.home.log()
            );
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.settle().await;
        let world = World::look(&client).await.expect("the plane lives");
        plane.kill();
        world
    }

    /// Does an act, or goes on with it, until the world is as it should be or the plane is dead.
    pub async fn attempt(&self, act: &Act, wanted: &World, death: Option<Death>) -> Ended {
        let mut command = up(&self.home, &["--with-controllers"]);
        if let Some(Death { place, at }) = death {
            command.env("TRANSOM_DIE_AT", format!("{place}:{at}"));
        }
        let mut plane = match tokio::task::block_in_place(|| Plane::launch(&self.home, &mut command)) {
            Ok(plane) => plane,
            Err(refused) if death.is_some() && refused.status.signal() == Some(SIGKILL) => {
                return Ended::Killed;
            }
            Err(refused) => panic!("{}: {refused:?}", self.name),
        };
        let doing = async {
            let client = Client::connect(&plane.access).await?;
            act.perform(&client).await?;
            self.until(&client, act, wanted).await
        };
        if doing.await.is_ok() {
            self.settle().await;
            if death.is_none() || plane.ended_within(Duration::ZERO).await.is_none() {
                plane.kill();
                return Ended::Done;
            }
        }
        let status = plane.ended_within(PATIENCE).await;
        let killed = death.is_some() && status.is_some_and(|s| s.signal() == Some(SIGKILL));
        assert!(killed, "{}: in {}: {status:?}\n{}", self.name, act.name, self.home.log());
        Ended::Killed
    }

    async fn until(&self, client: &Client, act: &Act, wanted: &World) -> Result<(), Gone> {
        let started = Instant::now();
        loop {
            let overdue = started.elapsed() > PATIENCE;
            if overdue || act.looks_done(client).await? {
                let world = World::look(client).await?;
                if world == *wanted {
                    return Ok(());
                }
                assert!(
                    !overdue,
                    "{}: {} ends in another world:\n{}\n{}",
                    self.name,
                    act.name,
                    world.differences(wanted).join("\n"),
                    self.home.log()
                );
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// A plane that finds everything done writes nothing, and what it finds is sound.
    pub async fn must_rest(&self) {
        let before = self.log_length();
        let mut plane =
            tokio::task::block_in_place(|| Plane::start_with(&self.home, &["--with-controllers"]));
        tokio::time::sleep(QUIET).await;
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
