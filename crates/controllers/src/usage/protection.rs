//! Who protects what: asked before an object is deleted.

use crate::cluster::Cluster;
use crate::engine::{Change, Observer};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use transom_object::meta;
use transom_xapi::constants::{annotation, label, owner};
use transom_xapi::usage::{Usage, in_use_message};

/// Attempts that may wait to be noted; more are not.
const BACKLOG: usize = 256;
/// Attempts that are remembered until what was in use is free.
const REMEMBERED: usize = 4096;

/// The usages that exist. Give it to whoever admits deletions.
pub struct Protection {
    shelf: Arc<Shelf>,
    attempts: mpsc::Sender<(Value, String)>,
    noted: Mutex<Option<mpsc::Receiver<(Value, String)>>>,
    /// How objects were to be deleted, by uid: noting it on the object takes a moment in which it may become free.
    tried: Mutex<BTreeMap<Box<str>, String>>,
}

impl Default for Protection {
    fn default() -> Self {
        let (attempts, noted) = mpsc::channel(BACKLOG);
        Self { shelf: Arc::default(), attempts, noted: Mutex::new(Some(noted)), tried: Mutex::default() }
    }
}

impl Protection {
    /// Why an object must not be deleted, if it must not. `policy` is how it was to be deleted: that is noted on the
    /// object, so that it can happen later.
    pub fn refusal(&self, object: &Value, policy: Option<&str>) -> Option<String> {
        if meta::label(object, label::IN_USE) != Some("true") {
            return None;
        }
        let why = in_use_message(&self.usages_of(object))?;
        let policy = policy.unwrap_or("Background");
        let mut tried = self.tried();
        if tried.len() < REMEMBERED {
            tried.insert(meta::uid(object).into(), policy.to_owned());
        }
        drop(tried);
        if meta::annotation(object, annotation::DELETION_ATTEMPT) != Some(policy) {
            // Best effort: not being able to note it does not make it deletable.
            let _ = self.attempts.try_send((object.clone(), policy.to_owned()));
        }
        Some(why)
    }

    fn tried(&self) -> MutexGuard<'_, BTreeMap<Box<str>, String>> {
        self.tried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How somebody tried to delete an object while it was in use. It is forgotten.
    pub(super) fn take_attempt(&self, object: &Value) -> Option<String> {
        self.tried().remove(meta::uid(object))
    }

    /// The usages that protect an object, itself being deleted or not.
    pub(super) fn usages_of(&self, object: &Value) -> Vec<Usage> {
        self.shelf.lock().values().filter(|usage| usage.protects(object)).cloned().collect()
    }

    pub(super) fn shelf(&self) -> Arc<Shelf> {
        self.shelf.clone()
    }
}

/// Usages by uid.
#[derive(Default)]
pub(super) struct Shelf(Mutex<BTreeMap<Box<str>, Usage>>);

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Usage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Shelf {
    fn changed(&self, change: &Change<'_>) {
        let Some(seen) = change.object() else { return };
        match change.after.and_then(|after| Usage::deserialize(&*after.object).ok()) {
            Some(usage) => drop(self.lock().insert(seen.uid.clone(), usage)),
            None => drop(self.lock().remove(&seen.uid)),
        }
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
