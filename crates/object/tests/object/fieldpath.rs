//! Field paths: tables of our own, upstream's tables when the conformance data lies beside the repository,
//! laws and hostile input.

use proptest::prelude::*;
use serde_json::{Value, json};
use transom_object::fieldpath::{
    Error, MAX_INDEX, MergeOptions, Segment, delete, expand, format, get, get_bool, get_integer, get_string,
    get_string_array, get_string_object, merge, parse, set,
};

fn field(name: &str) -> Segment {
    Segment::Field(name.to_owned())
}

#[test]
fn paths_parse() {
    let cases = [
        ("", vec![]),
        ("spec", vec![field("spec")]),
        ("a.0", vec![field("a"), field("0")]),
        ("a[0]b", vec![field("a"), Segment::Index(0), field("b")]),
        ("a[00][01]", vec![field("a"), Segment::Index(0), Segment::Index(1)]),
        ("[a.b/c]", vec![field("a.b/c")]),
        ("a['b.c'].\"d\"", vec![field("a"), field("b.c"), field("d")]),
        ("a['x'y'][''].z", vec![field("a"), field("x'y"), field(""), field("z")]),
        ("a[-1][+1][ 0 ]['0']", vec![field("a"), field("-1"), field("+1"), field(" 0 "), field("0")]),
        ("l[*].*", vec![field("l"), field("*"), field("*")]),
        ("größe[1].é", vec![field("größe"), Segment::Index(1), field("é")]),
    ];
    for (path, segments) in cases {
        assert_eq!(parse(path), Ok(segments), "{path}");
    }
    let refusals = [
        (".a", "unexpected '.' at position 0"),
        ("a..b", "unexpected '.' at position 2"),
        ("a.", "unexpected '.' at position 1"),
        ("a[0].", "unexpected '.' at position 4"),
        ("a.[0]", "unexpected '[' at position 2"),
        ("a[]", "unexpected ']' at position 2"),
        ("a[b[c]]", "unexpected '[' at position 3"),
        ("a[b", "unterminated '[' at position 1"),
        ("a]", "unexpected ']' at position 1"),
        ("a.]", "unexpected ']' at position 2"),
    ];
    for (path, words) in refusals {
        assert_eq!(parse(path).map_err(|e| e.to_string()), Err(words.to_owned()), "{path}");
    }
    assert_eq!(format(&parse("a[b.c][*][0].d").expect("valid")), "a[b.c][*][0].d");
}

#[test]
fn lookups_say_what_is_missing() {
    let root = json!({"o": {"n": null, "s": "x"}, "l": [1, [2]], "f": 5.5});
    assert_eq!(get(&root, "l[1][0]"), Ok(&json!(2)));
    assert_eq!(get(&root, "o.n"), Ok(&Value::Null));
    assert_eq!(get(&root, ""), Ok(&Value::Null));
    let cases = [
        ("q", "q: no such field", true),
        ("l[7]", "l[7]: no such element", true),
        ("o.n.x", "o.n: expected map, got nil", true),
        ("o.n[0]", "o.n: not an array", false),
        ("o.s.x", "o.s: not an object", false),
        ("o[0]", "o: not an array", false),
        ("l[*]", "l: not an object", false),
        ("o[*]", "o[*]: no such field", true),
        ("a[", "cannot parse path \"a[\": unterminated '[' at position 1", false),
    ];
    for (path, words, missing) in cases {
        let error = get(&root, path).expect_err(path);
        assert_eq!((error.to_string().as_str(), error.is_not_found()), (words, missing), "{path}");
    }
    assert_eq!(get(&Value::Null, "a").map_err(|e| e.is_not_found()), Err(true));
    assert_eq!(get_integer(&root, "f").map_err(|e| e.to_string()), Err("f: not a (int64) number".to_owned()));
    assert_eq!(get_bool(&root, "f").map_err(|e| e.to_string()), Err("f: not a bool".to_owned()));
    assert_eq!(get_string(&root, "f").map_err(|e| e.to_string()), Err("f: not a string".to_owned()));
    assert_eq!(
        get_string_array(&root, "l").map_err(|e| e.to_string()),
        Err("l: not an array of strings".to_owned())
    );
}

#[test]
fn setting_makes_what_is_missing() {
    let cases = [
        (json!({}), "a.b[1].c", Ok(json!({"a": {"b": [null, {"c": 9}]}}))),
        (json!({"a": [null]}), "a[0].b", Ok(json!({"a": [{"b": 9}]}))),
        (json!({"a": [1]}), "a[2]", Ok(json!({"a": [1, null, 9]}))),
        (json!({"a": null}), "a.b", Err("a is not an object")),
        (json!({"a": null}), "a[0]", Err("a is not an array")),
        (json!({"a": 1}), "a.b", Err("a is not an object")),
        (json!({"a": {}}), "a[0].b", Err("a is not an array")),
        (json!({}), "[0]", Err(" is not an array")),
        (json!({"a": 1}), "", Ok(json!({"a": 1}))),
        (json!({}), "a[1024]", Ok(json!({"a": ([vec![Value::Null; 1024], vec![json!(9)]].concat())}))),
        (json!({}), "a[1025]", Err("index 1025 is greater than max allowed index 1024")),
    ];
    for (mut root, path, expected) in cases {
        let result = set(&mut root, path, json!(9)).map(|()| root).map_err(|e| e.to_string());
        assert_eq!(result, expected.map_err(str::to_owned), "{path}");
    }
    let mut root = json!({});
    assert!(set(&mut root, &"a.".repeat(10_000), json!(1)).is_err());
    assert!(set(&mut root, &vec!["a"; 10_000].join("."), json!(1)).is_err());
    assert_eq!(MAX_INDEX, 1024);
}

