//! Text: cutting, joining, padding, quoting. Positions are bytes, as in Go.

use super::args::{int, text};
use super::convert::{strslice, strval};
use crate::functions::{CallError, Env, Native, Type, fixed, variadic};
use crate::value::{Key, List, ListType, Map, MapType, Str, Value};
use transom_go::strconv::{Printable, quote_bytes};
use transom_go::unicode::is_space;
use transom_go::utf8::runes;

const STR: &[Type] = &[Type::Str];
const STR2: &[Type] = &[Type::Str, Type::Str];
const INT_STR: &[Type] = &[Type::Int, Type::Str];
const ANYS: &[Type] = &[Type::Any];

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("abbrev", INT_STR, |env, args| {
        let (width, text) = (int(args, 0)?, text(args, 1)?);
        if width < 4 { Ok(args[1].clone()) } else { env.string(abbreviate(text, 0, width)?) }
    }),
    fixed("abbrevboth", &[Type::Int, Type::Int, Type::Str], |env, args| {
        let (left, right, text) = (int(args, 0)?, int(args, 1)?, text(args, 2)?);
        if right < 4 || left > 0 && right < 7 {
            return Ok(args[2].clone());
        }
        env.string(abbreviate(text, left, right)?)
    }),
    fixed("trunc", INT_STR, |env, args| {
        let (count, text) = (int(args, 0)?, text(args, 1)?);
        let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
        if count < 0 && length + count > 0 {
            env.string(&text[usize::try_from(length + count).unwrap_or(0)..])
        } else if count >= 0 && length > count {
            env.string(&text[..usize::try_from(count).unwrap_or(0)])
        } else {
            Ok(args[1].clone())
        }
    }),
    fixed("substr", &[Type::Int, Type::Int, Type::Str], |env, args| {
        let (start, end, text) = (int(args, 0)?, int(args, 1)?, text(args, 2)?);
        let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
        let (start, end) = if start < 0 {
            (0, end)
        } else if end < 0 || end > length {
            (start, length)
        } else {
            (start, end)
        };
        env.string(go_slice(text, start, end)?)
    }),
    fixed("trim", STR, |env, args| env.string(trim_space(text(args, 0)?))),
    fixed("repeat", INT_STR, |env, args| {
        let text = text(args, 1)?;
        let count = usize::try_from(int(args, 0)?).map_err(|_| "strings: negative Repeat count")?;
        env.allocate(text.len().saturating_mul(count))?;
        Ok(Value::str(text.repeat(count)))
    }),
    fixed("trimall", STR2, trim_all),
    fixed("trimAll", STR2, trim_all),
    fixed("trimSuffix", STR2, |env, args| {
        let whole = text(args, 1)?;
        env.string(whole.strip_suffix(&**text(args, 0)?).unwrap_or(whole))
    }),
    fixed("trimPrefix", STR2, |env, args| {
        let whole = text(args, 1)?;
        env.string(whole.strip_prefix(&**text(args, 0)?).unwrap_or(whole))
    }),
    fixed("nospace", STR, |env, args| {
        let whole = text(args, 0)?;
        let latin = |byte: &u8| char::from(*byte);
        if !whole.iter().map(latin).any(is_space) {
            return Ok(args[0].clone());
        }
        // goutils looks at bytes as if they were runes.
        let kept: String = whole.iter().map(latin).filter(|rune| !is_space(*rune)).collect();
        env.string(kept)
    }),
    fixed("contains", STR2, |_, args| Ok(Value::Bool(find(text(args, 1)?, text(args, 0)?).is_some()))),
    fixed("hasPrefix", STR2, |_, args| Ok(Value::Bool(text(args, 1)?.starts_with(text(args, 0)?)))),
    fixed("hasSuffix", STR2, |_, args| Ok(Value::Bool(text(args, 1)?.ends_with(text(args, 0)?)))),
    variadic("quote", ANYS, |env, args| {
        let mut quoted = Vec::new();
        for arg in args.iter().filter(|arg| !arg.is_nil()) {
            quoted.push(quote_bytes(&strval(env, arg)?, Printable::Unicode));
        }
        env.string(quoted.join(" "))
    }),
    variadic("squote", ANYS, |env, args| {
        let mut quoted = Vec::new();
        for arg in args.iter().filter(|arg| !arg.is_nil()) {
            let shown = env.sprint(std::slice::from_ref(arg))?;
            quoted.push([b"'", shown.as_slice(), b"'"].concat());
        }
        env.string(quoted.join(&b' '))
    }),
    variadic("cat", ANYS, |env, args| {
        let mut shown = Vec::new();
        for arg in args.iter().filter(|arg| !arg.is_nil()) {
            shown.push(env.sprint(std::slice::from_ref(arg))?);
        }
        env.string(shown.join(&b' '))
    }),
    fixed("indent", INT_STR, |env, args| {
        let indented = indent(env, int(args, 0)?, text(args, 1)?)?;
        env.string(indented)
    }),
    fixed("nindent", INT_STR, |env, args| {
        let mut indented = indent(env, int(args, 0)?, text(args, 1)?)?;
        indented.insert(0, b'\n');
        env.string(indented)
    }),
    fixed("replace", &[Type::Str, Type::Str, Type::Str], |env, args| {
        let replaced = replace_all(env, text(args, 2)?, text(args, 0)?, text(args, 1)?)?;
        env.string(replaced)
    }),
    fixed("plural", &[Type::Str, Type::Str, Type::Int], |_, args| {
        Ok(args[usize::from(int(args, 2)? != 1)].clone())
    }),
    fixed("join", &[Type::Str, Type::Any], |env, args| {
        let list = strslice(env, &args[1])?;
        let separator = text(args, 0)?;
        let items = list.items();
        let pieces: Vec<&[u8]> = items.iter().filter_map(Value::as_str).map(|text| &**text).collect();
        let length: usize = pieces.iter().map(|piece| piece.len() + separator.len()).sum();
        env.allocate(length)?;
        Ok(Value::str(pieces.join(&**separator)))
    }),
    fixed("sortAlpha", ANYS, |env, args| {
        let list = strslice(env, &args[0])?;
        env.spend(list.len())?;
        // A []string is sorted in place, and its other holders see it.
        if let Value::List(_) = args[0] {
            list.sort_strings();
        } else if args[0].is_nil() {
            return Ok(Value::strings(["<nil>"]));
        }
        Ok(Value::List(list))
    }),
    fixed("splitList", STR2, |env, args| {
        let pieces = split(env, text(args, 1)?, text(args, 0)?, -1)?;
        Ok(Value::List(List::new(ListType::Str, pieces)))
    }),
    fixed("split", STR2, |env, args| {
        let pieces = split(env, text(args, 1)?, text(args, 0)?, -1)?;
        Ok(numbered(pieces))
    }),
    fixed("splitn", &[Type::Str, Type::Int, Type::Str], |env, args| {
        let pieces = split(env, text(args, 2)?, text(args, 0)?, int(args, 1)?)?;
        Ok(numbered(pieces))
    }),
    fixed("wrap", INT_STR, |env, args| {
        let wrapped = wrap(env, text(args, 1)?, int(args, 0)?, b"\n", false)?;
        env.string(wrapped)
    }),
    fixed("wrapWith", &[Type::Int, Type::Str, Type::Str], |env, args| {
        let separator = text(args, 1)?;
        let separator: &[u8] = if separator.is_empty() { b"\n" } else { separator };
        let wrapped = wrap(env, text(args, 2)?, int(args, 0)?, separator, true)?;
        env.string(wrapped)
    }),
];

