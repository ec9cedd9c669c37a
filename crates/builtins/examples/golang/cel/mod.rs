//! Expressions of Kubernetes' CEL: optionals, conversions, quantities, addresses, moments; with their costs. The modules
//! below have areas of their own, for places where our code once differed.

pub(crate) mod addresses;
pub(crate) mod optmap;
pub(crate) mod strings;
pub(crate) mod zero;

use crate::Case;
use crate::dice::Dice;
use crate::quantity;
use serde_json::json;
use std::fmt::Write;
use transom_cel::{Bindings, Env, Opaque, PER_CALL_LIMIT, Program, Value};

pub(crate) fn case(dice: &mut Dice) -> Case {
    asked(&expression(dice))
}

/// The case of an expression without variables.
fn asked(text: &str) -> Case {
    (json!({"text": text}), answer(text))
}

fn answer(text: &str) -> String {
    let program = match Program::compile(text, &Env::new()) {
        Ok(program) => program,
        Err(error) if error.to_string().starts_with("program instantiation failed: ") => {
            return error.to_string().replacen("program instantiation failed", "program", 1);
        }
        Err(_) => return "does not compile".to_owned(),
    };
    let bounds = program.estimated_cost();
    let (result, cost) = program.eval_metered(&Bindings::new(), PER_CALL_LIMIT);
    let outcome = match result {
        Ok(value) => format!("{cost} {}", formatted(&value)),
        Err(error) => format!("error: {error}"),
    };
    format!("[{}..{}] {outcome}", bounds.min, bounds.max)
}

fn formatted(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Uint(n) => format!("{n}u"),
        Value::Double(d) if d.is_nan() => "double NaN".to_owned(),
        Value::Double(d) => format!("double {:016x}", d.to_bits()),
        Value::String(s) => json!(&**s).to_string(),
        Value::Bytes(bytes) => bytes.iter().fold("bytes ".to_owned(), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        }),
        Value::Duration(nanos) => format!("duration {nanos}"),
        Value::Timestamp(t) => format!("timestamp {t}"),
        Value::Optional(None) => "none".to_owned(),
        Value::Optional(Some(value)) => format!("some {}", formatted(value)),
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Quantity(q) => format!("quantity {}", q.canonical()),
            Opaque::Ip(ip) => format!("ip {ip}"),
            Opaque::Cidr(cidr) => format!("cidr {cidr}"),
            other => other.to_string(),
        },
        other => other.type_name().to_owned(),
    }
}

fn quoted(text: &str) -> String {
    let mut out = json!(text).to_string();
    // CEL knows no escape for a slash, and JSON needs none.
    out = out.replace("\\/", "/");
    out
}

/// The text itself, or a call that gives it: what is known beforehand is checked beforehand.
fn argument(dice: &mut Dice, text: &str) -> String {
    if dice.percent(40) { format!("({} + '')", quoted(text)) } else { quoted(text) }
}

fn expression(dice: &mut Dice) -> String {
    match dice.below(10) {
        0..2 => format!("string({})", scalar(dice)),
        2 => optional_result(dice),
        3 | 4 => optionals(dice, 3),
        5 => conversion(dice),
        6 | 7 => addresses::expression(dice),
        8 => quantities(dice),
        _ => moments(dice),
    }
}

fn scalar(dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => dice.pick(&["0", "1", "-1", "9223372036854775807", "-9223372036854775808", "42"]).to_owned(),
        1 => dice.pick(&["0u", "1u", "18446744073709551615u"]).to_owned(),
        2 => double(dice),
        3 => {
            let text = number_or_not(dice);
            argument(dice, text)
        }
        4 => dice
            .pick(&["b''", "b'abc'", "b'\\xff'", "b'\\303\\251'", "b'\\xed\\xa0\\x80'", "bytes('é')"])
            .to_owned(),
        5 => format!("duration({})", {
            let text = duration(dice);
            argument(dice, &text)
        }),
        6 => format!("timestamp({})", {
            let text = moment(dice);
            argument(dice, &text)
        }),
        _ => dice.pick(&["true", "false"]).to_owned(),
    }
}

