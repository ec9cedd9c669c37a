//! The project's own tables, of the same kind as upstream's.

use super::normalize::schema;
use serde_json::{Value, json};
use transom_object::field::Path;
use transom_schema::normalize::{MalformedFields, coerce_metadata};
use transom_schema::{normalize, structural, validate};

fn errors(doc: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    validate::validate(new, old, &schema(doc), &Path::root()).iter().map(ToString::to_string).collect()
}

/// Schema of one property `f`, its value, and what is said about it.
fn assert_words(table: &[(Value, Value, &str)]) {
    for (property, value, want) in table {
        let doc = json!({"type": "object", "properties": {"f": property}});
        assert_eq!(errors(&doc, &json!({"f": value}), None), [*want], "{doc}");
    }
}

#[test]
fn validations_of_scalars_have_their_words() {
    let table = [
        (
            json!({"type": "string"}),
            json!(1),
            r#"f: Invalid value: "integer": f in body must be of type string: "integer""#,
        ),
        (
            json!({"type": "integer"}),
            json!(1.5),
            r#"f: Invalid value: "number": f in body must be of type integer: "number""#,
        ),
        (
            json!({"type": "object"}),
            json!(null),
            r#"f: Invalid value: "null": f in body must be of type object: "null""#,
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            r#"f: Invalid value: "boolean": f in body must be of type integer,string: "boolean""#,
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            r#"f: Unsupported value: "c": supported values: "a", "b""#,
        ),
        (json!({"type": "string", "maxLength": 1}), json!("éé"), "f: Too long: may not be more than 1 byte"),
        (
            json!({"type": "string", "minLength": 3}),
            json!("éé"),
            r#"f: Invalid value: "éé": f in body should be at least 3 chars long"#,
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            r#"f: Invalid value: "b": f in body should match '^a+$'"#,
        ),
        (
            json!({"type": "string", "format": "ipv4"}),
            json!("x"),
            r#"f: Invalid value: "x": f in body must be of type ipv4: "x""#,
        ),
        (
            json!({"type": "integer", "maximum": 3}),
            json!(4),
            "f: Invalid value: 4: f in body should be less than or equal to 3",
        ),
        (
            json!({"type": "integer", "maximum": 3, "exclusiveMaximum": true}),
            json!(3),
            "f: Invalid value: 3: f in body should be less than 3",
        ),
        (
            json!({"type": "number", "minimum": 0.5}),
            json!(0.25),
            "f: Invalid value: 0.25: f in body should be greater than or equal to 0.5",
        ),
        (
            json!({"type": "integer", "multipleOf": 2}),
            json!(3),
            "f: Invalid value: 3: f in body should be a multiple of 2",
        ),
    ];
    assert_words(&table);
}

#[test]
fn so_have_lists_objects_and_logic() {
    let table = [
        (json!({"type": "array", "maxItems": 1}), json!([1, 2]), "f: Too many: 2: must have at most 1 item"),
        (
            json!({"type": "array", "minItems": 2}),
            json!([1]),
            "f: Invalid value: 1: f in body should have at least 2 items",
        ),
        (
            json!({"type": "object", "maxProperties": 0}),
            json!({"a": 1}),
            "f: Too many: 1: must have at most 0 items",
        ),
        (
            json!({"type": "object", "minProperties": 1}),
            json!({}),
            "f: Invalid value: 0: f in body should have at least 1 properties",
        ),
        (json!({"type": "object", "required": ["a"]}), json!({}), "f.a: Required value"),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"k": "v"}),
            r#"f.k: Invalid value: "string": f.k in body must be of type integer: "string""#,
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!(["a", 2]),
            r#"f[1]: Invalid value: "integer": f[1] in body must be of type string: "integer""#,
        ),
        (
            json!({"type": "object", "not": {"required": ["a"]}}),
            json!({"a": 1}),
            r#"<nil>: Invalid value: "": "f" must not validate the schema (not)"#,
        ),
        (
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": 1, "b": 2}),
            r#"<nil>: Invalid value: "": "f" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ),
    ];
    assert_words(&table);
}

#[test]
fn the_branch_that_came_furthest_is_blamed() {
    let doc = json!({"type": "object", "properties": {"f": {"type": "object", "anyOf": [
        {"required": ["a"]},
        {"properties": {"b": {"minimum": 5}, "c": {"maximum": 1}}},
    ]}}});
    assert_eq!(
        errors(&doc, &json!({"f": {"b": 1, "c": 1}}), None),
        [
            r#"<nil>: Invalid value: "": "f" must validate at least one schema (anyOf)"#,
            "f.b: Invalid value: 1: f.b in body should be greater than or equal to 5",
        ]
    );
}

