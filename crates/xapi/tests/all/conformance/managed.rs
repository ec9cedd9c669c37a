//! Policies that activate definitions of managed resources.

use super::{Case, Check, Outcome, equal, flag};
use serde::Deserialize;
use serde_json::Value;
use transom_xapi::ManagedResourceActivationPolicy;
use transom_xapi::managed::{ActivationPolicyStatus, matches_pattern};

pub const TABLES: &[(&str, Check)] = &[
    ("core/apis_apiextensions_v1alpha1/mrd_policy_types/TestActivationPolicyMatch", matches),
    (
        "core/apis_apiextensions_v1alpha1/mrd_policy_types/TestManagedResourceActivationPolicyActivates",
        activates,
    ),
    (
        "core/apis_apiextensions_v1alpha1/mrd_policy_types/TestManagedResourceActivationPolicyStatusAppendActivated",
        append_activated,
    ),
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
