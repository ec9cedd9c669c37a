//! `print printf println html js urlquery`: text from values.

use super::env::{CallError, Env};
use super::{Native, Type, variadic};
use crate::value::{Str, Value};
use transom_go::fmt;
use transom_go::unicode::is_print;
use transom_go::utf8::decode_rune;

const ANY: &[Type] = &[Type::Any];

pub(super) const FUNCTIONS: &[Native] = &[
    variadic("print", ANY, |env, args| Ok(Value::str(env.sprint(args)?))),
    variadic("printf", &[Type::Str, Type::Any], |env, args| match &args[0] {
        Value::Str(format) => Ok(Value::str(env.sprintf(format, &args[1..])?)),
        _ => Err("format is not a string".into()),
    }),
    variadic("println", ANY, |env, args| {
        let text = fmt::try_sprintln(args, env.room());
        Ok(Value::str(env.text_result(text)?))
    }),
    variadic("html", ANY, |env, args| escaped(env, args, html_escape)),
    variadic("js", ANY, |env, args| escaped(env, args, js_escape)),
    variadic("urlquery", ANY, |env, args| escaped(env, args, query_escape)),
];

fn escaped(env: &mut Env<'_>, args: &[Value], escape: fn(&[u8]) -> Vec<u8>) -> Result<Value, CallError> {
    let text: Str = match args {
        [Value::Str(text)] => text.clone(),
        // A nil argument is shown as the template itself would show it.
        _ => {
            let shown: Vec<Value> = args
                .iter()
                .map(|arg| if arg.is_nil() { Value::str("<no value>") } else { arg.clone() })
                .collect();
            Str::from(env.sprint(&shown)?)
        }
    };
    env.allocate(text.len() * 3)?;
    Ok(Value::str(escape(&text)))
}

fn html_escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            0 => out.extend_from_slice("\u{FFFD}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            _ => out.push(*byte),
        }
    }
    out
}

fn js_escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        let (rune, width) = decode_rune(&text[at..]);
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\'' => out.extend_from_slice(b"\\'"),
            b'"' => out.extend_from_slice(b"\\\""),
            b'<' | b'>' | b'&' | b'=' | 0..=0x1F => {
                out.extend_from_slice(format!("\\u{byte:04X}").as_bytes());
            }
            0x80.. if !is_print(rune) => {
                out.extend_from_slice(format!("\\u{:04X}", u32::from(rune)).as_bytes());
            }
            _ => out.extend_from_slice(&text[at..at + width]),
        }
        at += width;
    }
    out
}

/// `url.QueryEscape`.
fn query_escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b' ' => out.push(b'+'),
            b'-' | b'_' | b'.' | b'~' => out.push(*byte),
            _ if byte.is_ascii_alphanumeric() => out.push(*byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}
