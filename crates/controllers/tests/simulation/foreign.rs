//! Objects of others, under names that composite resources want.

use crate::simulation::platform::HOME;
use serde_json::json;
use transom_engine::{Cluster, DeleteOptions};
use transom_object::{GroupVersionKind, meta};
use transom_store::Key;

/// Where the part of a root is that has a name which others may take.
pub(super) fn place(root: &Key) -> Key {
    let namespace = if root.object.namespace.is_empty() { HOME } else { &root.object.namespace };
    Key::new("configmaps", namespace, &format!("fixed-{}", root.object.name))
}

/// The place that a request is about, if others may take it.
pub(super) fn place_in(path: &str) -> Option<Key> {
    let (namespace, name) = path.strip_prefix("/api/v1/namespaces/")?.split_once("/configmaps/")?;
    name.starts_with("fixed-").then(|| Key::new("configmaps", namespace, name))
}

/// Puts an object there; the revision at which it was created, unless another client created it first.
pub(super) async fn occupy(user: &Cluster, key: &Key) -> Option<u64> {
    let (namespace, name) = (&*key.object.namespace, &*key.object.name);
    let landlord = user.get(&GroupVersionKind::new("", "v1", "Namespace"), "", namespace).await;
    let landlord = landlord.ok().flatten().unwrap_or_default();
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": namespace,
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Namespace", "name": namespace, "uid": meta::uid(&landlord),
                "controller": true,
            }],
        },
        "data": {"of": "someone else"},
    });
    let created = user.create(&object, "kubectl").await.ok()?;
    meta::resource_version(&created).parse().ok()
}

/// Deletes what is there and takes its place.
pub(super) async fn oust(user: &Cluster, key: &Key) -> Option<u64> {
    let kind = GroupVersionKind::new("", "v1", "ConfigMap");
    let options = DeleteOptions { propagation: None, uid: None };
    user.delete(&kind, &key.object.namespace, &key.object.name, options).await.ok()?;
    occupy(user, key).await
}
