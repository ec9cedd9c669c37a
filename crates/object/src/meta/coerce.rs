//! `ObjectMeta` through its types: what a decode into Go's struct and back leaves of it.
//!
//! Unknown fields vanish and are reported, nulls and empty values vanish, times are rewritten in UTC seconds, and a
//! value of the wrong type is an error with the message of Go's decoder. The struct is described by a table, so decoder
//! and messages come from one place.

use crate::field;
use crate::json::{format_float, is_empty, kind_of};
use crate::time;
use serde_json::{Map, Value};

/// A Go type, as far as metadata uses them. Texts carry the name of their type.
#[derive(Clone, Copy)]
enum Type {
    Text(&'static str),
    Int,
    Bool,
    Time,
    Labels,
    Texts,
    Structs(&'static Struct),
    /// Any JSON.
    Raw,
}

#[derive(Clone, Copy, PartialEq)]
enum Presence {
    /// Left out when zero.
    OmitEmpty,
    /// A pointer: left out only when absent or null.
    Pointer,
    /// Always written.
    Always,
}

struct Struct {
    name: &'static str,
    fields: &'static [(&'static str, Type, Presence)],
}

use Presence::{Always, OmitEmpty, Pointer};

const TEXT: Type = Type::Text("string");
const UID: Type = Type::Text("types.UID");

static OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    fields: &[
        ("apiVersion", TEXT, Always),
        ("kind", TEXT, Always),
        ("name", TEXT, Always),
        ("uid", UID, Always),
        ("controller", Type::Bool, Pointer),
        ("blockOwnerDeletion", Type::Bool, Pointer),
    ],
};

static MANAGED_FIELDS: Struct = Struct {
    name: "ManagedFieldsEntry",
    fields: &[
        ("manager", TEXT, OmitEmpty),
        ("operation", Type::Text("v1.ManagedFieldsOperationType"), OmitEmpty),
        ("apiVersion", TEXT, OmitEmpty),
        ("time", Type::Time, Pointer),
        ("fieldsType", TEXT, OmitEmpty),
        ("fieldsV1", Type::Raw, Pointer),
        ("subresource", TEXT, OmitEmpty),
    ],
};

static OBJECT_META: Struct = Struct {
    name: "ObjectMeta",
    fields: &[
        ("name", TEXT, OmitEmpty),
        ("generateName", TEXT, OmitEmpty),
        ("namespace", TEXT, OmitEmpty),
        ("selfLink", TEXT, OmitEmpty),
        ("uid", UID, OmitEmpty),
        ("resourceVersion", TEXT, OmitEmpty),
        ("generation", Type::Int, OmitEmpty),
        ("creationTimestamp", Type::Time, OmitEmpty),
        ("deletionTimestamp", Type::Time, Pointer),
        ("deletionGracePeriodSeconds", Type::Int, Pointer),
        ("labels", Type::Labels, OmitEmpty),
        ("annotations", Type::Labels, OmitEmpty),
        ("ownerReferences", Type::Structs(&OWNER_REFERENCE), OmitEmpty),
        ("finalizers", Type::Texts, OmitEmpty),
        ("managedFields", Type::Structs(&MANAGED_FIELDS), OmitEmpty),
    ],
};

/// Metadata after coercion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coerced {
    /// The metadata, with fields of the right types alone.
    pub metadata: Map<String, Value>,
    /// Paths below the metadata of fields that the type does not have, such as `ownerReferences[0].foo`.
    pub unknown: Vec<String>,
}

/// How strictly metadata is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoerceOptions {
    /// Leave out fields of the wrong type rather than fail.
    pub drop_malformed: bool,
}

/// Go reports at most this many unknown fields.
const MAX_UNKNOWN_FIELDS: usize = 100;

/// The state of one decode. Go goes on after a wrong type and reports the first, but a time ends the decode at once.
struct Decoder {
    first_error: Option<String>,
    unknown: Vec<String>,
}

/// Where a value is: the innermost struct and the names of fields that lead there.
struct FieldPosition<'a> {
    owner: &'static str,
    fields: String,
    path: &'a str,
}

