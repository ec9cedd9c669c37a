//! Quantities and int-or-string.

use super::Plan::{self, Run, Skip};
use super::{Outcome, is, run, same};
use serde_json::Value;
use transom_object::quantity::{Format, Quantity};

fn number(v: &Value) -> i64 {
    v.as_i64().unwrap_or_default()
}

fn exponent(v: &Value) -> i32 {
    i32::try_from(number(v)).unwrap()
}

/// Integers beyond 64 bits lose digits when a table is read; such rows say nothing.
fn big(v: &Value) -> Option<i128> {
    match v {
        Value::Null => Some(0),
        v => v.as_i64().map(i128::from).or_else(|| v.as_u64().map(i128::from)),
    }
}

fn format(name: &str) -> Format {
    match name {
        "BinarySI" => Format::BinarySi,
        "DecimalSI" => Format::DecimalSi,
        _ => Format::DecimalExponent,
    }
}

fn quantity(text: &str) -> Result<Quantity, String> {
    if text.is_empty() {
        return Ok(Quantity::new(0, Format::DecimalSi));
    }
    Quantity::parse(text).map_err(|e| e.to_string())
}

/// Rows hold quantities as text, as JSON or as the bytes between.
fn text(v: &Value) -> String {
    match v {
        Value::Null | Value::Object(_) => "0".to_owned(),
        v => v.as_str().map_or_else(|| v.to_string(), str::to_owned),
    }
}

fn prints(q: Option<Quantity>, want: &Value) -> Outcome {
    let q = q.ok_or("overflow")?;
    same(q.to_string(), text(want))
}

fn small(v: &Value) -> Quantity {
    Quantity::scaled(number(&v["value"]), v.get("scale").map_or(0, exponent))
}

fn amounts() -> Vec<(&'static str, Plan)> {
    vec![
        (
            "TestAmountSign",
            Run(|c| match c.input("i") {
                Value::Null => Ok(()),
                i => same(i64::from(small(i).sign()), number(c.expected("expect"))),
            }),
        ),
        (
            "TestInt64AmountAsInt64",
            Run(|c| {
                let want = c.expects("ok").then(|| number(c.expected("result")));
                same(small(&c.row["inputs"]).as_i64(), want)
            }),
        ),
        (
            "TestInt64AmountAsScaledInt64",
            Run(|c| {
                let got = small(c.input("i")).scaled_value(exponent(c.input("scaled")));
                same(got, number(c.expected("result")))
            }),
        ),
        (
            "TestInt64AsCanonicalString",
            Run(|c| {
                let got = small(&c.row["inputs"]).with_format(Format::DecimalExponent).canonical();
                let e = number(c.input("exponent"));
                let suffix = if e == 0 { String::new() } else { format!("e{e}") };
                same(got, format!("{}{suffix}", text(c.expected("result"))))
            }),
        ),
        (
            "TestInt64AmountAdd",
            Run(|c| match small(c.input("a")).checked_add(&small(c.input("b"))) {
                Some(sum) if c.expects("ok") => same(sum, small(c.input("c"))),
                _ => is(!c.expects("ok"), "overflow"),
            }),
        ),
        (
            "TestInt64AmountMul",
            Run(|c| {
                let product = small(c.input("a")).times(number(c.input("b")));
                if c.expects("ok") { same(product, small(c.input("c"))) } else { Ok(()) }
            }),
        ),
        (
            "TestNegativeScaleInt64",
            Run(|c| {
                let mut q = Quantity::new(number(c.input("base")), Format::DecimalSi);
                let scale = exponent(c.input("scale"));
                let exact = q.round_up(scale);
                same(exact, c.input("exact") == true)?;
                same(q.scaled_value(scale), number(c.expected("result")))
            }),
        ),
        ("TestRemoveInt64Factors", Skip("an internal of the canonical form")),
        (
            "TestScaledValueInternal",
            Run(|c| {
                let Some(unscaled) = big(c.input("unscaled")) else { return Ok(()) };
                let q = Quantity::decimal(unscaled, -exponent(c.input("scale")), Format::DecimalSi);
                same(q.scaled_value(-exponent(c.input("newScale"))), number(c.expected("want")))
            }),
        ),
    ]
}

