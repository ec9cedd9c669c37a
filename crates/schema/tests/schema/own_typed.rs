//! Merging, comparing, removing and reconciling values of a type, as small tables.

use serde_json::{Value, json};
use std::sync::Arc;
use transom_schema::own::typed::{
    Duplicates, compare, extract_items, extract_items_with_keys, merge, reconcile_with_schema, remove_items,
    to_field_set, validate,
};
use transom_schema::own::{Set, Type as View};
use transom_schema::{Additional, ListType, MapType, Schema, Type};

fn of(ty: Type) -> Schema {
    Schema { ty, ..Schema::default() }
}

fn object(fields: Vec<(&str, Schema)>) -> Schema {
    Schema {
        properties: fields.into_iter().map(|(n, s)| (n.to_owned(), Arc::new(s))).collect(),
        ..of(Type::Object)
    }
}

fn list(list_type: Option<ListType>, items: Schema) -> Schema {
    Schema { list_type, items: Some(Arc::new(items)), ..of(Type::Array) }
}

fn schema() -> Schema {
    let item = object(vec![
        ("k", of(Type::String)),
        ("n", Schema { default: Some(json!(1)), ..of(Type::Integer) }),
        ("v", of(Type::Integer)),
    ]);
    object(vec![
        ("s", of(Type::String)),
        ("set", list(Some(ListType::Set), of(Type::String))),
        ("list", list(Some(ListType::Map(vec!["k".into(), "n".into()])), item)),
        ("atoms", list(None, of(Type::Integer))),
        ("map", Schema { additional: Additional::Schema(Arc::new(of(Type::Integer))), ..of(Type::Object) }),
        (
            "box",
            Schema {
                map_type: Some(MapType::Atomic),
                ..object(vec![("a", of(Type::Integer)), ("b", of(Type::Integer))])
            },
        ),
        ("any", Schema::any()),
    ])
}

fn fields(value: &Value) -> Set {
    Set::from_fields(value).expect("a field set")
}

#[test]
fn merges() {
    let schema = schema();
    for (live, config, merged) in [
        (json!({"s": "a"}), json!({"s": "b"}), json!({"s": "b"})),
        (json!({"s": "a"}), json!({}), json!({"s": "a"})),
        (json!({"s": "a"}), json!({"s": null}), json!({"s": null})),
        (json!({"set": ["a", "b", "c"]}), json!({"set": ["c", "d"]}), json!({"set": ["a", "b", "c", "d"]})),
        (
            json!({"set": ["a", "b", "c", "d"]}),
            json!({"set": ["d", "b"]}),
            json!({"set": ["a", "c", "d", "b"]}),
        ),
        (
            json!({"set": ["a", "b"]}),
            json!({"set": ["x", "a", "y", "b"]}),
            json!({"set": ["x", "a", "y", "b"]}),
        ),
        (json!({"set": ["a", "b", "a"]}), json!({"set": ["c"]}), json!({"set": ["a", "b", "a", "c"]})),
        (json!({"set": ["a", "b", "a"]}), json!({"set": ["a"]}), json!({"set": ["a", "b"]})),
        (
            json!({"list": [{"k": "a", "v": 1}]}),
            json!({"list": [{"k": "a", "n": 1, "v": 2}]}),
            json!({"list": [{"k": "a", "n": 1, "v": 2}]}),
        ),
        (
            json!({"list": [{"k": "a", "v": 1}]}),
            json!({"list": [{"k": "a", "n": 2}]}),
            json!({"list": [{"k": "a", "v": 1}, {"k": "a", "n": 2}]}),
        ),
        (json!({"atoms": [1, 2]}), json!({"atoms": [3]}), json!({"atoms": [3]})),
        (json!({"map": {"x": 1}}), json!({"map": {"y": 2}}), json!({"map": {"x": 1, "y": 2}})),
        (json!({"box": {"a": 1}}), json!({"box": {"b": 2}}), json!({"box": {"b": 2}})),
        (
            json!({"any": {"a": [1], "b": {"c": 1}}}),
            json!({"any": {"a": [2], "b": {"d": 1}}}),
            json!({"any": {"a": [2], "b": {"c": 1, "d": 1}}}),
        ),
        (json!({"any": 1}), json!({"any": {"a": 1}}), json!({"any": {"a": 1}})),
    ] {
        assert_eq!(merge(View::node(&schema), &live, &config).unwrap(), Some(merged), "{live} and {config}");
    }
}

