//! `toJson` and `fromJson` by encoding/json: sorted keys, HTML escaped unless raw, every number a `float64`.

use super::args::text;
use crate::functions::{CallError, Env, Native, Type, fixed};
use crate::value::{Form, Key, ListType, MAX_DEPTH, Map, MapType, Value};
use transom_go::encoding::base64_encode;
use transom_go::json::{self, Html};
use transom_go::strconv::{Printable, quote_rune, shortest_float};

const ANY: &[Type] = &[Type::Any];
const STR: &[Type] = &[Type::Str];

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("toJson", ANY, |env, args| marshal(env, &args[0], HTML).or_else(swallow)),
    fixed("mustToJson", ANY, |env, args| marshal(env, &args[0], HTML)),
    fixed("toPrettyJson", ANY, |env, args| marshal(env, &args[0], PRETTY).or_else(swallow)),
    fixed("mustToPrettyJson", ANY, |env, args| marshal(env, &args[0], PRETTY)),
    fixed("toRawJson", ANY, |env, args| marshal(env, &args[0], RAW)),
    fixed("mustToRawJson", ANY, |env, args| marshal(env, &args[0], RAW)),
    fixed("fromJson", STR, |env, args| match unmarshal(env, text(args, 0)?) {
        Err(CallError::Message(_)) => Ok(Value::Nil),
        other => other,
    }),
    fixed("mustFromJson", STR, |env, args| unmarshal(env, text(args, 0)?)),
];

#[derive(Clone, Copy)]
struct Style {
    escape_html: bool,
    pretty: bool,
}

const HTML: Style = Style { escape_html: true, pretty: false };
const PRETTY: Style = Style { escape_html: true, pretty: true };
const RAW: Style = Style { escape_html: false, pretty: false };

fn swallow(error: CallError) -> Result<Value, CallError> {
    match error {
        CallError::Message(_) => Ok(Value::str("")),
        limit => Err(limit),
    }
}

fn marshal(env: &mut Env<'_>, value: &Value, style: Style) -> Result<Value, CallError> {
    let mut encoder = Encoder { env, style, out: Vec::new() };
    encoder.value(value, 0)?;
    let out = encoder.out;
    Ok(Value::str(out))
}

struct Encoder<'e, 'a> {
    env: &'e mut Env<'a>,
    style: Style,
    out: Vec<u8>,
}