/// `s[start:end]` with the panic Go would raise.
fn go_slice(text: &[u8], start: i64, end: i64) -> Result<&[u8], CallError> {
    let length = text.len();
    match (usize::try_from(start), usize::try_from(end)) {
        (_, Err(_)) => Err(format!("runtime error: slice bounds out of range [:{end}]").into()),
        (_, Ok(to)) if to > length => {
            Err(format!("runtime error: slice bounds out of range [:{end}] with length {length}").into())
        }
        (Ok(from), Ok(to)) if from <= to => Ok(&text[from..to]),
        _ => Err(format!("runtime error: slice bounds out of range [{start}:{end}]").into()),
    }
}

pub(super) fn trim_space(text: &[u8]) -> &[u8] {
    let space = |(_, rune, width): &(usize, char, usize)| is_space(*rune) && (*width > 1 || rune.is_ascii());
    let start = runes(text).find(|rune| !space(rune)).map_or(text.len(), |(at, _, _)| at);
    let end = runes(text).filter(|rune| !space(rune)).last().map_or(start, |(at, _, width)| at + width);
    &text[start..end]
}

fn trim_all(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let (set, whole) = (text(args, 0)?, text(args, 1)?);
    let wanted: Vec<char> = runes(set).map(|(_, rune, _)| rune).collect();
    let kept = |(_, rune, _): &(usize, char, usize)| !wanted.contains(rune);
    let start = runes(whole).find(kept).map_or(whole.len(), |(at, _, _)| at);
    let end = runes(whole).filter(kept).last().map_or(start, |(at, _, width)| at + width);
    env.string(&whole[start..end])
}

