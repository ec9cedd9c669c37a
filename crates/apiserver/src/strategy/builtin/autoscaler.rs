//! HorizontalPodAutoscalers in v1: shown and written in their own form, and everything else is done with the form of v2,
//! which is what is stored.

use super::stored::AUTOSCALER;
use super::table::Facts;
use crate::strategy::custom::copy_field;
use crate::subresource::Subresource;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_kinds::autoscaler::{to_v1, to_v2};
use transom_object::{GroupVersionKind, field};
use transom_schema::Schema;

pub(super) const KIND: &str = AUTOSCALER.kind;
const OLD: &str = "v1";

/// Whether these are autoscalers in v1.
pub(super) fn is_old(facts: &Facts) -> bool {
    facts.kind == KIND && facts.version == OLD
}

fn gvk(version: &str) -> GroupVersionKind {
    GroupVersionKind::new(AUTOSCALER.group, version, KIND)
}

/// The schemas of both versions.
pub(super) fn schemas() -> BTreeMap<String, Arc<Schema>> {
    let of = |version| {
        let gvk = gvk(version);
        let schema = transom_kinds::schema(transom_kinds::type_of(&gvk)).unwrap_or_default();
        (gvk.api_version(), schema)
    };
    BTreeMap::from([OLD, AUTOSCALER.version].map(of))
}

/// As the type of a version has it, with the defaults.
fn normalized(mut value: Value, version: &str) -> Value {
    let gvk = gvk(version);
    // What was converted from a valid object is one.
    let _ = transom_kinds::normalize(&mut value, transom_kinds::type_of(&gvk));
    transom_kinds::default(&mut value, &gvk);
    value
}

/// An object of v1 as it is stored.
pub(super) fn to_stored(v1: &Value) -> Value {
    normalized(to_v2(v1), AUTOSCALER.version)
}

/// An object of either version in one of them.
pub(super) fn in_version(value: &Value, api_version: &str) -> Value {
    match (value["apiVersion"] == "autoscaling/v1", api_version == "autoscaling/v1") {
        (true, false) => to_stored(value),
        (false, true) => normalized(to_v1(value), OLD),
        _ => value.clone(),
    }
}

/// A new object has the status of one that was never scaled, also where annotations have another one.
pub(super) fn keep_status(new: &mut Value, blank: &Value) {
    if new["apiVersion"] == "autoscaling/v1" {
        let mut v2 = to_v2(new);
        v2["status"] = Value::Null;
        *new = normalized(to_v1(&v2), OLD);
    } else {
        new["status"] = blank["status"].clone();
    }
}

/// The status and the spec have parts in annotations, so they are kept in the form of v2.
pub(super) fn prepare_update(new: &mut Value, old: &Value, subresource: Subresource) {
    let mut v2 = to_v2(new);
    copy_field(&mut v2, &to_v2(old), if subresource == Subresource::Status { "spec" } else { "status" });
    *new = normalized(to_v1(&v2), OLD);
}

pub(super) fn validate(new: &Value, old: Option<&Value>, subresource: Subresource) -> Vec<field::Error> {
    let (new, gvk) = (to_stored(new), gvk(AUTOSCALER.version));
    match subresource {
        Subresource::Status => transom_kinds::validate_status(&new, &gvk),
        _ => transom_kinds::validate(&new, old.map(to_stored).as_ref(), &gvk),
    }
}

pub(super) fn cells(value: &Value, now: i64) -> Vec<Value> {
    transom_kinds::printer::cells(&gvk(AUTOSCALER.version), &to_stored(value), now)
}
