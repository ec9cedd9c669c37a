//! The composition functions that ship with the binary, one module each.
//!
//! A built-in is an ordinary [`Function`]: it sees exactly what an external function sees, and takes the same input
//! as the function of the same name that it replaces.
//!
//! Each decides like the original, byte for byte, and within limits of time and memory; the deliberate differences are in
//! `docs/compatibility.md`. The crate must not know control planes: it does not know who calls it, or whether anything is
//! applied.
//!
//! A new function implements `review::Builtin` and has a row in `BUILTINS`. It is listed in `tests` (`documented.rs`,
//! `properties.rs`, `generated/held.rs`), in `examples/differential/generate/mod.rs` and in `docs/functions/README.md`; the
//! version of its original is in `conformance/versions.json`. Modules without the name of a function are shared by several.

#![warn(missing_docs)]

mod auto_ready;
mod cel_filter;
mod cidr;
mod conditioned;
mod desired;
mod dummy;
mod environment_configs;
mod expression;
mod extra_resources;
mod go_templating;
mod input;
mod named;
mod patch_and_transform;
mod review;
mod selection;
mod sequencer;
mod status_transformer;
mod strict;
mod tag_manager;
mod ttl;
mod without_default_ttl;

#[cfg(test)]
mod upstream;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use transom_function::{Function, FunctionSet};

use review::{Builtin, Explained};

pub use go_templating::GoTemplating;
pub use review::{Mistake, Review};
use without_default_ttl::WithoutDefaultTtl;

/// How built-in functions are made. The default is to respond letter by letter as the originals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Functions that read files read them below this directory only, whatever links are there. Without it they read
    /// every file that the process can read.
    pub files_below: Option<PathBuf>,
    /// Refuse an invalid input with the mistakes that a [`Review`] finds in it.
    pub explain_refusals: bool,
    /// Drop the default TTL of functions that depend on the request alone: a control plane with watches calls
    /// them again when their request changes.
    pub without_default_ttl: bool,
}

/// Whether a function responds to the same request in the same way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Determinism {
    /// The response depends on the request alone.
    Pure,
    /// It depends on a clock, randomness or files too, or on what the author of an input has it respond.
    Impure,
}
use Determinism::{Impure, Pure};

struct Entry {
    /// The last segment of the package repository that the function replaces.
    name: &'static str,
    /// The version of the original that it is compared with; `None` where none is published that could be run.
    original: Option<&'static str>,
    determinism: Determinism,
    make: fn(&Settings) -> Arc<dyn Builtin>,
}

const fn entry(
    name: &'static str,
    original: Option<&'static str>,
    determinism: Determinism,
    make: fn(&Settings) -> Arc<dyn Builtin>,
) -> Entry {
    Entry { name, original, determinism, make }
}

/// The built-in functions, by name.
const BUILTINS: &[Entry] = &[
    entry("function-auto-ready", Some("v0.7.0"), Pure, |_| Arc::new(auto_ready::AutoReady)),
    entry("function-cel-filter", Some("v0.2.0"), Pure, |_| Arc::new(cel_filter::CelFilter)),
    entry("function-cidr", None, Pure, |_| Arc::new(cidr::Cidr)),
    entry("function-dummy", None, Impure, |_| Arc::new(dummy::Dummy)),
    entry("function-environment-configs", Some("v0.7.1"), Pure, |_| {
        Arc::new(environment_configs::EnvironmentConfigs)
    }),
    entry("function-extra-resources", Some("v0.3.0"), Pure, |_| Arc::new(extra_resources::ExtraResources)),
    entry("function-go-templating", Some("v0.12.3"), Impure, |settings| match &settings.files_below {
        Some(directory) => Arc::new(GoTemplating::default().with_files_below(directory)),
        None => GoTemplating::shared(),
    }),
    entry("function-patch-and-transform", Some("v0.10.9"), Pure, |_| {
        Arc::new(patch_and_transform::PatchAndTransform)
    }),
    entry("function-sequencer", Some("v0.6.0"), Pure, |_| Arc::new(sequencer::Sequencer)),
    entry("function-status-transformer", Some("v0.5.1"), Pure, |_| {
        Arc::new(status_transformer::StatusTransformer)
    }),
    entry("function-tag-manager", Some("v0.9.0"), Pure, |_| Arc::new(tag_manager::TagManager)),
];

impl Entry {
    fn function(&self, settings: &Settings) -> Arc<dyn Function> {
        let builtin = (self.make)(settings);
        let function: Arc<dyn Function> =
            if settings.explain_refusals { Arc::new(Explained::new(builtin)) } else { builtin };
        if settings.without_default_ttl && self.determinism == Pure {
            Arc::new(WithoutDefaultTtl(function))
        } else {
            function
        }
    }
}