pub(super) fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() {
        return Some(0);
    }
    // Byte strings have no `find`; latching on to the first byte keeps the common case fast.
    let first = needle[0];
    let mut from = 0;
    while let Some(step) = text.get(from..)?.iter().position(|byte| *byte == first) {
        let at = from + step;
        if text[at..].starts_with(needle) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

fn indent(env: &mut Env<'_>, spaces: i64, text: &[u8]) -> Result<Vec<u8>, CallError> {
    let count = usize::try_from(spaces).map_err(|_| "strings: negative Repeat count")?;
    let lines = text.iter().filter(|byte| **byte == b'\n').count() + 1;
    env.allocate(count.saturating_mul(lines).saturating_add(text.len()))?;
    let pad = vec![b' '; count];
    let mut out = pad.clone();
    for byte in text {
        out.push(*byte);
        if *byte == b'\n' {
            out.extend_from_slice(&pad);
        }
    }
    Ok(out)
}

fn replace_all(env: &mut Env<'_>, text: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<u8>, CallError> {
    let mut out = Vec::new();
    if old.is_empty() {
        // Go inserts before every rune and at the end.
        env.allocate((text.len() + 1).saturating_mul(new.len()))?;
        for (at, _, width) in runes(text) {
            out.extend_from_slice(new);
            out.extend_from_slice(&text[at..at + width]);
        }
        out.extend_from_slice(new);
        return Ok(out);
    }
    let mut rest = text;
    while let Some(at) = find(rest, old) {
        env.allocate(new.len())?;
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    out.extend_from_slice(rest);
    Ok(out)
}

/// `strings.SplitN`; an empty separator splits into runes.
fn split(env: &mut Env<'_>, text: &[u8], separator: &[u8], limit: i64) -> Result<Vec<Value>, CallError> {
    let limit = if limit < 0 { usize::MAX } else { usize::try_from(limit).unwrap_or(0) };
    let mut pieces: Vec<Value> = Vec::new();
    if limit == 0 {
        return Ok(pieces);
    }
    let mut rest = text;
    if separator.is_empty() {
        env.allocate_elements(rest.len())?;
        while !rest.is_empty() && pieces.len() + 1 < limit {
            let width = runes(rest).next().map_or(1, |(_, _, width)| width);
            pieces.push(Value::str(&rest[..width]));
            rest = &rest[width..];
        }
        if !rest.is_empty() {
            pieces.push(Value::str(rest));
        }
        return Ok(pieces);
    }
    while pieces.len() + 1 < limit
        && let Some(at) = find(rest, separator)
    {
        env.allocate_elements(1)?;
        pieces.push(Value::str(&rest[..at]));
        rest = &rest[at + separator.len()..];
    }
    pieces.push(Value::str(rest));
    Ok(pieces)
}

/// `_0`, `_1`, … as `split` names its pieces.
fn numbered(pieces: Vec<Value>) -> Value {
    let map = Map::new(MapType::StrStr);
    for (index, piece) in pieces.into_iter().enumerate() {
        map.insert(Key::str(format!("_{index}")), piece);
    }
    Value::Map(map)
}

/// goutils' abbreviation to `width` bytes from `offset` on, marked by `...`.
fn abbreviate(text: &Str, offset: i64, width: i64) -> Result<Vec<u8>, CallError> {
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    if text.is_empty() || width < 4 {
        return Ok(Vec::new());
    }
    if length <= width {
        return Ok(text.to_vec());
    }
    let mut offset = offset.min(length);
    if length - offset < width - 3 {
        offset = length - (width - 3);
    }
    if offset <= 4 {
        return Ok([go_slice(text, 0, width - 3)?, b"..."].concat());
    }
    if width < 7 {
        return Ok(Vec::new());
    }
    if offset + width - 3 < length {
        let rest = abbreviate(&Str::from(go_slice(text, offset, length)?), 0, width - 3)?;
        return Ok([b"...".as_slice(), &rest].concat());
    }
    Ok([b"...", go_slice(text, length - (width - 3), length)?].concat())
}

/// goutils' word wrap at spaces; long words are cut only when `cut_words`.
fn wrap(
    env: &mut Env<'_>,
    text: &[u8],
    width: i64,
    separator: &[u8],
    cut_words: bool,
) -> Result<Vec<u8>, CallError> {
    let width = usize::try_from(width.max(1)).unwrap_or(usize::MAX);
    let mut out = Vec::new();
    let mut offset = 0;
    while text.len() - offset > width {
        if text[offset] == b' ' {
            offset += 1;
            continue;
        }
        env.allocate(separator.len())?;
        let window = &text[offset..offset + width + 1];
        let end = offset + width;
        let (stop, next) = match window.iter().rposition(|byte| *byte == b' ') {
            Some(at) => (offset + at, offset + at + 1),
            None if cut_words => (end, end),
            None => match text[end..].iter().position(|byte| *byte == b' ') {
                Some(at) => (end + at, end + at + 1),
                None => break,
            },
        };
        out.extend_from_slice(&text[offset..stop]);
        out.extend_from_slice(separator);
        offset = next;
    }
    out.extend_from_slice(&text[offset..]);
    Ok(out)
}
