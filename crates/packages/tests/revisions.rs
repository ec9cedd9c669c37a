//! Whatever the revisions of a package are, one run brings them in order, and the next changes nothing.

use proptest::prelude::*;
use transom_packages::Digest;
use transom_packages::names::revision_name;
use transom_packages::revisions::{
    ActivationPolicy, ActiveRevisions, DesiredState, ExistingRevision, RevisionPlan, RevisionedPackage, plan,
};

fn digest(n: u8) -> Digest {
    Digest::of(&[n])
}

fn package(manual: bool, history_limit: Option<i64>) -> RevisionedPackage<'static> {
    let activation = if manual { ActivationPolicy::Manual } else { ActivationPolicy::Automatic };
    RevisionedPackage { name: "p", activation, history_limit, active: ActiveRevisions::Current }
}

fn function(manual: bool, history_limit: Option<i64>, active: usize) -> RevisionedPackage<'static> {
    RevisionedPackage { active: ActiveRevisions::UpTo(active), ..package(manual, history_limit) }
}

prop_compose! {
    fn existing()(
        all in proptest::collection::btree_map(0u8..8, (-2i64..20, any::<bool>(), proptest::bool::weighted(0.1), any::<bool>()), 0..8),
    ) -> Vec<ExistingRevision> {
        let revision = |(n, (number, active, deleting, healthy)): (u8, (i64, bool, bool, bool))| ExistingRevision {
            name: revision_name("p", &digest(n)),
            number,
            desired_state: if active { DesiredState::Active } else { DesiredState::Inactive },
            deleting,
            healthy,
        };
        all.into_iter().map(revision).collect()
    }
}

/// What the plan leaves behind.
fn applied(existing: &[ExistingRevision], plan: &RevisionPlan) -> Vec<ExistingRevision> {
    let mut all: Vec<ExistingRevision> =
        existing.iter().filter(|revision| !plan.delete.contains(&revision.name)).cloned().collect();
    for revision in &mut all {
        if plan.deactivate.contains(&revision.name) {
            revision.desired_state = DesiredState::Inactive;
        }
        if plan.activate.contains(&revision.name) {
            revision.desired_state = DesiredState::Active;
        }
    }
    all.retain(|revision| revision.name != plan.current.name);
    all.push(ExistingRevision {
        name: plan.current.name.clone(),
        number: plan.current.number,
        desired_state: plan.current.desired_state,
        deleting: false,
        healthy: true,
    });
    all
}

proptest! {
    #[test]
    fn one_run_brings_revisions_in_order(
        existing in existing(),
        manual in any::<bool>(),
        limit in proptest::option::of(-1i64..4),
        content in 0u8..8,
    ) {
        let (package, digest) = (package(manual, limit), digest(content));
        let first = plan(&package, &existing, &digest);
        let name = &first.current.name;
        prop_assert!(!first.delete.contains(name) && !first.deactivate.contains(name));
        prop_assert_eq!(first.current.exists, existing.iter().any(|revision| revision.name == *name));
        if let Some(before) = existing.iter().find(|revision| revision.name == *name) {
            prop_assert!(first.current.number >= before.number);
        }

        let after = applied(&existing, &first);
        let others = || after.iter().filter(|revision| revision.name != *name);
        prop_assert!(others().all(|revision| revision.number < first.current.number));
        let active = after.iter().filter(|r| r.desired_state == DesiredState::Active && !r.deleting).count();
        prop_assert!(active == 1 || (manual && active == 0));
        let history = i64::try_from(others().filter(|revision| !revision.deleting).count()).unwrap();
        let before = i64::try_from(existing.iter().filter(|r| r.name != *name && !r.deleting).count()).unwrap();
        prop_assert_eq!(history, match limit { Some(limit) if limit > 0 => before.min(limit), _ => before });
        // What is deleted is older than what is kept.
        for gone in existing.iter().filter(|revision| first.delete.contains(&revision.name)) {
            prop_assert!(others().filter(|r| !r.deleting).all(|kept| kept.number >= gone.number));
        }

        let second = plan(&package, &after, &digest);
        let unchanged = second.current.number == first.current.number
            && second.current.desired_state == first.current.desired_state
            && second.current.exists;
        prop_assert!(unchanged && second.delete.is_empty() && second.deactivate.is_empty());
    }

    #[test]
    fn functions_have_the_highest_numbers_active_and_users_decide_otherwise(
        existing in existing(),
        manual in any::<bool>(),
        history in proptest::option::of(0i64..5),
        limit in 1usize..4,
        content in 0u8..8,
    ) {
        let (package, digest) = (function(manual, history, limit), digest(content));
        let first = plan(&package, &existing, &digest);
        let after = applied(&existing, &first);
        let is_active = |r: &&ExistingRevision| r.desired_state == DesiredState::Active && !r.deleting;
        if manual {
            prop_assert!(first.activate.is_empty() && first.deactivate.is_empty());
        } else {
            // Nothing that is healthy and active is lost before the current one is healthy. That is so after the first run.
            let second = plan(&package, &after, &digest);
            let settled = applied(&after, &second);
            let mut present: Vec<&ExistingRevision> = settled.iter().filter(|r| !r.deleting).collect();
            present.sort_by(|a, b| b.number.cmp(&a.number).then_with(|| b.name.cmp(&a.name)));
            for (index, revision) in present.iter().enumerate() {
                prop_assert_eq!(is_active(revision), index < limit, "{:?}", settled);
            }
            let third = plan(&package, &settled, &digest);
            prop_assert!(third.activate.is_empty() && third.deactivate.is_empty());
        }
        for gone in &first.delete {
            let was_active = existing.iter().filter(is_active).any(|r| r.name == *gone);
            prop_assert!(!was_active || first.deactivate.contains(gone));
        }
    }

    #[test]
    fn numbers_only_grow(contents in proptest::collection::vec(0u8..4, 1..20), limit in 1i64..3) {
        let package = package(false, Some(limit));
        let mut all = Vec::new();
        let (mut last, mut number) = (None, 0);
        for content in contents {
            let next = plan(&package, &all, &digest(content));
            let expected = if last == Some(content) { number } else { number + 1 };
            prop_assert_eq!(next.current.number, expected);
            (last, number) = (Some(content), expected);
            all = applied(&all, &next);
            prop_assert!(all.len() <= usize::try_from(limit).unwrap() + 1);
        }
    }
}
