//! Patches: tables of our own, upstream's tables when the conformance data lies beside the repository, laws
//! and hostile input.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use transom_object::yaml;
use transom_schema::Schema;
use transom_schema::model::{Additional, PatchStrategy};
use transom_schema::patch::{
    MAX_OPERATIONS, PatchError, json_patch, merge_patch, strategic_merge_patch, three_way,
};

fn cases(path: &str) -> Vec<Value> {
    transom_testkit::tables::cases(&format!("kubernetes/patch/{path}"))
}

/// An input of a case: YAML text or a value. Absent is an empty object, as in the original tests.
fn input(case: &Value, field: &str) -> Value {
    match case.get(field) {
        Some(Value::String(text)) => Some(yaml::read(text).expect("YAML")),
        other => other.cloned(),
    }
    .filter(|value| !value.is_null())
    .unwrap_or_else(|| json!({}))
}

/// The schema that upstream's tables are about, unfolded as deep as they go: `mergeItem` contains itself.
fn merge_item(depth: usize) -> Schema {
    let strategy = |merge: bool, retain_keys: bool, replace: bool, key: &str| {
        let merge_key = (!key.is_empty()).then(|| key.to_owned());
        Some(PatchStrategy { merge, retain_keys, replace, merge_key })
    };
    let mut schema = Schema::default();
    let mut add = |name: &str, field: Schema| schema.properties.insert(name.to_owned(), Arc::new(field));
    for name in ["name", "value", "other"] {
        add(name, Schema::default());
    }
    add("mergingIntList", Schema { patch: strategy(true, false, false, ""), ..Schema::default() });
    add("nonMergingIntList", Schema::default());
    add("simpleMap", Schema { additional: Additional::Schema(Arc::default()), ..Schema::default() });
    add("replacingItem", Schema { patch: strategy(false, false, true, ""), ..Schema::any() });
    add("jsonItem", Schema::any());
    if depth > 0 {
        let item = Arc::new(merge_item(depth - 1));
        let list = |patch| Schema { items: Some(item.clone()), patch, ..Schema::default() };
        add("mergingList", list(strategy(true, false, false, "name")));
        add("nonMergingList", list(None));
        add("retainKeysMergingList", list(strategy(true, true, false, "name")));
        add("mergeItemPtr", list(strategy(true, false, false, "name")));
        add("retainKeysMap", Schema { patch: strategy(false, true, false, ""), ..item.as_ref().clone() });
    }
    schema
}

