//! References and selectors between managed resources: the objects that they select, and the values that follow. Pure.
//!
//! For a field `database` there are `databaseRef` and `databaseSelector`. The field is a cache: while it has a value, it is
//! resolved again only if the policy is `Always`. A reference that is set wins over the selector; among several objects
//! that a selector matches, the first by name is chosen.

use crate::kind::{Scope, reference_schema, selector_schema};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use transom_object::{GroupVersionKind, meta};
use transom_xapi::constants::annotation;

/// The field manager of resolved references.
pub const MANAGER: &str = "managed.crossplane.io/api-simple-reference-resolver";
/// What is said of a referenced object without a value.
pub const EMPTY: &str = "referenced field was empty (referenced resource may not yet be ready)";
/// What is said of a selector that matches nothing.
pub const NO_MATCH: &str = "no resources matched selector";

/// A field of `spec.forProvider` whose value can come from other objects: their external names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The field with the value.
    pub field: &'static str,
    /// The field with the reference, or with several.
    pub reference: String,
    /// The field with the selector.
    pub selector: String,
    /// What is referred to.
    pub to: GroupVersionKind,
    /// Whether the field is a list of values.
    pub many: bool,
}

impl Reference {
    /// A field with one value.
    pub fn one(field: &'static str, to: GroupVersionKind) -> Self {
        let (reference, selector) = (format!("{field}Ref"), format!("{field}Selector"));
        Self { field, reference, selector, to, many: false }
    }

    /// A field with a list of values, with the fields of its references and of its selector.
    pub fn many(field: &'static str, references: &str, selector: &str, to: GroupVersionKind) -> Self {
        Self { field, reference: references.to_owned(), selector: selector.to_owned(), to, many: true }
    }

    /// The schemas of its fields.
    pub(crate) fn schemas(&self, scope: Scope) -> Map<String, Value> {
        let mut reference = reference_schema(scope, &self.to.kind);
        if self.many {
            reference = json!({"type": "array", "description": "References.", "items": reference});
        }
        Map::from_iter([
            (self.reference.clone(), reference),
            (self.selector.clone(), selector_schema(scope, &self.to.kind)),
        ])
    }

    fn parameter<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
        object.get("spec")?.get("forProvider")?.get(field).filter(|value| !value.is_null())
    }

    fn has_value(&self, object: &Value) -> bool {
        match Self::parameter(object, self.field) {
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::String(text)) => !text.is_empty(),
            other => other.is_some(),
        }
    }

    /// What must be found to resolve it.
    pub fn request(&self, object: &Value) -> Request {
        let own = meta::namespace(object);
        let reference = Self::parameter(object, &self.reference);
        let selector = Self::parameter(object, &self.selector);
        let always = |of: Option<&Value>| policy(of, "resolve") == Some("Always");
        let has_value = self.has_value(object);
        let first = reference.map(|r| r.get(0).unwrap_or(r));
        let again = if selector.is_some() { always(selector) } else { always(first) };
        if meta::is_deleting(object) || (has_value && !again) {
            return Request::Nothing;
        }
        // A selector that always selects does so whatever it selected before.
        let reselects = has_value && selector.is_some();
        if let Some(reference) = reference.filter(|_| !reselects) {
            let list = reference.as_array().cloned().unwrap_or_else(|| vec![reference.clone()]);
            let named: Vec<Named> = list.iter().map(|reference| Named::read(reference, own)).collect();
            if !named.is_empty() {
                return Request::Named { all: named, again };
            }
        }
        match selector {
            None => Request::Nothing,
            Some(selector) => Request::Selected { selector: Selector::read(selector, object), again },
        }
    }

    /// The fields of `spec.forProvider` that change because of what was found. Several values are sorted and given once.
    pub fn resolved(&self, object: &Value, found: &[Found]) -> Map<String, Value> {
        let mut changes = Map::new();
        let mut found = found.to_vec();
        let reference_of = |found: &Found| {
            let mut reference = json!({"name": found.name});
            if !found.namespace.is_empty() {
                reference["namespace"] = found.namespace.as_str().into();
            }
            reference
        };
        let is_selected = Self::parameter(object, &self.reference).is_none()
            || (Self::parameter(object, &self.selector).is_some() && self.has_value(object));
        let (value, reference) = if self.many {
            if is_selected {
                found.sort_by(|a, b| a.value.cmp(&b.value));
                found.dedup_by(|a, b| a.value == b.value);
            }
            let values: Vec<Value> = found.iter().map(|found| found.value.clone().into()).collect();
            (Value::Array(values), Value::Array(found.iter().map(reference_of).collect()))
        } else {
            let Some(first) = found.first() else { return changes };
            (first.value.clone().into(), reference_of(first))
        };
        if Self::parameter(object, self.field) != Some(&value) {
            changes.insert(self.field.to_owned(), value);
        }
        if is_selected && Self::parameter(object, &self.reference) != Some(&reference) {
            changes.insert(self.reference.clone(), reference);
        }
        changes
    }
}

