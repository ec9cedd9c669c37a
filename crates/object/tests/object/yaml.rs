//! YAML: what Kubernetes' library answered for inputs of ours (recorded in `fixtures`), positions, laws
//! and hostile input.

use proptest::prelude::*;
use serde_json::{Value, json};
use transom_object::json::{MAX_DEPTH, decode};
use transom_object::yaml::{Position, read, read_documents, write};

fn lines(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("fixture");
    text.lines().map(|line| decode(line.as_bytes()).expect("a JSON line").value).collect()
}

#[test]
fn reads_what_upstream_reads() {
    for case in lines("yaml-read.jsonl") {
        let text = case["text"].as_str().expect("text");
        match case.get("error") {
            Some(error) => assert!(read(text).is_err(), "{text:?} should fail: {error}"),
            None => assert_eq!(read(text).as_ref(), Ok(&case["value"]), "{text:?}"),
        }
    }
}

#[test]
fn writes_what_upstream_writes() {
    for case in lines("yaml-write.jsonl") {
        let text = write(&case["value"]);
        assert_eq!(text, case["text"].as_str().expect("text"));
        assert_eq!(read(&text).as_ref(), Ok(&case["value"]), "{text:?}");
    }
}

#[test]
fn further_lines_of_quotes_and_brackets_may_be_anywhere() {
    for (text, value) in [
        ("a:\n  b: [\n1,\n2\n]\n  c: d\n", json!({"a": {"b": [1, 2], "c": "d"}})),
        ("a:\n  b: {\n\"x\": \"y\",\n  # c\n}\n", json!({"a": {"b": {"x": "y"}}})),
        ("a:\n  b: \"x\n  y\n\n  z\"\n", json!({"a": {"b": "x y\nz"}})),
        ("- a: 'x\n y'\n- |\n  [\n", json!([{"a": "x y"}, "[\n"])),
    ] {
        assert_eq!(read(text), Ok(value.clone()), "{text:?}");
        let documents = read_documents(text).unwrap_or_default();
        assert_eq!(
            documents.into_iter().map(|document| document.value).collect::<Vec<_>>(),
            [value],
            "{text:?}"
        );
    }
    let error = read("a:\n  b: [\n1,\n@]\n").expect_err("no YAML");
    assert_eq!((error.line, error.column), (4, 1), "{error}");
}

#[test]
fn scalars_of_yaml_1_1() {
    let cases = [
        ("yes", json!(true)),
        ("Off", json!(false)),
        ("y", json!(true)),
        ("yEs", json!("yEs")),
        ("~", json!(null)),
        ("", json!(null)),
        ("0644", json!(420)),
        ("0o17", json!(15)),
        ("08", json!(8)),
        ("0x1F", json!(31)),
        ("-0b11", json!(-3)),
        ("1_000", json!(1000)),
        ("1.0", json!(1)),
        ("1e3", json!(1000)),
        (".5", json!(0.5)),
        ("1e400", json!("1e400")),
        ("1:30", json!("1:30")),
        ("2001-01-01", json!("2001-01-01")),
        ("18446744073709551615", json!(18_446_744_073_709_551_615f64)),
        ("'yes'", json!("yes")),
        ("!!str 1", json!("1")),
        ("!!int '1'", json!(1)),
        ("! 1", json!("1")),
        ("!!binary aGk=", json!("hi")),
    ];
    for (text, value) in cases {
        assert_eq!(read(text).as_ref(), Ok(&value), "{text}");
    }
    assert_eq!(read("y: 1\n1: 2\n1.5: 3\nno: 4"), Ok(json!({"true": 1, "1": 2, "1.5": 3, "false": 4})));
}

#[test]
fn refusals_are_placed() {
    let cases = [
        ("a: .inf", "unsupported value: .inf", 1, 4),
        ("a:\n  - .nan", "unsupported value: .nan", 2, 5),
        ("~: 1", "unsupported map key of type: null", 1, 1),
        ("? [a]\n: 1", "invalid map key: only scalars can be keys", 1, 3),
        ("a: !!int x", "cannot decode !!str `x` as a !!int", 1, 4),
        ("<<: 1", "map merge requires map or sequence of maps as the value", 1, 5),
        ("a: !!binary '?'", "!!binary value contains invalid base64 data", 1, 4),
        ("a: \u{7}", "control characters are not allowed", 1, 4),
    ];
    for (text, message, line, column) in cases {
        let error = read(text).expect_err(text);
        assert_eq!((error.message.as_str(), error.line, error.column), (message, line, column), "{text}");
    }
    assert_eq!(read("a: 1\n- b").expect_err("a sequence in a mapping").line, 2);
    let recursive = read("a: &x [*x]").expect_err("self reference");
    assert!(recursive.message.contains("contains the alias itself"), "{recursive}");
}

#[test]
fn merge_keys_and_anchors() {
    let text = "base: &b {k: 1, l: 2}\nother: &o {l: 3, m: 4}\none: {k: 0, <<: *b, l: 9}\nmany: {<<: [*b, *o]}\n*q : 1";
    assert!(read(text).is_err(), "an unknown anchor");
    let value = read(text.trim_end_matches("\n*q : 1")).expect("valid");
    // What precedes the merge key is overridden by it, what follows is not.
    assert_eq!(value["one"], json!({"k": 1, "l": 9}));
    assert_eq!(value["many"], json!({"k": 1, "l": 2, "m": 4}));
    assert_eq!(read("a: &k key\n*k : 1"), Ok(json!({"a": "key", "key": 1})));
    assert!(read_documents("a: &x 1\n---\nb: *x").is_err(), "anchors end with their document");
}

