//! Constraints on versions, and the choice among existing versions.

use crate::digest::Digest;
use std::fmt::{self, Write};
use transom_go::semver::{Constraint, SemverError, Version};

/// What a dependency asks for: exactly one digest, or a range of versions.
#[derive(Debug)]
pub enum VersionConstraint {
    /// Exactly these bytes.
    Digest(Digest),
    /// A range in the language of Masterminds/semver.
    Range(Constraint),
}

/// A text that is neither a digest nor a range of versions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("version constraint on dependency is invalid: {text:?}: {problem}")]
pub struct ConstraintError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub problem: SemverError,
}

impl VersionConstraint {
    /// Reads a constraint.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        if let Ok(digest) = Digest::parse(text) {
            return Ok(Self::Digest(digest));
        }
        let range =
            Constraint::parse(text).map_err(|problem| ConstraintError { text: text.to_owned(), problem })?;
        Ok(Self::Range(range))
    }

    /// Whether an installed version, a tag or a digest, is what is asked for. A tag that is not a semantic version is in
    /// no range.
    pub fn allows(&self, version: &str) -> bool {
        match self {
            Self::Digest(digest) => digest.as_str() == version,
            Self::Range(range) => Version::parse(version).is_ok_and(|version| range.check_by_group(&version)),
        }
    }

    /// The digest, when it asks for exactly one.
    pub fn digest(&self) -> Option<&Digest> {
        match self {
            Self::Digest(digest) => Some(digest),
            Self::Range(_) => None,
        }
    }

    /// Whether a version is in the range. A digest allows no version.
    pub(crate) fn covers(&self, version: &Version) -> bool {
        matches!(self, Self::Range(range) if range.check_by_group(version))
    }
}

/// The tags that are complete semantic versions, in ascending order. A tag such as `v1` moves from release to release: it
/// must not count as v1.0.0.
pub fn versions<S: AsRef<str>>(tags: &[S]) -> Vec<Version> {
    let complete = |tag: &S| {
        let version = Version::parse(tag.as_ref()).ok()?;
        let mut rest = Unmatched(version.original.strip_prefix('v').unwrap_or(&version.original));
        (write!(rest, "{version}").is_ok() && rest.0.is_empty()).then_some(version)
    };
    let mut versions: Vec<Version> = tags.iter().filter_map(complete).collect();
    versions.sort_by(|a, b| a.precedence(b).then_with(|| a.original.cmp(&b.original)));
    versions
}

/// What is left of a text after what was written, which must be how it begins. Repositories have thousands of tags: none of
/// them is written to a text of its own.
struct Unmatched<'t>(&'t str);

impl fmt::Write for Unmatched<'_> {
    fn write_str(&mut self, written: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(written).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// The complete versions that a constraint names, as tags: what there is of a package that no registry has to be asked for.
pub fn named_versions(constraint: &str) -> impl Iterator<Item = String> {
    let words = constraint.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')));
    let versions = words.map(|word| word.trim_start_matches('v')).filter(|word| word.split('.').count() >= 3);
    versions.map(|version| format!("v{version}"))
}

/// The highest version in all ranges: what is installed first.
pub fn highest<'v>(versions: &'v [Version], all: &[&VersionConstraint]) -> Option<&'v Version> {
    versions.iter().rev().find(|version| all.iter().all(|constraint| constraint.covers(version)))
}

/// The lowest version in all ranges that is not below the installed one: what an upgrade changes to.
pub fn lowest_from<'v>(
    versions: &'v [Version],
    installed: &Version,
    all: &[&VersionConstraint],
) -> Option<&'v Version> {
    let not_below = |version: &&Version| version.precedence(installed).is_ge();
    versions.iter().filter(not_below).find(|version| all.iter().all(|constraint| constraint.covers(version)))
}

/// The highest version in all ranges that is below the installed one: what a downgrade changes to.
pub fn highest_below<'v>(
    versions: &'v [Version],
    installed: &Version,
    all: &[&VersionConstraint],
) -> Option<&'v Version> {
    let below = |version: &&Version| version.precedence(installed).is_lt();
    versions
        .iter()
        .rev()
        .filter(below)
        .find(|version| all.iter().all(|constraint| constraint.covers(version)))
}

/// Why a package does not work with this version of the core.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoreError {
    /// The constraint is not one.
    #[error("package version constraints are poorly formatted: {text:?}: {problem}")]
    Malformed {
        /// The constraint.
        text: String,
        /// What is wrong with it.
        problem: SemverError,
    },
    /// The version is out of range.
    #[error(
        "package is not compatible with Crossplane version ({version}): it requires {constraint}; install another \
         version of the package, or set spec.ignoreCrossplaneConstraints"
    )]
    Incompatible {
        /// The version of Crossplane that the core is compatible with.
        version: String,
        /// What the package requires.
        constraint: String,
    },
}

