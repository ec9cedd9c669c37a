//! Usages: while something uses an object, the object cannot be deleted.
//!
//! Three kinds differ in scope and namespaces but not in shape: `Usage` (namespaced), `ClusterUsage`, and the `Usage`
//! of group `apiextensions.crossplane.io` that came first.

#![expect(missing_docs, reason = "names and fields are Crossplane's, which its CRDs describe")]

use crate::composition::{ConditionedStatus, nullable, omit};
use crate::metadata::{Metadata, have_same_controller};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use transom_object::quote::quote;
use transom_object::{GroupVersion, meta};

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Usage {
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    pub kind: String,
    pub metadata: Metadata,
    pub spec: UsageSpec,
    pub status: ConditionedStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageSpec {
    /// What is used.
    pub of: Used,
    /// What uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Used>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether a deletion that was refused happens once the usage is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_deletion: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Used {
    #[serde(skip_serializing_if = "omit::text")]
    pub api_version: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_ref: Option<UsedReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_selector: Option<UsedSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct UsedReference {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsedSelector {
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::map")]
    pub match_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_controller_ref: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl Used {
    /// The name, once it is known.
    pub fn name(&self) -> Option<&str> {
        self.resource_ref.as_ref().map(|r| r.name.as_str()).filter(|name| !name.is_empty())
    }

    fn namespace(&self) -> Option<&str> {
        self.resource_ref.as_ref()?.namespace.as_deref()
    }
}

/// No object fits a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    #[error("no selector to resolve")]
    NoSelector,
    #[error("no {} found matching labels: {}", quote(kind), go_map(labels))]
    NotFound { kind: String, labels: BTreeMap<String, String> },
    #[error(
        "no {} found matching labels: {} and with same controller reference",
        quote(kind),
        go_map(labels)
    )]
    NoneOfTheSameOwner { kind: String, labels: BTreeMap<String, String> },
}

/// A map as Go prints it with `%q`.
fn go_map(map: &BTreeMap<String, String>) -> String {
    let entries: Vec<String> = map.iter().map(|(k, v)| format!("{}:{}", quote(k), quote(v))).collect();
    format!("map[{}]", entries.join(" "))
}

/// The namespace in which a selector looks: its own, else the usage's.
pub fn selector_namespace<'a>(used: &'a Used, usage: &'a Value) -> &'a str {
    let own = used.resource_selector.as_ref().and_then(|s| s.namespace.as_deref());
    own.unwrap_or_else(|| meta::namespace(usage))
}

/// The reference a selector stands for, given the objects of the kind with its labels in its namespace: the first, or
/// the first that has the same owner as the usage.
pub fn resolve(used: &Used, usage: &Value, candidates: &[Value]) -> Result<UsedReference, Unresolved> {
    let selector = used.resource_selector.as_ref().ok_or(Unresolved::NoSelector)?;
    let (kind, labels) = (used.kind.clone(), selector.match_labels.clone());
    if candidates.is_empty() {
        return Err(Unresolved::NotFound { kind, labels });
    }
    let siblings = selector.match_controller_ref == Some(true);
    let found = candidates.iter().find(|object| !siblings || have_same_controller(object, usage));
    let found = found.ok_or(Unresolved::NoneOfTheSameOwner { kind, labels })?;
    let namespace = Some(meta::namespace(found)).filter(|ns| *ns != meta::namespace(usage));
    Ok(UsedReference { name: meta::name(found).to_owned(), namespace: namespace.map(str::to_owned) })
}

/// The key under which usages are found by what they use. The version of the API does not count.
pub fn key(api_version: &str, kind: &str, name: &str, namespace: &str) -> String {
    let group = GroupVersion::parse(api_version).map(|gv| gv.group).unwrap_or_default();
    format!("{group}/{kind}/{name}/{namespace}")
}

impl Usage {
    pub fn is_namespaced(&self) -> bool {
        !self.metadata.namespace.is_empty()
    }

    /// The [`key`] of what is used, once it is known. Cluster-scoped usages ignore namespaces.
    pub fn key(&self) -> Option<String> {
        let of = &self.spec.of;
        let namespace = of.namespace().unwrap_or(&self.metadata.namespace);
        let namespace = if self.is_namespaced() { namespace } else { "" };
        Some(key(&of.api_version, &of.kind, of.name()?, namespace))
    }

    /// Whether this usage protects an object.
    pub fn protects(&self, object: &Value) -> bool {
        let namespace = if self.is_namespaced() { meta::namespace(object) } else { "" };
        let of = key(meta::api_version(object), meta::kind(object), meta::name(object), namespace);
        self.key().is_some_and(|key| key == of)
    }

    /// The details of the usage in a table.
    pub fn details(&self) -> String {
        if let Some(reason) = self.spec.reason.as_deref().filter(|r| !r.is_empty()) {
            return reason.to_owned();
        }
        let of = &self.spec.of;
        let Some(by) = &self.spec.by else { return "undefined".to_owned() };
        let name = |used: &Used| format!("{}/{}", used.kind, used.name().unwrap_or_default());
        match of.namespace().filter(|ns| !ns.is_empty()) {
            Some(namespace) => format!("{} uses {} in namespace {namespace}", name(by), name(of)),
            None => format!("{} uses {}", name(by), name(of)),
        }
    }

    /// The kind as Crossplane's own messages write it.
    fn go_type(&self) -> String {
        format!("*v1beta1.{}", self.kind)
    }
}

/// Why an object that these usages protect cannot be deleted. `None` if there are none.
pub fn in_use_message(usages: &[Usage]) -> Option<String> {
    let first = usages.first()?;
    let mut id = quote(&first.metadata.name);
    if first.is_namespaced() {
        id = format!("{id} (in namespace {})", quote(&first.metadata.namespace));
    }
    let start = format!(
        "This resource is in-use by {} usage(s), including the {} {id}",
        usages.len(),
        first.go_type()
    );
    Some(match (&first.spec.by, first.spec.reason.as_deref().filter(|r| !r.is_empty())) {
        (Some(by), _) => format!("{start} by resource {}/{}.", by.kind, by.name().unwrap_or_default()),
        (None, Some(reason)) => format!("{start} with reason: {}.", quote(reason)),
        (None, None) => format!("{start}."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn usage(value: Value) -> Usage {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn usages_are_found_by_what_they_use() {
        let of = json!({"apiVersion": "a.org/v1", "kind": "K", "resourceRef": {"name": "n"}});
        let own =
            usage(json!({"kind": "Usage", "metadata": {"name": "u", "namespace": "ns"}, "spec": {"of": of}}));
        let object = |version: &str, namespace: &str| json!({"apiVersion": version, "kind": "K", "metadata": {"name": "n", "namespace": namespace}});
        assert!(own.protects(&object("a.org/v1", "ns")) && own.protects(&object("a.org/v2", "ns")));
        assert!(!own.protects(&object("a.org/v1", "other")) && !own.protects(&object("b.org/v1", "ns")));
        let cluster = usage(json!({"kind": "ClusterUsage", "metadata": {"name": "u"}, "spec": {"of": of}}));
        assert!(cluster.protects(&object("a.org/v1", "ns")));
        let far =
            json!({"apiVersion": "a.org/v1", "kind": "K", "resourceRef": {"name": "n", "namespace": "far"}});
        let far = usage(json!({"metadata": {"namespace": "ns"}, "spec": {"of": far}}));
        assert!(far.protects(&object("a.org/v1", "far")) && !far.protects(&object("a.org/v1", "ns")));
        assert!(!usage(json!({"spec": {"of": {"kind": "K"}}})).protects(&object("a.org/v1", "")));
    }

    #[test]
    fn messages_name_the_user_or_the_reason() {
        let by = usage(json!({
            "kind": "Usage", "metadata": {"name": "u", "namespace": "ns"},
            "spec": {
                "of": {"kind": "K", "resourceRef": {"name": "n", "namespace": "far"}},
                "by": {"kind": "B", "resourceRef": {"name": "b"}},
            },
        }));
        assert_eq!(by.details(), "B/b uses K/n in namespace far");
        assert_eq!(
            in_use_message(std::slice::from_ref(&by)).unwrap(),
            "This resource is in-use by 1 usage(s), including the *v1beta1.Usage \"u\" (in namespace \"ns\") by \
             resource B/b."
        );
        let because = usage(
            json!({"kind": "ClusterUsage", "metadata": {"name": "u"}, "spec": {"reason": "important"}}),
        );
        assert_eq!(because.details(), "important");
        assert_eq!(
            in_use_message(&[because, by]).unwrap(),
            "This resource is in-use by 2 usage(s), including the *v1beta1.ClusterUsage \"u\" with reason: \
             \"important\"."
        );
        assert_eq!((in_use_message(&[]), Usage::default().details().as_str()), (None, "undefined"));
    }

    #[test]
    fn selectors_take_the_first_that_fits() {
        let used: Used = serde_json::from_value(json!({
            "kind": "K", "resourceSelector": {"matchLabels": {"a": "b"}, "matchControllerRef": true},
        }))
        .unwrap();
        let owned = |name: &str, uid: &str| json!({"metadata": {"name": name, "namespace": "far", "ownerReferences": [{"uid": uid, "controller": true}]}});
        let me = owned("me", "x");
        let found = resolve(&used, &me, &[owned("a", "y"), owned("b", "x")]).unwrap();
        assert_eq!((found.name.as_str(), found.namespace), ("b", None));
        assert_eq!(
            resolve(&used, &me, &[owned("a", "y")]).unwrap_err().to_string(),
            "no \"K\" found matching labels: map[\"a\":\"b\"] and with same controller reference"
        );
        assert!(resolve(&used, &me, &[]).is_err() && resolve(&Used::default(), &me, &[]).is_err());
    }
}