#[test]
fn updates_forgive_what_has_not_changed() {
    let doc = json!({"type": "object", "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "size": {"type": "integer"},
        "args": {"type": "array", "items": {"type": "string", "maxLength": 1}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
            "items": {"type": "object", "properties": {"n": {"type": "integer"}, "p": {"type": "string", "enum": ["TCP"]}}}},
    }});
    let old = json!({"name": "OLD", "size": 1, "args": ["long"], "ports": [{"n": 1, "p": "SCTP"}]});
    assert_eq!(errors(&doc, &old, None).len(), 3);
    let mut new = old.clone();
    new["size"] = json!(2);
    assert!(errors(&doc, &new, Some(&old)).is_empty());
    new["args"] = json!(["long", "x"]);
    assert_eq!(errors(&doc, &new, Some(&old)), ["args[0]: Too long: may not be more than 1 byte"]);
    new["ports"] = json!([{"n": 2, "p": "TCP"}, {"n": 1, "p": "SCTP"}]);
    new["args"] = old["args"].clone();
    assert!(errors(&doc, &new, Some(&old)).is_empty(), "items are found by their key");
}

#[test]
fn a_status_is_judged_alone() {
    let schema = schema(&json!({"type": "object", "required": ["spec"], "properties": {
        "spec": {"type": "object"}, "status": {"type": "object", "properties": {"phase": {"type": "string", "enum": ["Ready"]}}}}}));
    let new = json!({"spec": 1, "status": {"phase": "?"}});
    let found: Vec<String> =
        validate::validate_status(&new, None, &schema).iter().map(ToString::to_string).collect();
    assert_eq!(found, [r#"status.phase: Unsupported value: "?": supported values: "Ready""#]);
    assert!(validate::validate_status(&new, Some(&new), &schema).is_empty());
    assert!(validate::validate_status(&json!({"spec": 1}), None, &schema).is_empty());
}

#[test]
fn pruning_respects_what_is_preserved() {
    let schema = schema(&json!({"type": "object", "properties": {
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"strict": {"type": "object", "properties": {"a": {"type": "integer"}}}}},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
        "list": {"type": "array", "x-kubernetes-preserve-unknown-fields": true,
            "items": {"type": "object", "properties": {"a": {"type": "object"}}}},
    }}));
    let mut value = json!({
        "apiVersion": "v1", "kind": "K", "metadata": {"any": 1}, "gone": 1,
        "free": {"x": {"y": 1}, "strict": {"a": 1, "b": 2}},
        "inner": {"kind": "I", "metadata": {}, "spec": {"gone": 1}, "status": 1},
        "list": [{"kept": 1, "a": {"gone": 1}}],
    });
    let unknown = normalize::prune(&mut value, &schema, true);
    assert_eq!(unknown, ["free.strict.b", "gone", "inner.spec.gone", "inner.status", "list[0].a.gone"]);
    assert_eq!(
        value,
        json!({
            "apiVersion": "v1", "kind": "K", "metadata": {"any": 1},
            "free": {"x": {"y": 1}, "strict": {"a": 1}},
            "inner": {"kind": "I", "metadata": {}, "spec": {}},
            "list": [{"kept": 1, "a": {}}],
        })
    );
}

#[test]
fn nulls_give_way_to_defaults_or_disappear() {
    let schema = schema(&json!({"type": "object", "properties": {
        "plain": {"type": "string"},
        "nullable": {"type": "string", "nullable": true, "default": "d"},
        "defaulted": {"type": "string", "default": "d"},
        "nested": {"type": "object", "default": {}, "properties": {"a": {"type": "integer", "default": 1}}},
    }}));
    let mut value = json!({"plain": null, "nullable": null, "defaulted": null, "unknown": null});
    normalize::drop_nulls(&mut value, &schema);
    normalize::default(&mut value, &schema);
    assert_eq!(value, json!({"nullable": null, "defaulted": "d", "nested": {"a": 1}, "unknown": null}));
}

