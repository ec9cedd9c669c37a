//! The objects questions are about: composite and composed resources with values of every type, some of them missing.

use super::Dice;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Fields of every type, as they stand below `spec` and `status`.
const FIELDS: &str = r#"{
    "region": "us-east-1", "size": 5, "ratio": 1.5, "million": 1000000, "big": 12345678, "huge": 12345678901,
    "tiny": 0.0000125, "exact": 9007199254740991, "wide": 1e21, "negative": -3, "zero": 0, "one": 1,
    "flag": true, "off": false, "nothing": null, "empty": "", "emptyList": [], "emptyObject": {},
    "tags": ["a", "b", "a"], "numbers": [1, 2, 3, 1.5], "mixed": [1, "x", null, true, {"k": 1}, [2]],
    "items": [{"name": "x", "size": 1}, {"name": "y"}, {"name": "z", "size": 3}],
    "nested": {"a": {"b": {"c": "deep", "n": 7}}, "list": [[1, 2], [3]]},
    "labels": {"app.kubernetes.io/name": "web", "tier": "front", "a/b": "c"},
    "json": "{\"a\":1,\"b\":[1,2.5,\"x\"],\"c\":null}", "jsonList": "[1,\"x\",{\"k\":2}]", "jsonNull": "null",
    "base64": "aGVsbG8=", "base64Lines": "aGVs\nbG8=", "notUtf8": "/w==", "binary": "AAEC/v8=", "broken": "aGVsbG8",
    "quantity": "1.5Gi", "milli": "100m", "exponent": "1e3", "numText": "42", "floatText": "3.14", "hexText": "0x1F",
    "boolText": "true", "nan": "NaN", "spaces": "  padded  ", "url": "https://example.org/path?q=1&r=2",
    "unicode": "Grüße ΣΊΣΥΦΟΣ ß İ 世界", "html": "<a href=\"x\">&amp;</a>", "quotes": "say \"hi\" \\ \t\n",
    "name": "demo-42-prod", "percent": "100%s", "long": "abcdefghijklmnopqrstuvwxyz0123456789"
}"#;

fn fields() -> &'static Map<String, Value> {
    static PARSED: LazyLock<Map<String, Value>> =
        LazyLock::new(|| serde_json::from_str(FIELDS).unwrap_or_default());
    &PARSED
}

/// What replaces a field now and then.
fn other(dice: &mut Dice) -> Value {
    dice.one(&[
        json!(7),
        json!(2.25),
        json!("text"),
        json!(false),
        json!(null),
        json!([1, 2]),
        json!({"k": "v"}),
        json!("0"),
        json!(-1.5),
        json!(3_000_000_000_i64),
        json!("eu-west-1"),
        json!([]),
        json!({}),
        json!(["b", "c"]),
    ])
}

/// Some of the fields, some of them changed.
pub(super) fn some_fields(dice: &mut Dice) -> Value {
    fields_kept(dice, 35)
}

/// So many in a hundred of the fields.
fn fields_kept(dice: &mut Dice, keep: u64) -> Value {
    let mut some = Map::new();
    for (key, value) in fields() {
        if dice.percent(keep) {
            let value = if dice.percent(6) { other(dice) } else { value.clone() };
            some.insert(key.clone(), value);
        }
    }
    some.into()
}

fn metadata(dice: &mut Dice, name: &str) -> Value {
    let mut metadata = json!({"name": name});
    if dice.percent(60) {
        metadata["labels"] = json!({"crossplane.io/composite": "demo", "app.kubernetes.io/name": "web"});
    }
    if dice.percent(40) {
        metadata["annotations"] = json!({"example.org/note": "a.b", "plain": "1"});
    }
    if dice.percent(50) {
        metadata["namespace"] = json!("default");
    }
    if dice.percent(30) {
        metadata["uid"] = json!("8c1f-22");
        metadata["generation"] = json!(3);
    }
    metadata
}

/// A composite resource; of the second generation about one time in four.
pub(super) fn composite(dice: &mut Dice) -> Value {
    let mut spec = fields_kept(dice, 85);
    if dice.percent(25) {
        spec["crossplane"] = json!({"compositionRef": {"name": "c"}});
    }
    if dice.percent(8) {
        spec["writeConnectionSecretToRef"] = dice.one(&[
            json!({"name": "own", "namespace": "ns"}),
            json!({"name": "own"}),
            json!({}),
            json!(null),
            json!({"name": 1}),
            json!("x"),
        ]);
    }
    let mut composite = json!({"apiVersion": "example.org/v1", "kind": "XThing", "metadata": metadata(dice, "demo"), "spec": spec});
    if dice.percent(50) {
        composite["status"] = some_fields(dice);
    }
    composite
}

