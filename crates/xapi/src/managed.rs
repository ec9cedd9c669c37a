//! Definitions of managed resources, and the policies that activate them.
//!
//! A ManagedResourceDefinition is a CRD that does not exist yet: only an active one is made into it.

#![expect(missing_docs, reason = "names and fields are Crossplane's, which its CRDs describe")]

mod crd;
mod pattern;

pub use crd::{ControlledByAnother, InvalidSchema, adoption, crd};

use crate::composition::{ConditionedStatus, nullable, omit};
use crate::conditions::Condition;
use crate::metadata::Metadata;
use crate::package::{ACTIVE, INACTIVE};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ManagedResourceDefinition {
    pub metadata: Metadata,
    pub spec: ManagedResourceDefinitionSpec,
    pub status: ConditionedStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedResourceDefinitionSpec {
    /// `Active` or `Inactive`, which is the default.
    #[serde(skip_serializing_if = "omit::text")]
    pub state: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub connection_details: Vec<ConnectionDetail>,
    /// All other fields: the spec of the CRD.
    #[serde(flatten)]
    pub crd: Map<String, Value>,
}

/// What a managed resource writes to its connection secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ConnectionDetail {
    pub name: String,
    pub description: String,
}

impl ManagedResourceDefinition {
    pub fn is_active(&self) -> bool {
        self.spec.state == ACTIVE
    }

    pub fn is_inactive(&self) -> bool {
        self.spec.state.is_empty() || self.spec.state == INACTIVE
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ManagedResourceActivationPolicy {
    pub metadata: Metadata,
    pub spec: ActivationPolicySpec,
    pub status: ActivationPolicyStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ActivationPolicySpec {
    /// Names of definitions, or patterns of such names.
    #[serde(deserialize_with = "nullable")]
    pub activate: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ActivationPolicyStatus {
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub conditions: Vec<Condition>,
    /// The definitions that the policy activated, in order.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub activated: Vec<String>,
}

impl ManagedResourceActivationPolicy {
    /// Whether the policy activates the definition of this name.
    pub fn activates(&self, name: &str) -> bool {
        self.spec.activate.iter().any(|pattern| matches_pattern(pattern, name))
    }
}

impl ActivationPolicyStatus {
    /// Adds a definition to those that were activated.
    pub fn append_activated(&mut self, name: impl Into<String>) {
        self.activated.push(name.into());
        self.activated.sort_unstable();
    }
}

/// Whether a name of a definition matches a pattern of an activation policy, by the rules of Go's `filepath.Match`:
/// `*` stands for any text, `?` for any character (neither for a slash), `[a-z]` and `[^a-z]` for one character, and
/// a backslash takes the next character as it is. A malformed pattern matches nothing.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    pattern::matches(pattern, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_definition_is_inactive_unless_it_says_so_and_keeps_all_fields() {
        let spec = json!({
            "state": "Active", "group": "g", "names": {"kind": "K", "plural": "ks"}, "scope": "Cluster",
            "versions": [{"name": "v1", "served": true, "storage": true}],
            "connectionDetails": [{"name": "password", "description": "d"}],
        });
        let active: ManagedResourceDefinition = serde_json::from_value(json!({"spec": spec})).unwrap();
        assert!(active.is_active() && !active.is_inactive());
        assert!(!active.spec.crd.contains_key("state") && active.spec.crd.contains_key("versions"));
        assert_eq!(json!(active.spec), spec);
        assert!(ManagedResourceDefinition::default().is_inactive());
    }
}
