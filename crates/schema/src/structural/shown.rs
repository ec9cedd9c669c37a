//! Schemas, rules and their like as kube-apiserver shows them in errors: its own structs as Go encodes them, with
//! Go's names in Go's order, and everything that is not set.

use serde_json::{Map, Value};
use transom_object::field::{Error, Kind, Path};
use transom_object::json::encode_escaped;

/// How a field of a struct is encoded.
#[derive(Clone, Copy)]
pub enum Field {
    /// A string that is never absent.
    Text,
    /// A boolean that is never absent.
    Flag,
    /// An integer that is never absent.
    Number,
    /// A pointer, list or map: `null` when absent.
    Any,
    /// A schema.
    Schema,
    /// A list of schemas.
    Schemas,
    /// Schemas by name.
    NamedSchemas,
    /// `additionalProperties` and `additionalItems`.
    SchemaOrBool,
    /// `items`.
    SchemaOrArray,
    /// `dependencies`.
    Dependencies,
    /// A struct with these fields.
    Struct(&'static [(&'static str, &'static str, Field)]),
    /// A list of such structs.
    Structs(&'static [(&'static str, &'static str, Field)]),
}

/// The fields of a struct: name in Go, name in JSON, form.
pub type Fields = &'static [(&'static str, &'static str, Field)];

const RULE: Fields = &[
    ("Rule", "rule", Field::Text),
    ("Message", "message", Field::Text),
    ("MessageExpression", "messageExpression", Field::Text),
    ("Reason", "reason", Field::Any),
    ("FieldPath", "fieldPath", Field::Text),
    ("OptionalOldSelf", "optionalOldSelf", Field::Any),
];

const EXTERNAL_DOCS: Fields = &[("Description", "description", Field::Text), ("URL", "url", Field::Text)];

const SCHEMA: Fields = &[
    ("ID", "id", Field::Text),
    ("Schema", "$schema", Field::Text),
    ("Ref", "$ref", Field::Any),
    ("Description", "description", Field::Text),
    ("Type", "type", Field::Text),
    ("Nullable", "nullable", Field::Flag),
    ("Format", "format", Field::Text),
    ("Title", "title", Field::Text),
    ("Default", "default", Field::Any),
    ("Maximum", "maximum", Field::Any),
    ("ExclusiveMaximum", "exclusiveMaximum", Field::Flag),
    ("Minimum", "minimum", Field::Any),
    ("ExclusiveMinimum", "exclusiveMinimum", Field::Flag),
    ("MaxLength", "maxLength", Field::Any),
    ("MinLength", "minLength", Field::Any),
    ("Pattern", "pattern", Field::Text),
    ("MaxItems", "maxItems", Field::Any),
    ("MinItems", "minItems", Field::Any),
    ("UniqueItems", "uniqueItems", Field::Flag),
    ("MultipleOf", "multipleOf", Field::Any),
    ("Enum", "enum", Field::Any),
    ("MaxProperties", "maxProperties", Field::Any),
    ("MinProperties", "minProperties", Field::Any),
    ("Required", "required", Field::Any),
    ("Items", "items", Field::SchemaOrArray),
    ("AllOf", "allOf", Field::Schemas),
    ("OneOf", "oneOf", Field::Schemas),
    ("AnyOf", "anyOf", Field::Schemas),
    ("Not", "not", Field::Schema),
    ("Properties", "properties", Field::NamedSchemas),
    ("AdditionalProperties", "additionalProperties", Field::SchemaOrBool),
    ("PatternProperties", "patternProperties", Field::NamedSchemas),
    ("Dependencies", "dependencies", Field::Dependencies),
    ("AdditionalItems", "additionalItems", Field::SchemaOrBool),
    ("Definitions", "definitions", Field::NamedSchemas),
    ("ExternalDocs", "externalDocs", Field::Struct(EXTERNAL_DOCS)),
    ("Example", "example", Field::Any),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Field::Any),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Field::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Field::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Field::Any),
    ("XListType", "x-kubernetes-list-type", Field::Any),
    ("XMapType", "x-kubernetes-map-type", Field::Any),
    ("XValidations", "x-kubernetes-validations", Field::Structs(RULE)),
];

/// An error about a value that is shown in some form of its own.
pub fn invalid(path: &Path, shown: &str, detail: &str) -> Error {
    // A value that is not to be shown leaves the text to the detail.
    Error::new(Kind::Invalid, path, "<unspecified>".into(), format!("{shown}: {detail}"))
}

/// A schema document.
pub fn schema(doc: &Value) -> String {
    let mut out = String::new();
    write_field(doc, Field::Schema, 0, &mut out);
    out
}

