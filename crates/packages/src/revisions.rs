//! The revisions of a package: which one is current, which are deactivated, which are deleted.

use crate::digest::Digest;
use crate::names::revision_name;
use transom_xapi::package::{ACTIVE, INACTIVE, Package, PackageKind, PackageRevision};

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
    /// How many revisions can be active at a time.
    pub active: ActiveRevisions,
}

/// How many revisions of a package can be active at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActiveRevisions {
    /// One, because it controls the objects of the package: no other than the current one.
    Current,
    /// Up to this many: nothing is controlled by them. Of a package whose revisions are activated by hand, any number.
    UpTo(usize),
}

impl<'p> RevisionedPackage<'p> {
    /// What the plan depends on of a package.
    pub fn of(package: &'p Package, kind: PackageKind) -> Self {
        let automatic = package.activates_automatically();
        let limit = package.spec.active_revision_limit.and_then(|limit| usize::try_from(limit).ok());
        Self {
            active: match kind {
                PackageKind::Function => ActiveRevisions::UpTo(limit.unwrap_or(1).max(1)),
                PackageKind::Provider | PackageKind::Configuration => ActiveRevisions::Current,
            },
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
    /// Whether it reports that it is installed and runs.
    pub healthy: bool,
}

impl ExistingRevision {
    /// What the plan depends on of a revision.
    pub fn of(revision: &PackageRevision, healthy: bool) -> Self {
        Self {
            name: revision.metadata.name.clone(),
            number: revision.spec.revision,
            desired_state: DesiredState::of(&revision.spec.desired_state),
            deleting: revision.metadata.is_deleting(),
            healthy,
        }
    }

    fn is_active(&self) -> bool {
        self.desired_state == DesiredState::Active && !self.deleting
    }
}

/// What is to be done, in this order: deactivate, delete, write the current revision, activate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionPlan {
    /// The revision of the package's current content.
    pub current: CurrentRevision,
    /// Other revisions that are active and should not be, by name.
    pub deactivate: Vec<String>,
    /// Revisions beyond the history limit, the lowest number first.
    pub delete: Vec<String>,
    /// Other revisions that should be active and are not, by name.
    pub activate: Vec<String>,
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
/// Where only one revision can be active, it is the current one under either policy. Otherwise those with the highest
/// numbers are, up to the limit, and a user decides alone under the manual policy. Those beyond the limit that are healthy
/// stay active until the current one is healthy, so that an upgrade that fails leaves what works.
///
/// A roll-back finds the revision of the old digest and gives it the next number. Unlike the original, which deletes the one
/// with the lowest number in each run even if it is the current one, all that is beyond the limit is deleted at once, and
/// never one that is current or stays active.
pub fn plan(package: &RevisionedPackage<'_>, existing: &[ExistingRevision], digest: &Digest) -> RevisionPlan {
    let name = revision_name(package.name, digest);
    let found = existing.iter().find(|revision| revision.name == name);
    let mut others: Vec<&ExistingRevision> =
        existing.iter().filter(|revision| revision.name != name).collect();
    others.sort_by(|a, b| b.number.cmp(&a.number).then_with(|| b.name.cmp(&a.name)));
    let desired_state = match package.activation {
        ActivationPolicy::Automatic => DesiredState::Active,
        ActivationPolicy::Manual => found.map(|revision| revision.desired_state).unwrap_or_default(),
    };
    let number = number(found, &others);
    let is_proven = found.is_some_and(|found| found.healthy && found.is_active() && found.number == number);
    let active = should_be_active(package, &others, is_proven);
    let is_listed = |revision: &ExistingRevision| active.contains(&revision.name.as_str());
    let names = |chosen: &dyn Fn(&ExistingRevision) -> bool| -> Vec<String> {
        others.iter().filter(|revision| chosen(revision)).map(|revision| revision.name.clone()).collect()
    };
    RevisionPlan {
        deactivate: names(&|revision| revision.is_active() && !is_listed(revision)),
        activate: names(&|revision| !revision.is_active() && is_listed(revision)),
        delete: beyond_limit(package.history_limit, &others, &active),
        current: CurrentRevision { name, number, desired_state, exists: found.is_some() },
    }
}

/// The revisions beside the current one that should be active. `others` are sorted by their numbers, the highest first;
/// `is_proven` says whether the current one is active and healthy.
fn should_be_active<'r>(
    package: &RevisionedPackage<'_>,
    others: &[&'r ExistingRevision],
    is_proven: bool,
) -> Vec<&'r str> {
    let ActiveRevisions::UpTo(limit) = package.active else { return Vec::new() };
    let present = others.iter().filter(|revision| !revision.deleting);
    let is_wanted = |(index, revision): &(usize, &&'r ExistingRevision)| match package.activation {
        ActivationPolicy::Manual => revision.is_active(),
        ActivationPolicy::Automatic => {
            index + 1 < limit || (!is_proven && revision.is_active() && revision.healthy)
        }
    };
    present.enumerate().filter(is_wanted).map(|(_, revision)| revision.name.as_str()).collect()
}

/// The current revision keeps its number while it is the highest.
fn number(found: Option<&ExistingRevision>, others: &[&ExistingRevision]) -> i64 {
    let highest = others.iter().map(|revision| revision.number).max().unwrap_or(0).max(0);
    match found {
        Some(revision) if revision.number > highest => revision.number,
        _ => highest.saturating_add(1),
    }
}

/// The revisions that history has no place for, the lowest number first. What stays active is not history.
fn beyond_limit(limit: Option<i64>, others: &[&ExistingRevision], active: &[&str]) -> Vec<String> {
    let Some(limit) = limit.filter(|&limit| limit > 0) else { return Vec::new() };
    let present: Vec<&&ExistingRevision> = others.iter().filter(|revision| !revision.deleting).collect();
    let excess = present.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    let oldest = present.iter().rev().filter(|revision| !active.contains(&revision.name.as_str()));
    oldest.take(excess).map(|revision| revision.name.clone()).collect()
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
        ExistingRevision { name: name(n), number, desired_state, deleting: false, healthy: true }
    }

