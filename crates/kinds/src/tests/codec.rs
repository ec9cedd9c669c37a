//! Built-in types against what Go makes of them: protobuf, JSON round trips, scalars.

use crate::table::{Shape, Ty};
use crate::{decode_protobuf, normalize, scalars, types};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn check(failures: &[String], total: usize) {
    assert!(
        failures.is_empty(),
        "{} of {total} differ:\n{}",
        failures.len(),
        failures[..failures.len().min(12)].join("\n")
    );
}

#[test]
fn table_is_consistent() {
    let types = types();
    assert!(types.kinds().len() > 50);
    for kind in types.kinds() {
        assert!(types.get(kind.type_name).is_some(), "{kind:?}");
    }
    for ty in types.iter() {
        let mut numbers: Vec<u32> = ty.fields.iter().map(|f| f.number).filter(|n| *n > 0).collect();
        let before = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), before, "{} repeats a protobuf number", ty.name);
        let mut names: Vec<&str> = ty.flat.iter().map(|f| f.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|w| w[0] != w[1]), "{} repeats a name", ty.name);
        for f in &ty.flat {
            if f.list_type == Some("map") {
                assert_list_map(f.name, &f.ty, &f.list_keys);
            }
        }
    }
}

fn assert_list_map(name: &str, ty: &Ty, keys: &[&str]) {
    let Shape::List(inner) = &ty.shape else { panic!("{name} is not a list") };
    let Shape::Struct(index) = inner.shape else { panic!("{name} has no struct items") };
    assert!(!keys.is_empty(), "{name} has no keys");
    for key in keys {
        assert!(types().at(index).field(key).is_some(), "{name} lacks key {key}");
    }
}

#[test]
fn protobuf_equals_go() {
    let cases = lines(include_str!("../testdata/protobuf.jsonl"));
    let mut failures = Vec::new();
    for case in &cases {
        let body = STANDARD.decode(case["bytes"].as_str().unwrap()).unwrap();
        match decode_protobuf(&body) {
            Ok(got) if got == case["json"] => {}
            got => failures.push(format!("{}\n  want {}\n  got  {got:?}", case["type"], case["json"])),
        }
    }
    check(&failures, cases.len());
}

#[test]
fn round_trip_equals_go() {
    let cases = lines(include_str!("../testdata/roundtrip.jsonl"));
    let mut failures = Vec::new();
    for case in &cases {
        let mut value = case["in"].clone();
        let got = match normalize(&mut value, case["type"].as_str().unwrap()) {
            Ok(unknown) => {
                let unknown: Vec<String> = unknown.iter().map(|p| format!("unknown field \"{p}\"")).collect();
                json!({"out": value, "unknown": unknown})
            }
            Err(e) => json!({"error": e.to_string()}),
        };
        let want = match case.get("error") {
            Some(e) => json!({"error": e}),
            None => json!({"out": case["out"], "unknown": case.get("unknown").cloned().unwrap_or(json!([]))}),
        };
        if got != want {
            failures.push(format!("{} {}\n  want {want}\n  got  {got}", case["type"], case["in"]));
        }
    }
    check(&failures, cases.len());
}

/// Our timestamps end a day before the year 10000.
const KNOWN_DIFFERENCES: [(&str, &str); 1] = [("time", "9999-12-31T23:59:59Z")];

#[test]
fn scalars_equal_go() {
    let cases = lines(include_str!("../testdata/scalars.jsonl"));
    let mut failures = Vec::new();
    for case in &cases {
        let text = case["in"].as_str().unwrap();
        let got = match case["kind"].as_str().unwrap() {
            "quantity" => scalars::quantity(text).map_err(|e| e.to_string()),
            kind => {
                scalars::time(text, kind == "microtime").map(|v| v.as_str().unwrap_or_default().to_owned())
            }
        };
        let want = match case.get("error") {
            Some(e) => Err(e.as_str().unwrap().to_owned()),
            None => Ok(case.get("out").and_then(Value::as_str).unwrap_or_default().to_owned()),
        };
        let known = KNOWN_DIFFERENCES.contains(&(case["kind"].as_str().unwrap(), text));
        if (got != want) != known {
            failures.push(format!("{} {text:?}: want {want:?} got {got:?}", case["kind"]));
        }
    }
    check(&failures, cases.len());
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| {
        let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        out.extend_from_slice(bytes);
        out
    };
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &meta), field(2, raw)].concat()
}

#[test]
fn options_decode_under_any_group_version() {
    // gracePeriodSeconds (1) = 0 is a pointer and stays; propagationPolicy (4) = "Background".
    let raw = [&[0x08, 0x00, 0x22, 0x0a][..], b"Background"].concat();
    let got = decode_protobuf(&envelope("example.org/v7", "DeleteOptions", &raw)).unwrap();
    let want = json!({"apiVersion": "example.org/v7", "kind": "DeleteOptions",
        "gracePeriodSeconds": 0, "propagationPolicy": "Background"});
    assert_eq!(got, want);
}

#[test]
fn hostile_bodies_are_errors() {
    let message = |body: &[u8]| decode_protobuf(body).unwrap_err().to_string();
    assert!(message(b"{}").starts_with("provided data does not appear"));
    assert_eq!(message(b"k8s\0"), "Object 'Kind' is missing in protobuf body");
    assert_eq!(
        message(&envelope("v1", "Widget", b"")),
        "no kind \"Widget\" is registered for version \"v1\""
    );
    let raw = |raw: &[u8]| message(&envelope("v1", "ConfigMap", raw));
    assert_eq!(raw(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]), "unexpected EOF");
    assert_eq!(raw(&[0x0a]), "unexpected EOF");
    assert_eq!(raw(&[0x0b]), "proto: illegal wireType 3");
    assert_eq!(raw(&[0x08, 0x01]), "proto: wrong wireType = 0 for field metadata");
    assert_eq!(raw(&[0xff; 11]), "proto: integer overflow");
}

#[test]
fn nesting_is_bounded() {
    // JSONSchemaProps.not (28) within itself.
    let mut schema = Vec::new();
    for _ in 0..2000 {
        let mut outer = vec![0xe2, 0x01];
        let mut len = schema.len();
        while len > 127 {
            outer.push(u8::try_from(len & 127).unwrap() | 128);
            len >>= 7;
        }
        outer.push(u8::try_from(len).unwrap());
        outer.extend(schema);
        schema = outer;
    }
    let props =
        types().get("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps").unwrap();
    assert_eq!(props.field("not").unwrap().number, 28);
    let err = crate::protobuf::decode_message(&schema, props).unwrap_err();
    assert_eq!(err.to_string(), "proto: message is nested too deeply");
}

proptest::proptest! {
    /// Whatever the bytes: an answer, never a panic, and truncation of a real body too.
    #[test]
    fn no_bytes_panic(noise: Vec<u8>, pick in 0usize..370, cut: proptest::sample::Index, flip: proptest::sample::Index, bit in 0u8..8) {
        let _ = decode_protobuf(&[b"k8s\0".to_vec(), noise.clone()].concat());
        let _ = decode_protobuf(&envelope("v1", "Pod", &noise[..noise.len().min(100)]));
        let line = include_str!("../testdata/protobuf.jsonl").lines().nth(pick).unwrap();
        let case: Value = serde_json::from_str(line).unwrap();
        let mut body = STANDARD.decode(case["bytes"].as_str().unwrap()).unwrap();
        let at = flip.index(body.len());
        body[at] ^= 1 << bit;
        let _ = decode_protobuf(&body);
        body.truncate(cut.index(body.len()));
        let _ = decode_protobuf(&body);
    }
}
