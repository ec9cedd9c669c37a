//! Which version meets what the dependents of a package need, and which dependents no version satisfies.

use super::{Mode, Need, Parent};
use crate::constraint::{VersionConstraint, highest, highest_below, lowest_from, versions};
use crate::digest::Digest;
use crate::reference::Reference;
use std::collections::{BTreeMap, BTreeSet};
use transom_go::semver::Version;

/// What meets a need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What to write.
    pub action: Action,
    /// Parents that no available version satisfies; the others are served.
    pub unsatisfied: Vec<Parent>,
}

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A new package object.
    Create {
        /// Its group and version.
        api_version: String,
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// Its `spec.package`.
        package: String,
    },
    /// Another `spec.package` of an existing object.
    Update {
        /// Its group and version.
        api_version: String,
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// Its new `spec.package`.
        package: String,
    },
    /// Nothing: the installed version is the best there is.
    Keep,
}

/// No version meets a need.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoVersion {
    /// None satisfies all parents.
    #[error(
        "dependency ({dependency}) does not have a valid version to upgrade that satisfies all constraints. If there is \
         a valid version that requires downgrade, manual intervention is required. Constraints: [{}]",
        listed(parents)
    )]
    Unsatisfiable {
        /// The source.
        dependency: String,
        /// All parents with their constraints.
        parents: Vec<Parent>,
    },
    /// Some parents want a digest, others a range.
    #[error(
        "dependency ({dependency}): a dependency package has different types of parent constraints ([{}])",
        listed(parents)
    )]
    MixedConstraints {
        /// The source.
        dependency: String,
        /// All parents with their constraints.
        parents: Vec<Parent>,
    },
    /// Parents want different digests.
    #[error(
        "dependency ({dependency}): a dependency package has different digests in parent constraints ([{}])",
        listed(parents)
    )]
    DifferentDigests {
        /// The source.
        dependency: String,
        /// All parents with their constraints.
        parents: Vec<Parent>,
    },
    /// The installed version cannot be compared.
    #[error(
        "dependency ({dependency}) is installed as {installed}, which is not a semantic version and cannot be upgraded; \
         set spec.package to a version. Constraints: [{}]",
        listed(parents)
    )]
    Incomparable {
        /// The source.
        dependency: String,
        /// The installed version.
        installed: String,
        /// All parents with their constraints.
        parents: Vec<Parent>,
    },
    /// Something about the dependency itself is wrong.
    #[error("dependency ({dependency}): {problem}. Constraints: [{}]", listed(parents))]
    Invalid {
        /// The source.
        dependency: String,
        /// What is wrong.
        problem: String,
        /// All parents with their constraints.
        parents: Vec<Parent>,
    },
}

fn listed(parents: &[Parent]) -> String {
    let named = |parent: &Parent| format!("{} requires {}", parent.name, parent.constraint.trim());
    parents.iter().map(named).collect::<Vec<_>>().join(", ")
}

/// Chooses the version that meets a need among the tags of its repository.
pub fn choose(need: &Need, tags: &[String], mode: Mode) -> Result<Choice, NoVersion> {
    let source = Reference::parse_source(&need.source).map_err(|error| need.invalid(error.to_string()))?;
    // Many parents write the same text.
    let texts: BTreeSet<&str> = need.parents.iter().map(|parent| parent.constraint.as_str()).collect();
    let read = texts.iter().filter_map(|text| Some((*text, VersionConstraint::parse(text).ok()?)));
    let asked: Asked<'_> = read.collect();
    let unread = |parent: &&Parent| !asked.contains_key(parent.constraint.as_str());
    let mut unsatisfied: Vec<Parent> = need.parents.iter().filter(unread).cloned().collect();
    let version = match digest(need, &asked)? {
        Some(digest) => digest.as_str().to_owned(),
        None => range(need, &asked, tags, mode, &mut unsatisfied)?,
    };
    let package = source.at_version(&version).map_err(|error| need.invalid(error.to_string()))?;
    Ok(Choice { action: action(need, &package, &version)?, unsatisfied })
}