fn number_or_not(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        "",
        "a",
        "é",
        "true",
        "T",
        "0",
        "1",
        "-1",
        "+1",
        "1.5",
        "1e400",
        "-1e400",
        "inf",
        "+Inf",
        "-infinity",
        "nan",
        "NaN",
        "-nan",
        "1e-400",
        "01",
        " 1",
        "1_0",
        "9223372036854775808",
        "18446744073709551615",
        ".5",
        "5.",
        "1e5",
        "1e",
        "2020-01-01T00:00:00Z",
        "3s",
    ])
}

fn double(dice: &mut Dice) -> String {
    const EDGES: [&str; 22] = [
        "0.0",
        "-0.0",
        "1.0",
        "0.1",
        "1.5",
        "100000.0",
        "999999.0",
        "1000000.0",
        "1e5",
        "1e6",
        "123456.7",
        "1234567.8",
        "1e20",
        "1e21",
        "1e-4",
        "1e-5",
        "0.0001",
        "0.00001",
        "1.7976931348623157e308",
        "5e-324",
        "9007199254740993.0",
        "9223372036854775807.0",
    ];
    match dice.below(4) {
        0 => dice.pick(&["(1.0/0.0)", "(-1.0/0.0)", "(0.0/0.0)"]).to_owned(),
        1 => {
            let number = f64::from_bits(dice.next());
            if number.is_finite() { format!("{number:?}").replace("e", "e") } else { "2.5".to_owned() }
        }
        _ => dice.pick(&EDGES).to_owned(),
    }
}

fn duration(dice: &mut Dice) -> String {
    let mut text = dice.pick(&["", "", "-", "+"]).to_owned();
    for _ in 0..=dice.below(2) {
        let numbers = [
            "0",
            "1",
            "1.5",
            "0.1",
            ".5",
            "5.",
            "0.000000001",
            "9223372036",
            "2562047",
            "1.123456789123",
            "999999999",
            "0.3",
            "1.1",
            ".",
            "9223372036854775807",
            "9223372036854775808",
        ];
        let _ = write!(
            text,
            "{}{}",
            dice.pick(&numbers),
            dice.pick(&["ns", "us", "µs", "ms", "s", "m", "h", "s", "h", "d", ""])
        );
    }
    text
}

fn moment(dice: &mut Dice) -> String {
    let dates = [
        "0001-01-01",
        "0000-12-31",
        "1970-01-01",
        "1969-12-31",
        "2000-02-29",
        "2021-02-29",
        "9999-12-31",
        "2020-06-15",
        "1582-10-04",
        "9999-12-30",
        "2024-12-31",
    ];
    let times = ["00:00:00", "23:59:59", "12:34:56", "5:00:00", "24:00:00", "00:00:60", "00:59:59"];
    let fractions = ["", "", "", ".5", ".123456789", ".000000001", ",25", ".9999999999", ".", ".10"];
    let zones = [
        "Z", "Z", "Z", "+00:00", "-00:00", "+01:00", "-05:30", "+14:00", "+23:59", "+24:00", "+24:60",
        "+25:00", "z", "", "+1:00", "-00:01",
    ];
    let joint = if dice.percent(3) { "t" } else { "T" };
    format!("{}{joint}{}{}{}", dice.pick(&dates), dice.pick(&times), dice.pick(&fractions), dice.pick(&zones))
}

fn optional_result(dice: &mut Dice) -> String {
    let value = match dice.below(6) {
        0 => dice
            .pick(&[
                "timestamp('0001-01-01T00:00:00Z')",
                "timestamp('1970-01-01T00:00:00Z')",
                "timestamp(0)",
                "timestamp(-62135596800)",
                "timestamp('0001-01-01T01:00:00+01:00')",
                "duration('0s')",
                "duration(0)",
            ])
            .to_owned(),
        1 => dice
            .pick(&[
                "[]",
                "[1]",
                "{}",
                "{'a': 1}",
                "null",
                "optional.none()",
                "optional.of(0)",
                "type(1)",
                "quantity('0')",
                "ip('::')",
                "dyn(0)",
            ])
            .to_owned(),
        _ => scalar(dice),
    };
    let optional = format!("optional.{}({value})", dice.pick(&["ofNonZeroValue", "ofNonZeroValue", "of"]));
    match dice.below(4) {
        0 => format!("{optional}.hasValue()"),
        1 => format!("string({optional}.value())"),
        2 => format!("{optional} == optional.none()"),
        _ => format!("{optional}.hasValue() ? 'some' : 'none'"),
    }
}

