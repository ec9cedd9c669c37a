//! What a step wants to see: looked up before its first call when the Composition says so, and again whenever an answer
//! requires something else, until two answers in a row require the same.

use crate::allowed::allows;
use crate::failure::Cause;
use crate::inputs::{Inputs, Requirements};
use crate::lookup::Lookup;
use crate::runner::{FunctionRunner, StepRef};
use crate::world::{Kind, World, WorldError};
use serde_json::Value;
use std::collections::BTreeMap;
use transom_function::proto::v1::MatchLabels;
use transom_function::proto::v1::resource_selector::Match;
use transom_function::{
    Resource, ResourceSelector, Resources, RunFunctionRequest, RunFunctionResponse, Schema, SchemaSelector,
    Severity, Struct,
};
use transom_object::meta;
use transom_xapi::PipelineStep;
use transom_xapi::composition::RequiredResource;

/// Looks up what the step itself requires, and what it required the last time.
pub(crate) async fn bootstrap(
    step: &PipelineStep,
    inputs: &Inputs<'_>,
    world: &dyn World,
    request: &mut RunFunctionRequest,
) -> Result<(), Cause> {
    let requirements = step.requirements.clone().unwrap_or_default();
    for required in &requirements.required_resources {
        let found = fetch(&selector(required), world).await.map_err(|why| Cause::RequiredResources {
            step: step.step.clone(),
            requirement: required.requirement_name.clone(),
            why,
        })?;
        request.required_resources.insert(required.requirement_name.clone(), found);
    }
    for required in requirements.required_schemas {
        let selector = SchemaSelector { api_version: required.api_version, kind: required.kind };
        let schema = fetch_schema(&selector, world).await.map_err(|why| Cause::RequiredSchema {
            step: step.step.clone(),
            requirement: required.requirement_name.clone(),
            why,
        })?;
        request.required_schemas.insert(required.requirement_name, schema);
    }
    for (name, selector) in inputs.seeds.get(&step.step).into_iter().flatten() {
        if request.required_resources.contains_key(name) {
            continue;
        }
        // A seed is a guess: if it is wrong, the function says so.
        if let Ok(found) = fetch(selector, world).await {
            request.required_resources.insert(name.clone(), found);
        }
    }
    Ok(())
}

/// The wire form of a selector.
pub fn selector(required: &RequiredResource) -> ResourceSelector {
    let labels = || MatchLabels { labels: required.match_labels.clone() };
    let r#match = match &required.name {
        Some(name) => Some(Match::MatchName(name.clone())),
        None if !required.match_labels.is_empty() => Some(Match::MatchLabels(labels())),
        None => None,
    };
    ResourceSelector {
        api_version: required.api_version.clone(),
        kind: required.kind.clone(),
        namespace: required.namespace.clone(),
        r#match,
    }
}

/// Calls a step's function until what it requires no longer changes.
pub(crate) async fn settle(
    step: &PipelineStep,
    place: StepRef<'_>,
    mut request: RunFunctionRequest,
    limit: usize,
    runner: &dyn FunctionRunner,
    world: &dyn World,
) -> Result<RunFunctionResponse, Cause> {
    let given = Lookups {
        resources: request.required_resources.clone(),
        schemas: request.required_schemas.clone(),
        ..Lookups::default()
    };
    let mut previous = None;
    for iteration in 0..=limit {
        let place = StepRef { iteration, ..place };
        let response = runner
            .run(place, request.clone())
            .await
            .map_err(|why| Cause::Run { step: step.step.clone(), why })?;
        let fatal = response.results.iter().any(|result| result.severity() == Severity::Fatal);
        if fatal || response.requirements == previous {
            return Ok(response);
        }
        let next = given.plus(step, &response, world).await?;
        if iteration == 0 && next.are_in(&request) {
            return Ok(response);
        }
        next.put(&mut request);
        request.context = response.context;
        previous = response.requirements;
    }
    Err(Cause::Unsettled { step: step.step.clone(), limit })
}