#[test]
fn metadata_is_read_and_written_back() {
    let schema = schema(&json!({"type": "object"}));
    let mut value = json!({"apiVersion": "v1", "kind": "K", "metadata": {
        "name": "n", "labels": {}, "generation": 0, "creationTimestamp": null, "odd": 1,
        "deletionTimestamp": "2024-01-01T01:00:00+01:00",
        "ownerReferences": [{"name": "o", "controller": false, "extra": 1}],
        "annotations": {"a": null},
    }});
    let unknown = coerce_metadata(&mut value, &schema, true, MalformedFields::Refuse).unwrap();
    assert_eq!(unknown, ["metadata.odd", "metadata.ownerReferences[0].extra"]);
    assert_eq!(
        value["metadata"],
        json!({
            "name": "n", "deletionTimestamp": "2024-01-01T00:00:00Z", "annotations": {"a": ""},
            "ownerReferences": [{"apiVersion": "", "kind": "", "name": "o", "uid": "", "controller": false}],
        })
    );
    for (metadata, want) in [
        (
            json!({"labels": {"a": 1}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        ),
        (
            json!({"generation": "x"}),
            "json: cannot unmarshal string into Go struct field ObjectMeta.generation of type int64",
        ),
        (
            json!({"finalizers": "x"}),
            "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string",
        ),
        (
            json!({"ownerReferences": [{"name": 1}]}),
            "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.name of type string",
        ),
        (json!("x"), "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
    ] {
        let mut value = json!({"metadata": metadata});
        let error = coerce_metadata(&mut value, &schema, true, MalformedFields::Refuse).unwrap_err();
        assert_eq!(error.detail, want);
        assert_eq!(error.field, "metadata");
    }
}

/// A schema document and the errors that judging it gives.
#[test]
fn what_makes_a_schema_unacceptable() {
    let table = [
        (json!({"properties": {}}), vec!["s.type: Required value: must not be empty at the root"]),
        (
            json!({"type": "array"}),
            vec![
                "s.items: Required value: must be specified",
                r#"s.type: Invalid value: "array": must be object at the root"#,
            ],
        ),
        (
            json!({"type": "object", "additionalProperties": true}),
            vec!["s.additionalProperties: Forbidden: must not be used at the root"],
        ),
        (
            json!({"type": "object", "nullable": true}),
            vec!["s.nullable: Forbidden: nullable cannot be true at the root"],
        ),
        (json!({"type": "object", "$ref": "#/x"}), vec!["s.$ref: Forbidden: $ref is not supported"]),
        (json!({"type": 1}), vec![r#"s.type: Invalid value: "number": must be a string"#]),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
            vec![
                "s.properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}},
                "anyOf": [{"type": "object"}, {"properties": {"c": {"minLength": 1}}}]}}}),
            vec!["s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural"],
        ),
        (
            json!({"type": "object", "properties": {"b": {"type": "string"}}, "anyOf": [{"properties": {"c": {"minLength": 1}}}]}),
            vec!["s.properties[c]: Required value: because it is defined in s.anyOf[0].properties[c]"],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            vec![
                "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"x": {"type": "integer"}}, "default": {"x": "1", "y": 2}}}}),
            vec![
                r#"s.properties[a].default: Invalid value: {"x":"1","y":2}: must not have unknown fields"#,
                r#"s.properties[a].default.x: Invalid value: "string": x in body must be of type integer: "string""#,
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
                "metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "a/b"}}}}}}}),
            vec![
                r#"s.properties[a].properties[metadata].properties[name].default: Invalid value: "a/b": must result in valid metadata: metadata.name: Invalid value: "a/b": may not contain '/'"#,
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}}}}}}),
            vec![
                "s.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "x-kubernetes-list-type": "set",
                "items": {"type": "object"}}}}),
            vec![
                "s.properties[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
            ],
        ),
        (
            json!({"type": "object", "x-kubernetes-validations": [{"rule": " "}, {"rule": "true", "reason": "Bad", "fieldPath": ".x"}]}),
            vec![
                "s.x-kubernetes-validations[0].rule: Required value: rule is not specified",
                r#"s.x-kubernetes-validations[1].reason: Unsupported value: "Bad": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired""#,
                r#"s.x-kubernetes-validations[1].fieldPath: Invalid value: ".x": must be a valid path"#,
            ],
        ),
    ];
    for (doc, mut want) in table {
        let mut got: Vec<String> =
            structural::check(&doc, &Path::new("s")).iter().map(ToString::to_string).collect();
        if want.len() > 1 {
            got.sort();
            want.sort_unstable();
        }
        assert_eq!(got, want, "{doc}");
    }
}

#[test]
fn a_schema_nested_without_end_is_refused() {
    let mut doc = json!({"type": "string"});
    for _ in 0..300 {
        doc = json!({"type": "object", "properties": {"a": doc}});
    }
    assert!(structural::parse(&doc).is_err());
    assert_eq!(structural::check(&doc, &Path::root()).len(), 1);
}
