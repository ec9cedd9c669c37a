//! The codec against prost's own `Struct`, against hostile bytes, and against itself.

use super::*;
use proptest::prelude::*;
use prost::Message;
use prost_types::value::Kind;
use serde_json::json;

fn reference(value: &Value) -> prost_types::Value {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(truth) => Kind::BoolValue(*truth),
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap()),
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Array(items) => {
            Kind::ListValue(prost_types::ListValue { values: items.iter().map(reference).collect() })
        }
        Value::Object(fields) => Kind::StructValue(reference_struct(fields)),
    };
    prost_types::Value { kind: Some(kind) }
}

fn reference_struct(fields: &Map<String, Value>) -> prost_types::Struct {
    prost_types::Struct { fields: fields.iter().map(|(k, v)| (k.clone(), reference(v))).collect() }
}

/// Any JSON object whose integers a double can hold.
fn object() -> impl Strategy<Value = Map<String, Value>> {
    let exact = -(1_i64 << 53)..(1_i64 << 53);
    let fraction = (-1.0e9..1.0e9_f64).prop_filter("fractional", |f| f.fract() != 0.0);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        exact.prop_map(Value::from),
        fraction.prop_map(Value::from),
        ".{0,200}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(".{0,9}", inner, 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    prop::collection::btree_map(".{0,9}", value, 0..8).prop_map(|fields| fields.into_iter().collect())
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(fields in object()) {
        let original = Struct::from(fields);
        let bytes = original.encode_to_vec();
        prop_assert_eq!(bytes.len(), original.encoded_len());
        prop_assert_eq!(Struct::decode(&bytes[..]).unwrap(), original);
    }

    #[test]
    fn others_read_what_we_write_and_we_read_theirs(fields in object()) {
        let theirs = reference_struct(&fields);
        let ours = Struct::from(fields);
        prop_assert_eq!(&prost_types::Struct::decode(&ours.encode_to_vec()[..]).unwrap(), &theirs);
        prop_assert_eq!(Struct::decode(&theirs.encode_to_vec()[..]).unwrap(), ours);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Struct::decode(&bytes[..]);
    }

    #[test]
    fn truncated_and_flipped_bytes_are_decoded_or_refused(fields in object(), at: prop::sample::Index, bit in 0..8) {
        let mut bytes = Struct::from(fields).encode_to_vec();
        prop_assume!(!bytes.is_empty());
        let at = at.index(bytes.len());
        let _ = Struct::decode(&bytes[..at]);
        bytes[at] ^= 1_u8 << bit;
        let _ = Struct::decode(&bytes[..]);
    }
}

fn decoded_number(float: f64) -> Result<Value, DecodeError> {
    let value = prost_types::Value { kind: Some(Kind::NumberValue(float)) };
    let object = prost_types::Struct { fields: [("n".to_owned(), value)].into() };
    Ok(Struct::decode(&object.encode_to_vec()[..])?.fields()["n"].clone())
}

#[test]
fn integral_numbers_are_integers() {
    for (float, expected) in [
        (0.0, json!(0)),
        (-0.0, json!(0)),
        (3.0, json!(3)),
        (-7.0, json!(-7)),
        (0.5, json!(0.5)),
        (9_007_199_254_740_992.0, json!(9_007_199_254_740_992_i64)),
        (-9_223_372_036_854_775_808.0, json!(i64::MIN)),
        (9_223_372_036_854_775_808.0, json!(9_223_372_036_854_775_808.0)),
        (1e300, json!(1e300)),
    ] {
        assert_eq!(decoded_number(float).unwrap(), expected, "{float}");
    }
    for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(decoded_number(float).unwrap_err().to_string().contains("JSON cannot say"));
    }
}

fn nested(depth: usize, around: fn(Value) -> Value) -> Vec<u8> {
    let inner = (2..depth).fold(around(Value::Null), |value, _| around(value));
    Struct::from(Map::from_iter([("a".to_owned(), inner)])).encode_to_vec()
}

#[test]
fn depth_is_limited() {
    for around in [|v| json!([v]), |v| json!({ "a": v })] as [fn(Value) -> Value; 2] {
        assert!(Struct::decode(&nested(MAX_DEPTH, around)[..]).is_ok());
        let error = Struct::decode(&nested(MAX_DEPTH + 1, around)[..]).unwrap_err();
        assert!(error.to_string().contains("too deeply"), "{error}");
    }
}

#[test]
fn a_value_without_a_kind_is_null_and_a_repeated_key_replaces() {
    // fields { key: "a" value { } }, then fields { key: "a" value { bool_value: true } }
    let empty = b"\x0a\x05\x0a\x01a\x12\x00";
    assert_eq!(Struct::decode(&empty[..]).unwrap().into_value(), json!({"a": null}));
    let repeated = [&empty[..], b"\x0a\x07\x0a\x01a\x12\x02\x20\x01"].concat();
    assert_eq!(Struct::decode(&repeated[..]).unwrap().into_value(), json!({"a": true}));
}

#[test]
fn lengths_beyond_the_message_are_refused() {
    let bytes = b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
    assert!(Struct::decode(&bytes[..]).is_err());
    assert!(Struct::decode(&b"\x0a\x04\x0a\x7fab"[..]).is_err());
}

#[test]
fn only_objects_are_structs() {
    assert_eq!(
        Struct::try_from(json!([1])).unwrap_err().to_string(),
        "expected a JSON object, found an array"
    );
    assert!(serde_json::from_value::<Struct>(json!("text")).is_err());
}

#[test]
fn clones_share_the_object_until_one_changes() {
    let one = Struct::try_from(json!({"a": {"b": 1}})).unwrap();
    let mut other = one.clone();
    assert!(std::ptr::eq(one.as_value(), other.as_value()), "nothing is copied");
    other.fields_mut().insert("c".to_owned(), json!(2));
    assert_eq!(one.as_value(), &json!({"a": {"b": 1}}));
    assert_eq!(other.into_value(), json!({"a": {"b": 1}, "c": 2}));
    assert_eq!(serde_json::to_string(&one).unwrap(), r#"{"a":{"b":1}}"#);
}
