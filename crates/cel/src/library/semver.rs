//! `semver`: semantic versions, compared by precedence.

use super::{Args, Out, Table, string};
use crate::opaque::Opaque;
use crate::value::{EvalError, Value};
use std::cmp::Ordering;
use std::fmt;

/// A semantic version. Build metadata is kept for printing and ignored in comparisons.
#[derive(Clone, Debug)]
pub struct Semver {
    numbers: [u64; 3],
    pre: Vec<String>,
    build: String,
}

impl Semver {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let (rest, build) = match text.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (text, None),
        };
        let (core, pre) = match rest.split_once('-') {
            Some((core, pre)) => (core, Some(pre)),
            None => (rest, None),
        };
        let parts: Vec<&str> = core.split('.').collect();
        let [major, minor, patch] = parts.as_slice() else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let numbers = [number(major, "major")?, number(minor, "minor")?, number(patch, "patch")?];
        let identifiers = |part: Option<&str>| -> Result<Vec<String>, String> {
            let Some(part) = part else { return Ok(Vec::new()) };
            part.split('.').map(|p| identifier(p).map(str::to_owned)).collect()
        };
        let pre = identifiers(pre)?;
        if let Some(p) = pre.iter().find(|p| is_number(p) && p.len() > 1 && p.starts_with('0')) {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {p:?}"));
        }
        identifiers(build)?;
        Ok(Self { numbers, pre, build: build.unwrap_or_default().to_owned() })
    }

    /// Accepts `v1`, `1.2` and `01.2.3` by bringing them into shape first.
    fn parse_loosely(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
        for part in &mut parts {
            if part.len() > 1 {
                let trimmed = part.trim_start_matches('0');
                let digit = trimmed.starts_with(|c: char| c.is_ascii_digit());
                *part = if digit { trimmed.to_owned() } else { format!("0{trimmed}") };
            }
        }
        if parts.len() < 3 {
            if parts.last().is_some_and(|p| p.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    pub(crate) fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => compare_pre(&self.pre, &other.pre),
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn number(text: &str, which: &str) -> Result<u64, String> {
    if !is_number(text) {
        return Err(format!("Invalid character(s) found in {which} number {text:?}"));
    }
    if text.len() > 1 && text.starts_with('0') {
        let which = format!("{}{}", which[..1].to_uppercase(), &which[1..]);
        return Err(format!("{which} number must not contain leading zeroes {text:?}"));
    }
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {text:?}: value out of range"))
}

fn identifier(text: &str) -> Result<&str, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        Ok(text)
    } else {
        Err(format!("Invalid character(s) found in prerelease {text:?}"))
    }
}

fn compare_pre(a: &[String], b: &[String]) -> Ordering {
    for (x, y) in a.iter().zip(b) {
        let order = match (is_number(x), is_number(y)) {
            (true, true) => x.len().cmp(&y.len()).then_with(|| x.cmp(y)),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => x.cmp(y),
        };
        if order.is_ne() {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre.join("."))?;
        }
        if !self.build.is_empty() {
            write!(f, "+{}", self.build)?;
        }
        Ok(())
    }
}

fn parse(args: Args<'_, '_>) -> Result<Result<Semver, String>, EvalError> {
    let text = string(args.get(0)?)?;
    let loosely = matches!(args.get(1), Ok(Value::Bool(true)));
    Ok(if loosely { Semver::parse_loosely(text) } else { Semver::parse(text) })
}

fn with<T>(args: Args<'_, '_>, index: usize, f: impl FnOnce(&Semver) -> T) -> Result<T, EvalError> {
    if let Value::Opaque(o) = args.get(index)?
        && let Opaque::Semver(v) = &**o
    {
        return Ok(f(v));
    }
    Err(EvalError::overload())
}

fn compare(args: Args<'_, '_>) -> Result<Ordering, EvalError> {
    with(args, 0, |a| with(args, 1, |b| a.cmp(b)))?
}

fn component<'a>(args: Args<'_, 'a>, index: usize) -> Out<'a> {
    let n = with(args, 0, |v| v.numbers.get(index).copied().unwrap_or(0))?;
    Ok(Value::Int(i64::try_from(n).unwrap_or(i64::MAX)))
}

pub(super) fn declare(t: &mut Table) {
    const V: &str = "kubernetes.Semver";
    let two = format!("{V}, {V}");
    for (id, is, args) in [
        ("string_to_semver", "is_semver_string", "string"),
        ("string_bool_to_semver", "is_semver_string_bool", "string, bool"),
    ] {
        t.global("semver", id, args, V, |_, a| match parse(a)? {
            Ok(v) => Ok(Value::opaque(Opaque::Semver(v))),
            Err(why) => Err(EvalError::Failed(why)),
        });
        t.global("isSemver", is, args, "bool", |_, a| Ok(Value::Bool(parse(a)?.is_ok())));
    }
    t.member("isGreaterThan", "semver_is_greater_than", &two, "bool", |_, a| {
        Ok(Value::Bool(compare(a)?.is_gt()))
    });
    t.member("isLessThan", "semver_is_less_than", &two, "bool", |_, a| Ok(Value::Bool(compare(a)?.is_lt())));
    t.member("compareTo", "semver_compare_to", &two, "int", |_, a| Ok(Value::Int(compare(a)? as i64)));
    t.member("major", "semver_major", V, "int", |_, a| component(a, 0));
    t.member("minor", "semver_minor", V, "int", |_, a| component(a, 1));
    t.member("patch", "semver_patch", V, "int", |_, a| component(a, 2));
}
