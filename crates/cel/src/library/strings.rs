//! Strings: the language's own functions and version 2 of the strings extension.

use super::{Args, Out, Table, Work, int, string, template};
use crate::value::{EvalError, Value};

/// A position in code points as an index, or what is wrong with it.
fn position(v: &Value<'_>, length: usize) -> Result<usize, EvalError> {
    let n = int(v)?;
    usize::try_from(n)
        .ok()
        .filter(|i| *i <= length)
        .ok_or_else(|| EvalError::failed(format!("index out of range: {n}")))
}

fn char_at<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let text = string(args.get(0)?)?;
    let index = position(args.get(1)?, text.chars().count())?;
    Ok(Value::text(text.chars().nth(index).map(String::from).unwrap_or_default()))
}

fn index_of<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let text = string(args.get(0)?)?;
    let wanted = string(args.get(1)?)?;
    let length = text.chars().count();
    let start = match args.get(2) {
        Ok(n) => position(n, length)?,
        Err(_) => 0,
    };
    if wanted.is_empty() {
        return Ok(Value::Int(i64::try_from(start).unwrap_or(i64::MAX)));
    }
    let from = text.char_indices().nth(start).map_or(text.len(), |(i, _)| i);
    let found = text.get(from..).and_then(|rest| rest.find(wanted)).map(|i| i + from);
    Ok(Value::Int(code_points(text, found)))
}

fn last_index_of<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let text = string(args.get(0)?)?;
    let wanted = string(args.get(1)?)?;
    let length = text.chars().count();
    let last = match args.get(2) {
        Ok(n) => position(n, length)?,
        Err(_) => length,
    };
    if wanted.is_empty() {
        return Ok(Value::Int(i64::try_from(last).unwrap_or(i64::MAX)));
    }
    // The match may begin at `last` at the latest.
    let end = text.char_indices().nth(last).map_or(text.len(), |(i, _)| i);
    let end = (end + wanted.len()).min(text.len());
    let end = (end..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
    let found = text.get(..end).and_then(|head| head.rfind(wanted));
    Ok(Value::Int(code_points(text, found)))
}

fn code_points(text: &str, byte: Option<usize>) -> i64 {
    match byte.and_then(|b| text.get(..b)) {
        Some(head) => i64::try_from(head.chars().count()).unwrap_or(i64::MAX),
        None => -1,
    }
}

fn replace<'a>(work: &mut Work, args: Args<'_, 'a>) -> Out<'a> {
    let text = string(args.get(0)?)?;
    let (old, new) = (string(args.get(1)?)?, string(args.get(2)?)?);
    let limit = match args.get(3) {
        Ok(n) => usize::try_from(int(n)?).unwrap_or(usize::MAX),
        Err(_) => usize::MAX,
    };
    let count = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() };
    work.spend(text.len().saturating_add(count.min(limit).saturating_mul(new.len())))?;
    Ok(Value::text(text.replacen(old, new, limit)))
}

fn split<'a>(work: &mut Work, args: Args<'_, 'a>) -> Out<'a> {
    let text = string(args.get(0)?)?;
    let separator = string(args.get(1)?)?;
    work.spend(text.len())?;
    let limit = match args.get(2) {
        Ok(n) => int(n)?,
        Err(_) => -1,
    };
    let limit = match limit {
        0 => return Ok(Value::list(Vec::new())),
        1 => return Ok(Value::list(vec![Value::text(text)])),
        n => usize::try_from(n).unwrap_or(usize::MAX),
    };
    let parts: Vec<Value<'a>> = if separator.is_empty() {
        let mut starts = text.char_indices().map(|(i, _)| i);
        let mut parts = Vec::new();
        let mut from = starts.next();
        while let Some(start) = from {
            from = if parts.len() + 1 < limit { starts.next() } else { None };
            parts.push(Value::text(text.get(start..from.unwrap_or(text.len())).unwrap_or_default()));
        }
        parts
    } else {
        text.splitn(limit, separator).map(Value::text).collect()
    };
    Ok(Value::list(parts))
}

fn substring<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let text = string(args.get(0)?)?;
    let length = text.chars().count();
    let start = position(args.get(1)?, length)?;
    let end = match args.get(2) {
        Ok(n) => position(n, length)?,
        Err(_) => length,
    };
    if start > end {
        return Err(EvalError::failed(format!("invalid substring range. start: {start}, end: {end}")));
    }
    Ok(Value::text(text.chars().skip(start).take(end - start).collect::<String>()))
}

fn join<'a>(work: &mut Work, args: Args<'_, 'a>) -> Out<'a> {
    let Value::List(list) = args.get(0)? else { return Err(EvalError::overload()) };
    let separator = match args.get(1) {
        Ok(s) => string(s)?,
        Err(_) => "",
    };
    let mut out = String::new();
    for (i, item) in list.iter().enumerate() {
        let item = item?;
        let part = string(&item)?;
        work.spend(part.len() + separator.len())?;
        if i > 0 {
            out.push_str(separator);
        }
        out.push_str(part);
    }
    Ok(Value::text(out))
}

/// A literal that reads back as the string.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn test<'a>(args: Args<'_, 'a>, holds: fn(&str, &str) -> bool) -> Out<'a> {
    Ok(Value::Bool(holds(string(args.get(0)?)?, string(args.get(1)?)?)))
}

pub(super) fn declare(t: &mut Table) {
    const TWO: &str = "string, string";
    t.member("contains", "contains_string", TWO, "bool", |_, a| test(a, |s, t| s.contains(t)));
    t.member("startsWith", "starts_with_string", TWO, "bool", |_, a| test(a, |s, t| s.starts_with(t)));
    t.member("endsWith", "ends_with_string", TWO, "bool", |_, a| test(a, |s, t| s.ends_with(t)));
    t.member("charAt", "string_char_at_int", "string, int", "string", |_, a| char_at(a));
    t.member("indexOf", "string_index_of_string", TWO, "int", |_, a| index_of(a));
    t.member("indexOf", "string_index_of_string_int", "string, string, int", "int", |_, a| index_of(a));
    t.member("lastIndexOf", "string_last_index_of_string", TWO, "int", |_, a| last_index_of(a));
    t.member("lastIndexOf", "string_last_index_of_string_int", "string, string, int", "int", |_, a| {
        last_index_of(a)
    });
    t.member("lowerAscii", "string_lower_ascii", "string", "string", |_, a| {
        Ok(Value::text(string(a.get(0)?)?.to_ascii_lowercase()))
    });
    t.member("upperAscii", "string_upper_ascii", "string", "string", |_, a| {
        Ok(Value::text(string(a.get(0)?)?.to_ascii_uppercase()))
    });
    t.member("replace", "string_replace_string_string", "string, string, string", "string", replace);
    t.member("replace", "string_replace_string_string_int", "string, string, string, int", "string", replace);
    t.member("split", "string_split_string", TWO, "list(string)", split);
    t.member("split", "string_split_string_int", "string, string, int", "list(string)", split);
    t.member("substring", "string_substring_int", "string, int", "string", |_, a| substring(a));
    t.member("substring", "string_substring_int_int", "string, int, int", "string", |_, a| substring(a));
    t.member("trim", "string_trim", "string", "string", |_, a| Ok(Value::text(string(a.get(0)?)?.trim())));
    t.member("format", "string_format", "string, list(dyn)", "string", template::format);
    t.global("strings.quote", "strings_quote", "string", "string", |_, a| {
        Ok(Value::text(quote(string(a.get(0)?)?)))
    });
    t.member("join", "list_join", "list(string)", "string", join);
    t.member("join", "list_join_string", "list(string), string", "string", join);
}
