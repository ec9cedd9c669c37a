//! The JSON every keyword of a schema document must hold. Unknown keywords are ignored here; whether they are
//! an error is reported where the CustomResourceDefinition is decoded.

use serde_json::Value;
use transom_object::field::{self, Path};

/// Schemas nested deeper than this are refused, so that walking a compiled schema cannot exhaust the stack.
pub(super) const MAX_DEPTH: usize = 200;

#[derive(Clone, Copy)]
enum Shape {
    Any,
    Text,
    Flag,
    Number,
    Integer,
    Values,
    Texts,
    Rules,
    Object,
    Schema,
    Schemas,
    NamedSchemas,
    SchemaOrBool,
    SchemaOrArray,
    Dependencies,
}

fn shape_of(keyword: &str) -> Shape {
    match keyword {
        "id"
        | "$schema"
        | "$ref"
        | "description"
        | "type"
        | "format"
        | "title"
        | "pattern"
        | "x-kubernetes-list-type"
        | "x-kubernetes-map-type" => Shape::Text,
        "maximum" | "minimum" | "multipleOf" => Shape::Number,
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" => {
            Shape::Integer
        }
        "exclusiveMaximum"
        | "exclusiveMinimum"
        | "uniqueItems"
        | "nullable"
        | "x-kubernetes-preserve-unknown-fields"
        | "x-kubernetes-embedded-resource"
        | "x-kubernetes-int-or-string" => Shape::Flag,
        "enum" => Shape::Values,
        "required" | "x-kubernetes-list-map-keys" => Shape::Texts,
        "x-kubernetes-validations" => Shape::Rules,
        "externalDocs" => Shape::Object,
        "not" => Shape::Schema,
        "allOf" | "anyOf" | "oneOf" => Shape::Schemas,
        "properties" | "patternProperties" | "definitions" => Shape::NamedSchemas,
        "additionalProperties" | "additionalItems" => Shape::SchemaOrBool,
        "items" => Shape::SchemaOrArray,
        "dependencies" => Shape::Dependencies,
        _ => Shape::Any,
    }
}

/// What is of the wrong shape in a schema document, with the path of each.
pub(super) fn check(doc: &Value, path: &Path) -> Vec<field::Error> {
    let mut errors = Vec::new();
    schema(doc, path, 0, &mut errors);
    errors
}

fn schema(doc: &Value, path: &Path, depth: usize, errors: &mut Vec<field::Error>) {
    let Some(fields) = doc.as_object() else {
        errors.push(mismatch(path, doc, "a schema (an object)"));
        return;
    };
    if depth > MAX_DEPTH {
        errors.push(field::Error::invalid(
            path,
            "",
            format!("schemas may be nested at most {MAX_DEPTH} deep"),
        ));
        return;
    }
    for (keyword, value) in fields {
        // `null` leaves a field as it was, that is, absent.
        if !value.is_null() {
            keyword_value(keyword, value, path, depth, errors);
        }
    }
}

fn keyword_value(keyword: &str, value: &Value, path: &Path, depth: usize, errors: &mut Vec<field::Error>) {
    let at = || path.child(keyword);
    let mut expect = |holds: bool, wanted: &str| {
        if !holds {
            errors.push(mismatch(&at(), value, wanted));
        }
    };
    match shape_of(keyword) {
        Shape::Any => {}
        Shape::Text => expect(value.is_string(), "a string"),
        Shape::Flag => expect(value.is_boolean(), "a boolean"),
        Shape::Number => expect(value.is_number(), "a number"),
        Shape::Integer => expect(value.is_i64(), "an integer"),
        Shape::Values => expect(value.is_array(), "a list"),
        Shape::Texts => expect(all(value, Value::is_string), "a list of strings"),
        Shape::Object => expect(value.is_object(), "an object"),
        Shape::Rules => rules(value, &at(), errors),
        Shape::Schema => schema(value, &at(), depth + 1, errors),
        Shape::Schemas => schemas(value, &at(), depth, errors),
        Shape::NamedSchemas => named(value, &at(), depth, errors),
        Shape::SchemaOrBool if value.is_boolean() => {}
        Shape::SchemaOrBool if value.is_object() => schema(value, &at(), depth + 1, errors),
        Shape::SchemaOrBool => expect(false, "a boolean or a schema"),
        Shape::SchemaOrArray if value.is_object() => schema(value, &at(), depth + 1, errors),
        Shape::SchemaOrArray if value.is_array() => schemas(value, &at(), depth, errors),
        // The upstream decoder takes any other JSON for "no items".
        Shape::SchemaOrArray => {}
        Shape::Dependencies => match value.as_object() {
            Some(entries) => {
                for (name, dependency) in entries.iter().filter(|(_, d)| !all(d, Value::is_string)) {
                    schema(dependency, &at().key(name), depth + 1, errors);
                }
            }
            None => expect(false, "an object"),
        },
    }
}

fn schemas(value: &Value, path: &Path, depth: usize, errors: &mut Vec<field::Error>) {
    match value.as_array() {
        Some(items) => {
            for (i, item) in items.iter().enumerate() {
                schema(item, &path.index(i), depth + 1, errors);
            }
        }
        None => errors.push(mismatch(path, value, "a list of schemas")),
    }
}

fn named(value: &Value, path: &Path, depth: usize, errors: &mut Vec<field::Error>) {
    match value.as_object() {
        Some(entries) => {
            for (name, entry) in entries {
                schema(entry, &path.key(name), depth + 1, errors);
            }
        }
        None => errors.push(mismatch(path, value, "an object of schemas")),
    }
}

fn rules(value: &Value, path: &Path, errors: &mut Vec<field::Error>) {
    let Some(rules) = value.as_array() else {
        errors.push(mismatch(path, value, "a list of rules"));
        return;
    };
    for (i, rule) in rules.iter().enumerate() {
        let path = path.index(i);
        let Some(fields) = rule.as_object() else {
            errors.push(mismatch(&path, rule, "a rule (an object)"));
            continue;
        };
        for (name, value) in fields.iter().filter(|(_, v)| !v.is_null()) {
            let (holds, wanted) = match name.as_str() {
                "rule" | "message" | "messageExpression" | "reason" | "fieldPath" => {
                    (value.is_string(), "a string")
                }
                "optionalOldSelf" => (value.is_boolean(), "a boolean"),
                _ => continue,
            };
            if !holds {
                errors.push(mismatch(&path.child(name), value, wanted));
            }
        }
    }
}

fn all(value: &Value, holds: fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(holds))
}

fn mismatch(path: &Path, value: &Value, wanted: &str) -> field::Error {
    field::Error::type_invalid(path, json_type(value), format!("must be {wanted}"))
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
