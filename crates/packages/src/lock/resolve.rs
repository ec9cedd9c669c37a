//! Whether all that a revision depends on is installed, in versions that it accepts.

use super::graph::Graph;
use super::{LockDependency, LockPackage};
use crate::constraint::VersionConstraint;
use crate::names::first_n;
use transom_object::quote::quote;

/// How many names a message lists.
const MAX_LISTED_NAMES: usize = 3;

/// The state of a revision's dependencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// How many packages it depends on, directly or not.
    pub found: usize,
    /// How many of them are installed.
    pub installed: usize,
    /// How many direct dependencies are installed in a version that it does not accept.
    pub invalid: usize,
    /// Why it cannot be used.
    pub problem: Option<Problem>,
}

/// Why a revision cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Its package is installed twice.
    #[error(
        "package {source_name} is installed more than once: {} and {name} have the same source; delete all but one of \
         these packages", others.join(", ")
    )]
    Duplicate {
        /// The source.
        source_name: String,
        /// The revision.
        name: String,
        /// The other revisions of this source.
        others: Vec<String>,
    },
    /// It depends on itself.
    #[error("detected cycle on: {}; remove one of these dependencies", path.join(" -> "))]
    Cycle {
        /// The sources on the way back to itself.
        path: Vec<String>,
    },
    /// Not all is installed.
    #[error("missing dependencies: {}", first_n(MAX_LISTED_NAMES, names))]
    Missing {
        /// Sources, each with its constraint.
        names: Vec<String>,
    },
    /// Not all is installed in accepted versions.
    #[error("incompatible dependencies: {}", problems.join("; "))]
    Incompatible {
        /// A sentence for each.
        problems: Vec<String>,
    },
}

/// Resolves the dependencies of a revision; `None` when the Lock has no entry of it.
///
/// Unlike the original, the counts are those of the whole closure from the beginning, and a revision is affected by
/// nothing but what it depends on.
pub fn resolve_revision(graph: &Graph<'_>, revision: &str) -> Option<Resolution> {
    let entry = graph.find(revision)?;
    let package = &graph.packages()[entry];
    let closure = graph.closure(entry);
    let found = closure.sources.len();
    let installed = found - closure.missing.len();
    let incompatible = incompatible(graph, package);
    let invalid = incompatible.len();
    let problem = blocked(graph, entry).or_else(|| {
        if !closure.missing.is_empty() {
            return Some(Problem::Missing { names: closure.missing.iter().map(|d| named(d)).collect() });
        }
        (invalid > 0).then_some(Problem::Incompatible { problems: incompatible })
    });
    Some(Resolution { found, installed, invalid, problem })
}

fn blocked(graph: &Graph<'_>, entry: usize) -> Option<Problem> {
    let package = &graph.packages()[entry];
    let others = graph.duplicates(entry);
    if !others.is_empty() {
        let others = others.into_iter().map(str::to_owned).collect();
        return Some(Problem::Duplicate {
            source_name: package.source.clone(),
            name: package.name.clone(),
            others,
        });
    }
    let path = graph.cycle(entry)?.into_iter().map(str::to_owned).collect();
    Some(Problem::Cycle { path })
}

fn named(dependency: &LockDependency) -> String {
    match dependency.constraints.as_str() {
        "" => quote(&dependency.package),
        constraints => format!("{} ({constraints})", quote(&dependency.package)),
    }
}

