//! CompositeResourceDefinitions (XRDs): what a kind of composite resource is called, what it looks like, and how its
//! Compositions are chosen.
//!
//! Versions v1 and v2 of the API differ in defaults and rules, not in shape, and nothing converts between them: both
//! are read by the same type.

#![expect(missing_docs, reason = "names and fields are Crossplane's, which its CRDs describe")]

use crate::account::AccountReference;
use crate::composite::{Layout, UpdatePolicy};
use crate::composition::{ConditionedStatus, LabelMatch, NameReference, TypeReference, nullable, omit};
use crate::metadata::Metadata;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use transom_object::GroupVersionKind;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Definition {
    pub metadata: Metadata,
    pub spec: DefinitionSpec,
    pub status: DefinitionStatus,
}

/// The strategy of a conversion by rules in the definition. Crossplane does not have it.
pub const STRATEGY_DECLARATIVE: &str = "Declarative";

/// Where composite resources live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum Scope {
    Namespaced,
    Cluster,
    /// Cluster-scoped, claimable, with connection secrets: the only scope before version 2.
    #[default]
    LegacyCluster,
}

impl Scope {
    pub fn layout(self) -> Layout {
        match self {
            Self::Namespaced | Self::Cluster => Layout::Modern,
            Self::LegacyCluster => Layout::Legacy,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DefinitionSpec {
    pub group: String,
    pub names: Names,
    /// [`Definition::scope`] knows what an absent one means.
    pub scope: Option<Scope>,
    pub claim_names: Option<Names>,
    /// The keys a connection secret may have; none given allows all.
    #[serde(deserialize_with = "nullable")]
    pub connection_secret_keys: Vec<String>,
    pub default_composite_delete_policy: Option<String>,
    pub default_composition_ref: Option<NameReference>,
    pub default_composition_revision_selector: Option<LabelMatch>,
    pub enforced_composition_ref: Option<NameReference>,
    pub default_composition_update_policy: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub versions: Vec<Version>,
    pub conversion: Option<Value>,
    pub metadata: Option<CrdMetadata>,
    pub service_account_ref: Option<AccountReference>,
}

/// The names of a custom resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Names {
    pub plural: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub singular: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub short_names: Vec<String>,
    pub kind: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub list_kind: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub categories: Vec<String>,
}

/// What the derived CRDs carry in their metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CrdMetadata {
    pub labels: Option<BTreeMap<String, String>>,
    pub annotations: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Version {
    pub name: String,
    /// Compositions are written for this version; it is also the one that is stored.
    pub referenceable: bool,
    pub served: bool,
    pub deprecated: Option<bool>,
    pub deprecation_warning: Option<String>,
    pub schema: Option<Validation>,
    #[serde(deserialize_with = "nullable")]
    pub additional_printer_columns: Vec<Value>,
    pub subresources: Option<Subresources>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    pub open_api_v3_schema: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Subresources {
    pub scale: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DefinitionStatus {
    #[serde(flatten)]
    pub conditioned: ConditionedStatus,
    pub controllers: Controllers,
}

/// The types that are being reconciled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Controllers {
    pub composite_resource_type: TypeReference,
    pub composite_resource_claim_type: TypeReference,
}

impl Definition {
    pub fn scope(&self) -> Scope {
        self.spec.scope.unwrap_or_default()
    }

    pub fn layout(&self) -> Layout {
        self.scope().layout()
    }

    pub fn update_policy(&self) -> Option<UpdatePolicy> {
        UpdatePolicy::parse(self.spec.default_composition_update_policy.as_deref()?)
    }

    /// The version Compositions are written for: the last one marked so, should there be several.
    pub fn referenceable_version(&self) -> Option<&str> {
        self.spec.versions.iter().rev().find(|v| v.referenceable).map(|v| v.name.as_str())
    }

    /// The type the controllers work on.
    pub fn composite_type(&self) -> GroupVersionKind {
        let version = self.referenceable_version().unwrap_or_default();
        GroupVersionKind::new(&*self.spec.group, version, &*self.spec.names.kind)
    }

    /// The type of the claims, if the definition offers any.
    pub fn claim_type(&self) -> Option<GroupVersionKind> {
        let version = self.referenceable_version().unwrap_or_default();
        Some(GroupVersionKind::new(&*self.spec.group, version, &*self.spec.claim_names.as_ref()?.kind))
    }

    pub fn offers_claim(&self) -> bool {
        self.spec.claim_names.is_some()
    }

    /// The name of the CRD of the claims, if the definition offers any.
    pub fn claim_crd_name(&self) -> Option<String> {
        Some(format!("{}.{}", self.spec.claim_names.as_ref()?.plural, self.spec.group))
    }

    /// The rules by which versions are converted into each other, if the definition has such rules.
    pub fn conversion_rules(&self) -> Option<&Value> {
        self.spec.conversion.as_ref().filter(|conversion| conversion["strategy"] == STRATEGY_DECLARATIVE)
    }

    /// What makes the definition unusable although its own schema allows it: the API server would only find out when
    /// the CRD is written, or never.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let name = format!("{}.{}", self.spec.names.plural, self.spec.group);
        if self.metadata.name != name {
            problems
                .push(format!("metadata.name: must be {name:?}, which is <spec.names.plural>.<spec.group>"));
        }
        match self.spec.versions.iter().filter(|v| v.referenceable).count() {
            1 => {}
            0 => problems.push("spec.versions: one version must be referenceable".to_owned()),
            n => problems.push(format!("spec.versions: exactly one version must be referenceable, not {n}")),
        }
        for version in self.spec.versions.iter().filter(|v| v.referenceable && !v.served) {
            problems
                .push(format!("spec.versions[{}]: the referenceable version must be served", version.name));
        }
        let without = |v: &&Version| v.schema.as_ref().is_none_or(|s| s.open_api_v3_schema.is_none());
        for version in self.spec.versions.iter().filter(without) {
            problems.push(format!("spec.versions[{}]: a schema.openAPIV3Schema is required", version.name));
        }
        problems.extend(self.account_problem());
        if self.scope() != Scope::LegacyCluster && self.offers_claim() {
            problems
                .push("spec.claimNames: Only LegacyCluster composite resources can offer claims".to_owned());
        }
        problems
    }
}

/// Whether the API server serves a CRD.
pub fn is_established(crd: &Value) -> bool {
    let list = crd.pointer("/status/conditions").and_then(Value::as_array);
    list.is_some_and(|list| transom_object::conditions::has_status(list, "Established", "True"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(value: Value) -> Definition {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_last_referenceable_version_counts() {
        let d = definition(json!({"spec": {"group": "g", "names": {"kind": "K"}, "versions": [
            {"name": "v1", "referenceable": true}, {"name": "v2", "referenceable": true}, {"name": "v3"},
        ]}}));
        assert_eq!(d.composite_type(), GroupVersionKind::new("g", "v2", "K"));
        assert_eq!((d.claim_type(), d.claim_crd_name(), d.scope()), (None, None, Scope::LegacyCluster));
    }

    #[test]
    fn problems_are_named() {
        let d = definition(json!({
            "metadata": {"name": "wrong"},
            "spec": {
                "group": "g", "names": {"plural": "ks", "kind": "K"}, "scope": "Namespaced",
                "claimNames": {"plural": "cs", "kind": "C"},
                "versions": [{"name": "v1", "referenceable": true, "served": false}],
            },
        }));
        assert_eq!(d.problems().len(), 4, "{:?}", d.problems());
        let fine = definition(json!({
            "metadata": {"name": "ks.g"},
            "spec": {
                "group": "g", "names": {"plural": "ks", "kind": "K"}, "claimNames": {"plural": "cs", "kind": "C"},
                "versions": [{"name": "v1", "referenceable": true, "served": true, "schema": {"openAPIV3Schema": {}}}],
            },
        }));
        assert!(fine.problems().is_empty(), "{:?}", fine.problems());
    }
}
