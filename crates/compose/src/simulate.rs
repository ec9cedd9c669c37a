//! One reconcile without a control plane: what `render` shows.
//!
//! It does what the reconciler of composite resources does around [`compose`](crate::compose), in the same order and
//! with the same events, but writes nothing. What a control plane would have added to the composite resource before
//! functions see it (a uid, a resource version, its label, the chosen composition) is added here.

use crate::condition::{Event, EventType, Target};
use crate::engine::compose;
use crate::failure::Failure;
use crate::inputs::{Inputs, Observation, Options, Requirements};
use crate::observe::{ObserveError, connection_details, observe};
use crate::outcome::Unsynced;
use crate::plan::Plan;
use crate::runner::FunctionRunner;
use crate::world::{World, WorldError};
use serde_json::{Map, Value, json};
use transom_object::time::Timestamp;
use transom_object::{GroupVersion, meta};
use transom_xapi::composite::{Composite, Schema};
use transom_xapi::composition::{Composition, SecretReference};
use transom_xapi::constants::{event, kind, label};
use transom_xapi::metadata::TypedReference;
use transom_xapi::{Condition, conditions};
use uuid::Uuid;

/// What a simulation starts from.
#[derive(Clone, Debug)]
pub struct Simulation<'a> {
    pub xr: &'a Value,
    /// See [`schema_for`].
    pub schema: Schema,
    pub composition: &'a Composition,
    /// The composed resources that exist. The world must know them too.
    pub observed: &'a [Value],
    /// The pipeline's initial context.
    pub context: Map<String, Value>,
    pub now: Timestamp,
}

/// What one reconcile came to.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    /// After a success its identity, references and status, if that changed; else all of it.
    pub xr: Value,
    /// Events, in order.
    pub events: Vec<Event>,
    /// Empty after a failure.
    pub plan: Plan,
}

/// Why a simulation failed, in the words of Crossplane's own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    #[error("invalid observed resources: {}", list(.0))]
    Observed(Vec<String>),
    #[error(
        "reconcile failed: cannot configure composite resource: referenced composition is not compatible with this composite resource"
    )]
    Incompatible,
    #[error("reconcile failed: cannot compose resources: {0}")]
    Observe(#[from] ObserveError),
    #[error(
        "reconcile failed: cannot compose resources: cannot fetch composite resource connection details: {0}"
    )]
    Connection(WorldError),
    #[error("{}cannot compose resources: {failure}", if failure.is_fatal_result() { "" } else { "reconcile failed: " })]
    Compose { failure: Box<Failure>, so_far: Box<Simulated> },
}

