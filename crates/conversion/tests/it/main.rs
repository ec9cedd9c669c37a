//! Conversion rules through the public interface of the crate: what they do to objects, which mistakes are reported, and that
//! generated objects come back from every walk through the versions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]
#![allow(clippy::needless_pass_by_value, reason = "values are written where they are passed")]

mod forged;
mod random;

use serde_json::{Value, json};
use transom_conversion::{ANNOTATION, Converter, RuleError, Rules, VersionSchema};

/// The schema of a kind whose `spec` has these fields, all optional.
fn schema(fields: Value) -> Value {
    json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", "properties": fields}}})
}

fn try_converter(versions: &[(&str, Value)], conversion: &Value) -> Result<Converter, Vec<RuleError>> {
    let rules = Rules::read(conversion).map_err(|error| vec![error])?;
    let versions: Vec<_> = versions.iter().map(|(name, schema)| VersionSchema { name, schema }).collect();
    Converter::compile(&rules, &versions)
}

fn converter(versions: &[(&str, Value)], rules: Value) -> Converter {
    try_converter(versions, &json!({"rules": rules})).unwrap()
}

fn object(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("example.org/{version}"), "kind": "Thing", "metadata": {"name": "x", "uid": "u"}, "spec": spec})
}

fn spec_in(converter: &Converter, object: &Value, version: &str) -> Value {
    let converted = converter.convert(object, version).unwrap();
    assert_eq!(converted["apiVersion"], format!("example.org/{version}"));
    assert_eq!(converted["metadata"]["uid"], "u");
    converted["spec"].clone()
}

#[test]
fn fields_move_and_are_computed_in_both_directions() {
    let text = json!({"type": "string"});
    let a = schema(json!({"size": {"type": "integer"}, "on": {"type": "boolean"}, "x": text, "y": text}));
    let inner = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    let b = schema(
        json!({"parameters": inner, "mode": {"type": "string", "enum": ["on", "off"]}, "x": text, "y": text}),
    );
    let converter = converter(
        &[("v1", a), ("v2", b)],
        json!([{
            "from": "v1", "to": "v2",
            "moves": [{"from": "spec.size", "to": "spec.parameters.size"}, {"from": "spec.x", "to": "spec.y"}, {"from": "spec.y", "to": "spec.x"}],
            "forward": [{"path": "spec.mode", "expression": "self.spec.?on.optMap(on, on ? 'on' : 'off')"}],
            "backward": [{"path": "spec.on", "expression": "self.spec.?mode.optMap(mode, mode == 'on')"}],
        }]),
    );
    for (old, new) in [
        (json!({}), json!({})),
        (json!({"size": 3}), json!({"parameters": {"size": 3}})),
        (json!({"on": true, "x": "1"}), json!({"mode": "on", "y": "1"})),
        (json!({"on": false, "x": "1", "y": "2"}), json!({"mode": "off", "x": "2", "y": "1"})),
    ] {
        assert_eq!(spec_in(&converter, &object("v1", old.clone()), "v2"), new);
        assert_eq!(spec_in(&converter, &object("v2", new), "v1"), old);
    }
    assert_eq!(converter.check(), []);
    let same = object("v1", json!({"size": 1}));
    assert_eq!(converter.convert(&same, "v1").unwrap(), same);
}

#[test]
fn a_value_is_computed_only_where_there_is_none() {
    let a = schema(json!({"size": {"type": "integer"}}));
    let mut b = schema(json!({"size": {"type": "integer"}, "tier": {"type": "string"}}));
    b["properties"]["spec"]["required"] = json!(["tier"]);
    let rule = |only: bool| {
        json!([{"from": "v1", "to": "v2", "forward": [
            {"path": "spec.tier", "expression": "self.spec.?size.orValue(0) > 10 ? 'large' : 'small'", "onlyIfMissing": only},
        ]}])
    };
    let versions = [("v1", a), ("v2", b)];
    let good = converter(&versions, rule(true));
    assert_eq!(good.check(), []);
    let set = object("v2", json!({"size": 1, "tier": "special"}));
    let mut old = good.convert(&set, "v1").unwrap();
    old["spec"]["size"] = 20.into();
    assert_eq!(spec_in(&good, &old, "v2"), json!({"size": 20, "tier": "special"}));
    assert_eq!(
        spec_in(&good, &object("v1", json!({"size": 20})), "v2"),
        json!({"size": 20, "tier": "large"})
    );
    let lossy = converter(&versions, rule(false)).check();
    assert_eq!(lossy.len(), 1);
    assert!(lossy[0].to_string().starts_with("rules[0]: v2 to v1 to v2: spec.tier was"), "{}", lossy[0]);
}

