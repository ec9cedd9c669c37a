//! Fields that a version does not have. They travel with the object, by the version that they are of, and come back when
//! it is converted to that version again: those of the spec in an annotation, those of the status in a field of the status.
//! So a client without the right to write the status cannot write what is kept of it.
//!
//! Entries of lists are found by their keys (lists of type map), or else by their content: a field of an entry comes back if the
//! entry is still as it was, wherever it is in the list by then. What is gone when an object comes back takes its kept
//! fields along.

use crate::convert::ConversionError;
use crate::path::FieldPath;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use transom_object::hash::fnv1a;
use transom_object::json;
use transom_schema::{Additional, ListType, Schema, normalize};

/// The annotation with the kept fields of the spec.
pub const ANNOTATION: &str = "transom.io/kept-fields";
/// The field of the status with its kept fields.
pub const STATUS_FIELD: &str = "keptFields";
const STATUS_POINTER: &str = "/status/keptFields";

/// One step of the path of a kept field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Segment {
    Field(String),
    /// The entry of a list with these values.
    Keys(Map<String, Value>),
    /// The entry at this index with this content.
    Entry(usize, String),
}

/// A field that a version does not have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub(crate) path: Vec<Segment>,
    pub(crate) value: Value,
}

/// The kept fields of an object by version.
#[derive(Debug, Default)]
pub(crate) struct KeptFields(BTreeMap<String, Vec<Kept>>);

impl KeptFields {
    /// Those of an object. Of a text that cannot be read nothing is kept.
    pub(crate) fn of(object: &Value) -> Self {
        let annotation = object.pointer("/metadata/annotations").and_then(|all| all.get(ANNOTATION));
        let texts = [("spec", annotation), ("status", object.pointer(STATUS_POINTER))];
        let mut all = BTreeMap::<String, Vec<Kept>>::new();
        for (part, text) in texts {
            let text = text.and_then(Value::as_str).unwrap_or("{}");
            let read: BTreeMap<String, Vec<(Value, Value)>> = serde_json::from_str(text).unwrap_or_default();
            for (version, list) in read {
                let fields = list.iter().filter_map(Kept::read).filter(|kept| kept.is_below(part));
                all.entry(version).or_default().extend(fields);
            }
        }
        Self(all)
    }

    pub(crate) fn take(&mut self, version: &str) -> Vec<Kept> {
        self.0.remove(version).unwrap_or_default()
    }

    pub(crate) fn put(&mut self, version: &str, fields: Vec<Kept>) {
        self.0.insert(version.to_owned(), fields);
    }

    /// Writes them into an object that has none.
    pub(crate) fn write(&self, object: &mut Value) -> Result<(), ConversionError> {
        if let Some(text) = self.text("spec") {
            let metadata = fields_of(object, "metadata").ok_or(ConversionError::NoObject("metadata"))?;
            let annotations = metadata.entry("annotations").or_insert(Value::Null);
            let annotations =
                as_fields(annotations).ok_or(ConversionError::NoObject("metadata.annotations"))?;
            annotations.insert(ANNOTATION.to_owned(), text.into());
        }
        if let Some(text) = self.text("status") {
            let status = fields_of(object, "status").ok_or(ConversionError::NoObject("status"))?;
            status.insert(STATUS_FIELD.to_owned(), text.into());
        }
        Ok(())
    }

    /// The kept fields of a part of the object as one text.
    fn text(&self, part: &str) -> Option<String> {
        let of = |fields: &Vec<Kept>| -> Vec<Value> {
            fields.iter().filter(|kept| kept.is_below(part)).map(Kept::to_json).collect()
        };
        let kept = self.0.iter().map(|(version, fields)| (version.clone(), of(fields)));
        let kept: Map<String, Value> = kept
            .filter(|(_, fields)| !fields.is_empty())
            .map(|(version, fields)| (version, fields.into()))
            .collect();
        (!kept.is_empty()).then(|| Value::Object(kept).to_string())
    }
}

/// Removes kept fields from an object.
pub(crate) fn remove_from(object: &mut Value) {
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove(STATUS_FIELD);
    }
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    if annotations.remove(ANNOTATION).is_some() && annotations.is_empty() {
        metadata.remove("annotations");
    }
}

/// The fields of a part of an object, which is made if there is none.
fn fields_of<'v>(object: &'v mut Value, part: &str) -> Option<&'v mut Map<String, Value>> {
    as_fields(object.as_object_mut()?.entry(part).or_insert(Value::Null))
}