/// A sentence for each direct dependency that is installed, but not in a version that the package accepts. Where a source
/// is installed twice, one accepted version is enough: the others are their own problem.
fn incompatible(graph: &Graph<'_>, package: &LockPackage) -> Vec<String> {
    let mut problems = Vec::new();
    for dependency in &package.dependencies {
        let found = graph.matching(&dependency.package);
        let Some(&first) = found.first() else { continue };
        let constraint = match VersionConstraint::parse(&dependency.constraints) {
            Ok(constraint) => constraint,
            Err(error) => {
                problems.push(format!("{}: {error}", dependency.package));
                continue;
            }
        };
        if !found.iter().any(|&i| constraint.allows(&graph.packages()[i].version)) {
            let LockPackage { source, version, .. } = &graph.packages()[first];
            let wanted = dependency.constraints.trim();
            problems.push(format!(
                "existing package {source}@{version} is incompatible with constraint {wanted}"
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::graph::Mirrors;

    fn entry(name: &str, source: &str, version: &str, dependencies: &[(&str, &str)]) -> LockPackage {
        let dependency = |(package, constraints): &(&str, &str)| LockDependency {
            package: (*package).to_owned(),
            constraints: (*constraints).to_owned(),
            ..LockDependency::default()
        };
        LockPackage {
            name: name.to_owned(),
            source: source.to_owned(),
            version: version.to_owned(),
            dependencies: dependencies.iter().map(dependency).collect(),
            ..LockPackage::default()
        }
    }

    fn resolve(lock: &[LockPackage], revision: &str) -> (usize, usize, usize, String) {
        let none = Mirrors::new();
        let resolution = resolve_revision(&Graph::new(lock, &none), revision).unwrap();
        let problem = resolution.problem.map(|problem| problem.to_string()).unwrap_or_default();
        (resolution.found, resolution.installed, resolution.invalid, problem)
    }

    #[test]
    fn what_is_missing_anywhere_below_is_named() {
        let lock = [
            entry("a", "r.io/a", "v1.0.0", &[("r.io/b", ">=v1"), ("r.io/z", "")]),
            entry("b", "r.io/b", "v1.0.0", &[("r.io/y", "v9"), ("r.io/x", "v8"), ("r.io/w", "v7")]),
        ];
        let missing = r#"missing dependencies: "r.io/w" (v7), "r.io/x" (v8), "r.io/y" (v9), and 1 more"#;
        assert_eq!(resolve(&lock, "a"), (5, 1, 0, missing.to_owned()));
        assert_eq!(resolve(&lock[1..], "b").0, 3);
        let none = Mirrors::new();
        assert_eq!(resolve_revision(&Graph::new(&lock, &none), "c"), None);
    }

    #[test]
    fn versions_must_be_accepted() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let lock = [
            entry(
                "a",
                "r.io/a",
                "v1.0.0",
                &[("r.io/b", ">=v2.0.0 "), ("r.io/c", &digest), ("r.io/d", "~v1"), ("r.io/e", "?")],
            ),
            entry("b", "r.io/b", "v1.0.0", &[]),
            entry("c", "r.io/c", "v1.0.0", &[]),
            entry("d", "r.io/d", "v1.2.0", &[]),
            entry("e", "r.io/e", "v1.2.0", &[]),
        ];
        let (found, installed, invalid, problem) = resolve(&lock, "a");
        assert_eq!((found, installed, invalid), (4, 4, 3));
        let expected = format!(
            "incompatible dependencies: existing package r.io/b@v1.0.0 is incompatible with constraint >=v2.0.0; \
             existing package r.io/c@v1.0.0 is incompatible with constraint {digest}; \
             r.io/e: version constraint on dependency is invalid: \"?\": improper constraint: ?"
        );
        assert_eq!(problem, expected);
        assert_eq!(resolve(&lock, "d"), (0, 0, 0, String::new()));
    }

    #[test]
    fn duplicates_and_cycles_are_the_problem_of_the_culprits() {
        let lock = [
            entry("a-1", "r.io/a", "v1.0.0", &[]),
            entry("x-1", "r.io/a", "v2.0.0", &[]),
            entry("b", "r.io/b", "v1.0.0", &[("r.io/a", ">=v2.0.0")]),
            entry("c", "r.io/c", "v1.0.0", &[("r.io/d", "*")]),
            entry("d", "r.io/d", "v1.0.0", &[("r.io/c", "*")]),
            entry("e", "r.io/e", "v1.0.0", &[("r.io/c", "*")]),
        ];
        assert!(resolve(&lock, "a-1").3.contains("x-1 and a-1 have the same source"));
        assert!(resolve(&lock, "x-1").3.contains("a-1 and x-1 have the same source"));
        assert_eq!(resolve(&lock, "b"), (1, 1, 0, String::new()));
        let cycle = resolve(&lock, "c").3;
        assert!(cycle.starts_with("detected cycle on: r.io/c -> r.io/d -> r.io/c"), "{cycle}");
        assert_eq!(resolve(&lock, "e"), (2, 2, 0, String::new()));
    }
}
