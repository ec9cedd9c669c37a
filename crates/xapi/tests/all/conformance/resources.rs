//! Composite resources and claims as dynamic objects, and their connection secrets.

use super::{Case, Check, Outcome, equal};
use serde::Deserialize;
use serde_json::{Value, json};
use transom_xapi::composite::{Composite, Layout, UpdatePolicy};
use transom_xapi::composition::{LabelMatch, SecretReference};
use transom_xapi::metadata::TypedReference;
use transom_xapi::{claim, connection};

pub(super) const TABLES: &[(&str, Check)] = &[
    ("core/internal_controller_apiextensions_claim/connection/TestPropagateConnection", propagate),
    ("core/internal_controller_apiextensions_composite/api/TestPublishConnection", publish),
    ("runtime/resource/resource/TestConnectionSecretFor", secret_for),
    ("runtime/resource/resource/TestConnectionSecretMustBeControllableBy", secret_controllable),
    ("runtime/resource_unstructured_claim/claim/TestCompositeDeletePolicy", delete_policy),
    ("runtime/resource_unstructured_claim/claim/TestClaimReference", reference),
    ("runtime/resource_unstructured_claim/claim/TestCompositionReference", composition_ref),
    ("runtime/resource_unstructured_claim/claim/TestCompositionRevisionReference", revision_ref),
    ("runtime/resource_unstructured_claim/claim/TestCompositionRevisionSelector", revision_selector),
    ("runtime/resource_unstructured_claim/claim/TestCompositionUpdatePolicy", update_policy),
    ("runtime/resource_unstructured_claim/claim/TestConnectionDetailsLastPublishedTime", published_time),
    ("runtime/resource_unstructured_claim/claim/TestResourceReference", resource_ref),
    ("runtime/resource_unstructured_claim/claim/TestWriteConnectionSecretToReference", claim_secret),
    ("runtime/resource_unstructured_composite/composite/TestClaimConditionTypes", claim_condition_types),
    ("runtime/resource_unstructured_composite/composite/TestClaimReference", claim_ref),
    ("runtime/resource_unstructured_composite/composite/TestCompositionReference", composition_ref),
    ("runtime/resource_unstructured_composite/composite/TestCompositionRevisionReference", revision_ref),
    ("runtime/resource_unstructured_composite/composite/TestCompositionRevisionSelector", revision_selector),
    ("runtime/resource_unstructured_composite/composite/TestCompositionUpdatePolicy", update_policy),
    (
        "runtime/resource_unstructured_composite/composite/TestConnectionDetailsLastPublishedTime",
        published_time,
    ),
    ("runtime/resource_unstructured_composite/composite/TestLastHandledReconcileAt", last_handled),
    ("runtime/resource_unstructured_composite/composite/TestResourceReferences", resource_refs),
    ("runtime/resource_unstructured_composite/composite/TestWriteConnectionSecretToReference", secret_ref),
];

/// The recording lost which schema a composite resource has; it is taken from the name of the case where it matters.
fn composite(case: &Case<'_>) -> Composite {
    let schema = if case.name().contains("Modern") { Layout::Modern } else { Layout::Legacy };
    Composite::new(case.input("u").clone(), schema)
}

fn name<'a>(case: &'a Case<'_>) -> Option<&'a str> {
    case.input("set")["name"].as_str()
}

fn composition_ref(case: &Case<'_>) -> Outcome {
    let mut xr = composite(case);
    if let Some(name) = name(case) {
        xr.set_composition_ref(name);
    }
    equal(&xr.composition_ref().map_or(Value::Null, |r| json!(r)), case.expected())
}

fn revision_ref(case: &Case<'_>) -> Outcome {
    let mut xr = composite(case);
    if let Some(name) = name(case) {
        xr.set_composition_revision_ref(name);
    }
    equal(&xr.composition_revision_ref().map_or(Value::Null, |r| json!(r)), case.expected())
}

fn revision_selector(case: &Case<'_>) -> Outcome {
    let mut xr = composite(case);
    if let Ok(selector) = LabelMatch::deserialize(case.input("set")) {
        xr.set_composition_revision_selector(&selector);
    }
    equal(&xr.composition_revision_selector().map_or(Value::Null, |s| json!(s)), case.expected())
}

fn update_policy(case: &Case<'_>) -> Outcome {
    let mut xr = composite(case);
    if let Some(policy) = case.input("set").as_str().and_then(UpdatePolicy::parse) {
        xr.set_composition_update_policy(policy);
    }
    equal(&xr.composition_update_policy().map(UpdatePolicy::as_str), &case.want().as_str())
}

fn claim_ref(case: &Case<'_>) -> Outcome {
    let mut xr = composite(case);
    if let Ok(reference) = TypedReference::deserialize(case.input("set")) {
        xr.set_claim_ref(&reference);
    }
    equal(&xr.claim_ref().map_or(Value::Null, |r| json!(r)), case.expected())
}

