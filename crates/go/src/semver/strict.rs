//! blang/semver: three numbers without leading zeros, as semver.org has them.

use super::SemverError;
use crate::strconv::quote;
use std::cmp::Ordering;
use std::fmt;

/// A semantic version. Build metadata is kept for printing and ignored in comparisons.
#[derive(Clone, Debug)]
pub struct StrictVersion {
    /// Major, minor and patch.
    pub numbers: [u64; 3],
    pre: Vec<String>,
    build: String,
}

impl StrictVersion {
    /// `semver.Parse`.
    pub fn parse(text: &str) -> Result<Self, SemverError> {
        if text.is_empty() {
            return Err("Version string empty".into());
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
            return Err("No Major.Minor.Patch elements found".into());
        };
        let numbers = [number(major, "major")?, number(minor, "minor")?, number(patch, "patch")?];
        let identifiers = |part: Option<&str>| -> Result<Vec<String>, SemverError> {
            let Some(part) = part else { return Ok(Vec::new()) };
            part.split('.').map(|p| identifier(p).map(str::to_owned)).collect()
        };
        let pre = identifiers(pre)?;
        if let Some(p) = pre.iter().find(|p| is_number(p) && p.len() > 1 && p.starts_with('0')) {
            return Err(
                format!("Numeric PreRelease version must not contain leading zeroes {}", quote(p)).into()
            );
        }
        identifiers(build)?;
        Ok(Self { numbers, pre, build: build.unwrap_or_default().to_owned() })
    }

    /// `semver.ParseTolerant`: accepts `v1`, `1.2` and `01.2.3`.
    pub fn parse_loosely(text: &str) -> Result<Self, SemverError> {
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
                return Err("short version cannot contain PreRelease/Build meta data".into());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    /// `Version.Compare`.
    pub fn precedence(&self, other: &Self) -> Ordering {
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

fn number(text: &str, which: &str) -> Result<u64, SemverError> {
    if !is_number(text) {
        return Err(format!("Invalid character(s) found in {which} number {}", quote(text)).into());
    }
    if text.len() > 1 && text.starts_with('0') {
        let which = format!("{}{}", which[..1].to_uppercase(), &which[1..]);
        return Err(format!("{which} number must not contain leading zeroes {}", quote(text)).into());
    }
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: value out of range", quote(text)).into())
}

fn identifier(text: &str) -> Result<&str, SemverError> {
    if text.is_empty() {
        return Err("Prerelease is empty".into());
    }
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        Ok(text)
    } else {
        Err(format!("Invalid character(s) found in prerelease {}", quote(text)).into())
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

impl fmt::Display for StrictVersion {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_and_loose() {
        let strict = |text: &str| StrictVersion::parse(text).map(|version| version.to_string());
        assert_eq!(strict("1.2.3-rc.1+b").as_deref(), Ok("1.2.3-rc.1+b"));
        assert_eq!(strict("1.2"), Err("No Major.Minor.Patch elements found".into()));
        assert!(strict("01.2.3").is_err() && strict("1.2.3-01").is_err() && strict("").is_err());
        let loose = |text: &str| StrictVersion::parse_loosely(text).map(|version| version.to_string());
        assert_eq!(loose("v01.2").as_deref(), Ok("1.2.0"));
        let order = |a: &str, b: &str| {
            StrictVersion::parse(a).and_then(|a| Ok(a.precedence(&StrictVersion::parse(b)?)))
        };
        assert_eq!(order("1.0.0-rc.2", "1.0.0-rc.10"), Ok(Ordering::Less));
        assert_eq!(order("1.0.0", "1.0.0-rc"), Ok(Ordering::Greater));
        assert_eq!(order("1.0.0+a", "1.0.0+b"), Ok(Ordering::Equal));
    }
}
