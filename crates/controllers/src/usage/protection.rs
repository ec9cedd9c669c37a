//! Which usages protect an object from being deleted.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use transom_engine::{Change, Cluster, Listing, Observer};
use transom_object::{GroupVersionKind, meta};
use transom_xapi::constants::{annotation, label, owner};
use transom_xapi::usage::{self, Usage, in_use_message};

/// Deletion attempts that may wait to be recorded; further ones are dropped.
const MAX_PENDING_ATTEMPTS: usize = 256;
/// Deletion attempts that are remembered until the object is no longer in use; further ones are only recorded.
const MAX_REMEMBERED_ATTEMPTS: usize = 4096;

/// The refusal while the usages are still being listed.
const STARTING: &str = "This resource is in-use by usage(s) that are not known yet, because the control plane is starting. \
                        Try again in a moment.";

/// The usages that exist, by what they protect. Consulted before objects are deleted; see [`super::webhook`].
pub struct Protection {
    cache: Arc<Cache>,
    attempts: mpsc::Sender<(Value, String)>,
    noted: Mutex<Option<mpsc::Receiver<(Value, String)>>>,
    /// How objects were to be deleted, by uid: noting it on the object takes a moment in which it may become free.
    tried: Mutex<BTreeMap<Box<str>, String>>,
}

impl Default for Protection {
    fn default() -> Self {
        let (attempts, noted) = mpsc::channel(MAX_PENDING_ATTEMPTS);
        Self { cache: Arc::default(), attempts, noted: Mutex::new(Some(noted)), tried: Mutex::default() }
    }
}

impl Protection {
    /// Why an object must not be deleted, if it must not.
    pub(super) fn refusal(&self, object: &Value) -> Option<String> {
        if meta::label(object, label::IN_USE) != Some("true") {
            return None;
        }
        self.cache.lock().refusal(object)
    }

    /// Records on a refused object how it was to be deleted, so that it can be deleted once it is no longer in use.
    pub(super) fn record_attempt(&self, object: &Value, policy: Option<&str>) {
        let policy = policy.unwrap_or("Background");
        let mut tried = self.tried();
        if tried.len() < MAX_REMEMBERED_ATTEMPTS {
            tried.insert(meta::uid(object).into(), policy.to_owned());
        }
        drop(tried);
        if meta::annotation(object, annotation::DELETION_ATTEMPT) != Some(policy) {
            // Best effort: not being able to record it does not make it deletable.
            let _ = self.attempts.try_send((object.clone(), policy.to_owned()));
        }
    }

    fn tried(&self) -> MutexGuard<'_, BTreeMap<Box<str>, String>> {
        self.tried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the propagation policy of a refused deletion.
    pub(super) fn take_attempt(&self, object: &Value) -> Option<String> {
        self.tried().remove(meta::uid(object))
    }

    /// The usages that protect an object, itself being deleted or not.
    pub(super) fn usages_of(&self, object: &Value) -> Vec<Usage> {
        self.cache.lock().usages_of(object)
    }

    pub(super) fn cache(&self) -> Arc<Cache> {
        self.cache.clone()
    }
}

/// The usages, found by what they use: a deletion costs what it has to ask, however many there are.
#[derive(Default)]
pub(super) struct Cache(Mutex<Usages>);

#[derive(Default)]
struct Usages {
    by_uid: BTreeMap<Box<str>, Usage>,
    by_used: HashMap<String, BTreeSet<Box<str>>>,
    /// The kinds of usages of which all are here.
    complete: BTreeSet<GroupVersionKind>,
}

impl Cache {
    fn lock(&self) -> MutexGuard<'_, Usages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Usages {
    fn put(&mut self, uid: &str, usage: Usage) {
        self.take(uid);
        if let Some(used) = usage.key() {
            self.by_used.entry(used).or_default().insert(uid.into());
        }
        self.by_uid.insert(uid.into(), usage);
    }

    fn take(&mut self, uid: &str) {
        let Some(used) = self.by_uid.remove(uid).and_then(|usage| usage.key()) else { return };
        if let Some(uids) = self.by_used.get_mut(&used) {
            uids.remove(uid);
            if uids.is_empty() {
                self.by_used.remove(&used);
            }
        }
    }

