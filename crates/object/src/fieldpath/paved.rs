//! Getting, setting, deleting and expanding along a path.

use super::{Error, Segment, format, parse};
use crate::json::MAX_DEPTH;
use crate::quote::quote;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Indices beyond are not set: one short path must not allocate without bound.
pub const MAX_INDEX: usize = 1024;

static NULL: Value = Value::Null;

fn parse_in_context(path: &str) -> Result<Vec<Segment>, Error> {
    parse(path).map_err(|error| error.context(format_args!("cannot parse path {}", quote(path))))
}

/// The value at a path. The empty path gives null.
pub fn get<'v>(root: &'v Value, path: &str) -> Result<&'v Value, Error> {
    get_segments(root, &parse_in_context(path)?)
}

/// The value at a path that has been parsed.
pub fn get_segments<'v>(root: &'v Value, segments: &[Segment]) -> Result<&'v Value, Error> {
    let mut here = if segments.is_empty() { &NULL } else { root };
    for (i, segment) in segments.iter().enumerate() {
        here = match (segment, here) {
            (Segment::Index(index), Value::Array(items)) => items
                .get(*index)
                .ok_or_else(|| Error::missing(format!("{}: no such element", format(&segments[..=i]))))?,
            (Segment::Index(_), _) => {
                return Err(Error::new(format!("{}: not an array", format(&segments[..i]))));
            }
            (Segment::Field(name), Value::Object(map)) => map
                .get(name)
                .ok_or_else(|| Error::missing(format!("{}: no such field", format(&segments[..=i]))))?,
            // The root is always an object, if an empty one.
            (Segment::Field(_), Value::Null) if i == 0 => {
                return Err(Error::missing(format!("{}: no such field", format(&segments[..1]))));
            }
            (Segment::Field(_), Value::Null) => {
                return Err(Error::missing(format!("{}: expected map, got nil", format(&segments[..i]))));
            }
            (Segment::Field(_), _) => {
                return Err(Error::new(format!("{}: not an object", format(&segments[..i]))));
            }
        };
    }
    Ok(here)
}

/// The string at a path; an error if it is missing or of another type.
pub fn get_string<'v>(root: &'v Value, path: &str) -> Result<&'v str, Error> {
    get(root, path)?.as_str().ok_or_else(|| Error::new(format!("{path}: not a string")))
}

/// The boolean at a path; an error if it is missing or of another type.
pub fn get_bool(root: &Value, path: &str) -> Result<bool, Error> {
    get(root, path)?.as_bool().ok_or_else(|| Error::new(format!("{path}: not a bool")))
}

/// An integer; every float is refused.
pub fn get_integer(root: &Value, path: &str) -> Result<i64, Error> {
    get(root, path)?.as_i64().ok_or_else(|| Error::new(format!("{path}: not a (int64) number")))
}

/// The strings of the array at a path; an error if one of them is not a string.
pub fn get_string_array(root: &Value, path: &str) -> Result<Vec<String>, Error> {
    let items = get(root, path)?.as_array().ok_or_else(|| Error::new(format!("{path}: not an array")))?;
    let strings = items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<_>>();
    strings.ok_or_else(|| Error::new(format!("{path}: not an array of strings")))
}

/// The strings of the object at a path; an error if one of them is not a string.
pub fn get_string_object(root: &Value, path: &str) -> Result<BTreeMap<String, String>, Error> {
    let map = get(root, path)?.as_object().ok_or_else(|| Error::new(format!("{path}: not an object")))?;
    let strings =
        map.iter().map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect::<Option<_>>();
    strings.ok_or_else(|| Error::new(format!("{path}: not an object with string field values")))
}

/// Sets the value at a path, making what is missing on the way: objects, and arrays long enough. An element
/// that is null counts as missing, a field that is null does not. The empty path does nothing.
pub fn set(root: &mut Value, path: &str, value: Value) -> Result<(), Error> {
    set_segments(root, &parse_in_context(path)?, value)
}