#[test]
fn strategic_table_of_our_own() {
    let schema = merge_item(4);
    let cases = [
        // by key, appended, null deletes
        (
            "mergingList: [{name: 1, value: a}]",
            "mergingList: [{name: 1, other: b}, {name: 2}]",
            "mergingList: [{name: 1, value: a, other: b}, {name: 2}]",
        ),
        ("{name: 1, value: 2}", "{value: null, other: {x: null, y: 1}}", "{name: 1, other: {y: 1}}"),
        // lists without strategy are replaced
        ("nonMergingIntList: [1, 2]", "nonMergingIntList: [3]", "nonMergingIntList: [3]"),
        ("mergingIntList: [1, 2]", "mergingIntList: [2, 3]", "mergingIntList: [1, 2, 3]"),
        // directives
        (
            "mergingList: [{name: 1}, {name: 2}]",
            "mergingList: [{name: 1, $patch: delete}]",
            "mergingList: [{name: 2}]",
        ),
        (
            "mergingList: [{name: 1}, {name: 2}]",
            "mergingList: [{name: 3}, {$patch: replace}]",
            "mergingList: [{name: 3}]",
        ),
        ("simpleMap: {a: b}", "simpleMap: {$patch: replace, c: d}", "simpleMap: {c: d}"),
        ("simpleMap: {a: b}", "simpleMap: {$patch: delete}", "simpleMap: {}"),
        ("{}", "mergingList: [{name: 1, $patch: delete}, {name: 2}]", "mergingList: [{name: 2}]"),
        (
            "mergingIntList: [1, 2, 3]",
            "$deleteFromPrimitiveList/mergingIntList: [1, 3, 5]",
            "mergingIntList: [2]",
        ),
        (
            "retainKeysMap: {name: a, value: b}",
            "retainKeysMap: {$retainKeys: [name, other], other: c}",
            "retainKeysMap: {name: a, other: c}",
        ),
        // order: an element that is deleted makes room for a new one, which then counts as if it had been there
        (
            "mergingList: [{name: a}, {name: b}, {name: c}]",
            "{$setElementOrder/mergingList: [{name: d}], mergingList: [{name: a, $patch: delete}, {name: d}]}",
            "mergingList: [{name: b}, {name: c}, {name: d}]",
        ),
        (
            "mergingList: [{name: a}, {name: b}, {name: c}]",
            "{$setElementOrder/mergingList: [{name: d}], mergingList: [{name: d}]}",
            "mergingList: [{name: d}, {name: a}, {name: b}, {name: c}]",
        ),
        (
            "mergingList: [{name: a}, {name: b}]",
            "{$setElementOrder/mergingList: [{name: x}, {name: a}], mergingList: [{name: a, $patch: delete}, {name: x}, {name: a}]}",
            "mergingList: [{name: b}, {name: x}, {name: a}]",
        ),
        // an empty order names nothing: new elements come last, in reverse
        (
            "mergingList: [{name: a}, {name: b}]",
            "{$setElementOrder/mergingList: [], mergingList: [{name: p}, {name: q}]}",
            "mergingList: [{name: a}, {name: b}, {name: q}, {name: p}]",
        ),
        (
            "{}",
            "{$setElementOrder/mergingIntList: [], mergingIntList: [1, 2, 3]}",
            "mergingIntList: [3, 2, 1]",
        ),
        // repeated scalars: the last element takes the place of one that is removed
        ("mergingIntList: [1, 1, 2, 3]", "mergingIntList: []", "mergingIntList: [1, 3, 2]"),
        ("mergingIntList: [1, 1, 2, 3]", "mergingIntList: [4]", "mergingIntList: [4, 1, 2, 3]"),
        // a list of other elements than scalars is merged, or left alone
        ("mergingIntList: [1]", "$deleteFromPrimitiveList/mergingIntList: 1", "mergingIntList: [1]"),
        ("value: a", "$deleteFromPrimitiveList/value: b", "value: b"),
        (
            "mergingList: [{name: a}]",
            "$deleteFromPrimitiveList/mergingList: [{name: a, value: 1}]",
            "mergingList: [{name: a, value: 1}]",
        ),
        // order: elements only the server has keep their neighbours
        (
            "mergingIntList: [1, 4, 2, 3]",
            "{$setElementOrder/mergingIntList: [3, 1, 2], mergingIntList: [3]}",
            "mergingIntList: [4, 3, 1, 2]",
        ),
        (
            "mergingList: [{name: 1}, {name: 9}, {name: 2}]",
            "$setElementOrder/mergingList: [{name: 2}, {name: 1}]",
            "mergingList: [{name: 9}, {name: 2}, {name: 1}]",
        ),
        // replace strategy, and fields the schema does not know
        ("replacingItem: {a: 1}", "replacingItem: {b: 2}", "replacingItem: {b: 2}"),
        ("unknown: {a: 1, l: [1]}", "unknown: {b: 2, l: [2]}", "unknown: {a: 1, b: 2, l: [2]}"),
    ];
    for (original, patch, expected) in cases {
        let [original, patch, expected] =
            [original, patch, expected].map(|text| yaml::read(text).expect("YAML"));
        assert_eq!(strategic_merge_patch(&original, &patch, &schema), Ok(expected), "{patch}");
    }
}

