//! Type and object metadata of resources inside a value.

use crate::model::{Additional, Schema};
use crate::normalize::object_meta_problem;
use crate::trail::Trail;
use serde_json::{Map, Value};
use transom_object::GroupVersion;
use transom_object::field::{self, Path};
use transom_object::names;

/// All keys and values of annotations together may take this many bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Violations in `apiVersion`, `kind` and `metadata` of embedded resources, and of the root if
/// `is_root_resource`.
pub fn embedded(value: &Value, schema: &Schema, is_root_resource: bool, path: &Path) -> Vec<field::Error> {
    let mut found = Found { base: path, errors: Vec::new() };
    found.value(value, schema, schema.embedded || is_root_resource, &Trail::Root);
    found.errors
}

struct Found<'p> {
    base: &'p Path,
    errors: Vec<field::Error>,
}

impl Found<'_> {
    fn value(&mut self, value: &Value, schema: &Schema, embedded: bool, trail: &Trail<'_>) {
        match value {
            Value::Object(fields) => {
                if embedded {
                    self.resource(fields, trail);
                }
                for (name, value) in fields {
                    match (schema.properties.get(name), &schema.additional) {
                        (Some(child), _) => self.value(value, child, child.embedded, &trail.property(name)),
                        (None, Additional::Schema(child)) => {
                            self.value(value, child, child.embedded, &trail.key(name));
                        }
                        (None, Additional::Bool(_) | Additional::Absent) => {}
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &schema.items {
                    for (i, item) in items.iter().enumerate() {
                        self.value(item, schema, schema.embedded, &trail.index(i));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn resource(&mut self, fields: &Map<String, Value>, trail: &Trail<'_>) {
        for name in ["apiVersion", "kind"] {
            let Some(value) = fields.get(name) else {
                self.errors.push(field::Error::required(&self.path(trail, name), ""));
                continue;
            };
            let problem = match value {
                Value::String(text) if text.is_empty() => Some("must not be empty".to_owned()),
                Value::String(text) if name == "kind" => kind_problem(text),
                Value::String(text) if GroupVersion::parse(text).is_some() => None,
                Value::String(text) => Some(format!("unexpected GroupVersion string: {text}")),
                _ => Some("must be a string".to_owned()),
            };
            if let Some(problem) = problem {
                self.errors.push(field::Error::invalid(&self.path(trail, name), value.clone(), problem));
            }
        }
        if let Some(metadata) = fields.get("metadata") {
            let path = self.path(trail, "metadata");
            match object_meta_problem(metadata) {
                Some(problem) => self.errors.push(field::Error::invalid(&path, metadata.clone(), problem)),
                None => self.metadata(metadata, &path),
            }
        }
    }

    /// What names, keys and references in readable metadata look like. The embedded resource may have any
    /// kind, so its name need only fit into a URL.
    fn metadata(&mut self, metadata: &Value, path: &Path) {
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        for (name, messages) in [
            ("generateName", names::name_is_path_segment(text("generateName"), true)),
            ("name", names::name_is_path_segment(text("name"), false)),
            ("namespace", names::name_is_dns_label(text("namespace"), false)),
        ] {
            if !text(name).is_empty() {
                self.invalid_each(&path.child(name), text(name), messages);
            }
        }
        if metadata.get("generation").and_then(Value::as_i64).is_some_and(|g| g < 0) {
            let detail = "must be greater than or equal to 0";
            self.errors.push(field::Error::invalid(
                &path.child("generation"),
                metadata["generation"].clone(),
                detail,
            ));
        }
        for (key, value) in entries(metadata, "labels") {
            let at = path.child("labels");
            self.invalid_each(&at, key, names::is_qualified_name(key));
            self.invalid_each(&at, value, names::is_label_value(value));
        }
        let mut size = 0;
        for (key, value) in entries(metadata, "annotations") {
            self.invalid_each(&path.child("annotations"), key, names::is_qualified_name(&key.to_lowercase()));
            size += key.len() + value.len();
        }
        if size > ANNOTATIONS_LIMIT {
            self.errors.push(field::Error::too_long(&path.child("annotations"), ANNOTATIONS_LIMIT as i64));
        }
        for finalizer in metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.invalid_each(&path.child("finalizers"), finalizer, names::is_qualified_name(finalizer));
        }
        for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
            self.owner(owner, &path.child("ownerReferences"));
        }
    }

    fn owner(&mut self, owner: &Value, path: &Path) {
        for name in ["apiVersion", "kind", "name", "uid"] {
            if owner.get(name).and_then(Value::as_str).unwrap_or_default().is_empty() {
                let detail =
                    if name == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                self.errors.push(field::Error::invalid(&path.child(name), "", detail));
            }
        }
    }

    fn invalid_each(&mut self, path: &Path, value: &str, messages: Vec<String>) {
        self.errors.extend(messages.into_iter().map(|message| field::Error::invalid(path, value, message)));
    }

    fn path(&self, trail: &Trail<'_>, name: &str) -> Path {
        self.base.child(&trail.property(name).to_string())
    }
}

/// A kind in lower case is a DNS label that starts with a letter.
fn kind_problem(kind: &str) -> Option<String> {
    let messages = names::is_dns1035_label(&kind.to_lowercase());
    let text = || format!("may have mixed case, but should otherwise match: {}", messages.join(","));
    (!messages.is_empty()).then(text)
}

fn entries<'v>(metadata: &'v Value, name: &str) -> impl Iterator<Item = (&'v str, &'v str)> {
    let map = metadata.get(name).and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}
