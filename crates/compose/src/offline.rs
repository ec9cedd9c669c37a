//! One reconcile without a control plane: what `render` prints, and what other commands that work on files build on.
//!
//! It is the same [`Reconcile`] that controllers drive, with an executor that keeps what would have been written. Before
//! it starts, the composite resource is given what an API server would have given it: a uid, a resource version, and
//! references to what is observed.

use crate::condition::Event;
use crate::decision::Decision;
use crate::failure::{Cause, Failure};
use crate::inputs::Requirements;
use crate::nesting::Nesting;
use crate::plan::{Outcome, Plan, Step};
use crate::reconcile::{Mode, Moment, Reconcile, Setup, Todo};
use crate::requeue::{Next, Polling};
use crate::runner::FunctionRunner;
use crate::selecting::Selection;
use crate::world::World;
use serde_json::{Map, Value, json};
use transom_object::time::Timestamp;
use transom_object::{GroupVersion, meta};
use transom_xapi::composite::{Composite, Layout};
use transom_xapi::composition::Composition;
use transom_xapi::constants::kind;
use transom_xapi::metadata::TypedReference;
use uuid::Uuid;

/// What a reconcile starts from.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The composite resource.
    pub xr: &'a Value,
    /// See [`layout_for`].
    pub layout: Layout,
    /// The Composition to use.
    pub composition: &'a Composition,
    /// The composed resources that exist. The world must have them too.
    pub observed: &'a [Value],
    /// The pipeline's initial context.
    pub context: Map<String, Value>,
    /// The time that conditions carry.
    pub now: Timestamp,
}

/// What came of a reconcile.
#[derive(Clone, Debug, Default)]
pub struct Reconciled {
    /// After a success its identity, references and status, if that changed; else all of it.
    pub xr: Value,
    /// Events, in order.
    pub events: Vec<Event>,
    /// What was decided. Empty after a failure.
    pub decision: Decision,
}

/// Why a reconcile failed. Together with its sources, the text is Crossplane's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Observed resources that the composite resource could not have observed.
    #[error("invalid observed resources: {}", list(.0))]
    Observed(Vec<String>),
    /// It failed before the pipeline was run: what exists cannot be observed.
    #[error("reconcile failed: cannot compose resources")]
    Observe(#[source] Box<Failure>),
    /// It ended before the pipeline was run. The text is what a control plane reports.
    #[error("reconcile failed: {0}")]
    Ended(String),
    /// The pipeline failed.
    #[error("{}cannot compose resources", if failure.is_fatal_result() { "" } else { "reconcile failed: " })]
    Compose {
        /// Why.
        #[source]
        failure: Box<Failure>,
        /// The composite resource and its events.
        so_far: Box<Reconciled>,
    },
}

