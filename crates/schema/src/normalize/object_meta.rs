//! The known fields of `ObjectMeta` and the JSON each holds: enough to treat dynamic metadata as decoding it
//! into the typed struct and encoding it again would.

use super::MalformedFields;
use crate::trail::Trail;
use serde_json::{Map, Value};

/// What a field holds. The text is the Go type, as decoding errors name it.
#[derive(Clone, Copy)]
enum Holds {
    Text(&'static str),
    Integer,
    Flag,
    Time,
    TextMap,
    Texts,
    Raw,
    Structs(&'static Struct),
}

struct Struct {
    name: &'static str,
    fields: &'static [(&'static str, Holds)],
    /// Text fields that are written even when empty.
    always: &'static [&'static str],
}

static OBJECT_META: Struct = Struct {
    name: "ObjectMeta",
    fields: &[
        ("name", Holds::Text("string")),
        ("generateName", Holds::Text("string")),
        ("namespace", Holds::Text("string")),
        ("selfLink", Holds::Text("string")),
        ("uid", Holds::Text("types.UID")),
        ("resourceVersion", Holds::Text("string")),
        ("generation", Holds::Integer),
        ("creationTimestamp", Holds::Time),
        ("deletionTimestamp", Holds::Time),
        ("deletionGracePeriodSeconds", Holds::Integer),
        ("labels", Holds::TextMap),
        ("annotations", Holds::TextMap),
        ("ownerReferences", Holds::Structs(&OWNER_REFERENCE)),
        ("finalizers", Holds::Texts),
        ("managedFields", Holds::Structs(&MANAGED_FIELDS)),
    ],
    always: &[],
};

static OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    fields: &[
        ("apiVersion", Holds::Text("string")),
        ("kind", Holds::Text("string")),
        ("name", Holds::Text("string")),
        ("uid", Holds::Text("types.UID")),
        ("controller", Holds::Flag),
        ("blockOwnerDeletion", Holds::Flag),
    ],
    always: &["apiVersion", "kind", "name", "uid"],
};

static MANAGED_FIELDS: Struct = Struct {
    name: "ManagedFieldsEntry",
    fields: &[
        ("manager", Holds::Text("string")),
        ("operation", Holds::Text("v1.ManagedFieldsOperationType")),
        ("apiVersion", Holds::Text("string")),
        ("time", Holds::Time),
        ("fieldsType", Holds::Text("string")),
        ("fieldsV1", Holds::Raw),
        ("subresource", Holds::Text("string")),
    ],
    always: &[],
};

/// Rewrites metadata in place and returns the unknown fields it had, relative to it. With
/// [`MalformedFields::Drop`] only metadata that is no object is an error.
pub(super) fn coerce(metadata: &mut Value, malformed: MalformedFields) -> Result<Vec<String>, String> {
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let Value::Object(fields) = metadata else {
        let found = go_kind(metadata);
        return Err(match malformed {
            MalformedFields::Refuse => {
                format!("json: cannot unmarshal {found} into Go value of type v1.ObjectMeta")
            }
            MalformedFields::Drop => format!("invalid metadata: expected object, got {found}"),
        });
    };
    let mut reader = Reader { unknown: Vec::new() };
    if malformed == MalformedFields::Drop {
        fields.retain(|name, value| {
            let holds = OBJECT_META.fields.iter().find(|(known, _)| known == name);
            let at = Trail::Root.property(name);
            holds.is_none_or(|(_, holds)| {
                Reader { unknown: Vec::new() }.field(value, *holds, "ObjectMeta", &at).is_ok()
            })
        });
    }
    reader.structure(fields, &OBJECT_META, &Trail::Root)?;
    Ok(reader.unknown)
}

struct Reader {
    unknown: Vec<String>,
}

impl Reader {
    /// Keeps known fields that hold something, and reports the others with their path.
    fn structure(
        &mut self,
        fields: &mut Map<String, Value>,
        of: &Struct,
        trail: &Trail<'_>,
    ) -> Result<(), String> {
        let mut problem = None;
        fields.retain(|name, value| {
            let at = trail.property(name);
            let Some((_, holds)) = of.fields.iter().find(|(known, _)| known == name) else {
                self.unknown.push(at.to_string());
                return false;
            };
            match self.field(value, *holds, of.name, &at) {
                Ok(kept) => kept || of.always.contains(&name.as_str()),
                Err(e) => {
                    problem.get_or_insert(e);
                    true
                }
            }
        });
        for name in of.always {
            let value = fields.entry((*name).to_owned()).or_insert_with(|| "".into());
            if value.is_null() {
                *value = "".into();
            }
        }
        problem.map_or(Ok(()), Err)
    }

