//! Words to write schemas and CRDs with.

use crate::constants::kind;
use serde_json::{Value, json};

/// A CRD whose first version is the stored one.
pub(super) struct Crd {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) short_names: &'static [&'static str],
    pub(super) categories: &'static [&'static str],
    pub(super) namespaced: bool,
    pub(super) versions: Vec<Version>,
}

pub(super) struct Version {
    pub(super) name: &'static str,
    pub(super) columns: Vec<Value>,
    pub(super) description: &'static str,
    /// Beside those every object has.
    pub(super) properties: Value,
    pub(super) required: &'static [&'static str],
    /// Whether the status is a resource of its own.
    pub(super) status: bool,
    pub(super) deprecated: Option<&'static str>,
}

impl Crd {
    pub(super) fn build(self) -> Value {
        let versions: Vec<Value> =
            self.versions.into_iter().enumerate().map(|(i, version)| version.build(i == 0)).collect();
        let mut names = json!({
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "plural": self.plural,
            "singular": self.kind.to_lowercase(),
        });
        if !self.categories.is_empty() {
            names["categories"] = json!(self.categories);
        }
        if !self.short_names.is_empty() {
            names["shortNames"] = json!(self.short_names);
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{}", self.plural, self.group)},
            "spec": {
                "group": self.group,
                "names": names,
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "versions": versions,
            },
        })
    }
}

impl Version {
    fn build(self, storage: bool) -> Value {
        let mut properties = json!({
            "apiVersion": text("The version of the schema the object is written in."),
            "kind": text("What the object is."),
            "metadata": {"type": "object"},
        });
        merge(&mut properties, self.properties);
        let mut version = json!({
            "name": self.name,
            "served": true,
            "storage": storage,
            "additionalPrinterColumns": self.columns,
            "schema": {"openAPIV3Schema": object(self.description, self.required, properties)},
            "subresources": if self.status { json!({"status": {}}) } else { json!({}) },
        });
        if let Some(warning) = self.deprecated {
            version["deprecated"] = true.into();
            version["deprecationWarning"] = warning.into();
        }
        version
    }
}

/// Lays the fields of one object over another.
pub(super) fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

/// A schema with more keywords.
pub(super) fn with(mut schema: Value, more: Value) -> Value {
    merge(&mut schema, more);
    schema
}

pub(super) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

pub(super) fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

pub(super) fn integer(description: &str) -> Value {
    json!({"type": "integer", "format": "int64", "description": description})
}

pub(super) fn choice(description: &str, values: &[&str]) -> Value {
    with(text(description), json!({"enum": values}))
}

/// An object with these fields.
pub(super) fn fields<const N: usize>(fields: [(&str, Value); N]) -> Value {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

pub(super) fn object(description: &str, required: &[&str], properties: Value) -> Value {
    let mut schema =
        fields([("type", "object".into()), ("description", description.into()), ("properties", properties)]);
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

pub(super) fn texts_by_name(description: &str) -> Value {
    json!({"type": "object", "description": description, "additionalProperties": {"type": "string"}})
}

pub(super) fn list(description: &str, items: Value) -> Value {
    fields([("type", "array".into()), ("description", description.into()), ("items", items)])
}

pub(super) fn texts(description: &str) -> Value {
    list(description, json!({"type": "string"}))
}

/// A list that is replaced as a whole.
pub(super) fn atomic(list: Value) -> Value {
    with(list, json!({"x-kubernetes-list-type": "atomic"}))
}

/// A list whose items are identified by one field.
pub(super) fn list_by(key: &str, list: Value) -> Value {
    with(list, json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}))
}

/// A schema with rules, each with the message of its violation.
pub(super) fn ruled(schema: Value, rules: &[(&str, &str)]) -> Value {
    let rules: Vec<Value> =
        rules.iter().map(|(rule, message)| json!({"rule": rule, "message": message})).collect();
    with(schema, json!({"x-kubernetes-validations": rules}))
}

pub(super) const IMMUTABLE: (&str, &str) = ("self == oldSelf", "Value is immutable");

/// A reference by name alone.
pub(super) fn name_reference(description: &str, of: &str) -> Value {
    object(description, &["name"], json!({"name": text(&format!("Name of the {of}."))}))
}

/// A reference to a Secret in the namespace of the control plane, with the default that Kubernetes' type has.
pub(super) fn secret_reference(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "properties": {"name": with(text("Name of the Secret."), json!({"default": ""}))},
        "x-kubernetes-map-type": "atomic",
    })
}

/// A reference to what says how a package runs.
pub(super) fn runtime_config_reference(description: &str) -> Value {
    let mut reference = name_reference(description, "runtime config");
    let api_version = text("Group and version of the runtime config.");
    reference["properties"]["apiVersion"] = with(api_version, json!({"default": kind::PKG_V1BETA1}));
    let kind_of = text("Kind of the runtime config.");
    reference["properties"]["kind"] = with(kind_of, json!({"default": kind::DEPLOYMENT_RUNTIME_CONFIG}));
    reference
}

/// An object of which nothing is known.
pub(super) fn anything(description: &str) -> Value {
    json!({"type": "object", "description": description, "x-kubernetes-preserve-unknown-fields": true})
}

pub(super) fn conditions() -> Value {
    let condition = object(
        "A statement about the object.",
        &["lastTransitionTime", "reason", "status", "type"],
        json!({
            "type": text("What the statement is about; there is one statement for each type."),
            "status": text("Whether it holds: True, False or Unknown."),
            "reason": text("Why it does or does not, in one word."),
            "message": text("Why it does or does not, for people."),
            "lastTransitionTime": with(text("Since when this is so."), json!({"format": "date-time"})),
            "observedGeneration": integer("The generation of the object that the statement speaks of."),
        }),
    );
    list_by("type", list("Statements about the object.", condition))
}

pub(super) fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path})
}

pub(super) fn condition_column(name: &str, condition: &str) -> Value {
    column(name, "string", &format!(".status.conditions[?(@.type=='{condition}')].status"))
}

/// A column that only wide tables show.
pub(super) fn wide(column: Value) -> Value {
    with(column, json!({"priority": 1}))
}
