//! A plan: an ordered list of steps, and the outcome of each.
//!
//! The order of the steps is their crash safety: what is no longer wanted is deleted while it is still referenced,
//! references are persisted before what they refer to is created, and the status comes last. An executor needs nothing
//! but the plan, and decides nothing: every question that comes up on the way is answered by a function of the step.
//!
//! ```text
//! for batch in plan.batches():                    steps that may be carried out at the same time
//!     for each step of the batch:
//!         step = plan.step(index, outcomes)       earlier outcomes may change it
//!         attempt it; if it is refused and step.instead(refusal) is a step, attempt that one
//!     stop if step.ends_plan(outcome) for any step of the batch
//! ```

use crate::condition::Event;
use crate::decision::{Application, Deletion};
use crate::lookup::Lookup;
use crate::references::PersistReferences;
use crate::undeclared;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use transom_object::{GroupVersionKind, meta};
use transom_xapi::conditions;
use transom_xapi::metadata::TypedReference;

/// Composed resources of one composite resource that are applied at the same time: they share a sync of the disk.
const MAX_PARALLEL_APPLIES: usize = 16;

/// The verbs that composing an object takes.
pub(crate) const COMPOSE_VERBS: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
/// The verbs that reading an object takes, and knowing when it changes.
pub(crate) const READ_VERBS: &[&str] = &["get", "list", "watch"];

/// The verbs that a service account needs to compose an object, and to read one. Watches are not its own.
pub(crate) const ACCOUNT_COMPOSE_VERBS: &[&str] = &["get", "create", "update", "patch", "delete"];
pub(crate) const ACCOUNT_READ_VERBS: &[&str] = &["get", "list"];

/// Steps in the order in which they are carried out. The first step that fails ends the plan, with the exceptions that
/// [`Step::ends_plan`] makes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Whether the steps must be done within the time that composing may take.
    pub within_deadline: bool,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Watches what is about to be written, before it is written, so that no change is missed.
    Depend(BTreeSet<Lookup>),
    /// Replaces the composite resource: its finalizer, Composition, revision, labels, secret reference and, if nothing
    /// is deleted before, its references.
    Configure {
        /// The whole composite resource.
        object: Value,
        /// Whether it has the references of what is about to be applied.
        with_references: bool,
    },
    /// Replaces a composed resource with itself without the labels that mark it as composed. Not finding it is success.
    Disown(Deletion),
    /// Deletes a composed resource in the foreground, with its uid as a precondition. Not finding it is success.
    Delete(Deletion),
    /// Applies the references of the composite resource, unless it has them.
    PersistReferences(PersistReferences),
    /// Migrates a composed resource that was once written without server-side apply. Not finding it is success.
    UpgradeFields {
        /// The composed resource as observed.
        object: Arc<Value>,
        /// A JSON patch.
        patch: Value,
    },
    /// Applies a composed resource, unless that would change nothing.
    Apply(Arc<Application>),
    /// Reads a Secret.
    ReadSecret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Creates the Secret with connection details.
    CreateSecret {
        /// The Secret.
        object: Value,
    },
    /// Adds connection details to their Secret.
    PatchSecret {
        /// The Secret as it would be created.
        object: Value,
        /// A merge patch.
        patch: Value,
    },
    /// Records events about the composite resource.
    Events {
        /// The composite resource, as far as events refer to it.
        about: Value,
        /// The events, in order.
        events: Vec<Event>,
    },
    /// Records events about the claim of the composite resource. Not finding it is success.
    ClaimEvents {
        /// The claim.
        claim: TypedReference,
        /// The events as the claim gets them, in order.
        events: Vec<Event>,
    },
    /// Replaces the status of the composite resource.
    ReplaceStatus {
        /// The whole composite resource.
        object: Value,
    },
    /// Replaces nothing but the conditions of the composite resource.
    PatchConditions {
        /// The whole composite resource.
        object: Value,
        /// A merge patch of the status.
        patch: Value,
        /// Whether the conditions that functions set are left out.
        system_only: bool,
    },
    /// Applies the status of the composite resource, unless that would change nothing.
    ApplyStatus {
        /// The composite resource as it is stored.
        live: Value,
        /// Its identity, uid and status. The uid is a precondition.
        intent: Value,
    },
    /// Watches these and nothing else.
    Follow(BTreeSet<Lookup>),
    /// Forgets everything about a composite resource that is being deleted.
    Forget {
        /// Its uid.
        uid: String,
    },
    /// Removes our finalizer from a composite resource that is being deleted.
    RemoveFinalizer {
        /// The composite resource without the finalizer.
        object: Value,
    },
    /// Finds out which rights on a kind the control plane does not have, or the service account that is composed under.
    ReviewRights {
        /// The kind.
        kind: GroupVersionKind,
        /// The namespace of the object that could not be read or written.
        namespace: String,
        /// The verbs that are needed.
        verbs: &'static [&'static str],
    },
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// There was nothing to do.
    Unchanged,
    /// It was done, and the API server returned the object as it is now.
    Written(Value),
    /// What was read, if it exists.
    Read(Option<Value>),
    /// A sentence about the rights that are missing, if any are.
    MissingRights(Option<String>),
    /// A composed resource was applied.
    Applied {
        /// The object as it is now; `None` if it was so before.
        object: Option<Value>,
        /// The paths of the fields that were left out, because its kind does not declare them.
        undeclared: Vec<String>,
    },
    /// The API server refused it.
    Refused(Refusal),
}

