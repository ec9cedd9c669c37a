//! Generated repositories: solving ends, and every choice is acceptable to all that it can be acceptable to.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use transom_packages::constraint::VersionConstraint;
use transom_packages::lock::graph::{Graph, Mirrors};
use transom_packages::lock::resolve::resolve_revision;
use transom_packages::lock::{LockDependency, LockPackage};
use transom_packages::solver::{Action, InstalledPackage, Mode, Need, NoVersion, choose, next_step};
use transom_packages::{PackageKind, Reference};

/// The tags of each source, and what each of these versions depends on.
type Repositories = BTreeMap<String, BTreeMap<String, Vec<(String, String)>>>;

/// A plane without controllers: package objects, and the entries that their revisions make.
#[derive(Clone, Default)]
struct Plane {
    lock: Vec<LockPackage>,
    objects: Vec<InstalledPackage>,
}

impl Plane {
    fn install(&mut self, name: &str, package: &str, repositories: &Repositories) {
        let reference = Reference::parse(package).expect("the solver writes references");
        let (source, version) = (reference.source(), reference.identifier().to_owned());
        let dependencies =
            repositories.get(&source).and_then(|tags| tags.get(&version)).cloned().unwrap_or_default();
        let dependency = |(package, constraints): (String, String)| LockDependency {
            package,
            constraints,
            package_type: Some(PackageKind::Provider),
            ..LockDependency::default()
        };
        self.objects.retain(|object| object.name != name);
        self.lock.retain(|entry| entry.source != source);
        self.lock.push(LockPackage {
            name: name.to_owned(),
            source,
            version,
            dependencies: dependencies.into_iter().map(dependency).collect(),
            ..LockPackage::default()
        });
        self.objects.push(InstalledPackage {
            api_version: "pkg.crossplane.io/v1".to_owned(),
            kind: "Provider".to_owned(),
            name: name.to_owned(),
            package: package.to_owned(),
            resolved: None,
        });
    }

    /// One step: what was written, and how often tags were asked for.
    fn step(&mut self, repositories: &Repositories, mode: Mode) -> (usize, usize) {
        let needs = next_step(&self.lock, &self.objects, mode, &Mirrors::new());
        let (mut written, asked) = (0, needs.len());
        for need in needs {
            let tags: Vec<String> =
                repositories.get(&need.source).map(|tags| tags.keys().cloned().collect()).unwrap_or_default();
            let choice = choose(&need, &tags, mode);
            check(&need, &tags, mode, &choice);
            let Ok(choice) = choice else { continue };
            match choice.action {
                Action::Create { name, package, .. } | Action::Update { name, package, .. } => {
                    self.install(&name, &package, repositories);
                    written += 1;
                }
                Action::Keep => {}
            }
        }
        (written, asked)
    }
}

fn accepts(constraint: &str, tag: &str) -> bool {
    VersionConstraint::parse(constraint).is_ok_and(|constraint| constraint.allows(tag))
}

/// Compares a choice with what looking at every tag and parent finds.
fn check(
    need: &Need,
    tags: &[String],
    mode: Mode,
    choice: &Result<transom_packages::solver::Choice, NoVersion>,
) {
    let possible = |constraint: &str| tags.iter().any(|tag| accepts(constraint, tag));
    let served: Vec<&str> =
        need.parents.iter().map(|parent| parent.constraint.as_str()).filter(|c| possible(c)).collect();
    let all_accept = |tag: &str| served.iter().all(|constraint| accepts(constraint, tag));
    // Generated versions are v0.0.0 to v9.9.9: they sort as texts.
    let candidates: BTreeSet<&str> = tags.iter().map(String::as_str).filter(|tag| all_accept(tag)).collect();
    let installed = need.installed.as_ref().and_then(|object| object.package.rsplit(':').next());
    let above = installed.and_then(|installed| candidates.range(installed..).next().copied());
    let below = installed.and_then(|installed| candidates.range(..installed).next_back().copied());
    let expected = match installed {
        _ if served.is_empty() => None,
        None => candidates.last().copied(),
        Some(_) => above.or(below.filter(|_| mode == Mode::Downgrade)),
    };
    match choice {
        Err(error) => {
            assert_eq!(expected, None, "{error}");
            let text = error.to_string();
            assert!(need.parents.iter().all(|parent| text.contains(&parent.name)), "{text}");
        }
        Ok(choice) => {
            assert!(choice.unsatisfied.iter().all(|parent| !possible(&parent.constraint)));
            assert_eq!(choice.unsatisfied.len() + served.len(), need.parents.len());
            let chosen = match &choice.action {
                Action::Create { package, .. } | Action::Update { package, .. } => package.rsplit(':').next(),
                Action::Keep => installed,
            };
            assert_eq!(chosen, expected, "{need:?} {tags:?}");
        }
    }
}

