//! Running a pipeline: the desired state that a step returns is, verbatim, the desired state of the next request.

use crate::allowed::Policy;
use crate::condition::{Event, EventType, Target, TargetedCondition};
use crate::failure::{Cause, Failure};
use crate::ignored::Authors;
use crate::inputs::{Inputs, Requirements};
use crate::lookup::{Lookup, Lookups};
use crate::requirements::{CallLimit, Calls, FinalResponse};
use crate::runner::{FunctionRunner, StepRef};
use crate::world::{World, WorldError};
use crate::{desired, environment, requirements, resources_mode};
use prost::Message;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use transom_function::proto::v1;
use transom_function::proto::v1::credentials::Source;
use transom_function::{
    Capability, Credentials, RequestMeta, RunFunctionRequest, RunFunctionResponse, Severity, State, Status,
    Struct,
};
use transom_go::encoding::hex;
use transom_object::quote::quote;
use transom_xapi::constants::event::composite::COMPOSE;
use transom_xapi::{Condition, PipelineStep};

/// The capabilities of this engine.
const CAPABILITIES: &[Capability] = &[
    Capability::Capabilities,
    Capability::RequiredResources,
    Capability::Credentials,
    Capability::Conditions,
    Capability::RequiredSchemas,
];

/// The fields of metadata that the server sets.
const SERVER_METADATA: &[&str] =
    &["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"];

/// How far a pipeline has come.
#[derive(Default)]
pub(crate) struct Progress {
    pub desired: Option<State>,
    pub context: Option<Struct>,
    pub conditions: Vec<TargetedCondition>,
    pub events: Vec<Event>,
    pub ttl: Option<Duration>,
    pub requirements: Requirements,
    pub lookups: Lookups,
    pub authors: Authors,
    /// The resources that templates of mode Resources rendered, before other functions were run.
    pub rendered: BTreeSet<String>,
}

impl Progress {
    pub(crate) fn start(inputs: &Inputs<'_>) -> Self {
        Self {
            desired: Some(State::default()),
            context: Some(Struct::from(inputs.context.clone())),
            events: inputs.composition.ignored().into_iter().map(warning).collect(),
            ..Self::default()
        }
    }

    /// The failure that ends it here.
    pub(crate) fn fail(self, cause: Cause) -> Failure {
        Failure {
            cause,
            events: self.events,
            conditions: self.conditions,
            desired: self.desired,
            context: self.context,
            requirements: self.requirements,
            unused_lookups: self.lookups.unused(),
        }
    }

    /// Takes over the response of a step; fails when that is fatal.
    fn absorb(&mut self, step: &str, answer: FinalResponse) -> Result<(), Cause> {
        let FinalResponse { response, required } = answer;
        self.requirements.extend(required.map(|required| (step.to_owned(), required)));
        match response.ttl() {
            Ok(ttl) => self.ttl = self.ttl.into_iter().chain(ttl).min(),
            Err(invalid) => self.events.push(Event {
                r#type: EventType::Warning,
                reason: COMPOSE.to_owned(),
                message: format!("The function's response is used without its TTL: {invalid}"),
                step: Some(step.to_owned()),
                target: Target::Composite,
            }),
        }
        let fatal = is_fatal(&response);
        // The desired state of a fatal response is discarded; the one before it is kept for diagnostics.
        if !fatal {
            self.desired = response.desired;
            self.context = response.context;
        }
        self.conditions.extend(response.conditions.into_iter().map(condition));
        for result in response.results {
            if result.severity() == Severity::Fatal {
                return Err(Cause::Fatal { step: step.to_owned(), message: result.message });
            }
            self.events.push(event(step, result));
        }
        Ok(())
    }
}

/// What all steps of a run of a pipeline are decided from.
struct Pipeline<'a> {
    inputs: &'a Inputs<'a>,
    observed: &'a State,
    runner: &'a dyn FunctionRunner,
    world: &'a dyn World,
}

/// Runs every step.
pub(crate) async fn run(
    steps: &[PipelineStep],
    inputs: &Inputs<'_>,
    observed: &State,
    runner: &dyn FunctionRunner,
    world: &dyn World,
) -> Result<Progress, Failure> {
    let pipeline = Pipeline { inputs, observed, runner, world };
    let mut progress = Progress::start(inputs);
    for (index, step) in steps.iter().enumerate() {
        let mut lookups = Lookups::default();
        let attributes = || vec![("step", step.step.clone()), ("function", step.function_name().to_owned())];
        let answering = pipeline.answer(step, index, &progress, &mut lookups);
        let answer = transom_telemetry::traced("step", attributes, answering).await;
        progress.lookups.merge(lookups);
        let absorbed = match answer {
            Ok(answer) => progress
                .absorb(&step.step, answer)
                .and_then(|()| desired::check_names(step, progress.desired.as_ref())),
            Err(cause) => Err(cause),
        };
        if let Err(cause) = absorbed {
            return Err(progress.fail(cause));
        }
        if step.function_ref.name == resources_mode::FUNCTION {
            progress.rendered =
                progress.desired.iter().flat_map(|state| state.resources.keys()).cloned().collect();
        }
        progress.authors.note(&step.step, progress.desired.as_ref(), inputs);
    }
    Ok(progress)
}