#[test]
fn strategic_refusals() {
    let schema = merge_item(2);
    let cases = [
        ("{}", "[]", "invalid JSON document"),
        ("simpleMap: {}", "simpleMap: {$patch: nope}", "unknown patch type"),
        (
            "mergingList: [{name: 1}]",
            "mergingList: [{value: 1}]",
            "does not contain declared merge key: name",
        ),
        (
            "mergingList: [{name: 1}]",
            "mergingList: [{$patch: merge}]",
            "merging lists cannot yet be specified",
        ),
        ("mergingList: [{name: 1}]", "mergingList: [[1]]", "lists of lists are not supported"),
        ("mergingList: [{name: 1}]", "mergingList: [x]", "list element types are not identical"),
        ("{}", "{$retainKeys: x}", "invalid patch format of retainKeys"),
        ("{}", "{$retainKeys: [a], b: 1}", "invalid patch format of retainKeys"),
        ("{}", "{$setElementOrder/mergingIntList: x}", "expected a list, but received x"),
        ("{}", "{$setElementOrder/unheardOf: []}", "unable to find api field"),
        ("nonMergingList: [{name: 1}]", "$setElementOrder/nonMergingList: [{name: 1}]", "cannot be compared"),
        ("mergingIntList: [1]", "mergingIntList: [1.5]", "list element types are not identical"),
        ("mergingIntList: [null]", "mergingIntList: [null]", "is null"),
        (
            "mergingList: [{name: 1}]",
            "{$setElementOrder/mergingList: [{name: 1}], mergingList: [{name: 1}, {$patch: replace}]}",
            "doesn't match",
        ),
        ("{}", "{$retainKeys: [{}]}", "names no fields"),
        ("{}", "{$setElementOrder: []}", "invalid patch format of setElementOrder list"),
        ("{}", "{$deleteFromPrimitiveList: []}", "invalid patch format of primitive list"),
        (
            "mergingIntList: [1]",
            "{$setElementOrder/mergingIntList: [1], mergingIntList: [2]}",
            "doesn't match",
        ),
    ];
    for (original, patch, words) in cases {
        let [original, patch] = [original, patch].map(|text| yaml::read(text).expect("YAML"));
        let error = strategic_merge_patch(&original, &patch, &schema).expect_err(words);
        assert!(error.to_string().contains(words), "{patch}: {error}");
    }
}

/// Applies a patch of upstream's tables and compares.
fn check(name: &Value, what: &str, original: &Value, patch: &Value, expected: &Value) -> usize {
    let result = strategic_merge_patch(original, patch, &merge_item(4));
    assert_eq!(result.as_ref(), Ok(expected), "{name} {what}: {original} patched with {patch}");
    1
}

#[test]
fn upstream_strategic_tables() {
    let mut checked = 0;
    for file in ["TestCases", "strategicMergePatchRawTestCases"] {
        for case in cases(&format!("strategic/patch/TestStrategicMergePatch.{file}.json")) {
            let get = |field: &str| input(&case["inputs"], field);
            let has = |field: &str| case["inputs"].get(field).is_some();
            if has("TwoWay") {
                let expected = if has("TwoWayResult") { get("TwoWayResult") } else { get("Modified") };
                checked += check(&case["name"], "two-way", &get("Original"), &get("TwoWay"), &expected);
            }
            if has("ThreeWay") && case["expected"].get("Result").is_some() {
                let expected = input(&case["expected"], "Result");
                checked += check(&case["name"], "three-way", &get("Current"), &get("ThreeWay"), &expected);
            }
        }
    }
    for file in ["TestCases", "customStrategicMergePatchRawTestCases"] {
        for case in cases(&format!("strategic/patch/TestCustomStrategicMergePatch.{file}.json")) {
            let get = |field: &str| input(&case["inputs"], field);
            let (original, patch) = (get("Original"), get("TwoWay"));
            if let Some(words) = case["wantErr"].as_str() {
                let error = strategic_merge_patch(&original, &patch, &merge_item(4)).expect_err(words);
                assert!(error.to_string().contains(words), "{}: {error}", case["name"]);
                checked += 1;
            } else {
                checked += check(&case["name"], "custom", &original, &patch, &get("Modified"));
            }
        }
    }
    for case in cases("strategic/patch/TestReplaceWithRawExtension.replaceRawExtensionPatchTestCases.json") {
        let get = |field: &str| input(&case["inputs"], field);
        checked += check(&case["name"], "two-way", &get("Original"), &get("TwoWay"), &get("TwoWayResult"));
        checked += check(
            &case["name"],
            "three-way",
            &get("Current"),
            &get("ThreeWay"),
            &input(&case["expected"], "Result"),
        );
    }
    for case in cases("strategic/patch/TestNumberConversion.testcases.json") {
        let (patch, expected) =
            (input(&case["expected"], "ExpectedPatch"), input(&case["expected"], "ExpectedResult"));
        checked += check(&case["name"], "numbers", &input(&case["inputs"], "Old"), &patch, &expected);
    }
    assert!(checked > 100 || transom_testkit::tables::find("kubernetes").is_none(), "only {checked} checks");
}

