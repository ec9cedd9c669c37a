//! Where the functions of a pipeline run.
//!
//! Functions are resolved and run by the same resolver and runtime as in a control plane (`transom_runner`): one whose
//! package is that of a built-in runs in this process, one that is already running is called at its address, all others
//! are run from their packages, in containers on this machine, until all is rendered. Here their problems become errors that
//! point at the files.

use super::manifests::{self, Manifest};
use super::options::Render;
use crate::containers::{ContainerArgs, FunctionRuntimes};
use crate::xpkg::origin;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use transom_builtins::{Builtins, Settings};
use transom_console::Failure;
use transom_machine::{DockerCredentials, HostResources};
use transom_object::{meta, suggest};
use transom_runner::{
    Assembly, DEVELOPMENT_TARGET_ANNOTATION, ENDPOINT_ANNOTATION, FORCED_RUNTIME_ANNOTATION, FunctionRuntime,
    InlineRunner, Installer, Options, Problem, RUNTIME_ANNOTATION, Reason, Resolver, RevisionSpec, Router,
    RuntimeState, Source,
};
use transom_xapi::function::{Function, ImageId, WantedRevision, repository_name};
use transom_xapi::{Composition, PipelineStep};

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

/// What runs the functions of all compositions that are rendered, each once.
pub(crate) struct Runtimes {
    runtimes: FunctionRuntimes,
    assembly: Arc<Assembly>,
    /// Runs inline functions.
    inline: Option<Arc<dyn InlineRunner>>,
}

impl Runtimes {
    /// With `--classic-output`, built-ins answer letter by letter as the originals.
    pub(crate) fn new(
        render: &Render,
        functions: &[Manifest],
        has_inline_functions: bool,
    ) -> Result<Self, Failure> {
        let wait_for_start = WAIT_FOR_START.min(render.timeout / 2);
        let options = Options { wait_for_start, ..Options::default() };
        let explain_refusals = !render.classic_output;
        let builtins = Builtins::new(&Settings { explain_refusals, ..Settings::default() });
        let assembly = Arc::new(Assembly::new(builtins, options));
        // Without packages neither a registry nor a directory is needed.
        let resolver = assembly.resolver();
        let is_package = |manifest: &Manifest| {
            let function = Function::deserialize(&manifest.object);
            function.is_ok_and(|function| matches!(resolver.resolve(&function), Source::Package { .. }))
        };
        if !has_inline_functions && !functions.iter().any(is_package) {
            return Ok(Self::local(assembly));
        }
        Self::with_packages(&render.containers, render.cache_dir.as_deref(), assembly)
    }

    /// What runs packages and inline functions as well, with images in a directory for caches.
    pub(crate) fn with_packages(
        containers: &ContainerArgs,
        cache_dir: Option<&Path>,
        assembly: Arc<Assembly>,
    ) -> Result<Self, Failure> {
        let (registry, config) = origin::remote_for_images()?;
        let place = HostResources {
            dir: origin::containers_folder(cache_dir)?,
            images: Arc::new(registry),
            credentials: Arc::new(DockerCredentials(config)),
            // Nothing is under way when all is rendered.
            grace: Duration::ZERO,
        };
        let inline = inline(containers, &place);
        Ok(Self { inline, ..Self::in_containers(containers, place, assembly) })
    }

    /// Without containers.
    fn local(assembly: Arc<Assembly>) -> Self {
        Self { runtimes: FunctionRuntimes::local(assembly.runtime()), assembly, inline: None }
    }

    /// Without inline functions.
    fn in_containers(containers: &ContainerArgs, place: HostResources, assembly: Arc<Assembly>) -> Self {
        let (local, options) = (assembly.runtime(), assembly.options());
        let runtimes = FunctionRuntimes::new(containers, place, local, options);
        Self { runtimes, assembly, inline: None }
    }

    pub(crate) fn runtime(&self) -> Arc<dyn FunctionRuntime> {
        self.runtimes.runtime()
    }

    pub(crate) fn inline(&self) -> Option<Arc<dyn InlineRunner>> {
        self.inline.clone()
    }

    /// What runs one package for `transom function test`.
    pub(crate) fn of_packages(containers: &ContainerArgs, place: HostResources) -> Self {
        let builtins = Builtins::new(&Settings::default());
        Self::in_containers(containers, place, Arc::new(Assembly::new(builtins, Options::default())))
    }

    /// Makes one Function callable.
    pub(crate) async fn start(&self, function: &Function) -> Result<Arc<Router>, Problem> {
        let mut runtime = Runtime::new(self);
        runtime.install(function).await?;
        Ok(runtime.functions)
    }

    /// Stops the functions that were run from their packages.
    pub(crate) async fn stop(&self) {
        self.runtimes.stop().await;
    }
}

#[cfg(target_os = "linux")]
fn inline(containers: &ContainerArgs, place: &HostResources) -> Option<Arc<dyn InlineRunner>> {
    Some(Arc::new(transom_xfn::InlineFunctions::new(containers.programs(place.clone()))))
}

#[cfg(not(target_os = "linux"))]
fn inline(_: &ContainerArgs, _: &HostResources) -> Option<Arc<dyn InlineRunner>> {
    None
}

/// The functions that a composition calls.
pub(crate) struct Runtime {
    pub(crate) functions: Arc<Router>,
    installer: Installer,
    resolver: Resolver,
    /// The names of the built-ins that Functions are, by the names of the Functions.
    built_in: BTreeMap<String, String>,
}