impl Pipeline<'_> {
    /// Calls the function of a step.
    async fn answer(
        &self,
        step: &PipelineStep,
        index: usize,
        progress: &Progress,
        lookups: &mut Lookups,
    ) -> Result<FinalResponse, Cause> {
        let Self { inputs, observed, runner, world } = *self;
        // The author of the Composition wrote what the environment is made from: it is not a function's wish.
        let may_require = inputs.options.extra_resources || step.function_ref.name == environment::FUNCTION;
        let policy = Policy::of(step, may_require)?;
        let request = request(step, observed, progress, world, lookups).await?;
        let limit = CallLimit::of(step.max_iterations, inputs.options.max_iterations);
        let before = inputs.required_before.get(&step.step);
        let (function, revision) = (step.function_name(), step.wanted_revision());
        let inline = step.inline.as_ref();
        let place = StepRef { name: &step.step, index, iteration: 0, function, revision, inline };
        Calls { step, place, policy, limit, before, runner, world }.until_stable(request, lookups).await
    }
}

/// A step's request before its function has required anything.
async fn request(
    step: &PipelineStep,
    observed: &State,
    progress: &Progress,
    world: &dyn World,
    lookups: &mut Lookups,
) -> Result<RunFunctionRequest, Cause> {
    let input = input(step, world, lookups).await?.map(Struct::try_from).transpose();
    let mut request = RunFunctionRequest {
        observed: Some(observed.clone()),
        desired: progress.desired.clone(),
        context: progress.context.clone(),
        input: input.map_err(|source| Cause::Input { step: step.step.clone(), source })?,
        credentials: credentials(step, world).await?,
        ..RunFunctionRequest::default()
    };
    requirements::give(step, world, lookups, &mut request).await?;
    Ok(request)
}

/// A request with its tag and the capabilities of this engine.
pub(crate) fn tagged(request: RunFunctionRequest) -> RunFunctionRequest {
    // Maps are ordered, so equal requests have equal bytes.
    let tag = hex(&Sha256::digest(request.encode_to_vec()));
    let capabilities = CAPABILITIES.iter().map(|capability| *capability as i32).collect();
    RunFunctionRequest { meta: Some(RequestMeta { tag, capabilities }), ..request }
}

/// Whether a response ends the pipeline.
pub(crate) fn is_fatal(response: &RunFunctionResponse) -> bool {
    response.results.iter().any(|result| result.severity() == Severity::Fatal)
}

/// A step's input: its own, or an object that holds it for several Compositions.
async fn input(
    step: &PipelineStep,
    world: &dyn World,
    lookups: &mut Lookups,
) -> Result<Option<Value>, Cause> {
    let (None, Some(reference)) = (&step.input, &step.input_ref) else { return Ok(step.input.clone()) };
    let failed = |source| {
        let object = format!("{} {}", reference.kind, quote(&reference.name));
        Cause::InputRef { step: step.step.clone(), object, source }
    };
    let lookup = Lookup::of_input(reference).map_err(failed)?;
    let found = requirements::look_up(lookup, world, lookups).await.map_err(failed)?;
    let object = found.into_iter().next();
    let object = object.ok_or_else(|| failed(WorldError::Missing))?;
    Ok(Some(without_server_metadata(object)))
}

/// An object as its author wrote it. A function reads its input strictly, and an input that is written in the Composition
/// has none of these fields.
fn without_server_metadata(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        SERVER_METADATA.iter().for_each(|field| drop(metadata.remove(*field)));
    }
    object
}

async fn credentials(step: &PipelineStep, world: &dyn World) -> Result<BTreeMap<String, Credentials>, Cause> {
    let mut credentials = BTreeMap::new();
    for wanted in &step.credentials {
        let Some(secret) = wanted.secret() else { continue };
        let failed =
            |source| Cause::Credentials { step: step.step.clone(), credential: wanted.name.clone(), source };
        let data = world.secret(&secret.namespace, &secret.name).await.map_err(failed)?;
        let data = data.ok_or_else(|| failed(WorldError::NoSecret(secret.name.clone())))?;
        let source = Some(Source::CredentialData(v1::CredentialData { data }));
        credentials.insert(wanted.name.clone(), Credentials { source });
    }
    Ok(credentials)
}

fn target(target: v1::Target) -> Target {
    match target {
        v1::Target::CompositeAndClaim => Target::CompositeAndClaim,
        _ => Target::Composite,
    }
}

fn condition(condition: v1::Condition) -> TargetedCondition {
    let status = match condition.status() {
        Status::ConditionTrue => "True",
        Status::ConditionFalse => "False",
        _ => "Unknown",
    };
    let target = target(condition.target());
    let message = condition.message.unwrap_or_default();
    let condition = Condition::new(&condition.r#type, status, &condition.reason).with_message(message);
    TargetedCondition { condition, target }
}

fn warning(message: String) -> Event {
    Event {
        r#type: EventType::Warning,
        reason: COMPOSE.to_owned(),
        message,
        step: None,
        target: Target::Composite,
    }
}

fn event(step: &str, result: v1::Result) -> Event {
    let (severity, target) = (result.severity(), target(result.target()));
    let reason = result.reason.filter(|reason| !reason.is_empty());
    let event = Event {
        r#type: if severity == Severity::Normal { EventType::Normal } else { EventType::Warning },
        reason: reason.unwrap_or_else(|| COMPOSE.to_owned()),
        message: result.message,
        step: Some(step.to_owned()),
        target,
    };
    if severity != Severity::Unspecified {
        return event;
    }
    // From a newer version of the protocol. It is reported to operators, not to the owner of the claim.
    let message = format!(
        "Pipeline step {} returned a result of unknown severity (assuming warning): {}",
        quote(step),
        event.message
    );
    Event { message, step: None, target: Target::Composite, ..event }
}