#[test]
fn kept_fields_travel_in_an_annotation() {
    let a = schema(json!({"size": {"type": "integer"}, "note": {"type": "string"}}));
    let b = schema(json!({"size": {"type": "integer"}, "zone": {"type": "string"}}));
    let converter = converter(&[("v1", a), ("v2", b)], json!([{"from": "v1", "to": "v2"}]));
    let old = object("v1", json!({"size": 1, "note": "n"}));
    let new = converter.convert(&old, "v2").unwrap();
    assert_eq!(new["spec"], json!({"size": 1}));
    assert_eq!(new["metadata"]["annotations"][ANNOTATION], r#"{"v1":[[["spec","note"],"n"]]}"#);
    assert_eq!(converter.convert(&new, "v1").unwrap(), old, "the annotation is gone, too");
    let mut zoned = new.clone();
    zoned["spec"]["zone"] = "z".into();
    let back = converter.convert(&zoned, "v1").unwrap();
    assert_eq!(back["spec"], json!({"size": 1, "note": "n"}));
    assert_eq!(converter.convert(&back, "v2").unwrap(), zoned);
    // An annotation that cannot be read keeps nothing and stops nothing.
    for spoiled in [
        "",
        "x",
        "{\"v1\": 3}",
        "{\"v1\": [[[], 1], [[\"spec\"], 2]]}",
        "{\"v1\":[[[\"metadata\",\"name\"],\"evil\"]]}",
    ] {
        let mut object = new.clone();
        object["metadata"]["annotations"][ANNOTATION] = spoiled.into();
        let converted = converter.convert(&object, "v1").unwrap();
        assert_eq!(
            (&converted["spec"], &converted["metadata"]["name"]),
            (&json!({"size": 1}), &json!("x")),
            "{spoiled}"
        );
    }
}

fn list_of(more: Value, of: Value) -> Value {
    let mut properties = json!({"name": {"type": "string"}, "size": {"type": "integer", "default": 1}});
    properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut list = json!({"type": "array", "items": {"type": "object", "properties": properties}});
    list.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
    if of != json!({}) {
        list["items"]["required"] = json!(["name"]);
    }
    schema(json!({"nodes": list}))
}

#[test]
fn kept_fields_find_their_entry() {
    let keyed = json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    for (of, changed_keeps) in [(keyed, true), (json!({}), false)] {
        let (a, b) = (list_of(json!({}), of.clone()), list_of(json!({"zone": {"type": "string"}}), of));
        let converter = converter(&[("v1", a), ("v2", b)], json!([{"from": "v1", "to": "v2"}]));
        assert_eq!(converter.check(), []);
        let node = |name: &str, size: i64, zone: &str| json!({"name": name, "size": size, "zone": zone});
        let new = object("v2", json!({"nodes": [node("a", 1, "x"), node("b", 2, "y"), node("c", 3, "z")]}));
        let mut old = converter.convert(&new, "v1").unwrap();
        assert_eq!(old["spec"]["nodes"][1], json!({"name": "b", "size": 2}));
        assert_eq!(converter.convert(&old, "v2").unwrap(), new);
        // Another order, one entry less, one changed.
        old["spec"]["nodes"] =
            json!([{"name": "c", "size": 3}, {"name": "d", "size": 3}, {"name": "a", "size": 9}]);
        let mut expected = json!([node("c", 3, "z"), {"name": "d", "size": 3}, {"name": "a", "size": 9}]);
        if changed_keeps {
            expected[2]["zone"] = "x".into();
        }
        assert_eq!(spec_in(&converter, &old, "v2")["nodes"], expected);
    }
}

#[test]
fn what_a_client_removes_does_not_come_back() {
    let network = |more: Value| {
        let mut properties = json!({"cidr": {"type": "string"}});
        properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema(json!({"network": {"type": "object", "properties": properties}}))
    };
    let versions = [("v1", network(json!({}))), ("v2", network(json!({"mtu": {"type": "integer"}})))];
    let converter = converter(&versions, json!([{"from": "v1", "to": "v2"}]));
    let new = object("v2", json!({"network": {"cidr": "c", "mtu": 9000}}));
    let mut old = converter.convert(&new, "v1").unwrap();
    assert_eq!(converter.convert(&old, "v2").unwrap(), new);
    old["spec"] = json!({});
    assert_eq!(spec_in(&converter, &old, "v2"), json!({}));
}

#[test]
fn versions_that_are_not_neighbours_are_converted_over_those_between() {
    let one =
        |name: &str| schema(json!({name: {"type": "integer"}, (format!("only-{name}")): {"type": "string"}}));
    let versions = [("v1", one("a")), ("v2", one("b")), ("v3", one("c"))];
    let moved = |from: &str, to: &str| json!([{"from": format!("spec.{from}"), "to": format!("spec.{to}")}]);
    let converter = converter(
        &versions,
        json!([{"from": "v2", "to": "v3", "moves": moved("b", "c")}, {"from": "v1", "to": "v2", "moves": moved("a", "b")}]),
    );
    assert_eq!(converter.check(), []);
    let first = object("v1", json!({"a": 1, "only-a": "1"}));
    let last = converter.convert(&first, "v3").unwrap();
    assert_eq!(last["spec"], json!({"c": 1}));
    assert_eq!(converter.convert(&last, "v1").unwrap(), first);
    let middle = converter.convert(&last, "v2").unwrap();
    assert_eq!(middle["spec"], json!({"b": 1}));
    assert_eq!(converter.convert(&middle, "v1").unwrap(), first);
}

#[test]
fn mistakes_in_rules_are_named() {
    let versions = [
        ("v1", schema(json!({"a": {"type": "integer"}}))),
        ("v2", schema(json!({"b": {"type": "integer"}}))),
    ];
    let pair = |more: Value| {
        let mut rule = json!({"from": "v1", "to": "v2"});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([rule])
    };
    for (rules, expected) in [
        (json!([]), "rules: no rule leads to version v2: add a rule between it and its neighbour"),
        (
            json!([{"from": "v1", "to": "v3"}]),
            "rules[0].to: there is no version \"v3\"; the versions are v1, v2",
        ),
        (json!([{"from": "v1", "to": "v1"}]), "rules[0].to: a rule needs two different versions"),
        (
            json!([{"from": "v1", "to": "v2"}, {"from": "v2", "to": "v1"}]),
            "rules[1]: v2 and v1 are connected by other rules already",
        ),
        (
            pair(json!({"moves": [{"from": "spec.x", "to": "spec.b"}]})),
            "rules[0].moves[0].from: version v1 has no field spec.x",
        ),
        (
            pair(json!({"moves": [{"from": "spec.a", "to": "metadata.name"}]})),
            "rules[0].moves[0].to: \"metadata.name\": must be a field below spec or status",
        ),
        (
            pair(
                json!({"moves": [{"from": "spec.a", "to": "spec.b"}], "forward": [{"path": "spec.b", "expression": "1"}]}),
            ),
            "rules[0]: spec.b and spec.b are the same field, or one is within the other",
        ),
        (
            pair(json!({"forward": [{"path": "spec.b", "expression": "self.spec.c"}]})),
            "rules[0].forward[0].expression: ",
        ),
        (
            pair(json!({"backward": [{"path": "spec.a", "expression": "1 +"}]})),
            "rules[0].backward[0].expression: ",
        ),
        (pair(json!({"forwards": []})), "rules: unknown field `forwards`"),
    ] {
        let errors = try_converter(&versions, &json!({"rules": rules})).unwrap_err();
        assert!(
            errors.iter().any(|error| error.to_string().starts_with(expected)),
            "{expected}: {errors:#?}"
        );
    }
}

#[test]
fn losses_are_found() {
    let check = |a: Value, b: Value, rule: Value| {
        let mut rule = rule;
        rule["from"] = "v1".into();
        rule["to"] = "v2".into();
        let found = converter(&[("v1", schema(a)), ("v2", schema(b))], json!([rule])).check();
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let (int, text) = (json!({"type": "integer"}), json!({"type": "string"}));
    let both = |forward: &str, backward: &str| json!({"forward": [{"path": "spec.b", "expression": forward}], "backward": [{"path": "spec.a", "expression": backward}]});
    // Another type under the same name.
    let found = check(json!({"a": int}), json!({"a": text}), json!({}));
    assert!(found.contains("v1 to v2: the converted object is refused: spec.a: Invalid value"), "{found}");
    // A range is not one value.
    let found = check(
        json!({"a": {"type": "integer", "minimum": 0}}),
        json!({"b": {"type": "string", "enum": ["small", "large"]}}),
        both(
            "self.spec.?a.optMap(n, n > 10 ? 'large' : 'small')",
            "self.spec.?b.optMap(s, s == 'large' ? 11 : 1)",
        ),
    );
    assert!(found.contains("v1 to v2 to v1: spec.a was"), "{found}");
    assert!(!found.contains("v2 to v1 to v2"), "{found}");
    // Texts that are not numbers, and numbers with leading zeros.
    let parsed = both("self.spec.?a.optMap(n, string(n))", "self.spec.?b.optMap(s, int(s))");
    let found = check(json!({"a": int}), json!({"b": text}), parsed.clone());
    assert!(found.contains("v2 to v1: the expression for spec.a fails"), "{found}");
    let found =
        check(json!({"a": int}), json!({"b": {"type": "string", "pattern": "^[0-9]{1,4}$"}}), parsed.clone());
    assert!(found.contains("v2 to v1 to v2: spec.b was"), "{found}");
    let digits = json!({"type": "string", "pattern": "^(0|[1-9][0-9]{0,3})$"});
    assert_eq!(
        check(json!({"a": {"type": "integer", "minimum": 0, "maximum": 9999}}), json!({"b": digits}), parsed),
        ""
    );
    // An optional field that is read without asking.
    let found = check(json!({"a": int}), json!({"b": int}), both("self.spec.a", "self.spec.?b"));
    assert!(
        found.contains("v1 to v2: v1 to v2: the expression for spec.b fails") && found.contains("has()"),
        "{found}"
    );
}

#[test]
fn examples_reach_what_generated_objects_do_not() {
    let a = schema(json!({"a": {"type": "string"}}));
    let mut strict = a;
    strict["properties"]["spec"]["required"] = json!(["a"]);
    strict["properties"]["spec"]["x-kubernetes-validations"] = json!([{"rule": "self.a == 'the-one'"}]);
    let b = schema(json!({"a": {"type": "string"}}));
    let rules = |examples: Value| json!({"rules": [{"from": "v1", "to": "v2"}], "examples": examples});
    let versions = [("v1", strict), ("v2", b)];
    let found = try_converter(&versions, &rules(json!([]))).unwrap().check();
    assert!(found.iter().any(|f| f.to_string().contains("no valid object could be generated")), "{found:?}");
    let example = object("v1", json!({"a": "the-one"}));
    let found = try_converter(&versions, &rules(json!([example]))).unwrap().check();
    // The way back is refused as before: other texts are valid in v2 alone.
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].to_string().starts_with("rules[0]: v2 to v1: the converted object is refused"),
        "{found:?}"
    );
    let errors = try_converter(&versions, &rules(json!([{"spec": {}}]))).unwrap_err();
    assert!(errors[0].to_string().starts_with("examples[0].apiVersion: "), "{errors:?}");
}
