//! One step of dependency resolution: what is installed or changed, or why nothing can be.
//!
//! The original meets one need in a step and we meet all, so the original's answer must be one of ours. It installs
//! what the first parent asks for, where we count all parents: asked about a package that is not installed, we answer for
//! the first parent alone.

use super::Case;
use super::graphs::{self, Graph};
use transom_packages::lock::graph::{Graph as LockGraph, Mirrors};
use transom_packages::solver::{Action, Need, NoVersion, choose, next_step};
use transom_testkit::rng::Rng;

pub(crate) fn case(rng: &mut Rng) -> Case {
    let graph = graphs::any(rng);
    let mut answers = blocked(&graph);
    if answers.is_empty() {
        let needs = next_step(&graph.lock, &graph.objects, graph.mode, &Mirrors::new());
        answers = needs.iter().map(|need| meet(&graph, need)).collect();
        if answers.is_empty() {
            answers.push("resolved".to_owned());
        }
    }
    (graph.question(), answers)
}

/// What is wrong with entries of the Lock. The original refuses everything while something is.
pub(crate) fn blocked(graph: &Graph) -> Vec<String> {
    let none = Mirrors::new();
    let lock = LockGraph::new(&graph.lock, &none);
    let mut found = Vec::new();
    for (number, package) in graph.lock.iter().enumerate() {
        if !lock.duplicates(number).is_empty() {
            found.push(format!("duplicate {}", package.source));
        }
        if lock.cycle(number).is_some() {
            found.push(format!("cycle {}", package.source));
        }
    }
    found
}

fn meet(graph: &Graph, need: &Need) -> String {
    match chosen(graph, need) {
        Ok(Action::Create { kind, name, package, .. }) => format!("create {kind} {name} {package}"),
        Ok(Action::Update { kind, name, package, .. }) => format!("update {kind} {name} {package}"),
        Ok(Action::Keep) => format!("keep {}", need.source),
        Err(error) => failure(&error),
    }
}

/// The choice that the original makes for a need.
pub(crate) fn chosen(graph: &Graph, need: &Need) -> Result<Action, NoVersion> {
    let mut need = need.clone();
    if need.installed.is_none() {
        need.parents.truncate(1);
    }
    let choice = choose(&need, graph.tags_of(&need.source), graph.mode)?;
    match choice.unsatisfied.first() {
        // The original resolves nothing when it cannot resolve everything.
        Some(_) => Err(NoVersion::Unsatisfiable { dependency: need.source, parents: choice.unsatisfied }),
        None => Ok(choice.action),
    }
}

pub(crate) fn failure(error: &NoVersion) -> String {
    match error {
        NoVersion::Unsatisfiable { dependency, .. } => format!("none {dependency}"),
        NoVersion::MixedConstraints { .. } => "mixed".to_owned(),
        NoVersion::DifferentDigests { .. } => "digests".to_owned(),
        NoVersion::Incomparable { dependency, .. } => format!("incomparable {dependency}"),
        NoVersion::Invalid { dependency, .. } => format!("invalid {dependency}"),
    }
}
