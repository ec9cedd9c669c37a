//! A life: one plane, and one schedule after the other on it, each beginning with what the last one left.
//!
//! A schedule is a handful of acts at odd times while things go wrong. Then nothing goes wrong any more, and before
//! long everything must be as the user wants it.

use crate::simulation::model::Model;
use crate::simulation::plane::Plane;
use crate::simulation::wire::Faults;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use transom_testkit::rng::Rng;

/// How long it may take until all is well, once nothing goes wrong.
pub(super) const RECOVERY: Duration = Duration::from_secs(1200);
/// Changes that the store remembers: few, so that watches that are held up fall behind.
const HISTORY: usize = 60;
/// Acts that are remembered for the report.
const SCRIPT: usize = 60;

/// What the schedules of a life are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theme {
    Composites,
    Packages,
    Functions,
}

pub(super) struct Life {
    theme: Theme,
    pub plane: Plane,
    pub model: Model,
    pub rng: Rng,
    script: VecDeque<String>,
    schedule: u64,
}

/// What to print about a life that went wrong.
pub(super) struct Failure {
    pub theme: Theme,
    pub seed: u64,
    pub schedule: u64,
    pub why: String,
    pub script: Vec<String>,
    pub trace: Vec<String>,
}

/// Lives so many schedules, and says if asked what requests were made on the way.
pub(super) fn live(
    theme: Theme,
    seed: u64,
    schedules: u64,
    print: bool,
) -> Result<Vec<String>, Box<Failure>> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut rng = Rng::new(seed);
        let plane = Plane::new(&mut rng, HISTORY).await;
        let (model, script) = (Model::default(), VecDeque::new());
        let mut life = Life { theme, plane, model, rng, script, schedule: 0 };
        if print {
            life.plane.wire.keep_log();
        }
        for schedule in 0..schedules {
            life.schedule = schedule;
            if let Err(why) = life.run(schedule + 1 == schedules).await {
                let script = life.script.iter().cloned().collect();
                let trace = life.plane.wire.trace();
                return Err(Box::new(Failure { theme, seed, schedule, why, script, trace }));
            }
        }
        Ok(life.plane.wire.take_log())
    })
}

impl Life {
    pub(super) fn print_act(&mut self, act: &str) {
        if self.script.len() == SCRIPT {
            self.script.pop_front();
        }
        self.plane.wire.note(&format!("USER {act}"));
        self.script.push_back(format!("{:>5} {act}", self.schedule));
        self.remember();
    }

    /// Sees what happened; an error if something should not have.
    pub(super) fn follow(&mut self) -> Result<(), String> {
        self.model.foreign.append(&mut self.plane.wire.take_ousted());
        let mut ledger = self.plane.wire.ledger();
        ledger.follow();
        ledger.violation.clone().map_or(Ok(()), Err)
    }

    /// What is wanted now is among what was wanted of late.
    fn remember(&self) {
        let mut ledger = self.plane.wire.ledger();
        for (root, parts) in self.model.wishes() {
            let wishes = ledger.wishes.entry(root).or_default();
            if wishes.last() != Some(&parts) {
                wishes.push(parts);
            }
        }
    }

    fn draw_faults(&mut self) -> Faults {
        let rates = [0, 0, 10, 50, 200];
        let packages = self.theme != Theme::Composites;
        let rng = &mut self.rng;
        let mut rate = || *rng.pick(&rates);
        let mut faults = Faults {
            delay: rate() * 2,
            refuse: rate(),
            lose: rate(),
            stream: rate(),
            function: rate(),
            oust: rate() * 2,
            registry: if packages { rate() } else { 0 },
            ..Faults::default()
        };
        if rng.permille(60) {
            faults.crash = Some(rng.below(10));
            faults.crash_after = rng.permille(500);
        }
        faults
    }

    /// One schedule.
    async fn run(&mut self, last: bool) -> Result<(), String> {
        let faults = self.draw_faults();
        let lasting = self.rng.duration(14);
        self.plane.wire.note(&format!("---- {} {faults:?} for {lasting:?}", self.schedule));
        self.plane.wire.disturb(faults, lasting);
        let until = Instant::now() + lasting;
        let acts = match self.theme {
            Theme::Functions => self.rng.below(4) + 1,
            _ => u64::from(self.rng.permille(300)) + 1,
        };
        for _ in 0..acts {
            match self.theme {
                Theme::Composites => self.act().await?,
                Theme::Packages => self.act_on_packages().await?,
                Theme::Functions => self.act_on_functions().await?,
            }
            self.remember();
            sleep(self.rng.duration(11)).await;
        }
        tokio::time::sleep_until(until).await;
        if self.theme == Theme::Functions {
            self.until_functions_as_modelled().await?;
            self.touch_undecided().await?;
        }
        self.until_as_modelled().await?;
        if last || self.rng.permille(10) {
            self.hush().await?;
        }
        Ok(())
    }

    /// Without further faults everything is soon as the model requires, and then no controller does anything.
    async fn until_as_modelled(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + RECOVERY;
        let mut step = Duration::from_millis(200);
        loop {
            self.follow()?;
            let all_well = self.model.compare(&self.plane.wire.ledger());
            let silent = self.plane.wire.silence() >= Duration::from_secs(1);
            match all_well {
                Ok(()) if silent => break,
                Err(why) if Instant::now() > deadline => {
                    let revisions = self.plane.wire.ledger().functions.describe();
                    return Err(format!("after {RECOVERY:?} {why}{revisions}"));
                }
                Ok(()) if Instant::now() > deadline => return Err("it never comes to rest".to_owned()),
                _ => {}
            }
            sleep(step).await;
            step = (step * 2).min(Duration::from_secs(10));
        }
        let mut ledger = self.plane.wire.ledger();
        ledger.released.clear();
        ledger.packages.released.clear();
        ledger.functions.rest(self.model.functions.is_ill());
        // Paused composite resources stay behind until they are resumed.
        ledger.lagging.retain(|root| self.model.roots.get(root).is_some_and(|wanted| wanted.paused));
        for wishes in ledger.wishes.values_mut() {
            // An earlier desired state may still be on its way to a client that was cut off.
            let old = wishes.len().saturating_sub(6);
            wishes.drain(..old);
        }
        Ok(())
    }

    /// Ten minutes in which nothing is written and no function is called.
    async fn hush(&mut self) -> Result<(), String> {
        // What failed before it worked may still be tried again, and a registry that hangs is waited for for three minutes.
        sleep(Duration::from_secs(200)).await;
        let before = self.plane.wire.counts();
        sleep(Duration::from_secs(600)).await;
        let after = self.plane.wire.counts();
        self.follow()?;
        // Reading is allowed: a watch that is renewed may have to ask anew where its kind is served.
        if (before.writes, before.calls) != (after.writes, after.calls) {
            return Err(format!("nothing happens, but from {before:?} it came to {after:?}"));
        }
        if before.asked != after.asked && !self.model.packages.polls() {
            return Err(format!(
                "nothing happens, but the registry was asked {} times",
                after.asked - before.asked
            ));
        }
        self.model.compare(&self.plane.wire.ledger())
    }
}
