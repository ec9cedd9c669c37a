//! Resolution to the end: packages are installed until nothing is missing, each with the dependencies of its version.

use super::Case;
use super::graphs::{self, Graph};
use super::solver::{blocked, chosen, failure};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use transom_packages::Reference;
use transom_packages::lock::LockDependency;
use transom_packages::lock::graph::Mirrors;
use transom_packages::solver::{Action, next_step};
use transom_testkit::rng::Rng;

/// More than any of these graphs needs.
const STEPS: usize = 60;

/// What each version of each package depends on.
type Universe = BTreeMap<String, Vec<LockDependency>>;

pub(crate) fn case(rng: &mut Rng) -> Case {
    let sources = 3 + rng.index(8);
    let mut graph =
        Graph { mode: graphs::any_mode(rng), lock: Vec::new(), objects: Vec::new(), tags: BTreeMap::new() };
    let mut universe = Universe::new();
    for number in 0..sources {
        let tags = graphs::tags(rng);
        for tag in &tags {
            let dependencies = dependencies(rng, number, sources);
            universe.insert(format!("{}:{tag}", graphs::source(number)), dependencies);
        }
        graph.tags.insert(graphs::source(number), tags);
    }
    for number in 0..=rng.index(2) {
        let version = graphs::complete_version(rng);
        let wanted = dependencies(rng, number + 1, sources);
        graph.objects.push(graphs::installed(number, graphs::name(number), &version));
        graph.lock.push(graphs::entry(number, format!("{}-1", graphs::name(number)), version, wanted));
    }
    let mut question = graph.question();
    question["universe"] = json!(universe);
    let answer = resolve(graph, &universe);
    (question, vec![answer])
}

fn dependencies(rng: &mut Rng, of: usize, sources: usize) -> Vec<LockDependency> {
    let mut dependencies: Vec<LockDependency> = Vec::new();
    for _ in 0..rng.index(4) {
        let on = of + 1 + rng.index(sources.saturating_sub(of + 1));
        if on < sources && dependencies.iter().all(|d| d.package != graphs::source(on)) {
            let constraints = graphs::constraint(rng);
            dependencies.push(graphs::dependency(rng, on, constraints));
        }
    }
    dependencies
}

/// The packages in the end, and what could not be resolved.
fn resolve(mut graph: Graph, universe: &Universe) -> String {
    let mut failures = BTreeSet::new();
    for _ in 0..STEPS {
        let needs = next_step(&graph.lock, &graph.objects, graph.mode, &Mirrors::new());
        failures.clear();
        let mut actions = Vec::new();
        for need in &needs {
            match chosen(&graph, need) {
                Ok(Action::Keep) => {}
                Ok(action) => actions.push(action),
                Err(error) => {
                    failures.insert(failure(&error));
                }
            }
        }
        if actions.is_empty() {
            break;
        }
        actions.into_iter().for_each(|action| apply(&mut graph, universe, action));
    }
    let mut packages: Vec<String> =
        graph.objects.iter().map(|o| format!("{} {} {}", o.kind, o.name, o.package)).collect();
    packages.sort_unstable();
    failures.extend(blocked(&graph));
    json!({"packages": packages, "failures": failures}).to_string()
}

/// Writes the object, and lets its revision join the Lock.
fn apply(graph: &mut Graph, universe: &Universe, action: Action) {
    let (name, package, is_new) = match action {
        Action::Create { api_version, kind, name, package } => {
            let object = transom_packages::solver::InstalledPackage {
                api_version,
                kind,
                name: name.clone(),
                package: package.clone(),
                resolved: None,
            };
            graph.objects.push(object);
            (name, package, true)
        }
        Action::Update { name, package, .. } => {
            for object in graph.objects.iter_mut().filter(|object| object.name == name) {
                object.package.clone_from(&package);
            }
            (name, package, false)
        }
        Action::Keep => return,
    };
    let Ok(reference) = Reference::parse(&package) else { return };
    let source = reference.source();
    let number = (0..26).find(|&number| graphs::source(number) == source).unwrap_or_default();
    let dependencies = universe.get(&package).cloned().unwrap_or_default();
    let entry = graphs::entry(number, format!("{name}-1"), reference.identifier().to_owned(), dependencies);
    let place = graph.lock.iter().position(|package| package.source == source);
    match place {
        Some(place) if !is_new => graph.lock[place] = entry,
        _ => graph.lock.push(entry),
    }
}