fn repositories() -> impl Strategy<Value = Repositories> {
    let constraint = prop_oneof![
        (0u8..4).prop_map(|n| format!(">=v{n}.0.0")),
        (0u8..4).prop_map(|n| format!("<v{n}.0.0")),
        (0u8..4).prop_map(|n| format!("~v{n}.0")),
        Just("*".to_owned()),
    ];
    let dependencies =
        proptest::collection::vec(((0u8..6).prop_map(|n| format!("r.io/{n}")), constraint), 0..3);
    let version = (0u8..4, 0u8..3).prop_map(|(major, minor)| format!("v{major}.{minor}.0"));
    let tags = proptest::collection::btree_map(version, dependencies, 0..5);
    proptest::collection::vec(tags, 6)
        .prop_map(|all| all.into_iter().enumerate().map(|(i, tags)| (format!("r.io/{i}"), tags)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_choice_is_the_best_for_all_parents(
        repositories in repositories(),
        roots in proptest::collection::btree_set((0u8..6, 0u8..4), 1..4),
        mode in 0usize..3,
    ) {
        let mode = [Mode::Default, Mode::Upgrade, Mode::Downgrade][mode];
        let mut plane = Plane::default();
        for (source, major) in roots {
            plane.install(&format!("root-{source}"), &format!("r.io/{source}:v{major}.0.0"), &repositories);
        }
        // Downgrades may go back and forth where two versions exclude each other, so only their choices are checked.
        let mut rounds = 0;
        while plane.step(&repositories, mode).0 > 0 && rounds < 20 {
            rounds += 1;
        }
        if mode == Mode::Default {
            prop_assert!(rounds <= 6, "each round installs at least one of six sources");
        }
        let sources: BTreeSet<&str> = plane.lock.iter().map(|entry| entry.source.as_str()).collect();
        prop_assert_eq!(sources.len(), plane.lock.len(), "no source is installed twice");
    }

    #[test]
    fn nothing_is_needed_where_all_is_healthy(repositories in repositories(), root in (0u8..6, 0u8..4)) {
        let mut plane = Plane::default();
        plane.install("root", &format!("r.io/{}:v{}.0.0", root.0, root.1), &repositories);
        while plane.step(&repositories, Mode::Default).0 > 0 {}
        let none = Mirrors::new();
        let graph = Graph::new(&plane.lock, &none);
        let healthy = |entry: &LockPackage| resolve_revision(&graph, &entry.name).is_some_and(|r| r.problem.is_none());
        if plane.lock.iter().all(healthy) {
            for mode in [Mode::Default, Mode::Upgrade, Mode::Downgrade] {
                prop_assert_eq!(plane.clone().step(&repositories, mode), (0, 0));
            }
        }
    }
}

/// Ten layers of a hundred packages, each of which depends on two of the layer below: solved in a step for each layer, with
/// one choice for each package.
#[test]
fn a_thousand_packages_are_solved_layer_by_layer() {
    let mut repositories = Repositories::new();
    for layer in 0..10 {
        for i in 0..100 {
            let below = |i: usize| (format!("r.io/{}/{}", layer + 1, i % 100), ">=v1.0.0".to_owned());
            let dependencies = if layer < 9 { vec![below(i), below(i + 1)] } else { Vec::new() };
            let tags = ["v1.0.0", "v1.5.0", "v2.0.0-rc.1"].map(|tag| (tag.to_owned(), dependencies.clone()));
            repositories.insert(format!("r.io/{layer}/{i}"), tags.into());
        }
    }
    let mut plane = Plane::default();
    for i in 0..100 {
        plane.install(&format!("root-{i}"), &format!("r.io/0/{i}:v1.0.0"), &repositories);
    }
    let mut steps = Vec::new();
    loop {
        let step = plane.step(&repositories, Mode::Default);
        if step == (0, 0) {
            break;
        }
        steps.push(step);
    }
    assert_eq!(steps, [(100, 100); 9]);
    let none = Mirrors::new();
    let graph = Graph::new(&plane.lock, &none);
    for entry in &plane.lock {
        let resolution = resolve_revision(&graph, &entry.name).unwrap();
        assert_eq!((resolution.found, resolution.problem), (resolution.installed, None));
    }
    assert!(next_step(&plane.lock, &plane.objects, Mode::Upgrade, &none).is_empty());
}