/// The constraints of all parents that can be read, by their texts.
type Asked<'n> = BTreeMap<&'n str, VersionConstraint>;

/// The digest that all parents want, if one does.
fn digest<'a>(need: &Need, asked: &'a Asked<'_>) -> Result<Option<&'a Digest>, NoVersion> {
    let digests = || asked.values().map(VersionConstraint::digest);
    let Some(first) = digests().flatten().next() else { return Ok(None) };
    let named = || (need.source.clone(), need.parents.clone());
    if digests().any(|digest| digest.is_none()) {
        let (dependency, parents) = named();
        return Err(NoVersion::MixedConstraints { dependency, parents });
    }
    if digests().any(|digest| digest != Some(first)) {
        let (dependency, parents) = named();
        return Err(NoVersion::DifferentDigests { dependency, parents });
    }
    Ok(Some(first))
}

/// The tag in the ranges of all parents that any tag can satisfy.
fn range(
    need: &Need,
    asked: &Asked<'_>,
    tags: &[String],
    mode: Mode,
    unsatisfied: &mut Vec<Parent>,
) -> Result<String, NoVersion> {
    let versions = versions(tags);
    let is_satisfiable = |constraint: &VersionConstraint| versions.iter().any(|v| constraint.covers(v));
    let (can, cannot): (Vec<_>, Vec<_>) = asked.iter().partition(|(_, c)| is_satisfiable(c));
    let all: Vec<&VersionConstraint> = can.into_iter().map(|(_, constraint)| constraint).collect();
    let is_without = |parent: &&Parent| cannot.iter().any(|(text, _)| **text == parent.constraint);
    unsatisfied.extend(need.parents.iter().filter(is_without).cloned());
    let found = match installed_version(need)? {
        _ if all.is_empty() => None,
        None => highest(&versions, &all),
        Some(installed) => lowest_from(&versions, &installed, &all).or_else(|| {
            let below = || highest_below(&versions, &installed, &all);
            (mode == Mode::Downgrade).then(below).flatten()
        }),
    };
    let unsatisfiable =
        || NoVersion::Unsatisfiable { dependency: need.source.clone(), parents: need.parents.clone() };
    found.map(|version| version.original.clone()).ok_or_else(unsatisfiable)
}

fn installed_version(need: &Need) -> Result<Option<Version>, NoVersion> {
    let Some(installed) = &need.installed else { return Ok(None) };
    let text = installed.version().unwrap_or_else(|| installed.package.clone());
    Version::parse(&text).map(Some).map_err(|_| NoVersion::Incomparable {
        dependency: need.source.clone(),
        installed: text,
        parents: need.parents.clone(),
    })
}

fn action(need: &Need, package: &Reference, version: &str) -> Result<Action, NoVersion> {
    if let Some(installed) = &need.installed {
        if installed.version().as_deref() == Some(version) {
            return Ok(Action::Keep);
        }
        // A package that is installed from a mirror stays with it.
        let own = Reference::parse(&installed.package).and_then(|own| own.at_version(version));
        let package = own.map_or_else(|_| package.to_string(), |own| own.to_string());
        let (api_version, kind) = (installed.api_version.clone(), installed.kind.clone());
        return Ok(Action::Update { api_version, kind, name: installed.name.clone(), package });
    }
    let target = need.target.clone();
    let (api_version, kind) = target.ok_or_else(|| {
        let problem = "encountered an invalid dependency: package dependencies must specify either a valid type, or an \
                       explicit apiVersion, kind, and package";
        need.invalid(problem.to_owned())
    })?;
    Ok(Action::Create { api_version, kind, name: need.name.clone(), package: package.to_string() })
}

impl Need {
    fn invalid(&self, problem: String) -> NoVersion {
        NoVersion::Invalid { dependency: self.source.clone(), problem, parents: self.parents.clone() }
    }
}
