//! The function `format`, as in `'%s is %d'.format([…])`: verbs, precisions and errors are those of cel-go.

use super::convert::to_text;
use super::{Args, Out, Work, string};
use crate::value::{EvalError, Value};
use transom_go::encoding;

/// The most digits that a precision may ask for.
const MAX_PRECISION: usize = 1000;

pub(super) fn format<'a>(work: &mut Work, args: Args<'_, 'a>) -> Out<'a> {
    let template = string(args.get(0)?)?;
    let Value::List(values) = args.get(1)? else { return Err(EvalError::overload()) };
    let mut out = String::with_capacity(template.len());
    let mut next = 0;
    let mut chars = template.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.peek() == Some(&'%') {
            chars.next();
            out.push('%');
            continue;
        }
        let mut precision = None;
        if chars.peek() == Some(&'.') {
            chars.next();
            let mut digits = String::new();
            while let Some(d) = chars.next_if(char::is_ascii_digit) {
                digits.push(d);
            }
            let n: usize = digits.parse().map_err(|_| {
                EvalError::failed("could not parse formatting clause: error while parsing precision")
            })?;
            precision = Some(n.min(MAX_PRECISION));
        }
        let Some(verb) = chars.next() else {
            return Err(EvalError::failed(
                "could not parse formatting clause: unexpected end of format string",
            ));
        };
        let Some(value) = values.get(next) else {
            return Err(EvalError::failed(format!("index {next} out of range")));
        };
        next += 1;
        let text = clause(verb, precision, &value?, work)?;
        work.spend(text.len())?;
        out.push_str(&text);
    }
    Ok(Value::text(out))
}

fn wrong(verb: &str, v: &Value<'_>, allowed: &str) -> EvalError {
    EvalError::failed(format!(
        "error during formatting: {verb} clause can only be used on {allowed}, was given {}",
        v.type_name()
    ))
}

fn clause(verb: char, precision: Option<usize>, v: &Value<'_>, work: &mut Work) -> Result<String, EvalError> {
    let digits = precision.unwrap_or(6);
    Ok(match (verb, v) {
        ('s', v) => string_form(v, work)?,
        ('d', Value::Int(n)) => n.to_string(),
        ('d', Value::Uint(n)) => n.to_string(),
        ('d', Value::Double(d)) if d.fract() == 0.0 => format!("{d:.0}"),
        ('d', v) => return Err(wrong("decimal", v, "integers")),
        ('f' | 'e', Value::Double(d)) if d.is_nan() => "NaN".to_owned(),
        ('f' | 'e', Value::Double(d)) if d.is_infinite() => {
            if *d > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
        }
        ('f', v) => format!("{:.digits$}", number(v).ok_or_else(|| wrong("fixed-point", v, "doubles"))?),
        ('e', v) => exponent(number(v).ok_or_else(|| wrong("scientific", v, "doubles"))?, digits),
        ('b', Value::Int(n)) => signed(*n, |m| format!("{m:b}")),
        ('b', Value::Uint(n)) => format!("{n:b}"),
        ('b', Value::Bool(b)) => u8::from(*b).to_string(),
        ('o', Value::Int(n)) => signed(*n, |m| format!("{m:o}")),
        ('o', Value::Uint(n)) => format!("{n:o}"),
        ('x', Value::Int(n)) => signed(*n, |m| format!("{m:x}")),
        ('X', Value::Int(n)) => signed(*n, |m| format!("{m:X}")),
        ('x', Value::Uint(n)) => format!("{n:x}"),
        ('X', Value::Uint(n)) => format!("{n:X}"),
        ('x' | 'X', Value::String(s)) => hex(s.as_bytes(), verb == 'X'),
        ('x' | 'X', Value::Bytes(b)) => hex(b, verb == 'X'),
        ('b', v) => return Err(wrong("binary", v, "integers and bools")),
        ('o', v) => return Err(wrong("octal", v, "integers")),
        ('x' | 'X', v) => return Err(wrong("hex", v, "integers, byte buffers, and strings")),
        (verb, _) => {
            return Err(EvalError::failed(format!(
                "could not parse formatting clause: unrecognized formatting clause {:?}",
                verb.to_string()
            )));
        }
    })
}

#[expect(clippy::cast_precision_loss, reason = "the result is a double")]
fn number(v: &Value<'_>) -> Option<f64> {
    match v {
        Value::Double(d) => Some(*d),
        Value::Int(n) => Some(*n as f64),
        Value::Uint(n) => Some(*n as f64),
        _ => None,
    }
}

fn signed(n: i64, f: impl Fn(u64) -> String) -> String {
    let sign = if n < 0 { "-" } else { "" };
    format!("{sign}{}", f(n.unsigned_abs()))
}

fn hex(bytes: &[u8], upper: bool) -> String {
    let digits = encoding::hex(bytes);
    if upper { digits.to_uppercase() } else { digits }
}

/// `1.500000×10⁰⁰`: the exponent in superscript, as upstream prints it.
fn exponent(d: f64, digits: usize) -> String {
    const SUPERSCRIPT: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = format!("{d:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let n: i32 = exponent.parse().unwrap_or(0);
    let raised: String = format!("{:02}", n.abs())
        .chars()
        .filter_map(|c| SUPERSCRIPT.get(usize::try_from(c.to_digit(10)?).ok()?))
        .collect();
    format!("{mantissa}×10{}{raised}", if n < 0 { "⁻" } else { "" })
}

/// What `%s` prints: text as it is, lists and maps with their elements.
fn string_form(v: &Value<'_>, work: &mut Work) -> Result<String, EvalError> {
    work.spend(1)?;
    Ok(match v {
        Value::Null => "null".to_owned(),
        Value::Double(d) if d.is_nan() => "NaN".to_owned(),
        Value::Double(d) if d.is_infinite() => if *d > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        Value::List(list) => {
            let parts = list.iter().map(|item| string_form(&item?, work)).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", parts.join(", "))
        }
        Value::Map(map) => {
            let mut parts = Vec::new();
            for key in map.keys() {
                let value = map.find(&key)?.unwrap_or(Value::Null);
                parts.push(format!("{}: {}", string_form(&key, work)?, string_form(&value, work)?));
            }
            parts.sort();
            format!("{{{}}}", parts.join(", "))
        }
        v => to_text(v).map_err(|_| {
            wrong(
                "string",
                v,
                "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
            )
        })?,
    })
}