#[test]
fn wildcards_expand() {
    let root =
        json!({"l": [{"x": 1}, {}, {"x": 2}], "o": {"b": {"y": 1}, "a": {}}, "n": null, "s": "x", "e": []});
    let cases: [(&str, Result<Vec<&str>, &str>); 9] = [
        ("l[*].x", Ok(vec!["l[0].x", "l[2].x"])),
        ("o.*.y", Ok(vec!["o.b.y"])),
        ("o[*]", Ok(vec!["o.a", "o.b"])),
        ("l[*].new", Ok(vec![])),
        ("q[*]", Ok(vec![])),
        ("e[*]", Ok(vec![])),
        ("s", Ok(vec!["s"])),
        (
            "n[*]",
            Err(
                "cannot expand wildcards for segments: \"n[*]\": wildcard field \"n\" is not found in the path",
            ),
        ),
        ("s[*]", Err("cannot expand wildcards for segments: \"s[*]\": \"s\": unexpected wildcard usage")),
    ];
    for (path, expected) in cases {
        let expected =
            expected.map(|p| p.into_iter().map(str::to_owned).collect::<Vec<_>>()).map_err(str::to_owned);
        assert_eq!(expand(&root, path).map_err(|e| e.to_string()), expected, "{path}");
    }
    assert!(expand(&json!({"*": 1}), "[*]").is_ok_and(|paths| paths.is_empty()));
}

#[test]
fn merging_follows_the_options() {
    let old = json!({"a": {"k": 1, "z": 0, "l": [1], "o": {"x": 1}}});
    let new = json!({"k": 2, "z": 3, "l": [1, 2], "o": {"y": 2}, "n": 4});
    let options = |keep_map_values, append_slice| Some(MergeOptions { keep_map_values, append_slice });
    let cases = [
        (None, new.clone()),
        (options(false, false), json!({"k": 2, "z": 3, "l": [1, 2], "o": {"x": 1, "y": 2}, "n": 4})),
        (options(true, false), json!({"k": 1, "z": 3, "l": [1], "o": {"x": 1, "y": 2}, "n": 4})),
        (options(false, true), json!({"k": 2, "z": 3, "l": [1, 1, 2], "o": {"x": 1, "y": 2}, "n": 4})),
        (options(true, true), json!({"k": 1, "z": 3, "l": [1, 1, 2], "o": {"x": 1, "y": 2}, "n": 4})),
    ];
    for (options, expected) in cases {
        let mut root = old.clone();
        merge(&mut root, "a", new.clone(), options).expect("merges");
        assert_eq!(root["a"], expected, "{options:?}");
    }
    let mut root = json!({"l": [1, 2], "s": "x"});
    merge(&mut root, "l", json!([2, 3, 3]), options(false, true)).expect("appends");
    assert_eq!(root["l"], json!([1, 2, 3, 3]), "what is there already is not appended");
    let error = merge(&mut root, "s", json!([1]), options(false, true)).expect_err("a list and a string");
    assert_eq!(
        error.to_string(),
        "failed to merge values: cannot append two slices with different type ([]interface {}, string)"
    );
}

/// The outcome of a case as upstream writes it: a value, or the text of the error.
fn outcome(result: Result<Value, Error>) -> (Option<Value>, Option<String>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error.to_string())),
    }
}

fn segments_as_go(segments: &[Segment]) -> Value {
    let one = |segment: &Segment| match segment {
        Segment::Field(name) if name.is_empty() => json!({"Type": 1}),
        Segment::Field(name) => json!({"Field": name, "Type": 1}),
        Segment::Index(0) => json!({"Type": 2}),
        Segment::Index(index) => json!({"Index": index, "Type": 2}),
    };
    segments.iter().map(one).collect()
}

fn segments_from_go(segments: &Value) -> Vec<Segment> {
    let one = |segment: &Value| match segment["Type"].as_i64() {
        Some(2) => {
            Segment::Index(usize::try_from(segment["Index"].as_u64().unwrap_or_default()).expect("an index"))
        }
        _ => field(segment["Field"].as_str().unwrap_or_default()),
    };
    segments.as_array().into_iter().flatten().map(one).collect()
}

/// The changed object. Upstream also says what the object is after a failure.
fn unharmed(result: Result<(), Error>, root: Value, expected: &Value) -> Result<Value, Error> {
    if result.is_err() && !root.is_null() {
        assert_eq!(&root, expected);
    }
    result.map(|()| root)
}

