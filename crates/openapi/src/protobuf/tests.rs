//! Bytes written by Go from the same document are read with our tables: a wrong number or form would read as
//! something else.

use super::{Form, Message, encode, messages};
use crate::{Resource, Subresource};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use transom_object::{GroupVersionKind, yaml};

const DOCUMENT: &str = include_str!("../testdata/document.json");
/// `openapi record document.json document.pb` in `conformance/openapi`.
const RECORDED: &[u8] = include_bytes!("../testdata/document.pb");

/// A field as it is on the wire.
enum Wire<'a> {
    Varint(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a varint ends");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<(u32, Wire<'_>)> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let wire = match tag & 7 {
            0 => Wire::Varint(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_at(8);
                bytes = rest;
                Wire::Fixed(u64::from_le_bytes(value.try_into().expect("eight bytes")))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).expect("a length");
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Wire::Bytes(value)
            }
            other => panic!("wire type {other}"),
        };
        out.push((u32::try_from(tag >> 3).expect("a field number"), wire));
    }
    out
}

fn message(shape: &Message, bytes: &[u8]) -> Value {
    let mut out = Map::new();
    for (number, wire) in fields(bytes) {
        if let Some((key, _, form)) = shape.fields.iter().find(|(_, n, _)| *n == number) {
            match form {
                Form::Each(form) => {
                    let list = out.entry(*key).or_insert_with(|| json!([]));
                    list.as_array_mut().expect("a list").push(value(**form, &wire));
                }
                form => {
                    out.insert((*key).to_owned(), value(*form, &wire));
                }
            }
        } else {
            let form = shape.others.filter(|(n, _)| *n == number).map_or(Form::Any, |(_, form)| form);
            assert!(number == shape.extensions || shape.others.is_some_and(|(n, _)| n == number), "{number}");
            let (key, inner) = named(form, &wire);
            out.insert(key, inner);
        }
    }
    out.into()
}

fn named(form: Form, wire: &Wire<'_>) -> (String, Value) {
    let mut out = (String::new(), Value::Null);
    for (number, wire) in fields(bytes(wire)) {
        match number {
            1 => out.0 = text(&wire),
            2 => out.1 = value(form, &wire),
            other => panic!("{other} in a pair"),
        }
    }
    out
}

fn bytes<'a>(wire: &Wire<'a>) -> &'a [u8] {
    match wire {
        Wire::Bytes(b) => b,
        _ => panic!("not a message"),
    }
}

fn text(wire: &Wire<'_>) -> String {
    String::from_utf8(bytes(wire).to_vec()).expect("UTF-8")
}

fn value(form: Form, wire: &Wire<'_>) -> Value {
    match (form, wire) {
        (Form::Text, wire) => text(wire).into(),
        (Form::Flag, Wire::Varint(v)) => (*v == 1).into(),
        (Form::Integer, Wire::Varint(v)) => v.cast_signed().into(),
        (Form::Number, Wire::Fixed(v)) => f64::from_bits(*v).into(),
        (Form::Any, wire) => {
            let all = fields(bytes(wire));
            let yaml = all.first().map_or_else(String::new, |(_, w)| text(w));
            yaml::read(&yaml).expect("YAML")
        }
        (Form::One(shape), wire) => message(shape, bytes(wire)),
        (Form::Map(form), wire) => fields(bytes(wire)).iter().map(|(_, w)| named(*form, w)).collect(),
        (Form::Some(form), wire) => fields(bytes(wire)).iter().map(|(_, w)| value(*form, w)).collect(),
        (Form::Choice(choose), wire) => {
            // The number of the chosen field determines the form: try the samples that lead to each.
            let all = fields(bytes(wire));
            let (number, inner) = all.first().expect("a choice");
            let samples = [
                json!({}),
                json!({"$ref": ""}),
                json!({"in": "body"}),
                json!({"in": "path"}),
                json!({"in": "header"}),
                json!({"in": "formData"}),
                json!({"type": "basic"}),
                json!(false),
            ];
            let form = samples.iter().map(choose).find(|(n, _)| n == number).map(|(_, form)| form);
            value(form.expect("a form of that number"), inner)
        }
        _ => panic!("the wire type does not fit"),
    }
}

/// JSON as protobuf can say it: a list of one is the same as its element, numbers are doubles.
fn told(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, inner)| {
                let single = matches!(key.as_str(), "type" | "items")
                    && inner.as_array().is_some_and(|a| a.len() == 1);
                let inner = if single { &inner[0] } else { inner };
                (key.clone(), told(inner))
            })
            .collect(),
        Value::Array(all) => all.iter().map(told).collect(),
        Value::Number(n) => n.as_f64().into(),
        other => other.clone(),
    }
}

fn read(bytes: &[u8]) -> Value {
    told(&message(&messages::DOCUMENT, bytes))
}

#[test]
fn what_go_wrote_reads_as_the_document() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    pretty_equal(&read(RECORDED), &told(&document), "");
}

#[test]
fn what_we_write_reads_as_the_document() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    pretty_equal(&read(&encode(&document)), &told(&document), "");
}

/// Where two values differ, rather than both of them.
fn pretty_equal(a: &Value, b: &Value, at: &str) {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            for key in x.keys().chain(y.keys()) {
                let none = json!("absent");
                pretty_equal(
                    x.get(key).unwrap_or(&none),
                    y.get(key).unwrap_or(&none),
                    &format!("{at}/{key}"),
                );
            }
        }
        _ => assert_eq!(a, b, "{at}"),
    }
}

