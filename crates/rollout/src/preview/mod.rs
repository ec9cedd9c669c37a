//! What a move would change in a composite resource: the engine composes it with the new revision, from the objects as they
//! are, and the server checks every result by a dry run. Nothing is written.
//!
//! Functions that are built in run in this process, those with an endpoint are called there, and those from packages and
//! inline ones run on this machine as long as the preview takes. If one cannot be called from here, what would change is not
//! known, and that is what the plan says.

mod fields;
mod functions;
mod world;

pub(super) use fields::Field;

use crate::choice::Choice;
use crate::host::FunctionHostArgs;
use crate::survey::Instance;
use crate::writing::explain;
use functions::Functions;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;
use transom_compose::{
    Application, Cause, Decision, GrpcCode, Inputs, Options, Requirements, RunError, compose,
    connection_details, observe,
};
use transom_console::Failure;
use transom_console::control_plane::within;
use transom_engine::{Cluster, Error};
use transom_object::error_chain::chain;
use transom_object::meta;
use transom_object::time::Timestamp;
use transom_xapi::composite::Layout;
use transom_xapi::{CompositionRevision, CompositionSpec};
use world::ClusterWorld;

/// How long composing one composite resource may take.
const COMPOSE_TIMEOUT: Duration = Duration::from_secs(30);

/// What would happen to a composite resource.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Preview {
    /// Its composed resources change like this.
    Changes(Vec<ObjectChange>),
    /// It would fail.
    Fails(String),
    /// That is not known.
    Unknown(String),
}

/// What happens to a composed resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Create,
    Change,
    Delete,
}

impl Fate {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Delete => "delete",
        }
    }
}

/// A composed resource that changes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectChange {
    pub(super) fate: Fate,
    /// Its name in the Composition.
    pub(super) resource: String,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The fields that change.
    pub(super) fields: Vec<Field>,
}

impl ObjectChange {
    fn new(fate: Fate, resource: &str, object: &Value, fields: Vec<Field>) -> Self {
        Self {
            fate,
            resource: resource.to_owned(),
            api_version: meta::api_version(object).to_owned(),
            kind: meta::kind(object).to_owned(),
            namespace: meta::namespace(object).to_owned(),
            name: meta::name(object).to_owned(),
            fields,
        }
    }
}

/// Computes previews of moves to one revision.
pub(super) struct Previewer<'a> {
    cluster: &'a Cluster,
    spec: &'a CompositionSpec,
    layout: Layout,
    wanted: Choice,
    functions: Functions,
    /// Why the functions cannot be called from here, once that is known.
    uncallable: OnceLock<String>,
}

impl<'a> Previewer<'a> {
    pub(super) async fn new(
        cluster: &'a Cluster,
        revision: &'a CompositionRevision,
        layout: Layout,
        args: &impl FunctionHostArgs,
    ) -> Result<Self, Failure> {
        let spec = &revision.spec.composition;
        let functions = Functions::install(cluster, spec, args).await?;
        let uncallable = OnceLock::new();
        if let Some(why) = functions.problems.first() {
            uncallable.get_or_init(|| why.clone());
        }
        let wanted = Choice::pinned(&revision.metadata.name);
        Ok(Self { cluster, spec, layout, wanted, functions, uncallable })
    }

    /// Stops the functions that were started for this.
    pub(super) async fn stop(&self) {
        self.functions.stop().await;
    }

    /// What a move would change in a composite resource.
    pub(super) async fn preview(&self, instance: &Instance) -> Result<Preview, Failure> {
        if let Some(why) = self.uncallable.get() {
            return Ok(Preview::Unknown(why.clone()));
        }
        let composed = tokio::time::timeout(COMPOSE_TIMEOUT, self.compose(instance)).await;
        let decision = match composed {
            Ok(Ok(decision)) => decision,
            Ok(Err(preview)) => return Ok(preview),
            Err(_) => return Ok(Preview::Unknown(format!("composing took longer than {COMPOSE_TIMEOUT:?}"))),
        };
        let mut changes = Vec::new();
        for application in &decision.apply {
            match self.try_apply(application).await? {
                Ok(change) => changes.extend(change),
                Err(why) => {
                    let (kind, name) = (meta::kind(&application.object), meta::name(&application.object));
                    return Ok(Preview::Fails(format!("{kind} {name} would be refused: {why}")));
                }
            }
        }
        let deleted = decision.delete.iter();
        changes.extend(deleted.map(|d| ObjectChange::new(Fate::Delete, &d.name, &d.object, Vec::new())));
        Ok(Preview::Changes(changes))
    }

    async fn compose(&self, instance: &Instance) -> Result<Decision, Preview> {
        let Self { spec, layout, .. } = *self;
        let mut xr = instance.xr.clone();
        self.wanted.apply(&mut xr, layout);
        let world = ClusterWorld(self.cluster);
        let observation =
            observe(&xr, layout, spec, &world).await.map_err(|e| Preview::Unknown(chain(&e)))?;
        let own = match layout {
            Layout::Legacy => {
                connection_details(&xr, &world).await.map_err(|e| Preview::Unknown(chain(&e)))?
            }
            Layout::Modern => BTreeMap::new(),
        };
        let inputs = Inputs {
            xr: &xr,
            visible_xr: None,
            layout,
            connection_details: own,
            composition: spec,
            observed: &observation.observed,
            spare: &observation.spare,
            required_before: &Requirements::new(),
            context: serde_json::Map::new(),
            // Conditions have times, and no condition is shown.
            now: Timestamp::default(),
            options: Options { scopes_known: true, ..Options::default() },
        };
        compose(inputs, &*self.functions.router, &world).await.map_err(|failure| self.explain(&failure))
    }

    fn explain(&self, failure: &transom_compose::Failure) -> Preview {
        let text = chain(failure);
        match &failure.cause {
            // The first failure stands for all further calls, so that a preview does not wait again.
            Cause::Run { source: RunError::Failed { code: GrpcCode::Unavailable, .. }, .. } => {
                let why = format!("a function cannot be called from here: {text}");
                Preview::Unknown(self.uncallable.get_or_init(|| why).clone())
            }
            Cause::Run { .. } | Cause::Observe(_) | Cause::Connection(_) | Cause::Credentials { .. } => {
                Preview::Unknown(text)
            }
            _ => Preview::Fails(text),
        }
    }

    /// What happens to a composed resource, if anything does; or why the server would refuse it.
    async fn try_apply(
        &self,
        application: &Application,
    ) -> Result<Result<Option<ObjectChange>, String>, Failure> {
        let Application { object, name, observed, field_owner, .. } = application;
        let subject = format!("{} {}", meta::kind(object), meta::name(object));
        let answer = within(&subject, self.cluster.try_apply(object, field_owner)).await?;
        let observed = observed.as_deref();
        let fields = match (&answer, observed) {
            (Err(e), _) if !is_lack_of_rights(e) => {
                let refused = e.refusal().is_some() || e.is_unknown_kind();
                return if refused { Ok(Err(e.chain().to_string())) } else { Err(explain(&subject, e)) };
            }
            (_, None) => return Ok(Ok(Some(ObjectChange::new(Fate::Create, name, object, Vec::new())))),
            (Ok(stored), Some(observed)) => fields::changed(observed, stored),
            // The user may roll out and may not write composed resources: then what is wanted is compared here.
            (Err(_), Some(observed)) => fields::intended(observed, object),
        };
        Ok(Ok((!fields.is_empty()).then(|| ObjectChange::new(Fate::Change, name, object, fields))))
    }
}

fn is_lack_of_rights(error: &Error) -> bool {
    error.is_forbidden()
}
