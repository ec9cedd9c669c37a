//! The resources and schemas that a step's function is given.
//!
//! The Composition determines what a function is given from the start. A function may require more: it is called again
//! with exactly that, until two responses in a row require the same.
//!
//! A function that requires something in its first response, and the same once it was given it, will most likely do so
//! in the next run. There it is given that in the first call, which is enough if the function still requires it. If it
//! does not, the response is discarded and the function is called as if nothing had been remembered. A function that
//! follows a chain, where one object names the next, requires different things in each response: nothing is remembered
//! of it, since the chain may lead elsewhere the next time.

use crate::allowed::Policy;
use crate::failure::Cause;
use crate::inputs::Required;
use crate::lookup::{Lookup, Lookups};
use crate::pipeline;
use crate::runner::{Answer, FunctionRunner, RunError, StepRef};
use crate::world::{World, WorldError, kind};
use prost::Message;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use transom_function::proto::v1::MatchLabels;
use transom_function::proto::v1::resource_selector::Match;
use transom_function::{
    Requirements, Resource, ResourceSelector, Resources, RunFunctionRequest, RunFunctionResponse, Schema,
    SchemaSelector, Struct,
};
use transom_object::meta;
use transom_object::shorten::shorten;
use transom_xapi::PipelineStep;
use transom_xapi::composition::RequiredResource;
use transom_xapi::function::WantedRevision;

/// The most of a wrong tag that is shown.
const TAG_BYTES_MAX: usize = 128;

/// Looks up what the author of a step gives its function.
pub(crate) async fn give(
    step: &PipelineStep,
    world: &dyn World,
    lookups: &mut Lookups,
    request: &mut RunFunctionRequest,
) -> Result<(), Cause> {
    let requirements = step.requirements.clone().unwrap_or_default();
    for required in &requirements.required_resources {
        let found =
            fetch(&selector(required), world, lookups).await.map_err(|source| Cause::RequiredResources {
                step: step.step.clone(),
                requirement: required.requirement_name.clone(),
                source,
            })?;
        request.required_resources.insert(required.requirement_name.clone(), found);
    }
    for required in requirements.required_schemas {
        let selector = SchemaSelector { api_version: required.api_version, kind: required.kind };
        let schema = fetch_schema(&selector, world).await.map_err(|source| Cause::RequiredSchema {
            step: step.step.clone(),
            requirement: required.requirement_name.clone(),
            source,
        })?;
        request.required_schemas.insert(required.requirement_name, schema);
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

/// A function's last response, and what it required in it.
pub(crate) struct FinalResponse {
    pub response: RunFunctionResponse,
    pub required: Option<Required>,
}

/// How often a function may be called until what it requires no longer changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallLimit {
    /// `None` leaves it to the deadline of the caller.
    calls: Option<usize>,
    /// The number that an error shows: what the user wrote, or what Crossplane counts by default.
    shown: usize,
}

impl CallLimit {
    /// What a step says, which counts calls; otherwise the default, which counts further calls after the first.
    pub(crate) fn of(step: Option<i64>, default: usize) -> Self {
        match step {
            None => Self { calls: Some(default.saturating_add(1)), shown: default },
            Some(limit) => {
                let calls = usize::try_from(limit).ok();
                Self { calls, shown: calls.unwrap_or_default() }
            }
        }
    }

    fn allows(self, calls: usize) -> bool {
        self.calls.is_none_or(|limit| calls < limit)
    }
}

/// One step's calls of its function.
pub(crate) struct Calls<'a> {
    pub step: &'a PipelineStep,
    pub place: StepRef<'a>,
    pub policy: Policy<'a>,
    /// How often the function may be called.
    pub limit: CallLimit,
    /// What it required in the last run.
    pub before: Option<&'a Required>,
    pub runner: &'a dyn FunctionRunner,
    pub world: &'a dyn World,
}