fn resource_ref(case: &Case<'_>) -> Outcome {
    let mut claim = case.input("u").clone();
    if case.input("set").is_object() {
        claim["spec"]["resourceRef"] = case.input("set").clone();
    }
    equal(&claim::resource_ref(&claim).map_or(Value::Null, |r| json!(r)), case.expected())
}

fn reference(case: &Case<'_>) -> Outcome {
    equal(&json!(TypedReference::to(case.input("u"))), case.expected())
}

fn resource_refs(case: &Case<'_>) -> Outcome {
    let mut xr = composite(case);
    let references: Vec<TypedReference> = Vec::deserialize(case.input("set")).unwrap_or_default();
    xr.set_resource_refs(&references);
    equal(&json!(xr.resource_refs()), &case.want().as_array().cloned().unwrap_or_default().into())
}

fn secret_ref(case: &Case<'_>) -> Outcome {
    let mut xr = composite(case);
    if let Ok(reference) = SecretReference::deserialize(case.input("set")) {
        xr.set_connection_secret_ref(&reference);
    }
    equal(&xr.connection_secret_ref().map_or(Value::Null, |r| json!(r)), case.expected())
}

fn published_time(case: &Case<'_>) -> Outcome {
    let mut xr = composite(case);
    if let Some(time) = case.input("set").as_str() {
        xr.set_last_published_time(time);
    }
    equal(&xr.last_published_time(), &case.want().as_str())
}

fn last_handled(case: &Case<'_>) -> Outcome {
    let mut xr = composite(case);
    let token = xr.last_handled_reconcile_at().to_owned();
    equal(&token.as_str(), &case.want().as_str().unwrap_or_default())?;
    xr.set_last_handled_reconcile_at("another");
    equal(&xr.last_handled_reconcile_at(), &"another")
}

fn claim_condition_types(case: &Case<'_>) -> Outcome {
    let mut xr = composite(case);
    let types: Vec<&str> =
        case.input("set").as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let error = xr.add_claim_condition_types(&types).err().map(|e| e.to_string());
    equal(&error.as_deref(), &case.error())?;
    equal(&json!(xr.claim_condition_types()), &case.want().as_array().cloned().unwrap_or_default().into())
}

fn delete_policy(case: &Case<'_>) -> Outcome {
    let mut claim = case.input("u").clone();
    if case.input("set").is_string() {
        claim["spec"]["compositeDeletePolicy"] = case.input("set").clone();
    }
    equal(&claim::deletes_in_foreground(&claim), &(case.want() == "Foreground"))
}

fn claim_secret(case: &Case<'_>) -> Outcome {
    let mut claim = case.input("u").clone();
    if case.input("set").is_object() {
        claim["spec"]["writeConnectionSecretToRef"] = case.input("set").clone();
    }
    equal(&claim::connection_secret_name(&claim), &case.expected()["name"].as_str())
}

/// The recording holds the reference alone.
fn with_secret(owner: &Value) -> Value {
    let mut object = json!({"metadata": {"namespace": owner["namespace"]}, "spec": {}});
    if owner["Ref"].is_object() {
        object["spec"]["writeConnectionSecretToRef"] = owner["Ref"].clone();
    }
    object
}

fn propagate(case: &Case<'_>) -> Outcome {
    let xr = Composite::new(with_secret(case.input("from")), Layout::Legacy);
    let claim = with_secret(case.input("to"));
    equal(&connection::source(&claim, &xr), &None)?;
    equal(&connection::propagated(&claim, &xr, &json!({})), &Ok(None))
}

fn publish(case: &Case<'_>) -> Outcome {
    let xr = Composite::new(with_secret(case.input("o")), Layout::Legacy);
    equal(&connection::published(&xr, &connection::Details::default(), &[]), &None)
}

fn secret_for(case: &Case<'_>) -> Outcome {
    let (owner, kind) = (case.input("o"), case.input("kind"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let object = json!({
        "apiVersion": format!("{}/{}", text(&kind["Group"]), text(&kind["Version"])),
        "kind": kind["Kind"],
        "metadata": {"name": owner["name"], "namespace": owner["namespace"], "uid": owner["uid"]},
    });
    let to = &owner["WriterTo"];
    let mut got = connection::secret(&object, &text(&to["namespace"]), &text(&to["name"]));
    for typed in ["apiVersion", "kind"] {
        got.as_object_mut().unwrap().remove(typed);
    }
    equal(&got, case.expected())
}

fn secret_controllable(case: &Case<'_>) -> Outcome {
    let uid = case.input("u").as_str().unwrap();
    let got = connection::must_be_writable_by(case.input("current"), uid).err().map(|e| e.to_string());
    equal(&got.as_deref(), &case.want()["$error"].as_str())
}
