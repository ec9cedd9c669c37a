//! Two quantities and an integer, near the limits of `int64`, with many digits, and with every suffix.

use crate::Case;
use crate::dice::Dice;
use serde_json::json;
use std::fmt::Write;
use transom_object::quantity::{Format, Quantity};

const INTEGERS: [i64; 13] = [
    0,
    1,
    -1,
    7,
    999,
    1000,
    1024,
    -1024,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i64::MIN + 1,
    1_000_000_000_000_000_000,
];

pub(crate) fn case(dice: &mut Dice) -> Case {
    let (a, mut b, n) = (text(dice), text(dice), integer(dice));
    if dice.percent(10) {
        // The same amount, written differently.
        b = format!("{a}{}", dice.pick(&["", "0", ".0"]));
    }
    let answer = answer(&a, &b, n).unwrap_or_else(|problem| format!("error: {problem}"));
    (json!({"a": a, "b": b, "n": n.to_string()}), answer)
}

fn integer(dice: &mut Dice) -> i64 {
    match dice.below(3) {
        0 => dice.one(&INTEGERS),
        1 => dice.below(100_000) as i64 - 50_000,
        _ => dice.next().cast_signed(),
    }
}

pub(crate) fn text(dice: &mut Dice) -> String {
    let mut text = dice.pick(&["", "", "", "-", "-", "+"]).to_owned();
    let limits = [
        "9223372036854775807",
        "9223372036854775808",
        "9223372036854775806",
        "18446744073709551616",
        "922337203685477580.7",
        "9007199254740993",
        "999999999999999999",
        "99999999999999999999",
        "1000000000000000000",
        "8388608",
        "0",
        "00",
        "0.000000001",
        "0.0000000001",
        "1.0000000005",
    ];
    match dice.below(6) {
        0 => text.push_str(dice.pick(&limits)),
        1 => {
            let _ = write!(text, "{}", integer(dice).unsigned_abs());
        }
        2 => text.push_str(&digits(dice, 45)),
        _ => text.push_str(&digits(dice, 5)),
    }
    if dice.percent(35) {
        text.push('.');
        let most = if dice.percent(20) { 24 } else { 5 };
        text.push_str(&digits(dice, most));
    }
    match dice.below(10) {
        0..3 => text.push_str(dice.pick(&["n", "u", "m", "", "k", "M", "G", "T", "P", "E"])),
        3..5 => text.push_str(dice.pick(&["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])),
        5..7 => {
            let exponents =
                ["0", "1", "2", "3", "6", "18", "19", "-1", "-3", "-9", "-10", "-12", "+3", "30", "-25"];
            let _ = write!(text, "{}{}", dice.pick(&["e", "E"]), dice.pick(&exponents));
        }
        7 if dice.percent(20) => {
            text.push_str(dice.pick(&["i", "K", "mi", "e", "e+", "Zi", " ", "e1.5", "_", ".", "é"]));
        }
        _ => {}
    }
    text
}

fn digits(dice: &mut Dice, most: usize) -> String {
    let zeros = dice.percent(30);
    (0..dice.below(most + 1))
        .map(|_| if zeros && dice.percent(70) { '0' } else { dice.one(&['0', '1', '2', '5', '7', '9']) })
        .collect()
}

fn answer(a: &str, b: &str, n: i64) -> Result<String, String> {
    let mut out = String::new();
    let a = Quantity::parse(a).map_err(|e| e.to_string())?;
    let n = Quantity::new(n, Format::DecimalExponent);
    describe(&mut out, "a", Some(a.clone()));
    describe(&mut out, "a+n", a.checked_add(&n));
    describe(&mut out, "a-n", a.checked_sub(&n));
    describe(&mut out, "-a", Some(a.negated()));
    let Ok(b) = Quantity::parse(b) else { return Ok(out) };
    let _ = write!(out, "a?b: {} {}; ", a.cmp(&b) as i8, b.cmp(&a) as i8);
    let (sum, difference) = (a.checked_add(&b), a.checked_sub(&b));
    describe(&mut out, "a+b", sum.clone());
    describe(&mut out, "a-b", difference.clone());
    if let (Some(sum), Some(difference)) = (sum, difference) {
        let _ = write!(out, "a+b?a: {}; ", sum.cmp(&a) as i8);
        describe(&mut out, "(a+b)-n", sum.checked_sub(&n));
        let n = n.with_format(Format::DecimalSi);
        describe(&mut out, "n-(a-b)", n.checked_sub(&difference));
    }
    Ok(out)
}

fn describe(out: &mut String, name: &str, quantity: Option<Quantity>) {
    let _ = match quantity {
        None => write!(out, "{name}: none; "),
        Some(q) => {
            let format = match q.format() {
                Format::DecimalExponent => "DecimalExponent",
                Format::BinarySi => "BinarySI",
                Format::DecimalSi => "DecimalSI",
            };
            let whole = q.as_i64();
            write!(
                out,
                "{name}: {q} {format} {} {} {} {} {} {:016x} {}; ",
                q.sign(),
                q.value(),
                q.milli_value(),
                whole.is_some(),
                whole.unwrap_or_default(),
                q.as_f64().to_bits(),
                q.canonical()
            )
        }
    };
}
