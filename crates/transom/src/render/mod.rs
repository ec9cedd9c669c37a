//! `transom render`: what a composition makes of a composite resource, without a control plane.
//!
//! The files are read and checked ([`inputs`]), the functions found ([`runtime`]), one reconcile is done offline with the very
//! engine that controllers use, and its result is printed ([`documents`]; [`classic`] for the older form), or what
//! went wrong is explained ([`explain`]). Only documents go to stdout.

pub(crate) mod admission;
mod classic;
mod definition;
pub(crate) mod documents;
mod explain;
mod inputs;
pub(crate) mod manifests;
mod options;
pub(crate) mod runtime;

pub(crate) use options::{Format, Render};

use classic::{Classic, Pool};
use inputs::Inputs;
use manifests::Manifest;
use runtime::{Runtime, Runtimes};
use serde_json::Value;
use std::process::ExitCode;
use transom_compose::{Decision, offline};
use transom_console::Failure;
use transom_object::error_chain::chain;
use transom_object::time;
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
    transom_console::print(text.as_bytes())
}

async fn render_all(options: &Render, inputs: &Inputs) -> Result<Vec<Value>, Failure> {
    let has_inline =
        inputs.compositions.iter().any(|(_, composition)| composition.spec.has_inline_functions());
    let runtimes = Runtimes::new(options, inputs.functions.as_deref().unwrap_or_default(), has_inline)?;
    let rendered = render_with(options, inputs, &runtimes).await;
    runtimes.stop().await;
    rendered
}

async fn render_with(options: &Render, inputs: &Inputs, runtimes: &Runtimes) -> Result<Vec<Value>, Failure> {
    let mut documents = Vec::new();
    let mut seen: Vec<&Manifest> = Vec::new();
    for xr in &inputs.composites {
        let job = Job::new(options, inputs, xr, runtimes).await?;
        // Once for each Composition, however many composite resources it composes.
        if !seen.iter().any(|manifest| std::ptr::eq(*manifest, job.manifest)) {
            job.warn();
            seen.push(job.manifest);
        }
        documents.extend(job.render().await?);
    }
    Ok(documents)
}

/// One composite resource to render.
struct Job<'a> {
    options: &'a Render,
    inputs: &'a Inputs,
    manifest: &'a Manifest,
    composition: &'a Composition,
    runtime: Runtime,
    xr: &'a Value,
}

impl<'a> Job<'a> {
    async fn new(
        options: &'a Render,
        inputs: &'a Inputs,
        xr: &'a Manifest,
        runtimes: &Runtimes,
    ) -> Result<Self, Failure> {
        let (manifest, composition) = inputs.composition_for(xr)?;
        let functions = inputs.functions.as_deref();
        let runtime = runtime::resolve(manifest, composition, functions, runtimes).await?;
        let choosing = runtime::choosing_steps(composition);
        if !choosing.is_empty() {
            let title = manifest.title();
            transom_console::print_to_stderr(&format!(
                "note: {title}: revisions of functions are not chosen offline, where there are none: {choosing} is called as its \
                 Function is given here\n"
            ));
        }
        Ok(Self { options, inputs, manifest, composition, runtime, xr: &xr.object })
    }

    async fn render(&self) -> Result<Vec<Value>, Failure> {
        let Self { options, inputs, composition, xr, .. } = *self;
        let layout = offline::layout_for(xr, inputs.definition.as_ref().map(|d| &d.manifest.object));
        let layout = layout.map_err(|e| Failure::new(e.to_string()))?;
        let (observed, context) = (&inputs.observed, inputs.context.clone());
        if options.classic_output {
            let classic = Classic { xr, layout, composition, observed, context };
            let pool = Pool { required: &inputs.required, rest: &inputs.world };
            return match classic.run(&*self.runtime.functions, &pool).await {
                Ok(decision) => {
                    warn(&decision);
                    Ok(classic::documents(options, composition, xr, decision))
                }
                Err(failure) => Err(self.explain(&failure)),
            };
        }
        let now = time::parse(documents::TIME).unwrap_or_default();
        let input = offline::Input { xr, layout, composition, observed, context, now };
        match offline::reconcile(&input, &*self.runtime.functions, &inputs.world).await {
            Ok(reconciled) => {
                for ignored in composition.spec.ignored() {
                    transom_console::print_to_stderr(&format!("warning: {ignored}\n"));
                }
                warn(&reconciled.decision);
                Ok(documents::documents(options, xr, reconciled))
            }
            Err(offline::Error::Compose { failure, .. }) => Err(self.explain(&failure)),
            Err(other) => Err(Failure::new(chain(&other))),
        }
    }
}

/// Prints on stderr what a control plane reports in events that Crossplane does not have.
fn warn(decision: &Decision) {
    for remark in &decision.remarks {
        transom_console::print_to_stderr(&format!("warning: {}\n", remark.text()));
    }
}
