//! Where the implementation of a Function comes from, decided from the object alone.
//!
//! This is the only place that interprets a Function's package and annotations: `up`, `render` and every other command
//! that calls functions resolve them here. It does no I/O, and it does not know how a source is run.
//!
//! A new `Source` has its annotation in `SOURCE_ANNOTATIONS`, and an `identity` if it is not pulled. Callers ask by `matches!`
//! whether a source is a package, so the compiler does not find them.

use std::collections::BTreeSet;
use transom_xapi::Function;
use transom_xapi::function::{FunctionRevision, repository_name};
use transom_xapi::metadata::Metadata;

/// The annotation with the address, as `host:port`, of a server that runs a function.
pub const ENDPOINT_ANNOTATION: &str = "transom.io/endpoint";
/// The annotation by which `crossplane render` chooses how a function is run.
pub const RUNTIME_ANNOTATION: &str = "render.crossplane.io/runtime";
/// The annotation with the address of a function whose [runtime](RUNTIME_ANNOTATION) is `Development`.
pub const DEVELOPMENT_TARGET_ANNOTATION: &str = "render.crossplane.io/runtime-development-target";

/// The annotation by which a Function chooses how it is run in a control plane. `Package` runs what is in its package, even
/// if a built-in has the name of the package.
pub const FORCED_RUNTIME_ANNOTATION: &str = "transom.io/runtime";
/// The annotations that a source depends on. FunctionRevisions have those of their Function.
pub const SOURCE_ANNOTATIONS: [&str; 4] =
    [ENDPOINT_ANNOTATION, FORCED_RUNTIME_ANNOTATION, RUNTIME_ANNOTATION, DEVELOPMENT_TARGET_ANNOTATION];

/// The address of a function under development that has no [annotation](DEVELOPMENT_TARGET_ANNOTATION).
const DEFAULT_DEVELOPMENT_TARGET: &str = "localhost:9443";

/// Where the implementation of a function comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It ships with this binary, under this name.
    Builtin(String),
    /// A server runs it already.
    Endpoint {
        /// The server's address.
        address: String,
        /// The annotation that chose it.
        annotation: &'static str,
    },
    /// It is in a package.
    Package {
        /// The reference to the package, as the Function has it.
        reference: String,
        /// The last segment of the package's repository.
        repository: String,
    },
}

impl Source {
    /// What distinguishes a source that needs no registry from others of its Function: the reference to the package and,
    /// if there is one, the address. `None` for a package, which its digest distinguishes.
    pub fn identity(&self, reference: &str) -> Option<String> {
        match self {
            Self::Builtin(_) => Some(reference.to_owned()),
            Self::Endpoint { address, .. } => Some(format!("{reference}\n{address}")),
            Self::Package { .. } => None,
        }
    }
}

/// Resolves Functions to sources, given the names of the built-in functions.
#[derive(Clone, Debug, Default)]
pub struct Resolver {
    builtins: BTreeSet<String>,
}

impl Resolver {
    /// A resolver for these built-in functions, named by the last segment of their packages' repositories.
    pub fn new(builtins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { builtins: builtins.into_iter().map(Into::into).collect() }
    }

    /// The source of a Function: the endpoint in its annotations, else the built-in that its package's repository
    /// names, else its package.
    pub fn resolve(&self, function: &Function) -> Source {
        self.source(&function.metadata, &function.metadata.name, &function.spec.package)
    }

    /// The source of a FunctionRevision, by the same rules.
    pub fn resolve_revision(&self, revision: &FunctionRevision) -> Source {
        self.source(&revision.metadata, revision.package(), &revision.spec.image)
    }

    fn source(&self, metadata: &Metadata, function: &str, package: &str) -> Source {
        let annotation = |key: &str| metadata.annotation(key);
        if let Some(address) = annotation(ENDPOINT_ANNOTATION) {
            return Source::Endpoint { address: address.to_owned(), annotation: ENDPOINT_ANNOTATION };
        }
        let runtime = annotation(RUNTIME_ANNOTATION);
        if runtime == Some("Development") {
            let address = annotation(DEVELOPMENT_TARGET_ANNOTATION).unwrap_or(DEFAULT_DEVELOPMENT_TARGET);
            return Source::Endpoint {
                address: address.to_owned(),
                annotation: DEVELOPMENT_TARGET_ANNOTATION,
            };
        }
        let repository = repository_name(package);
        // A Function that asks to run in this process need not have a package: its name is enough.
        let by_name = || (runtime == Some("InProcess")).then(|| self.by_name(function)).flatten();
        let is_forced = annotation(FORCED_RUNTIME_ANNOTATION) == Some("Package");
        match self.builtins.get(repository).map(String::as_str).or_else(by_name) {
            Some(name) if !is_forced => Source::Builtin(name.to_owned()),
            _ => Source::Package { reference: package.to_owned(), repository: repository.to_owned() },
        }
    }