fn parsing() -> Vec<(&'static str, Plan)> {
    vec![
        (
            "TestQuantityParse.invalid",
            Run(|c| is(Quantity::parse(c.value().as_str().unwrap()).is_err(), c.value())),
        ),
        (
            "TestQuantityParse.",
            Run(|c| {
                same(
                    quantity(c.text("input"))?.canonical(),
                    quantity(&text(c.expected("expect")))?.canonical(),
                )
            }),
        ),
        ("TestQuantityParseEmit", Run(|c| prints(quantity(c.text("in")).ok(), c.expected("expect")))),
        (
            "TestQuantityString",
            Run(|c| {
                let q = quantity(c.text("in"))?;
                same(q.canonical(), text(c.expected("expect")))?;
                match c.text("alternate") {
                    "" => Ok(()),
                    other => same(quantity(other)?.canonical(), q.canonical()),
                }
            }),
        ),
        ("TestParseQuantityString", Run(|c| quantity(c.text("input")).map(drop))),
        (
            "TestJSONWhitespace",
            Run(|c| {
                let raw = c.text("in");
                let inner = raw.strip_prefix('"').and_then(|s| s.strip_suffix('"')).unwrap_or(raw);
                prints(quantity(inner.trim()).ok(), c.expected("expect"))
            }),
        ),
        ("TestQuantityDeepCopy", Skip("copying")),
        ("CBOR", Skip("CBOR is not served")),
        ("quantity_proto", Skip("the protobuf field holds the text, which other tables cover")),
        (
            "Float64",
            Run(|c| same(quantity(c.text("in"))?.as_f64(), c.expected("out").as_f64().unwrap_or_default())),
        ),
    ]
}

fn arithmetic() -> Vec<(&'static str, Plan)> {
    vec![
        (
            "TestAdd.",
            Run(|c| {
                prints(quantity(c.text("a"))?.checked_add(&quantity(c.text("b"))?), c.expected("expected"))
            }),
        ),
        (
            "TestSub.",
            Run(|c| {
                prints(quantity(c.text("a"))?.checked_sub(&quantity(c.text("b"))?), c.expected("expected"))
            }),
        ),
        (
            "TestMul.",
            Run(|c| prints(Some(quantity(c.text("a"))?.times(number(c.input("b")))), c.expected("expected"))),
        ),
        ("TestNeg.", Run(|c| prints(Some(quantity(c.text("a"))?.negated()), c.expected("expected")))),
        ("TestQuantityNeg.", Run(|c| prints(Some(quantity(c.text("a"))?.negated()), c.expected("out")))),
        (
            "ZeroPreservesSuffix",
            Run(|c| {
                let zero = Quantity::new(0, Format::DecimalSi);
                let q = quantity(c.value().as_str().unwrap())?;
                same(zero.checked_add(&q).ok_or("overflow")?.to_string(), q.to_string())?;
                same(q.checked_sub(&zero).ok_or("overflow")?.to_string(), q.to_string())
            }),
        ),
        (
            "TestQuantityCmp.",
            Run(|c| {
                let got = quantity(&text(c.input("x")))?.cmp(&quantity(&text(c.input("y")))?);
                match (c.input("x").is_object(), c.input("y").is_object()) {
                    (false, false) => same(got as i64, number(c.expected("expect"))),
                    // Rows of Go's internal decimals say nothing here.
                    _ => Ok(()),
                }
            }),
        ),
        (
            "TestQuantityCmpInt64AndDec",
            Run(|c| same(quantity(c.text("a"))?.cmp(&quantity(c.text("b"))?) as i64, number(c.input("cmp")))),
        ),
        (
            "TestQuantityRoundUp",
            Run(|c| {
                let mut q = quantity(c.text("in"))?;
                let exact = q.round_up(exponent(c.input("scale")));
                same(exact, c.expects("ok"))?;
                same(q.canonical(), quantity(&text(c.expected("expect")))?.canonical())
            }),
        ),
        (
            "TestScaledValue.",
            Run(|c| {
                let one = Quantity::scaled(1, exponent(c.input("fromScale")));
                same(one.scaled_value(exponent(c.input("toScale"))), number(c.expected("expected")))
            }),
        ),
        (
            "TestNewScaledSet",
            Run(|c| {
                prints(
                    Some(Quantity::scaled(number(c.input("value")), exponent(c.input("scale")))),
                    c.expected("expect"),
                )
            }),
        ),
        (
            "TestNewSet",
            Run(|c| {
                prints(
                    Some(Quantity::new(number(c.input("value")), format(c.text("format")))),
                    c.expected("expect"),
                )
            }),
        ),
        (
            "TestMilliNewSet",
            Run(|c| {
                let q = Quantity::scaled(number(c.input("value")), -3).with_format(format(c.text("format")));
                prints(Some(q), c.expected("expect"))
            }),
        ),
        (
            "Dec.table",
            Run(|c| {
                let dec = &c.input("got")["Dec"];
                let Some(unscaled) = big(&dec["unscaled"]) else { return Ok(()) };
                let q = Quantity::decimal(
                    unscaled,
                    -dec.get("scale").map_or(0, exponent),
                    Format::DecimalExponent,
                );
                let want: f64 = text(c.expected("expect")).parse().unwrap();
                same(q.as_f64(), want)
            }),
        ),
    ]
}

#[test]
fn quantities() {
    let plan: Vec<_> = amounts().into_iter().chain(parsing()).chain(arithmetic()).collect();
    run("quantity", &plan);
}