/// Keys that protobuf has no place for.
fn lost(form: Form, value: &Value, at: &str, out: &mut Vec<String>) {
    match (form, value) {
        (Form::One(shape), Value::Object(map)) => {
            for (key, inner) in map.iter().filter(|(key, _)| !key.starts_with("x-")) {
                let field = shape.fields.iter().find(|(name, ..)| name == key).map(|(_, _, form)| *form);
                match field.or(shape.others.map(|(_, form)| form)) {
                    Some(form) => lost(form, inner, &format!("{at}/{key}"), out),
                    None => out.push(format!("{at}/{key}")),
                }
            }
        }
        (Form::Map(form), Value::Object(map)) => {
            map.iter().for_each(|(key, inner)| lost(*form, inner, &format!("{at}/{key}"), out));
        }
        (Form::Each(form) | Form::Some(form), Value::Array(all)) => {
            all.iter().for_each(|inner| lost(*form, inner, at, out));
        }
        (Form::Some(form), inner) => lost(*form, inner, at, out),
        (Form::Choice(choose), inner) => lost(choose(inner).1, inner, at, out),
        _ => {}
    }
}

/// A resource for each built-in kind. Kinds that have lists are stored.
fn built_in() -> Vec<Resource> {
    let table: Value = serde_json::from_str(include_str!("../../../kinds/src/types.json")).unwrap();
    let text = |kind: &Value, key: &str| kind[key].as_str().unwrap_or_default().to_owned();
    let kinds = table["kinds"].as_array().unwrap();
    let resource = |kind: &Value| {
        let list_kind = format!("{}List", text(kind, "k"));
        let is_stored = kinds.iter().any(|k| k["k"] == *list_kind);
        Resource {
            group: text(kind, "g"),
            version: text(kind, "v"),
            plural: text(kind, "k").to_lowercase(),
            kind: text(kind, "k"),
            list_kind,
            namespaced: true,
            verbs: if is_stored { vec!["list", "deletecollection"] } else { vec!["create"] },
            strategic_merge: true,
            returns_deleted_object: false,
            subresources: Vec::new(),
            definition: None,
        }
    };
    kinds.iter().filter(|k| !text(k, "k").ends_with("List")).map(resource).collect()
}

fn custom() -> Resource {
    let spec = json!({"type": "object", "properties": {
        "color": {"type": "string"}, "n": {"type": "integer", "nullable": true, "minimum": 1, "format": "int32"},
        "any": {"oneOf": [{"required": ["a"]}], "x-kubernetes-preserve-unknown-fields": true},
    }});
    let scale = GroupVersionKind::new("autoscaling", "v1", "Scale");
    Resource {
        group: "example.org".into(),
        version: "v1".into(),
        plural: "widgets".into(),
        kind: "Widget".into(),
        list_kind: "WidgetList".into(),
        namespaced: true,
        verbs: vec!["list", "deletecollection"],
        strategic_merge: false,
        returns_deleted_object: false,
        subresources: vec![Subresource { name: "scale", verbs: &["get", "update"], own_kind: Some(scale) }],
        definition: Some(json!({
            "selectableFields": [{"jsonPath": ".spec.color"}],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })),
    }
}

#[test]
fn a_document_of_all_kinds_loses_nothing() {
    let mut resources = built_in();
    assert!(resources.len() > 50, "{} kinds", resources.len());
    resources.push(custom());
    let document = crate::v2(&resources);
    let mut keys = Vec::new();
    lost(Form::One(&messages::DOCUMENT), &document, "", &mut keys);
    assert_eq!(keys, [""; 0]);
    lost(Form::One(&messages::DOCUMENT), &json!({"definitions": {"A": {"nullable": true}}}), "", &mut keys);
    assert_eq!(keys, ["/definitions/A/nullable"], "the check can fail");
    pretty_equal(&read(&encode(&document))["paths"], &told(&document)["paths"], "");
}

#[test]
fn zero_is_left_out_but_a_chosen_false_is_not() {
    let schema = |s: Value| encode(&json!({"definitions": {"A": s}}));
    assert_eq!(
        schema(json!({"minimum": 0, "uniqueItems": false, "maxLength": 0, "title": ""})),
        schema(json!({}))
    );
    assert_ne!(schema(json!({"additionalProperties": false})), schema(json!({})));
    assert_ne!(schema(json!({"required": [""]})), schema(json!({"required": []})));
}

#[test]
fn hostile_values_are_left_out() {
    let odd = json!({"paths": [1], "definitions": "x", "info": null, "tags": {"a": 1}, "schemes": [1, {}]});
    read(&encode(&odd));
    assert_eq!(encode(&json!([])), Vec::<u8>::new());
}

proptest! {
    /// Whatever an extension holds comes back from YAML as it was.
    #[test]
    fn extensions_survive_yaml(text in "\\PC*|.*", number in any::<i64>(), key in "[a-z\u{80}-\u{2100}]{0,9}") {
        let extension = json!([{key: text}, number, [text, null, true], 1.5e-7]);
        let document = json!({"x-any": extension});
        prop_assert_eq!(message(&messages::DOCUMENT, &encode(&document)), document);
    }
}
