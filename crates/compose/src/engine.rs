//! The decision itself: run the pipeline, then compare its desired state with what exists.

use crate::composite::{identity, references, with_references};
use crate::decision::{Decision, References};
use crate::distinct::must_be_distinct;
use crate::failure::{Cause, Failure};
use crate::inputs::Inputs;
use crate::pipeline::{self, Progress};
use crate::requirements::resource;
use crate::runner::FunctionRunner;
use crate::world::World;
use crate::{desired, environment, resources_mode, unwanted};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_function::{Ready, Resource, State};
use transom_object::meta;
use transom_xapi::composite::Layout;
use transom_xapi::metadata::TypedReference;
use transom_xapi::{CompositionSpec, PipelineStep, conditions};

/// Decides what should exist. Reads through `world`, calls functions through `runner`, and changes nothing.
pub async fn compose(
    inputs: Inputs<'_>,
    runner: &dyn FunctionRunner,
    world: &dyn World,
) -> Result<Decision, Failure> {
    let steps = steps(inputs.composition)?;
    let observed = observed_state(&inputs)?;
    let mut progress = pipeline::run(&steps, &inputs, &observed, runner, world).await?;
    match decide(&inputs, &mut progress, world).await {
        Ok(decision) => Ok(decision),
        Err(cause) => Err(progress.fail(cause)),
    }
}

/// The steps that a Composition stands for.
fn steps(composition: &CompositionSpec) -> Result<Cow<'_, [PipelineStep]>, Cause> {
    if let Some(store) = composition.store() {
        return Err(Cause::Store(store.to_owned()));
    }
    let mut steps: Cow<'_, [PipelineStep]> = if composition.is_resources_mode() {
        Cow::Owned(resources_mode::pipeline(composition)?)
    } else {
        Cow::Borrowed(&composition.pipeline)
    };
    if let Some(environment) = environment::step(composition) {
        steps.to_mut().insert(0, environment);
    }
    Ok(steps)
}

/// The observed state that every step is given.
fn observed_state(inputs: &Inputs<'_>) -> Result<State, Cause> {
    let composite =
        resource(inputs.visible_xr.unwrap_or(inputs.xr).clone(), inputs.connection_details.clone())?;
    let mut resources = BTreeMap::new();
    for (name, observed) in inputs.observed {
        let composed = resource(observed.object.clone(), observed.connection_details.clone())?;
        resources.insert(name.clone(), composed);
    }
    Ok(State { composite: Some(composite), resources })
}

async fn decide(inputs: &Inputs<'_>, progress: &mut Progress, world: &dyn World) -> Result<Decision, Cause> {
    let desired = progress.desired.clone().unwrap_or_default();
    let mut apply = Vec::with_capacity(desired.resources.len());
    for (name, resource) in desired.resources {
        let (application, event) = desired::application(inputs, &name, resource, world).await?;
        apply.push(Arc::new(application));
        progress.events.extend(event);
    }
    must_be_distinct(&apply)?;
    let rest = unwanted::rest(inputs, &apply, &progress.rendered)?;
    let refs = apply.iter().map(|application| TypedReference::to(&application.object)).chain(rest.keep);
    let object = with_references(inputs.xr, inputs.layout, refs.collect());
    let changed = references(&object, inputs.layout) != references(inputs.xr, inputs.layout);
    let composite = desired.composite.unwrap_or_default();
    let mut remarks = rest.remarks;
    remarks.extend(progress.authors.remarks(&composite, &apply, inputs));
    Ok(Decision {
        delete: rest.delete,
        references: References { object, changed },
        apply,
        status: status(inputs, &composite),
        composite: composite.resource.clone(),
        ready: match composite.ready() {
            Ready::True => Some(true),
            Ready::False => Some(false),
            Ready::Unspecified => None,
        },
        connection_details: match inputs.layout {
            Layout::Legacy => composite.connection_details,
            Layout::Modern => BTreeMap::new(),
        },
        conditions: std::mem::take(&mut progress.conditions),
        events: std::mem::take(&mut progress.events),
        remarks,
        ttl: progress.ttl,
        requirements: std::mem::take(&mut progress.requirements),
        unused_lookups: std::mem::take(&mut progress.lookups).unused(),
        context: progress.context.take(),
    })
}

/// The status that is wanted, and the conditions already known. Nothing else of a desired composite resource counts.
fn status(inputs: &Inputs<'_>, desired: &Resource) -> Value {
    let xr = inputs.xr;
    let mut object = identity(xr);
    meta::set(&mut object, "uid", Some(meta::uid(xr)).filter(|uid| !uid.is_empty()));
    if let Some(status) = desired.object().get("status") {
        object["status"] = status.clone();
    }
    conditions::mark(&mut object, conditions::of(xr), inputs.now);
    object
}