fn entry_of(name: &str) -> Option<&'static Entry> {
    BUILTINS.iter().find(|entry| entry.name == name)
}

/// The built-in that replaces packages whose repository ends in `name`. It responds letter by letter as the original.
pub fn find(name: &str) -> Option<Arc<dyn Function>> {
    Some(entry_of(name)?.function(&Settings::default()))
}

/// Every built-in function, made once with the same settings.
pub struct Builtins(BTreeMap<&'static str, Arc<dyn Function>>);

impl Builtins {
    /// Makes the functions.
    pub fn new(settings: &Settings) -> Self {
        Self(BUILTINS.iter().map(|entry| (entry.name, entry.function(settings))).collect())
    }

    /// The built-in that replaces packages whose repository ends in `name`; the same one every time.
    pub fn find(&self, name: &str) -> Option<Arc<dyn Function>> {
        self.0.get(name).cloned()
    }
}

impl FunctionSet for Builtins {
    fn names(&self) -> Vec<String> {
        names().map(str::to_owned).collect()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Function>> {
        Builtins::find(self, name)
    }

    fn original_version(&self, name: &str) -> Option<&'static str> {
        upstream_version(name)
    }

    fn templates(&self) -> Arc<dyn Function> {
        templates()
    }

    fn environment(&self) -> Arc<dyn Function> {
        environment()
    }
}

/// What is wrong with an input of a built-in, its kind included; nothing for a function that is not built in.
pub fn review_input(name: &str, input: &Map<String, Value>) -> Review {
    let Some(entry) = entry_of(name) else { return Review::default() };
    let builtin = (entry.make)(&Settings::default());
    let mut review = builtin.review(input);
    review.mistakes.extend(review::review_kind(&*builtin, input));
    review
}

/// What is wrong with the templates of a composition of mode `Resources`, given its `spec`.
pub fn review_templates(spec: &Map<String, Value>) -> Review {
    patch_and_transform::native::review(spec)
}

/// What runs compositions of mode `Resources`: the templates, with their names, are its input.
pub fn templates() -> Arc<dyn Function> {
    Arc::new(WithoutDefaultTtl(Arc::new(patch_and_transform::native::Templates)))
}

/// What makes the environment of a Composition: its `spec.environment`, without patches, is its input.
pub fn environment() -> Arc<dyn Function> {
    Arc::new(WithoutDefaultTtl(Arc::new(environment_configs::native::Environment)))
}

/// The version of the original that a built-in equals, as far as `conformance/run functions` compares them.
pub fn upstream_version(name: &str) -> Option<&'static str> {
    entry_of(name)?.original
}

/// The names of every built-in.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|entry| entry.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use transom_function::{RunFunctionRequest, Struct};

    async fn ttl(function: Arc<dyn Function>, input: serde_json::Value) -> Option<i64> {
        let input = Some(Struct::try_from(input).unwrap());
        let response = function.run(RunFunctionRequest { input, ..Default::default() }).await.unwrap();
        response.meta.unwrap().ttl.map(|ttl| ttl.seconds)
    }

    #[tokio::test]
    async fn the_default_ttl_of_pure_functions_can_be_dropped() {
        let settings = Settings { without_default_ttl: true, ..Settings::default() };
        for entry in BUILTINS {
            assert_eq!(ttl(find(entry.name).unwrap(), json!({})).await, Some(60), "{}", entry.name);
            let expected = if entry.determinism == Pure { None } else { Some(60) };
            assert_eq!(ttl(entry.function(&settings), json!({})).await, expected, "{}", entry.name);
        }
    }

    #[test]
    fn versions_are_those_that_the_built_ins_are_compared_with() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/versions.json");
        let text = std::fs::read_to_string(path).expect("the versions that are compared");
        let versions: Value = serde_json::from_str(&text).expect("JSON");
        let compared: BTreeMap<&str, &str> = versions["functions"]
            .as_object()
            .expect("functions")
            .iter()
            .filter_map(|(name, version)| Some((name.as_str(), version.as_str()?)))
            .collect();
        let stated = names().filter_map(|name| Some((name, upstream_version(name)?)));
        assert_eq!(stated.collect::<BTreeMap<_, _>>(), compared);
    }

    #[tokio::test]
    async fn a_ttl_that_an_input_asks_for_is_kept() {
        let input = json!({"apiVersion": "autoready.fn.crossplane.io/v1beta1", "kind": "Input", "ttl": "5m"});
        let settings = Settings { without_default_ttl: true, ..Settings::default() };
        let function = Builtins::new(&settings).find("function-auto-ready").unwrap();
        assert_eq!(ttl(function, input).await, Some(300));
    }
}