pub(super) fn set_segments(root: &mut Value, segments: &[Segment], value: Value) -> Result<(), Error> {
    for segment in segments {
        if let Segment::Index(index) = segment
            && *index > MAX_INDEX
        {
            return Err(Error::new(format!("index {index} is greater than max allowed index {MAX_INDEX}")));
        }
    }
    if segments.len() > MAX_DEPTH {
        return Err(Error::new(format!("path of {} segments is longer than {MAX_DEPTH}", segments.len())));
    }
    if root.is_null() {
        *root = Value::Object(Map::new());
    }
    let Some((last, parents)) = segments.split_last() else { return Ok(()) };
    let mut here = root;
    for (i, segment) in parents.iter().enumerate() {
        here = match (segment, here) {
            (Segment::Index(index), Value::Array(items)) => {
                let Some(item) = items.get_mut(*index) else { return Err(not_a("n array", &segments[..i])) };
                if item.is_null() {
                    *item = container(&segments[i + 1]);
                }
                item
            }
            (Segment::Field(name), Value::Object(map)) => {
                map.entry(name.clone()).or_insert_with(|| container(&segments[i + 1]))
            }
            (Segment::Index(_), _) => return Err(not_a("n array", &segments[..i])),
            (Segment::Field(_), _) => return Err(not_a("n object", &segments[..i])),
        };
        if let (Value::Array(items), Segment::Index(next)) = (&mut *here, &segments[i + 1])
            && items.len() <= *next
        {
            items.resize(next + 1, Value::Null);
        }
    }
    match (last, here) {
        (Segment::Index(index), Value::Array(items)) if *index < items.len() => items[*index] = value,
        (Segment::Field(name), Value::Object(map)) => {
            map.insert(name.clone(), value);
        }
        (Segment::Index(_), _) => return Err(not_a("n array", parents)),
        (Segment::Field(_), _) => return Err(not_a("n object", parents)),
    }
    Ok(())
}

/// What a segment can be looked up in.
fn container(next: &Segment) -> Value {
    match next {
        Segment::Index(_) => Value::Array(Vec::new()),
        Segment::Field(_) => Value::Object(Map::new()),
    }
}

fn not_a(kind: &str, segments: &[Segment]) -> Error {
    Error::new(format!("{} is not a{kind}", format(segments)))
}

/// Deletes what a path names; later elements of an array move up. Deleting what does not exist is not an error.
pub fn delete(root: &mut Value, path: &str) -> Result<(), Error> {
    let segments = parse_in_context(path)?;
    let Some((last, parents)) = segments.split_last() else { return Ok(()) };
    let mut here = root;
    for (i, segment) in parents.iter().enumerate() {
        let next = match (segment, here) {
            (Segment::Index(index), Value::Array(items)) => items.get_mut(*index),
            (Segment::Field(name), Value::Object(map)) => map.get_mut(name),
            (Segment::Field(_), Value::Null) if i == 0 => None,
            (Segment::Index(_), _) => return Err(not_a("n array", &segments[..i])),
            (Segment::Field(_), _) => return Err(not_a("n object", &segments[..i])),
        };
        match next {
            Some(next) => here = next,
            None => return Ok(()),
        }
    }
    let refused = |words: &str| Err(Error::new(format!("cannot delete {}: {words}", format(&segments))));
    match (last, here) {
        (Segment::Index(index), Value::Array(items)) => {
            if *index < items.len() {
                items.remove(*index);
            }
        }
        (Segment::Field(name), Value::Object(map)) => {
            map.remove(name);
        }
        (Segment::Field(_), Value::Null) if parents.is_empty() => {}
        (Segment::Index(_), _) => return refused("not an array"),
        (Segment::Field(_), _) => return refused("not an object"),
    }
    Ok(())
}

/// The paths that a path with wildcards matches in an object, in the order of its arrays and keys. Paths
/// that lead nowhere are left out.
pub fn expand(root: &Value, path: &str) -> Result<Vec<String>, Error> {
    let segments = parse_in_context(path)?;
    let empty = Value::Object(Map::new());
    let root = if root.is_null() { &empty } else { root };
    let mut found = Vec::new();
    expand_segments(root, &segments, &mut found).map_err(|e| {
        e.context(format_args!("cannot expand wildcards for segments: {}", quote(&format(&segments))))
    })?;
    Ok(found)
}

fn expand_segments(root: &Value, segments: &[Segment], found: &mut Vec<String>) -> Result<(), Error> {
    let Some(star) = segments.iter().position(Segment::is_wildcard) else {
        return match get_segments(root, segments) {
            Ok(_) => {
                found.push(format(segments));
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        };
    };
    let before = &segments[..star];
    let here = if before.is_empty() { Ok(root) } else { get_segments(root, before) };
    let choices: Vec<Segment> = match here {
        Ok(Value::Array(items)) => (0..items.len()).map(Segment::Index).collect(),
        // A literal key `*` would stand for itself again, without end.
        Ok(Value::Object(map)) => {
            map.keys().map(|key| Segment::field(key)).filter(|segment| !segment.is_wildcard()).collect()
        }
        Ok(Value::Null) => {
            return Err(Error::missing(format!(
                "wildcard field {} is not found in the path",
                quote(&format(before))
            )));
        }
        Ok(_) => return Err(Error::new(format!("{}: unexpected wildcard usage", quote(&format(before))))),
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    for choice in choices {
        let mut expanded = segments.to_vec();
        expanded[star] = choice;
        let shown = quote(&format(&expanded));
        expand_segments(root, &expanded, found)
            .map_err(|error| error.context(format_args!("{shown}: cannot expand wildcards")))?;
    }
    Ok(())
}
