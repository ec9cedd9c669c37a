//! Transforms: a value goes in, another comes out. Values are Go's, because their types decide what a transform
//! accepts and their printed forms are what it yields.

mod convert;
mod math;
mod strings;

use serde_json::Value;
use transom_go::regexp::{self, Limits};
use transom_gotemplate::Value as Go;

use super::document::{Numbers, text_of, to_go};
use super::input::{FallbackTo, Match, Pattern, PatternType, Transform, TransformType};

/// No transform makes a text longer than this: a short list of them could otherwise multiply one without end.
pub(super) const MAX_TEXT_BYTES: usize = 16 << 20;

/// How texts are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    /// As the function does it: a separator after every element, and one byte off the end.
    Function,
    /// As compositions without functions did it: separators between elements.
    Native,
}

#[cfg(test)]
pub(crate) use convert::converted;

/// Runs transforms one after the other.
pub(super) fn resolve(transforms: &[Transform], input: Go, join: Join) -> Result<Go, String> {
    let mut value = input;
    for (i, transform) in transforms.iter().enumerate() {
        value = resolve_one(transform, value, join)
            .map_err(|e| format!("transform at index {i} returned error: {e}"))?;
    }
    Ok(value)
}

fn resolve_one(transform: &Transform, input: Go, join: Join) -> Result<Go, String> {
    let missing = || format!("given transform type {} requires configuration", transform.kind);
    let resolved = match &transform.kind {
        TransformType::Math => math::resolve(transform.math.as_ref().ok_or_else(missing)?, &input),
        TransformType::Map => map(transform.map.as_ref().ok_or_else(missing)?, &input),
        TransformType::Match => r#match(transform.r#match.as_ref().ok_or_else(missing)?, input),
        TransformType::String => {
            strings::resolve(transform.string.as_ref().ok_or_else(missing)?, &input, join).map(Go::str)
        }
        TransformType::Convert => convert::resolve(transform.convert.as_ref().ok_or_else(missing)?, input),
        TransformType::Unknown(kind) => return Err(format!("transform type {kind} is not supported")),
    };
    resolved.map_err(|e| format!("{} transform could not resolve: {e}", transform.kind))
}

fn map(pairs: &std::collections::BTreeMap<String, Value>, input: &Go) -> Result<Go, String> {
    let Go::Str(key) = input else {
        return Err(format!("type {} is not supported for map transform", input.type_name()));
    };
    let key = key.lossy();
    match pairs.get(&*key) {
        None => Err(format!("key {key} is not found in map")),
        // The original keeps no text for null.
        Some(Value::Null) => {
            Err(format!("value for key {key} is not valid JSON: unexpected end of JSON input"))
        }
        Some(value) => Ok(to_go(value, Numbers::Floats)),
    }
}

fn r#match(config: &Match, input: Go) -> Result<Go, String> {
    let result =
        |value: &Option<Value>| value.as_ref().map_or(Go::Nil, |value| to_go(value, Numbers::Floats));
    for (i, pattern) in config.patterns.iter().enumerate() {
        if matches(pattern, &input).map_err(|e| format!("cannot match pattern at index {i}: {e}"))? {
            return Ok(result(&pattern.result));
        }
    }
    match (&config.fallback_to, &config.fallback_value) {
        (FallbackTo::Input, Some(_)) => {
            Err("cannot set both a fallback value and the fallback to input flag".to_owned())
        }
        (FallbackTo::Input, None) => Ok(input),
        (_, value) => Ok(result(value)),
    }
}

fn matches(pattern: &Pattern, input: &Go) -> Result<bool, String> {
    let unsupported = |kind: &str| format!("unsupported input type '{kind}'");
    match &pattern.kind {
        PatternType::Literal => {
            let literal = pattern.literal.as_ref().ok_or("literal is required by type literal")?;
            let Go::Str(text) = input else { return Err(unsupported(&input.type_name())) };
            Ok(**text == *literal.as_bytes())
        }
        PatternType::Regexp => {
            let regexp = pattern.regexp.as_ref().ok_or("regexp is required by type regexp")?;
            let regexp = regexp::compile_bytes(regexp, Limits::default())
                .map_err(|e| format!("cannot compile regexp: {e}"))?;
            match input {
                Go::Str(text) => Ok(regexp.is_match(text_of(text).as_bytes())),
                Go::Nil | Go::Missing => Err(unsupported("null")),
                other => Err(unsupported(&other.type_name())),
            }
        }
        PatternType::Unknown(kind) => Err(format!("unsupported pattern type '{kind}'")),
    }
}
