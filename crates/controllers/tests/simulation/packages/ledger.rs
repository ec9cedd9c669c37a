//! Packages as they are, and what must never happen to them between any two writes.

use super::{COMPOSITIONS, DEFINITIONS, LOCKS, PACKAGES, REVISIONS};
use crate::simulation::ledger::{Thing, read, show};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use transom_object::meta;
use transom_store::{Event, Key};
use transom_xapi::constants::label;

type Outcome = Result<(), String>;

/// Packages, their revisions, the Lock, and what packages bring.
#[derive(Default)]
pub(crate) struct PackageLedger {
    pub objects: BTreeMap<Key, Thing>,
    by_uid: BTreeMap<String, Key>,
    /// What the user deletes.
    pub released: BTreeSet<Key>,
}

/// The entries of Configurations in the Lock. Functions may have entries, too.
pub(crate) fn entries(lock: &Value) -> impl Iterator<Item = &Value> {
    let all = lock["packages"].as_array().into_iter().flatten();
    all.filter(|entry| entry["kind"] == "Configuration")
}

pub(crate) fn is_active(revision: &Thing) -> bool {
    revision.value["spec"]["desiredState"] == "Active"
}

/// The package that a revision belongs to, by its label.
pub(crate) fn package_of(revision: &Thing) -> &str {
    meta::label(&revision.value, label::PACKAGE).unwrap_or_default()
}

/// The owners of an object that are packages, by uid.
pub(crate) fn packages_owning(object: &Thing) -> Vec<String> {
    let owners = meta::owner_references(&object.value).into_iter();
    owners.filter(|owner| owner.kind == "Configuration").map(|owner| owner.uid).collect()
}

impl PackageLedger {
    /// Notes a change; an error if it should not have happened.
    pub(crate) fn note(&mut self, event: &Event) -> Outcome {
        let key = &event.key;
        if ![PACKAGES, REVISIONS, LOCKS, COMPOSITIONS, DEFINITIONS].contains(&&*key.resource) {
            return Ok(());
        }
        let before = self.objects.remove(key);
        if let Some(before) = &before {
            self.by_uid.remove(&before.uid);
        }
        let after = event.new.as_ref().map(|entry| read(entry));
        if let Some(after) = &after {
            self.by_uid.insert(after.uid.clone(), key.clone());
            self.objects.insert(key.clone(), after.clone());
        }
        self.check(key, before.as_ref(), after.as_ref())
    }

    fn check(&self, key: &Key, before: Option<&Thing>, after: Option<&Thing>) -> Outcome {
        let goes = before.filter(|b| !b.deleting && after.is_none_or(|a| a.deleting));
        match &*key.resource {
            PACKAGES if goes.is_some() && !self.released.contains(key) => {
                Err(format!("{} was deleted, and not by the user", show(key)))
            }
            REVISIONS => self.check_revision(key, goes, after),
            LOCKS => after.map_or(Ok(()), |lock| self.check_lock(lock)),
            COMPOSITIONS | DEFINITIONS => self.check_brought(key, goes, before, after),
            _ => Ok(()),
        }
    }

    /// At most one revision of a package is active, and that one is not deleted while the package is there.
    fn check_revision(&self, key: &Key, goes: Option<&Thing>, after: Option<&Thing>) -> Outcome {
        if let Some(gone) = goes.filter(|gone| is_active(gone) && !self.released.contains(key)) {
            let package = gone.controller.as_ref().and_then(|uid| self.by_uid.get(uid));
            if package.is_some_and(|package| !self.objects[package].deleting) {
                return Err(format!("{} was deleted while it is active", show(key)));
            }
        }
        let Some(revision) = after.filter(|revision| !revision.deleting && is_active(revision)) else {
            // The Lock has no entry without a revision.
            return match (after, self.objects.get(&Key::new(LOCKS, "", "lock"))) {
                (None, Some(lock)) => self.check_lock(lock),
                _ => Ok(()),
            };
        };
        let mut others = self.revisions_of(package_of(revision)).filter(|(other, r)| {
            *other != key && !r.deleting && is_active(r) && r.controller == revision.controller
        });
        match others.next() {
            Some((other, _)) => Err(format!("{} and {} are both active", show(key), show(other))),
            None => Ok(()),
        }
    }

    /// What is in the Lock exists, and is there once.
    fn check_lock(&self, lock: &Thing) -> Outcome {
        let mut seen = BTreeSet::new();
        for entry in entries(&lock.value) {
            let name = entry["name"].as_str().unwrap_or_default();
            if !seen.insert(name) {
                return Err(format!("{name} is in the Lock twice"));
            }
            if !self.objects.contains_key(&Key::new(REVISIONS, "", name)) {
                return Err(format!("{name} is in the Lock and does not exist"));
            }
        }
        Ok(())
    }

    /// What a package brought is not deleted while the package is there, always has it as an owner, and never has two
    /// controllers.
    fn check_brought(
        &self,
        key: &Key,
        goes: Option<&Thing>,
        before: Option<&Thing>,
        after: Option<&Thing>,
    ) -> Outcome {
        let is_installed =
            |uid: &String| self.by_uid.get(uid).is_some_and(|package| !self.objects[package].deleting);
        let installed = |object: &Thing| packages_owning(object).iter().any(is_installed);
        if goes.is_some_and(installed) && !self.released.contains(key) {
            return Err(format!("{} was deleted while its package is installed", show(key)));
        }
        let Some(after) = after else { return Ok(()) };
        if before.is_some_and(|before| before.uid == after.uid && installed(before)) && !installed(after) {
            return Err(format!("{} has lost its package", show(key)));
        }
        let owners = meta::owner_references(&after.value);
        if owners.iter().filter(|owner| owner.controller == Some(true)).count() > 1 {
            return Err(format!("{} has two controllers", show(key)));
        }
        Ok(())
    }

    /// The revisions of a package.
    pub(crate) fn revisions_of<'l>(&'l self, package: &'l str) -> impl Iterator<Item = (&'l Key, &'l Thing)> {
        let all = self.of(REVISIONS);
        all.filter(move |(_, revision)| package_of(revision) == package)
    }

    /// All objects of a resource.
    pub(crate) fn of<'l>(&'l self, resource: &'l str) -> impl Iterator<Item = (&'l Key, &'l Thing)> {
        self.objects.iter().filter(move |(key, _)| &*key.resource == resource)
    }

    /// The object of a uid.
    pub(crate) fn find(&self, uid: &str) -> Option<&Thing> {
        self.by_uid.get(uid).and_then(|key| self.objects.get(key))
    }
}
