//! Histories of a kind: schemas whose fields are renamed, moved into objects, dropped and added from version to version.
//! Whatever way an object takes through the versions, it comes back as it left.

use super::{converter, object, schema};
use serde_json::{Map, Value, json};
use transom_testkit::rng::Rng;

const HISTORIES: u64 = 30;
const WALKS: usize = 20;

fn leaf(rng: &mut Rng) -> Value {
    match rng.index(5) {
        0 => json!({"type": "integer"}),
        1 => json!({"type": "boolean", "default": true}),
        2 => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        3 => {
            json!({"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}}})
        }
        _ => json!({"type": "string"}),
    }
}

fn value(leaf: &Value, rng: &mut Rng) -> Value {
    let number = rng.below(1000);
    match leaf["type"].as_str().unwrap() {
        "integer" => json!(number),
        "boolean" => json!(number.is_multiple_of(2)),
        "object" => json!({"k": format!("v{number}"), "l.m/n": "o"}),
        "array" => (0..rng.index(4)).map(|i| json!({"x": i, "y": format!("e{number}")})).collect(),
        _ => json!(format!("t{number}")),
    }
}

/// The fields of a version by name: in `spec` itself, or in one of its objects (`group.name`).
type Fields = Map<String, Value>;

fn as_schema(fields: &Fields) -> Value {
    let mut properties = json!({});
    for (name, leaf) in fields {
        match name.split_once('.') {
            Some((group, name)) => {
                properties[group]["type"] = "object".into();
                properties[group]["properties"][name] = leaf.clone();
            }
            None => properties[name] = leaf.clone(),
        }
    }
    schema(properties)
}

/// The next version, and the moves that lead there.
fn evolve(fields: &Fields, version: usize, rng: &mut Rng) -> (Fields, Vec<Value>) {
    let (mut next, mut moves) = (Fields::new(), Vec::new());
    for (i, (name, leaf)) in fields.iter().enumerate() {
        let plain = name.rsplit('.').next().unwrap();
        let new = match rng.index(5) {
            0 => continue,
            1 => format!("{plain}r{version}x{i}"),
            2 => format!("group{}.{plain}m{version}x{i}", rng.index(2)),
            _ => name.clone(),
        };
        if new != *name {
            moves.push(json!({"from": format!("spec.{name}"), "to": format!("spec.{new}")}));
        }
        next.insert(new, leaf.clone());
    }
    for i in 0..rng.index(3) {
        next.insert(format!("added{version}x{i}"), leaf(rng));
    }
    (next, moves)
}

fn generate(version: &str, fields: &Fields, rng: &mut Rng) -> Value {
    let mut generated = object(version, json!({}));
    for (name, leaf) in fields {
        // Defaults are there in every object that was written.
        if leaf.get("default").is_some() && !name.contains('.') || rng.permille(700) {
            let value = value(leaf, rng);
            match name.split_once('.') {
                Some((group, name)) => generated["spec"][group][name] = value,
                None => generated["spec"][name] = value,
            }
        }
    }
    generated
}

/// Objects around moved fields come and go with these.
fn without_empty_groups(mut object: Value) -> Value {
    let spec = object["spec"].as_object_mut().unwrap();
    spec.retain(|name, value| !name.starts_with("group") || *value != json!({}));
    object
}

#[test]
fn objects_come_back_from_every_walk_through_the_versions() {
    for seed in 0..HISTORIES {
        let mut rng = Rng::new(seed);
        let mut fields: Fields = (0..1 + rng.index(6)).map(|i| (format!("f{i}"), leaf(&mut rng))).collect();
        // Defaults in objects that come and go would be filled in, or not.
        let without_defaults = |fields: &mut Fields| {
            fields.values_mut().for_each(|leaf| drop(leaf.as_object_mut().unwrap().remove("default")));
        };
        without_defaults(&mut fields);
        let mut history = vec![("v0".to_owned(), fields.clone())];
        let mut rules = Vec::new();
        for version in 1..2 + rng.index(3) {
            let (mut next, moves) = evolve(&fields, version, &mut rng);
            without_defaults(&mut next);
            let (from, to) = (format!("v{}", version - 1), format!("v{version}"));
            rules.push(json!({"from": from, "to": to, "moves": moves}));
            history.push((to, next.clone()));
            fields = next;
        }
        let schemas: Vec<(&str, Value)> =
            history.iter().map(|(name, fields)| (name.as_str(), as_schema(fields))).collect();
        let converter = converter(&schemas, json!(rules));
        let findings = converter.check();
        assert!(findings.is_empty(), "seed {seed}: {findings:#?}\n{rules:#?}");
        for _ in 0..WALKS {
            let (home, fields) = &history[rng.index(history.len())];
            let left = generate(home, fields, &mut rng);
            let mut walking = left.clone();
            let mut way = vec![home.clone()];
            for _ in 0..1 + rng.index(4) {
                let (to, _) = &history[rng.index(history.len())];
                walking = converter.convert(&walking, to).unwrap();
                way.push(to.clone());
            }
            let returned = converter.convert(&walking, home).unwrap();
            let (returned, left) = (without_empty_groups(returned), without_empty_groups(left));
            assert_eq!(returned, left, "seed {seed}: {way:?}\n{rules:#?}");
        }
    }
}
