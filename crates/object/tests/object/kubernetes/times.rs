//! Times, durations and int-or-string in objects.

use super::Plan::{Run, Skip};
use super::{Case, Outcome, is, run, same};
use serde_json::Value;
use transom_object::intstr::IntOrString;
use transom_object::time::{self, ParseError, Timestamp};

type Parse = fn(&str) -> Result<Timestamp, ParseError>;

fn parsed(v: &Value, parse: Parse) -> Option<Timestamp> {
    v.as_str().map(|s| parse(s).unwrap())
}

/// The text of the only field of a small JSON or YAML document.
fn field(document: &str) -> Option<String> {
    let (_, value) = document.trim().trim_matches(['{', '}']).split_once(':')?;
    let value = value.trim().trim_matches('"');
    (value != "null").then(|| value.to_owned())
}

fn unmarshal(c: &Case<'_>, parse: Parse) -> Outcome {
    let got = field(c.text("input")).map(|s| parse(&s)).transpose().map_err(|e| e.to_string())?;
    // The tables print expected times in the precision of their type.
    same(got.map(time::format), parsed(c.expected("result"), parse).map(time::format))
}

fn marshal(c: &Case<'_>, parse: Parse, show: fn(Timestamp) -> String) -> Outcome {
    let got = parsed(c.input("input"), parse).map(show);
    same(got, field(c.expected("result").as_str().unwrap()))
}

#[test]
fn times() {
    let equal = |c: &Case<'_>| {
        let (x, y) = (parsed(c.input("x"), time::parse), parsed(c.input("y"), time::parse));
        same(x == y, c.expects("result"))
    };
    let plan = [
        ("TestTimeUnmarshal", Run(|c: &Case<'_>| unmarshal(c, time::parse))),
        ("TestTimeMarshalJSONUnmarshalYAML", Skip("one way and back: the two tables above")),
        ("TestTimeMarshal", Run(|c| marshal(c, time::parse, time::format))),
        ("TestTimeEqual", Run(equal)),
        ("TestTimeBefore", Skip("nil pointers and a clock")),
        ("TestTimeIsZero", Skip("nil pointers")),
        ("TestTimeProto", Skip("protobuf is encoded where it is served")),
    ];
    let cbor = ("CBOR", Skip("CBOR is not served"));
    run("meta-v1/time", &[cbor].into_iter().chain(plan).collect::<Vec<_>>());
    let plan = [
        ("CBOR", Skip("CBOR is not served")),
        ("Proto", Skip("protobuf is encoded where it is served")),
        ("TestMicroTimeUnmarshal", Run(|c: &Case<'_>| unmarshal(c, time::parse_micro))),
        ("TestMicroTimeMarshal", Run(|c| marshal(c, time::parse_micro, time::format_micro))),
        ("TestMicroTime", Skip("nil pointers and a clock")),
    ];
    run("meta-v1/micro_time", &plan);
}

fn nanos(v: &Value) -> Result<i64, String> {
    v.as_str().map_or(Ok(0), time::parse_duration).map_err(|e| e.to_string())
}

#[test]
fn durations() {
    let plan = [
        (
            "TestDurationUnmarshal",
            Run(|c: &Case<'_>| {
                let got =
                    time::parse_duration(&field(c.text("input")).unwrap()).map_err(|e| e.to_string())?;
                same(got, nanos(c.expected("result"))?)
            }),
        ),
        (
            "TestDurationMarshalJSONUnmarshalYAML",
            Run(|c| {
                let d = nanos(c.input("input"))?;
                same(time::parse_duration(&time::format_duration(d)).map_err(|e| e.to_string())?, d)
            }),
        ),
        (
            "TestDurationMarshal",
            Run(|c| {
                let got = time::format_duration(nanos(c.input("input"))?);
                same(Some(got), field(c.expected("result").as_str().unwrap()))
            }),
        ),
    ];
    run("meta-v1/duration", &plan);
}

fn int_or_string(v: &Value) -> IntOrString {
    IntOrString::from_value(v).unwrap()
}

#[test]
fn int_or_strings() {
    let plan = [
        ("CBOR", Skip("CBOR is not served")),
        (
            "TestParse",
            Run(|c: &Case<'_>| {
                same(IntOrString::parse(c.text("input")), int_or_string(c.expected("output")))
            }),
        ),
        (
            "TestIntOrStringUnmarshalJSON",
            Run(|c| {
                let document: Value = serde_json::from_str(c.text("input")).unwrap();
                same(int_or_string(&document["val"]), int_or_string(c.expected("result")))
            }),
        ),
        (
            "TestIntOrStringMarshalJSONUnmarshalYAML",
            Run(|c| same(int_or_string(c.input("input")).to_value(), c.input("input").clone())),
        ),
        (
            "TestIntOrStringMarshalJSON",
            Run(|c| {
                let document: Value = serde_json::from_str(c.expected("result").as_str().unwrap()).unwrap();
                same(int_or_string(c.input("input")).to_value(), document["val"].clone())
            }),
        ),
        (
            "TestGetIntFromIntOrPercent",
            Run(|c| {
                let total = c.input("total").as_i64().unwrap_or_default();
                match int_or_string(c.input("input")).scaled(total, c.input("roundUp") == true) {
                    Ok(got) => same(got, c.expected("expectVal").as_i64().unwrap_or_default()),
                    Err(e) => is(!c.want_err().is_null(), e),
                }
            }),
        ),
        (
            "TestGetIntFromIntOrString",
            // A percentage of a hundred is the number before the sign.
            Run(|c| match int_or_string(c.input("input")).scaled(100, false) {
                Ok(got) => same(got, c.expected("expectVal").as_i64().unwrap_or_default()),
                Err(e) => is(!c.want_err().is_null(), e),
            }),
        ),
    ];
    run("intstr", &plan);
}
