//! What must be of packages when all is quiet, computed from what the user did. Which packages the controllers installed
//! because others depend on them, and when, is read from what exists: they stay when no package depends on them any longer.

use super::catalogue::{self, EDGE, EDGES, Image};
use super::ledger::{PackageLedger, entries, is_active, packages_owning};
use super::{COMPOSITIONS, DEFINITIONS, LOCKS, PACKAGES, REVISIONS};
use crate::simulation::ledger::Thing;
use crate::simulation::model::{Outcome, condition, differ, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use transom_object::meta;
use transom_packages::constraint::VersionConstraint;
use transom_store::Key;

/// A package that the user installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedPackage {
    pub tag: &'static str,
    /// Whether the tag is looked up again and again.
    pub always: bool,
    pub history_limit: i64,
    pub paused: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PackageModel {
    /// By the last part of the source.
    pub wanted: BTreeMap<&'static str, WantedPackage>,
    /// Where the tag is that moves.
    pub edge: u64,
}

pub(crate) fn key_of(name: &str) -> Key {
    Key::new(PACKAGES, "", &catalogue::object_name(name))
}

/// A package that exists, with the image that its current revision was made from.
struct Installed<'l> {
    package: &'l Thing,
    revision: &'l Thing,
    image: Image,
    tag: &'l str,
}

impl PackageModel {
    /// Whether packages are looked up while nothing happens.
    pub(crate) fn polls(&self) -> bool {
        self.wanted.values().any(|wanted| wanted.always && !wanted.paused)
    }

    /// Whether everything is as it must be; if not, one thing that is not.
    pub(crate) fn compare(&self, ledger: &PackageLedger) -> Outcome {
        let mut installed: BTreeMap<&str, Installed<'_>> = BTreeMap::new();
        for (name, wanted) in &self.wanted {
            let key = key_of(name);
            let Some(package) = ledger.objects.get(&key) else { return differ(&key, "is missing") };
            ensure(!package.deleting, &key, "is being deleted")?;
            let image = format!("{}:{}", catalogue::source(name), wanted.tag);
            ensure(package.value["spec"]["package"] == *image, &key, "has another image")?;
        }
        for (key, package) in ledger.of(PACKAGES) {
            let name = key.object.name.strip_prefix("acme-").unwrap_or_default();
            let Some(name) = catalogue::NAMES.into_iter().find(|known| *known == name) else {
                return differ(key, "is not wanted");
            };
            let wanted = self.wanted.get(name);
            if wanted.is_some_and(|wanted| wanted.paused) {
                let reason = &condition(&package.value, "Synced")["reason"];
                ensure(reason == "ReconcilePaused", key, "does not say that it is paused")?;
                continue;
            }
            installed.insert(name, self.compare_package(ledger, key, package, name, wanted)?);
        }
        compare_lock(ledger)?;
        for (name, found) in &installed {
            compare_health(ledger, &key_of(name), found)?;
        }
        compare_remains(ledger)
    }

    /// The images that the current revision of a package may have been made from.
    fn images(&self, name: &str, tag: &str, wanted: Option<&WantedPackage>) -> Vec<Image> {
        let moved = tag == EDGE && !wanted.is_some_and(|wanted| wanted.always);
        let edges = if moved { 0..EDGES } else { self.edge..self.edge + 1 };
        edges.filter_map(|edge| catalogue::at(name, tag, edge)).collect()
    }