    /// Why an object with the label must not be deleted. Until all usages are listed, every object with the label is
    /// refused.
    fn refusal(&self, object: &Value) -> Option<String> {
        if super::kinds().iter().all(|kind| self.complete.contains(kind)) {
            return in_use_message(&self.usages_of(object));
        }
        Some(STARTING.to_owned())
    }

    fn usages_of(&self, object: &Value) -> Vec<Usage> {
        // Usages of the cluster do not look at namespaces.
        let mut uids: BTreeSet<&Box<str>> = BTreeSet::new();
        for namespace in [meta::namespace(object), ""] {
            let used =
                usage::key(meta::api_version(object), meta::kind(object), meta::name(object), namespace);
            uids.extend(self.by_used.get(&used).into_iter().flatten());
        }
        let usages = uids.into_iter().filter_map(|uid| self.by_uid.get(uid));
        usages.filter(|usage| usage.protects(object)).cloned().collect()
    }
}

impl Observer for Cache {
    fn changed(&self, change: &Change<'_>) {
        let Some(seen) = change.object() else { return };
        match change.after.and_then(|after| Usage::deserialize(&*after.object).ok()) {
            Some(usage) => self.lock().put(&seen.uid, usage),
            None => self.lock().take(&seen.uid),
        }
    }

    fn listed(&self, listing: &Listing<'_>) {
        self.lock().complete.insert(listing.gvk.clone());
    }
}

/// Notes attempts to delete on the objects themselves.
pub(super) fn record(cluster: Cluster, protection: &Protection) -> JoinHandle<()> {
    let noted = protection.noted.lock().unwrap_or_else(PoisonError::into_inner).take();
    tokio::spawn(async move {
        let Some(mut noted) = noted else { return };
        while let Some((object, policy)) = noted.recv().await {
            let patch = json!({"metadata": {"annotations": {annotation::DELETION_ATTEMPT: policy}}});
            if let Err(e) = cluster.merge_patch(&object, &patch, owner::DEFAULT).await {
                tracing::debug!(error = %e, "an attempt to delete could not be noted");
            }
        }
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    impl Protection {
        /// How many attempts wait to be recorded on their objects.
        pub(in super::super) fn pending_attempts(&self) -> usize {
            self.noted.lock().unwrap().as_ref().unwrap().len()
        }
    }

    /// Makes these usages known, and no others exist.
    pub(in super::super) fn complete<const N: usize>(protection: &Protection, usages: [(&str, Usage); N]) {
        let mut known = protection.cache.lock();
        known.complete.extend(crate::usage::kinds());
        usages.into_iter().for_each(|(uid, usage)| known.put(uid, usage));
    }

    pub(in super::super) fn usage(kind: &str, namespace: &str, name: &str, used: &str) -> Usage {
        let of = json!({"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": used}});
        let metadata = json!({"name": name, "namespace": namespace});
        Usage::deserialize(json!({"kind": kind, "metadata": metadata, "spec": {"of": of}})).unwrap()
    }

    #[test]
    fn usages_are_found_by_what_they_use() {
        let mut usages = Usages::default();
        usages.put("1", usage("Usage", "here", "a", "map"));
        usages.put("2", usage("Usage", "there", "b", "map"));
        usages.put("3", usage("ClusterUsage", "", "c", "map"));
        usages.put("4", usage("Usage", "here", "d", ""));
        let found = |usages: &Usages, namespace: &str, name: &str| {
            let metadata = json!({"namespace": namespace, "name": name});
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            usages.usages_of(&object).iter().map(|usage| usage.metadata.name.clone()).collect::<String>()
        };
        assert_eq!(found(&usages, "here", "map"), "ac");
        assert_eq!(found(&usages, "there", "map"), "bc");
        assert_eq!((found(&usages, "", "map"), found(&usages, "here", "other")), ("c".into(), String::new()));
        // What it uses was not known at first, or is another now.
        usages.put("4", usage("Usage", "here", "d", "map"));
        usages.put("1", usage("Usage", "here", "a", "other"));
        assert_eq!(
            (found(&usages, "here", "map"), found(&usages, "here", "other")),
            ("cd".into(), "a".into())
        );
        for uid in ["1", "2", "3", "4", "4"] {
            usages.take(uid);
        }
        assert!(usages.by_uid.is_empty() && usages.by_used.is_empty());
    }
}