fn policy<'a>(of: Option<&'a Value>, field: &str) -> Option<&'a str> {
    of?.get("policy")?.get(field)?.as_str()
}

/// What must be found to resolve a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Nothing: it is resolved, or not asked for.
    Nothing,
    /// These objects.
    Named {
        /// The objects.
        all: Vec<Named>,
        /// Whether they are looked at in every reconcile.
        again: bool,
    },
    /// Objects that match.
    Selected {
        /// What they must match.
        selector: Selector,
        /// Whether they are selected in every reconcile.
        again: bool,
    },
}

/// An object that is referred to by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Whether the reconcile goes on without it.
    pub optional: bool,
}

impl Named {
    fn read(reference: &Value, own: &str) -> Self {
        let text = |field: &str| reference.get(field).and_then(Value::as_str);
        Self {
            name: text("name").unwrap_or_default().to_owned(),
            namespace: text("namespace").unwrap_or(own).to_owned(),
            optional: policy(Some(reference), "resolution") == Some("Optional"),
        }
    }
}

/// Which objects match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Their namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The labels that they have.
    pub labels: BTreeMap<String, String>,
    /// Whether they have the controller of the object itself; without a controller nothing matches.
    pub same_controller: bool,
    /// The uid of the controller of the object itself.
    pub controller: Option<String>,
    /// Whether the reconcile goes on if nothing matches.
    pub optional: bool,
}

impl Selector {
    fn read(selector: &Value, object: &Value) -> Self {
        let flag = |field: &str| selector.get(field).and_then(Value::as_bool).unwrap_or_default();
        let labels = selector.get("matchLabels").and_then(Value::as_object);
        let label = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        let namespace = selector.get("namespace").and_then(Value::as_str);
        Self {
            namespace: namespace.unwrap_or(meta::namespace(object)).to_owned(),
            labels: labels.into_iter().flatten().filter_map(label).collect(),
            same_controller: flag("matchControllerRef") || flag("matchComposite"),
            controller: meta::controller_of(object).map(|controller| controller.uid),
            optional: policy(Some(selector), "resolution") == Some("Optional"),
        }
    }

    /// What it matches, human-readable.
    pub fn describe(&self) -> String {
        let mut parts: Vec<String> =
            self.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if self.same_controller {
            parts.push("the same controller".to_owned());
        }
        if parts.is_empty() { "any".to_owned() } else { parts.join(", ") }
    }
}

/// An object that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Its external name.
    pub value: String,
}

impl Found {
    /// What a reference to an object needs of it.
    pub fn of(object: &Value) -> Self {
        Self {
            name: meta::name(object).to_owned(),
            namespace: meta::namespace(object).to_owned(),
            value: meta::annotation(object, annotation::EXTERNAL_NAME).unwrap_or_default().to_owned(),
        }
    }
}

/// The intent that writes resolved fields: the changes, and what the resolver wrote before and would lose otherwise.
pub fn intent(object: &Value, references: &[Reference], changes: &Map<String, Value>) -> Value {
    let owned = owned_fields(object);
    let mut fields = Map::new();
    for reference in references {
        for field in [reference.field, reference.reference.as_str()] {
            let kept = || Reference::parameter(object, field).filter(|_| owned.contains(&field)).cloned();
            if let Some(value) = changes.get(field).cloned().or_else(kept) {
                fields.insert(field.to_owned(), value);
            }
        }
    }
    let mut intent = json!({
        "apiVersion": meta::api_version(object), "kind": meta::kind(object),
        "metadata": {"name": meta::name(object)},
        "spec": {"forProvider": fields},
    });
    if !meta::namespace(object).is_empty() {
        meta::set_namespace(&mut intent, meta::namespace(object));
    }
    intent
}