/// Why the API server refused a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What kind of refusal it is.
    pub kind: RefusalKind,
    /// The server's message.
    pub message: String,
}

/// The refusals that decisions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The object was changed in the meantime.
    Conflict,
    /// The object does not exist.
    NotFound,
    /// The object is not valid.
    Invalid,
    /// The control plane has no right to do this.
    Forbidden,
    /// A Usage protects the object from deletion.
    InUse,
    /// The request has more bytes than the server accepts.
    TooLarge,
    /// It was not done within the time that composing may take.
    DeadlineExceeded,
    /// Anything else.
    Other,
}

impl Refusal {
    /// The steps were not done in time.
    pub fn deadline_exceeded() -> Self {
        Self { kind: RefusalKind::DeadlineExceeded, message: "context deadline exceeded".to_owned() }
    }

    /// Whether another client changed the object first.
    pub fn is_conflict(&self) -> bool {
        self.kind == RefusalKind::Conflict
    }
}

impl Plan {
    /// A plan of these steps.
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps, within_deadline: false }
    }

    /// The steps in groups that may be carried out at the same time.
    pub fn batches(&self) -> impl Iterator<Item = &[Step]> {
        let is_apply = |step: &Step| matches!(step, Step::Apply(_));
        let of_a_kind = self.steps.chunk_by(move |a, b| is_apply(a) && is_apply(b));
        of_a_kind.flat_map(|steps| steps.chunks(MAX_PARALLEL_APPLIES))
    }

    /// A step, as far as the outcomes of the steps before it change it.
    pub fn step(&self, index: usize, outcomes: &[Outcome]) -> Option<Cow<'_, Step>> {
        let step = self.steps.get(index)?;
        let changed = match step {
            Step::PersistReferences(references) => {
                let kept: Vec<&Value> = self.in_use(outcomes).map(|deletion| &deletion.object).collect();
                (!kept.is_empty()).then(|| Step::PersistReferences(references.keeping(&kept)))
            }
            Step::ApplyStatus { intent, .. } => match outcomes.last() {
                Some(Outcome::Written(live)) => {
                    Some(Step::ApplyStatus { live: live.clone(), intent: intent.clone() })
                }
                _ => None,
            },
            _ => None,
        };
        Some(changed.map_or(Cow::Borrowed(step), Cow::Owned))
    }

    /// What could not be deleted because it is in use.
    pub(crate) fn in_use(&self, outcomes: &[Outcome]) -> impl Iterator<Item = &Deletion> {
        let is_in_use =
            |outcome: &Outcome| matches!(outcome, Outcome::Refused(r) if r.kind == RefusalKind::InUse);
        self.steps.iter().zip(outcomes).filter_map(move |(step, outcome)| match step {
            Step::Delete(deletion) if is_in_use(outcome) => Some(deletion),
            _ => None,
        })
    }

    /// The step that ended the plan before its end, and why.
    pub(crate) fn failed<'a>(&'a self, outcomes: &'a [Outcome]) -> Option<(&'a Step, &'a Refusal)> {
        self.steps.iter().zip(outcomes).find_map(|(step, outcome)| match outcome {
            Outcome::Refused(refusal) if step.ends_plan(outcome) => Some((step, refusal)),
            _ => None,
        })
    }
}

