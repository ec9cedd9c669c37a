//! What must be of revisions when all is quiet. Which versions became revisions, and with which labels, depends on when the
//! controllers looked; that is read from what exists.

use super::ledger::FunctionLedger;
use super::maker::Health;
use super::{CHANNEL, Choice, FUNCTIONS, NAME, REVISIONS, composed_version, revision, source, version_of};
use crate::simulation::ledger::Thing;
use crate::simulation::model::{Outcome, condition, differ, ensure};
use crate::simulation::packages::ledger::is_active;
use crate::simulation::platform::Sort;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use transom_object::meta;
use transom_store::Key;

/// What the user wants of the Function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedFunction {
    pub version: u64,
    pub channel: Option<&'static str>,
    pub active_limit: usize,
    pub history_limit: usize,
    pub manual: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct FunctionModel {
    pub wanted: Option<WantedFunction>,
    /// What the Compositions choose; those that are not here call another function.
    pub choices: BTreeMap<Sort, Choice>,
    /// How the revisions of each version are.
    pub health: BTreeMap<u64, Health>,
    /// Which revisions are to be active, by uid, as far as the user decided it by hand.
    pub states: BTreeMap<String, bool>,
}

/// What may become of a composite resource: it is composed by a version, or it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Composed(u64),
    Failed,
}

fn number(revision: &Thing) -> i64 {
    revision.value["spec"]["revision"].as_i64().unwrap_or_default()
}

fn name_of(revision: &Thing) -> &str {
    meta::name(&revision.value)
}

impl FunctionModel {
    pub(crate) fn health_of(&self, revision: &Thing) -> Health {
        let version = version_of(name_of(revision)).unwrap_or_default();
        self.health.get(&version).copied().unwrap_or_default()
    }

    fn is_well(&self, revision: &Thing) -> bool {
        self.health_of(revision) == Health::Well
    }

    /// Whether a composite resource may be one that cannot be composed.
    pub(crate) fn may_fail(&self, ledger: &FunctionLedger, sort: Sort) -> bool {
        self.ends(ledger, sort, 0).contains(&End::Failed)
    }

    pub(crate) fn is_ill(&self) -> bool {
        self.health.values().any(|health| *health != Health::Well)
    }

    /// What may become of a composite resource whose Composition has this version.
    pub(crate) fn ends(&self, ledger: &FunctionLedger, sort: Sort, composition: u64) -> Vec<End> {
        let Some(choice) = self.choices.get(&sort) else { return vec![End::Composed(composition)] };
        let of = |revision: &Thing| {
            let version = version_of(name_of(revision)).unwrap_or_default();
            End::Composed(composed_version(composition, version))
        };
        let is_chosen = |revision: &&Thing| match choice {
            Choice::Newest => true,
            Choice::Named(version) | Choice::Image(version) => name_of(revision) == super::revision(*version),
            Choice::Labelled(channel) => meta::label(&revision.value, CHANNEL) == Some(channel),
        };
        let active: Vec<&Thing> =
            ledger.revisions().map(|(_, revision)| revision).filter(|r| is_active(r)).collect();
        let serving = active.iter().copied().filter(|revision| self.is_well(revision));
        if let Some(newest) = serving.clone().filter(is_chosen).max_by_key(|revision| number(revision)) {
            return vec![of(newest)];
        }
        // While no active revision is ready, one that was active before is called, also when it was deleted since: a
        // revision that history has no place for ends when another one can be called.
        let is_served = serving.count() > 0;
        let was_chosen = |revision: &&Thing| match choice {
            Choice::Labelled(channel) => ledger.was_in(name_of(revision), channel),
            _ => is_chosen(revision),
        };
        let retired = ledger.retired().filter(was_chosen).filter(|r| self.is_well(r) && !is_served);
        std::iter::once(End::Failed).chain(retired.map(of)).collect()
    }

