//! Everything of a control plane: what users installed, and what was composed from it, with all identities that are kept.
//!
//! The order is that in which it can be made again: definitions before their instances, owners before what they own.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use transom_engine::{Cluster, ErrorContext, Result};
use transom_object::{GroupVersion, GroupVersionKind, meta};
use transom_xapi::Definition;

/// What is exported whole, in this order.
const KINDS: &[(&str, &str, &str)] = &[
    ("pkg.crossplane.io", "v1beta1", "ImageConfig"),
    ("pkg.crossplane.io", "v1beta1", "DeploymentRuntimeConfig"),
    ("pkg.crossplane.io", "v1", "Configuration"),
    ("pkg.crossplane.io", "v1", "Provider"),
    ("pkg.crossplane.io", "v1", "Function"),
    ("apiextensions.crossplane.io", "v1alpha1", "ManagedResourceActivationPolicy"),
    ("apiextensions.crossplane.io", "v1beta1", "EnvironmentConfig"),
    ("apiextensions.crossplane.io", "v1", "CompositeResourceDefinition"),
    ("apiextensions.crossplane.io", "v1", "Composition"),
    ("apiextensions.crossplane.io", "v1", "CompositionRevision"),
];
/// What protects others, and so comes last.
const USAGES: &[(&str, &str, &str)] = &[
    ("protection.crossplane.io", "v1beta1", "Usage"),
    ("protection.crossplane.io", "v1beta1", "ClusterUsage"),
    ("apiextensions.crossplane.io", "v1beta1", "Usage"),
];
/// How deep composite resources may be composed of others.
const MAX_DEPTH: usize = 32;

/// Reads everything of a control plane.
pub async fn export(cluster: &Cluster) -> Result<Vec<Value>> {
    let mut found = Found { cluster, objects: Vec::new(), known: BTreeSet::new() };
    for (group, version, kind) in KINDS.iter().copied() {
        found.all(&GroupVersionKind::new(group, version, kind)).await?;
    }
    let definitions: Vec<Definition> = found
        .objects
        .iter()
        .filter(|object| meta::kind(object) == "CompositeResourceDefinition")
        .filter_map(|object| serde_json::from_value(object.clone()).ok())
        .collect();
    let from = found.objects.len();
    for definition in &definitions {
        found.all(&definition.composite_type()).await?;
    }
    let composites: Vec<Value> = found.objects.get(from..).unwrap_or_default().to_vec();
    for composite in &composites {
        found.composed(composite, 0).await?;
        found.connection(composite).await?;
    }
    for claim in definitions.iter().filter_map(Definition::claim_type) {
        let from = found.objects.len();
        found.all(&claim).await?;
        for claim in found.objects.get(from..).unwrap_or_default().to_vec() {
            found.connection(&claim).await?;
        }
    }
    for (group, version, kind) in USAGES.iter().copied() {
        found.all(&GroupVersionKind::new(group, version, kind)).await?;
    }
    let mut objects = found.definitions().await?;
    objects.extend(found.objects);
    Ok(objects.into_iter().map(portable).collect())
}

struct Found<'a> {
    cluster: &'a Cluster,
    objects: Vec<Value>,
    known: BTreeSet<String>,
}

impl Found<'_> {
    fn add(&mut self, object: Value) -> bool {
        let is_new = self.known.insert(identity(&object));
        if is_new {
            self.objects.push(object);
        }
        is_new
    }

    /// All objects of a kind, if it is served.
    async fn all(&mut self, gvk: &GroupVersionKind) -> Result<()> {
        match self.cluster.list(gvk, "", &BTreeMap::new()).await {
            Err(e) if e.is_unknown_kind() || e.is_not_found() => Ok(()),
            listed => {
                for object in listed.context(format!("cannot list {}", gvk.kind))? {
                    if !meta::is_deleting(&object) {
                        self.add(object);
                    }
                }
                Ok(())
            }
        }
    }

    /// What a composite resource is composed of, and what that is composed of.
    async fn composed(&mut self, composite: &Value, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Ok(());
        }
        for reference in references(composite) {
            let text = |field: &str| reference[field].as_str().unwrap_or_default();
            let Some(gvk) = GroupVersion::parse(text("apiVersion")).map(|gv| gv.with_kind(text("kind")))
            else {
                continue;
            };
            let namespace = match text("namespace") {
                "" => meta::namespace(composite),
                namespace => namespace,
            };
            let read = self.cluster.get(&gvk, namespace, text("name")).await;
            let read = match read {
                Err(e) if e.is_unknown_kind() => None,
                read => read.context(format!("cannot get {} {}", gvk.kind, text("name")))?,
            };
            if let Some(object) = read
                && self.add(object.clone())
            {
                Box::pin(self.composed(&object, depth + 1)).await?;
            }
        }
        Ok(())
    }

    /// The Secret that connection details are published to.
    async fn connection(&mut self, object: &Value) -> Result<()> {
        let reference = &object["spec"]["writeConnectionSecretToRef"];
        let Some(name) = reference["name"].as_str() else { return Ok(()) };
        let namespace = reference["namespace"].as_str().unwrap_or(meta::namespace(object));
        let secret = self.cluster.get(&GroupVersionKind::new("", "v1", "Secret"), namespace, name).await?;
        secret.map(|secret| self.add(secret));
        Ok(())
    }

    /// The namespaces, and the CRDs of composed kinds that nothing of Crossplane defines.
    async fn definitions(&self) -> Result<Vec<Value>> {
        let namespaces: BTreeSet<&str> =
            self.objects.iter().map(meta::namespace).filter(|namespace| !namespace.is_empty()).collect();
        let mut found: Vec<Value> = namespaces
            .into_iter()
            .map(|name| serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .collect();
        let kinds: BTreeSet<(String, String)> = self
            .objects
            .iter()
            .filter_map(meta::gvk)
            .filter(|gvk| !gvk.group.is_empty() && !gvk.group.ends_with("crossplane.io"))
            .map(|gvk| (gvk.group, gvk.kind))
            .collect();
        let crd = GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        for definition in self.cluster.list(&crd, "", &BTreeMap::new()).await.context("cannot list CRDs")? {
            let text =
                |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            let composed = kinds.contains(&(text("/spec/group"), text("/spec/names/kind")));
            if composed && meta::controller_of(&definition).is_none() {
                found.push(definition);
            }
        }
        Ok(found)
    }
}

/// The references of a composite resource, of either layout.
fn references(composite: &Value) -> Vec<Value> {
    let modern = composite.pointer("/spec/crossplane/resourceRefs");
    let references = modern.or_else(|| composite.pointer("/spec/resourceRefs")).and_then(Value::as_array);
    references.cloned().unwrap_or_default()
}

/// What no two objects of a server share.
pub(crate) fn identity(object: &Value) -> String {
    let gvk = meta::gvk(object).unwrap_or_default();
    format!("{}/{}/{}/{}", gvk.group, gvk.kind, meta::namespace(object), meta::name(object))
}

/// An object without what belongs to its server. The uid stays, so that references to it can be made anew.
fn portable(mut object: Value) -> Value {
    if let Some(metadata) = meta::metadata_mut(&mut object) {
        for field in ["managedFields", "resourceVersion", "generation", "creationTimestamp", "selfLink"] {
            metadata.remove(field);
        }
    }
    object
}
