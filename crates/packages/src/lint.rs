//! What is wrong with a package that could be read. A build refuses it; an installation reports it and goes on, except
//! for constraints, which are checked where they are used.

use crate::constraint::{CoreError, VersionConstraint, check_core};
use crate::content::{allowed, allowed_kinds};
use crate::reference::Reference;
use crate::stream::{DocumentPosition, Package};
use std::fmt;
use transom_object::meta;
use transom_xapi::PackageKind;

/// Something that should not be in a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The object, unless it is the meta object.
    pub at: Option<DocumentPosition>,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "package.yaml, {at}: {}", self.problem),
            None => write!(f, "package.yaml: {}", self.problem),
        }
    }
}

/// All violations of a package, those of its meta object first.
pub fn lint(package: &Package) -> Vec<Violation> {
    let mut violations: Vec<Violation> =
        meta_problems(package).into_iter().map(|problem| Violation { at: None, problem }).collect();
    for object in &package.objects {
        if !allowed(package.kind, &object.gvk.group_kind()) {
            let (kind, name) = (&object.gvk.kind, meta::name(&object.value));
            let problem = format!(
                "{kind} {name:?} does not belong into a {}, which may hold {}",
                package.kind.kind(),
                listed(package.kind)
            );
            violations.push(Violation { at: Some(object.at), problem });
        }
    }
    violations
}

fn listed(kind: PackageKind) -> String {
    let kinds: Vec<&str> = allowed_kinds(kind).iter().map(|(_, kind)| *kind).collect();
    kinds.join(", ")
}

fn meta_problems(package: &Package) -> Vec<String> {
    let mut problems = Vec::new();
    // Any version will do: only the syntax counts here.
    if let Err(error @ CoreError::Malformed { .. }) = check_core(package.meta.crossplane.as_deref(), "v0.0.0")
    {
        problems.push(format!("spec.crossplane.version: {error}"));
    }
    for (i, dependency) in package.meta.dependencies.iter().enumerate() {
        if let Err(error) = Reference::parse_source(&dependency.package) {
            problems.push(format!("spec.dependsOn[{i}]: {error}"));
        }
        if let Err(error) = VersionConstraint::parse(&dependency.version) {
            problems.push(format!("spec.dependsOn[{i}].version: {error}"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::parse;

    #[test]
    fn violations_name_object_and_line() {
        let text = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata: {name: f}\n\
            spec:\n  crossplane: {version: nonsense}\n  dependsOn:\n  - {provider: 'a.b/c', version: '>=v1.0.0'}\n\
            \x20 - {provider: 'a.b/c:v1', version: ''}\n---\n\
            apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: ok}\n---\n\
            apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: bad}\n";
        let found: Vec<String> =
            lint(&parse(text.as_bytes()).unwrap()).iter().map(ToString::to_string).collect();
        let expected = [
            "package.yaml: spec.crossplane.version: package version constraints are poorly formatted",
            "package.yaml: spec.dependsOn[1]: \"a.b/c:v1\" is not a reference",
            "package.yaml: spec.dependsOn[1].version: version constraint on dependency is invalid",
            "package.yaml, document 3 (line 14): Composition \"bad\" does not belong into a Function, which may hold \
             CustomResourceDefinition",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}");
        }
    }
}