    /// A package has one active revision, made from its image, and no more others than it may have.
    fn compare_package<'l>(
        &self,
        ledger: &'l PackageLedger,
        key: &Key,
        package: &'l Thing,
        name: &str,
        wanted: Option<&WantedPackage>,
    ) -> Result<Installed<'l>, String> {
        let status = &package.value["status"];
        let spec = &package.value["spec"];
        ensure(status["currentIdentifier"] == spec["package"], key, "has another image installed")?;
        ensure(condition(&package.value, "Installed")["status"] == "True", key, "is not installed")?;
        let tag = spec["package"].as_str().and_then(|image| image.rsplit(':').next()).unwrap_or_default();
        let current = status["currentRevision"].as_str().unwrap_or_default();
        let Some(revision) = ledger.objects.get(&Key::new(REVISIONS, "", current)) else {
            return Err(format!("{}: has no revision {current}", key.object.name));
        };
        ensure(!revision.deleting && is_active(revision), key, format!("{current} is not active"))?;
        ensure(revision.controller.as_ref() == Some(&package.uid), key, format!("{current} is not its own"))?;
        let names = |image: &Image| {
            transom_packages::names::revision_name(&key.object.name, &image.digest()) == current
        };
        let Some(image) = self.images(name, tag, wanted).into_iter().find(names) else {
            return Err(format!("{}: {current} is not a revision of {tag}", key.object.name));
        };
        let number = |revision: &Thing| revision.value["spec"]["revision"].as_i64();
        let mut others = 0;
        for (other, old) in
            ledger.revisions_of(&key.object.name).filter(|(other, _)| *other.object.name != *current)
        {
            ensure(!is_active(old), other, "is active, but not current")?;
            ensure(number(old) < number(revision), other, "has a later number than the current one")?;
            ensure(old.controller.as_ref() == Some(&package.uid), other, "has no package")?;
            others += 1;
        }
        let limit = wanted.map_or(1, |wanted| wanted.history_limit);
        ensure(limit == 0 || others <= limit, key, format!("has {others} old revisions"))?;
        Ok(Installed { package, revision, image, tag })
    }
}

/// The Lock has exactly the active revisions, and all that they depend on is installed.
fn compare_lock(ledger: &PackageLedger) -> Outcome {
    let key = Key::new(LOCKS, "", "lock");
    let lock = ledger.objects.get(&key).map(|lock| (*lock.value).clone()).unwrap_or_default();
    let locked: BTreeSet<&str> = entries(&lock).filter_map(|entry| entry["name"].as_str()).collect();
    let active: BTreeSet<&str> =
        ledger.of(REVISIONS).filter(|(_, r)| is_active(r)).map(|(key, _)| &*key.object.name).collect();
    ensure(locked == active, &key, format!("has {locked:?}, active are {active:?}"))?;
    if lock["packages"].as_array().is_none_or(Vec::is_empty) {
        ensure(meta::finalizers(&lock).is_empty(), &key, "has a finalizer and no packages")?;
        return ensure(condition(&lock, "Resolved").is_null(), &key, "says something about nothing");
    }
    for entry in entries(&lock) {
        for dependency in entry["dependencies"].as_array().into_iter().flatten() {
            let source = dependency["package"].as_str().unwrap_or_default();
            let name = source.rsplit('/').next().unwrap_or_default();
            ensure(ledger.objects.contains_key(&key_of(name)), &key, format!("{source} is not installed"))?;
        }
    }
    let mut all = entries(&lock);
    let healthy = all.all(|entry| is_resolved(&lock, entry["name"].as_str().unwrap_or_default()));
    let resolved = condition(&lock, "Resolved")["status"] == "True";
    ensure(resolved || !healthy, &key, "is not resolved")
}

fn entry_of<'l>(lock: &'l Value, source: &Value) -> Option<&'l Value> {
    entries(lock).find(|entry| entry["source"] == *source)
}

/// Whether all that a revision depends on, directly or not, is in the Lock, and what it depends on directly in versions that it
/// accepts.
fn is_resolved(lock: &Value, revision: &str) -> bool {
    let Some(entry) = entries(lock).find(|entry| entry["name"] == revision) else { return false };
    let dependencies = |entry: &Value| entry["dependencies"].as_array().cloned().unwrap_or_default();
    let accepted = dependencies(entry).iter().all(|dependency| {
        let constraint = VersionConstraint::parse(dependency["constraints"].as_str().unwrap_or_default());
        let found = entry_of(lock, &dependency["package"]);
        found.zip(constraint.ok()).is_some_and(|(found, constraint)| {
            constraint.allows(found["version"].as_str().unwrap_or_default())
        })
    });
    let (mut seen, mut queue) = (BTreeSet::new(), vec![entry]);
    while let Some(entry) = queue.pop() {
        for dependency in dependencies(entry) {
            match entry_of(lock, &dependency["package"]) {
                None => return false,
                Some(next) => {
                    if seen.insert(dependency["package"].to_string()) {
                        queue.push(next);
                    }
                }
            }
        }
    }
    accepted
}

