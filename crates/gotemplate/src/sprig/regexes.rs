//! sprig's functions with regular expressions, in Go's syntax. Programs of patterns are bounded in size.

use std::rc::Rc;

use regex::bytes::Regex;

use super::args::{int, text};
use crate::functions::{CallError, Env, Native, Type, fixed};
use crate::value::{List, ListType, Str, Value};
use transom_go::regexp::{Limits, compile_bytes};
use transom_go::unicode::{is_digit, is_letter};
use transom_go::utf8::runes;

const STR2: &[Type] = &[Type::Str, Type::Str];
const STR3: &[Type] = &[Type::Str, Type::Str, Type::Str];
const STR2_INT: &[Type] = &[Type::Str, Type::Str, Type::Int];

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("regexMatch", STR2, |env, args| match is_match(env, args) {
        Err(CallError::Message(_)) => Ok(Value::Bool(false)),
        other => other,
    }),
    fixed("mustRegexMatch", STR2, is_match),
    fixed("regexFindAll", STR2_INT, |env, args| find_all(env, args).map_err(|error| panicked(error, args))),
    fixed("mustRegexFindAll", STR2_INT, find_all),
    fixed("regexFind", STR2, |env, args| find(env, args).map_err(|error| panicked(error, args))),
    fixed("mustRegexFind", STR2, find),
    fixed("regexReplaceAll", STR3, |env, args| {
        replace(env, args, true).map_err(|error| panicked(error, args))
    }),
    fixed("mustRegexReplaceAll", STR3, |env, args| replace(env, args, true)),
    fixed("regexReplaceAllLiteral", STR3, |env, args| {
        replace(env, args, false).map_err(|error| panicked(error, args))
    }),
    fixed("mustRegexReplaceAllLiteral", STR3, |env, args| replace(env, args, false)),
    fixed("regexSplit", STR2_INT, |env, args| split(env, args).map_err(|error| panicked(error, args))),
    fixed("mustRegexSplit", STR2_INT, split),
    fixed("regexQuoteMeta", &[Type::Str], |env, args| {
        let mut quoted = Vec::new();
        for byte in text(args, 0)?.iter() {
            if b"\\.+*?()|[]{}^$".contains(byte) {
                quoted.push(b'\\');
            }
            quoted.push(*byte);
        }
        env.string(quoted)
    }),
];

/// The plain forms use `MustCompile`, which panics with the pattern in the message.
fn panicked(error: CallError, args: &[Value]) -> CallError {
    match (error, args.first()) {
        (CallError::Message(message), Some(Value::Str(pattern))) => {
            let shown = transom_go::fmt::sprintf("%#q", &[Value::Str(pattern.clone())]);
            format!("regexp: Compile({shown}): {message}").into()
        }
        (error, _) => error,
    }
}

/// What a pattern's program may take; less than elsewhere, because one template can have many patterns.
const MAX_PROGRAM_BYTES: usize = 2 << 20;

fn compiled(env: &mut Env<'_>, pattern: &Str, text: &Str) -> Result<Rc<Regex>, CallError> {
    // Matching costs at most pattern × text.
    env.spend(1 + text.len().saturating_mul(1 + pattern.len() / 16) / 32)?;
    if let Some(regex) = env.patterns.get(pattern) {
        return Ok(regex.clone());
    }
    // Compiling costs what repetitions unfold to.
    env.spend(1000 + pattern.len() * 20 + unfolded(pattern) * 200)?;
    let limits = Limits { program_bytes: MAX_PROGRAM_BYTES };
    let regex = compile_bytes(&pattern.lossy(), limits).map_err(|error| error.to_string())?;
    let regex = Rc::new(regex);
    env.allocate(MAX_PROGRAM_BYTES / 64)?;
    env.patterns.insert(pattern.clone(), regex.clone());
    Ok(regex)
}

/// How many copies of parts the counts in a pattern ask for: those within others multiply, up to what Go permits.
fn unfolded(pattern: &[u8]) -> usize {
    const MAX_REPEATS: usize = 1000;
    let groups = pattern.split(|byte| *byte == b'{').skip(1);
    let counts = groups.filter_map(|group| {
        let count = group.split(|byte| *byte == b'}').next()?.rsplit(|byte| *byte == b',').next()?;
        std::str::from_utf8(count).ok()?.parse::<usize>().ok().map(|count| count.min(MAX_REPEATS))
    });
    let (sum, product) = counts.fold((0_usize, 1_usize), |(sum, product), count| {
        (sum.saturating_add(count), product.saturating_mul(count.max(1)).min(MAX_REPEATS))
    });
    if sum == 0 { 0 } else { sum.saturating_add(product) }
}