/// What was looked up.
#[derive(Clone, Default)]
struct Lookups {
    resources: BTreeMap<String, Resources>,
    /// Under the deprecated name.
    extra: BTreeMap<String, Resources>,
    schemas: BTreeMap<String, Schema>,
}

impl Lookups {
    /// These, and what a response requires.
    async fn plus(
        &self,
        step: &PipelineStep,
        response: &RunFunctionResponse,
        world: &dyn World,
    ) -> Result<Self, Cause> {
        let mut next = self.clone();
        let Some(required) = &response.requirements else { return Ok(next) };
        let failed = |what, name: &str, why| Cause::Requirement {
            step: step.step.clone(),
            what,
            requirement: name.to_owned(),
            why,
        };
        for (name, selector) in required.extra_resources.iter().chain(&required.resources) {
            if !allows(step.allowed_extra_resources.as_deref(), selector) {
                return Err(Cause::NotAllowed {
                    step: step.step.clone(),
                    requirement: name.clone(),
                    selector: serde_json::to_string(selector).unwrap_or_default(),
                });
            }
        }
        for (name, selector) in &required.extra_resources {
            let found = fetch(selector, world).await.map_err(|why| failed("resources", name, why))?;
            next.extra.insert(name.clone(), found);
        }
        for (name, selector) in &required.resources {
            let found = fetch(selector, world).await.map_err(|why| failed("resources", name, why))?;
            next.resources.insert(name.clone(), found);
        }
        for (name, selector) in &required.schemas {
            let schema = fetch_schema(selector, world).await.map_err(|why| failed("schema", name, why))?;
            next.schemas.insert(name.clone(), schema);
        }
        Ok(next)
    }

    fn are_in(&self, request: &RunFunctionRequest) -> bool {
        self.resources == request.required_resources
            && self.extra == request.extra_resources
            && self.schemas == request.required_schemas
    }

    fn put(self, request: &mut RunFunctionRequest) {
        request.required_resources = self.resources;
        request.extra_resources = self.extra;
        request.required_schemas = self.schemas;
    }
}

/// Remembers what a response requires.
pub(crate) fn remember(step: &str, response: &RunFunctionResponse, requirements: &mut Requirements) {
    let Some(required) = &response.requirements else { return };
    let selectors = required.extra_resources.iter().chain(&required.resources);
    let selectors: BTreeMap<_, _> = selectors.map(|(name, s)| (name.clone(), s.clone())).collect();
    if !selectors.is_empty() {
        requirements.entry(step.to_owned()).or_default().extend(selectors);
    }
}

/// The resources a selector selects. A resource of a name that does not exist leaves nothing.
async fn fetch(selector: &ResourceSelector, world: &dyn World) -> Result<Resources, WorldError> {
    let mut found = match &Lookup::of(selector) {
        Lookup::Named { api_version, kind, namespace, name } => {
            Vec::from_iter(world.get(Kind { api_version, kind }, namespace, name).await?)
        }
        Lookup::Labelled { api_version, kind, namespace, labels } => {
            world.list(Kind { api_version, kind }, namespace.as_deref(), labels).await?
        }
    };
    found.sort_by_cached_key(|object| format!("{}/{}", meta::namespace(object), meta::name(object)));
    let items = found.into_iter().map(|object| resource(object, BTreeMap::new()));
    Ok(Resources { items: items.collect::<Result<_, _>>()? })
}

async fn fetch_schema(selector: &SchemaSelector, world: &dyn World) -> Result<Schema, WorldError> {
    let kind = Kind { api_version: &selector.api_version, kind: &selector.kind };
    let schema = world.schema(kind).await?;
    Ok(Schema { openapi_v3: schema.map(Struct::try_from).transpose()? })
}

/// An object as functions see it.
pub(crate) fn resource(
    object: Value,
    connection_details: BTreeMap<String, Vec<u8>>,
) -> Result<Resource, transom_function::NotAnObject> {
    Ok(Resource { resource: Some(Struct::try_from(object)?), connection_details, ready: 0 })
}