impl Calls<'_> {
    /// Calls the function until what it requires no longer changes.
    pub(crate) async fn until_stable(
        &self,
        request: RunFunctionRequest,
        lookups: &mut Lookups,
    ) -> Result<FinalResponse, Cause> {
        let Some(before) = self.remembered(&request) else { return self.ask(0, request, lookups).await };
        let mut guessed = Lookups::default();
        match self.guess(before, &request, &mut guessed).await {
            Ok(Some(answer)) => {
                lookups.merge(guessed);
                Ok(answer)
            }
            Ok(None) => {
                lookups.merge_discarded(guessed);
                self.ask(1, request, lookups).await
            }
            Err(cause) => {
                lookups.merge(guessed);
                Err(cause)
            }
        }
    }

    /// What the function required in the last run, if it may be given that at once.
    fn remembered(&self, request: &RunFunctionRequest) -> Option<&Required> {
        let before = self.before.filter(|before| before.at_once.is_some())?;
        let same_step = before.at_once == Some(self.identity(request));
        Some(before).filter(|_| same_step && self.policy.check(&before.requirements).is_ok())
    }

    /// Identifies the step as it is written: its function, its input and what it allows. For a step that was edited nothing
    /// is remembered, so that no function is given what it did not ask for.
    fn identity(&self, request: &RunFunctionRequest) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(serde_json::to_vec(self.step).unwrap_or_default());
        if self.step.input_ref.is_some() {
            hash.update(request.input.as_ref().map(Message::encode_to_vec).unwrap_or_default());
        }
        hash.finalize().into()
    }

    /// Calls the function with what it required in the last run. `None` if it does not require the same.
    async fn guess(
        &self,
        before: &Required,
        request: &RunFunctionRequest,
        lookups: &mut Lookups,
    ) -> Result<Option<FinalResponse>, Cause> {
        // What cannot be read is an error only if the function still requires it.
        let given = Found::of(request);
        let Ok(found) = self.look_up(&given, &before.requirements, lookups).await else { return Ok(None) };
        let mut request = request.clone();
        found.put(&mut request);
        let response = self.call(0, pipeline::tagged(request)).await?;
        let confirmed = response.requirements.as_ref() == Some(&before.requirements);
        Ok(confirmed.then(|| FinalResponse { response, required: Some(before.clone()) }))
    }

    /// Calls the function with what the author gives it, and then with what it requires. `calls` were made before.
    async fn ask(
        &self,
        calls: usize,
        request: RunFunctionRequest,
        lookups: &mut Lookups,
    ) -> Result<FinalResponse, Cause> {
        let mut request = pipeline::tagged(request);
        let given = Found::of(&request);
        let (mut previous, mut context_kept) = (None, true);
        let mut iteration = 0;
        while self.limit.allows(iteration) {
            let response = self.call(calls + iteration, request.clone()).await?;
            let stable = response.requirements == previous;
            if stable || pipeline::is_fatal(&response) {
                let at_once = stable && iteration == 1 && context_kept;
                let at_once = at_once.then(|| self.identity(&request));
                return Ok(FinalResponse::new(response, at_once));
            }
            let found = match &response.requirements {
                Some(required) => self.look_up(&given, required, lookups).await?,
                None => given.clone(),
            };
            if iteration == 0 && found.are_in(&request) {
                return Ok(FinalResponse::new(response, None));
            }
            // Otherwise the second call differs from a first call with the same requirements.
            context_kept &= fields(&response.context) == fields(&request.context);
            found.put(&mut request);
            request.context = response.context;
            previous = response.requirements;
            iteration += 1;
            // A function in this process may never wait for anything, and then no deadline could end the calls.
            yield_once().await;
        }
        Err(Cause::Unstable { step: self.step.step.clone(), limit: self.limit.shown })
    }

    async fn call(
        &self,
        iteration: usize,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, Cause> {
        let place = StepRef { iteration, ..self.place };
        let chooses = place.revision != WantedRevision::Newest;
        if chooses {
            self.world.follow_function(self.followed());
        }
        let tag = request.meta.as_ref().map(|meta| meta.tag.clone()).unwrap_or_default();
        let answered = self.runner.run(place, request).await.and_then(|answer| with_tag(&tag, place, answer));
        let Answer { response, revision } = answered.map_err(|source| {
            if source.is_about_revisions() {
                self.world.follow_function(self.followed());
            }
            Cause::Run { step: self.step.step.clone(), source }
        })?;
        if let Some(revision) = revision {
            self.world.called(&revision);
            if chooses {
                self.world.answered_by(&revision);
            }
        }
        Ok(response)
    }

    /// The function whose revisions the step chooses from; empty for all functions.
    fn followed(&self) -> &str {
        if self.step.function.is_some() { "" } else { &self.step.function_ref.name }
    }

    /// What is given, and what the function requires: all of it, or nothing if it may not require something.
    async fn look_up(
        &self,
        given: &Found,
        required: &Requirements,
        lookups: &mut Lookups,
    ) -> Result<Found, Cause> {
        self.policy.check(required)?;
        let failed = |what, name: &str, source| Cause::Requirement {
            step: self.step.step.clone(),
            what,
            requirement: name.to_owned(),
            source,
        };
        let mut found = given.clone();
        for (name, selector) in &required.extra_resources {
            let objects = fetch(selector, self.world, lookups).await;
            found.extra.insert(name.clone(), objects.map_err(|source| failed("resources", name, source))?);
        }
        for (name, selector) in &required.resources {
            let objects = fetch(selector, self.world, lookups).await;
            found
                .resources
                .insert(name.clone(), objects.map_err(|source| failed("resources", name, source))?);
        }
        for (name, selector) in &required.schemas {
            let schema = fetch_schema(selector, self.world).await;
            found.schemas.insert(name.clone(), schema.map_err(|source| failed("schema", name, source))?);
        }
        Ok(found)
    }
}