    /// Whether revisions are as they must be; if not, one thing that is not.
    pub(crate) fn compare(&self, ledger: &FunctionLedger) -> Outcome {
        let Some(wanted) = &self.wanted else { return Ok(()) };
        let key = Key::new(FUNCTIONS, "", NAME);
        let Some(function) = ledger.objects.get(&key) else { return differ(&key, "is missing") };
        let image = format!("{}:v{}", source(), wanted.version);
        let status = &function.value["status"];
        ensure(status["currentIdentifier"] == *image, &key, "has another image installed")?;
        let current = revision(wanted.version);
        ensure(status["currentRevision"] == *current, &key, "has another current revision")?;
        let mut all: Vec<&Thing> = ledger.revisions().map(|(_, revision)| revision).collect();
        all.sort_by_key(|revision| Reverse(number(revision)));
        let Some((newest, others)) = all.split_first() else { return differ(&key, "has no revision") };
        ensure(name_of(newest) == current, &key, "has a revision with a higher number than the current one")?;
        ensure(
            meta::label(&newest.value, CHANNEL) == wanted.channel,
            &key,
            "has a label of another channel",
        )?;
        self.compare_states(wanted, &key, newest, others)?;
        let history = others.len() > wanted.history_limit && others.iter().any(|old| !is_active(old));
        ensure(!history, &key, format!("has {} old revisions", others.len()))?;
        for revision in &all {
            self.compare_health(revision)?;
        }
        self.compare_package_health(&key, function, &all)
    }

    /// Those with the highest numbers are active, or those that the user activated.
    fn compare_states(
        &self,
        wanted: &WantedFunction,
        key: &Key,
        newest: &Thing,
        others: &[&Thing],
    ) -> Outcome {
        if wanted.manual {
            for revision in others.iter().copied().chain([newest]) {
                let state = self.states.get(&revision.uid);
                let kept = state.is_none_or(|state| *state == is_active(revision));
                ensure(kept, key, format!("{} is not as the user left it", name_of(revision)))?;
            }
            return Ok(());
        }
        ensure(is_active(newest), key, "its current revision is not active")?;
        for (index, revision) in others.iter().enumerate() {
            let name = name_of(revision);
            let is_within = index + 1 < wanted.active_limit;
            ensure(is_active(revision) || !is_within, key, format!("{name} is not active"))?;
            // Beyond the limit one that works stays active as long as the current one does not.
            let stays = !self.is_well(newest) && self.is_well(revision);
            let holds = is_within || !is_active(revision) || stays;
            ensure(holds, key, format!("{name} is active beyond the limit"))?;
        }
        Ok(())
    }

    fn compare_health(&self, revision: &Thing) -> Outcome {
        let key = Key::new(REVISIONS, "", name_of(revision));
        ensure(!revision.deleting, &key, "is being deleted")?;
        let health = self.health_of(revision);
        let (expected, called) = match (is_active(revision), health) {
            (false, _) => ("Unknown", false),
            (true, Health::Well) => ("True", true),
            (true, health) => ("False", health == Health::Silent),
        };
        let found = &condition(&revision.value, "RuntimeHealthy")["status"];
        ensure(found == expected, &key, format!("RuntimeHealthy is {found}, not {expected}"))?;
        let endpoint = revision.value["status"]["endpoint"].as_str().is_some_and(|e| !e.is_empty());
        ensure(endpoint == called, &key, format!("has an endpoint: {endpoint}"))
    }

    /// The Function is as healthy as its current revision, or as the newest active one if that is not.
    fn compare_package_health(&self, key: &Key, function: &Thing, all: &[&Thing]) -> Outcome {
        let judged = all.iter().find(|revision| is_active(revision));
        let expected = if judged.is_some_and(|revision| self.is_well(revision)) { "True" } else { "False" };
        let found = &condition(&function.value, "Healthy")["status"];
        ensure(found == expected, key, format!("Healthy is {found}, not {expected}"))
    }
}
