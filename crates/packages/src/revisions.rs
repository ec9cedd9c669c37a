//! The revisions of a package: which one is current, which are deactivated, which are deleted.

use crate::digest::Digest;
use crate::names::revision_name;
use transom_xapi::package::{ACTIVE, INACTIVE, Package, PackageRevision};

/// Who activates new revisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActivationPolicy {
    /// The current revision is always active.
    #[default]
    Automatic,
    /// A user activates the current revision.
    Manual,
}

/// The state that a revision should be in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DesiredState {
    /// It controls its objects and runs.
    Active,
    /// It does neither.
    #[default]
    Inactive,
}

impl DesiredState {
    /// The state of `spec.desiredState`. Anything but `Active` is inactive.
    pub fn of(field: &str) -> Self {
        if field == ACTIVE { Self::Active } else { Self::Inactive }
    }

    /// As `spec.desiredState` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => ACTIVE,
            Self::Inactive => INACTIVE,
        }
    }
}

/// What the plan depends on of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionedPackage<'p> {
    /// Its name.
    pub name: &'p str,
    /// Who activates its revisions.
    pub activation: ActivationPolicy,
    /// `spec.revisionHistoryLimit`: how many revisions are kept beside the current one. Absent and 0 keep all.
    pub history_limit: Option<i64>,
}

impl<'p> RevisionedPackage<'p> {
    /// What the plan depends on of a package.
    pub fn of(package: &'p Package) -> Self {
        let automatic = package.activates_automatically();
        Self {
            name: &package.metadata.name,
            activation: if automatic { ActivationPolicy::Automatic } else { ActivationPolicy::Manual },
            history_limit: package.spec.revision_history_limit,
        }
    }
}

/// A revision that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingRevision {
    /// Its name.
    pub name: String,
    /// `spec.revision`.
    pub number: i64,
    /// `spec.desiredState`.
    pub desired_state: DesiredState,
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl ExistingRevision {
    /// What the plan depends on of a revision.
    pub fn of(revision: &PackageRevision) -> Self {
        Self {
            name: revision.metadata.name.clone(),
            number: revision.spec.revision,
            desired_state: DesiredState::of(&revision.spec.desired_state),
            deleting: revision.metadata.is_deleting(),
        }
    }
}

/// What is to be done, in this order: deactivate, write the current revision, delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionPlan {
    /// The revision of the package's current content.
    pub current: CurrentRevision,
    /// Active revisions that are not current, by name.
    pub deactivate: Vec<String>,
    /// Revisions beyond the history limit, the lowest number first.
    pub delete: Vec<String>,
}

/// The revision of a package's current content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentRevision {
    /// Its name.
    pub name: String,
    /// Its number, higher than that of all others.
    pub number: i64,
    /// The state that it should be in.
    pub desired_state: DesiredState,
    /// Whether it exists already.
    pub exists: bool,
}

/// Plans the revisions of a package whose content has a digest.
///
/// Under either policy, only the current revision stays active. A roll-back finds the revision of the old digest and gives
/// it the next number. Unlike the original, which deletes the one with the lowest number in each run even if it is the
/// current one, all that is beyond the limit is deleted at once, and never the current revision.
pub fn plan(package: &RevisionedPackage<'_>, existing: &[ExistingRevision], digest: &Digest) -> RevisionPlan {
    let name = revision_name(package.name, digest);
    let found = existing.iter().find(|revision| revision.name == name);
    let others: Vec<&ExistingRevision> = existing.iter().filter(|revision| revision.name != name).collect();
    let active =
        |revision: &&&ExistingRevision| revision.desired_state == DesiredState::Active && !revision.deleting;
    let desired_state = match package.activation {
        ActivationPolicy::Automatic => DesiredState::Active,
        ActivationPolicy::Manual => found.map(|revision| revision.desired_state).unwrap_or_default(),
    };
    RevisionPlan {
        deactivate: others.iter().filter(active).map(|revision| revision.name.clone()).collect(),
        delete: beyond_limit(package.history_limit, &others),
        current: CurrentRevision {
            name,
            number: number(found, &others),
            desired_state,
            exists: found.is_some(),
        },
    }
}

/// The current revision keeps its number while it is the highest.
fn number(found: Option<&ExistingRevision>, others: &[&ExistingRevision]) -> i64 {
    let highest = others.iter().map(|revision| revision.number).max().unwrap_or(0).max(0);
    match found {
        Some(revision) if revision.number > highest => revision.number,
        _ => highest.saturating_add(1),
    }
}