/// Whether a package that requires some versions of Crossplane works with one. No constraint allows all.
pub fn check_core(constraint: Option<&str>, version: &str) -> Result<(), CoreError> {
    let Some(text) = constraint else { return Ok(()) };
    let range =
        Constraint::parse(text).map_err(|problem| CoreError::Malformed { text: text.to_owned(), problem })?;
    if Version::parse(version).is_ok_and(|version| range.check_by_group(&version)) {
        return Ok(());
    }
    Err(CoreError::Incompatible { version: version.to_owned(), constraint: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> VersionConstraint {
        VersionConstraint::parse(text).unwrap()
    }

    #[test]
    fn digests_are_equal_and_ranges_cover() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (constraint, version, allowed) in [
            (digest.as_str(), digest.as_str(), true),
            (digest.as_str(), "v1.0.0", false),
            (">=v1.0.0", digest.as_str(), false),
            (">=v1.0.0", "v1.0.0", true),
            (">=v1.0.0", "v1.1.0-rc.1", false),
            (">=v1.0.0-0", "v1.1.0-rc.1", true),
            // One comparison that names a prerelease speaks for all beside it, and for none in another alternative.
            (">=v1.0.0-0, <v2.0.0", "v1.1.0-rc.1", true),
            (">=v9.0.0-0 || <v2.0.0", "v1.1.0-rc.1", false),
            ("!=v1.0.0", "v1.1.0-rc.1", false),
            ("!=v1.0.0-0", "v1.1.0-rc.1", true),
            (">=v1.0.0", "main", false),
            ("^1.2 || ~3", "3.9.9", true),
            ("*", "v0.1.0", true),
        ] {
            assert_eq!(parse(constraint).allows(version), allowed, "{constraint} {version}");
        }
        assert_eq!(parse(&digest).digest().map(Digest::as_str), Some(digest.as_str()));
        assert!(parse("*").digest().is_none());
        for text in ["", "x.y.z.w", &digest[..20], ">>1"] {
            let error = VersionConstraint::parse(text).unwrap_err().to_string();
            assert!(error.contains("version constraint on dependency is invalid"), "{error}");
        }
    }

    #[test]
    fn only_complete_versions_are_candidates() {
        let tags = ["v1", "v1.2", "latest", "v1.10.0", "1.9.0", "v1.2.0-rc.1", "v01.2.3", "v1.0.0"];
        let found: Vec<String> = versions(&tags).into_iter().map(|v| v.original).collect();
        assert_eq!(found, ["v1.0.0", "v1.2.0-rc.1", "1.9.0", "v1.10.0"]);
    }

    #[test]
    fn the_choice_depends_on_what_is_installed() {
        let versions = versions(&["v1.0.0", "v1.1.0", "v1.2.0", "v2.0.0", "v3.0.0"]);
        let text = |version: Option<&Version>| version.map(|v| v.original.clone());
        let (from, to) = (parse(">=v1.1.0"), parse("<v3.0.0"));
        let all = [&from, &to];
        assert_eq!(text(highest(&versions, &all)).as_deref(), Some("v2.0.0"));
        let installed = |version: &str| Version::parse(version).unwrap();
        assert_eq!(text(lowest_from(&versions, &installed("v1.0.0"), &all)).as_deref(), Some("v1.1.0"));
        assert_eq!(text(lowest_from(&versions, &installed("v1.2.0"), &all)).as_deref(), Some("v1.2.0"));
        assert_eq!(text(lowest_from(&versions, &installed("v2.1.0"), &all)), None);
        assert_eq!(text(highest_below(&versions, &installed("v3.0.0"), &all)).as_deref(), Some("v2.0.0"));
        assert_eq!(text(highest_below(&versions, &installed("v2.0.0"), &all)).as_deref(), Some("v1.2.0"));
        assert_eq!(text(highest_below(&versions, &installed("v1.1.0"), &all)), None);
    }

    #[test]
    fn the_core_must_be_in_range() {
        assert_eq!(check_core(None, "v2.3.4"), Ok(()));
        assert_eq!(check_core(Some(">=v1.14.0-0"), "v2.3.4"), Ok(()));
        let error = check_core(Some("<v2"), "v2.3.4").unwrap_err().to_string();
        assert!(error.starts_with("package is not compatible with Crossplane version (v2.3.4)"), "{error}");
        assert!(matches!(check_core(Some(""), "v2.3.4"), Err(CoreError::Malformed { .. })));
    }
}