fn list(problems: &[String]) -> String {
    match problems {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// Reconciles once.
pub async fn simulate(
    simulation: &Simulation<'_>,
    runner: &dyn FunctionRunner,
    world: &dyn World,
) -> Result<Simulated, SimulationError> {
    let Simulation { schema, composition, now, .. } = *simulation;
    let mut composite = admit(simulation)?;
    let mut stored = composite.object.clone();
    conditions::mark_observed(&mut composite.object, [Condition::watch_circuit_closed()], now);
    let mut simulated = Simulated { events: select(&mut composite, composition), ..Simulated::default() };
    let updated = configure(&mut composite, composition)?;
    let xr = composite.object;
    // What was chosen in memory only is written along with what was lacking.
    if updated {
        stored.clone_from(&xr);
    }
    let connection_details = match schema {
        Schema::Legacy => connection_details(&xr, world).await.map_err(SimulationError::Connection)?,
        Schema::Modern => Default::default(),
    };
    let Observation { observed, spare } = observe(&xr, schema, &composition.spec, world).await?;
    let inputs = Inputs {
        xr: &xr,
        shown: None,
        schema,
        connection_details,
        composition: &composition.spec,
        observed: &observed,
        spare: &spare,
        required_before: &Requirements::new(),
        context: simulation.context.clone(),
        now,
        // Observed resources in files rarely say who controls them.
        options: Options { delete_uncontrolled: true, ..Options::default() },
    };
    match compose(inputs, runner, world).await {
        Ok(plan) => {
            simulated.succeed(plan, schema, now);
            // The last write counts. When the status stays as it was, that is the one that configured.
            if updated && simulated.xr.get("status") == simulation.xr.get("status") {
                simulated.xr = stored;
            }
            Ok(simulated)
        }
        Err(failure) => {
            simulated.fail(&failure, xr, schema, now);
            stored["status"] = simulated.xr["status"].take();
            simulated.xr = stored;
            Err(SimulationError::Compose { failure: Box::new(failure), so_far: Box::new(simulated) })
        }
    }
}

impl Simulated {
    fn succeed(&mut self, plan: Plan, schema: Schema, now: Timestamp) {
        let outcome = plan.conclude(&Unsynced::new());
        self.xr = plan.references.object.clone();
        if let Some(status) = plan.status.get("status") {
            self.xr["status"] = status.clone();
        }
        outcome.mark(&mut self.xr, schema, now);
        self.events.extend(outcome.events);
        self.plan = plan;
    }

    fn fail(&mut self, failure: &Failure, xr: Value, schema: Schema, now: Timestamp) {
        let message = format!("cannot compose resources: {failure}");
        let outcome = failure.conclude(&xr, &message);
        self.xr = xr;
        outcome.mark(&mut self.xr, schema, now);
        self.events.push(Event {
            r#type: EventType::Warning,
            reason: event::composite::COMPOSE.to_owned(),
            message,
            step: None,
            target: Target::Composite,
        });
        self.events.extend(outcome.events);
    }
}

/// The composite resource as an API server would have returned it, referring to what is observed.
fn admit(simulation: &Simulation<'_>) -> Result<Composite, SimulationError> {
    let mut xr = simulation.xr.clone();
    if meta::uid(&xr).is_empty() {
        let uid = stable_uid(&xr);
        meta::set_uid(&mut xr, &uid);
    }
    meta::set_resource_version(&mut xr, "999");
    let problems = problems(&xr, simulation.observed);
    if !problems.is_empty() {
        return Err(SimulationError::Observed(problems));
    }
    let namespaced = !meta::namespace(&xr).is_empty();
    let mut composite = Composite::new(xr, simulation.schema);
    if !simulation.observed.is_empty() {
        let mut references: Vec<_> = simulation.observed.iter().map(TypedReference::to).collect();
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

/// Notes which composition is used; says so when it was not noted before.
fn select(composite: &mut Composite, composition: &Composition) -> Vec<Event> {
    let name = &composition.metadata.name;
    let noted = composite.composition_ref().is_some_and(|reference| reference.name == *name);
    composite.set_composition_ref(name);
    let event = Event {
        r#type: EventType::Normal,
        reason: event::composite::SELECT_COMPOSITION.to_owned(),
        message: format!("Successfully selected composition: {name}"),
        step: None,
        target: Target::Composite,
    };
    if noted { Vec::new() } else { vec![event] }
}

/// Gives the composite resource what composing needs, and makes sure that the composition is for its kind. Says
/// whether the composite resource lacked anything.
fn configure(composite: &mut Composite, composition: &Composition) -> Result<bool, SimulationError> {
    let mut updated = false;
    let xr = &mut composite.object;
    if meta::label(xr, label::COMPOSITE).unwrap_or_default().is_empty() {
        let name = meta::name(xr).to_owned();
        meta::set_label(xr, label::COMPOSITE, &name);
        updated = true;
    }
    let wanted = &composition.spec.composite_type_ref;
    if wanted.api_version != meta::api_version(xr) || wanted.kind != meta::kind(xr) {
        return Err(SimulationError::Incompatible);
    }
    let namespace = composition.spec.write_connection_secrets_to_namespace.clone();
    if let Some(namespace) = namespace.filter(|_| composite.connection_secret_ref().is_none()) {
        let name = meta::uid(&composite.object).to_owned();
        composite.set_connection_secret_ref(&SecretReference { name, namespace });
        updated |= composite.connection_secret_ref().is_some();
    }
    Ok(updated)
}

/// The layout of a composite resource, given its definition. Without one it is a modern one.
pub fn schema_for(xr: &Value, definition: Option<&Value>) -> Result<Schema, String> {
    let Some(definition) = definition else { return Ok(Schema::Modern) };
    let spec = definition.get("spec").cloned().unwrap_or_else(|| json!({}));
    let (name, api_version) = (meta::name(definition), meta::api_version(definition));
    let scope = spec.get("scope").and_then(Value::as_str);
    let schema = match (api_version, scope) {
        (kind::APIEXTENSIONS_V1, None | Some("LegacyCluster"))
        | (kind::APIEXTENSIONS_V2, Some("LegacyCluster")) => Schema::Legacy,
        (kind::APIEXTENSIONS_V1 | kind::APIEXTENSIONS_V2, _) => Schema::Modern,
        _ => {
            return Err(format!(
                "CompositeResourceDefinition {name:?} has unrecognized apiVersion {api_version:?} (expected one of [{} {}])",
                kind::APIEXTENSIONS_V1,
                kind::APIEXTENSIONS_V2
            ));
        }
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let defined = (text(spec.get("group")), text(spec.pointer("/names/kind")));
    let group = GroupVersion::parse(meta::api_version(xr)).unwrap_or_default().group;
    let given = (group, meta::kind(xr).to_owned());
    if defined != given {
        return Err(format!(
            "CompositeResourceDefinition {name:?} (composite Group={} Kind={}) does not match the input XR's Group={} Kind={}",
            defined.0, defined.1, given.0, given.1
        ));
    }
    Ok(schema)
}
