//! Constraints: `>=1.2, <2 || ~3.1`, wildcards, hyphen ranges; prereleases match only where the constraint names one.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::Regex;

use super::{SemverError, Version, compare_prerelease};

/// Alternatives, each a conjunction of comparisons.
#[derive(Debug)]
pub struct Constraint {
    alternatives: Vec<Vec<Comparison>>,
}

#[derive(Debug)]
struct Comparison {
    operator: String,
    version: Version,
    /// Parts that were wildcards or absent.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

struct Patterns {
    one: Regex,
    range: Regex,
    find: Regex,
    valid: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
    let version = concat!(
        r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?",
        r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?",
        r"(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?"
    );
    let space = r"[\t\n\f\r ]";
    let compile = |pattern: String| Regex::new(&pattern).ok();
    Some(Patterns {
        one: compile(format!("^{space}*({OPERATORS}){space}*({version}){space}*$"))?,
        range: compile(format!("{space}*({version}){space}+-{space}+({version}){space}*"))?,
        find: compile(format!("({OPERATORS}){space}*({version})"))?,
        valid: compile(format!(
            "^({space}*({OPERATORS}){space}*({version}){space}*)((?:{space}+|,{space}*)({OPERATORS}){space}*({version}){space}*)*$"
        ))?,
    })
});

impl Constraint {
    /// `NewConstraint`.
    pub fn parse(text: &str) -> Result<Constraint, SemverError> {
        let patterns = PATTERNS.as_ref().ok_or("constraint Parser Error")?;
        let mut spelled = text.to_owned();
        for range in patterns.range.captures_iter(text) {
            let group = |index: usize| range.get(index).map_or("", |group| group.as_str());
            spelled = spelled.replacen(group(0), &format!(">= {}, <= {} ", group(1), group(11)), 1);
        }
        let mut alternatives = Vec::new();
        for part in spelled.split("||") {
            if !patterns.valid.is_match(part) {
                return Err(format!("improper constraint: {part}").into());
            }
            let comparisons =
                patterns.find.find_iter(part).map(|found| Comparison::parse(patterns, found.as_str()));
            alternatives.push(comparisons.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(Constraint { alternatives })
    }

    /// `Constraints.Check` as of v3.3, which templates use: each comparison decides for itself about prereleases.
    pub fn check(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|all| all.iter().all(|comparison| comparison.check(version)))
    }

    /// `Constraints.Check` as of v3.4, which Crossplane uses: prereleases are accepted by all comparisons of an
    /// alternative in which one names a prerelease, and otherwise by none, `!=` included.
    pub fn check_by_group(&self, version: &Version) -> bool {
        let is_prerelease = !version.prerelease.is_empty();
        self.alternatives.iter().any(|all| {
            let names_one = all.iter().any(|comparison| !comparison.version.prerelease.is_empty());
            (!is_prerelease || names_one) && all.iter().all(|comparison| comparison.matches(version))
        })
    }
}

fn is_wild(part: &str) -> bool {
    matches!(part.trim_start_matches('.'), "x" | "X" | "*" | "")
}

impl Comparison {
    fn parse(patterns: &Patterns, text: &str) -> Result<Comparison, SemverError> {
        let found = patterns.one.captures(text).ok_or_else(|| format!("improper constraint: {text}"))?;
        let group = |index: usize| found.get(index).map_or("", |group| group.as_str());
        let (major, minor, patch, prerelease) = (group(3), group(4), group(5), group(6));
        let (mut dirty, mut minor_dirty, mut patch_dirty) = (true, false, false);
        let spelled = if is_wild(major) {
            format!("0.0.0{prerelease}")
        } else if is_wild(minor) {
            minor_dirty = true;
            format!("{major}.0.0{prerelease}")
        } else if is_wild(patch) {
            patch_dirty = true;
            format!("{major}{minor}.0{prerelease}")
        } else {
            dirty = false;
            group(2).to_owned()
        };
        let version = Version::parse(&spelled).map_err(|_| "constraint Parser Error")?;
        Ok(Comparison { operator: group(1).to_owned(), version, dirty, minor_dirty, patch_dirty })
    }

    fn check(&self, version: &Version) -> bool {
        let release_only = !version.prerelease.is_empty() && self.version.prerelease.is_empty();
        if self.operator == "!=" {
            return self.differs(version, release_only);
        }
        !release_only && self.matches(version)
    }

    /// The comparison alone, whether or not prereleases count.
    fn matches(&self, version: &Version) -> bool {
        let order = version.precedence(&self.version);
        match self.operator.as_str() {
            "!=" => self.differs(version, false),
            "" | "=" if self.dirty => self.tilde(version, order),
            "" | "=" => order.is_eq(),
            ">" => self.greater(version, order),
            "<" => order.is_lt(),
            ">=" | "=>" => order.is_ge(),
            "<=" | "=<" => self.at_most(version, order),
            "~" | "~>" => self.tilde(version, order),
            _ => self.caret(version, order),
        }
    }

    fn differs(&self, version: &Version, release_only: bool) -> bool {
        let wanted = &self.version;
        if !self.dirty {
            return version.precedence(wanted).is_ne();
        }
        if release_only {
            return false;
        }
        if wanted.major != version.major {
            return true;
        }
        if self.minor_dirty {
            return false;
        }
        if wanted.minor != version.minor {
            return true;
        }
        if self.patch_dirty {
            let either = !version.prerelease.is_empty() || !wanted.prerelease.is_empty();
            return either && compare_prerelease(&version.prerelease, &wanted.prerelease).is_ne();
        }
        wanted.patch != version.patch || version.precedence(wanted).is_ne()
    }

    fn greater(&self, version: &Version, order: Ordering) -> bool {
        let wanted = &self.version;
        if !self.dirty {
            return order.is_gt();
        }
        match version.major.cmp(&wanted.major) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal if self.minor_dirty => false,
            Ordering::Equal if self.patch_dirty => version.minor > wanted.minor,
            Ordering::Equal => order.is_gt(),
        }
    }

    fn at_most(&self, version: &Version, order: Ordering) -> bool {
        let wanted = &self.version;
        if !self.dirty {
            return order.is_le();
        }
        version.major <= wanted.major
            && !(version.major == wanted.major && version.minor > wanted.minor && !self.minor_dirty)
    }

    fn tilde(&self, version: &Version, order: Ordering) -> bool {
        let wanted = &self.version;
        if order.is_lt() {
            return false;
        }
        let any = (wanted.major, wanted.minor, wanted.patch) == (0, 0, 0);
        if any && !self.minor_dirty && !self.patch_dirty {
            return true;
        }
        version.major == wanted.major && (version.minor == wanted.minor || self.minor_dirty)
    }

    fn caret(&self, version: &Version, order: Ordering) -> bool {
        let wanted = &self.version;
        if order.is_lt() {
            return false;
        }
        if wanted.major > 0 || self.minor_dirty {
            return version.major == wanted.major;
        }
        if version.major > 0 {
            return false;
        }
        if wanted.minor > 0 || self.patch_dirty {
            return version.minor == wanted.minor;
        }
        version.minor == 0 && version.patch == wanted.patch
    }
}
