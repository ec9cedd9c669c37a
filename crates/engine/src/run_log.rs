//! What one run of a reconciler read and wrote, so that the changes it caused do not wake its key again.

use super::seen_versions::{ObjectHash, SeenVersions, version};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use transom_object::{GroupVersionKind, meta};

/// Collects what one run reads and writes.
#[derive(Default)]
pub struct RunLog {
    seen: Mutex<SeenVersions>,
    kinds: Mutex<HashMap<ObjectHash, Kind>>,
    wrote: AtomicBool,
}

/// What a run has seen of a kind as a whole.
#[derive(Default)]
struct Kind {
    /// The newest version of any object that was read.
    newest: u64,
    /// The oldest version at which objects were listed or selected by labels.
    listed: Option<u64>,
}

impl RunLog {
    fn lock(&self) -> MutexGuard<'_, SeenVersions> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<ObjectHash, Kind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run decides on this version of the object.
    pub fn read(&self, object: &Value) {
        let Some(gvk) = meta::gvk(object) else { return };
        let version = version(meta::resource_version(object));
        {
            let mut kinds = self.kinds();
            let kind = kinds.entry(whole(&gvk)).or_default();
            kind.newest = kind.newest.max(version);
            // The object changed after the run listed its kind, perhaps so that it would be in the list now. The
            // watch event of that change must wake the key, so the version does not count as seen.
            if kind.listed.is_some_and(|listed| version > listed) {
                return;
            }
        }
        self.lock().read(ObjectHash::new(&gvk, meta::namespace(object), meta::name(object)), version);
    }

    /// The run decides on which objects of a kind existed at a version.
    pub fn listed(&self, gvk: &GroupVersionKind, version: u64) {
        let mut kinds = self.kinds();
        let kind = kinds.entry(whole(gvk)).or_default();
        kind.listed = Some(kind.listed.map_or(version, |listed| listed.min(version)));
    }

    /// The newest version of any object of a kind that the run has read.
    pub fn newest(&self, gvk: &GroupVersionKind) -> u64 {
        self.kinds().get(&whole(gvk)).map_or(0, |kind| kind.newest)
    }

    /// The run wrote this object; it is given as the server returned it.
    pub fn wrote(&self, object: &Value) {
        self.changed();
        if let Some(hash) = hash(object) {
            self.lock().wrote(hash, version(meta::resource_version(object)));
        }
    }

    /// The run changed something without learning its version: it deleted an object.
    pub fn changed(&self) {
        self.wrote.store(true, Ordering::Relaxed);
    }

    /// Whether the run changed anything.
    pub fn has_written(&self) -> bool {
        self.wrote.load(Ordering::Relaxed)
    }

    /// Ends the log and returns the versions that the run has seen.
    pub(super) fn take_seen(&self) -> SeenVersions {
        std::mem::take(&mut *self.lock())
    }
}

/// A kind as a whole.
fn whole(gvk: &GroupVersionKind) -> ObjectHash {
    ObjectHash::new(gvk, "", "")
}

fn hash(object: &Value) -> Option<ObjectHash> {
    let gvk = meta::gvk(object)?;
    Some(ObjectHash::new(&gvk, meta::namespace(object), meta::name(object)))
}

#[cfg(test)]
mod tests {
    use super::super::seen_versions::{ChangeNotice, Via};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_after_a_list_of_its_kind_is_not_seen() {
        let gvk = GroupVersionKind::new("", "v1", "ConfigMap");
        let object = |name: &str, version: u64| {
            let metadata = json!({"name": name, "resourceVersion": version.to_string()});
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        };
        let seen = |log: &RunLog, name: &str, version| {
            let object = ObjectHash::new(&gvk, "", name);
            log.lock().includes(ChangeNotice { object, version, via: Via::Watch })
        };
        let log = RunLog::default();
        log.read(&object("before", 7));
        assert_eq!(log.newest(&gvk), 7);
        log.listed(&gvk, 8);
        log.listed(&gvk, 10);
        log.read(&object("old", 8));
        log.read(&object("new", 9));
        assert!(seen(&log, "before", 7) && seen(&log, "old", 8));
        assert!(!seen(&log, "new", 9), "the first list may have missed it");
        assert_eq!((log.newest(&gvk), log.newest(&GroupVersionKind::new("", "v1", "Secret"))), (9, 0));
        log.wrote(&object("new", 11));
        assert!(seen(&log, "new", 11), "the run's own writes count in any case");
    }
}