#[test]
fn compares() {
    let schema = schema();
    for (old, new, removed, modified, added) in [
        (json!({"s": "a"}), json!({"s": "b"}), json!({}), json!({"f:s": {}}), json!({})),
        (
            json!({"map": {"x": 1}}),
            json!({"map": {"y": 1}}),
            json!({"f:map": {"f:x": {}}}),
            json!({}),
            json!({"f:map": {"f:y": {}}}),
        ),
        (json!({"map": {"x": 1}}), json!({}), json!({"f:map": {".": {}, "f:x": {}}}), json!({}), json!({})),
        (json!({"set": ["a", "b"]}), json!({"set": ["b", "a"]}), json!({}), json!({}), json!({})),
        (
            json!({"set": ["a"]}),
            json!({"set": ["a", "a"]}),
            json!({"f:set": {"v:\"a\"": {}}}),
            json!({}),
            json!({"f:set": {"v:\"a\"": {}}}),
        ),
        (
            json!({"list": [{"k": "a", "v": 1}]}),
            json!({"list": [{"k": "a", "v": 2}]}),
            json!({}),
            json!({"f:list": {"k:{\"k\":\"a\",\"n\":1}": {"f:v": {}}}}),
            json!({}),
        ),
        (
            json!({"any": 1}),
            json!({"any": {"a": 1}}),
            json!({}),
            json!({"f:any": {}}),
            json!({"f:any": {"f:a": {}}}),
        ),
    ] {
        let got = compare(View::node(&schema), &old, &new).unwrap();
        assert_eq!(
            (got.removed, got.modified, got.added),
            (fields(&removed), fields(&modified), fields(&added)),
            "{old} and {new}"
        );
    }
}

#[test]
fn collects_what_is_set() {
    let schema = schema();
    for (value, set) in [
        (json!({"s": null, "map": {}}), json!({"f:s": {}, "f:map": {}})),
        (json!({"set": []}), json!({})),
        (json!({"set": ["a", "a", "b"]}), json!({"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}})),
        (json!({"list": [{"k": "a"}]}), json!({"f:list": {"k:{\"k\":\"a\",\"n\":1}": {".": {}, "f:k": {}}}})),
        (json!({"box": {"a": 1}, "atoms": [1]}), json!({"f:box": {}, "f:atoms": {}})),
        (json!({"any": {"a": {"b": [1]}}}), json!({"f:any": {"f:a": {".": {}, "f:b": {}}}})),
    ] {
        assert_eq!(to_field_set(View::node(&schema), &value).unwrap(), fields(&set), "{value}");
    }
}

#[test]
fn removes_and_extracts() {
    let schema = schema();
    let ty = View::node(&schema);
    let value = json!({"s": "x", "set": ["a", "b"], "list": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "map": {"x": 1}});
    for (set, left, taken) in [
        (
            json!({"f:s": {}}),
            json!({"set": ["a", "b"], "list": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "map": {"x": 1}}),
            json!({"s": "x"}),
        ),
        (
            json!({"f:set": {"v:\"a\"": {}}, "f:list": {"k:{\"k\":\"a\",\"n\":1}": {"f:v": {}}}, "f:map": {"f:x": {}}}),
            json!({"s": "x", "set": ["b"], "list": [{"k": "a"}, {"k": "b", "v": 2}], "map": null}),
            json!({"set": ["a"], "list": [{"v": 1}], "map": {"x": 1}}),
        ),
    ] {
        let mut rest = value.clone();
        remove_items(ty, &mut rest, &fields(&set));
        assert_eq!(rest, left);
        assert_eq!(extract_items(ty, &value, &fields(&set)), taken);
    }
    let with_keys = json!({"f:list": {"k:{\"k\":\"a\",\"n\":1}": {"f:v": {}}}});
    assert_eq!(
        extract_items_with_keys(ty, &value, &fields(&with_keys)),
        json!({"list": [{"k": "a", "v": 1}]})
    );
}

#[test]
fn old_field_sets_follow_the_schema() {
    let schema = schema();
    let ty = View::node(&schema);
    let old = json!({"f:box": {"f:a": {}}, "f:atoms": {"i:0": {}}, "f:map": {"f:x": {}}, "f:any": {"f:a": {"f:b": {}}}, "f:gone": {"f:x": {}}});
    let new = json!({"f:box": {}, "f:atoms": {}, "f:map": {"f:x": {}}, "f:any": {"f:a": {"f:b": {}}}, "f:gone": {"f:x": {}}});
    assert_eq!(reconcile_with_schema(&fields(&old), ty), Some(fields(&new)));
    assert_eq!(reconcile_with_schema(&fields(&new), ty), None);
}

#[test]
fn misfits_say_where_and_why() {
    let schema = schema();
    for (value, message) in [
        (json!({"s": 1}), ".s: expected string, got &value.valueUnstructured{Value:1}"),
        (json!({"map": {"x": "y"}}), ".map.x: expected numeric (int or float), got string"),
        (json!({"map": [1]}), ".map: expected map, got &{[1]}"),
        (json!({"set": {"a": 1}}), ".set: expected list, got &{map[a:1]}"),
        (
            json!({"set": [null]}),
            ".set: element 0: associative list without keys has an element that's an explicit null",
        ),
        (json!({"set": ["a", "a"]}), ".set: duplicate entries for key [=\"a\"]"),
        (json!({"list": [1]}), ".list: element 0: associative list with keys may not have non-map elements"),
        (json!({"nope": 1}), ".nope: field not declared in schema"),
        (
            json!({"s": 1, "map": {"x": true}}),
            "errors:\n  .map.x: expected numeric (int or float), got bool\n  .s: expected string, got &value.valueUnstructured{Value:1}",
        ),
    ] {
        let misfits = validate(View::node(&schema), &value, Duplicates::Forbid).unwrap_err();
        assert_eq!(misfits.to_string(), message);
    }
    assert!(validate(View::node(&schema), &json!({"set": ["a", "a"]}), Duplicates::Allow).is_ok());
}