/// The fields of `spec.forProvider` that the resolver owns.
fn owned_fields(object: &Value) -> Vec<&str> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let own = entries.into_iter().flatten().filter(|entry| entry["manager"] == MANAGER);
    let fields = own.filter_map(|entry| entry.pointer("/fieldsV1/f:spec/f:forProvider")?.as_object());
    fields.flat_map(|fields| fields.keys().filter_map(|key| key.strip_prefix("f:"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Reference {
        Reference::one("database", GroupVersionKind::new("g", "v1", "Database"))
    }

    fn object(parameters: &Value) -> Value {
        let owner = json!({"apiVersion": "e/v1", "kind": "X", "name": "x", "uid": "u", "controller": true});
        json!({
            "apiVersion": "g/v1", "kind": "Grant", "spec": {"forProvider": parameters},
            "metadata": {"name": "a", "namespace": "n", "ownerReferences": [owner]},
        })
    }

    fn found(name: &str, value: &str) -> Found {
        Found { name: name.to_owned(), namespace: String::new(), value: value.to_owned() }
    }

    #[test]
    fn what_is_asked_for() {
        let always = json!({"resolve": "Always"});
        let named = |again| Request::Named {
            all: vec![Named { name: "r".to_owned(), namespace: "n".to_owned(), optional: false }],
            again,
        };
        for (parameters, expected) in [
            (json!({}), Request::Nothing),
            (json!({"database": "d", "databaseRef": {"name": "r"}}), Request::Nothing),
            (json!({"databaseRef": {"name": "r"}}), named(false)),
            (json!({"database": "", "databaseRef": {"name": "r"}, "databaseSelector": {}}), named(false)),
            (json!({"database": "d", "databaseRef": {"name": "r", "policy": always}}), named(true)),
            (
                json!({"database": "d", "databaseRef": {"name": "r", "policy": always}, "databaseSelector": {}}),
                Request::Nothing,
            ),
        ] {
            assert_eq!(database().request(&object(&parameters)), expected, "{parameters}");
        }
        let parameters = json!({
            "database": "d", "databaseRef": {"name": "r"},
            "databaseSelector": {"matchComposite": true, "matchLabels": {"a": "b"}, "policy": always, "namespace": "m"},
        });
        let Request::Selected { selector, again: true } = database().request(&object(&parameters)) else {
            panic!("it is selected again");
        };
        assert!(selector.same_controller && !selector.optional);
        assert_eq!((selector.namespace.as_str(), selector.controller.as_deref()), ("m", Some("u")));
        assert_eq!(selector.describe(), "a=b, the same controller");
        let mut deleting = object(&json!({"databaseRef": {"name": "r"}}));
        deleting["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z".into();
        assert_eq!(database().request(&deleting), Request::Nothing);
    }

    #[test]
    fn values_and_references_are_written_back() {
        let selected = object(&json!({"databaseSelector": {}}));
        let changes = database().resolved(&selected, &[found("x", "ext-x"), found("y", "ext-y")]);
        assert_eq!(Value::Object(changes), json!({"database": "ext-x", "databaseRef": {"name": "x"}}));
        let named = object(&json!({"databaseRef": {"name": "x"}}));
        assert_eq!(Value::Object(database().resolved(&named, &[found("x", "v")])), json!({"database": "v"}));
        let same =
            object(&json!({"database": "v", "databaseRef": {"name": "x", "policy": {"resolve": "Always"}}}));
        assert!(database().resolved(&same, &[found("x", "v")]).is_empty());
        let users =
            Reference::many("users", "userRefs", "userSelector", GroupVersionKind::new("g", "v1", "User"));
        let several = object(&json!({"userSelector": {}}));
        let all = [found("1", "b"), found("2", "a"), found("3", "a")];
        assert_eq!(users.resolved(&several, &all)["users"], json!(["a", "b"]), "R37");
    }

    #[test]
    fn what_was_resolved_before_is_kept() {
        let role = Reference::one("role", GroupVersionKind::new("g", "v1", "Role"));
        let mut object = object(&json!({"database": "d", "role": "typed by a user"}));
        object["metadata"]["managedFields"] = json!([
            {"manager": MANAGER, "fieldsV1": {"f:spec": {"f:forProvider": {"f:database": {}}}}},
            {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:forProvider": {"f:role": {}}}}},
        ]);
        let changes = Map::from_iter([("databaseRef".to_owned(), json!({"name": "x"}))]);
        let intent = intent(&object, &[database(), role], &changes);
        assert_eq!(intent["spec"]["forProvider"], json!({"database": "d", "databaseRef": {"name": "x"}}));
        assert_eq!(intent["metadata"], json!({"name": "a", "namespace": "n"}));
    }
}
