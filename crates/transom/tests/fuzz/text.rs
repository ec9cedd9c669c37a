//! Targets that read text or bytes.

use crate::fuzz::{fuzz_bytes, fuzz_text};
use serde_json::{Value, json};
use transom_cel as cel;
use transom_object::{fieldpath, json as text_json, labels, quantity, time, yaml};

/// Equal but for the sign of zero, which the API does not keep.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => a == b || a.as_f64() == Some(0.0) && b.as_f64() == Some(0.0),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| same(v, w)))
        }
        _ => a == b,
    }
}

#[test]
fn json() {
    fuzz_bytes("json", |input| {
        let Ok(decoded) = text_json::decode(input) else { return };
        let written = text_json::encode(&decoded.value);
        let again = text_json::decode(&written).expect("what we write we read");
        assert!(same(&again.value, &decoded.value), "{} and {}", again.value, decoded.value);
        assert!(again.duplicates.is_empty(), "what we write has no duplicates");
    });
}

#[test]
fn yaml() {
    fuzz_text("yaml", |input| {
        let Ok(documents) = yaml::read_documents(input) else { return };
        for document in documents {
            let written = yaml::write(&document.value);
            let again = yaml::read(&written);
            assert_eq!(again.as_ref().ok(), Some(&document.value), "{written}\n{:?}", again.as_ref().err());
        }
    });
}

fn sample() -> Value {
    json!({
        "a": {"b": [1, {"c": "x", "a": null}, [true]], "": 7, "x.y": {"z[0]": 1.5}},
        "metadata": {"name": "n", "labels": {"app": "web", "tier": ""}, "annotations": {"example.org/a": "b"}},
        "items": [{"name": "one", "n": 1}, {"name": "two", "n": 2.0}, "three", null],
    })
}

#[test]
fn field_path() {
    fuzz_text("field_path", |input| {
        let Ok(segments) = fieldpath::parse(input) else { return };
        let shown = fieldpath::format(&segments);
        // A field without a name can be reached but not written down.
        if segments.iter().all(|s| *s != fieldpath::Segment::field("")) {
            assert_eq!(fieldpath::parse(&shown).ok().as_ref(), Some(&segments), "{shown}");
        }
        let mut value = sample();
        drop(fieldpath::get(&value, input));
        drop(fieldpath::expand(&value, input));
        if !segments.is_empty() && fieldpath::set(&mut value, input, json!("new")).is_ok() {
            assert_eq!(fieldpath::get(&value, input).ok(), Some(&json!("new")), "set, then get {input:?}");
        }
        drop(fieldpath::delete(&mut value, input));
        drop(fieldpath::merge(&mut value, input, json!({"a": [1]}), None));
    });
}

#[test]
fn selector() {
    let sets = [&[][..], &[("app", "web"), ("tier", "")], &[("n", "5"), ("example.org/a", "b")]];
    let sets =
        sets.map(|s| s.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<labels::Labels>());
    fuzz_text("selector", |input| {
        let Ok(selector) = labels::Selector::parse(input) else { return };
        let shown = selector.to_string();
        let again = labels::Selector::parse(&shown).expect("what we write we read");
        for set in &sets {
            assert_eq!(again.matches(set), selector.matches(set), "{shown}");
        }
    });
}

#[test]
fn jsonpath() {
    let data = sample();
    fuzz_text("jsonpath", |input| {
        for template in [
            transom_object::jsonpath::Template::parse(input),
            transom_object::jsonpath::Template::parse_path(input),
        ] {
            let Ok(template) = template else { continue };
            drop(template.find(&data));
            drop(template.print(&data));
            drop(template.allow_missing_keys(true).print(&data));
        }
        drop(transom_object::jsonpath::validate_simple_path(input, &transom_object::field::Path::new("p")));
    });
}

#[test]
fn scalars() {
    fuzz_text("scalars", |input| {
        if let Ok(read) = quantity::Quantity::parse(input) {
            let again = quantity::Quantity::parse(&read.canonical()).expect("what we write we read");
            assert_eq!(again.canonical(), read.canonical(), "{input:?}");
        }
        if let Ok(nanos) = time::parse_duration(input) {
            assert_eq!(time::parse_duration(&time::format_duration(nanos)), Ok(nanos), "{input:?}");
        }
        if let Ok(moment) = time::parse(input) {
            assert_eq!(time::parse(&time::format(moment)).map(time::format), Ok(time::format(moment)));
        }
        drop(time::parse_micro(input));
    });
}

#[test]
fn patterns() {
    fuzz_text("patterns", |input| {
        if let Ok(pattern) = transom_go::regexp::compile(input, transom_go::regexp::Limits::default()) {
            pattern.is_match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!");
        }
    });
}

#[test]
fn cel() {
    let (object, env) = (sample(), cel::Env::new().with("self", cel::Type::Dyn));
    fuzz_text("cel", |input| {
        let Ok(program) = cel::Program::compile(input, &env) else { return };
        let bindings = cel::Bindings::new().with("self", cel::Value::from_json(&object));
        let (outcome, cost) = program.eval_metered(&bindings, 100_000);
        if let Ok(value) = outcome {
            assert!(cost <= 100_000, "{cost} is beyond the budget");
            drop(value.to_json());
        }
    });
}