/// A package whose dependencies are there controls all that it brings, and says that it is healthy; any other says that it is
/// not.
fn compare_health(ledger: &PackageLedger, key: &Key, found: &Installed<'_>) -> Outcome {
    let lock = ledger.objects.get(&Key::new(LOCKS, "", "lock"));
    let lock = lock.map(|lock| (*lock.value).clone()).unwrap_or_default();
    let name = meta::name(&found.revision.value);
    let Some(entry) = entries(&lock).find(|entry| entry["name"] == name) else {
        return differ(key, "is not in the Lock");
    };
    ensure(entry["version"] == found.tag, key, format!("is in the Lock as {}", entry["version"]))?;
    let locked = entry["dependencies"].as_array().map_or(0, Vec::len);
    ensure(locked == found.image.dependencies.len(), key, "has other dependencies in the Lock")?;
    let expected = if is_resolved(&lock, name) { "True" } else { "False" };
    let healthy = &condition(&found.revision.value, "RevisionHealthy")["status"];
    ensure(healthy == expected, key, format!("RevisionHealthy of {name} is {healthy}, not {expected}"))?;
    let healthy = &condition(&found.package.value, "Healthy")["status"];
    ensure(healthy == expected, key, format!("Healthy is {healthy}, not {expected}"))?;
    if expected == "False" {
        return Ok(());
    }
    let references = found.revision.value["status"]["objectRefs"].as_array().cloned().unwrap_or_default();
    let objects = found.image.objects();
    ensure(references.len() == objects.len(), key, format!("refers to {} objects", references.len()))?;
    for wanted in objects {
        let resource = if meta::kind(&wanted) == "Composition" { COMPOSITIONS } else { DEFINITIONS };
        let place = Key::new(resource, "", meta::name(&wanted));
        let Some(object) = ledger.objects.get(&place) else { return differ(&place, "is missing") };
        ensure(!object.deleting, &place, "is being deleted")?;
        let version = meta::label(&object.value, "version");
        ensure(version == Some(found.image.version), &place, format!("is of {version:?}"))?;
        ensure(
            object.value["spec"]["pipeline"] == wanted["spec"]["pipeline"],
            &place,
            "has another pipeline",
        )?;
        ensure(
            object.controller.as_ref() == Some(&found.revision.uid),
            &place,
            format!("is not controlled by {name}"),
        )?;
        ensure(
            packages_owning(object).contains(&found.package.uid),
            &place,
            "does not belong to its package",
        )?;
        ensure(references.iter().any(|r| r["uid"] == *object.uid), key, "refers to an object that is gone")?;
    }
    Ok(())
}

/// Nothing is left of packages that are gone, and inactive revisions control nothing.
fn compare_remains(ledger: &PackageLedger) -> Outcome {
    for (key, revision) in ledger.of(REVISIONS) {
        let package = revision.controller.as_ref().and_then(|uid| ledger.find(uid));
        ensure(package.is_some() && !revision.deleting, key, "is left over")?;
    }
    for (key, object) in ledger.of(COMPOSITIONS).chain(ledger.of(DEFINITIONS)) {
        let owners = packages_owning(object);
        let owned = owners.iter().any(|uid| ledger.find(uid).is_some());
        // The platform's own have no package.
        ensure(owners.is_empty() || owned && !object.deleting, key, "is left over")?;
        let controller = object.controller.as_ref().and_then(|uid| ledger.find(uid));
        ensure(controller.is_none_or(is_active), key, "is controlled by an inactive revision")?;
    }
    Ok(())
}
