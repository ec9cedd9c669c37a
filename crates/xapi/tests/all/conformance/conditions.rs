//! Conditions, and the capabilities and health of packages.

use super::{Case, Check, Outcome, equal, flag};
use serde::Deserialize;
use serde_json::{Value, json};
use transom_object::time::{self, Timestamp};
use transom_xapi::conditions::{self, Condition};
use transom_xapi::function;

pub(super) const TABLES: &[(&str, Check)] = &[
    ("core/apis_apiextensions_v1/conditions/TestIsSystemConditionType", is_system),
    ("core/apis_core_v2/condition/TestConditionEqual", equals_ignoring_time),
    ("core/apis_core_v2/condition/TestConditionWithMessage", with_message),
    ("core/apis_core_v2/condition/TestConditionWithObservedGeneration", with_generation),
    ("core/apis_core_v2/condition/TestConditionedStatusEqual", same),
    ("core/apis_core_v2/condition/TestGetCondition", get),
    ("core/apis_core_v2/condition/TestIsSystemConditionType", is_core_system),
    ("core/apis_core_v2/condition/TestSetConditions", set),
    ("core/apis_pkg_meta_v1/capabilities/TestCapabilitiesContainFuzzy", is_capable),
    ("core/apis_pkg_v1/conditions/TestPackageHealth", package_health),
    ("runtime/conditions/manager/TestOGConditionSetMark", mark_observed),
    ("runtime/resource/resource/TestIsConditionTrue", is_true),
    ("runtime/resource/resource/TestFirstNAndSomeMore", first_and_more),
    ("runtime/resource_unstructured_claim/claim/TestConditions", mark),
    ("runtime/resource_unstructured_composed/composed/TestConditions", mark),
    ("runtime/resource_unstructured_composite/composite/TestConditions", mark),
];

/// The time the recording put wherever the clock had been read.
pub(super) fn recorded() -> Timestamp {
    time::parse("2024-01-01T00:00:00Z").unwrap()
}

fn condition(value: &Value) -> Condition {
    if value.is_null() { Condition::default() } else { Condition::deserialize(value).unwrap() }
}

fn list(value: &Value) -> Vec<Condition> {
    value.as_array().into_iter().flatten().map(condition).collect()
}

fn is_system(case: &Case<'_>) -> Outcome {
    flag(conditions::is_system(case.input("conditionType").as_str().unwrap()), case.want())
}

fn is_core_system(case: &Case<'_>) -> Outcome {
    flag(conditions::is_core_system(&condition(case.input("c")).kind), case.want())
}

fn equals_ignoring_time(case: &Case<'_>) -> Outcome {
    flag(condition(case.input("a")).equals_ignoring_time(&condition(case.input("b"))), case.want())
}

fn with_message(case: &Case<'_>) -> Outcome {
    let message = case.input("msg").as_str().unwrap_or_default();
    equal(&condition(case.input("c")).with_message(message), &condition(case.expected()))
}

fn with_generation(case: &Case<'_>) -> Outcome {
    let generation = case.input("observedGeneration").as_i64().unwrap_or_default();
    equal(&condition(case.input("c")).with_generation(generation), &condition(case.expected()))
}

fn same(case: &Case<'_>) -> Outcome {
    let (a, b) = (case.input("a"), case.input("b"));
    let same = match (a.is_null(), b.is_null()) {
        (false, false) => conditions::same(&list(&a["conditions"]), &list(&b["conditions"])),
        (a, b) => a == b,
    };
    flag(same, case.want())
}

fn get(case: &Case<'_>) -> Outcome {
    let all = list(&case.input("cs")["conditions"]);
    equal(&conditions::get(&all, case.input("t").as_str().unwrap()), &condition(case.expected()))
}

fn set(case: &Case<'_>) -> Outcome {
    let mut all = list(&case.input("cs")["conditions"]);
    for new in list(case.input("c")) {
        conditions::set(&mut all, new, recorded());
    }
    equal(&all, &list(&case.expected()["conditions"]))
}

fn mark_observed(case: &Case<'_>) -> Outcome {
    let mut object = json!({"metadata": {"generation": 42}, "status": {"conditions": case.input("start")}});
    conditions::mark_observed(&mut object, list(case.input("mark")), recorded());
    equal(&conditions::of(&object), &list(case.want()))
}

fn mark(case: &Case<'_>) -> Outcome {
    let mut object = case.input("u").clone();
    conditions::mark(&mut object, list(case.input("set")), recorded());
    let all = conditions::of(&object);
    let kind = case.input("get").as_str().unwrap();
    let got = all.iter().find(|c| c.kind == kind).cloned().unwrap_or_default();
    equal(&got, &condition(case.expected()))?;
    match case.expected().get("wantAll") {
        Some(want) => equal(&all, &list(want)),
        None => Ok(()),
    }
}

fn is_true(case: &Case<'_>) -> Outcome {
    flag(condition(case.input("c")).is_true(), case.want())
}

fn first_and_more(case: &Case<'_>) -> Outcome {
    let n = usize::try_from(case.input("n").as_i64().unwrap_or_default()).unwrap_or_default();
    let names: Vec<&str> =
        case.input("names").as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    equal(&conditions::first_and_more(n, &names).as_str(), &case.want().as_str().unwrap_or_default())
}

fn is_capable(case: &Case<'_>) -> Outcome {
    let capabilities = transom_object::json::strings(case.input("capabilities"));
    let key = case.input("key").as_str().unwrap_or_default();
    flag(function::is_capable(&capabilities, key), &case.expected()["result"])
}

fn package_health(case: &Case<'_>) -> Outcome {
    // The recording lost the type of the revision; the case's own words tell it.
    let has_runtime = !case.reason().contains("without runtime");
    let got = function::package_health(&list(&case.input("pr")["status"]["conditions"]), has_runtime);
    let want = condition(&case.expected()["condition"]);
    equal(&Condition { last_transition_time: want.last_transition_time.clone(), ..got }, &want)
}