/// The revisions that history has no place for, the lowest number first.
fn beyond_limit(limit: Option<i64>, others: &[&ExistingRevision]) -> Vec<String> {
    let Some(limit) = limit.filter(|&limit| limit > 0) else { return Vec::new() };
    let mut history: Vec<&&ExistingRevision> = others.iter().filter(|revision| !revision.deleting).collect();
    history.sort_by(|a, b| a.number.cmp(&b.number).then_with(|| a.name.cmp(&b.name)));
    let excess = history.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    history.into_iter().take(excess).map(|revision| revision.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(n: u8) -> Digest {
        Digest::of(&[n])
    }

    fn name(n: u8) -> String {
        revision_name("p", &digest(n))
    }

    fn existing(n: u8, number: i64, desired_state: DesiredState) -> ExistingRevision {
        ExistingRevision { name: name(n), number, desired_state, deleting: false }
    }

    fn package(activation: ActivationPolicy, history_limit: i64) -> RevisionedPackage<'static> {
        RevisionedPackage { name: "p", activation, history_limit: Some(history_limit) }
    }

    use ActivationPolicy::{Automatic, Manual};
    use DesiredState::{Active, Inactive};

    fn current(n: u8, number: i64, desired_state: DesiredState, exists: bool) -> CurrentRevision {
        CurrentRevision { name: name(n), number, desired_state, exists }
    }

    #[test]
    fn an_upgrade_replaces_the_active_revision() {
        let first = plan(&package(Automatic, 1), &[], &digest(1));
        let nothing = Vec::<String>::new();
        assert_eq!(first.current, current(1, 1, Active, false));
        assert_eq!((first.deactivate, first.delete), (nothing.clone(), nothing.clone()));
        let upgrade = plan(&package(Automatic, 1), &[existing(1, 1, Active)], &digest(2));
        assert_eq!(upgrade.current, current(2, 2, Active, false));
        assert_eq!((upgrade.deactivate, upgrade.delete), (vec![name(1)], nothing));
    }

    #[test]
    fn history_is_cut_to_its_limit_at_once_and_never_includes_the_current() {
        let all: Vec<_> = (1..=5).map(|n| existing(n, i64::from(n), Inactive)).collect();
        // A roll-back to the oldest.
        let cut = plan(&package(Automatic, 1), &all, &digest(1));
        assert_eq!(cut.current, current(1, 6, Active, true));
        assert_eq!(cut.delete, [name(2), name(3), name(4)]);
        for limit in [0, -1] {
            assert!(plan(&package(Automatic, limit), &all, &digest(1)).delete.is_empty());
        }
        let unlimited = RevisionedPackage { history_limit: None, ..package(Automatic, 1) };
        assert!(plan(&unlimited, &all, &digest(1)).delete.is_empty());
        let mut leaving = all.clone();
        leaving[1].deleting = true;
        assert_eq!(plan(&package(Automatic, 2), &leaving, &digest(1)).delete, [name(3)]);
        let mut active = all;
        active[1] = ExistingRevision { deleting: true, ..existing(2, 2, Active) };
        assert!(plan(&package(Automatic, 2), &active, &digest(1)).deactivate.is_empty());
    }

    #[test]
    fn a_user_activates_under_the_manual_policy() {
        let upgrade = plan(&package(Manual, 1), &[existing(1, 1, Active)], &digest(2));
        assert_eq!(upgrade.current, current(2, 2, Inactive, false));
        assert_eq!(upgrade.deactivate, [name(1)]);
        // Activated by hand: the current one stays active, another one does not.
        let all = [existing(1, 1, Active), existing(2, 2, Active)];
        let kept = plan(&package(Manual, 1), &all, &digest(2));
        assert_eq!((kept.current, kept.deactivate), (current(2, 2, Active, true), vec![name(1)]));
    }

    #[test]
    fn the_current_number_is_the_highest_of_all() {
        let number = |all: &[ExistingRevision]| plan(&package(Automatic, 0), all, &digest(1)).current.number;
        assert_eq!(number(&[existing(1, 3, Active), existing(2, 2, Inactive)]), 3);
        assert_eq!(number(&[existing(1, 2, Active), existing(2, 2, Inactive)]), 3);
        assert_eq!(number(&[existing(1, 0, Active)]), 1);
        assert_eq!(number(&[existing(2, -7, Active)]), 1);
        assert_eq!(number(&[existing(2, 7, Active)]), 8);
    }

    #[test]
    fn fields_are_read_as_crossplane_reads_them() {
        let package = |spec: serde_json::Value| -> Package {
            serde_json::from_value(serde_json::json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
        };
        let automatic = package(serde_json::json!({"revisionHistoryLimit": 3}));
        let expected = RevisionedPackage { name: "p", activation: Automatic, history_limit: Some(3) };
        assert_eq!(RevisionedPackage::of(&automatic), expected);
        let manual = package(serde_json::json!({"revisionActivationPolicy": "Manual"}));
        assert_eq!(
            RevisionedPackage::of(&manual),
            RevisionedPackage { activation: Manual, history_limit: None, ..expected }
        );
        let revision: PackageRevision = serde_json::from_value(serde_json::json!({
            "metadata": {"name": name(1), "deletionTimestamp": "2020-01-01T00:00:00Z"},
            "spec": {"revision": 7, "desiredState": "Active"},
        }))
        .unwrap();
        let expected = ExistingRevision { deleting: true, ..existing(1, 7, Active) };
        assert_eq!(ExistingRevision::of(&revision), expected);
        for state in [Active, Inactive] {
            assert_eq!(DesiredState::of(state.as_str()), state);
        }
        assert_eq!(DesiredState::of(""), Inactive);
    }
}
