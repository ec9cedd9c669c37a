//! Generated Locks: cycles and duplicates are found, named, and affect no other entries.

use proptest::prelude::*;
use transom_packages::lock::graph::{Graph, Mirrors};
use transom_packages::lock::resolve::{Problem, resolve_revision};
use transom_packages::lock::{LockDependency, LockPackage};
use transom_packages::solver::{Mode, next_step};

/// Source, version and dependencies.
type Entry = (u8, &'static str, Vec<(u8, &'static str)>);

/// Entries of the sources `r.io/<group>0` to `r.io/<group>6`, some of them twice.
fn lock(group: &'static str) -> impl Strategy<Value = Vec<LockPackage>> {
    let constraint = prop_oneof![Just(">=v1.0.0"), Just("<v2.0.0"), Just("v1.0.0"), Just("nonsense")];
    let dependencies = proptest::collection::vec((0u8..8, constraint), 0..3);
    let version = prop_oneof![Just("v0.9.0"), Just("v1.0.0"), Just("v2.1.0")];
    let entries = proptest::collection::vec((0u8..7, version, dependencies), 0..9);
    entries.prop_map(move |entries| {
        let entry = |(i, (source, version, dependencies)): (usize, Entry)| LockPackage {
            name: format!("{group}{source}-{i}"),
            source: format!("r.io/{group}{source}"),
            version: version.to_owned(),
            dependencies: dependencies
                .into_iter()
                .map(|(to, constraint)| dependency(group, to, constraint))
                .collect(),
            ..LockPackage::default()
        };
        entries.into_iter().enumerate().map(entry).collect()
    })
}

fn dependency(group: &str, to: u8, constraint: &str) -> LockDependency {
    let mut dependency = LockDependency { package: format!("r.io/{group}{to}"), ..LockDependency::default() };
    dependency.constraints = constraint.to_owned();
    dependency.package_type = Some(transom_packages::PackageKind::Provider);
    dependency
}

/// Whether a source reaches a source, by walking all ways.
fn reaches(lock: &[LockPackage], from: &LockPackage, to: &str) -> bool {
    let mut todo: Vec<&str> = from.dependencies.iter().map(|d| d.package.as_str()).collect();
    let mut seen = std::collections::BTreeSet::new();
    while let Some(source) = todo.pop() {
        if source == to {
            return true;
        }
        if seen.insert(source) {
            let entries = lock.iter().filter(|entry| entry.source == source);
            todo.extend(entries.flat_map(|entry| &entry.dependencies).map(|d| d.package.as_str()));
        }
    }
    false
}

proptest! {
    #[test]
    fn culprits_are_those_that_a_walk_finds(lock in lock("a")) {
        let none = Mirrors::new();
        let graph = Graph::new(&lock, &none);
        for (i, entry) in lock.iter().enumerate() {
            // Entries of one source are one node to those that depend on it, so a walk back to the source may end in
            // a twin; without twins it is a cycle exactly if the walk comes back.
            let twins = lock.iter().filter(|other| other.source == entry.source).count();
            prop_assert_eq!(graph.duplicates(i).len(), twins - 1);
            let cycle = graph.cycle(i);
            if twins == 1 {
                prop_assert_eq!(cycle.is_some(), reaches(&lock, entry, &entry.source), "{}", entry.name);
            }
            for step in cycle.iter().flat_map(|way| way.windows(2)) {
                let leads = |e: &LockPackage| e.source == step[0] && e.dependencies.iter().any(|d| d.package == step[1]);
                prop_assert!(lock.iter().any(leads));
            }
            if let Some(way) = cycle {
                prop_assert!(way.first() == Some(&entry.source.as_str()) && way.first() == way.last());
            }
        }
    }

    #[test]
    fn counts_agree_with_problems(lock in lock("a")) {
        let none = Mirrors::new();
        let graph = Graph::new(&lock, &none);
        for entry in &lock {
            let resolution = resolve_revision(&graph, &entry.name).unwrap();
            prop_assert!(resolution.installed <= resolution.found && resolution.invalid <= entry.dependencies.len());
            match resolution.problem {
                None => prop_assert!(resolution.installed == resolution.found && resolution.invalid == 0),
                Some(Problem::Missing { names }) => prop_assert_eq!(names.len(), resolution.found - resolution.installed),
                Some(Problem::Incompatible { problems }) => prop_assert_eq!(problems.len(), resolution.invalid),
                Some(Problem::Duplicate { others, .. }) => prop_assert!(!others.is_empty()),
                Some(Problem::Cycle { path }) => prop_assert!(path.len() > 1),
            }
        }
    }

    #[test]
    fn what_is_wrong_in_one_group_does_not_reach_another(a in lock("a"), b in lock("b"), mode in 0usize..3) {
        let mode = [Mode::Default, Mode::Upgrade, Mode::Downgrade][mode];
        let none = Mirrors::new();
        let both: Vec<LockPackage> = a.iter().chain(&b).cloned().collect();
        let (alone, together) = (Graph::new(&b, &none), Graph::new(&both, &none));
        for entry in &b {
            prop_assert_eq!(resolve_revision(&alone, &entry.name), resolve_revision(&together, &entry.name));
        }
        let needs: Vec<_> = [&a, &b].into_iter().flat_map(|lock| next_step(lock, &[], mode, &none)).collect();
        prop_assert_eq!(next_step(&both, &[], mode, &none), needs);
    }

    #[test]
    fn culprits_do_not_change_what_others_get(lock in lock("a")) {
        let none = Mirrors::new();
        let graph = Graph::new(&lock, &none);
        let innocent = |i: &usize| !graph.is_blocked(*i);
        for need in next_step(&lock, &[], Mode::Default, &none) {
            for parent in &need.parents {
                let i = graph.find(&parent.name).unwrap();
                prop_assert!(innocent(&i), "{} is a culprit", parent.name);
            }
        }
        // Every missing dependency of an innocent entry is needed.
        let needed = next_step(&lock, &[], Mode::Default, &none);
        for i in (0..lock.len()).filter(innocent) {
            for dependency in &lock[i].dependencies {
                let missing = graph.matching(&dependency.package).is_empty();
                prop_assert_eq!(missing, needed.iter().any(|need| need.source == dependency.package));
            }
        }
    }
}
