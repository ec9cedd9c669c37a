//! Definitions of managed resources, and policies that activate them.

use super::{Case, Check, Outcome, equal, flag};
use serde::Deserialize;
use serde_json::Value;
use transom_xapi::managed::{ActivationPolicyStatus, crd, matches_pattern};
use transom_xapi::{ManagedResourceActivationPolicy, ManagedResourceDefinition};

pub(super) const TABLES: &[(&str, Check)] = &[
    ("core/apis_apiextensions_v1alpha1/mrd_policy_types/TestActivationPolicyMatch", matches),
    (
        "core/apis_apiextensions_v1alpha1/mrd_policy_types/TestManagedResourceActivationPolicyActivates",
        activates,
    ),
    (
        "core/apis_apiextensions_v1alpha1/mrd_policy_types/TestManagedResourceActivationPolicyStatusAppendActivated",
        append_activated,
    ),
    ("core/internal_controller_apiextensions_managed/crd/TestCRDAsUnstructured", as_crd),
];

/// An absent text is the empty one.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn matches(case: &Case<'_>) -> Outcome {
    flag(matches_pattern(text(case.input("policy")), text(case.input("name"))), &case.expected()["match"])
}

fn activates(case: &Case<'_>) -> Outcome {
    let policy = ManagedResourceActivationPolicy::deserialize(case.input("policy")).unwrap();
    flag(policy.activates(text(case.input("name"))), &case.expected()["activate"])
}

fn append_activated(case: &Case<'_>) -> Outcome {
    let mut status = ActivationPolicyStatus::deserialize(case.input("status")).unwrap();
    status.append_activated(text(case.input("name")));
    equal(&status.activated, &transom_object::json::strings(&case.expected()["activated"]))
}

fn as_crd(case: &Case<'_>) -> Outcome {
    let definition = ManagedResourceDefinition::deserialize(case.input("mrd")).unwrap();
    match (crd(&definition), case.error()) {
        (Ok(crd), None) => equal(&crd, &case.expected()["crd"]),
        (made, error) => equal(&made.is_err(), &error.is_some()),
    }
}
