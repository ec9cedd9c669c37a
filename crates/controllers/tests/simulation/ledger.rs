//! What exists, learnt from the store's own log of changes, and what must never happen between any two of them.

use crate::simulation::functions::ledger::FunctionLedger;
use crate::simulation::packages::ledger::PackageLedger;
use crate::simulation::platform::{CLAIMS, Sort};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transom_object::meta;
use transom_store::{Entry, Event, Key, Store, Watch};
use transom_xapi::constants::annotation::COMPOSITION_RESOURCE_NAME;

/// An object as it is.
#[derive(Clone, Debug)]
pub(super) struct Thing {
    pub uid: String,
    pub revision: u64,
    /// The uid of its controller.
    pub controller: Option<String>,
    /// Its name in a composition.
    pub part: Option<String>,
    pub deleting: bool,
    pub value: Arc<Value>,
}

/// The names of parts that were wanted of a root (a composite resource, or a claim) at some time of late.
pub(super) type Wishes = BTreeMap<Key, Vec<BTreeSet<String>>>;

pub(super) struct Ledger {
    watch: Watch,
    pub objects: BTreeMap<Key, Thing>,
    /// What each uid controls.
    children: BTreeMap<String, BTreeSet<Key>>,
    by_uid: BTreeMap<String, Key>,
    pub wishes: Wishes,
    /// Roots that may still be composed by what the user wanted of them before.
    pub lagging: BTreeSet<Key>,
    /// What the user deletes.
    pub released: BTreeSet<Key>,
    pub packages: PackageLedger,
    pub functions: FunctionLedger,
    /// The first thing that should not have happened.
    pub violation: Option<String>,
}

/// The kind of composite resource that is stored under a name.
pub(super) fn sort_of(resource: &str) -> Option<Sort> {
    Sort::ALL.into_iter().find(|s| s.resource() == resource)
}

fn is_followed(resource: &str) -> bool {
    matches!(resource, "configmaps" | "secrets" | CLAIMS) || sort_of(resource).is_some()
}

impl Ledger {
    pub(super) fn new(store: &Store) -> Self {
        Self {
            watch: store.watch_all(store.revision()).unwrap(),
            objects: BTreeMap::new(),
            children: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            wishes: Wishes::new(),
            lagging: BTreeSet::new(),
            released: BTreeSet::new(),
            packages: PackageLedger::default(),
            functions: FunctionLedger::default(),
            violation: None,
        }
    }

    /// Reads the log to its end and checks each change.
    pub(super) fn follow(&mut self) {
        while let Some(event) = self.watch.try_next() {
            if is_followed(&event.key.resource) {
                self.note(&event);
            }
            let wrong = self.packages.note(&event);
            self.report(event.revision, wrong);
            let wrong = self.functions.note(&event);
            self.report(event.revision, wrong);
        }
    }

    /// Checks a call of a revision of the simulated function.
    pub(super) fn called(&mut self, revision: &str, input: &Value, released: bool) {
        self.follow();
        if let (Err(why), None) = (self.functions.called(revision, input, released), &self.violation) {
            self.violation = Some(why);
        }
    }

    fn note(&mut self, event: &Event) {
        let key = &event.key;
        let before = self.objects.remove(key);
        if let Some(before) = &before {
            self.by_uid.remove(&before.uid);
            if let Some(siblings) = before.controller.as_ref().and_then(|c| self.children.get_mut(c)) {
                siblings.remove(key);
            }
        }
        let after = event.new.as_ref().map(|entry| read(entry));
        if let Some(after) = &after {
            self.by_uid.insert(after.uid.clone(), key.clone());
            if let Some(controller) = &after.controller {
                self.children.entry(controller.clone()).or_default().insert(key.clone());
            }
            self.objects.insert(key.clone(), after.clone());
        }
        let wrong = self.check(key, before.as_ref(), after.as_ref());
        self.report(event.revision, wrong);
    }

    /// Keeps the first thing that should not have happened.
    fn report(&mut self, revision: u64, wrong: Result<(), String>) {
        if let (Err(why), None) = (wrong, &self.violation) {
            self.violation = Some(format!("revision {revision}: {why}"));
        }
    }

    fn check(&self, key: &Key, before: Option<&Thing>, after: Option<&Thing>) -> Result<(), String> {
        let goes = after.is_none_or(|a| a.deleting) && before.is_some_and(|b| !b.deleting);
        if let Some(before) = before.filter(|b| goes && b.part.is_some()) {
            self.may_go(key, before)?;
        }
        let Some(after) = after else { return Ok(()) };
        if !after.deleting && after.part.is_some() {
            self.is_referenced(key, after)?;
            if before.is_none() {
                self.is_single(key, after)?;
            }
        }
        if let Some(sort) = sort_of(&key.resource) {
            for child in self.children_of(&after.uid) {
                self.is_referenced(child, &self.objects[child])?;
            }
            if sort == Sort::Thing && !after.deleting {
                self.is_bound_once(key, after)?;
            }
        }
        Ok(())
    }