/// Runs a case and gives the answer in the shape of `expected`, or the error.
fn replay(table: &str, case: &Value) -> Option<(Value, Result<Value, Error>)> {
    let inputs = &case["inputs"];
    let path = inputs["path"].as_str().unwrap_or_default();
    let text = inputs["data"].as_str().unwrap_or("null");
    let mut root: Value = serde_json::from_str(text).expect("data");
    let expected = &case["expected"];
    let value = |result: Result<Value, Error>| Some((expected["value"].clone(), result));
    match table {
        "TestFieldOrIndex" => {
            let segment = Segment::field_or_index(inputs["s"].as_str().unwrap_or_default());
            Some((json!([expected]), Ok(segments_as_go(&[segment]))))
        }
        "TestParse" => Some((expected["s"].clone(), parse(path).map(|s| segments_as_go(&s)))),
        "TestSegments" => {
            Some((expected["want"].clone(), Ok(format(&segments_from_go(&inputs["s"])).into())))
        }
        "TestMergeValue" => {
            let mut root = inputs["fields"]["object"].clone();
            let flag = |name: &str| inputs["mo"][name].as_bool().unwrap_or_default();
            let options = inputs.get("mo").map(|_| MergeOptions {
                keep_map_values: flag("keepMapValues"),
                append_slice: flag("appendSlice"),
            });
            let serialized = expected["serialized"].as_str().unwrap_or("null");
            let result = merge(&mut root, path, inputs["value"].clone(), options).map(|()| root);
            Some((serde_json::from_str(serialized).expect("serialized"), result))
        }
        "TestDeleteField" => {
            let result = delete(&mut root, path);
            Some((expected["object"].clone(), unharmed(result, root, &expected["object"])))
        }
        "TestSetValue" => {
            let result = set(&mut root, path, inputs["value"].clone());
            Some((expected["object"].clone(), unharmed(result, root, &expected["object"])))
        }
        "TestExpandWildcards" => {
            let mut wanted: Vec<String> =
                serde_json::from_value(expected["expanded"].clone()).unwrap_or_default();
            wanted.sort();
            let found = expand(&root, path).map(|mut found| {
                found.sort();
                found.into()
            });
            Some((wanted.into(), found))
        }
        "TestGetValue" => value(get(&root, path).cloned()),
        "TestGetValueInto" => Some((expected["out"].clone(), get(&root, path).cloned())),
        "TestGetString" => value(get_string(&root, path).map(Value::from)),
        "TestGetBool" => value(get_bool(&root, path).map(Value::from)),
        "TestGetInteger" => value(get_integer(&root, path).map(Value::from)),
        "TestGetStringArray" => value(get_string_array(&root, path).map(Value::from)),
        "TestGetStringObject" => value(
            get_string_object(&root, path).map(|m| m.into_iter().map(|(k, v)| (k, Value::from(v))).collect()),
        ),
        // Rows are errors of the test's own making; `lookups_say_what_is_missing` covers the distinction.
        "TestIsNotFound" => None,
        other => unreachable!("no replay for {other}"),
    }
}

#[test]
fn upstream_tables() {
    let Some(root) = transom_testkit::tables::find("fieldpath") else { return };
    for folder in ["fieldpath", "merge", "paved"] {
        for file in std::fs::read_dir(root.join(folder)).expect("a folder of tables") {
            let text = std::fs::read_to_string(file.expect("an entry").path()).expect("a table");
            let table: Value = serde_json::from_str(&text).expect("JSON");
            let name = table["table"].as_str().expect("a name");
            for case in table["cases"].as_array().expect("cases") {
                let Some((expected, result)) = replay(name, case) else { continue };
                let (value, error) = outcome(result);
                assert_eq!(error.as_deref(), case["wantErr"]["$error"].as_str(), "{name} {case}");
                if let Some(value) = value {
                    assert_eq!(value, expected, "{name} {case}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_parses_or_is_refused(path in "[a.\\[\\]*'\"0-9é]{0,12}") {
        if let Ok(segments) = parse(&path) {
            prop_assert!(segments.len() <= path.len());
        }
    }

    /// Names without brackets and edge quotes survive the way through text.
    #[test]
    fn parse_undoes_format(names in prop::collection::vec("[a-z][a-z./ -]{0,5}", 1..5), index in 0..2000usize) {
        let mut segments: Vec<Segment> = names.iter().map(|name| field(name)).collect();
        segments.push(Segment::Index(index));
        prop_assert_eq!(parse(&format(&segments)), Ok(segments));
    }

    #[test]
    fn what_is_set_can_be_got_and_deleted(path in "[ab](\\.[ab]|\\[[0-3]\\]){0,4}", value in any::<i64>()) {
        let mut root = json!({});
        set(&mut root, &path, json!(value)).expect("an empty object takes any path");
        prop_assert_eq!(get(&root, &path), Ok(&json!(value)));
        let expanded = expand(&root, &path);
        prop_assert_eq!(expanded, Ok(vec![path.clone()]));
        delete(&mut root, &path).expect("it is there");
        prop_assert!(get(&root, &path).is_err());
    }
}
