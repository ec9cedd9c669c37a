//! Where the functions of a pipeline run.
//!
//! Functions are resolved and run by the same resolver and runtime as in a control plane (`transom_runner`): one whose
//! package is that of a built-in runs in this process, one that is already running is called at its address. Here their
//! problems become errors that point at the files.

use super::manifests::{self, Manifest};
use crate::failure::Failure;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use transom_builtins::{Builtins, Settings};
use transom_compose::{environment, resources_mode};
use transom_object::{meta, suggest};
use transom_runner::{
    DEVELOPMENT_TARGET_ANNOTATION, ENDPOINT_ANNOTATION, FORCED_RUNTIME_ANNOTATION, Installer, LocalRuntime,
    Options, Problem, RUNTIME_ANNOTATION, Reason, Resolver, RevisionSpec, Router, RuntimeState, Source,
};
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
    pub(crate) functions: Arc<Router>,
    installer: Installer,
    resolver: Resolver,
    /// The names of the built-ins that Functions are, by the names of the Functions.
    built_in: BTreeMap<String, String>,
}

/// Makes every function that a composition calls callable, as a control plane does. With `genuine`, built-ins answer letter
/// by letter as the originals.
pub(crate) async fn resolve(
    composition: &Manifest,
    spec: &Composition,
    functions: Option<&[Manifest]>,
    timeout: Duration,
    genuine: bool,
) -> Result<Runtime, Failure> {
    let mut runtime = Runtime::new(timeout, genuine);
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
                runtime.install_manifest(function).await?;
            }
            None => runtime.install_builtin(name).await.map_err(|_| {
                let what = format!("Function {name:?} is not built in, and no Functions file is given");
                let remedy = suggest::did_you_mean(name, transom_builtins::names());
                let otherwise = || format!("built in are {}", names());
                composition.wrong(&pointer, what).remedy(remedy.unwrap_or_else(otherwise))
            })?,
        }
    }
    Ok(runtime)
}

fn names() -> String {
    transom_builtins::names().collect::<Vec<_>>().join(", ")
}

impl Runtime {
    fn new(timeout: Duration, genuine: bool) -> Self {
        let wait_for_start = WAIT_FOR_START.min(timeout / 2);
        let functions = Arc::new(Router::new(Options { wait_for_start, ..Options::default() }));
        let builtins = Builtins::new(&Settings { explain_refusals: !genuine, ..Settings::default() });
        let runtime = LocalRuntime::new(move |name| builtins.find(name), functions.options());
        let resolver = Resolver::new(transom_builtins::names());
        let installer = Installer::new(resolver.clone(), Arc::new(runtime), functions.clone());
        Self { functions, installer, resolver, built_in: BTreeMap::new() }
    }

    /// The name of the built-in that a Function is.
    pub(crate) fn built_in(&self, function: &str) -> Option<&str> {
        self.built_in.get(function).map(String::as_str)
    }

    /// Makes a Function callable. One that cannot be reached yet counts as callable: it may just be starting, and the
    /// call reports it otherwise.
    async fn install(&mut self, function: &Function) -> Result<(), Problem> {
        let revision = RevisionSpec::sole(function, &self.resolver);
        if let RuntimeState::Failed(problem) = self.installer.install(&revision).await {
            return Err(problem);
        }
        if let Source::Builtin(name) = revision.source {
            self.built_in.insert(function.metadata.name.clone(), name);
        }
        Ok(())
    }

    /// Makes the built-in that a Function of this name is by convention callable.
    async fn install_builtin(&mut self, name: &str) -> Result<(), Problem> {
        let mut function = Function::default();
        name.clone_into(&mut function.metadata.name);
        let in_process = (RUNTIME_ANNOTATION.to_owned(), "InProcess".to_owned());
        function.metadata.annotations = Some(BTreeMap::from([in_process]));
        self.install(&function).await
    }

    async fn install_manifest(&mut self, manifest: &Manifest) -> Result<(), Failure> {
        let function: Function = serde_json::from_value::<Function>(manifest.object.clone())
            .map_err(|e| manifest.wrong("/spec", format!("this is not a Function: {e}")))?;
        check_runtime(manifest)?;
        self.install(&function).await.map_err(|problem| match problem.reason {
            Reason::InvalidEndpoint => {
                let is_set = |key: &&str| meta::annotation(&manifest.object, key).is_some();
                let keys = [ENDPOINT_ANNOTATION, DEVELOPMENT_TARGET_ANNOTATION];
                let key = keys.into_iter().find(is_set).unwrap_or(RUNTIME_ANNOTATION);
                manifest.wrong(&annotation_pointer(key), problem.message)
            }
            Reason::UnsupportedPackage => not_built_in(manifest, &function),
            _ => manifest.wrong("/spec", problem.message),
        })
    }
}

fn annotation_pointer(key: &str) -> String {
    format!("/metadata/annotations/{}", key.replace('/', "~1"))
}

/// Refuses a runtime that `render` does not have. With an endpoint the runtime does not matter.
fn check_runtime(manifest: &Manifest) -> Result<(), Failure> {
    let annotation = |key: &str| meta::annotation(&manifest.object, key);
    match annotation(RUNTIME_ANNOTATION) {
        None | Some("Docker" | "InProcess" | "Development") => Ok(()),
        Some(_) if annotation(ENDPOINT_ANNOTATION).is_some() => Ok(()),
        Some(runtime) => {
            let what = format!("unknown runtime {runtime:?} for Function {:?}", meta::name(&manifest.object));
            let remedy = "built-in functions need none, all others run as Development";
            Err(manifest.wrong(&annotation_pointer(RUNTIME_ANNOTATION), what).remedy(remedy))
        }
    }
}

fn not_built_in(manifest: &Manifest, function: &Function) -> Failure {
    let (name, package) = (&function.metadata.name, &function.spec.package);
    if function.metadata.annotation(FORCED_RUNTIME_ANNOTATION).is_some() {
        let what = format!("Function {name:?} is to run what is in its package, which cannot be run yet");
        let pointer = annotation_pointer(FORCED_RUNTIME_ANNOTATION);
        return manifest.wrong(&pointer, what).remedy("remove the annotation to run the built-in");
    }
    let what = format!("Function {name:?} is not built in: its package is {package:?}");
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
