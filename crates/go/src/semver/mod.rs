//! Versions by the rules of two Go packages, which are not Cargo's: [`Version`] and [`Constraint`] are Masterminds/semver
//! v3's, lenient, for templates and packages; [`StrictVersion`] is blang/semver v4's, which Kubernetes uses.

mod constraint;
mod strict;

use std::cmp::Ordering;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

pub use constraint::Constraint;
pub use strict::StrictVersion;

/// Why a text is not a version or constraint, worded as the Go package words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SemverError(String);

impl From<&str> for SemverError {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for SemverError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// A semantic version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number.
    pub patch: u64,
    /// What follows a dash; empty for a release.
    pub prerelease: String,
    /// What follows a plus sign.
    pub metadata: String,
    /// The version as it was written.
    pub original: String,
    /// Whether Go code holds it by pointer, as what `NewVersion` returns, or by value, as what `IncMajor` returns.
    pub pointer: bool,
}

static VERSION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let tail = r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
    Regex::new(&format!(r"^v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?{tail}$")).ok()
});

impl Version {
    /// `NewVersion`: accepts a leading `v` and missing minor and patch.
    pub fn parse(text: &str) -> Result<Version, SemverError> {
        const INVALID: &str = "Invalid Semantic Version";
        if let Some([major, minor, patch]) = plain(text) {
            let (prerelease, metadata) = (String::new(), String::new());
            let original = text.to_owned();
            return Ok(Version { major, minor, patch, prerelease, metadata, original, pointer: true });
        }
        let found = VERSION.as_ref().and_then(|pattern| pattern.captures(text)).ok_or(INVALID)?;
        let group = |index: usize| found.get(index).map_or("", |group| group.as_str());
        let segment = |index: usize| {
            let digits = group(index).trim_start_matches('.');
            if digits.is_empty() {
                return Ok(0);
            }
            digits.parse::<u64>().map_err(|_| {
                format!(
                    "Error parsing version segment: strconv.ParseUint: parsing \"{digits}\": value out of range"
                )
            })
        };
        let version = Version {
            major: segment(1)?,
            minor: segment(2)?,
            patch: segment(3)?,
            prerelease: group(5).to_owned(),
            metadata: group(8).to_owned(),
            original: text.to_owned(),
            pointer: true,
        };
        validate_prerelease(&version.prerelease)?;
        Ok(version)
    }

    /// `Version.Compare`: metadata does not count.
    pub fn precedence(&self, other: &Version) -> Ordering {
        let numbers = |version: &Version| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_prerelease(&self.prerelease, &other.prerelease),
            }
        })
    }

    fn derived(&self, major: u64, minor: u64, patch: u64) -> Version {
        let mut next = Version {
            major,
            minor,
            patch,
            prerelease: String::new(),
            metadata: String::new(),
            original: String::new(),
            pointer: false,
        };
        next.original = self.spelled(&next);
        next
    }

    fn spelled(&self, next: &Version) -> String {
        let prefix = if self.original.starts_with('v') { "v" } else { "" };
        format!("{prefix}{next}")
    }

    /// `Version.IncMajor`.
    #[must_use]
    pub fn next_major(&self) -> Version {
        self.derived(self.major.wrapping_add(1), 0, 0)
    }

    /// `Version.IncMinor`.
    #[must_use]
    pub fn next_minor(&self) -> Version {
        self.derived(self.major, self.minor.wrapping_add(1), 0)
    }

    /// `Version.IncPatch`. A prerelease steps to its release; a release to the next patch.
    #[must_use]
    pub fn next_patch(&self) -> Version {
        let step = u64::from(self.prerelease.is_empty());
        self.derived(self.major, self.minor, self.patch.wrapping_add(step))
    }

    /// `Version.SetPrerelease`.
    pub fn with_prerelease(&self, prerelease: &str) -> Result<Version, SemverError> {
        validate_prerelease(prerelease)?;
        let mut next = Version { prerelease: prerelease.to_owned(), pointer: false, ..self.clone() };
        next.original = self.spelled(&next);
        Ok(next)
    }

    /// `Version.SetMetadata`.
    pub fn with_metadata(&self, metadata: &str) -> Result<Version, SemverError> {
        if !metadata.is_empty() && !metadata.split('.').all(is_identifier) {
            return Err("Invalid Metadata string".into());
        }
        let mut next = Version { metadata: metadata.to_owned(), pointer: false, ..self.clone() };
        next.original = self.spelled(&next);
        Ok(next)
    }
}

/// The numbers of a version of three numbers and nothing else, as most are: matching the pattern takes far longer.
fn plain(text: &str) -> Option<[u64; 3]> {
    let mut segments = text.strip_prefix('v').unwrap_or(text).split('.');
    let mut number = || {
        let digits = segments.next()?;
        // A sign, which numbers of Rust may have, is none of a version.
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    };
    let numbers = [number()?, number()?, number()?];
    segments.next().is_none().then_some(numbers)
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(out, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(out, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn is_identifier(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn validate_prerelease(prerelease: &str) -> Result<(), SemverError> {
    if prerelease.is_empty() {
        return Ok(());
    }
    for part in prerelease.split('.') {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            if part.len() > 1 && part.starts_with('0') {
                return Err("Version segment starts with 0".into());
            }
        } else if !is_identifier(part) {
            return Err("Invalid Prerelease string".into());
        }
    }
    Ok(())
}

fn compare_prerelease(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.split('.'), b.split('.'));
    loop {
        let (x, y) = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (x, y) => (x.unwrap_or(""), y.unwrap_or("")),
        };
        let order = compare_part(x, y);
        if order.is_ne() {
            return order;
        }
    }
}

/// Numbers sort below words; an absent part sorts below any.
fn compare_part(x: &str, y: &str) -> Ordering {
    if x == y {
        return Ordering::Equal;
    }
    match (x.is_empty(), y.is_empty()) {
        (true, _) => return Ordering::Less,
        (_, true) => return Ordering::Greater,
        _ => {}
    }
    match (x.parse::<u64>(), y.parse::<u64>()) {
        (Err(_), Err(_)) => {
            if x > y {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Ok(x), Ok(y)) => {
            if x > y {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_versions_are_read_as_the_pattern_reads_them() {
        for (text, numbers) in [("1.2.3", [1, 2, 3]), ("v10.0.7", [10, 0, 7]), ("v01.2.3", [1, 2, 3])] {
            assert_eq!(plain(text), Some(numbers), "{text}");
            // With metadata, which counts nowhere, the same text is read by the pattern.
            let (quick, slow) =
                (Version::parse(text).unwrap(), Version::parse(&format!("{text}+m")).unwrap());
            assert_eq!(Version { original: text.to_owned(), metadata: String::new(), ..slow }, quick);
        }
        for text in
            ["", "v", "1.2", "1.2.", "1..3", "1.2.3.4", "+1.2.3", "1.+2.3", "-1.2.3", "1.2.3-rc.1", "vv1.2.3"]
        {
            assert_eq!(plain(text), None, "{text}");
        }
        let large = "1.2.99999999999999999999";
        assert_eq!(plain(large), None);
        assert!(Version::parse(large).unwrap_err().to_string().contains("value out of range"));
    }
}