/// Gives the caller a chance to stop.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Refuses the answer to another request. Functions that do not use an SDK may leave the tag out.
fn with_tag(tag: &str, step: StepRef<'_>, answer: Answer) -> Result<Answer, RunError> {
    let of_response = answer.response.meta.as_ref().map(|meta| meta.tag.as_str()).unwrap_or_default();
    if of_response.is_empty() || of_response == tag {
        return Ok(answer);
    }
    Err(RunError::OtherTag {
        function: step.function.to_owned(),
        tag: shorten(of_response, TAG_BYTES_MAX).into_owned(),
    })
}

impl FinalResponse {
    fn new(response: RunFunctionResponse, at_once: Option<[u8; 32]>) -> Self {
        let requirements =
            response.requirements.clone().filter(|required| *required != Requirements::default());
        let required = requirements.map(|requirements| Required { requirements, at_once });
        Self { response, required }
    }
}

/// The fields of a context; an empty context and no context are the same.
fn fields(context: &Option<Struct>) -> Option<&serde_json::Map<String, Value>> {
    context.as_ref().map(Struct::fields).filter(|fields| !fields.is_empty())
}

/// What was looked up.
#[derive(Clone, Default)]
struct Found {
    resources: BTreeMap<String, Resources>,
    /// Under the deprecated name.
    extra: BTreeMap<String, Resources>,
    schemas: BTreeMap<String, Schema>,
}

impl Found {
    fn of(request: &RunFunctionRequest) -> Self {
        Self {
            resources: request.required_resources.clone(),
            extra: request.extra_resources.clone(),
            schemas: request.required_schemas.clone(),
        }
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

/// The resources a selector selects. A resource of a name that does not exist leaves nothing.
async fn fetch(
    selector: &ResourceSelector,
    world: &dyn World,
    lookups: &mut Lookups,
) -> Result<Resources, WorldError> {
    let mut found = look_up(Lookup::of(selector)?, world, lookups).await?;
    found.sort_by_cached_key(|object| format!("{}/{}", meta::namespace(object), meta::name(object)));
    let items = found.into_iter().map(|object| resource(object, BTreeMap::new()));
    Ok(Resources { items: items.collect::<Result<_, _>>()? })
}

/// The objects that a lookup finds, which is noted.
pub(crate) async fn look_up(
    lookup: Lookup,
    world: &dyn World,
    lookups: &mut Lookups,
) -> Result<Vec<Value>, WorldError> {
    lookups.add(lookup.clone());
    Ok(match &lookup {
        Lookup::Named { kind, namespace, name } => Vec::from_iter(world.get(kind, namespace, name).await?),
        Lookup::Labelled { kind, namespace, labels } => {
            world.list(kind, namespace.as_deref(), labels).await?
        }
    })
}

async fn fetch_schema(selector: &SchemaSelector, world: &dyn World) -> Result<Schema, WorldError> {
    let schema = world.schema(&kind(&selector.api_version, &selector.kind)?).await?;
    Ok(Schema { openapi_v3: schema.map(Struct::try_from).transpose()? })
}

/// An object as functions see it.
pub(crate) fn resource(
    object: impl Into<Arc<Value>>,
    connection_details: BTreeMap<String, Vec<u8>>,
) -> Result<Resource, transom_function::NotAnObject> {
    Ok(Resource { resource: Some(Struct::try_from(object.into())?), connection_details, ready: 0 })
}
