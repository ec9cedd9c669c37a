//! What Crossplane notes in metadata.

use super::conditions::recorded;
use super::{Case, Check, Outcome, equal, flag};
use serde_json::{Value, json};
use transom_object::{meta, time};
use transom_xapi::constants::annotation;
use transom_xapi::metadata::{self, CREATE_FAILED, CREATE_PENDING, CREATE_SUCCEEDED};

pub(super) const TABLES: &[(&str, Check)] = &[
    (
        "core/internal_controller_apiextensions_composite/reconciler/TestEffectivePollInterval",
        effective_interval,
    ),
    (
        "core/internal_controller_apiextensions_composite/reconciler/TestReconcilePollIntervalAnnotation",
        interval,
    ),
    ("runtime/meta/meta/TestAddAnnotations", add_annotations),
    ("runtime/meta/meta/TestAddControllerReference", add_controller),
    ("runtime/meta/meta/TestAddFinalizer", add_finalizer),
    ("runtime/meta/meta/TestAddLabels", add_labels),
    ("runtime/meta/meta/TestAddOwnerReference", add_owner),
    ("runtime/meta/meta/TestAsController", as_controller),
    ("runtime/meta/meta/TestAsOwner", as_owner),
    ("runtime/meta/meta/TestExternalCreateIncomplete", create_incomplete),
    ("runtime/meta/meta/TestExternalCreateSucceededDuring", created_within),
    ("runtime/meta/meta/TestFinalizerExists", has_finalizer),
    ("runtime/meta/meta/TestGetExternalCreateFailed", |case| noted(case, CREATE_FAILED)),
    ("runtime/meta/meta/TestGetExternalCreatePending", |case| noted(case, CREATE_PENDING)),
    ("runtime/meta/meta/TestGetExternalCreateSucceeded", |case| noted(case, CREATE_SUCCEEDED)),
    ("runtime/meta/meta/TestGetExternalName", external_name),
    ("runtime/meta/meta/TestGetPollInterval", poll_interval),
    ("runtime/meta/meta/TestGetReconcileRequest", reconcile_request),
    ("runtime/meta/meta/TestHaveSameController", same_controller),
    ("runtime/meta/meta/TestIsPaused", is_paused),
    ("runtime/meta/meta/TestRemoveAnnotations", remove_annotations),
    ("runtime/meta/meta/TestRemoveFinalizer", remove_finalizer),
    ("runtime/meta/meta/TestRemoveLabels", remove_labels),
    ("runtime/meta/meta/TestSetExternalCreateFailed", |case| note(case, CREATE_FAILED)),
    ("runtime/meta/meta/TestSetExternalCreatePending", |case| note(case, CREATE_PENDING)),
    ("runtime/meta/meta/TestSetExternalCreateSucceeded", |case| note(case, CREATE_SUCCEEDED)),
    ("runtime/meta/meta/TestSetExternalName", set_external_name),
    ("runtime/meta/meta/TestSetReconcileRequest", set_reconcile_request),
    ("runtime/meta/meta/TestTypedReferenceTo", typed_reference),
    ("runtime/meta/meta/TestWasCreated", was_created),
    ("runtime/meta/meta/TestWasDeleted", was_deleted),
    ("runtime/resource/resource/TestMustBeControllableBy", controllable),
];

/// A field of the metadata that is empty counts as absent.
fn field(object: &Value, name: &str) -> Value {
    let value = object["metadata"][name].clone();
    if transom_object::json::is_empty(&value) { Value::Null } else { value }
}

fn same_value(got: &Value, want: &Value) -> Outcome {
    let plain =
        |value: &Value| if transom_object::json::is_empty(value) { Value::Null } else { value.clone() };
    equal(&plain(got), &plain(want))
}

fn text<'a>(case: &'a Case<'_>, input: &str) -> &'a str {
    case.input(input).as_str().unwrap_or_default()
}

fn annotated(case: &Case<'_>) -> Value {
    match case.input("annotation").as_str() {
        Some(text) => json!({"metadata": {"annotations": {annotation::POLL_INTERVAL: text}}}),
        None => json!({}),
    }
}