    /// Everything composed that an object controls and that is not being deleted.
    pub(super) fn children_of(&self, uid: &str) -> impl Iterator<Item = &Key> {
        let all = self.children.get(uid).into_iter().flatten();
        all.filter(|key| {
            let child = &self.objects[*key];
            child.part.is_some() && !child.deleting
        })
    }

    /// Only references say what exists: what is composed is referenced before it exists and until it is deleted.
    fn is_referenced(&self, key: &Key, object: &Thing) -> Result<(), String> {
        let Some(owner) = object.controller.as_ref() else { return Ok(()) };
        let Some((owner, xr)) = self.by_uid.get(owner).map(|k| (k, &self.objects[k])) else {
            // Its owner is gone, and garbage collection is about to see it.
            return Ok(());
        };
        let Some(sort) = sort_of(&owner.resource) else { return Ok(()) };
        let references = sort.machinery(&xr.value)["resourceRefs"].as_array();
        let is_it = |r: &&Value| {
            let in_place = r["namespace"].as_str().is_none_or(|n| n == &*key.object.namespace);
            r["name"] == *key.object.name && r["kind"] == object.value["kind"] && in_place
        };
        if references.into_iter().flatten().any(|r| is_it(&r)) {
            return Ok(());
        }
        Err(format!("{} exists, but {} does not refer to it", show(key), show(owner)))
    }

    fn is_single(&self, key: &Key, object: &Thing) -> Result<(), String> {
        let Some(owner) = &object.controller else { return Ok(()) };
        let twin = self.children_of(owner).find(|k| *k != key && self.objects[*k].part == object.part);
        match twin {
            Some(twin) => Err(format!("{} and {} are the same part of one", show(key), show(twin))),
            None => Ok(()),
        }
    }

    fn is_bound_once(&self, key: &Key, xr: &Thing) -> Result<(), String> {
        let claim = &xr.value["spec"]["claimRef"];
        if claim.is_null() {
            return Ok(());
        }
        let others =
            self.objects.iter().filter(|(k, o)| k.resource == key.resource && *k != key && !o.deleting);
        for (other, object) in others {
            if object.value["spec"]["claimRef"] == *claim {
                return Err(format!("{} and {} are bound to one claim", show(key), show(other)));
            }
        }
        Ok(())
    }

    /// Something composed is only deleted if its owner goes, the user deletes it, or there was a time of late when it
    /// was not wanted. A function that failed does not excuse it.
    fn may_go(&self, key: &Key, object: &Thing) -> Result<(), String> {
        if self.released.contains(key) {
            return Ok(());
        }
        let (Some(owner), Some(part)) = (&object.controller, &object.part) else { return Ok(()) };
        let Some((owner, xr)) = self.by_uid.get(owner).map(|k| (k, &self.objects[k])) else { return Ok(()) };
        if xr.deleting {
            return Ok(());
        }
        let claim = &xr.value["spec"]["claimRef"];
        let root = match (claim["namespace"].as_str(), claim["name"].as_str()) {
            (Some(namespace), Some(name)) => Key::new(CLAIMS, namespace, name),
            _ => owner.clone(),
        };
        match self.wishes.get(&root) {
            _ if self.lagging.contains(&root) => Ok(()),
            Some(wishes) if wishes.iter().all(|parts| parts.contains(part)) => {
                Err(format!("{} was deleted although it was wanted all the time", show(key)))
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn read(entry: &Entry) -> Thing {
    let mut value: Value = serde_json::from_slice(&entry.body).unwrap();
    if let Some(metadata) = meta::metadata_mut(&mut value) {
        metadata.remove("managedFields");
    }
    Thing {
        uid: entry.header.uid.clone(),
        revision: entry.revision,
        controller: entry.header.owners.iter().find(|o| o.controller == Some(true)).map(|o| o.uid.clone()),
        part: meta::annotation(&value, COMPOSITION_RESOURCE_NAME).map(str::to_owned),
        deleting: entry.header.deleting,
        value: Arc::new(value),
    }
}

/// An object's place, in a word.
pub(super) fn show(key: &Key) -> String {
    format!("{}/{}/{}", key.resource, key.object.namespace, key.object.name)
}