impl Decoder {
    fn wrong(&mut self, position: &FieldPosition<'_>, value: &Value, go_type: &str) {
        self.first_error.get_or_insert_with(|| wrong_type(position, kind_of(value), go_type));
    }

    fn object(
        &mut self,
        description: &'static Struct,
        value: &Map<String, Value>,
        parents: &str,
        path: &str,
    ) -> Result<Map<String, Value>, String> {
        let mut out = Map::new();
        for (key, value) in value {
            let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let Some((_, ty, presence)) = description.fields.iter().find(|(name, ..)| name == key) else {
                if self.unknown.len() < MAX_UNKNOWN_FIELDS {
                    self.unknown.push(full);
                }
                continue;
            };
            if value.is_null() {
                continue;
            }
            let fields = if parents.is_empty() { key.clone() } else { format!("{parents}.{key}") };
            let position = FieldPosition { owner: description.name, fields, path: &full };
            let decoded = self.value(*ty, value, &position)?;
            if *presence != OmitEmpty || !is_empty(&decoded) {
                out.insert(key.clone(), decoded);
            }
        }
        for (name, ty, _) in description.fields.iter().filter(|(_, _, p)| *p == Always) {
            out.entry(*name).or_insert_with(|| zero(*ty));
        }
        Ok(out)
    }

    /// Null where the type was wrong; the error is kept.
    fn value(&mut self, ty: Type, value: &Value, position: &FieldPosition<'_>) -> Result<Value, String> {
        let go_type = match (ty, value) {
            (Type::Raw, _) | (Type::Text(_), Value::String(_)) | (Type::Bool, Value::Bool(_)) => {
                return Ok(value.clone());
            }
            (Type::Time, Value::String(s)) => return read_time(s),
            (Type::Time, _) => return Err(wrong_type(position, kind_of(value), "string")),
            (Type::Int, Value::Number(_)) => match integer(value) {
                Ok(n) => return Ok(n.into()),
                Err(literal) => {
                    let error = wrong_type(position, &format!("number {literal}"), "int64");
                    self.first_error.get_or_insert(error);
                    return Ok(Value::Null);
                }
            },
            (Type::Labels, Value::Object(map)) => {
                let entries = map.iter().map(|(k, v)| (k.clone(), self.text(v, position)));
                return Ok(Value::Object(entries.collect()));
            }
            (Type::Texts, Value::Array(list)) => {
                return Ok(list.iter().map(|v| self.text(v, position)).collect());
            }
            (Type::Structs(description), Value::Array(list)) => {
                return self.list(description, list, position);
            }
            (Type::Text(name), _) => name.to_owned(),
            (Type::Int, _) => "int64".to_owned(),
            (Type::Bool, _) => "bool".to_owned(),
            (Type::Labels, _) => "map[string]string".to_owned(),
            (Type::Texts, _) => "[]string".to_owned(),
            (Type::Structs(description), _) => format!("[]v1.{}", description.name),
        };
        self.wrong(position, value, &go_type);
        Ok(Value::Null)
    }

    /// A text inside a map or list, where null means empty.
    fn text(&mut self, value: &Value, position: &FieldPosition<'_>) -> Value {
        match value {
            Value::String(_) => value.clone(),
            Value::Null => Value::from(""),
            _ => {
                self.wrong(position, value, "string");
                Value::Null
            }
        }
    }

    fn list(
        &mut self,
        description: &'static Struct,
        list: &[Value],
        position: &FieldPosition<'_>,
    ) -> Result<Value, String> {
        let mut out = Vec::with_capacity(list.len());
        for (i, item) in list.iter().enumerate() {
            let empty = Map::new();
            let fields = match item {
                Value::Object(fields) => fields,
                Value::Null => &empty,
                _ => {
                    self.wrong(position, item, &format!("v1.{}", description.name));
                    continue;
                }
            };
            let path = format!("{}[{i}]", position.path);
            out.push(Value::Object(self.object(description, fields, &position.fields, &path)?));
        }
        Ok(Value::Array(out))
    }
}

fn wrong_type(position: &FieldPosition<'_>, what: &str, go_type: &str) -> String {
    format!(
        "json: cannot unmarshal {what} into Go struct field {}.{} of type {go_type}",
        position.owner, position.fields
    )
}