/// One of `x-kubernetes-validations`.
pub fn rule(rule: &Value) -> String {
    value(rule, Field::Struct(RULE))
}

/// `items`, of which there should not be several.
pub(super) fn items(items: &Value) -> String {
    value(items, Field::SchemaOrArray)
}

/// A value of any of these forms.
pub fn value(value: &Value, form: Field) -> String {
    let mut out = String::new();
    write_field(value, form, 0, &mut out);
    out
}

fn write_field(value: &Value, form: Field, depth: usize, out: &mut String) {
    let absent = value.is_null() || depth > super::shape::MAX_DEPTH;
    match form {
        Field::Text => out.push_str(&encode_escaped(&value.as_str().unwrap_or_default().into())),
        Field::Flag => out.push_str(if value == &Value::Bool(true) { "true" } else { "false" }),
        Field::Number => out.push_str(&value.as_i64().unwrap_or_default().to_string()),
        _ if absent => out.push_str("null"),
        Field::Any => out.push_str(&encode_escaped(value)),
        Field::Schema => write_struct(value, SCHEMA, depth, out),
        Field::Struct(fields) => write_struct(value, fields, depth, out),
        Field::Schemas => write_list(value, Field::Schema, depth, out),
        Field::Structs(fields) => write_list(value, Field::Struct(fields), depth, out),
        Field::NamedSchemas => write_named(value, Field::Schema, depth, out),
        Field::SchemaOrBool => {
            let (allows, schema) = match value {
                Value::Bool(allows) => (*allows, &Value::Null),
                schema => (true, schema),
            };
            out.push_str(&format!("{{\"Allows\":{allows},\"Schema\":"));
            write_field(schema, Field::Schema, depth + 1, out);
            out.push('}');
        }
        Field::SchemaOrArray => {
            let (one, several) = if value.is_array() { (&Value::Null, value) } else { (value, &Value::Null) };
            out.push_str("{\"Schema\":");
            write_field(one, Field::Schema, depth + 1, out);
            out.push_str(",\"JSONSchemas\":");
            write_field(several, Field::Schemas, depth, out);
            out.push('}');
        }
        Field::Dependencies => {
            let entries: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
            write_entries(entries.iter(), out, |value, out| {
                let (schema, property) =
                    if value.is_array() { (&Value::Null, value) } else { (value, &Value::Null) };
                out.push_str("{\"Schema\":");
                write_field(schema, Field::Schema, depth + 1, out);
                out.push_str(",\"Property\":");
                write_field(property, Field::Any, depth, out);
                out.push('}');
            });
        }
    }
}

fn write_struct(value: &Value, fields: Fields, depth: usize, out: &mut String) {
    for (i, (go, json, form)) in fields.iter().enumerate() {
        out.push(if i == 0 { '{' } else { ',' });
        out.push_str(&format!("{go:?}:"));
        write_field(value.get(json).unwrap_or(&Value::Null), *form, depth + 1, out);
    }
    out.push('}');
}

fn write_list(value: &Value, form: Field, depth: usize, out: &mut String) {
    out.push('[');
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_field(item, form, depth + 1, out);
    }
    out.push(']');
}

fn write_named(value: &Value, form: Field, depth: usize, out: &mut String) {
    write_entries(value.as_object().into_iter().flatten(), out, |value, out| {
        write_field(value, form, depth + 1, out);
    });
}

fn write_entries<'v>(
    entries: impl Iterator<Item = (&'v String, &'v Value)>,
    out: &mut String,
    mut write: impl FnMut(&'v Value, &mut String),
) {
    out.push('{');
    for (i, (name, value)) in entries.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&encode_escaped(&name.as_str().into()));
        out.push(':');
        write(value, out);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_and_schemas() {
        assert_eq!(
            rule(&json!({"rule": "self < 5", "optionalOldSelf": true})),
            r#"{"Rule":"self \u003c 5","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":true}"#
        );
        let shown = schema(&json!({"type": "object", "additionalProperties": {"type": "string"}}));
        assert!(shown.starts_with(
            r#"{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,"#
        ));
        assert!(shown.contains(r#""AdditionalProperties":{"Allows":true,"Schema":{"ID":"","Schema":"","#));
        assert!(shown.ends_with(r#""XMapType":null,"XValidations":null}"#));
    }

    #[test]
    fn errors_show_the_form() {
        let error = invalid(&Path::new("a"), "{\"X\":1}", "is wrong");
        assert_eq!(error.to_string(), "a: Invalid value: {\"X\":1}: is wrong");
    }
}
