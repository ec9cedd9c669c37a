//! What users do with revisions, and what happens to these.

use super::maker::Health;
use super::model::WantedFunction;
use super::{CHANNEL, CHANNELS, Choice, NAME, VERSIONS, composition, source};
use crate::simulation::acts::composed_sort;
use crate::simulation::ledger::Thing;
use crate::simulation::life::{Life, RECOVERY};
use crate::simulation::packages::ledger::is_active;
use crate::simulation::platform::Sort;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use transom_object::meta;
use transom_store::Key;

impl Life {
    /// One act of a user of revisions, or of chance.
    pub(crate) async fn act_on_functions(&mut self) -> Result<(), String> {
        if self.model.functions.wanted.is_none() {
            return self.upgrade().await;
        }
        match self.rng.below(100) {
            0..18 => self.write_root().await,
            18..23 => self.delete_root().await,
            23..42 => self.choose().await,
            42..64 => self.upgrade().await,
            64..86 => self.flap(),
            86..91 => self.activate_by_hand().await,
            91..94 => self.pause().await,
            94..97 => self.meddle().await,
            _ => self.kill_controllers(),
        }
    }

    /// Installs a version of the Function, or changes how many of its revisions are active, and who decides that.
    async fn upgrade(&mut self) -> Result<(), String> {
        let (active_limit, history_limit) = *self.rng.pick(&[(1, 1), (1, 3), (2, 2), (2, 3), (3, 3)]);
        let channel = if self.rng.permille(800) { Some(*self.rng.pick(&CHANNELS)) } else { None };
        let version = self.draw_version();
        let manual = self.rng.permille(150);
        let wanted = WantedFunction { version, channel, active_limit, history_limit, manual };
        self.print_act(&format!("install {wanted:?}"));
        let policy = if manual { "Manual" } else { "Automatic" };
        let labels = channel.map_or_else(|| json!({}), |channel| json!({CHANNEL: channel}));
        let object = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
            "metadata": {"name": NAME, "labels": labels},
            "spec": {
                "package": format!("{}:v{version}", source()), "revisionActivationPolicy": policy,
                "activeRevisionLimit": active_limit, "revisionHistoryLimit": history_limit,
            },
        });
        self.plane.apply(&object).await;
        if !manual {
            self.model.functions.states.clear();
        }
        self.model.functions.wanted = Some(wanted);
        Ok(())
    }

    fn draw_version(&mut self) -> u64 {
        let all: Vec<u64> = VERSIONS.collect();
        *self.rng.pick(&all)
    }

    /// The revisions of a version become healthy or unhealthy.
    fn flap(&mut self) -> Result<(), String> {
        let version = self.draw_version();
        let ill = [Health::Starting, Health::Silent, Health::Broken];
        let health = if self.rng.permille(550) { Health::Well } else { *self.rng.pick(&ill) };
        self.print_act(&format!("v{version} is {health:?}"));
        self.plane.wire.ledger().functions.ill |= health != Health::Well;
        self.model.functions.health.insert(version, health);
        self.plane.makers.set_health(version, health);
        Ok(())
    }

    /// The step of a Composition chooses another revision.
    async fn choose(&mut self) -> Result<(), String> {
        let sort = *self.rng.pick(&Sort::ALL);
        let version = self.rng.below(4);
        let choice = match self.rng.below(8) {
            0..2 => Choice::Newest,
            2..5 => Choice::Named(self.draw_version()),
            5..7 => {
                let channel: &&str = self.rng.pick(&CHANNELS);
                Choice::Labelled(channel)
            }
            _ => Choice::Image(self.draw_version()),
        };
        self.print_act(&format!("{sort:?} is composed by version {version}, {choice:?}"));
        self.model.versions.insert(sort, version);
        self.model.functions.choices.insert(sort, choice);
        self.plane.apply(&composition(sort, version, choice)).await;
        Ok(())
    }

    /// Activates or deactivates a revision, where the user decides that.
    async fn activate_by_hand(&mut self) -> Result<(), String> {
        if !self.model.functions.wanted.as_ref().is_some_and(|wanted| wanted.manual) {
            return Ok(());
        }
        // The controllers may still do what they decided under the automatic policy.
        self.until_functions_as_modelled().await?;
        let all: Vec<(Key, Thing)> = {
            let ledger = self.plane.wire.ledger();
            ledger.functions.revisions().map(|(key, revision)| (key.clone(), revision.clone())).collect()
        };
        let (key, revision) = self.rng.pick(&all).clone();
        let (name, active) = (&*key.object.name, !is_active(&revision));
        self.print_act(&format!("{name} is to be active: {active}"));
        self.plane.wire.ledger().functions.released.insert(name.to_owned());
        let object = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "FunctionRevision", "metadata": {"name": name},
        });
        let state = if active { "Active" } else { "Inactive" };
        let patch = json!({"spec": {"desiredState": state}});
        let patched = self.plane.user.merge_patch(&object, &patch, "kubectl-edit").await;
        // It may have been deleted in the meantime.
        if let Ok(patched) = patched {
            self.model.functions.states.insert(meta::uid(&patched).to_owned(), active);
        }
        Ok(())
    }

    /// Changes all composite resources whose step chooses no revision: they are composed by the newest one when they are
    /// composed next, and not because there is a newer one.
    pub(crate) async fn touch_undecided(&mut self) -> Result<(), String> {
        let choices = self.model.functions.choices.clone();
        let undecided = |sort: Option<Sort>| sort.is_some_and(|s| choices.get(&s) == Some(&Choice::Newest));
        for (key, wanted) in self.model.roots.clone() {
            if undecided(composed_sort(&key)) && !wanted.paused {
                let mut spec = wanted.spec.clone();
                // Another value than before: applying what is there changes nothing.
                spec.value = (spec.value + 1 + self.rng.below(999)) % 1000;
                self.apply_root(&key, spec).await?;
            }
        }
        Ok(())
    }

    /// Waits until revisions are as they must be.
    pub(crate) async fn until_functions_as_modelled(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + RECOVERY;
        loop {
            self.follow()?;
            let compared = self.model.functions.compare(&self.plane.wire.ledger().functions);
            match compared {
                Ok(()) => return Ok(()),
                Err(why) if Instant::now() > deadline => return Err(why),
                Err(_) => sleep(Duration::from_millis(500)).await,
            }
        }
    }
}