/// An `int64`, or the number as Go would have written it.
fn integer(value: &Value) -> Result<i64, String> {
    if let Some(n) = value.as_i64() {
        return Ok(n);
    }
    let literal = match value.as_f64() {
        Some(f) if value.is_f64() => format_float(f),
        _ => value.to_string(),
    };
    literal.parse().map_err(|_| literal)
}

/// In seconds of UTC; the year 1 is Go's zero time, which prints as null.
fn read_time(text: &str) -> Result<Value, String> {
    let shown = time::format(time::parse(text).map_err(|e| e.to_string())?);
    Ok(if shown == "0001-01-01T00:00:00Z" { Value::Null } else { shown.into() })
}

fn zero(ty: Type) -> Value {
    match ty {
        Type::Text(_) => "".into(),
        _ => Value::Null,
    }
}

fn decode(metadata: &Map<String, Value>) -> Result<Coerced, String> {
    let mut decoder = Decoder { first_error: None, unknown: Vec::new() };
    let decoded = decoder.object(&OBJECT_META, metadata, "", "")?;
    match decoder.first_error {
        Some(error) => Err(error),
        None => Ok(Coerced { metadata: decoded, unknown: decoder.unknown }),
    }
}

/// Why metadata cannot be coerced, worded as Go's decoder words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CoerceError(String);

/// Coerces a `metadata` value.
pub fn coerce_metadata(metadata: &Value, options: CoerceOptions) -> Result<Coerced, CoerceError> {
    let fields = match metadata {
        Value::Object(fields) => fields,
        Value::Null => return Ok(Coerced::default()),
        other => {
            return Err(CoerceError(format!(
                "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
                kind_of(other)
            )));
        }
    };
    match decode(fields) {
        Err(_) if options.drop_malformed => {
            let mut out = Coerced::default();
            for (key, value) in fields {
                if let Ok(one) = decode(&Map::from_iter([(key.clone(), value.clone())])) {
                    out.metadata.extend(one.metadata);
                    out.unknown.extend(one.unknown);
                }
            }
            Ok(out)
        }
        other => other.map_err(CoerceError),
    }
}

