//! The properties and printer columns that composite resources and claims have because of Crossplane.

use super::Extensions;
use crate::composite::Schema;
use crate::definition::Scope;
use serde_json::{Map, Value, json};

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// An object with these texts, of which some are required.
fn reference(fields: &[&str], required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "object", "required": required, "properties": properties})
}

fn selector() -> Value {
    let labels = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({"type": "object", "required": ["matchLabels"], "properties": {"matchLabels": labels}})
}

fn choice(values: &[&str], default: Option<&str>) -> Value {
    let mut schema = json!({"type": "string", "enum": values});
    if let Some(default) = default {
        schema["default"] = default.into();
    }
    schema
}

/// What composite resources and claims have in common.
fn composition(update_policy: Option<&str>) -> Map<String, Value> {
    map(json!({
        "compositionRef": reference(&["name"], &["name"]),
        "compositionSelector": selector(),
        "compositionRevisionRef": reference(&["name"], &["name"]),
        "compositionRevisionSelector": selector(),
        "compositionUpdatePolicy": choice(&["Automatic", "Manual"], update_policy),
    }))
}

pub(super) fn composite_spec(scope: Scope, update_policy: Option<&str>) -> Map<String, Value> {
    let mut fields = composition(update_policy);
    // A namespaced composite resource composes in its own namespace only.
    let names: &[&str] = match scope {
        Scope::Namespaced => &["apiVersion", "kind", "name"],
        Scope::Cluster | Scope::LegacyCluster => &["apiVersion", "kind", "name", "namespace"],
    };
    let items = reference(names, &["apiVersion", "kind"]);
    // Controllers replace the whole list.
    let references = json!({"type": "array", "items": items, "x-kubernetes-list-type": "atomic"});
    fields.insert("resourceRefs".to_owned(), references);
    if scope.schema() == Schema::Modern {
        let description = "Configures how Crossplane will reconcile this composite resource";
        return map(
            json!({"crossplane": {"type": "object", "description": description, "properties": fields}}),
        );
    }
    let claim =
        reference(&["apiVersion", "kind", "namespace", "name"], &["apiVersion", "kind", "namespace", "name"]);
    fields.insert("claimRef".to_owned(), claim);
    let secret = reference(&["name", "namespace"], &["name", "namespace"]);
    fields.insert("writeConnectionSecretToRef".to_owned(), secret);
    fields
}

pub(super) fn claim_spec(delete_policy: Option<&str>) -> Map<String, Value> {
    let mut fields = composition(None);
    fields.extend(map(json!({
        "compositeDeletePolicy": choice(&["Background", "Foreground"], delete_policy),
        "resourceRef": reference(&["apiVersion", "kind", "name"], &["apiVersion", "kind", "name"]),
        "writeConnectionSecretToRef": reference(&["name"], &["name"]),
    })));
    fields
}

pub(super) fn composite_status(schema: Schema, extensions: Extensions) -> Map<String, Value> {
    let mut fields = map(json!({
        "conditions": {
            "description": "Conditions of the resource.",
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["lastTransitionTime", "reason", "status", "type"],
                "properties": {
                    "lastTransitionTime": {"type": "string", "format": "date-time"},
                    "message": {"type": "string"},
                    "reason": {"type": "string"},
                    "status": {"type": "string"},
                    "type": {"type": "string"},
                    "observedGeneration": {"type": "integer", "format": "int64"},
                },
            },
        },
    }));
    if schema == Schema::Legacy {
        let published = json!({"lastPublishedTime": {"type": "string", "format": "date-time"}});
        fields.insert("connectionDetails".to_owned(), json!({"type": "object", "properties": published}));
        let types = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        fields.insert("claimConditionTypes".to_owned(), types);
    }
    if extensions.watched_resources {
        let items = reference(&["apiVersion", "kind", "name", "namespace"], &["apiVersion", "kind", "name"]);
        let references = json!({"type": "array", "items": items, "x-kubernetes-list-type": "atomic"});
        fields.insert("watchedResourceRefs".to_owned(), references);
        let omitted = json!({"type": "integer", "format": "int64"});
        fields.insert("watchedResourceRefsOmitted".to_owned(), omitted);
    }
    if extensions.handled_requests {
        fields.insert("lastHandledReconcileAt".to_owned(), json!({"type": "string"}));
    }
    fields
}

fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path})
}

fn condition_column(name: &str, condition: &str) -> Value {
    column(name, "string", &format!(".status.conditions[?(@.type=='{condition}')].status"))
}

pub(super) fn composite_columns(schema: Schema) -> Vec<Value> {
    let place = match schema {
        Schema::Modern => ".spec.crossplane",
        Schema::Legacy => ".spec",
    };
    let mut revision =
        column("COMPOSITIONREVISION", "string", &format!("{place}.compositionRevisionRef.name"));
    revision["priority"] = 1.into();
    vec![
        condition_column("SYNCED", "Synced"),
        condition_column("READY", "Ready"),
        column("COMPOSITION", "string", &format!("{place}.compositionRef.name")),
        revision,
        column("AGE", "date", ".metadata.creationTimestamp"),
    ]
}

pub(super) fn claim_columns() -> Vec<Value> {
    vec![
        condition_column("SYNCED", "Synced"),
        condition_column("READY", "Ready"),
        column("CONNECTION-SECRET", "string", ".spec.writeConnectionSecretToRef.name"),
        column("AGE", "date", ".metadata.creationTimestamp"),
    ]
}

/// The fields of the spec of a legacy composite resource that belong to Crossplane.
pub fn composite_spec_fields() -> impl Iterator<Item = String> {
    composite_spec(Scope::LegacyCluster, None).into_iter().map(|(name, _)| name)
}

/// The fields of the spec of a claim that belong to Crossplane.
pub fn claim_only_fields() -> impl Iterator<Item = String> {
    claim_spec(None).into_iter().map(|(name, _)| name)
}

/// The fields of the status of a claim or its composite resource that belong to Crossplane.
pub fn claim_status_fields() -> impl Iterator<Item = String> {
    composite_status(Schema::Legacy, Extensions::ALL).into_iter().map(|(name, _)| name)
}
