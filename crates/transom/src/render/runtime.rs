//! Where the functions of a pipeline run.
//!
//! A function whose package is that of a built-in runs in this process. A function that is already running is called
//! at its address. Nothing is downloaded and no container is started.

use super::manifests::{self, Manifest};
use crate::failure::Failure;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use transom_builtins::{Builtins, Settings};
use transom_compose::{environment, resources_mode};
use transom_function::error_chain::chain;
use transom_object::{meta, suggest};
use transom_runner::{Endpoint, Options, RUNTIME_ANNOTATION, Resolver, Router, Source};
use transom_xapi::Composition;
use transom_xapi::function::Function;

/// How long a call waits for a function in development to start.
const WAIT_FOR_START: Duration = Duration::from_secs(3);

/// Reads Functions, and sets annotations on all of them.
pub(crate) fn load(path: &Path, annotations: &[(String, String)]) -> Result<Vec<Manifest>, Failure> {
    let mut functions = manifests::load(path, "Functions")?;
    for manifest in &mut functions {
        let api_version = meta::api_version(&manifest.object);
        let known = ["pkg.crossplane.io/v1", "pkg.crossplane.io/v1beta1"].contains(&api_version);
        if !known || meta::kind(&manifest.object) != "Function" {
            return Err(manifest
                .wrong("/kind", format!("not a Function: {}", manifest.title()))
                .remedy("the third argument names Functions of pkg.crossplane.io/v1 or v1beta1"));
        }
        for (key, value) in annotations {
            meta::set_annotation(&mut manifest.object, key, value);
        }
    }
    Ok(functions)
}

/// The functions that a composition calls.
pub(crate) struct Runtime {
    pub(crate) functions: Router,
    resolver: Resolver,
    builtins: Builtins,
    /// The names of the built-ins that Functions are, by the names of the Functions.
    built_in: BTreeMap<String, String>,
}

/// Finds every function that a composition calls. With `genuine`, built-ins answer letter by letter as the originals.
pub(crate) fn resolve(
    composition: &Manifest,
    spec: &Composition,
    functions: Option<&[Manifest]>,
    deadline: Duration,
    genuine: bool,
) -> Result<Runtime, Failure> {
    let wait_for_start = WAIT_FOR_START.min(deadline / 2);
    let mut runtime = Runtime {
        functions: Router::new(Options { deadline, wait_for_start, ..Options::default() }),
        resolver: Resolver::new(transom_builtins::names()),
        builtins: Builtins::new(&Settings { explain_refusals: !genuine, ..Settings::default() }),
        built_in: BTreeMap::new(),
    };
    if spec.spec.is_resources_mode() {
        runtime.functions.run_in_process(resources_mode::FUNCTION, transom_builtins::templates());
    }
    if spec.spec.environment.is_some() {
        runtime.functions.run_in_process(environment::FUNCTION, transom_builtins::environment());
    }
    for (index, step) in spec.spec.pipeline.iter().enumerate() {
        let pointer = format!("/spec/pipeline/{index}/functionRef/name");
        let name = &step.function_ref.name;
        match functions {
            Some(functions) => {
                let function = functions.iter().find(|manifest| meta::name(&manifest.object) == name);
                let function = function.ok_or_else(|| {
                    let what = format!("unknown Function {name:?}, called by pipeline step {:?}", step.step);
                    let known = functions.iter().map(|manifest| meta::name(&manifest.object));
                    let remedy = suggest::did_you_mean(name, known);
                    let otherwise = || "does it exist in your Functions file?".to_owned();
                    composition.wrong(&pointer, what).remedy(remedy.unwrap_or_else(otherwise))
                })?;
                runtime.route(name, function)?;
            }
            None => {
                let built_in = runtime.resolver.by_name(name).map(str::to_owned).ok_or_else(|| {
                    let what = format!("Function {name:?} is not built in, and no Functions file is given");
                    let remedy = suggest::did_you_mean(name, transom_builtins::names());
                    let otherwise = || format!("built in are {}", names());
                    composition.wrong(&pointer, what).remedy(remedy.unwrap_or_else(otherwise))
                })?;
                runtime.run_in_process(name, &built_in);
            }
        }
    }
    Ok(runtime)
}

fn names() -> String {
    transom_builtins::names().collect::<Vec<_>>().join(", ")
}

impl Runtime {
    /// The name of the built-in that a Function is.
    pub(crate) fn built_in(&self, function: &str) -> Option<&str> {
        self.built_in.get(function).map(String::as_str)
    }

    fn run_in_process(&mut self, name: &str, built_in: &str) {
        if let Some(function) = self.builtins.find(built_in) {
            self.functions.run_in_process(name, function);
            self.built_in.insert(name.to_owned(), built_in.to_owned());
        }
    }

    fn route(&mut self, name: &str, manifest: &Manifest) -> Result<(), Failure> {
        let function: Function = serde_json::from_value::<Function>(manifest.object.clone())
            .map_err(|e| manifest.wrong("/spec", format!("this is not a Function: {e}")))?;
        match self.resolver.resolve(&function) {
            Source::Endpoint { address, annotation } => {
                let called = self.functions.call_at(name, Endpoint::plaintext(address));
                called.map_err(|e| manifest.wrong(&annotation_pointer(annotation), chain(&e)))
            }
            source => {
                check_runtime(name, manifest)?;
                let Source::Builtin(built_in) = source else {
                    return Err(not_built_in(name, manifest, &function));
                };
                self.run_in_process(name, &built_in);
                Ok(())
            }
        }
    }
}

fn annotation_pointer(key: &str) -> String {
    format!("/metadata/annotations/{}", key.replace('/', "~1"))
}

/// Refuses a runtime that `render` does not have.
fn check_runtime(name: &str, manifest: &Manifest) -> Result<(), Failure> {
    match meta::annotation(&manifest.object, RUNTIME_ANNOTATION) {
        None | Some("Docker" | "InProcess") => Ok(()),
        Some(runtime) => {
            let what = format!("unknown runtime {runtime:?} for Function {name:?}");
            let remedy = "built-in functions need none, all others run as Development";
            Err(manifest.wrong(&annotation_pointer(RUNTIME_ANNOTATION), what).remedy(remedy))
        }
    }
}

fn not_built_in(name: &str, manifest: &Manifest, function: &Function) -> Failure {
    let what = format!("Function {name:?} is not built in: its package is {:?}", function.spec.package);
    let meant = suggest::did_you_mean(function.repository_name(), transom_builtins::names());
    manifest.wrong("/spec/package", what).remedy(meant.unwrap_or_else(|| {
        format!(
            "run it yourself with --insecure and annotate it {RUNTIME_ANNOTATION}: Development; built in are {}",
            names()
        )
    }))
}

/// Reads `key=value`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not of the form KEY=VALUE")),
    }
}

/// Whether an object is a Secret; files of credentials may leave their type out.
pub(crate) fn as_secret(mut object: Value) -> Value {
    if meta::kind(&object).is_empty() {
        object["apiVersion"] = "v1".into();
        object["kind"] = "Secret".into();
    }
    object
}
