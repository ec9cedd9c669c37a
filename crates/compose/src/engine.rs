//! The decision itself: run the pipeline, then compare what it wants with what exists.

use crate::child_name::field_owner;
use crate::composite::{identity, references, with_references};
use crate::failure::{Cause, Failure};
use crate::inputs::Inputs;
use crate::pipeline::{self, Progress};
use crate::plan::{Deletion, Plan, Reason, References};
use crate::requirements::resource;
use crate::runner::FunctionRunner;
use crate::world::World;
use crate::{desired, resources_mode};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use transom_function::{Ready, Resource, State};
use transom_object::{GroupKind, meta};
use transom_xapi::composite::Schema;
use transom_xapi::constants::label;
use transom_xapi::metadata::TypedReference;
use transom_xapi::{PipelineStep, conditions};

/// Decides what should exist. Reads through `world`, calls functions through `runner`, and changes nothing.
pub async fn compose(
    inputs: Inputs<'_>,
    runner: &dyn FunctionRunner,
    world: &dyn World,
) -> Result<Plan, Failure> {
    let steps: Cow<'_, [PipelineStep]> = if inputs.composition.is_resources_mode() {
        Cow::Owned(resources_mode::pipeline(inputs.composition)?)
    } else {
        Cow::Borrowed(&inputs.composition.pipeline)
    };
    let observed = observed_state(&inputs)?;
    let mut progress = pipeline::run(&steps, &inputs, &observed, runner, world).await?;
    match plan(&inputs, &mut progress, world).await {
        Ok(plan) => Ok(plan),
        Err(cause) => Err(progress.fail(cause)),
    }
}

/// What every step is told exists.
fn observed_state(inputs: &Inputs<'_>) -> Result<State, Cause> {
    let not_an_object = |e: transom_function::NotAnObject| Cause::Resources(e.to_string());
    let composite = resource(inputs.shown.unwrap_or(inputs.xr).clone(), inputs.connection_details.clone())
        .map_err(not_an_object)?;
    let mut resources = BTreeMap::new();
    for (name, observed) in inputs.observed {
        let composed =
            resource(observed.object.clone(), observed.connection_details.clone()).map_err(not_an_object)?;
        resources.insert(name.clone(), composed);
    }
    Ok(State { composite: Some(composite), resources })
}

async fn plan(inputs: &Inputs<'_>, progress: &mut Progress, world: &dyn World) -> Result<Plan, Cause> {
    let desired = progress.desired.clone().unwrap_or_default();
    let mut apply = Vec::with_capacity(desired.resources.len());
    for (name, resource) in desired.resources {
        let observed = inputs.observed.get(&name);
        let (application, event) = desired::application(inputs.xr, &name, resource, observed, world).await?;
        apply.push(application);
        progress.events.extend(event);
    }
    let applied = |name: &str| apply.binary_search_by(|a| a.name.as_str().cmp(name)).is_ok();
    let kept = |name: &str| !applied(name) && resources_mode::has_template(inputs.composition, name);
    let delete = deletions(inputs, |name| applied(name) || kept(name))?;
    let kept = inputs.observed.iter().filter(|(name, _)| kept(name));
    let refs = apply.iter().map(|application| (&application.name, TypedReference::to(&application.object)));
    let refs = refs.chain(kept.map(|(name, observed)| (name, TypedReference::to(&observed.object))));
    let refs = refs.collect::<BTreeMap<_, _>>().into_values().collect();
    let object = with_references(inputs.xr, inputs.schema, refs);
    let changed = references(&object, inputs.schema) != references(inputs.xr, inputs.schema);
    let composite = desired.composite.unwrap_or_default();
    let group_kind = meta::gvk(inputs.xr).map_or_else(GroupKind::default, |gvk| gvk.group_kind());
    Ok(Plan {
        delete,
        references: References { object, changed },
        apply,
        field_owner: field_owner(meta::name(inputs.xr), &group_kind),
        status: status(inputs, &composite),
        composite: composite.resource.clone(),
        ready: match composite.ready() {
            Ready::True => Some(true),
            Ready::False => Some(false),
            Ready::Unspecified => None,
        },
        connection_details: match inputs.schema {
            Schema::Legacy => composite.connection_details,
            Schema::Modern => BTreeMap::new(),
        },
        conditions: std::mem::take(&mut progress.conditions),
        events: std::mem::take(&mut progress.events),
        ttl: progress.ttl,
        requirements: std::mem::take(&mut progress.requirements),
        in_vain: std::mem::take(&mut progress.looked).in_vain(),
        context: progress.context.take(),
    })
}

/// What is observed and no longer wanted. What nobody controls any more is left alone: somebody let go of it on
/// purpose. What somebody else controls should never have been observed, and stops everything.
fn deletions(inputs: &Inputs<'_>, wanted: impl Fn(&str) -> bool) -> Result<Vec<Deletion>, Cause> {
    let mut deletions = Vec::new();
    for (name, observed) in inputs.observed.iter().filter(|(name, _)| !wanted(name)) {
        match meta::controller_of(&observed.object) {
            None if !inputs.options.delete_uncontrolled => {}
            Some(owner) if owner.uid != meta::uid(inputs.xr) => {
                let (name, kind) = (name.clone(), owner.kind);
                return Err(Cause::Controlled { name, kind, owner: owner.name });
            }
            _ => deletions.push(Deletion {
                name: name.clone(),
                object: disown(observed.object.clone()),
                reason: Reason::Unwanted,
            }),
        }
    }
    Ok(deletions)
}

/// Removes the labels that say whose an object is, which tells its deletion here from one with its owner.
fn disown(mut object: Value) -> Value {
    let labels = meta::metadata_mut(&mut object).and_then(|m| m.get_mut("labels"));
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        for owner in [label::COMPOSITE, label::CLAIM_NAME, label::CLAIM_NAMESPACE] {
            labels.remove(owner);
        }
    }
    object
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
