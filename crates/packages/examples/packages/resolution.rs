//! What the Lock means for one revision: how many packages it depends on, how many are there, and what is wrong.

use super::Case;
use super::graphs;
use serde_json::json;
use transom_packages::lock::graph::{Graph, Mirrors};
use transom_packages::lock::resolve::resolve_revision;
use transom_testkit::rng::Rng;

pub(crate) fn case(rng: &mut Rng) -> Case {
    let graph = graphs::any(rng);
    let of = rng.index(graph.lock.len());
    let none = Mirrors::new();
    let lock = Graph::new(&graph.lock, &none);
    let answer = match resolve_revision(&lock, &graph.lock[of].name) {
        Some(resolution) => json!({
            "found": resolution.found, "installed": resolution.installed, "invalid": resolution.invalid,
            "problem": resolution.problem.map(|problem| problem.to_string()).unwrap_or_default(),
        })
        .to_string(),
        None => "not in the Lock".to_owned(),
    };
    (json!({"lock": graph.lock, "of": of}), vec![answer])
}