fn nanos(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn effective_interval(case: &Case<'_>) -> Outcome {
    let (default, minimum) = (nanos(case.input("pollInterval")), nanos(case.input("minPollInterval")));
    equal(&metadata::poll_interval_or(&annotated(case), default, minimum), &nanos(case.want()))
}

fn interval(case: &Case<'_>) -> Outcome {
    const SECOND: i64 = 1_000_000_000;
    let got = metadata::poll_interval_or(&annotated(case), nanos(case.input("pollInterval")), SECOND);
    let (want, tolerance) = (nanos(&case.expected()["wantApprox"]), nanos(&case.expected()["wantTolerance"]));
    equal(&((got - want).abs() <= tolerance), &true)
}

fn add_annotations(case: &Case<'_>) -> Outcome {
    let mut object = case.object();
    for (key, value) in case.input("annotations").as_object().unwrap() {
        meta::set_annotation(&mut object, key, value.as_str().unwrap());
    }
    same_value(&field(&object, "annotations"), case.expected())
}

fn add_labels(case: &Case<'_>) -> Outcome {
    let mut object = case.object();
    let labels = case.input("labels").as_object().unwrap();
    metadata::add_labels(&mut object, labels.iter().map(|(k, v)| (k.as_str(), v.as_str().unwrap())));
    same_value(&field(&object, "labels"), case.expected())
}

fn keys<'a>(case: &'a Case<'_>, input: &str) -> Vec<&'a str> {
    case.input(input).as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn remove_annotations(case: &Case<'_>) -> Outcome {
    let mut object = case.object();
    metadata::remove_annotations(&mut object, &keys(case, "annotations"));
    same_value(&field(&object, "annotations"), case.expected())
}

fn remove_labels(case: &Case<'_>) -> Outcome {
    let mut object = case.object();
    metadata::remove_labels(&mut object, &keys(case, "labels"));
    same_value(&field(&object, "labels"), case.expected())
}

fn add_owner(case: &Case<'_>) -> Outcome {
    let mut object = case.object();
    metadata::add_owner(&mut object, case.input("r").clone());
    same_value(&field(&object, "ownerReferences"), case.want())
}

fn add_controller(case: &Case<'_>) -> Outcome {
    let mut object = case.object();
    let got = metadata::add_controller(&mut object, case.input("r").clone());
    let error = case.error().or(case.expected()["err"]["$error"].as_str());
    equal(&got.err().map(|e| e.to_string()).as_deref(), &error)?;
    same_value(&field(&object, "ownerReferences"), &case.expected()["owners"])
}

fn as_controller(case: &Case<'_>) -> Outcome {
    let r = case.input("r");
    let text = |name: &str| r[name].as_str().unwrap_or_default();
    let got = metadata::controller_reference(text("apiVersion"), text("kind"), text("name"), text("uid"));
    same_value(&got, case.expected())
}

fn as_owner(case: &Case<'_>) -> Outcome {
    let mut object = json!({});
    metadata::add_owner(&mut object, case.input("r").clone());
    same_value(&object["metadata"]["ownerReferences"][0], case.expected())
}

fn add_finalizer(case: &Case<'_>) -> Outcome {
    let mut object = case.object();
    metadata::add_finalizer(&mut object, text(case, "finalizer"));
    same_value(&field(&object, "finalizers"), case.want())
}

fn remove_finalizer(case: &Case<'_>) -> Outcome {
    let mut object = case.object();
    metadata::remove_finalizer(&mut object, text(case, "finalizer"));
    same_value(&field(&object, "finalizers"), case.want())
}

fn has_finalizer(case: &Case<'_>) -> Outcome {
    flag(metadata::has_finalizer(&case.object(), text(case, "finalizer")), case.want())
}

fn create_incomplete(case: &Case<'_>) -> Outcome {
    flag(metadata::create_incomplete(&case.object()), case.want())
}

fn created_within(case: &Case<'_>) -> Outcome {
    flag(metadata::created_within(&case.object(), nanos(case.input("d")), recorded()), case.want())
}

fn noted(case: &Case<'_>, key: &str) -> Outcome {
    let got = metadata::noted_time(&case.object(), key).map(time::format);
    equal(&got.as_deref(), &case.want().as_str())
}

fn note(case: &Case<'_>, key: &str) -> Outcome {
    let mut object = case.object();
    metadata::set_noted_time(&mut object, key, recorded());
    same_value(&field(&object, "annotations"), &case.expected()["metadata"]["annotations"])
}

fn external_name(case: &Case<'_>) -> Outcome {
    let object = case.object();
    let got = meta::annotation(&object, annotation::EXTERNAL_NAME).unwrap_or_default();
    equal(&got, &case.want().as_str().unwrap_or_default())
}

fn set_external_name(case: &Case<'_>) -> Outcome {
    let mut object = case.object();
    meta::set_annotation(&mut object, annotation::EXTERNAL_NAME, text(case, "name"));
    same_value(&field(&object, "annotations"), &case.expected()["metadata"]["annotations"])
}

fn poll_interval(case: &Case<'_>) -> Outcome {
    let got = metadata::poll_interval(&case.object());
    let expected = case.expected();
    let want = ["want", "wantDuration"].iter().find_map(|field| expected[*field].as_i64());
    equal(&got, &want)
}

fn reconcile_request(case: &Case<'_>) -> Outcome {
    let object = case.object();
    equal(&metadata::reconcile_request(&object), &case.expected()["wantToken"].as_str())
}

fn set_reconcile_request(case: &Case<'_>) -> Outcome {
    let mut object = case.object();
    meta::set_annotation(&mut object, annotation::RECONCILE_REQUESTED_AT, text(case, "token"));
    let (object, token) = (object, text(case, "token"));
    equal(&metadata::reconcile_request(&object).unwrap_or_default(), &token)
}

fn same_controller(case: &Case<'_>) -> Outcome {
    flag(metadata::have_same_controller(case.input("a"), case.input("b")), case.want())
}

fn is_paused(case: &Case<'_>) -> Outcome {
    flag(metadata::is_paused(&case.object()), case.want())
}

fn typed_reference(case: &Case<'_>) -> Outcome {
    let of = case.input("of");
    let mut object = case.object();
    object["apiVersion"] =
        format!("{}/{}", of["Group"].as_str().unwrap(), of["Version"].as_str().unwrap()).into();
    object["kind"] = of["Kind"].clone();
    let mut got = metadata::controller_reference_to(&object);
    for extra in ["controller", "blockOwnerDeletion"] {
        got.as_object_mut().unwrap().remove(extra);
    }
    same_value(&got, case.expected())
}

fn was_created(case: &Case<'_>) -> Outcome {
    flag(metadata::was_created(&case.object()), case.want())
}

fn was_deleted(case: &Case<'_>) -> Outcome {
    flag(meta::is_deleting(&case.object()), case.want())
}

fn controllable(case: &Case<'_>) -> Outcome {
    let current = json!({"metadata": case.input("current")});
    let got = metadata::must_be_controllable_by(&current, text(case, "u")).err().map(|e| e.to_string());
    equal(&got.as_deref(), &case.want()["$error"].as_str())
}