#[test]
fn upstream_merge_tables() {
    for case in cases("json-merge/patch/TestCreateThreeWayJSONMergePatch.TestCases.json") {
        let get = |field: &str| input(&case["inputs"], field);
        let (original, modified, current) = (get("Original"), get("Modified"), get("Current"));
        let patch = three_way(&original, &modified, &current);
        assert_eq!(patch, get("ThreeWay"), "{}", case["name"]);
        assert_eq!(merge_patch(&current, &patch), Ok(input(&case["expected"], "Result")), "{}", case["name"]);
    }
}

#[test]
fn merge_patch_of_rfc_7386() {
    let cases = [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        (json!({}), json!({"a": [{"b": null}, null]}), json!({"a": [{}, null]})),
        (json!({"a": 1}), json!(["c"]), json!(["c"])),
    ];
    for (document, patch, expected) in cases {
        assert_eq!(merge_patch(&document, &patch), Ok(expected), "{patch}");
    }
    assert!(matches!(merge_patch(&json!({}), &json!(1)), Err(PatchError::Malformed(_))));
}

#[test]
fn json_patch_operations() {
    let document = json!({"a": {"b": [1, 2, 3]}, "x/y~z": 0, "n": null});
    let cases = [
        (json!([{"op": "add", "path": "/a/b/1", "value": 9}]), "/a/b", json!([1, 9, 2, 3])),
        (json!([{"op": "add", "path": "/a/b/-", "value": 9}]), "/a/b", json!([1, 2, 3, 9])),
        (json!([{"op": "add", "path": "/a/b/-1", "value": 9}]), "/a/b", json!([1, 2, 3, 9])),
        (json!([{"op": "add", "path": "/q", "value": {"r": 1}}]), "/q/r", json!(1)),
        (json!([{"op": "remove", "path": "/a/b/-1"}]), "/a/b", json!([1, 2])),
        (json!([{"op": "replace", "path": "/a/b/0", "value": 7}]), "/a/b", json!([7, 2, 3])),
        (json!([{"op": "replace", "path": "/new", "value": 7}]), "/new", json!(7)),
        (json!([{"op": "replace", "path": "", "value": {"z": 1}}]), "", json!({"z": 1})),
        (json!([{"op": "move", "from": "/a/b/0", "path": "/a/b/-"}]), "/a/b", json!([2, 3, 1])),
        (json!([{"op": "copy", "from": "/a/b", "path": "/c"}]), "/c", json!([1, 2, 3])),
        (json!([{"op": "test", "path": "/x~1y~0z", "value": 0}]), "/n", json!(null)),
        (json!([{"op": "test", "path": "/missing", "value": null}]), "/n", json!(null)),
    ];
    for (patch, pointer, expected) in cases {
        let patched = json_patch(&document, &patch).unwrap_or_else(|e| panic!("{patch}: {e}"));
        assert_eq!(patched.pointer(pointer), Some(&expected), "{patch}");
    }
}

#[test]
fn json_patch_refusals() {
    let document = json!({"a": {"b": [1]}, "s": "text"});
    let cases = [
        (
            json!([{"op": "add", "path": "/q/r", "value": 1}]),
            "add operation does not apply: doc is missing path: \"/q/r\": missing value",
        ),
        (
            json!([{"op": "add", "path": "/a/b/5", "value": 1}]),
            "error in add for path: '/a/b/5': Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            json!([{"op": "remove", "path": "/q"}]),
            "error in remove for path: '/q': Unable to remove nonexistent key: q: missing value",
        ),
        (
            json!([{"op": "remove", "path": "/s/t"}]),
            "remove operation does not apply: doc is missing path: \"/s/t\": missing value",
        ),
        (
            json!([{"op": "replace", "path": "/a/b/1", "value": 1}]),
            "replace operation does not apply: doc is missing key: /a/b/1: missing value",
        ),
        (json!([{"op": "test", "path": "/s", "value": 1}]), "testing value /s failed: test failed"),
        (json!([{"op": "dance", "path": "/s"}]), "Unexpected kind: dance"),
        (
            json!([{"op": "move", "path": "/s"}]),
            "move operation failed to decode from: operation, missing from field: missing value",
        ),
        (json!([{"op": "add", "value": 1}]), "add operation failed to decode path: missing value"),
    ];
    for (patch, words) in cases {
        assert_eq!(json_patch(&document, &patch), Err(PatchError::Inapplicable(words.to_owned())), "{patch}");
    }
    assert!(matches!(json_patch(&document, &json!({})), Err(PatchError::Malformed(_))));
    // Doubling: thirty copies of everything into itself would be a billion elements.
    let double = Value::from(vec![json!({"op": "copy", "from": "/a", "path": "/a/b/-"}); 30]);
    let error = json_patch(&document, &double).expect_err("too much").to_string();
    assert!(error.contains("exceeding the limit"), "{error}");
}

