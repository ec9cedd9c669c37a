//! Making texts: formatting, trimming, cutting out, joining, replacing, encoding and hashing. A value that is not a string is
//! printed first, as Go's `%v` prints it.

use ring::digest;
use transom_go::encoding::{base64_decode, base64_encode, hex};
use transom_go::fmt;
use transom_go::regexp::{self, Limits};
use transom_go::unicode::{to_lower, to_upper};
use transom_gotemplate::Value as Go;
use transom_object::json::encode_escaped;
use transom_object::quote::quote;

use super::super::document::{text_of, to_json};
use super::super::input::{
    StringConversion, StringJoin, StringRegexp, StringReplace, StringTransform, StringType,
};
use super::{Join, MAX_TEXT_BYTES};

pub(super) fn resolve(string: &StringTransform, input: &Go, join: Join) -> Result<Vec<u8>, String> {
    let unset = |field: &str| format!("string transform of type {} {field} is not set", string.kind);
    let text = match &string.kind {
        StringType::Format => {
            let format = string.fmt.as_ref().ok_or_else(|| unset("fmt"))?;
            fmt::try_sprintf(format.as_bytes(), std::slice::from_ref(input), MAX_TEXT_BYTES)
                .map_err(|e| e.to_string())
        }
        StringType::Convert => convert(string.convert.as_ref().ok_or_else(|| unset("convert"))?, input),
        StringType::TrimPrefix => {
            let (text, prefix) = (printed(input)?, string.trim.as_ref().ok_or_else(|| unset("trim"))?);
            Ok(text.strip_prefix(prefix.as_bytes()).unwrap_or(&text).to_vec())
        }
        StringType::TrimSuffix => {
            let (text, suffix) = (printed(input)?, string.trim.as_ref().ok_or_else(|| unset("trim"))?);
            Ok(text.strip_suffix(suffix.as_bytes()).unwrap_or(&text).to_vec())
        }
        StringType::Regexp => cut_out(string.regexp.as_ref().ok_or_else(|| unset("regexp"))?, input),
        StringType::Join => joined(string.join.as_ref().ok_or_else(|| unset("join"))?, input, join),
        StringType::Replace => replaced(string.replace.as_ref().ok_or_else(|| unset("replace"))?, input),
        StringType::Unknown(kind) => Err(format!("type {kind} is not supported for string transform type")),
    }?;
    if text.len() > MAX_TEXT_BYTES { Err(too_long()) } else { Ok(text) }
}

fn too_long() -> String {
    format!("the text is longer than {} MiB", MAX_TEXT_BYTES >> 20)
}

/// A value as `%v` prints it.
fn printed(input: &Go) -> Result<Vec<u8>, String> {
    match input {
        Go::Str(text) => Ok(text.to_vec()),
        Go::Missing | Go::Nil => Ok(b"<nil>".to_vec()),
        other => fmt::try_sprint(std::slice::from_ref(other), MAX_TEXT_BYTES).map_err(|e| e.to_string()),
    }
}

fn convert(conversion: &StringConversion, input: &Go) -> Result<Vec<u8>, String> {
    let mapped = |rune: fn(char) -> char| {
        Ok(text_of(&printed(input)?).chars().map(rune).collect::<String>().into_bytes())
    };
    let hashed = |algorithm: &'static digest::Algorithm| {
        let bytes = hashable(input).map_err(|e| format!("cannot generate hash: {e}"))?;
        Ok(hex(digest::digest(algorithm, &bytes).as_ref()).into_bytes())
    };
    match conversion {
        StringConversion::ToUpper => mapped(to_upper),
        StringConversion::ToLower => mapped(to_lower),
        StringConversion::ToJson => json(input),
        StringConversion::ToBase64 => Ok(base64_encode(&printed(input)?).into_bytes()),
        StringConversion::FromBase64 => {
            base64_decode(&printed(input)?).map_err(|e| format!("string is not valid base64: {e}"))
        }
        StringConversion::ToSha1 => hashed(&digest::SHA1_FOR_LEGACY_USE_ONLY),
        StringConversion::ToSha256 => hashed(&digest::SHA256),
        StringConversion::ToSha512 => hashed(&digest::SHA512),
        StringConversion::ToAdler32 => {
            let bytes = hashable(input).map_err(|e| format!("unable to generate Adler checksum: {e}"))?;
            Ok(adler32(&bytes).to_string().into_bytes())
        }
        StringConversion::Unknown(kind) => Err(format!("type {kind} is not supported for string convert")),
    }
}

