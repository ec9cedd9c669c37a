//! `transom render`: what a composition makes of a composite resource, without a control plane.
//!
//! The files are read and checked ([`inputs`]), the functions found ([`runtime`]), one reconcile is simulated with the
//! very engine that controllers use, and its result is printed ([`documents`]; [`classic`] for the older form). Only
//! documents go to stdout.

mod classic;
mod documents;
mod inputs;
mod manifests;
mod options;
mod runtime;
mod shape;

pub(crate) use options::Render;

use crate::failure::Failure;
use classic::{Classic, Pool};
use inputs::Inputs;
use manifests::Manifest;
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;
use transom_compose::{Cause, Plan, Simulation, SimulationError, simulate};
use transom_object::{fieldpath, meta, time};
use transom_runner::Functions;
use transom_xapi::Composition;

pub(crate) fn run(options: Render) -> Result<ExitCode, Failure> {
    let options = options.normalise();
    let inputs = Inputs::load(&options)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("cannot start the runtime: {e}")))?;
    let rendered = runtime
        .block_on(async { tokio::time::timeout(options.timeout, render_all(&options, &inputs)).await });
    let documents = rendered.map_err(|_| {
        let what = format!("rendering took longer than {} s", options.timeout.as_secs_f64());
        Failure::new(what).remedy("allow more with --timeout")
    })??;
    let text = documents::print(&documents, options.output);
    let written = std::io::stdout().lock().write_all(text.as_bytes());
    written.map_err(|e| Failure::new(format!("cannot write to stdout: {e}")))?;
    Ok(ExitCode::SUCCESS)
}

async fn render_all(options: &Render, inputs: &Inputs) -> Result<Vec<Value>, Failure> {
    let mut documents = Vec::new();
    for xr in &inputs.composites {
        documents.extend(Job::new(options, inputs, xr)?.render().await?);
    }
    Ok(documents)
}

/// One composite resource to render.
struct Job<'a> {
    options: &'a Render,
    inputs: &'a Inputs,
    manifest: &'a Manifest,
    composition: &'a Composition,
    functions: Functions,
    xr: Value,
}

impl<'a> Job<'a> {
    fn new(options: &'a Render, inputs: &'a Inputs, xr: &'a Manifest) -> Result<Self, Failure> {
        let (manifest, composition) = inputs.composition_for(xr)?;
        let functions = inputs.functions.as_deref();
        let functions = runtime::resolve(manifest, composition, functions, options.timeout)?;
        if let Some(fields) = composition.spec.without_effect() {
            anstream::eprintln!("warning: {}: {fields}", manifest.title());
        }
        Ok(Self { options, inputs, manifest, composition, functions, xr: inputs.defaulted(xr)? })
    }

    async fn render(&self) -> Result<Vec<Value>, Failure> {
        let Self { options, inputs, composition, xr, .. } = self;
        let schema = transom_compose::schema_for(xr, inputs.definition.as_ref().map(|d| &d.object));
        let schema = schema.map_err(Failure::new)?;
        let (observed, context) = (&inputs.observed, inputs.context.clone());
        if options.classic_output {
            let classic = Classic { xr, schema, composition, observed, context };
            let pool = Pool { required: &inputs.required, rest: &inputs.world };
            let plan = classic.run(&self.functions, &pool).await;
            return match plan {
                Ok(plan) => {
                    warn(&plan);
                    Ok(classic::documents(options, composition, xr, plan))
                }
                Err(failure) => Err(self.explain(&failure)),
            };
        }
        let now = time::parse(documents::TIME).unwrap_or_default();
        let simulation = Simulation { xr, schema, composition, observed, context, now };
        match simulate(&simulation, &self.functions, &inputs.world).await {
            Ok(simulated) => {
                warn(&simulated.plan);
                Ok(documents::documents(options, xr, simulated))
            }
            Err(SimulationError::Compose { failure, .. }) => Err(self.explain(&failure)),
            Err(other) => Err(Failure::new(other.to_string())),
        }
    }

    /// Shows on stderr what was wanted before a pipeline failed, and points at the step that did.
    fn explain(&self, failure: &transom_compose::Failure) -> Failure {
        let mut so_far = Vec::new();
        for (name, resource) in failure.desired.iter().flat_map(|state| &state.resources) {
            let mut object = resource.object().clone();
            meta::set_annotation(&mut object, "crossplane.io/composition-resource-name", name);
            so_far.push(object);
        }
        if !so_far.is_empty() {
            anstream::eprint!("{}", documents::print(&so_far, self.options.output));
            anstream::eprintln!("---\n# wanted before the pipeline failed; not applied");
        }
        for event in &failure.events {
            anstream::eprintln!("{}: {}", event.r#type.as_str(), event.text());
        }
        let what = format!("cannot render {}: {failure}", meta::name(&self.xr));
        let Some(index) = failure.step().and_then(|step| self.step(step)) else { return Failure::new(what) };
        let pointer = format!("/spec/pipeline/{index}");
        let input = self.manifest.object.pointer(&format!("{pointer}/input"));
        let pointer = match input.and_then(|input| bad_path(input, &format!("{pointer}/input"))) {
            Some(path) if matches!(failure.cause, Cause::Fatal { .. }) => path,
            _ => format!("{pointer}/step"),
        };
        self.manifest.wrong(&pointer, what).remedy(remedy(&failure.cause))
    }

    fn step(&self, name: &str) -> Option<usize> {
        self.composition.spec.pipeline.iter().position(|step| step.step == name)
    }
}

/// Says on stderr what a plane reports in events that Crossplane does not have.
fn warn(plan: &Plan) {
    for remark in &plan.remarks {
        anstream::eprintln!("warning: {}", remark.text());
    }
}

fn remedy(cause: &Cause) -> &'static str {
    match cause {
        Cause::Run { .. } => "is the function running, with --insecure, at the address in its annotation?",
        Cause::Credentials { .. } => "give the Secret with --function-credentials",
        Cause::Unsettled { .. } => {
            "the function keeps requiring something else; that is a bug of the function"
        }
        Cause::NotAllowed { .. } => {
            "add what the function requires to the step's allowedExtraResources, or change what it requires"
        }
        Cause::BadPattern { .. } => "correct the pattern; * alone matches everything",
        Cause::ResourceName { .. } => "the function must give every composed resource a name",
        _ => "the function refuses; its message says why",
    }
}

/// A field path in a function's input that is none, as a JSON pointer.
fn bad_path(input: &Value, pointer: &str) -> Option<String> {
    match input {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let inner = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
            match value {
                Value::String(path)
                    if ["fromFieldPath", "toFieldPath", "fieldPath"].contains(&key.as_str()) =>
                {
                    fieldpath::parse(path).is_err().then_some(inner)
                }
                value => bad_path(value, &inner),
            }
        }),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(i, item)| bad_path(item, &format!("{pointer}/{i}")))
        }
        _ => None,
    }
}
