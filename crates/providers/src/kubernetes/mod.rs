//! `provider-kubernetes`: objects of this cluster or another one as managed resources, with the API of the original.
//!
//! Both generations of kinds are served, `kubernetes.crossplane.io` (cluster scoped) and `kubernetes.m.crossplane.io`
//! (namespaced), and do the same. An Object is applied by server-side apply; what it owns is compared with what a dry run would
//! make of it.
//!
//! | module | what it is for |
//! |---|---|
//! | `schema` | the schemas of the kinds |
//! | `target`, `kubeconfig` | the cluster that a ProviderConfig leads to |
//! | `object` | Objects: observe, apply, delete |
//! | `references` | what Objects depend on and copy fields from, and its protection |
//! | `comparison`, `readiness`, `manifest` | decisions about objects. Pure |
//! | `watching` | watches in the clusters of Objects |
//! | `collection` | ObservedObjectCollections |

mod collection;
mod comparison;
mod kubeconfig;
mod manifest;
mod object;
mod readiness;
mod references;
mod schema;
mod target;
mod watching;

use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use target::Targets;
use transom_object::GroupVersionKind;
use transom_provider::{ConfigKinds, Layout, ManagedKind, Provider, Scope, Settings};
use watching::Watching;

/// The name of the provider, and of the service account that it acts as in its own plane.
const NAME: &str = "provider-kubernetes";
const OBJECT: &str = "Object";

/// The provider.
pub fn provider() -> Provider {
    let settings = Settings {
        poll_interval: Some(Duration::from_secs(600)),
        max_reconcile_rate: 1000,
        first_backoff: Duration::from_millis(100),
        ..Settings::default()
    };
    let (targets, watching) = (Arc::<Targets>::default(), Arc::<Watching>::default());
    let mut provider = Provider::new(NAME, settings);
    for generation in [Generation { layout: Layout::Legacy }, Generation { layout: Layout::Modern }] {
        let kind = generation.object();
        let crd = schema::object_crd(&kind);
        let objects = object::Objects { targets: targets.clone(), watching: watching.clone() };
        let (targets, watching) = (targets.clone(), watching.clone());
        provider = provider.configs(generation.configs()).manages_as(kind, crd, objects).reconciles(
            schema::collection_crd(generation),
            generation.gvk(collection::KIND),
            move |equipment| collection::Collections { equipment, targets, watching, generation },
        );
    }
    provider
}

/// The kinds of Crossplane v1, or those of v2.
#[derive(Clone, Copy)]
struct Generation {
    layout: Layout,
}

impl Generation {
    fn group(self) -> &'static str {
        match self.layout {
            Layout::Legacy => "kubernetes.crossplane.io",
            Layout::Modern => "kubernetes.m.crossplane.io",
        }
    }

    /// The version in which a kind is read and written.
    fn version(self, kind: &str) -> &'static str {
        if self.layout == Layout::Legacy && kind == OBJECT { "v1alpha2" } else { "v1alpha1" }
    }

    fn gvk(self, kind: &str) -> GroupVersionKind {
        GroupVersionKind::new(self.group(), self.version(kind), kind)
    }

    fn configs(self) -> ConfigKinds {
        ConfigKinds {
            group: self.group(),
            version: "v1alpha1",
            layout: self.layout,
            categories: &["crossplane", "provider", "kubernetes"],
            spec: schema::config,
            secret_name: ".spec.credentials.secretRef.name",
        }
    }

    fn object(self) -> ManagedKind {
        ManagedKind {
            group: self.group(),
            version: self.version(OBJECT),
            kind: OBJECT,
            plural: "objects",
            scope: if self.layout == Layout::Legacy { Scope::Cluster } else { Scope::Namespaced },
            layout: self.layout,
            categories: &["crossplane", "managed", "kubernetes"],
            description: "An object of a Kubernetes cluster.",
            parameters: schema::parameters(),
            more_spec: schema::more_spec(self.group()),
            at_provider: Some(schema::at_provider()),
            references: Vec::new(),
            configs: Some(self.configs()),
            deterministic_names: true,
        }
    }
}

/// The kind in the version that is served here: references to Objects name a version of the original by default.
fn served(gvk: GroupVersionKind) -> GroupVersionKind {
    let legacy = Generation { layout: Layout::Legacy };
    if gvk.group == legacy.group() && gvk.kind == OBJECT { legacy.gvk(OBJECT) } else { gvk }
}

/// Whether a kind is one of this provider.
fn is_own(gvk: &GroupVersionKind) -> bool {
    [Layout::Legacy, Layout::Modern].iter().any(|layout| Generation { layout: *layout }.group() == gvk.group)
}

/// How an object is referred to in its metadata, without the object itself.
fn identity(gvk: &GroupVersionKind, namespace: &str, name: &str) -> serde_json::Value {
    let mut object = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": {"name": name}});
    if !namespace.is_empty() {
        transom_object::meta::set_namespace(&mut object, namespace);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_have_all_kinds() {
        let provider = provider();
        let mut names: Vec<&str> =
            provider.crds().iter().map(|crd| crd["metadata"]["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        let expected = [
            "clusterproviderconfigs.kubernetes.m.crossplane.io",
            "objects.kubernetes.crossplane.io",
            "objects.kubernetes.m.crossplane.io",
            "observedobjectcollections.kubernetes.crossplane.io",
            "observedobjectcollections.kubernetes.m.crossplane.io",
            "providerconfigs.kubernetes.crossplane.io",
            "providerconfigs.kubernetes.m.crossplane.io",
            "providerconfigusages.kubernetes.crossplane.io",
            "providerconfigusages.kubernetes.m.crossplane.io",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn references_to_objects_by_the_version_of_the_original_are_understood() {
        let first = GroupVersionKind::new("kubernetes.crossplane.io", "v1alpha1", "Object");
        assert_eq!(served(first).version, "v1alpha2");
        let modern = GroupVersionKind::new("kubernetes.m.crossplane.io", "v1alpha1", "Object");
        assert_eq!(served(modern.clone()), modern);
        let other = GroupVersionKind::new("kubernetes.crossplane.io", "v1alpha1", "ProviderConfig");
        assert_eq!(served(other.clone()), other);
    }
}