impl Step {
    /// What to do instead of a step that was refused, if there is anything.
    pub fn instead(&self, refusal: &Refusal) -> Option<Self> {
        match self {
            Self::Apply(application) => {
                undeclared::without(application, refusal).map(|pruned| Self::Apply(pruned.into()))
            }
            // The cause of a failure must be reported even if the object as a whole is too large for one request, or if
            // functions set too many conditions.
            Self::ReplaceStatus { object } if refusal.kind == RefusalKind::TooLarge => {
                Some(Self::patch_conditions(object, false))
            }
            Self::PatchConditions { object, system_only: false, .. }
                if refusal.kind == RefusalKind::TooLarge =>
            {
                Some(Self::patch_conditions(object, true))
            }
            _ => None,
        }
    }

    /// Whether the steps after this one are not carried out.
    pub fn ends_plan(&self, outcome: &Outcome) -> bool {
        let Outcome::Refused(refusal) = outcome else { return false };
        match self {
            // It stays referenced until it is no longer in use; nothing else waits for that.
            Self::Delete(_) => refusal.kind != RefusalKind::InUse,
            // An invalid composed resource does not hold up the others.
            Self::Apply(_) => refusal.kind != RefusalKind::Invalid,
            _ => true,
        }
    }

    /// What to log when this step was refused, if that is reported nowhere else. A conflict is not an error: the reconcile
    /// is repeated.
    pub fn log_message(&self, refusal: &Refusal) -> Option<&'static str> {
        match self {
            Self::ReplaceStatus { .. } | Self::PatchConditions { .. } if !refusal.is_conflict() => {
                Some("cannot update status")
            }
            _ => None,
        }
    }

    fn patch_conditions(object: &Value, system_only: bool) -> Self {
        let mut conditions = conditions::of(object);
        conditions.retain(|condition| !system_only || conditions::is_system(&condition.kind));
        let patch = json!({"status": {"conditions": conditions}});
        Self::PatchConditions { object: object.clone(), patch, system_only }
    }

    /// A refusal in terms of what was attempted.
    pub(crate) fn explain(&self, refusal: &Refusal) -> String {
        match refusal.kind {
            RefusalKind::DeadlineExceeded => refusal.message.clone(),
            _ => format!("{}: {}", self.attempt(), refusal.message),
        }
    }

    /// The composed resource that a refusal of this step is about.
    pub(crate) fn composed(&self) -> Option<&Value> {
        match self {
            Self::Disown(deletion) | Self::Delete(deletion) => Some(&deletion.object),
            Self::Apply(application) => Some(&application.object),
            _ => None,
        }
    }

    fn attempt(&self) -> String {
        let of = |Deletion { name, object, .. }: &Deletion| {
            format!("{name:?} (a {} named {})", meta::kind(object), meta::name(object))
        };
        match self {
            Self::Configure { with_references: false, .. } => "cannot update composite resource".to_owned(),
            Self::Configure { with_references: true, .. } => {
                "cannot update composed resource references: cannot update composite resource".to_owned()
            }
            Self::Disown(deletion) => {
                format!("cannot cleanup composed resource labels of resource {}", of(deletion))
            }
            Self::Delete(deletion) => format!("cannot delete composed resource {}", of(deletion)),
            Self::PersistReferences(_) => "cannot update composed resource references".to_owned(),
            Self::UpgradeFields { .. } => {
                "cannot upgrade composed resource's managed fields from client-side to server-side apply"
                    .to_owned()
            }
            Self::Apply(application) => format!("cannot apply composed resource {:?}", application.name),
            Self::ReadSecret { .. } => "cannot get connection secret".to_owned(),
            Self::CreateSecret { .. } | Self::PatchSecret { .. } => {
                "cannot publish connection details: cannot apply connection secret".to_owned()
            }
            Self::ReplaceStatus { .. } | Self::PatchConditions { .. } => {
                "cannot update composite resource status".to_owned()
            }
            Self::ApplyStatus { .. } => "cannot apply composite resource status".to_owned(),
            Self::RemoveFinalizer { .. } => "cannot remove composite resource finalizer".to_owned(),
            Self::Depend(_)
            | Self::Events { .. }
            | Self::ClaimEvents { .. }
            | Self::Follow(_)
            | Self::Forget { .. }
            | Self::ReviewRights { .. } => "cannot reconcile".to_owned(),
        }
    }

    /// Records events about a composite resource and, those that are also for its claim, about the claim. No step without
    /// events.
    pub(crate) fn events(about: &Value, claim: Option<TypedReference>, events: Vec<Event>) -> Vec<Self> {
        if events.is_empty() {
            return Vec::new();
        }
        let mut identity = crate::composite::identity(about);
        meta::set(&mut identity, "uid", meta::uid(about));
        meta::set(&mut identity, "resourceVersion", meta::resource_version(about));
        let for_claim: Vec<Event> = events.iter().filter_map(Event::for_claim).collect();
        let claim_events = claim
            .filter(|_| !for_claim.is_empty())
            .map(|claim| Self::ClaimEvents { claim, events: for_claim });
        [Self::Events { about: identity, events }].into_iter().chain(claim_events).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Target;

    #[test]
    fn a_status_that_is_too_large_is_replaced_by_fewer_and_fewer_conditions() {
        let too_large = Refusal { kind: RefusalKind::TooLarge, message: String::new() };
        let condition = |kind: &str| json!({"type": kind, "status": "False", "reason": "R"});
        let conditions = json!([condition("Synced"), condition("Ready"), condition("OfAFunction")]);
        let object = json!({"status": {"conditions": conditions, "size": "large"}});
        let kinds = |step: &Step| -> Vec<String> {
            let Step::PatchConditions { patch, .. } = step else { panic!("{step:?}") };
            assert_eq!(patch["status"].as_object().unwrap().len(), 1, "nothing but conditions: {patch}");
            let list = patch["status"]["conditions"].as_array().unwrap();
            list.iter().map(|condition| condition["type"].as_str().unwrap().to_owned()).collect()
        };
        let all = Step::ReplaceStatus { object }.instead(&too_large).unwrap();
        assert_eq!(all.log_message(&too_large), Some("cannot update status"));
        assert_eq!(kinds(&all), ["Synced", "Ready", "OfAFunction"]);
        let ours = all.instead(&too_large).unwrap();
        assert_eq!(kinds(&ours), ["Synced", "Ready"]);
        assert_eq!(ours.instead(&too_large), None, "nothing less can be reported");
        assert_eq!(all.instead(&Refusal::deadline_exceeded()), None);
    }
    #[test]
    fn a_claim_gets_its_events_without_the_step() {
        let about = json!({"apiVersion": "e/v1", "kind": "X", "metadata": {"name": "x", "uid": "u"}});
        let claim = TypedReference { name: "c".to_owned(), ..TypedReference::default() };
        let step = Some("a".to_owned());
        let own = Event { step: step.clone(), ..Event::normal("R", "own") };
        let both = Event { step, target: Target::CompositeAndClaim, ..Event::normal("R", "both") };
        let steps = Step::events(&about, Some(claim.clone()), vec![own.clone(), both.clone()]);
        let [Step::Events { events, .. }, Step::ClaimEvents { claim: of, events: claimed }] = &steps[..]
        else {
            panic!("{steps:?}")
        };
        let texts = |events: &[Event]| events.iter().map(Event::text).collect::<Vec<_>>();
        assert_eq!(texts(events), [r#"Pipeline step "a": own"#, r#"Pipeline step "a": both"#]);
        assert_eq!((of, texts(claimed)), (&claim, vec!["both".to_owned()]));
        assert_eq!(Step::events(&about, Some(claim), vec![own]).len(), 1);
        assert_eq!(Step::events(&about, None, vec![both]).len(), 1);
        assert_eq!(Step::events(&about, None, Vec::new()), []);
    }

    #[test]
    fn undeclared_fields_are_left_out_of_a_resource_of_a_template_only() {
        let message =
            "failed to create typed patch object (/a; e/v1, Kind=K): .spec.x: field not declared in schema";
        let refusal = |kind| Refusal { kind, message: message.to_owned() };
        let apply = |undeclared| {
            let object = json!({"apiVersion": "e/v1", "kind": "K", "spec": {"x": 1, "y": 2}});
            Step::Apply(Arc::new(Application { undeclared, ..application(object) }))
        };
        let Some(Step::Apply(pruned)) = apply(Some(Vec::new())).instead(&refusal(RefusalKind::Other)) else {
            panic!("it is applied without the field")
        };
        assert_eq!(pruned.object["spec"], json!({"y": 2}));
        assert_eq!(apply(Some(Vec::new())).instead(&refusal(RefusalKind::Forbidden)), None);
        assert_eq!(apply(None).instead(&refusal(RefusalKind::Other)), None);
    }

    fn application(object: Value) -> Application {
        Application {
            name: "a".to_owned(),
            object,
            observed: None,
            field_owner: String::new(),
            undeclared: None,
            ready: false,
            problem: None,
            named_by: crate::NamedBy::Function,
            reason: crate::Reason::Missing,
        }
    }
}
