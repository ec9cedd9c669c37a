//! Which kinds the server serves, and at which paths: a cache of discovery, cleared when a definition changes.

use super::paths;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_object::GroupVersionKind;

/// How a kind is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The kind.
    pub gvk: GroupVersionKind,
    /// Its name in paths.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// The path of the objects in one namespace or (empty) in all.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let base = paths::group_version(&self.gvk.group, &self.gvk.version);
        if namespace.is_empty() || !self.namespaced {
            format!("{base}/{}", self.plural)
        } else {
            format!("{base}/namespaces/{}/{}", paths::segment(namespace), self.plural)
        }
    }

    pub(crate) fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.collection(namespace), paths::segment(name))
    }
}

#[derive(Default)]
pub(super) struct Kinds {
    known: Mutex<HashMap<GroupVersionKind, Arc<Kind>>>,
    /// Held during a discovery request for a path.
    asking: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Kinds {
    fn lock(&self) -> MutexGuard<'_, HashMap<GroupVersionKind, Arc<Kind>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn asking(&self, path: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        asking.entry(path.to_owned()).or_default().clone()
    }

    pub(super) fn find(&self, gvk: &GroupVersionKind) -> Option<Arc<Kind>> {
        self.lock().get(gvk).cloned()
    }

    pub(super) fn forget(&self, group: &str) {
        self.lock().retain(|gvk, _| gvk.group != group);
    }

    /// Reads an APIResourceList.
    pub(super) fn learn(&self, of: &GroupVersionKind, list: &Value) {
        let mut kinds = self.lock();
        for resource in list.get("resources").and_then(Value::as_array).into_iter().flatten() {
            let text = |field: &str| resource.get(field).and_then(Value::as_str).unwrap_or_default();
            let (plural, kind) = (text("name"), text("kind"));
            // A name with a slash is a subresource, whose kind may belong to another group.
            if plural.is_empty() || plural.contains('/') {
                continue;
            }
            let gvk = GroupVersionKind::new(&*of.group, &*of.version, kind);
            let namespaced = resource.get("namespaced").and_then(Value::as_bool).unwrap_or_default();
            let kind = Kind { gvk: gvk.clone(), plural: plural.to_owned(), namespaced };
            kinds.insert(gvk, Arc::new(kind));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn discovery_is_read_and_forgotten_by_group() {
        let kinds = Kinds::default();
        let gvk = GroupVersionKind::new("apps", "v1", "Deployment");
        kinds.learn(
            &gvk,
            &json!({"resources": [
                {"name": "deployments", "kind": "Deployment", "namespaced": true},
                {"name": "deployments/scale", "kind": "Scale", "namespaced": true, "group": "autoscaling"},
            ]}),
        );
        let kind = kinds.find(&gvk).unwrap();
        assert_eq!(kind.object("n", "a"), "/apis/apps/v1/namespaces/n/deployments/a");
        assert_eq!(kind.collection(""), "/apis/apps/v1/deployments");
        assert_eq!(kinds.find(&GroupVersionKind::new("apps", "v1", "Scale")), None);
        kinds.forget("apps");
        assert_eq!(kinds.find(&gvk), None);
    }

    #[test]
    fn the_core_group_has_its_own_root() {
        let kind = Kind {
            gvk: GroupVersionKind::new("", "v1", "Node"),
            plural: "nodes".to_owned(),
            namespaced: false,
        };
        assert_eq!(kind.object("ignored", "a"), "/api/v1/nodes/a");
    }
}
