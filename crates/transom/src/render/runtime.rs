//! Where the functions of a pipeline run.
//!
//! A function whose package is one of the built-ins' runs in this process. One that somebody runs already is called at
//! its address. Nothing is downloaded and no container is started.

use super::manifests::{self, Manifest};
use crate::failure::Failure;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use transom_compose::{environment, resources_mode};
use transom_object::{meta, suggest};
use transom_runner::{Endpoint, Functions, Options};
use transom_xapi::Composition;
use transom_xapi::function::Function;

const RUNTIME: &str = "render.crossplane.io/runtime";
const DEVELOPMENT_TARGET: &str = "render.crossplane.io/runtime-development-target";
const DEFAULT_TARGET: &str = "localhost:9443";

/// How long to wait for a function in development to listen.
const PATIENCE: Duration = Duration::from_secs(3);

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
    pub(crate) functions: Functions,
    /// Those that are built in: which one each Function is.
    built_in: BTreeMap<String, &'static str>,
    /// Whether built-ins refuse their input in the words of the originals.
    genuine: bool,
}

/// Finds every function that a composition calls. With `genuine`, built-ins answer letter by letter as the originals.
pub(crate) fn resolve(
    composition: &Manifest,
    spec: &Composition,
    functions: Option<&[Manifest]>,
    deadline: Duration,
    genuine: bool,
) -> Result<Runtime, Failure> {
    let options = Options { deadline, patience: PATIENCE.min(deadline / 2), ..Options::default() };
    let mut runtime = Runtime { functions: Functions::new(options), built_in: BTreeMap::new(), genuine };
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
                let built_in = by_name(name).ok_or_else(|| {
                    let what = format!("Function {name:?} is not built in, and no Functions file is given");
                    let remedy = suggest::did_you_mean(name, transom_builtins::names());
                    let otherwise = || format!("built in are {}", names());
                    composition.wrong(&pointer, what).remedy(remedy.unwrap_or_else(otherwise))
                })?;
                runtime.run_in_process(name, built_in);
            }
        }
    }
    Ok(runtime)
}

fn names() -> String {
    transom_builtins::names().collect::<Vec<_>>().join(", ")
}

/// The built-in that a Function of this name surely is: packages are named after their repository, with its owner in
/// front when they are installed as a dependency.
fn by_name(name: &str) -> Option<&'static str> {
    let is_dependency = |built_in: &&str| name.ends_with(&format!("-{built_in}"));
    exactly(name).or_else(|| transom_builtins::names().find(is_dependency))
}

fn exactly(name: &str) -> Option<&'static str> {
    transom_builtins::names().find(|built_in| *built_in == name)
}

impl Runtime {
    /// The built-in that a Function is.
    pub(crate) fn built_in(&self, function: &str) -> Option<&'static str> {
        self.built_in.get(function).copied()
    }

    fn run_in_process(&mut self, name: &str, built_in: &'static str) {
        let find = if self.genuine { transom_builtins::find } else { transom_builtins::find_explained };
        if let Some(function) = find(built_in) {
            self.functions.run_in_process(name, function);
            self.built_in.insert(name.to_owned(), built_in);
        }
    }

    fn route(&mut self, name: &str, manifest: &Manifest) -> Result<(), Failure> {
        let function: Function = serde_json::from_value::<Function>(manifest.object.clone())
            .map_err(|e| manifest.wrong("/spec", format!("this is not a Function: {e}")))?;
        let annotation = |key| meta::annotation(&manifest.object, key);
        let pointer = |key: &str| format!("/metadata/annotations/{}", key.replace('/', "~1"));
        let runtime = annotation(RUNTIME).unwrap_or("Docker");
        if runtime == "Development" {
            let target = annotation(DEVELOPMENT_TARGET).unwrap_or(DEFAULT_TARGET);
            let called = self.functions.call_at(name, Endpoint::plaintext(target));
            return called.map_err(|e| manifest.wrong(&pointer(DEVELOPMENT_TARGET), e.to_string()));
        }
        if !["Docker", "InProcess"].contains(&runtime) {
            return Err(manifest
                .wrong(&pointer(RUNTIME), format!("unknown runtime {runtime:?} for Function {name:?}"))
                .remedy("built-in functions need none, all others run as Development"));
        }
        let package = function.repository_name();
        let built_in = exactly(package).or_else(|| {
            // An annotation that asks for this process needs no package to say which function it is.
            (runtime == "InProcess").then(|| by_name(name)).flatten()
        });
        let built_in = built_in.ok_or_else(|| {
            let what =
                format!("Function {name:?} is not built in: its package is {:?}", function.spec.package);
            let meant = suggest::did_you_mean(package, transom_builtins::names());
            manifest.wrong("/spec/package", what).remedy(meant.unwrap_or_else(|| {
                format!(
                    "run it yourself with --insecure and annotate it {RUNTIME}: Development; built in are {}",
                    names()
                )
            }))
        })?;
        self.run_in_process(name, built_in);
        Ok(())
    }
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
