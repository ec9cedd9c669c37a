//! What Objects refer to: other objects of the control plane that must exist, whose fields are copied into the manifest, and
//! which are protected from being deleted.
//!
//! Objects of this provider are read with its own rights, if they are in the namespace of the Object or the Object is in none.
//! All others are read with the rights that it has for Objects: otherwise everybody who may write Objects in one namespace could
//! read every Secret, and the Objects of all other namespaces.

use super::manifest::leaves;
use super::target::get;
use super::{identity, is_own, served};
use serde_json::{Value, json};
use transom_object::{GroupVersionKind, fieldpath, meta};
use transom_provider::{Cluster, Dependency, Error, ErrorContext, Resource, Result};

const FINALIZER_PREFIX: &str = "kubernetes.crossplane.io/referred-by-object-";

/// One entry of `spec.references`.
#[derive(Debug, PartialEq, Eq)]
struct Reference {
    gvk: GroupVersionKind,
    namespace: String,
    name: String,
    /// The path that is copied, and the path in the manifest that gets the value.
    copied: Option<(String, String)>,
}

/// The references of an Object. An entry that refers to nothing is skipped.
fn references(object: &Value) -> Vec<Reference> {
    let entries = object.pointer("/spec/references").and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(|entry| reference(entry, object)).collect()
}

fn reference(entry: &Value, object: &Value) -> Option<Reference> {
    let target = entry.get("patchesFrom").or_else(|| entry.get("dependsOn"))?;
    let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    let own = meta::gvk(object)?;
    let api_version = text(target, "apiVersion").unwrap_or_else(|| own.api_version());
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let kind = text(target, "kind").unwrap_or_else(|| own.kind.clone());
    let from = text(target, "fieldPath").filter(|_| entry.get("patchesFrom").is_some());
    let copied = from.map(|from| (from.clone(), text(entry, "toFieldPath").unwrap_or(from)));
    Some(Reference {
        gvk: served(GroupVersionKind::new(group, version, kind)),
        namespace: text(target, "namespace").unwrap_or_default(),
        name: text(target, "name").unwrap_or_default(),
        copied,
    })
}

/// The cluster with the rights that an object of a namespace (empty: of none) is read and written with.
fn cluster<'a, P>(resource: &Resource<'a, P>, gvk: &GroupVersionKind, namespace: &str) -> &'a Cluster {
    let own = meta::namespace(resource.object);
    let is_near = own.is_empty() || own == namespace;
    if is_own(gvk) && is_near { resource.cluster } else { resource.identity }
}

/// The namespace of what is referred to: for a namespaced kind without one, that of the Object; for others none, whatever the
/// reference says.
async fn namespace<P>(resource: &Resource<'_, P>, reference: &Reference) -> Result<String> {
    // Which kinds are served is not a secret.
    let namespace = match resource.identity.kind(&reference.gvk).await?.namespaced {
        true if reference.namespace.is_empty() => meta::namespace(resource.object),
        true => &reference.namespace,
        false => "",
    };
    Ok(namespace.to_owned())
}

async fn read<P>(resource: &Resource<'_, P>, reference: &Reference) -> Result<Option<Value>> {
    let namespace = namespace(resource, reference).await?;
    let Reference { gvk, name, .. } = reference;
    // Before it is read, so that no change is missed.
    resource.follow(Dependency::Named { gvk: gvk.clone(), namespace: namespace.clone(), name: name.clone() });
    get(cluster(resource, gvk, &namespace), gvk, &namespace, name).await
}

/// What an Object refers to.
#[derive(Default)]
pub(super) struct Resolved {
    pub(super) objects: Vec<Value>,
    /// The texts and numbers that were copied, which may be secrets.
    pub(super) copied: Vec<String>,
}

