//! Where the functions of a pipeline run.
//!
//! A function whose package is one of the built-ins' runs in this process. One that somebody runs already is called at
//! its address. Nothing is downloaded and no container is started.

use super::manifests::{self, Manifest};
use crate::failure::Failure;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use transom_compose::resources_mode;
use transom_function::Function as Callable;
use transom_object::meta;
use transom_object::spelling::nearest;
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

/// Finds every function that a composition calls.
pub(crate) fn resolve(
    composition: &Manifest,
    spec: &Composition,
    functions: Option<&[Manifest]>,
    deadline: Duration,
) -> Result<Functions, Failure> {
    let runner =
        Functions::new(Options { deadline, patience: PATIENCE.min(deadline / 2), ..Options::default() });
    if spec.spec.is_resources_mode() {
        runner.run_in_process(resources_mode::FUNCTION, transom_builtins::templates());
    }
    for (index, step) in spec.spec.pipeline.iter().enumerate() {
        let pointer = format!("/spec/pipeline/{index}/functionRef/name");
        let name = &step.function_ref.name;
        match functions {
            Some(functions) => {
                let function = functions.iter().find(|manifest| meta::name(&manifest.object) == name);
                let function = function.ok_or_else(|| {
                    let what = format!("unknown Function {name:?}, called by pipeline step {:?}", step.step);
                    let given = functions.iter().map(|manifest| meta::name(&manifest.object));
                    composition.wrong(&pointer, what).remedy(match nearest(name, given) {
                        Some(near) => format!("did you mean {near}?"),
                        None => "does it exist in your Functions file?".to_owned(),
                    })
                })?;
                route(&runner, name, function)?;
            }
            None => {
                let built_in = by_name(name).ok_or_else(|| {
                    let what = format!("Function {name:?} is not built in, and no Functions file is given");
                    composition.wrong(&pointer, what).remedy(match nearest(name, transom_builtins::names()) {
                        Some(near) => format!("did you mean {near}?"),
                        None => format!("built in are {}", names()),
                    })
                })?;
                runner.run_in_process(name, built_in);
            }
        }
    }
    Ok(runner)
}

fn names() -> String {
    transom_builtins::names().collect::<Vec<_>>().join(", ")
}

/// The built-in that a Function of this name surely is: packages are named after their repository, with its owner in
/// front when they are installed as a dependency.
fn by_name(name: &str) -> Option<Arc<dyn Callable>> {
    let exact = transom_builtins::find(name);
    exact.or_else(|| {
        let suffix = transom_builtins::names().find(|built_in| name.ends_with(&format!("-{built_in}")))?;
        transom_builtins::find(suffix)
    })
}

fn route(runner: &Functions, name: &str, manifest: &Manifest) -> Result<(), Failure> {
    let function: Function = serde_json::from_value::<Function>(manifest.object.clone())
        .map_err(|e| manifest.wrong("/spec", format!("this is no Function: {e}")))?;
    let annotation = |key| meta::annotation(&manifest.object, key);
    let pointer = |key: &str| format!("/metadata/annotations/{}", key.replace('/', "~1"));
    let runtime = annotation(RUNTIME).unwrap_or("Docker");
    if runtime == "Development" {
        let target = annotation(DEVELOPMENT_TARGET).unwrap_or(DEFAULT_TARGET);
        let called = runner.call_at(name, Endpoint::plaintext(target));
        return called.map_err(|e| manifest.wrong(&pointer(DEVELOPMENT_TARGET), e.to_string()));
    }
    if !["Docker", "InProcess"].contains(&runtime) {
        return Err(manifest
            .wrong(&pointer(RUNTIME), format!("unknown runtime {runtime:?} for Function {name:?}"))
            .remedy("built-in functions need none, all others run as Development"));
    }
    let package = function.repository_name();
    let built_in = transom_builtins::find(package).or_else(|| {
        // An annotation that asks for this process needs no package to say which function it is.
        (runtime == "InProcess").then(|| by_name(name)).flatten()
    });
    let built_in = built_in.ok_or_else(|| {
        let what = format!("Function {name:?} is not built in: its package is {:?}", function.spec.package);
        manifest.wrong("/spec/package", what).remedy(format!(
            "run it yourself with --insecure and annotate it {RUNTIME}: Development; built in are {}",
            names()
        ))
    })?;
    runner.run_in_process(name, built_in);
    Ok(())
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