/// Coerces `apiVersion`, `kind` and `metadata` of one resource, at the root or embedded at `path`.
/// Returns the paths of unknown metadata fields.
pub fn coerce(
    object: &mut Map<String, Value>,
    path: &field::Path,
    options: CoerceOptions,
) -> Result<Vec<String>, field::Error> {
    for key in ["apiVersion", "kind"] {
        match object.get(key) {
            None | Some(Value::String(_)) => {}
            Some(_) if options.drop_malformed => drop(object.remove(key)),
            Some(other) => {
                return Err(field::Error::invalid(&path.child(key), other.clone(), "must be a string"));
            }
        }
    }
    let Some(metadata) = object.get("metadata") else { return Ok(Vec::new()) };
    let at = path.child("metadata");
    match coerce_metadata(metadata, options) {
        Ok(coerced) => {
            object.insert("metadata".to_owned(), Value::Object(coerced.metadata));
            Ok(coerced.unknown.into_iter().map(|p| format!("{at}.{p}")).collect())
        }
        // Metadata that is not an object stays for validation to reject.
        Err(_) if options.drop_malformed => Ok(Vec::new()),
        Err(why) => Err(field::Error::invalid(&at, metadata.clone(), why.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Outcomes recorded from Go's decoder and back.
    #[test]
    fn coerces_as_go_does() {
        for (input, want) in [
            (json!(null), json!({})),
            (json!({"labels": {"a": null}}), json!({"labels": {"a": ""}})),
            (json!({"labels": {}, "name": "", "generation": 0, "finalizers": []}), json!({})),
            (
                json!({"ownerReferences": [null, {"name": "x", "controller": false}]}),
                json!({"ownerReferences": [
                    {"apiVersion": "", "kind": "", "name": "", "uid": ""},
                    {"apiVersion": "", "kind": "", "name": "x", "uid": "", "controller": false},
                ]}),
            ),
            (json!({"finalizers": [null]}), json!({"finalizers": [""]})),
            (json!({"generation": 1.0}), json!({"generation": 1})),
            (json!({"creationTimestamp": null, "deletionTimestamp": null}), json!({})),
            (json!({"creationTimestamp": "0001-01-01T00:00:00Z"}), json!({})),
            (
                json!({"creationTimestamp": "2020-01-01T00:00:00.5+02:00"}),
                json!({"creationTimestamp": "2019-12-31T22:00:00Z"}),
            ),
            (json!({"deletionGracePeriodSeconds": 0}), json!({"deletionGracePeriodSeconds": 0})),
            (
                json!({"managedFields": [{"fieldsV1": {"f:a": {}}, "time": "2020-02-20T00:00:00Z", "manager": ""}]}),
                json!({"managedFields": [{"fieldsV1": {"f:a": {}}, "time": "2020-02-20T00:00:00Z"}]}),
            ),
        ] {
            let got = coerce_metadata(&input, CoerceOptions::default()).map(|c| Value::Object(c.metadata));
            assert_eq!(got, Ok(want), "{input}");
        }
    }

    #[test]
    fn words_errors_as_go_does() {
        for (input, want) in [
            (json!(5), "number into Go value of type v1.ObjectMeta"),
            (json!([1]), "array into Go value of type v1.ObjectMeta"),
            (json!({"labels": {"a": 42}}), "number into Go struct field ObjectMeta.labels of type string"),
            (
                json!({"labels": "x"}),
                "string into Go struct field ObjectMeta.labels of type map[string]string",
            ),
            (
                json!({"ownerReferences": [{"name": 1}]}),
                "number into Go struct field OwnerReference.ownerReferences.name of type string",
            ),
            (
                json!({"ownerReferences": [{"controller": "x"}]}),
                "string into Go struct field OwnerReference.ownerReferences.controller of type bool",
            ),
            (
                json!({"ownerReferences": {}}),
                "object into Go struct field ObjectMeta.ownerReferences of type []v1.OwnerReference",
            ),
            (
                json!({"ownerReferences": ["x"]}),
                "string into Go struct field ObjectMeta.ownerReferences of type v1.OwnerReference",
            ),
            (json!({"finalizers": [1]}), "number into Go struct field ObjectMeta.finalizers of type string"),
            (
                json!({"generation": 1.5}),
                "number 1.5 into Go struct field ObjectMeta.generation of type int64",
            ),
            (json!({"generation": "1"}), "string into Go struct field ObjectMeta.generation of type int64"),
            (
                json!({"creationTimestamp": 5}),
                "number into Go struct field ObjectMeta.creationTimestamp of type string",
            ),
            (
                json!({"managedFields": [{"manager": 1, "time": 3}]}),
                "number into Go struct field ManagedFieldsEntry.managedFields.time of type string",
            ),
            (
                json!({"managedFields": [{"operation": 5}]}),
                "number into Go struct field ManagedFieldsEntry.managedFields.operation of type v1.ManagedFieldsOperationType",
            ),
            (json!({"uid": 5}), "number into Go struct field ObjectMeta.uid of type types.UID"),
        ] {
            let error = coerce_metadata(&input, CoerceOptions::default()).unwrap_err();
            assert_eq!(error.to_string(), format!("json: cannot unmarshal {want}"), "{input}");
        }
        // A bad time is reported instead of what was wrong before it.
        let got =
            coerce_metadata(&json!({"annotations": 5, "creationTimestamp": "x"}), CoerceOptions::default());
        assert!(got.is_err_and(|e| e.to_string().starts_with("parsing time")));
    }

    #[test]
    fn reports_and_drops() {
        let metadata = json!({"Name": "x", "ownerReferences": [{"foo": 1}], "labels": 5, "name": "n"});
        let got = coerce_metadata(&metadata, CoerceOptions { drop_malformed: true }).unwrap();
        assert_eq!(got.unknown, ["Name", "ownerReferences[0].foo"]);
        assert_eq!(got.metadata["name"], "n");
        assert!(!got.metadata.contains_key("labels"));

        let mut object = json!({"apiVersion": "v1", "kind": 5}).as_object().unwrap().clone();
        let error = coerce(&mut object, &field::Path::new("spec"), CoerceOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), "spec.kind: Invalid value: 5: must be a string");
    }
}
