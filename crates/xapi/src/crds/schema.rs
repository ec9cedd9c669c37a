//! Functions that build schemas and CRDs, for Crossplane's own kinds and for those of providers.

use crate::constants::kind;
use serde_json::{Value, json};

/// A CRD whose first version is the stored one.
pub struct Crd {
    /// Its API group.
    pub group: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
    /// Its short names.
    pub short_names: &'static [&'static str],
    /// The categories that list it.
    pub categories: &'static [&'static str],
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Its versions.
    pub versions: Vec<Version>,
}

/// A version of a kind.
pub struct Version {
    /// Its name.
    pub name: &'static str,
    /// The columns of tables.
    pub columns: Vec<Value>,
    /// What objects of the kind are.
    pub description: &'static str,
    /// The properties in addition to `apiVersion`, `kind` and `metadata`.
    pub properties: Value,
    /// The fields that objects must have.
    pub required: &'static [&'static str],
    /// Whether the status is a resource of its own.
    pub status: bool,
    /// The warning to clients that use it.
    pub deprecated: Option<&'static str>,
}

impl Crd {
    /// The CustomResourceDefinition.
    pub fn build(self) -> Value {
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
            "kind": text("The kind of the object."),
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
pub fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

/// A schema with more keywords.
pub fn with(mut schema: Value, more: Value) -> Value {
    merge(&mut schema, more);
    schema
}

/// A text.
pub fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// A truth value.
pub fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

/// A whole number.
pub fn integer(description: &str) -> Value {
    json!({"type": "integer", "format": "int64", "description": description})
}

/// One of these texts.
pub fn choice(description: &str, values: &[&str]) -> Value {
    with(text(description), json!({"enum": values}))
}

/// An object with these fields.
pub fn fields<const N: usize>(fields: [(&str, Value); N]) -> Value {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// An object with these properties.
pub fn object(description: &str, required: &[&str], properties: Value) -> Value {
    let mut schema =
        fields([("type", "object".into()), ("description", description.into()), ("properties", properties)]);
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// An object whose values are texts.
pub fn texts_by_name(description: &str) -> Value {
    json!({"type": "object", "description": description, "additionalProperties": {"type": "string"}})
}

/// A list.
pub fn list(description: &str, items: Value) -> Value {
    fields([("type", "array".into()), ("description", description.into()), ("items", items)])
}

/// A list of texts.
pub fn texts(description: &str) -> Value {
    list(description, json!({"type": "string"}))
}

/// A list that is replaced as a whole.
pub fn atomic(list: Value) -> Value {
    with(list, json!({"x-kubernetes-list-type": "atomic"}))
}

/// A list whose items are identified by one field.
pub fn list_by(key: &str, list: Value) -> Value {
    with(list, json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}))
}

/// A schema with rules, each with the message of its violation.
pub fn ruled(schema: Value, rules: &[(&str, &str)]) -> Value {
    let rules: Vec<Value> =
        rules.iter().map(|(rule, message)| json!({"rule": rule, "message": message})).collect();
    with(schema, json!({"x-kubernetes-validations": rules}))
}

/// The rule of a field that cannot be changed.
pub const IMMUTABLE: (&str, &str) = ("self == oldSelf", "Value is immutable");

/// A reference by name alone.
pub fn name_reference(description: &str, of: &str) -> Value {
    object(description, &["name"], json!({"name": text(&format!("Name of the {of}."))}))
}

/// A reference to a Secret in the namespace of the control plane, with the default that Kubernetes' type has.
pub fn secret_reference(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "properties": {"name": with(text("Name of the Secret."), json!({"default": ""}))},
        "x-kubernetes-map-type": "atomic",
    })
}

/// A reference to the DeploymentRuntimeConfig of a package.
pub fn runtime_config_reference(description: &str) -> Value {
    let mut reference = name_reference(description, "runtime config");
    let api_version = text("Group and version of the runtime config.");
    reference["properties"]["apiVersion"] = with(api_version, json!({"default": kind::PKG_V1BETA1}));
    let kind_of = text("Kind of the runtime config.");
    reference["properties"]["kind"] = with(kind_of, json!({"default": kind::DEPLOYMENT_RUNTIME_CONFIG}));
    reference
}

/// An object with any fields.
pub fn anything(description: &str) -> Value {
    json!({"type": "object", "description": description, "x-kubernetes-preserve-unknown-fields": true})
}

/// `status.conditions`.
pub fn conditions() -> Value {
    let condition = object(
        "A condition of the object.",
        &["lastTransitionTime", "reason", "status", "type"],
        json!({
            "type": text("The type of the condition. Each type occurs at most once."),
            "status": text("The status of the condition: True, False or Unknown."),
            "reason": text("A CamelCase reason for the status."),
            "message": text("A human-readable explanation of the status."),
            "lastTransitionTime": with(text("When the status last changed."), json!({"format": "date-time"})),
            "observedGeneration": integer("The generation of the object that the condition was set for."),
        }),
    );
    list_by("type", list("Conditions of the object.", condition))
}

/// A column of tables.
pub fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path})
}

/// The column with the status of a condition.
pub fn condition_column(name: &str, condition: &str) -> Value {
    column(name, "string", &format!(".status.conditions[?(@.type=='{condition}')].status"))
}

/// A column that only wide tables show.
pub fn wide(column: Value) -> Value {
    with(column, json!({"priority": 1}))
}
