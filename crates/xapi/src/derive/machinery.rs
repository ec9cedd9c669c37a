//! The properties and printer columns that composite resources and claims have because of Crossplane.

use super::Extensions;
use crate::composite::Layout;
use crate::definition::Scope;
use serde_json::{Map, Value, json};

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// A schema with a description, for `kubectl explain`.
fn described(description: &str, mut schema: Value) -> Value {
    schema["description"] = description.into();
    schema
}

/// An object that refers to another by these fields, of which some are required.
fn reference(description: &str, of: &str, fields: &[&str], required: &[&str]) -> Value {
    let field = |field: &&str| {
        let what = match *field {
            "apiVersion" => "API group and version",
            "kind" => "Kind",
            "namespace" => "Namespace",
            _ => "Name",
        };
        ((*field).to_owned(), described(&format!("{what} of the {of}."), json!({"type": "string"})))
    };
    let properties: Map<String, Value> = fields.iter().map(field).collect();
    described(description, json!({"type": "object", "required": required, "properties": properties}))
}

fn selector(description: &str, of: &str) -> Value {
    let labels = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let labels = described(&format!("Labels that the {of} must have, all of them."), labels);
    described(
        description,
        json!({"type": "object", "required": ["matchLabels"], "properties": {"matchLabels": labels}}),
    )
}

fn choice(description: &str, values: &[&str], default: Option<&str>) -> Value {
    let mut schema = described(description, json!({"type": "string", "enum": values}));
    if let Some(default) = default {
        schema["default"] = default.into();
    }
    schema
}

/// What composite resources and claims have in common.
fn composition(update_policy: Option<&str>) -> Map<String, Value> {
    map(json!({
        "compositionRef": reference(
            "The Composition that composes this resource. Chosen and written by the control plane if it is not set; \
             from then on it is only changed by you.",
            "Composition", &["name"], &["name"],
        ),
        "compositionSelector": selector(
            "Selects the Composition by its labels, as long as compositionRef is not set. Of several that match any \
             one is chosen.",
            "Composition",
        ),
        "compositionRevisionRef": reference(
            "The revision of the Composition that is in use. With the update policy Manual you choose it, otherwise \
             the control plane keeps it at the latest.",
            "CompositionRevision", &["name"], &["name"],
        ),
        "compositionRevisionSelector": selector(
            "With the update policy Automatic only revisions with these labels are used. With Manual, the latest with \
             these labels is chosen if the revision in use does not have them.",
            "CompositionRevision",
        ),
        "compositionUpdatePolicy": choice(
            "Automatic uses the latest revision of the Composition as soon as there is one; Manual stays at the \
             revision in compositionRevisionRef.",
            &["Automatic", "Manual"], update_policy,
        ),
    }))
}

pub(super) fn composite_spec(scope: Scope, update_policy: Option<&str>) -> Map<String, Value> {
    let mut fields = composition(update_policy);
    // A namespaced composite resource composes in its own namespace only.
    let names: &[&str] = match scope {
        Scope::Namespaced => &["apiVersion", "kind", "name"],
        Scope::Cluster | Scope::LegacyCluster => &["apiVersion", "kind", "name", "namespace"],
    };
    let items = reference("A composed resource.", "composed resource", names, &["apiVersion", "kind"]);
    // Controllers replace the whole list.
    let references = json!({"type": "array", "items": items, "x-kubernetes-list-type": "atomic"});
    let references = described(
        "The resources this one is composed of. Written by the control plane: do not edit.",
        references,
    );
    fields.insert("resourceRefs".to_owned(), references);
    if scope.layout() == Layout::Modern {
        let description = "Configures how Crossplane will reconcile this composite resource";
        return map(
            json!({"crossplane": {"type": "object", "description": description, "properties": fields}}),
        );
    }
    let names = &["apiVersion", "kind", "namespace", "name"];
    let claim = reference("The claim that this resource was created for.", "claim", names, names);
    fields.insert("claimRef".to_owned(), claim);
    let secret = reference(
        "The Secret that connection details are published to.",
        "Secret",
        &["name", "namespace"],
        &["name", "namespace"],
    );
    fields.insert("writeConnectionSecretToRef".to_owned(), secret);
    fields
}

pub(super) fn claim_spec(delete_policy: Option<&str>) -> Map<String, Value> {
    let mut fields = composition(None);
    let names = &["apiVersion", "kind", "name"];
    fields.extend(map(json!({
        "compositeDeletePolicy": choice(
            "What deleting the claim waits for. Background: nothing, the composite resource goes afterwards; \
             Foreground: until the composite resource and what it is composed of are gone.",
            &["Background", "Foreground"], delete_policy,
        ),
        "resourceRef": reference(
            "The composite resource of this claim. Set it to bind one that exists; otherwise one is created.",
            "composite resource", names, names,
        ),
        "writeConnectionSecretToRef": reference(
            "The Secret, in the namespace of the claim, that connection details are copied to.",
            "Secret", &["name"], &["name"],
        ),
    })));
    fields
}