fn list(problems: &[String]) -> String {
    match problems {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// Reconciles once.
pub async fn reconcile(
    input: &Input<'_>,
    runner: &dyn FunctionRunner,
    world: &dyn World,
) -> Result<Reconciled, Error> {
    let nesting = Nesting::default();
    let setup = Setup {
        mode: Mode::Offline,
        layout: input.layout,
        selection: Selection::Given(input.composition),
        connection_secret_keys: &[],
        context: input.context.clone(),
        extra_resources: true,
        polling: Polling::default(),
        nesting: &nesting,
        account: None,
    };
    let moment = Moment { now: input.now, random: 0, slowed_by: None };
    let stored = admit(input)?.object;
    let mut kept = Kept { stored: stored.clone(), ..Kept::default() };
    let (mut reconcile, mut todo) = Reconcile::start(&setup, stored, Requirements::new(), &moment);
    let next = loop {
        todo = match todo {
            Todo::Prepare => reconcile.prepare(world, &moment).await,
            Todo::Compose => {
                let composed = reconcile.compose(input.now, runner, world).await;
                let interim = reconcile.interim();
                reconcile.composed(composed, interim, &moment)
            }
            Todo::Execute(plan) => {
                let outcomes = kept.keep(&plan);
                reconcile.executed(&plan, outcomes, &moment)
            }
            Todo::Done(next) => break next,
        };
    };
    match (reconcile.into_result(), next) {
        (Some(Ok(decision)), _) => Ok(kept.succeeded(decision, input.xr)),
        (Some(Err(failure)), _) if matches!(failure.cause, Cause::Observe(_) | Cause::Connection(_)) => {
            Err(Error::Observe(Box::new(failure)))
        }
        (Some(Err(failure)), _) => {
            Err(Error::Compose { failure: Box::new(failure), so_far: Box::new(kept.failed()) })
        }
        (None, Next::Error(message)) => Err(Error::Ended(message)),
        (None, next) => Err(Error::Ended(format!("it ended without a result: {next:?}"))),
    }
}

/// An executor that keeps what would have been written.
#[derive(Default)]
struct Kept {
    /// The composite resource, as it would be stored.
    stored: Value,
    /// Whether it was configured.
    configured: bool,
    status: Option<Value>,
    events: Vec<Event>,
}

impl Kept {
    fn keep(&mut self, plan: &Plan) -> Vec<Outcome> {
        plan.steps.iter().map(|step| self.step(step)).collect()
    }

    fn step(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Configure { object, .. } => {
                self.stored.clone_from(object);
                self.configured = true;
                return Outcome::Written(object.clone());
            }
            Step::Events { events, .. } => self.events.extend(events.iter().cloned()),
            Step::ReplaceStatus { object: status } | Step::ApplyStatus { intent: status, .. } => {
                self.status = status.get("status").cloned();
            }
            _ => {}
        }
        Outcome::Unchanged
    }

    fn succeeded(self, decision: Decision, input: &Value) -> Reconciled {
        let Self { stored, configured, status, events } = self;
        // The last write counts. When the status stays as it was, that is the configuration.
        if configured && status.as_ref() == input.get("status") {
            return Reconciled { xr: stored, events, decision };
        }
        let mut xr = decision.references.object.clone();
        if let Some(status) = status {
            xr["status"] = status;
        }
        Reconciled { xr, events, decision }
    }

    fn failed(self) -> Reconciled {
        let mut xr = self.stored;
        if let Some(status) = self.status {
            xr["status"] = status;
        }
        Reconciled { xr, events: self.events, decision: Decision::default() }
    }
}

/// The composite resource as an API server would have returned it, referring to what is observed.
fn admit(input: &Input<'_>) -> Result<Composite, Error> {
    let mut xr = input.xr.clone();
    if meta::uid(&xr).is_empty() {
        let uid = stable_uid(&xr);
        meta::set_uid(&mut xr, &uid);
    }
    meta::set_resource_version(&mut xr, "999");
    let problems = problems(&xr, input.observed);
    if !problems.is_empty() {
        return Err(Error::Observed(problems));
    }
    let namespaced = !meta::namespace(&xr).is_empty();
    let mut composite = Composite::new(xr, input.layout);
    if !input.observed.is_empty() {
        let mut references: Vec<_> = input.observed.iter().map(TypedReference::to).collect();
        if namespaced {
            references.iter_mut().for_each(|reference| reference.namespace.clear());
        }
        composite.set_resource_refs(&references);
    }
    Ok(composite)
}

/// The same for the same composite resource every time, so that output is too.
fn stable_uid(xr: &Value) -> String {
    let gv = GroupVersion::parse(meta::api_version(xr)).unwrap_or_default();
    let (kind, namespace, name) = (meta::kind(xr), meta::namespace(xr), meta::name(xr));
    let identity = format!("{}/{}, Kind={kind}\0{namespace}\0{name}", gv.group, gv.version);
    Uuid::new_v5(&Uuid::nil(), identity.as_bytes()).to_string()
}

/// Observed resources that a composite resource could not have observed.
pub fn problems(xr: &Value, observed: &[Value]) -> Vec<String> {
    let mut problems = Vec::new();
    for object in observed {
        let name = meta::name(object);
        if meta::controller_of(object).is_some_and(|owner| owner.uid != meta::uid(xr)) {
            problems.push(format!(
                "observed resource {name} has a controller ref but is not controlled by the XR"
            ));
        }
        if !meta::namespace(xr).is_empty() && meta::namespace(object) != meta::namespace(xr) {
            problems.push(format!("observed resource {name} is not in the same namespace as the XR"));
        }
    }
    problems
}

/// A definition that is not that of a composite resource, worded as Crossplane words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The definition is of a version that does not exist.
    #[error(
        "CompositeResourceDefinition {name:?} has unrecognized apiVersion {api_version:?} (expected one of [{} {}])",
        kind::APIEXTENSIONS_V1,
        kind::APIEXTENSIONS_V2
    )]
    ApiVersion {
        /// The name of the definition.
        name: String,
        /// Its version.
        api_version: String,
    },
    /// The definition defines another kind.
    #[error(
        "CompositeResourceDefinition {name:?} (composite Group={} Kind={}) does not match the input XR's Group={} Kind={}",
        defined.0, defined.1, given.0, given.1
    )]
    OtherKind {
        /// The name of the definition.
        name: String,
        /// The group and kind that it defines.
        defined: (String, String),
        /// The group and kind of the composite resource.
        given: (String, String),
    },
}

/// The layout of a composite resource, given its definition. Without a definition it is a modern one.
pub fn layout_for(xr: &Value, definition: Option<&Value>) -> Result<Layout, LayoutError> {
    let Some(definition) = definition else { return Ok(Layout::Modern) };
    let spec = definition.get("spec").cloned().unwrap_or_else(|| json!({}));
    let (name, api_version) = (meta::name(definition).to_owned(), meta::api_version(definition));
    let scope = spec.get("scope").and_then(Value::as_str);
    let layout = match (api_version, scope) {
        (kind::APIEXTENSIONS_V1, None | Some("LegacyCluster"))
        | (kind::APIEXTENSIONS_V2, Some("LegacyCluster")) => Layout::Legacy,
        (kind::APIEXTENSIONS_V1 | kind::APIEXTENSIONS_V2, _) => Layout::Modern,
        _ => {
            return Err(LayoutError::ApiVersion { name, api_version: api_version.to_owned() });
        }
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let defined = (text(spec.get("group")), text(spec.pointer("/names/kind")));
    let group = GroupVersion::parse(meta::api_version(xr)).unwrap_or_default().group;
    let given = (group, meta::kind(xr).to_owned());
    if defined != given {
        return Err(LayoutError::OtherKind { name, defined, given });
    }
    Ok(layout)
}
