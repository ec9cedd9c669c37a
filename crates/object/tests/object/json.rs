//! JSON: Go's rules by table, the upstream table when it is at hand, laws and hostile input.

use proptest::prelude::*;
use serde_json::{Value, json};
use transom_object::json::{MAX_DEPTH, MAX_DUPLICATES, decode, encode, encode_escaped};

fn round_trip(text: &str) -> Result<String, String> {
    let decoded = decode(text.as_bytes()).map_err(|e| e.message)?;
    Ok(String::from_utf8(encode(&decoded.value)).expect("UTF-8"))
}

#[test]
fn numbers_follow_go() {
    let cases = [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0", "-0"),
        ("1.0", "1"),
        ("1e3", "1000"),
        ("-2.50", "-2.5"),
        ("1E-7", "1e-7"),
        ("0.000001", "0.000001"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854776000"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-9223372036854775809", "-9223372036854776000"),
        ("4611686018427387904.0", "4611686018427388000"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("5e-324", "5e-324"),
        ("1e-400", "0"),
    ];
    for (input, output) in cases {
        assert_eq!(round_trip(input).as_deref(), Ok(output), "{input}");
    }
    assert!(decode(b"1.0").expect("valid").value.is_i64());
    assert!(decode(b"9223372036854775808").expect("valid").value.is_f64());
    assert!(round_trip("1e309").expect_err("out of range").contains("out of the range"));
}

#[test]
fn faults_are_worded_and_placed() {
    let cases = [
        ("", "unexpected end of JSON input", 1, 1),
        ("x", "invalid character 'x' looking for beginning of value", 1, 1),
        ("{\n  \"a\" 1}", "invalid character '1' after object key", 2, 7),
        ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair", 1, 8),
        ("[1 2]", "invalid character '2' after array element", 1, 4),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string", 1, 2),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string", 1, 8),
        ("[1,]", "invalid character ']' looking for beginning of value", 1, 4),
        ("tru", "unexpected end of JSON input", 1, 4),
        ("nul1", "invalid character '1' in literal null (expecting 'l')", 1, 4),
        ("01", "invalid character '1' after top-level value", 1, 2),
        ("1.", "unexpected end of JSON input", 1, 3),
        ("-a", "invalid character 'a' in numeric literal", 1, 2),
        ("1ex", "invalid character 'x' in exponent of numeric literal", 1, 3),
        ("\"a\nb\"", "invalid character '\\n' in string literal", 1, 3),
        ("\"\\q\"", "invalid character 'q' in string escape code", 1, 3),
        ("\"\\u00g0\"", "invalid character 'g' in \\u hexadecimal character escape", 1, 6),
        ("{} {}", "invalid character '{' after top-level value", 1, 4),
    ];
    for (input, message, line, column) in cases {
        let error = decode(input.as_bytes()).expect_err(input);
        assert_eq!((error.message.as_str(), error.line, error.column), (message, line, column), "{input}");
    }
}

#[test]
fn repeated_fields_are_reported_and_the_last_wins() {
    let decoded = decode(br#"{"spec":{"a":1,"a":{"b":1,"b":2},"l":[{"x":1},{"x":1,"x":2,"x":3}]},"spec":0}"#)
        .expect("valid");
    assert_eq!(decoded.value, json!({"spec": 0}));
    assert_eq!(decoded.duplicates, ["spec.a.b", "spec.a", "spec.l[1].x", "spec"]);
    let nested = decode(br#"[[{"a":1,"a":2}]]"#).expect("valid");
    assert_eq!(nested.duplicates, ["[0][0].a"]);
    let many =
        format!("{{{}}}", (0..1000).map(|i| format!("\"k{i}\":1,\"k{i}\":2")).collect::<Vec<_>>().join(","));
    assert_eq!(decode(many.as_bytes()).expect("valid").duplicates.len(), MAX_DUPLICATES);
}

#[test]
fn strings_are_read_as_go_reads_them() {
    let cases: [(&[u8], &str); 7] = [
        (b"\"a\xffb\"", "a\u{fffd}b"),
        (b"\"\xed\xa0\x80\"", "\u{fffd}\u{fffd}\u{fffd}"),
        (br#""\ud83d\ude00""#, "😀"),
        (br#""\ud83dx""#, "\u{fffd}x"),
        (br#""\ud83d\u0041""#, "\u{fffd}A"),
        (br#""\ude00""#, "\u{fffd}"),
        (br#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
    ];
    for (input, output) in cases {
        assert_eq!(decode(input).expect("valid").value, json!(output));
    }
    assert_eq!(encode(&json!("<\u{2028}\u{1}\n\"é&")), "\"<\\u2028\\u0001\\n\\\"é&\"".as_bytes());
    assert_eq!(encode_escaped(&json!({"a<b": "&"})), r#"{"a\u003cb":"\u0026"}"#);
}

#[test]
fn nesting_is_limited() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nest = |n: usize| format!("{}0{}", open.repeat(n), close.repeat(n));
        assert!(decode(nest(MAX_DEPTH).as_bytes()).is_ok());
        for n in [MAX_DEPTH + 1, 10_000, 1_000_000] {
            assert_eq!(decode(nest(n).as_bytes()).expect_err("too deep").message, "exceeded max depth");
        }
    }
}

/// Upstream's table, when the conformance data lies beside the repository.
#[test]
fn upstream_table() {
    for case in transom_testkit::tables::cases("kubernetes/json/json/TestEvaluateTypes.testCases.json") {
        let input = case["inputs"]["In"].as_str().unwrap_or_default();
        match case["expected"]["Out"].as_str() {
            Some(expected) => assert_eq!(round_trip(input).as_deref(), Ok(expected), "{}", case["name"]),
            None => assert!(decode(input.as_bytes()).is_err(), "{} {input}", case["name"]),
        }
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Minus zero is the one float that Go itself reads back as something else (`-0` is an integer).
        any::<f64>().prop_map(|f| Value::from(f + 0.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    /// One round brings a value into canonical form; from then on decode ∘ encode is the identity.
    #[test]
    fn canonical_form_is_a_fixed_point(value in values()) {
        let first = encode(&value);
        let decoded = decode(&first).expect("our own text");
        prop_assert!(decoded.duplicates.is_empty());
        prop_assert_eq!(&encode(&decoded.value), &first);
        prop_assert_eq!(decode(&encode(&decoded.value)).expect("our own text").value, decoded.value);
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Err(error) = decode(&bytes) {
            prop_assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty());
        }
    }

    /// Where both accept, we read what serde_json reads (it differs by design on numbers only).
    #[test]
    fn agrees_with_serde_json(text in r#"[\[\]{}:,"\\a-c0-9. \n]{0,24}"#) {
        let ours = decode(text.as_bytes());
        let theirs = serde_json::from_str::<Value>(&text);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours, theirs);
    }
}