#[test]
fn documents_have_positions_and_report_repeated_keys() {
    let text = "# nothing yet\n---\nspec:\n  a: 1\n  list:\n  - x: 1\n    x: 2\n  - y\n  a: 2\n---\n---\nref: &r {k: 1}\nuse: *r\n\"a/b~c\": 1\n";
    let documents = read_documents(text).expect("valid");
    assert_eq!(documents.len(), 2);
    assert_eq!(documents[0].line, 3);
    assert_eq!(documents[0].duplicates, ["spec.list[0].x", "spec.a"]);
    let at = |d: usize, p: &str| documents[d].span_of(p).map(|Position { line, column }| (line, column));
    assert_eq!(at(0, ""), Some((3, 1)));
    assert_eq!(at(0, "/spec/list/0/x"), Some((7, 5)));
    assert_eq!(at(0, "/spec/list/1"), Some((8, 5)));
    assert_eq!(at(0, "/spec/nope"), None);
    assert_eq!(documents[0].span_of_field("spec.list[0].x"), documents[0].span_of("/spec/list/0/x"));
    assert_eq!(documents[1].span_of_field("[a/b~c]"), documents[1].span_of("/a~1b~0c"));
    assert_eq!(documents[0].span_of_field("spec["), None);
    assert_eq!(at(1, "/use/k"), Some((13, 1)));
    assert_eq!(at(1, "/a~1b~0c"), Some((14, 1)));
    assert_eq!(read("a: 1\n---\nb: 2"), Ok(json!({"a": 1})), "the first document alone");
    assert_eq!(read("{\n\t\"a\": \"\\/\"\n}"), Ok(json!({"a": "/"})), "JSON that is no YAML");
    assert_eq!(read_documents("{\"a\":1}{\"b\":2}").expect("JSON").len(), 2);
}

#[test]
fn hostile_input_is_refused_quickly() {
    for n in [MAX_DEPTH + 1, 10_000] {
        for text in ["[".repeat(n), "- ".repeat(n), "{a: ".repeat(n), "? ".repeat(n)] {
            assert!(read(&text).is_err());
        }
        let steps: String = (0..n).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
        assert!(read(&steps).expect_err("too deep").message.contains("depth"));
    }
    // Laughs: every line multiplies by ten.
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..12 {
        let items = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb.push_str(&format!("a{i}: &a{i} [{items}]\n"));
    }
    assert_eq!(read(&bomb).expect_err("bomb").message, "document contains excessive aliasing");
    // One long text, many times.
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(100_000), vec!["*a"; 1000].join(", "));
    assert_eq!(read(&long).expect_err("long").message, "document contains excessive aliasing");
    // A tower of aliases would be deeper than any text is.
    let mut tower = "a0: &a0 []\n".to_owned();
    for i in 1..2000 {
        tower.push_str(&format!("a{i}: &a{i} [*a{}]\n", i - 1));
    }
    assert_eq!(read(&tower).expect_err("tower").message, "exceeded max depth");
}

/// Upstream's table, when the conformance data lies beside the repository; `yaml_differences.txt` names the
/// cases in which we deliberately answer otherwise.
#[test]
fn upstream_table() {
    let known: Vec<&str> =
        include_str!("../yaml_differences.txt").lines().filter_map(|line| line.split('\t').next()).collect();
    let table = "kubernetes/yaml/decoder/TestYAMLOrJSONDecoder.testCases.json";
    for case in transom_testkit::tables::cases(table) {
        let result = read_documents(case["inputs"]["input"].as_str().unwrap_or_default());
        let values = result.map(|documents| documents.into_iter().map(|d| d.value).collect::<Vec<Value>>());
        let passes = match &values {
            Ok(values) => {
                case["wantErr"].is_null()
                    && *values == case["expected"]["out"].as_array().cloned().unwrap_or_default()
            }
            Err(_) => !case["wantErr"].is_null(),
        };
        let name = case["name"].as_str().unwrap_or_default();
        assert_eq!(passes, !known.contains(&name), "{case} {values:?}");
    }
}

fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![any::<String>(), "[yn0-9:. #'-]{0,6}", "([a-z ]{0,30}\n){0,4}", "[a-z ]{60,200}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e15..1e15f64).prop_map(|f| Value::from(f + 0.5)),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..4)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn read_undoes_write(value in values()) {
        let text = write(&value);
        // Integral floats become integers, by rule.
        let canonical = decode(&transom_object::json::encode(&value)).expect("our own text").value;
        prop_assert_eq!(read(&text), Ok(canonical), "{}", text);
    }

    #[test]
    fn any_text_gives_a_value_or_an_error(text in "[-a:? \n#&*!|>'\"%@{}\\[\\],0<]{0,40}") {
        let first = read(&text);
        if let Ok(documents) = read_documents(&text)
            && let Some(document) = documents.first()
            && first.as_ref().is_ok_and(|value| !value.is_null())
        {
            prop_assert_eq!(Ok(&document.value), first.as_ref());
        }
    }
}
