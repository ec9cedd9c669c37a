//! The reader: events into values, with anchors, merge keys, and yaml.v3's refusal of duplicate keys.

use std::collections::HashMap;
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use crate::functions::{CallError, Env};
use crate::sprig::copy;
use crate::value::{Key, MAX_DEPTH, Map, MapType, Str, UintKind, Value};
use transom_go::encoding::base64_decode;
use transom_go::yaml::{Scalar, Version, resolve};

/// What a token of the parser takes, with the text beside it.
const TOKEN_BYTES: usize = 200;

pub(super) fn read(env: &mut Env<'_>, text: &str) -> Result<Value, CallError> {
    env.allocate(text.len().saturating_mul(2))?;
    // The parser keeps all of a collection in brackets until it is clear that it is not a key.
    let tokens = text.bytes().filter(|byte| b",:[]{}".contains(byte)).count();
    env.allocate(tokens.saturating_mul(TOKEN_BYTES))?;
    let mut reader = Reader { env, events: Parser::new_from_str(text), anchors: HashMap::new(), line: 0 };
    loop {
        match reader.next()? {
            None | Some(Event::StreamEnd) => return Ok(Value::Nil),
            Some(Event::StreamStart | Event::DocumentStart(_) | Event::Nothing | Event::DocumentEnd) => {}
            Some(event) => return reader.node(event, 0).map(Node::into_value),
        }
    }
}

struct Reader<'e, 'a, 'i> {
    env: &'e mut Env<'a>,
    events: Parser<'i, saphyr_parser::StrInput<'i>>,
    anchors: HashMap<usize, Value>,
    line: usize,
}

/// A value, or the `<<` of a merge.
enum Node {
    Value(Value),
    Merge,
}

impl Node {
    fn into_value(self) -> Value {
        match self {
            Node::Value(value) => value,
            Node::Merge => Value::str("<<"),
        }
    }
}

impl<'i> Reader<'_, '_, 'i> {
    fn next(&mut self) -> Result<Option<Event<'i>>, CallError> {
        self.env.spend(1)?;
        match self.events.next() {
            None => Ok(None),
            Some(Ok((event, span))) => {
                self.line = span.start.line();
                Ok(Some(event))
            }
            Some(Err(problem)) => {
                Err(format!("yaml: line {}: {}", problem.marker().line(), problem.info()).into())
            }
        }
    }

    fn node(&mut self, event: Event<'i>, depth: usize) -> Result<Node, CallError> {
        if depth > MAX_DEPTH {
            return Err("yaml: exceeded max depth".into());
        }
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                if plain && tag.is_none() && resolve(&text, Version::V3) == Scalar::Merge {
                    return Ok(Node::Merge);
                }
                self.env.allocate(text.len() + 16)?;
                (anchor, scalar(&text, plain, tag.as_deref())?)
            }
            Event::Alias(anchor) => {
                let Some(value) = self.anchors.get(&anchor).cloned() else {
                    return Err("yaml: unknown anchor referenced".into());
                };
                return Ok(Node::Value(copy(self.env, &value)?));
            }
            Event::SequenceStart(anchor, _) => (anchor, self.sequence(depth)?),
            Event::MappingStart(anchor, _) => (anchor, self.mapping(depth)?),
            _ => (0, Value::Nil),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(Node::Value(value))
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, CallError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                None | Some(Event::SequenceEnd) => return self.env.list(items),
                Some(event) => items.push(self.node(event, depth + 1)?.into_value()),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, CallError> {
        let mut entries: Vec<(Key, Value)> = Vec::new();
        let mut lines: HashMap<String, usize> = HashMap::new();
        let mut merges = Vec::new();
        let mut string_keys = true;
        loop {
            let event = match self.next()? {
                None | Some(Event::MappingEnd) => break,
                Some(event) => event,
            };
            if let Event::Scalar(text, ..) = &event
                && let Some(first) = lines.insert(text.to_string(), self.line)
            {
                let (line, shown) = (self.line, transom_go::fmt::sprintf("%q", &[Value::str(&**text)]));
                return Err(format!(
                    "yaml: unmarshal errors:\n  line {line}: mapping key {shown} already defined at line {first}"
                )
                .into());
            }
            let key = self.node(event, depth + 1)?;
            let Some(event) = self.next()? else { break };
            let value = self.node(event, depth + 1)?.into_value();
            self.env.allocate_elements(1)?;
            match key {
                Node::Merge => merges.push(value),
                Node::Value(key) => {
                    let key = map_key(&key)?;
                    string_keys &= matches!(key, Key::Str(_));
                    entries.push((key, value));
                }
            }
        }
        self.env.allocate_map(entries.len())?;
        let map = Map::new(if string_keys { MapType::StrAny } else { MapType::AnyAny });
        for (key, value) in entries {
            map.insert(key, value);
        }
        for merge in merges {
            merge_into(&map, &merge)?;
        }
        Ok(Value::Map(map))
    }
}

fn merge_into(map: &Map, merge: &Value) -> Result<(), CallError> {
    match merge {
        Value::Map(source) => {
            for (key, value) in source.to_vec() {
                if map.get(&key).is_none() {
                    map.insert(key, value);
                }
            }
            Ok(())
        }
        Value::List(sources) if sources.items().iter().all(|item| matches!(item, Value::Map(_))) => {
            sources.to_vec().iter().try_for_each(|source| merge_into(map, source))
        }
        _ => Err("yaml: map merge requires map or sequence of maps as the value".into()),
    }
}

fn map_key(key: &Value) -> Result<Key, CallError> {
    Ok(match key {
        Value::Nil | Value::Missing => Key::Nil,
        Value::Bool(value) => Key::Bool(*value),
        Value::Int(_, value) => Key::Int(*value),
        Value::Float(value) => Key::Float(*value),
        Value::Str(text) => Key::Str(text.clone()),
        other => {
            let shown = transom_go::fmt::sprintf("%#v", std::slice::from_ref(other));
            return Err(format!("yaml: invalid map key: {shown}").into());
        }
    })
}

fn scalar(text: &str, plain: bool, tag: Option<&Tag>) -> Result<Value, CallError> {
    let tag = tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
    let resolved = match (tag, plain) {
        (Some("str"), _) | (None, false) => return Ok(Value::str(text)),
        (Some("binary"), _) => {
            let decoded = base64_decode(text.as_bytes());
            let bytes = decoded.map_err(|_| "yaml: !!binary value contains invalid base64 data")?;
            return Ok(Value::Str(Str::from(bytes)));
        }
        _ => match resolve(text, Version::V3) {
            Scalar::Null => Value::Nil,
            Scalar::Merge | Scalar::Text => Value::str(text),
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Int(value) => Value::int(value),
            Scalar::Uint(value) => Value::Uint(UintKind::Uint64, value),
            Scalar::Float(value) => Value::Float(value),
            Scalar::Time(time) => Value::Time(Rc::new(time)),
        },
    };
    match (tag, resolved) {
        (Some("float"), Value::Int(_, value)) => Ok(Value::Float(value as f64)),
        (Some(wanted), found) => {
            let kind = match &found {
                Value::Nil => "null",
                Value::Bool(_) => "bool",
                Value::Int(..) | Value::Uint(..) => "int",
                Value::Float(_) => "float",
                Value::Time(_) => "timestamp",
                _ => "str",
            };
            let known = matches!(wanted, "null" | "bool" | "int" | "float" | "timestamp");
            if known && kind != wanted {
                return Err(format!("yaml: cannot decode !!{kind} `{text}` as a !!{wanted}").into());
            }
            Ok(found)
        }
        (None, found) => Ok(found),
    }
}