/// Reads what an Object refers to, and copies fields into its manifest. What is missing is waited for.
pub(super) async fn resolve<P>(resource: &Resource<'_, P>, manifest: &mut Value) -> Result<Resolved> {
    let mut resolved = Resolved::default();
    for reference in references(resource.object) {
        let attempted = "cannot get referenced resource";
        let Some(object) = read(resource, &reference).await.context(attempted)? else {
            resource.wait_for_followed();
            let place = namespace(resource, &reference).await?;
            let place = if place.is_empty() { String::new() } else { format!(" in namespace {place:?}") };
            let words = format!("{} {:?} not found{place}", reference.gvk.kind, reference.name);
            return Err(Error::domain(words)).context(attempted);
        };
        if let Some((from, to)) = &reference.copied {
            let copied = fieldpath::get(&object, from).cloned().and_then(|value| {
                resolved.copied.extend(leaves(&value));
                fieldpath::set(manifest, to, value)
            });
            if let Err(e) = copied {
                resource.wait_for_followed();
                return Err(Error::domain(e)).context("cannot patch from referenced resource");
            }
        }
        resolved.objects.push(object);
    }
    Ok(resolved)
}

/// Protects what an Object refers to from being deleted.
pub(super) async fn protect<P>(resource: &Resource<'_, P>, referenced: &[Value]) -> Result<()> {
    let finalizer = finalizer(resource);
    for object in referenced {
        let mut finalizers = meta::finalizers(object);
        // What is being deleted takes no finalizers any more.
        if finalizers.contains(&finalizer.as_str()) || meta::is_deleting(object) {
            continue;
        }
        finalizers.push(&finalizer);
        let written = write_finalizers(resource, object, &finalizers).await;
        written.context("cannot add finalizer to referenced resource")?;
    }
    Ok(())
}

/// Ends that protection.
pub(super) async fn release<P>(resource: &Resource<'_, P>) -> Result<()> {
    let finalizer = finalizer(resource);
    for reference in references(resource.object) {
        let attempted = "cannot remove finalizer from referenced resource";
        let object = match read(resource, &reference).await {
            Ok(Some(object)) => object,
            Ok(None) => continue,
            Err(e) if e.is_unknown_kind() => continue,
            Err(e) => return Err(e).context(attempted),
        };
        let finalizers = meta::finalizers(&object);
        let left: Vec<&str> = finalizers.iter().copied().filter(|name| *name != finalizer).collect();
        if left.len() < finalizers.len() {
            match write_finalizers(resource, &object, &left).await {
                Err(e) if !e.is_not_found() => return Err(e).context(attempted),
                _ => {}
            }
        }
    }
    Ok(())
}

fn finalizer<P>(resource: &Resource<'_, P>) -> String {
    format!("{FINALIZER_PREFIX}{}", meta::uid(resource.object))
}

/// Writes finalizers, unless the object changed since it was read.
async fn write_finalizers<P>(resource: &Resource<'_, P>, object: &Value, finalizers: &[&str]) -> Result<()> {
    let Some(gvk) = meta::gvk(object) else { return Ok(()) };
    let version = meta::resource_version(object);
    let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
    let namespace = meta::namespace(object);
    let identity = identity(&gvk, namespace, meta::name(object));
    cluster(resource, &gvk, namespace).merge_patch(&identity, &patch, super::NAME).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_the_original_does() {
        let object = json!({
            "apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object", "metadata": {"name": "o"},
            "spec": {"references": [
                {"dependsOn": {"name": "a"}},
                {"dependsOn": {"apiVersion": "kubernetes.crossplane.io/v1alpha1", "kind": "Object", "name": "b"}},
                {"patchesFrom": {"apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": "c", "fieldPath": "data.x"},
                 "dependsOn": {"name": "ignored"}, "toFieldPath": "data.y"},
                {"patchesFrom": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "fieldPath": "spec.replicas"}},
                {"toFieldPath": "nothing"},
            ]},
        });
        let all = references(&object);
        let shown: Vec<(String, &str, &str)> = all
            .iter()
            .map(|r| {
                (format!("{} {}", r.gvk.api_version(), r.gvk.kind), r.namespace.as_str(), r.name.as_str())
            })
            .collect();
        let objects = "kubernetes.crossplane.io/v1alpha2 Object".to_owned();
        let expected = vec![
            (objects.clone(), "", "a"),
            (objects, "", "b"),
            ("v1 Secret".to_owned(), "n", "c"),
            ("apps/v1 Deployment".to_owned(), "", "d"),
        ];
        assert_eq!(shown, expected);
        assert_eq!(all[2].copied, Some(("data.x".to_owned(), "data.y".to_owned())));
        assert_eq!(all[3].copied, Some(("spec.replicas".to_owned(), "spec.replicas".to_owned())));
        assert_eq!(all[0].copied, None);
    }
}