#[test]
fn a_json_patch_has_at_most_10_000_operations() {
    let document = json!({"s": "text"});
    let tests = |count| Value::from(vec![json!({"op": "test", "path": "/s", "value": "text"}); count]);
    assert_eq!(MAX_OPERATIONS, 10_000);
    assert_eq!(json_patch(&document, &tests(MAX_OPERATIONS)), Ok(document.clone()));
    assert!(matches!(json_patch(&document, &tests(MAX_OPERATIONS + 1)), Err(PatchError::TooLarge(_))));
}

/// Ten thousand elements on both sides take no quadratic time.
#[test]
fn long_lists_merge_quickly() {
    let list = |from: usize| (from..from + 20_000).map(|i| json!({"name": i})).collect::<Vec<_>>();
    let scalars = |from: usize| Value::from((from..from + 20_000).collect::<Vec<_>>());
    let original = json!({"mergingList": list(0), "mergingIntList": scalars(0)});
    let patch = json!({"mergingList": list(10_000), "mergingIntList": scalars(10_000)});
    let started = std::time::Instant::now();
    let merged = strategic_merge_patch(&original, &patch, &merge_item(1)).expect("merges");
    assert_eq!(merged["mergingList"].as_array().map(Vec::len), Some(30_000));
    assert_eq!(merged["mergingIntList"].as_array().map(Vec::len), Some(30_000));
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

fn objects() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..5i64).prop_map(Value::from)];
    let values = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-d]", values, 0..4)
        .prop_map(|m| Value::Object(m.into_iter().collect::<Map<_, _>>()))
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().any(has_null),
        Value::Array(items) => items.iter().any(has_null),
        _ => false,
    }
}

fn null_in_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => has_null(value),
        Value::Object(map) => map.values().any(null_in_list),
        _ => false,
    }
}

proptest! {
    /// But for nulls inside lists: a list that takes an object's place keeps them, one that takes a list's does not.
    #[test]
    fn a_merge_patch_applied_twice_is_applied_once(
        document in objects(), patch in objects().prop_filter("nulls in lists", |v| !null_in_list(v)),
    ) {
        let once = merge_patch(&document, &patch).expect("objects");
        prop_assert_eq!(merge_patch(&once, &patch), Ok(once));
    }

    #[test]
    fn merging_nothing_or_itself_changes_nothing(document in objects().prop_filter("nulls", |v| !has_null(v))) {
        prop_assert_eq!(merge_patch(&document, &json!({})), Ok(document.clone()));
        prop_assert_eq!(merge_patch(&document, &document), Ok(document.clone()));
        prop_assert_eq!(merge_patch(&json!({}), &document), Ok(document));
    }

    /// A three-way patch computed against what was last applied brings the object to what is wanted now.
    #[test]
    fn three_way_reaches_the_modified_object(
        original in objects().prop_filter("nulls", |v| !has_null(v)),
        modified in objects().prop_filter("nulls", |v| !has_null(v)),
    ) {
        let patch = three_way(&original, &modified, &original);
        prop_assert_eq!(merge_patch(&original, &patch), Ok(modified));
    }

    /// Without merge strategies and directives a strategic patch is a merge patch, but for nulls in lists.
    #[test]
    fn a_strategic_patch_without_schema_is_a_merge_patch(
        document in objects(), patch in objects().prop_filter("nulls in lists", |v| !v.to_string().contains('[')),
    ) {
        let strategic = strategic_merge_patch(&document, &patch, &Schema::default());
        prop_assert_eq!(strategic, merge_patch(&document, &patch));
    }

    #[test]
    fn any_json_patch_gives_a_value_or_an_error(
        document in objects(), from in "(/[a-d0-2-]){0,3}", path in "(/[a-d0-2-]){0,3}",
        op in "add|remove|replace|move|copy|test", value in objects(),
    ) {
        let patch = json!([{"op": op, "path": path, "from": from, "value": value}]);
        if let Err(error) = json_patch(&document, &patch) {
            prop_assert!(matches!(error, PatchError::Inapplicable(_)));
        }
    }
}