pub(super) fn conditions(dice: &mut Dice) -> Value {
    let statuses = ["True", "False", "Unknown"];
    let mut conditions = Vec::new();
    for kind in ["Synced", "Ready", "Available"] {
        if dice.percent(65) {
            let mut condition = json!({"type": kind, "status": dice.pick(&statuses), "reason": "Because"});
            if dice.percent(60) {
                condition["lastTransitionTime"] = json!("2024-01-01T00:00:00Z");
            }
            if dice.percent(20) {
                condition["message"] = json!("for a reason");
                condition["observedGeneration"] = json!(2);
            }
            conditions.push(condition);
        }
    }
    if dice.percent(5) {
        conditions.push(dice.one(&[
            json!(null),
            json!("x"),
            json!({"type": 1}),
            json!({"lastTransitionTime": "soon"}),
            json!({"type": "Ready", "status": "True"}),
            json!({"observedGeneration": 1.5}),
        ]));
    }
    conditions.into()
}

/// A composed resource as it is observed.
pub(super) fn composed(dice: &mut Dice, kind: &str, name: &str) -> Value {
    let metadata = metadata(dice, name);
    let mut object = json!({"apiVersion": "aws.example.org/v1beta1", "kind": kind, "metadata": metadata, "spec": {"forProvider": some_fields(dice)}});
    if dice.percent(85) {
        object["status"] = json!({"atProvider": some_fields(dice), "conditions": conditions(dice), "phase": "Bound", "replicas": 3, "ok": true});
        if dice.percent(5) {
            object["status"]["conditions"] = super::hostile::odd(dice);
        }
    }
    object
}

/// What a path leads to.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Text,
    Number,
    Truth,
    List,
    Object,
    Anything,
}

/// A path below `spec` of a composite resource that often exists, and what is usually there.
pub(super) fn path(dice: &mut Dice) -> (String, Kind) {
    const SPECIAL: [(&str, Kind); 16] = [
        ("mixed[0]", Kind::Number),
        ("mixed[4].k", Kind::Number),
        ("items[0].name", Kind::Text),
        ("items[2].size", Kind::Number),
        ("nested.a.b.c", Kind::Text),
        ("nested.a.b", Kind::Object),
        ("nested.list[0][1]", Kind::Number),
        ("labels[app.kubernetes.io/name]", Kind::Text),
        ("labels['a/b']", Kind::Text),
        ("tags[1]", Kind::Text),
        ("numbers[3]", Kind::Number),
        ("items[9].name", Kind::Anything),
        ("missing", Kind::Anything),
        ("missing.deeper", Kind::Anything),
        ("nothing.x", Kind::Anything),
        ("nested[a].b.n", Kind::Number),
    ];
    const WRONG: [&str; 5] = ["region.x", "tags.x", "items[*].name", "size[0]", "nothing[0]"];
    match dice.below(100) {
        0 => (dice.pick(&WRONG).to_owned(), Kind::Anything),
        1..30 => {
            let (path, kind) = dice.one(&SPECIAL);
            (path.to_owned(), kind)
        }
        _ => {
            let all = fields();
            let (key, value) =
                all.iter().nth(dice.below(all.len())).unwrap_or_else(|| unreachable!("fields exist"));
            let kind = match value {
                Value::String(_) => Kind::Text,
                Value::Number(_) => Kind::Number,
                Value::Bool(_) => Kind::Truth,
                Value::Array(_) => Kind::List,
                Value::Object(_) => Kind::Object,
                Value::Null => Kind::Anything,
            };
            (key.clone(), kind)
        }
    }
}

/// Base64 of details, as the JSON form of the protocol has bytes.
pub(super) fn details(dice: &mut Dice) -> Value {
    let mut details = Map::new();
    for (key, value) in
        [("username", "YWRtaW4="), ("password", "c2VjcmV0"), ("port", "NTQzMg=="), ("raw", "/wA=")]
    {
        if dice.percent(60) {
            details.insert(key.to_owned(), value.into());
        }
    }
    details.into()
}