/// An optional integer. Its type is never left open, as that of `optional.none()` is: there our checker differs.
fn optional(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 || dice.percent(30) {
        return dice
            .pick(&[
                "optional.of(1)",
                "optional.ofNonZeroValue(0)",
                "optional.ofNonZeroValue(5)",
                "[1, 2][?0]",
                "[1][?3]",
                "{'a': 1}[?'a']",
                "{'a': 1}.?b",
                "[optional.of(2)][0]",
            ])
            .to_owned();
    }
    let target = optional(dice, depth - 1);
    let body = dice.pick(&[
        "x",
        "x + 1",
        "x * x",
        "int(string(x))",
        "x / 0",
        "[x, x].map(y, y + x)[0]",
        "x > 1 ? x : 0",
    ]);
    match dice.below(6) {
        0..3 => format!("{target}.optMap(x, {body})"),
        3 => format!(
            "{target}.optFlatMap(x, {})",
            dice.pick(&[
                "optional.of(x)",
                "optional.of(3)",
                "[x][?1]",
                "optional.ofNonZeroValue(x - 1)",
                "optional.of(x).optMap(y, y * 2)"
            ])
        ),
        4 => format!("{target}.or({})", optional(dice, depth - 1)),
        _ => format!("optional.of({target}.orValue(7))"),
    }
}

fn optionals(dice: &mut Dice, depth: usize) -> String {
    let optional = optional(dice, depth);
    match dice.below(5) {
        0 => format!("{optional}.hasValue()"),
        1 => format!("{optional}.value()"),
        2 => format!("{optional}.orValue(0)"),
        3 => format!("{optional} == {}", dice.pick(&["optional.of(1)", "optional.none()"])),
        _ => optional,
    }
}

fn conversion(dice: &mut Dice) -> String {
    let to = dice.pick(&["int", "uint", "double", "bool", "bytes", "string", "timestamp", "duration"]);
    let value = scalar(dice);
    if dice.percent(30) { format!("{to}(dyn({value}))") } else { format!("{to}({value})") }
}

fn quantities(dice: &mut Dice) -> String {
    let (a, b) = (quantity::text(dice), quantity::text(dice));
    let (a, b) = (format!("quantity({})", quoted(&a)), format!("quantity({})", quoted(&b)));
    let n = dice.pick(&["0", "1", "-1", "9223372036854775807", "-9223372036854775808", "1024", "1000000"]);
    match dice.below(11) {
        0 => format!("isQuantity({})", quoted(&quantity::text(dice))),
        1 => format!("{a}.compareTo({b})"),
        2 => format!("{a}.isGreaterThan({b})"),
        3 => format!("{a} == {b}"),
        4 => format!("{a}.asInteger()"),
        5 => format!("{a}.isInteger()"),
        6 => format!("{a}.asApproximateFloat()"),
        7 => format!("{a}.add({n}).compareTo({b})"),
        8 => format!("{a}.sub({n})"),
        9 => format!("{a}.add({b}).sub({n}).isInteger()"),
        _ => format!("sign({a}.sub({b}))"),
    }
}

fn moments(dice: &mut Dice) -> String {
    let one = format!("timestamp({})", {
        let text = moment(dice);
        argument(dice, &text)
    });
    let length = format!("duration({})", {
        let text = duration(dice);
        argument(dice, &text)
    });
    let part = dice.pick(&[
        "getFullYear",
        "getMonth",
        "getDayOfYear",
        "getDayOfMonth",
        "getDate",
        "getDayOfWeek",
        "getHours",
        "getMinutes",
        "getSeconds",
        "getMilliseconds",
    ]);
    let zone = dice.pick(&[
        "",
        "'UTC'",
        "'America/New_York'",
        "'+01:00'",
        "'-00:30'",
        "'02:00'",
        "'Asia/Kolkata'",
        "'america/new_york'",
        "'Nowhere'",
        "''",
    ]);
    match dice.below(8) {
        0 | 1 => format!("{one}.{part}({zone})"),
        2 => format!("string({one} + {length})"),
        3 => format!("string({one} - {length})"),
        4 => format!("{one} - timestamp({})", quoted(&moment(dice))),
        5 => format!("int({one})"),
        6 => {
            format!("{length}.{}()", dice.pick(&["getHours", "getMinutes", "getSeconds", "getMilliseconds"]))
        }
        _ => format!("{length} + duration({})", quoted(&duration(dice))),
    }
}
