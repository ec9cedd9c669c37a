//! Texts that a schema accepts: of its pattern, of its format, or such that conversions easily get wrong.

use crate::generate::Random;
use regex_syntax::hir::{Class, Hir, HirKind};
use transom_schema::Schema;

/// Empty, looking like other types, with leading zeros, with characters of more than one byte.
const TEXTS: &[&str] =
    &["a", "", "b-1", "A b", "0", "10", "007", "-3", "1.5", "true", "null", "x.y/z", "ü€", " padded "];
/// How often something of one element or less is repeated at most, where nothing bounds it.
const MAX_REPETITIONS: u32 = 3;
/// How many attempts are made to match a pattern within the bounds of the length.
const MAX_MATCH_ATTEMPTS: usize = 16;

fn of_format(format: &str) -> &'static [&'static str] {
    match format {
        "date-time" => &["2024-05-06T07:08:09Z", "2024-12-31T23:59:59.5+02:00"],
        "date" => &["2024-05-06"],
        "duration" => &["1h30m0s", "90m", "0s", "1.5h"],
        "uuid" | "uuid4" => &["5f0b1d3c-9a5e-4c59-8f2e-0a6d3a1b2c3d"],
        "uuid3" => &["5f0b1d3c-9a5e-3c59-8f2e-0a6d3a1b2c3d"],
        "uuid5" => &["5f0b1d3c-9a5e-5c59-8f2e-0a6d3a1b2c3d"],
        "ipv4" | "ip" => &["192.0.2.7", "0.0.0.0"],
        "ipv6" => &["2001:db8::1", "2001:0db8:0:0::1"],
        "cidr" => &["192.0.2.0/24"],
        "mac" => &["00:00:5e:00:53:01"],
        "uri" => &["https://example.org/a?b=c", "https://example.org"],
        "email" => &["a.b@example.org"],
        "hostname" => &["a.example.org"],
        "byte" => &["YWJj", ""],
        "password" => &["s3cret"],
        _ => TEXTS,
    }
}

/// A text for a schema. It may be one that the schema refuses, if none was found.
pub(crate) fn text(schema: &Schema, random: &mut Random) -> String {
    let checks = &schema.checks;
    let fits = |text: &str| {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        checks.min_length.is_none_or(|least| length >= least)
            && checks.max_length.is_none_or(|most| length <= most)
    };
    if let Some(pattern) = checks.pattern.as_ref().and_then(|pattern| pattern.compiled.as_ref()) {
        let Ok(hir) = regex_syntax::parse(pattern.as_str()) else { return String::new() };
        let mut text = String::new();
        for _ in 0..MAX_MATCH_ATTEMPTS {
            text.clear();
            matching(&hir, random, &mut text);
            if fits(&text) {
                break;
            }
        }
        return text;
    }
    let pool = schema.format.as_deref().map_or(TEXTS, of_format);
    let fitting: Vec<&str> = pool.iter().copied().filter(|text| fits(text)).collect();
    match random.pick(&fitting) {
        Some(text) => (*text).to_owned(),
        None => "a".repeat(usize::try_from(checks.min_length.unwrap_or(1)).unwrap_or(1).min(1024)),
    }
}

fn matching(hir: &Hir, random: &mut Random, out: &mut String) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => out.extend(member(class, random)),
        HirKind::Capture(group) => matching(&group.sub, random, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| matching(part, random, out)),
        HirKind::Alternation(choices) => {
            if let Some(choice) = random.pick(choices) {
                matching(choice, random, out);
            }
        }
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(repetition.min + MAX_REPETITIONS);
            let more = most.saturating_sub(repetition.min).min(MAX_REPETITIONS);
            let times =
                repetition.min.min(1024) + u32::try_from(random.below(u64::from(more) + 1)).unwrap_or(0);
            (0..times).for_each(|_| matching(&repetition.sub, random, out));
        }
    }
}

/// The first or last character of one of the ranges, or one between them, preferably printable ASCII.
fn member(class: &Class, random: &mut Random) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.ranges().iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => {
            let ranges = class.ranges().iter().filter(|range| range.start().is_ascii());
            ranges.map(|range| (char::from(range.start()), char::from(range.end().min(126)))).collect()
        }
    };
    let printable: Vec<(char, char)> = ranges
        .iter()
        .filter(|(start, end)| *start <= '~' && *end >= ' ')
        .map(|(start, end)| ((*start).max(' '), (*end).min('~')))
        .collect();
    let (start, end) = *random.pick(if printable.is_empty() { &ranges } else { &printable })?;
    let span = u64::from(u32::from(end).saturating_sub(u32::from(start))) + 1;
    let offset = u32::try_from(random.below(span)).unwrap_or(0);
    char::from_u32(u32::from(start) + offset).or(Some(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use transom_schema::structural;

    #[test]
    fn texts_match_the_patterns_they_are_for() {
        for pattern in [
            "^[1-9][0-9]*Gi$",
            "^(small|large)-[a-z]{2,5}$",
            "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            r"^\d{4}-\d{2}$",
            "^[^@]+@[^@]+$",
            r"^arn:(aws|aws-cn):s3:::\S+$",
            "(?i)^abc$",
        ] {
            let schema =
                structural::parse(&json!({"type": "string", "pattern": pattern, "maxLength": 60})).unwrap();
            let compiled = schema.checks.pattern.as_ref().and_then(|p| p.compiled.as_ref()).unwrap();
            let mut random = Random::new(1);
            for _ in 0..100 {
                let text = text(&schema, &mut random);
                assert!(compiled.is_match(&text), "{pattern}: {text:?}");
            }
        }
    }
}