/// Makes every function that a composition calls callable, as a control plane does.
pub(crate) async fn resolve(
    composition: &Manifest,
    spec: &Composition,
    functions: Option<&[Manifest]>,
    runtimes: &Runtimes,
) -> Result<Runtime, Failure> {
    let mut runtime = Runtime::new(runtimes);
    for (index, step) in spec.spec.pipeline.iter().enumerate() {
        if step.inline.is_some() {
            continue;
        }
        if let Some(image) = &step.function {
            runtime
                .install_pinned(composition, &format!("/spec/pipeline/{index}/function"), image, functions)
                .await?;
            continue;
        }
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

/// The steps that choose a revision of their function, for a message; empty if there are none.
pub(crate) fn choosing_steps(composition: &Composition) -> String {
    let chooses = |step: &&PipelineStep| {
        matches!(step.wanted_revision(), WantedRevision::Named(_) | WantedRevision::Labelled(_))
    };
    let steps = composition.spec.pipeline.iter().filter(chooses);
    let steps: Vec<String> = steps.map(|step| format!("the function of step {:?}", step.step)).collect();
    steps.join(", ")
}

fn names() -> String {
    transom_builtins::names().collect::<Vec<_>>().join(", ")
}

impl Runtime {
    fn new(runtimes: &Runtimes) -> Self {
        let functions = runtimes.assembly.router();
        let functions = Arc::new(match &runtimes.inline {
            Some(inline) => functions.with_inline(inline.clone()),
            None => functions,
        });
        let resolver = runtimes.assembly.resolver();
        let installer = Installer::new(resolver.clone(), runtimes.runtimes.runtime(), functions.clone());
        Self { functions, installer, resolver, built_in: BTreeMap::new() }
    }

    /// The name of the built-in that a Function is.
    pub(crate) fn built_in(&self, function: &str) -> Option<&str> {
        self.built_in.get(function).map(String::as_str)
    }

    /// Makes a Function callable. One at an endpoint that cannot be reached yet counts as callable: it may just be
    /// starting, and the call reports it otherwise. One that runs from its package is waited for.
    async fn install(&mut self, function: &Function) -> Result<(), Problem> {
        let revision = RevisionSpec::sole(function, &self.resolver);
        let is_package = matches!(revision.source, Source::Package { .. });
        // The time limit of the whole command ends waiting.
        match self.installer.install_and_wait(&revision, Duration::MAX).await {
            RuntimeState::Failed(problem) => return Err(problem),
            RuntimeState::Pending { problem, .. } if is_package => return Err(problem),
            RuntimeState::Pending { .. } | RuntimeState::Ready(_) => {}
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

    /// Makes the function with an image callable: of the Functions that are given, the one with that image; without any, the
    /// built-in that the repository is named after.
    async fn install_pinned(
        &mut self,
        composition: &Manifest,
        pointer: &str,
        image: &str,
        functions: Option<&[Manifest]>,
    ) -> Result<(), Failure> {
        let Some(functions) = functions else {
            let mut function = Function::default();
            repository_name(image).clone_into(&mut function.metadata.name);
            image.clone_into(&mut function.spec.package);
            return self.install(&function).await.map_err(|_| {
                let what = format!("Function {image:?} is not built in, and no Functions file is given");
                composition.wrong(pointer, what).remedy(format!("built in are {}", names()))
            });
        };
        let package =
            |manifest: &Manifest| manifest.object["spec"]["package"].as_str().unwrap_or_default().to_owned();
        let function =
            functions.iter().find(|manifest| ImageId::of(&package(manifest)) == ImageId::of(image));
        let function = function.ok_or_else(|| {
            let what = format!("no Function has the image {image}");
            composition
                .wrong(pointer, what)
                .remedy(format!("write spec.package: {image} in your Functions file"))
        })?;
        self.install_manifest(function).await
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
            Reason::UnsupportedPackage => not_built_in(manifest, &function, &problem),
            Reason::ImageUnavailable | Reason::InvalidImage => cannot_run(manifest, &function, &problem),
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
            let remedy = "built-in functions need none; Docker runs the package, and Development calls a function that is running";
            Err(manifest.wrong(&annotation_pointer(RUNTIME_ANNOTATION), what).remedy(remedy))
        }
    }
}

/// A function whose package cannot be pulled or run. It may be a built-in whose name is misspelt.
fn cannot_run(manifest: &Manifest, function: &Function, problem: &Problem) -> Failure {
    let name = &function.metadata.name;
    let what = format!("Function {name:?} is not built in, and its package cannot be run: {problem}");
    let meant = suggest::did_you_mean(function.repository_name(), transom_builtins::names());
    manifest.wrong("/spec/package", what).remedy(meant.unwrap_or_else(run_it_yourself))
}

fn run_it_yourself() -> String {
    format!(
        "run it yourself with --insecure and annotate it {RUNTIME_ANNOTATION}: Development; built in are {}",
        names()
    )
}

fn not_built_in(manifest: &Manifest, function: &Function, problem: &Problem) -> Failure {
    let (name, package) = (&function.metadata.name, &function.spec.package);
    if function.metadata.annotation(FORCED_RUNTIME_ANNOTATION).is_some() {
        let what = format!("Function {name:?} is to run what is in its package: {problem}");
        let pointer = annotation_pointer(FORCED_RUNTIME_ANNOTATION);
        return manifest.wrong(&pointer, what).remedy("remove the annotation to run the built-in");
    }
    let what = format!("Function {name:?} is not built in: its package is {package:?}");
    let meant = suggest::did_you_mean(function.repository_name(), transom_builtins::names());
    manifest.wrong("/spec/package", what).remedy(meant.unwrap_or_else(run_it_yourself))
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