    fn unhealthy(n: u8, number: i64, desired_state: DesiredState) -> ExistingRevision {
        ExistingRevision { healthy: false, ..existing(n, number, desired_state) }
    }

    fn package(activation: ActivationPolicy, history_limit: i64) -> RevisionedPackage<'static> {
        let active = ActiveRevisions::Current;
        RevisionedPackage { name: "p", activation, history_limit: Some(history_limit), active }
    }

    fn function(
        activation: ActivationPolicy,
        history_limit: i64,
        limit: usize,
    ) -> RevisionedPackage<'static> {
        RevisionedPackage { active: ActiveRevisions::UpTo(limit), ..package(activation, history_limit) }
    }

    fn names(all: &[u8]) -> Vec<String> {
        all.iter().map(|n| name(*n)).collect()
    }

    #[test]
    fn the_highest_numbers_are_active_up_to_the_limit() {
        let package = function(Automatic, 4, 2);
        let both = [existing(1, 1, Active), existing(2, 2, Active)];
        let repeated = plan(&package, &both, &digest(2));
        assert_eq!((repeated.current.number, repeated.activate, repeated.deactivate), (2, vec![], vec![]));
        // A third one deactivates the one with the lowest number, once it is healthy.
        let new = plan(&package, &both, &digest(3));
        assert_eq!(new.current, current(3, 3, Active, false));
        assert_eq!((new.activate, new.deactivate), (vec![], vec![]));
        let three = |third| [existing(1, 1, Active), existing(2, 2, Active), third];
        let ill = plan(&package, &three(unhealthy(3, 3, Active)), &digest(3));
        assert_eq!((ill.activate, ill.deactivate), (vec![], vec![]));
        let well = plan(&package, &three(existing(3, 3, Active)), &digest(3));
        assert_eq!((well.activate, well.deactivate), (vec![], names(&[1])));
        // A higher limit activates what is there, a lower one deactivates.
        let all = [existing(1, 1, Inactive), existing(2, 2, Inactive), existing(3, 3, Active)];
        assert_eq!(plan(&function(Automatic, 4, 2), &all, &digest(3)).activate, names(&[2]));
        assert_eq!(plan(&function(Automatic, 4, 9), &all, &digest(3)).activate, names(&[2, 1]));
        let all = [existing(1, 1, Active), existing(2, 2, Active), existing(3, 3, Active)];
        assert_eq!(plan(&function(Automatic, 4, 1), &all, &digest(3)).deactivate, names(&[2, 1]));
        // A roll-back makes the first the highest; what it replaces stays until it is healthy.
        let all = [unhealthy(1, 1, Inactive), existing(2, 2, Active), existing(3, 3, Active)];
        let back = plan(&package, &all, &digest(1));
        assert_eq!((back.current.number, back.activate, back.deactivate), (4, vec![], vec![]));
        let all = [existing(1, 4, Active), existing(2, 2, Active), existing(3, 3, Active)];
        assert_eq!(plan(&package, &all, &digest(1)).deactivate, names(&[2]));
    }

    #[test]
    fn a_revision_that_is_never_healthy_leaves_those_that_are() {
        let package = function(Automatic, 1, 1);
        let all = [existing(1, 1, Active), unhealthy(2, 2, Active)];
        let next = plan(&package, &all, &digest(3));
        assert_eq!(next.current, current(3, 3, Active, false));
        assert_eq!(next.deactivate, names(&[2]), "what never worked is not kept");
        assert_eq!(next.delete, names(&[2]), "what is active is not history");
        let none = [unhealthy(1, 1, Active), unhealthy(2, 2, Active)];
        assert_eq!(plan(&package, &none, &digest(2)).deactivate, names(&[1]), "nothing is lost");
        let well = [existing(1, 1, Active), existing(2, 2, Active)];
        assert_eq!(plan(&package, &well, &digest(2)).deactivate, names(&[1]));
    }

    #[test]
    fn users_decide_alone_which_revisions_of_a_function_are_active() {
        let package = function(Manual, 1, 1);
        let all = [existing(1, 1, Active), existing(2, 2, Inactive), existing(3, 3, Active)];
        let next = plan(&package, &all, &digest(4));
        assert_eq!(next.current, current(4, 4, Inactive, false));
        assert_eq!((next.activate, next.deactivate), (vec![], vec![]));
        assert_eq!(next.delete, names(&[2]), "what a user activated is kept");
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
        let active = ActiveRevisions::UpTo(1);
        let expected = RevisionedPackage { name: "p", activation: Automatic, history_limit: Some(3), active };
        assert_eq!(RevisionedPackage::of(&automatic, PackageKind::Function), expected);
        let several = package(serde_json::json!({"revisionHistoryLimit": 3, "activeRevisionLimit": 2}));
        let active = ActiveRevisions::UpTo(2);
        let two = RevisionedPackage { active, ..expected.clone() };
        assert_eq!(RevisionedPackage::of(&several, PackageKind::Function), two);
        let active = ActiveRevisions::Current;
        let expected = RevisionedPackage { active, ..expected };
        assert_eq!(RevisionedPackage::of(&several, PackageKind::Provider), expected);
        let manual = package(serde_json::json!({"revisionActivationPolicy": "Manual"}));
        assert_eq!(
            RevisionedPackage::of(&manual, PackageKind::Configuration),
            RevisionedPackage { activation: Manual, history_limit: None, ..expected }
        );
        let revision: PackageRevision = serde_json::from_value(serde_json::json!({
            "metadata": {"name": name(1), "deletionTimestamp": "2020-01-01T00:00:00Z"},
            "spec": {"revision": 7, "desiredState": "Active"},
        }))
        .unwrap();
        let expected = ExistingRevision { deleting: true, ..existing(1, 7, Active) };
        assert_eq!(ExistingRevision::of(&revision, true), expected);
        for state in [Active, Inactive] {
            assert_eq!(DesiredState::of(state.as_str()), state);
        }
        assert_eq!(DesiredState::of(""), Inactive);
    }
}