impl Encoder<'_, '_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), CallError> {
        if depth > MAX_DEPTH {
            return Err("json: unsupported value: encountered a cycle".into());
        }
        self.env.spend(1)?;
        let before = self.out.len();
        match value {
            Value::Missing | Value::Nil => self.out.extend_from_slice(b"null"),
            Value::Bool(flag) => self.out.extend_from_slice(if *flag { b"true" } else { b"false" }),
            Value::Int(_, number) | Value::Named(_, number) => self.show(number),
            Value::Uint(_, number) => self.show(number),
            Value::Float(number) => self.float(*number)?,
            Value::Complex(..) => return Err("json: unsupported type: complex128".into()),
            Value::Str(text) => self.string(text),
            Value::List(list) if list.is_nil() => self.out.extend_from_slice(b"null"),
            Value::List(list) if list.ty() == ListType::Uint8 => {
                let encoded = base64_encode(&list.to_bytes().unwrap_or_default());
                self.string(encoded.as_bytes());
            }
            Value::List(list) => {
                let items = list.items();
                self.sequence(b'[', b']', items.iter(), depth, |encoder, item| {
                    encoder.value(item, depth + 1)
                })?;
            }
            Value::Map(map) if map.ty() == MapType::AnyAny => {
                return Err("json: unsupported type: map[interface {}]interface {}".into());
            }
            Value::Map(map) if map.is_nil() => self.out.extend_from_slice(b"null"),
            Value::Map(map) => {
                let entries = map.entries();
                self.sequence(b'{', b'}', entries.iter(), depth, |encoder, (key, item)| {
                    if let Key::Str(text) = key {
                        encoder.string(text);
                    }
                    encoder.colon();
                    encoder.value(item, depth + 1)
                })?;
            }
            Value::Struct(shape) if shape.form == Form::Instant => match shape.json_instant() {
                Some(text) => self.string(text.as_bytes()),
                None => self.out.extend_from_slice(b"null"),
            },
            Value::Struct(shape) => {
                self.sequence(b'{', b'}', shape.json_fields(), depth, |encoder, (name, item)| {
                    encoder.string(name.as_bytes());
                    encoder.colon();
                    encoder.value(item, depth + 1)
                })?;
            }
            Value::Time(time) => self.string(time.format("2006-01-02T15:04:05.999999999Z07:00").as_bytes()),
            Value::Version(version) => self.string(version.to_string().as_bytes()),
        }
        self.env.allocate(self.out.len() - before)?;
        Ok(())
    }

    fn sequence<T>(
        &mut self,
        open: u8,
        close: u8,
        items: impl Iterator<Item = T>,
        depth: usize,
        mut item: impl FnMut(&mut Self, T) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        self.out.push(open);
        let mut any = false;
        for element in items {
            if any {
                self.out.push(b',');
            }
            any = true;
            self.line(depth + 1);
            item(self, element)?;
        }
        if any {
            self.line(depth);
        }
        self.out.push(close);
        Ok(())
    }

    fn line(&mut self, depth: usize) {
        if self.style.pretty {
            self.out.push(b'\n');
            self.out.extend(std::iter::repeat_n(b' ', depth * 2));
        }
    }

    fn colon(&mut self) {
        self.out.push(b':');
        if self.style.pretty {
            self.out.push(b' ');
        }
    }

    fn show(&mut self, number: &impl ToString) {
        self.out.extend_from_slice(number.to_string().as_bytes());
    }

    fn float(&mut self, number: f64) -> Result<(), CallError> {
        if !number.is_finite() {
            return Err(format!("json: unsupported value: {}", shortest_float(number)).into());
        }
        self.out.extend_from_slice(json::format_float(number).as_bytes());
        Ok(())
    }

    fn string(&mut self, text: &[u8]) {
        let html = if self.style.escape_html { Html::Escaped } else { Html::Plain };
        json::append_string(&mut self.out, text, html);
    }
}

fn unmarshal(env: &mut Env<'_>, text: &[u8]) -> Result<Value, CallError> {
    // The parser's tree is built before ours, so its size is estimated from the text.
    let count = |byte: u8| text.iter().filter(|found| **found == byte).count();
    env.allocate(text.len().saturating_mul(4))?;
    env.allocate_elements((count(b',') + count(b'[')).saturating_mul(2))?;
    for _ in 0..count(b'{').saturating_mul(2) {
        env.allocate_map(1)?;
    }
    let text = String::from_utf8_lossy(text);
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(json) => Ok(decoded(&json)),
        Err(error) if error.is_eof() => Err("unexpected end of JSON input".into()),
        Err(error) => {
            let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or("");
            let found = line.chars().nth(error.column().saturating_sub(1)).unwrap_or(' ');
            Err(format!("invalid character {} looking for beginning of value", quoted_rune(found)).into())
        }
    }
}

fn quoted_rune(rune: char) -> String {
    quote_rune(u64::from(u32::from(rune)), Printable::Unicode)
}

/// Depth is bounded by the parser's own limit.
fn decoded(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Number(number) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        serde_json::Value::Array(items) => Value::list(items.iter().map(decoded).collect()),
        serde_json::Value::Object(entries) => {
            let map = Map::new(MapType::StrAny);
            for (key, value) in entries {
                map.insert(Key::str(key.as_str()), decoded(value));
            }
            Value::Map(map)
        }
        other => Value::from(other),
    }
}