fn json(input: &Go) -> Result<Vec<u8>, String> {
    let json = to_json(input).map_err(|e| format!("cannot marshal to JSON: {e}"))?;
    Ok(encode_escaped(&json).into_bytes())
}

/// A text as it is, anything else as its JSON.
fn hashable(input: &Go) -> Result<Vec<u8>, String> {
    match input {
        Go::Str(text) => Ok(text.to_vec()),
        other => json(other),
    }
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % MODULUS;
        high = (high + low) % MODULUS;
    }
    high << 16 | low
}

/// One group of the first match.
fn cut_out(config: &StringRegexp, input: &Go) -> Result<Vec<u8>, String> {
    let regexp = regexp::compile_bytes(&config.r#match, Limits::default())
        .map_err(|e| format!("could not compile regexp: {e}"))?;
    let group = config.group.unwrap_or_default();
    // To Go, a byte that is not part of a character is the character U+FFFD.
    let text = text_of(&printed(input)?);
    let captures = regexp.captures(text.as_bytes());
    let found = captures.as_ref().zip(usize::try_from(group).ok()).filter(|(all, group)| *group < all.len());
    match found {
        // A group that took no part in the match is empty.
        Some((all, group)) => Ok(all.get(group).map(|group| group.as_bytes().to_vec()).unwrap_or_default()),
        None => Err(format!("regexp {} had no matches for group {group}", quote(&config.r#match))),
    }
}

fn joined(config: &StringJoin, input: &Go, join: Join) -> Result<Vec<u8>, String> {
    let Go::List(list) = input else { return Err("could not parse input array".to_owned()) };
    let separator = config.separator.as_bytes();
    let mut text = Vec::new();
    for item in list.items().iter() {
        text.extend_from_slice(&printed(item)?);
        text.extend_from_slice(separator);
        if text.len() > MAX_TEXT_BYTES {
            return Err(too_long());
        }
    }
    let surplus = match join {
        Join::Function => usize::from(!separator.is_empty()),
        Join::Native => separator.len(),
    };
    text.truncate(text.len().saturating_sub(surplus));
    Ok(text)
}

fn replaced(config: &StringReplace, input: &Go) -> Result<Vec<u8>, String> {
    let (search, replace) = (config.search.as_bytes(), config.replace.as_bytes());
    let text = printed(input)?;
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_slice();
    if search.is_empty() {
        return replaced_everywhere(&text, replace);
    }
    while let Some(at) = find(rest, search) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(replace);
        rest = &rest[at + search.len()..];
        if out.len() > MAX_TEXT_BYTES {
            return Err(too_long());
        }
    }
    out.extend_from_slice(rest);
    Ok(out)
}

/// An empty text is found before every character and at the end.
fn replaced_everywhere(text: &[u8], replace: &[u8]) -> Result<Vec<u8>, String> {
    let text = text_of(text);
    if text.chars().count().saturating_mul(replace.len()) > MAX_TEXT_BYTES {
        return Err(too_long());
    }
    let mut out = replace.to_vec();
    for rune in text.chars() {
        out.extend_from_slice(rune.encode_utf8(&mut [0; 4]).as_bytes());
        out.extend_from_slice(replace);
    }
    Ok(out)
}

fn find(text: &[u8], search: &[u8]) -> Option<usize> {
    let first = search.first()?;
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|byte| byte == first) {
        if text[from + at..].starts_with(search) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}