    /// The built-in that a Function of this name is by convention: packages are named after their repository, with
    /// its owner in front when they are installed as a dependency.
    pub fn by_name(&self, function: &str) -> Option<&str> {
        let is_dependency = |builtin: &&String| function.ends_with(&format!("-{builtin}"));
        self.builtins.get(function).or_else(|| self.builtins.iter().find(is_dependency)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    fn resolve(name: &str, package: &str, annotations: &[(&str, &str)]) -> Source {
        let annotations: serde_json::Map<_, _> =
            annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        let object = json!({
            "metadata": {"name": name, "annotations": annotations}, "spec": {"package": package},
        });
        let function = Function::deserialize(&object).expect("a Function");
        Resolver::new(["function-auto-ready", "function-cidr"]).resolve(&function)
    }

    fn builtin(name: &str) -> Source {
        Source::Builtin(name.to_owned())
    }

    fn endpoint(address: &str, annotation: &'static str) -> Source {
        Source::Endpoint { address: address.to_owned(), annotation }
    }

    #[test]
    fn the_repository_names_the_built_in() {
        for package in
            ["xpkg.example.org/a/function-cidr:v1", "function-cidr", "localhost:5000/function-cidr@sha256:0"]
        {
            assert_eq!(resolve("f", package, &[]), builtin("function-cidr"), "{package}");
        }
        let (reference, repository) = ("example.org/other:v1".to_owned(), "other".to_owned());
        let package = Source::Package { reference, repository };
        assert_eq!(resolve("function-cidr", "example.org/other:v1", &[]), package, "its name is not enough");
        assert_eq!(
            resolve("function-cidr", "example.org/other:v1", &[(RUNTIME_ANNOTATION, "Docker")]),
            package
        );
    }

    #[test]
    fn annotations_name_endpoints() {
        let development = (RUNTIME_ANNOTATION, "Development");
        let target = (DEVELOPMENT_TARGET_ANNOTATION, "host:1");
        let package = "example.org/function-cidr:v1";
        for (annotations, expected) in [
            (&[(ENDPOINT_ANNOTATION, "host:2")][..], endpoint("host:2", ENDPOINT_ANNOTATION)),
            (
                &[(ENDPOINT_ANNOTATION, "host:2"), development, target],
                endpoint("host:2", ENDPOINT_ANNOTATION),
            ),
            (&[development, target], endpoint("host:1", DEVELOPMENT_TARGET_ANNOTATION)),
            (&[development], endpoint("localhost:9443", DEVELOPMENT_TARGET_ANNOTATION)),
            (&[target], builtin("function-cidr")),
            (
                &[(FORCED_RUNTIME_ANNOTATION, "Package"), (ENDPOINT_ANNOTATION, "host:2")],
                endpoint("host:2", ENDPOINT_ANNOTATION),
            ),
            (&[(FORCED_RUNTIME_ANNOTATION, "other")], builtin("function-cidr")),
            (
                &[(FORCED_RUNTIME_ANNOTATION, "Package")],
                Source::Package { reference: package.to_owned(), repository: "function-cidr".to_owned() },
            ),
        ] {
            assert_eq!(resolve("f", package, annotations), expected, "{annotations:?}");
        }
    }

    #[test]
    fn a_revision_has_the_source_of_its_function() {
        let revision = |annotations: serde_json::Value| {
            let labels = json!({"pkg.crossplane.io/package": "function-cidr"});
            let metadata = json!({"name": "function-cidr-1", "labels": labels, "annotations": annotations});
            let spec = json!({"image": "example.org/other:v1", "desiredState": "Active", "revision": 1});
            FunctionRevision::deserialize(&json!({"metadata": metadata, "spec": spec})).expect("a revision")
        };
        let resolver = Resolver::new(["function-cidr"]);
        for (annotations, expected) in [
            (json!({}), None),
            (json!({RUNTIME_ANNOTATION: "InProcess"}), Some("r")),
            (json!({ENDPOINT_ANNOTATION: "host:2"}), Some("r\nhost:2")),
        ] {
            let source = resolver.resolve_revision(&revision(annotations));
            assert_eq!(source.identity("r").as_deref(), expected, "{source:?}");
        }
    }

    #[test]
    fn a_function_in_this_process_may_be_known_by_its_name() {
        for name in ["function-cidr", "crossplane-contrib-function-cidr"] {
            let source = resolve(name, "", &[(RUNTIME_ANNOTATION, "InProcess")]);
            assert_eq!(source, builtin("function-cidr"), "{name}");
        }
        let source = resolve("cidr", "", &[(RUNTIME_ANNOTATION, "InProcess")]);
        assert!(matches!(source, Source::Package { .. }), "{source:?}");
    }
}
