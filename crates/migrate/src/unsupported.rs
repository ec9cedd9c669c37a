//! Objects of Crossplane that Transom does nothing for.

use std::collections::BTreeMap;
use transom_engine::{Cluster, Result};
use transom_object::{GroupVersionKind, meta};

/// An object that is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// `Kind namespace/name`.
    pub object: String,
    /// What is not done.
    pub reason: &'static str,
}

/// Kinds, and what is not done for them.
const KINDS: &[(&str, &str, &str, &str)] = &[
    ("ops.crossplane.io", "v1alpha1", "Operation", "Operations are not run"),
    ("ops.crossplane.io", "v1alpha1", "CronOperation", "Operations are not run"),
    ("ops.crossplane.io", "v1alpha1", "WatchOperation", "Operations are not run"),
    ("secrets.crossplane.io", "v1alpha1", "StoreConfig", "connection details are published to Secrets only"),
];

/// The objects of a control plane for which nothing is done.
pub async fn unsupported(cluster: &Cluster) -> Result<Vec<Unsupported>> {
    let mut found = Vec::new();
    for (group, version, kind, reason) in KINDS.iter().copied() {
        let gvk = GroupVersionKind::new(group, version, kind);
        for object in existing(cluster, &gvk).await? {
            found.push(Unsupported { object: named(kind, &object), reason });
        }
    }
    let definitions =
        GroupVersionKind::new("apiextensions.crossplane.io", "v1", "CompositeResourceDefinition");
    for definition in existing(cluster, &definitions).await? {
        if definition["spec"]["conversion"]["strategy"] == "Webhook" {
            let reason = "its conversion webhook is called by the API server, and runs elsewhere";
            found.push(Unsupported { object: named("CompositeResourceDefinition", &definition), reason });
        }
    }
    Ok(found)
}

/// The objects of a kind; none if the kind is not served.
async fn existing(cluster: &Cluster, gvk: &GroupVersionKind) -> Result<Vec<serde_json::Value>> {
    match cluster.list(gvk, "", &BTreeMap::new()).await {
        Err(e) if e.is_unknown_kind() || e.is_not_found() => Ok(Vec::new()),
        listed => listed,
    }
}

fn named(kind: &str, object: &serde_json::Value) -> String {
    let (namespace, name) = (meta::namespace(object), meta::name(object));
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}