fn is_match(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let regex = compiled(env, text(args, 0)?, text(args, 1)?)?;
    Ok(Value::Bool(regex.is_match(text(args, 1)?)))
}

fn limit(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Matches as Go yields them: an empty match right after the previous match does not count.
fn spans(regex: &Regex, text: &[u8], count: usize) -> Vec<(usize, usize)> {
    let spans = regex.find_iter(text).map(|found| (found.start(), found.end()));
    spans.filter(|(start, end)| start != end || is_boundary(text, *start)).take(count).collect()
}

/// Over bytes the crate also finds empty matches inside a rune, where Go never looks.
fn is_boundary(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|byte| byte & 0xC0 != 0x80)
}

fn find_all(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let whole = text(args, 1)?;
    let regex = compiled(env, text(args, 0)?, whole)?;
    let found = spans(&regex, whole, limit(int(args, 2)?));
    env.allocate_elements(found.len())?;
    if found.is_empty() {
        return Ok(Value::List(List::nil(ListType::Str)));
    }
    Ok(Value::strings(found.into_iter().map(|(start, end)| &whole[start..end])))
}

fn find(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let whole = text(args, 1)?;
    let regex = compiled(env, text(args, 0)?, whole)?;
    let found = regex.find(whole).map(|found| found.as_bytes()).unwrap_or_default();
    env.string(found)
}

fn replace(env: &mut Env<'_>, args: &[Value], expand: bool) -> Result<Value, CallError> {
    let (whole, template) = (text(args, 1)?, text(args, 2)?);
    let regex = compiled(env, text(args, 0)?, whole)?;
    let mut out = Vec::new();
    let mut at = 0;
    for captures in regex.captures_iter(whole) {
        let Some(found) = captures.get(0) else { continue };
        if found.is_empty() && !is_boundary(whole, found.start()) {
            continue;
        }
        out.extend_from_slice(&whole[at..found.start()]);
        if expand {
            expand_into(&mut out, template, &captures);
        } else {
            out.extend_from_slice(template);
        }
        at = found.end();
        env.allocate(template.len())?;
        if out.len() > env.room() {
            env.allocate(out.len())?;
        }
    }
    out.extend_from_slice(&whole[at..]);
    env.string(out)
}

/// Go's `Expand`: `$name` takes the longest name, `$$` is a dollar, an unknown name is empty.
fn expand_into(out: &mut Vec<u8>, mut template: &[u8], captures: &regex::bytes::Captures<'_>) {
    while let Some(at) = template.iter().position(|byte| *byte == b'$') {
        out.extend_from_slice(&template[..at]);
        template = &template[at + 1..];
        if template.first() == Some(&b'$') {
            out.push(b'$');
            template = &template[1..];
            continue;
        }
        let Some((name, rest)) = reference(template) else {
            out.push(b'$');
            continue;
        };
        let group = match name.parse::<usize>() {
            Ok(index) => captures.get(index),
            Err(_) => captures.name(name),
        };
        out.extend_from_slice(group.map(|group| group.as_bytes()).unwrap_or_default());
        template = rest;
    }
    out.extend_from_slice(template);
}

fn reference(template: &[u8]) -> Option<(&str, &[u8])> {
    let braced = template.first() == Some(&b'{');
    let body = &template[usize::from(braced)..];
    let word = |rune: char| rune == '_' || is_letter(rune) || is_digit(rune);
    let length = runes(body).find(|(_, rune, _)| !word(*rune)).map_or(body.len(), |(at, _, _)| at);
    let name = std::str::from_utf8(&body[..length]).ok().filter(|name| !name.is_empty())?;
    let rest = &body[length..];
    if braced { rest.strip_prefix(b"}").map(|rest| (name, rest)) } else { Some((name, rest)) }
}

fn split(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let whole = text(args, 1)?;
    let regex = compiled(env, text(args, 0)?, whole)?;
    let count = int(args, 2)?;
    if count == 0 {
        return Ok(Value::List(List::nil(ListType::Str)));
    }
    if !text(args, 0)?.is_empty() && whole.is_empty() {
        return Ok(Value::strings([""]));
    }
    let matches = spans(&regex, whole, limit(count));
    env.allocate_elements(matches.len())?;
    let mut pieces: Vec<&[u8]> = Vec::new();
    let (mut start, mut end) = (0, 0);
    for (from, to) in matches {
        if count > 0 && pieces.len() + 1 == limit(count) {
            break;
        }
        end = from;
        if to != 0 {
            pieces.push(&whole[start..end]);
        }
        start = to;
    }
    if end != whole.len() {
        pieces.push(&whole[start..]);
    }
    Ok(Value::strings(pieces))
}