fn as_fields(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

impl Kept {
    fn read((path, value): &(Value, Value)) -> Option<Self> {
        let segment = |json: &Value| match json {
            Value::String(name) => Some(Segment::Field(name.clone())),
            Value::Object(keys) => Some(Segment::Keys(keys.clone())),
            Value::Array(entry) => {
                let index = usize::try_from(entry.first()?.as_u64()?).ok()?;
                Some(Segment::Entry(index, entry.get(1)?.as_str()?.to_owned()))
            }
            _ => None,
        };
        let path = path.as_array()?.iter().map(segment).collect::<Option<Vec<_>>>()?;
        Some(Self { path, value: value.clone() })
    }

    fn to_json(&self) -> Value {
        let segment = |segment: &Segment| match segment {
            Segment::Field(name) => json!(name),
            Segment::Keys(keys) => Value::Object(keys.clone()),
            Segment::Entry(index, content) => json!([index, content]),
        };
        json!([self.path.iter().map(segment).collect::<Vec<_>>(), self.value])
    }

    /// Whether it is a field below `spec`, or below `status`.
    fn is_below(&self, part: &str) -> bool {
        self.path.len() > 1 && matches!(&self.path[0], Segment::Field(name) if name == part)
    }

    /// The names of the fields until the first list.
    pub(crate) fn leading_names(&self) -> Vec<String> {
        let name = |segment: &Segment| match segment {
            Segment::Field(name) => Some(name.clone()),
            Segment::Keys(_) | Segment::Entry(..) => None,
        };
        self.path.iter().map_while(name).collect()
    }

    /// Replaces these names.
    pub(crate) fn rename(&mut self, names: Vec<String>) {
        let count = self.leading_names().len();
        let rest = self.path.split_off(count);
        self.path = names.into_iter().map(Segment::Field).chain(rest).collect();
    }

    /// Removes fields that are computed on the way back; whether anything is left to keep.
    pub(crate) fn forget(&mut self, computed: &[FieldPath]) -> bool {
        let names = self.leading_names();
        for path in computed {
            if names.starts_with(path.names()) {
                return false;
            }
            let below =
                path.names().strip_prefix(names.as_slice()).filter(|_| self.path.len() == names.len());
            if let Some(below) = below
                && remove(&mut self.value, below)
                && self.value == json!({})
            {
                return false;
            }
        }
        true
    }
}

fn remove(value: &mut Value, names: &[String]) -> bool {
    let Some(((last, way), fields)) = names.split_last().zip(Some(value)) else { return false };
    let parent = way.iter().try_fold(fields, |value, name| value.get_mut(name));
    parent.and_then(Value::as_object_mut).is_some_and(|fields| fields.remove(last).is_some())
}

/// What identifies the content of an entry: FNV-1a of its JSON, in which it has its defaults.
pub(crate) fn content(entry: &Value, schema: Option<&Schema>) -> String {
    let mut entry = entry.clone();
    if let Some(schema) = schema {
        normalize::default(&mut entry, schema);
    }
    let hash = fnv1a(json::encode(&entry));
    format!("{hash:016x}")
}

/// Takes the fields out of an object that a schema does not have.
pub(crate) fn split(object: &mut Value, schema: &Schema) -> Vec<Kept> {
    let mut out = Vec::new();
    if let Value::Object(fields) = object {
        for part in ["spec", "status"] {
            if let Some(value) = fields.get_mut(part) {
                let path = [Segment::Field(part.to_owned())];
                split_value(value, schema.properties.get(part).map(|s| &**s), &path, &mut out);
            }
        }
    }
    out
}

fn split_value(value: &mut Value, schema: Option<&Schema>, path: &[Segment], out: &mut Vec<Kept>) {
    match value {
        Value::Object(fields) => split_fields(fields, schema, path, out),
        Value::Array(entries) => {
            let Some(schema) = schema.filter(|schema| !schema.preserve_unknown) else { return };
            let of_entries = schema.items.as_deref();
            for (index, entry) in entries.iter_mut().enumerate() {
                let (depth, first) = (path.len(), out.len());
                let step = keys(entry, schema).map_or(Segment::Entry(index, String::new()), Segment::Keys);
                let path: Vec<Segment> = path.iter().cloned().chain([step]).collect();
                split_value(entry, of_entries, &path, out);
                identify(&mut out[first..], depth, entry, of_entries);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Writes the content of an entry into the paths that lead through it at this depth.
fn identify(fields: &mut [Kept], depth: usize, entry: &Value, schema: Option<&Schema>) {
    let mut found = None;
    for kept in fields {
        if let Some(Segment::Entry(_, text)) = kept.path.get_mut(depth) {
            text.clone_from(found.get_or_insert_with(|| content(entry, schema)));
        }
    }
}

fn split_fields(
    fields: &mut Map<String, Value>,
    schema: Option<&Schema>,
    path: &[Segment],
    out: &mut Vec<Kept>,
) {
    let below = |name: &str| -> Vec<Segment> {
        path.iter().cloned().chain([Segment::Field(name.to_owned())]).collect()
    };
    fields.retain(|name, value| {
        let known = schema.map_or(Known::No, |schema| Known::of(name, schema));
        match known {
            Known::AsItIs => {}
            Known::By(schema) => split_value(value, schema, &below(name), out),
            Known::No => out.push(Kept { path: below(name), value: value.take() }),
        }
        !matches!(known, Known::No)
    });
}

/// What a schema says of a field.
pub(crate) enum Known<'s> {
    No,
    /// Nothing, but it is preserved with all that is in it.
    AsItIs,
    By(Option<&'s Schema>),
}

impl<'s> Known<'s> {
    pub(crate) fn of(name: &str, schema: &'s Schema) -> Self {
        match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => Self::By(Some(property)),
            (None, Additional::Schema(values)) => Self::By(Some(values)),
            (None, Additional::Bool(_)) => Self::By(None),
            (None, Additional::Absent) => {
                // An embedded object has these whatever its schema says.
                let is_meta = schema.embedded && ["apiVersion", "kind", "metadata"].contains(&name);
                if schema.preserve_unknown || is_meta { Self::AsItIs } else { Self::No }
            }
        }
    }
}

/// The keys of a list of type map.
pub(crate) fn names_of_keys(list: &Schema) -> Option<&[String]> {
    let Some(ListType::Map(names)) = &list.list_type else { return None };
    Some(names)
}

/// The keys of an entry.
fn keys(entry: &Value, list: &Schema) -> Option<Map<String, Value>> {
    let names = names_of_keys(list)?;
    let keys: Map<String, Value> =
        names.iter().filter_map(|name| Some((name.clone(), entry.get(name)?.clone()))).collect();
    (keys.len() == names.len()).then_some(keys)
}

/// The keys of an entry as one text. None if one is missing.
pub(crate) fn keys_of(fields: &Map<String, Value>, names: &[String]) -> Option<String> {
    let keys = names.iter().map(|name| fields.get(name).cloned()).collect::<Option<Vec<_>>>()?;
    Some(Value::Array(keys).to_string())
}
