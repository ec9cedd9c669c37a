//! Conversions between types: `int(x)`, `string(x)` and so on.

use super::{Args, Out, Table};
use crate::time::{self, Instant};
use crate::value::{EvalError, Value};
use transom_go::strconv::{parse_bool, shortest_float};
use transom_go::time::duration;

fn refuse(v: &Value<'_>, to: &str) -> EvalError {
    EvalError::failed(format!("type conversion error from '{}' to '{to}'", v.type_name()))
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
fn to_int<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let v = args.get(0)?;
    let overflow = || EvalError::failed("integer overflow");
    Ok(Value::Int(match v {
        Value::Int(n) => *n,
        Value::Uint(n) => i64::try_from(*n).map_err(|_| overflow())?,
        Value::Double(d)
            if d.is_finite() && *d > -9.223_372_036_854_776e18 && *d < 9.223_372_036_854_776e18 =>
        {
            *d as i64
        }
        Value::Double(_) => return Err(overflow()),
        Value::String(s) => s.parse().map_err(|_| refuse(v, "int"))?,
        Value::Timestamp(t) => t.seconds(),
        Value::Duration(d) => *d,
        _ => return Err(EvalError::overload()),
    }))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
fn to_uint<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let v = args.get(0)?;
    let overflow = || EvalError::failed("unsigned integer overflow");
    Ok(Value::Uint(match v {
        Value::Uint(n) => *n,
        Value::Int(n) => u64::try_from(*n).map_err(|_| overflow())?,
        Value::Double(d) if *d >= 0.0 && *d < 1.844_674_407_370_955_2e19 => *d as u64,
        Value::Double(_) => return Err(overflow()),
        // Unlike Rust, Go takes no sign here.
        Value::String(s) if !s.starts_with('+') => s.parse().map_err(|_| refuse(v, "uint"))?,
        Value::String(_) => return Err(refuse(v, "uint")),
        _ => return Err(EvalError::overload()),
    }))
}

/// A double as Go reads it: one that is too large is an error, and `nan` has no sign.
fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.trim_start_matches(['+', '-']);
    let named = unsigned.starts_with(|c: char| c.is_ascii_alphabetic());
    let number: f64 = text.parse().ok()?;
    let signed_nan = number.is_nan() && unsigned.len() < text.len();
    (!signed_nan && (named || number.is_finite())).then_some(number)
}

#[expect(clippy::cast_precision_loss, reason = "the nearest double is the result")]
fn to_double<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let v = args.get(0)?;
    Ok(Value::Double(match v {
        Value::Double(d) => *d,
        Value::Int(n) => *n as f64,
        Value::Uint(n) => *n as f64,
        Value::String(s) => parse_double(s).ok_or_else(|| refuse(v, "double"))?,
        _ => return Err(EvalError::overload()),
    }))
}

fn to_bool<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let v = args.get(0)?;
    Ok(Value::Bool(match v {
        Value::Bool(b) => *b,
        Value::String(s) => parse_bool(s).ok_or_else(|| refuse(v, "bool"))?,
        _ => return Err(EvalError::overload()),
    }))
}

fn to_bytes<'a>(args: Args<'_, 'a>) -> Out<'a> {
    match args.get(0)? {
        Value::Bytes(b) => Ok(Value::Bytes(b.clone())),
        Value::String(s) => Ok(Value::Bytes(s.as_bytes().into())),
        _ => Err(EvalError::overload()),
    }
}

fn to_duration<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let v = args.get(0)?;
    match v {
        Value::Duration(d) => Ok(Value::Duration(*d)),
        // Declared, but not implemented upstream.
        Value::Int(_) => Err(refuse(v, "google.protobuf.Duration")),
        Value::String(s) => {
            duration::parse(s).map(Value::Duration).map_err(|_| refuse(v, "google.protobuf.Duration"))
        }
        _ => Err(EvalError::overload()),
    }
}

fn to_timestamp<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let v = args.get(0)?;
    match v {
        Value::Timestamp(t) => Ok(Value::Timestamp(*t)),
        Value::Int(n) => Instant::from_seconds(*n)
            .map(Value::Timestamp)
            .ok_or_else(|| EvalError::failed("timestamp overflow")),
        Value::String(s) => {
            let moment = Instant::parse(s).ok_or_else(|| refuse(v, "google.protobuf.Timestamp"))?;
            moment.in_range().map(Value::Timestamp).ok_or_else(|| EvalError::failed("timestamp overflow"))
        }
        _ => Err(EvalError::overload()),
    }
}

/// What `string(v)` gives.
fn to_string<'a>(args: Args<'_, 'a>) -> Out<'a> {
    match args.get(0)? {
        // It has a text, which `format` shows, but there is no overload for it.
        Value::Type(_) => Err(EvalError::overload()),
        v => to_text(v).map(Value::text),
    }
}

/// A value as text, in messages and formatted texts, too.
pub(crate) fn to_text(v: &Value<'_>) -> Result<String, EvalError> {
    Ok(match v {
        Value::String(s) => (**s).to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Uint(n) => n.to_string(),
        Value::Double(d) => shortest_float(*d),
        Value::Bytes(b) => String::from_utf8(b.to_vec())
            .map_err(|_| EvalError::failed("invalid UTF-8 in bytes, cannot convert to string"))?,
        Value::Timestamp(t) => t.to_string(),
        Value::Duration(d) => time::format_duration(*d),
        Value::Type(name) => (*name).to_owned(),
        Value::Opaque(o) if matches!(o.type_name(), "net.IP" | "net.CIDR") => o.to_string(),
        _ => return Err(EvalError::overload()),
    })
}

pub(super) fn declare(t: &mut Table) {
    t.global("dyn", "to_dyn", "A", "dyn", |_, a| a.get(0).cloned());
    let types = [
        ("bool", "bool"),
        ("bytes", "bytes"),
        ("double", "double"),
        ("duration", "duration"),
        ("int64", "int"),
        ("string", "string"),
        ("timestamp", "timestamp"),
        ("uint64", "uint"),
    ];
    let name_of = |ty: &str| types.iter().find(|(_, t)| *t == ty).map_or("", |(n, _)| n);
    let mut convert = |to: &str, from: &[&str], run: super::Run| {
        for ty in from {
            let id = format!("{}_to_{}", name_of(ty), name_of(to));
            t.global(to, &id, ty, to, run);
        }
    };
    convert("bool", &["bool", "string"], |_, a| to_bool(a));
    convert("bytes", &["bytes", "string"], |_, a| to_bytes(a));
    convert("double", &["double", "int", "string", "uint"], |_, a| to_double(a));
    convert("duration", &["duration", "int", "string"], |_, a| to_duration(a));
    convert("int", &["int", "double", "duration", "string", "timestamp", "uint"], |_, a| to_int(a));
    convert("timestamp", &["timestamp", "int", "string"], |_, a| to_timestamp(a));
    convert("uint", &["uint", "double", "int", "string"], |_, a| to_uint(a));
    let all = ["string", "bool", "bytes", "double", "duration", "int", "timestamp", "uint"];
    convert("string", &all, |_, a| to_string(a));
    t.global("string", "ip_to_string", "net.IP", "string", |_, a| to_string(a));
    t.global("string", "cidr_to_string", "net.CIDR", "string", |_, a| to_string(a));
}
