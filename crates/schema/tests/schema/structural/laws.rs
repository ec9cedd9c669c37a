//! Laws that hold for every schema and value.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use transom_object::field::Path;
use transom_schema::{normalize, structural, validate};

const NAMES: [&str; 4] = ["a", "b", "c", "metadata"];

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        prop::sample::select(vec![0.5, 2.0, -1.25]).prop_map(Value::from),
        "[ab]{0,3}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4).prop_map(|m| Value::Object(Map::from_iter(m))),
        ]
    })
}

/// Keywords that restrict scalars, and flags.
fn restrictions() -> impl Strategy<Value = Map<String, Value>> {
    let restriction = prop_oneof![
        (0i64..3).prop_map(|n| ("minLength", json!(n))),
        (0i64..3).prop_map(|n| ("maxLength", json!(n))),
        (-2i64..3).prop_map(|n| ("minimum", json!(n))),
        (-2i64..3).prop_map(|n| ("maximum", json!(n))),
        (0i64..3).prop_map(|n| ("maxItems", json!(n))),
        (0i64..3).prop_map(|n| ("minProperties", json!(n))),
        prop::collection::vec(name(), 1..3).prop_map(|n| ("required", json!(n))),
        prop::collection::vec(scalar(), 1..3).prop_map(|n| ("enum", json!(n))),
        any::<bool>().prop_map(|b| ("nullable", json!(b))),
        Just(("x-kubernetes-preserve-unknown-fields", json!(true))),
        Just(("x-kubernetes-embedded-resource", json!(true))),
        Just(("x-kubernetes-list-type", json!("set"))),
        Just(("pattern", json!("^a+$"))),
        Just(("anyOf", json!([{"required": ["a"]}, {"minLength": 2}]))),
        Just(("oneOf", json!([{"required": ["a"]}, {"required": ["b"]}]))),
        Just(("not", json!({"required": ["c"]}))),
        value().prop_map(|v| ("default", v)),
    ];
    prop::collection::vec(restriction, 0..4)
        .prop_map(|all| all.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)).collect())
}

fn schema() -> impl Strategy<Value = Value> {
    let types = vec!["string", "integer", "number", "boolean", "object", "array", ""];
    let leaf = (prop::sample::select(types.clone()), restrictions()).prop_map(|(ty, mut keywords)| {
        keywords.insert("type".to_owned(), ty.into());
        Value::Object(keywords)
    });
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let properties = prop::collection::btree_map(name(), inner.clone(), 0..4);
        let spine = prop_oneof![
            properties.prop_map(|p| json!({"type": "object", "properties": p})),
            inner.clone().prop_map(|s| json!({"type": "object", "additionalProperties": s})),
            inner.clone().prop_map(|s| json!({"type": "array", "items": s})),
            inner.prop_map(|s| json!({"type": "array", "items": {"type": "object", "properties": {"a": s, "b": {"type": "string"}}},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]})),
        ];
        (spine, restrictions()).prop_map(|(mut schema, keywords)| {
            let fields = schema.as_object_mut().unwrap();
            for (keyword, value) in keywords {
                fields.entry(keyword).or_insert(value);
            }
            schema
        })
    })
}

/// What a server does to a value before it judges it.
fn normalized(mut value: Value, schema: &transom_schema::Schema) -> Value {
    normalize::prune(&mut value, schema, true);
    normalize::drop_nulls(&mut value, schema);
    normalize::default(&mut value, schema);
    value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn pruning_twice_is_pruning_once(doc in schema(), mut value in value(), root in any::<bool>()) {
        let schema = structural::parse(&doc).unwrap();
        normalize::prune(&mut value, &schema, root);
        let once = value.clone();
        prop_assert_eq!(normalize::prune(&mut value, &schema, root), Vec::<String>::new());
        prop_assert_eq!(value, once);
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(doc in schema(), mut value in value()) {
        let schema = structural::parse(&doc).unwrap();
        normalize::default(&mut value, &schema);
        let once = value.clone();
        normalize::default(&mut value, &schema);
        prop_assert_eq!(value, once);
    }

    #[test]
    fn what_defaulting_adds_is_never_pruned(doc in schema(), value in value()) {
        let schema = structural::parse(&doc).unwrap();
        let once = normalized(value, &schema);
        let mut again = once.clone();
        normalize::prune(&mut again, &schema, true);
        prop_assert_eq!(again, once);
    }

    #[test]
    fn an_update_without_a_change_is_accepted(doc in schema(), value in value()) {
        let schema = structural::parse(&doc).unwrap();
        prop_assert_eq!(validate::validate(&value, Some(&value), &schema, &Path::root()), vec![]);
        prop_assert_eq!(validate::list_types(&value, Some(&value), &schema, &Path::root()), vec![]);
    }

    #[test]
    fn an_update_has_no_errors_that_creation_would_not_have(doc in schema(), new in value(), old in value()) {
        let schema = structural::parse(&doc).unwrap();
        let created = validate::validate(&new, None, &schema, &Path::root());
        let updated = validate::validate(&new, Some(&old), &schema, &Path::root());
        prop_assert!(updated.is_empty() || !created.is_empty());
    }

    /// Whatever the document: an answer, never a panic.
    #[test]
    fn judging_a_schema_never_fails(doc in value(), nested in schema()) {
        let _ = structural::check(&doc, &Path::root());
        let _ = structural::parse(&doc);
        let _ = structural::check(&nested, &Path::root());
    }
}