    /// Whether the field is written back; an error if it cannot be read.
    fn field(
        &mut self,
        value: &mut Value,
        holds: Holds,
        of: &str,
        trail: &Trail<'_>,
    ) -> Result<bool, String> {
        if value.is_null() {
            return Ok(false);
        }
        // Go names fields without the indices of the lists they are in.
        let place = || format!("{of}.{}", strip_indices(&trail.to_string()));
        let wrong = |found: &str, ty: &str| {
            Err(format!("json: cannot unmarshal {found} into Go struct field {} of type {ty}", place()))
        };
        match holds {
            Holds::Text(ty) => match value {
                Value::String(s) => Ok(!s.is_empty()),
                other => wrong(go_kind(other), ty),
            },
            Holds::Integer => match value {
                Value::Number(n) => match n.as_i64() {
                    // A pointer in Go: zero is a value. `generation` is none, so zero vanishes.
                    Some(i) => Ok(i != 0 || !matches!(trail, Trail::Property(_, "generation"))),
                    None => wrong(&format!("number {n}"), "int64"),
                },
                other => wrong(go_kind(other), "int64"),
            },
            Holds::Flag => match value {
                Value::Bool(_) => Ok(true),
                other => wrong(go_kind(other), "bool"),
            },
            Holds::Time => time(value),
            Holds::Raw => Ok(true),
            Holds::TextMap => self.text_map(value, &place()),
            Holds::Texts => match value {
                Value::Array(items) => match items.iter_mut().find(|item| !item.is_string()) {
                    None => Ok(!items.is_empty()),
                    Some(item) if item.is_null() => {
                        *item = "".into();
                        self.field(value, holds, of, trail)
                    }
                    Some(item) => wrong(go_kind(item), "string"),
                },
                other => wrong(go_kind(other), "[]string"),
            },
            Holds::Structs(of) => {
                let Value::Array(items) = value else {
                    return wrong(go_kind(value), &format!("[]v1.{}", of.name));
                };
                for (i, item) in items.iter_mut().enumerate() {
                    if item.is_null() {
                        *item = Value::Object(Map::new());
                    }
                    let Value::Object(fields) = item else {
                        return wrong(go_kind(item), &format!("v1.{}", of.name));
                    };
                    self.structure(fields, of, &trail.index(i))?;
                }
                Ok(!items.is_empty())
            }
        }
    }

    fn text_map(&self, value: &mut Value, place: &str) -> Result<bool, String> {
        let Value::Object(entries) = value else {
            let found = go_kind(value);
            return Err(format!(
                "json: cannot unmarshal {found} into Go struct field {place} of type map[string]string"
            ));
        };
        for entry in entries.values_mut() {
            match entry {
                Value::String(_) => {}
                Value::Null => *entry = "".into(),
                other => {
                    let found = go_kind(other);
                    return Err(format!(
                        "json: cannot unmarshal {found} into Go struct field {place} of type string"
                    ));
                }
            }
        }
        Ok(!entries.is_empty())
    }
}

/// Reads RFC 3339 and writes it in UTC with seconds.
fn time(value: &mut Value) -> Result<bool, String> {
    let Value::String(text) = value else {
        return Err(format!("json: cannot unmarshal {} into Go value of type string", go_kind(value)));
    };
    if !crate::validate::formats::Format::DateTime.accepts(text) {
        return Err(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
        ));
    }
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => {
            *text = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            Ok(true)
        }
        Err(e) => Err(format!("parsing time {text:?}: {e}")),
    }
}

fn strip_indices(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out
}

/// How Go's decoder names what it found.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Why metadata cannot be read, if it cannot.
pub(crate) fn problem(metadata: &Value) -> Option<String> {
    coerce(&mut metadata.clone(), MalformedFields::Refuse).err()
}