fn conditions() -> Value {
    let text = |description: &str| described(description, json!({"type": "string"}));
    let time = json!({"type": "string", "format": "date-time"});
    json!({
        "description": "Conditions of the resource.",
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "A condition of the resource.",
            "type": "object",
            "required": ["lastTransitionTime", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": described("When the condition last changed.", time),
                "message": text("A human-readable explanation of the last change."),
                "reason": text("Why the condition last changed, in one word."),
                "status": text("Whether the condition holds: True, False or Unknown."),
                "type": text("Type of the condition; there is at most one of each."),
                "observedGeneration": described(
                    "The metadata.generation that the condition is about.",
                    json!({"type": "integer", "format": "int64"}),
                ),
            },
        },
    })
}

pub(super) fn composite_status(layout: Layout, extensions: Extensions) -> Map<String, Value> {
    let mut fields = map(json!({"conditions": conditions()}));
    if layout == Layout::Legacy {
        let time = json!({"type": "string", "format": "date-time"});
        let published = json!({"lastPublishedTime": described("When they were last published.", time)});
        let details = described("Connection details.", json!({"type": "object", "properties": published}));
        fields.insert("connectionDetails".to_owned(), details);
        let types = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        let types = described("The types of the conditions that are copied to the claim.", types);
        fields.insert("claimConditionTypes".to_owned(), types);
    }
    if extensions.watched_resources {
        let items = reference(
            "A resource that a function required.",
            "resource",
            &["apiVersion", "kind", "name", "namespace"],
            &["apiVersion", "kind", "name"],
        );
        let references = json!({"type": "array", "items": items, "x-kubernetes-list-type": "atomic"});
        let references =
            described("Other resources whose changes cause a reconcile of this one.", references);
        fields.insert("watchedResourceRefs".to_owned(), references);
        let omitted = json!({"type": "integer", "format": "int64"});
        let omitted =
            described("How many more resources are watched than watchedResourceRefs lists.", omitted);
        fields.insert("watchedResourceRefsOmitted".to_owned(), omitted);
    }
    if extensions.handled_requests {
        let handled = json!({"type": "string"});
        let handled = described(
            "The value of the annotation crossplane.io/reconcile-requested-at that was last acted upon.",
            handled,
        );
        fields.insert("lastHandledReconcileAt".to_owned(), handled);
    }
    fields
}

/// Where conversion rules keep fields of the status that a version does not have.
pub const KEPT_FIELDS: &str = "keptFields";

/// The field of the status that only kinds with conversion rules have.
pub(super) fn kept_fields() -> (String, Value) {
    let text = json!({"type": "string"});
    let text =
        described("Fields of the status that this version does not have, by version. Do not edit.", text);
    (KEPT_FIELDS.to_owned(), text)
}

fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path})
}

fn condition_column(name: &str, condition: &str) -> Value {
    column(name, "string", &format!(".status.conditions[?(@.type=='{condition}')].status"))
}

pub(super) fn composite_columns(layout: Layout) -> Vec<Value> {
    let place = match layout {
        Layout::Modern => ".spec.crossplane",
        Layout::Legacy => ".spec",
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
    composite_status(Layout::Legacy, Extensions::ALL).into_iter().map(|(name, _)| name)
}

/// Crossplane's own fields of `spec`, of composite resources and claims in all layouts.
const OWN_SPEC: &[&str] = &[
    "claimRef",
    "compositeDeletePolicy",
    "compositionRef",
    "compositionRevisionRef",
    "compositionRevisionSelector",
    "compositionSelector",
    "compositionUpdatePolicy",
    "crossplane",
    "resourceRef",
    "resourceRefs",
    "writeConnectionSecretToRef",
];
/// Crossplane's own fields of `status`.
const OWN_STATUS: &[&str] =
    &["claimConditionTypes", "conditions", "connectionDetails", "crossplane", KEPT_FIELDS];

/// Whether a field of `spec` or `status` belongs to Crossplane, in composite resources or claims of any layout.
pub fn is_own_field(part: &str, name: &str) -> bool {
    match part {
        "spec" => OWN_SPEC.contains(&name),
        "status" => OWN_STATUS.contains(&name) || claim_status_fields().any(|own| own == name),
        _ => false,
    }
}

/// Removes the words that describe Crossplane's own fields from the schema of a kind.
pub(super) fn without_words(schema: &mut Value) {
    for (part, own) in [("spec", OWN_SPEC), ("status", OWN_STATUS)] {
        let fields =
            schema.pointer_mut(&format!("/properties/{part}/properties")).and_then(Value::as_object_mut);
        for (_, field) in fields.into_iter().flatten().filter(|(name, _)| own.contains(&name.as_str())) {
            remove_words(field);
        }
    }
    for name in ["apiVersion", "kind", "metadata"] {
        schema.pointer_mut(&format!("/properties/{name}")).into_iter().for_each(remove_words);
    }
}

fn remove_words(schema: &mut Value) {
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("description");
        let below = schema.get_mut("properties").and_then(Value::as_object_mut);
        below.into_iter().flatten().for_each(|(_, field)| remove_words(field));
        for nested in ["items", "additionalProperties"] {
            schema.get_mut(nested).into_iter().for_each(remove_words);
        }
    }
}
