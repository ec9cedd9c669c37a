//! Revisions of the function as they are, and what must never happen to them, or be called.

use super::maker::chosen;
use super::{CHANNEL, FUNCTIONS, NAME, REVISIONS};
use crate::simulation::ledger::{Thing, read, show};
use crate::simulation::model::condition;
use crate::simulation::packages::ledger::{is_active, package_of};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use transom_object::meta;
use transom_store::{Event, Key};

type Outcome = Result<(), String>;

/// Functions and their revisions, and what these were since everything was at rest.
#[derive(Default)]
pub(crate) struct FunctionLedger {
    pub objects: BTreeMap<Key, Thing>,
    /// The channels of each revision.
    channels: BTreeMap<String, BTreeSet<String>>,
    active: BTreeSet<String>,
    healthy: BTreeSet<String>,
    /// Revisions that the runtime has, by name. One that was deleted is called until an active one is ready.
    pub running: BTreeSet<String>,
    /// Revisions as they were when they were deleted, by name.
    deleted: BTreeMap<String, Thing>,
    /// Revisions that the user deactivates.
    pub released: BTreeSet<String>,
    /// Whether a version was ill.
    pub ill: bool,
}

fn is_healthy(revision: &Thing) -> bool {
    let is_true = |kind| condition(&revision.value, kind)["status"] == "True";
    is_active(revision) && is_true("RevisionHealthy") && is_true("RuntimeHealthy")
}

impl FunctionLedger {
    /// Notes a change; an error if it should not have happened.
    pub(crate) fn note(&mut self, event: &Event) -> Outcome {
        let key = &event.key;
        if ![FUNCTIONS, REVISIONS].contains(&&*key.resource) {
            return Ok(());
        }
        let before = self.objects.remove(key);
        let after = event.new.as_ref().map(|entry| read(entry));
        if let Some(after) = &after {
            self.objects.insert(key.clone(), after.clone());
        }
        if &*key.resource != REVISIONS {
            return Ok(());
        }
        let ends = |revision: &&Thing| is_active(revision) && !revision.deleting;
        let ended = before.as_ref().filter(ends).filter(|_| !after.as_ref().is_some_and(|a| ends(&a)));
        let checked = ended.map_or(Ok(()), |ended| self.may_end(key, ended));
        let name = &*key.object.name;
        match (after, before) {
            (Some(after), _) => {
                self.deleted.remove(name);
                self.remember(name, &after);
            }
            (None, Some(before)) if package_of(&before) == NAME => {
                self.deleted.insert(name.to_owned(), before);
            }
            (None, _) => {}
        }
        checked
    }

    fn remember(&mut self, name: &str, revision: &Thing) {
        if let Some(channel) = meta::label(&revision.value, CHANNEL) {
            self.channels.entry(name.to_owned()).or_default().insert(channel.to_owned());
        }
        if is_active(revision) {
            self.active.insert(name.to_owned());
        }
        if is_healthy(revision) {
            self.healthy.insert(name.to_owned());
        }
    }

    /// A healthy revision ends only when another active one was healthy, or the user wants it to.
    fn may_end(&self, key: &Key, revision: &Thing) -> Outcome {
        let name = &*key.object.name;
        let package = package_of(revision);
        if self.released.contains(name) || !is_healthy(revision) || package != NAME {
            return Ok(());
        }
        let mut others = self.revisions().filter(|(other, r)| *other != key && is_active(r) && !r.deleting);
        if others.any(|(other, _)| self.healthy.contains(&*other.object.name)) {
            return Ok(());
        }
        Err(format!("{} ends, and no other revision was ever healthy", show(key)))
    }

    /// A revision was called for a step with this input; an error if the step did not choose it.
    pub(crate) fn called(&self, revision: &str, input: &Value, released: bool) -> Outcome {
        let (named, channel) = chosen(input);
        if released {
            return Err(format!("{revision} was called after it was released"));
        }
        if let Some(named) = named.filter(|named| *named != revision) {
            return Err(format!("{revision} was called instead of {named}"));
        }
        if let Some(channel) = channel.filter(|channel| !self.was_in(revision, channel)) {
            return Err(format!("{revision} was called, and was never in the channel {channel}"));
        }
        // One that is not active is called only while no active one is ready.
        if !self.active.contains(revision) && !self.ill {
            return Err(format!("{revision} was called, and was not active"));
        }
        Ok(())
    }

    /// Whether a revision was in a channel since everything was at rest, or a retired one since it was active.
    pub(crate) fn was_in(&self, revision: &str, channel: &str) -> bool {
        self.channels.get(revision).is_some_and(|all| all.contains(channel))
    }

    /// Everything is at rest: what was before does not count any more.
    pub(crate) fn rest(&mut self, ill: bool) {
        let retired: BTreeSet<String> = self.retired().map(|r| meta::name(&r.value).to_owned()).collect();
        self.channels.retain(|name, _| retired.contains(name));
        self.active.clear();
        self.healthy.clear();
        self.released.clear();
        self.ill = ill;
        let all: Vec<(String, Thing)> =
            self.revisions().map(|(key, revision)| (key.object.name.to_string(), revision.clone())).collect();
        for (name, revision) in &all {
            self.remember(name, revision);
        }
    }

    /// The revisions of the function, for reports: number, version, state, channel, health.
    pub(crate) fn describe(&self) -> String {
        let describe = |(key, revision): (&Key, &Thing)| {
            let version = super::version_of(&key.object.name).unwrap_or_default();
            let (spec, channel) = (&revision.value["spec"], meta::label(&revision.value, CHANNEL));
            let healthy = &condition(&revision.value, "RuntimeHealthy")["status"];
            format!("\n#{}: v{version} {} {channel:?} {healthy}", spec["revision"], spec["desiredState"])
        };
        self.revisions().map(describe).collect()
    }

    /// Revisions that are not active, or do not exist any more, and that the runtime still has.
    pub(crate) fn retired(&self) -> impl Iterator<Item = &Thing> {
        let inactive = self.revisions().map(|(_, revision)| revision).filter(|revision| !is_active(revision));
        let running = |revision: &&Thing| self.running.contains(meta::name(&revision.value));
        inactive.chain(self.deleted.values()).filter(running)
    }

    /// The revisions of the function.
    pub(crate) fn revisions(&self) -> impl Iterator<Item = (&Key, &Thing)> {
        let all = self.objects.iter().filter(|(key, _)| &*key.resource == REVISIONS);
        all.filter(|(_, revision)| package_of(revision) == NAME)
    }
}
