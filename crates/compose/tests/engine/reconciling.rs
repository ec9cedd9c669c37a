//! A whole reconcile: which steps are carried out, in which order, and what is decided from their outcomes.

use crate::script::{Script, now, object, resource};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use transom_compose::{
    ForbiddenRead, FunctionRunner, Layout, Mode, Moment, Nesting, Next, Objects, Outcome, Plan, Polling,
    Reconcile, Refusal, RefusalKind, Requirements, Selection, Setup, Step, Todo, World, WorldError,
};
use transom_function::{Ready, ResourceSelector, async_trait};
use transom_object::GroupVersionKind;
use transom_xapi::Composition;

pub(crate) fn xr() -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "XThing",
        "metadata": {"name": "thing", "namespace": "team", "uid": "uid-123", "resourceVersion": "1", "generation": 1},
        "spec": {"size": 3},
    })
}

pub(crate) fn composition() -> Composition {
    serde_json::from_value(json!({
        "metadata": {"name": "comp"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"},
            "pipeline": [{"step": "a", "functionRef": {"name": "f"}}],
        },
    }))
    .expect("a composition")
}

pub(crate) fn moment() -> Moment {
    Moment { now: now(), random: 0, slowed_by: None }
}

/// The resources, each ready as soon as it is observed.
fn wanting(names: &'static [&'static str]) -> Script {
    Script::new().then(move |request| {
        let mut response = request.copy_response();
        for name in names {
            let exists = request.observed_composed(name).is_some();
            let ready = if exists { Ready::True } else { Ready::False };
            response.set_composed(*name, resource("Part").with_ready(ready));
        }
        response
    })
}

pub(crate) type Refuse = fn(&Step) -> Option<RefusalKind>;

/// An executor that does nothing, and keeps what it was asked to do.
pub(crate) struct Recorded {
    refuse: Refuse,
    version: u64,
    pub(crate) steps: Vec<Step>,
}

impl Recorded {
    fn execute(&mut self, plan: &Plan) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for index in 0..plan.steps.len() {
            let step = plan.step(index, &outcomes).map(Cow::into_owned).expect("a step");
            let outcome = match (self.refuse)(&step) {
                Some(kind) => Outcome::Refused(Refusal { kind, message: "no".to_owned() }),
                None => self.outcome(&step),
            };
            let ended = step.ends_plan(&outcome);
            self.steps.push(step);
            outcomes.push(outcome);
            if ended {
                break;
            }
        }
        outcomes
    }

    fn outcome(&mut self, step: &Step) -> Outcome {
        self.version += 1;
        let written = |object: &Value| {
            let mut object = object.clone();
            object["metadata"]["resourceVersion"] = self.version.to_string().into();
            object
        };
        match step {
            Step::Configure { object, .. } | Step::RemoveFinalizer { object } => {
                Outcome::Written(written(object))
            }
            Step::Apply(application) => {
                let new = application.observed.is_none().then(|| written(&application.object));
                Outcome::Applied { object: new, undeclared: Vec::new() }
            }
            Step::ApplyStatus { live, intent } => {
                let mut object = written(live);
                object["status"] = intent["status"].clone();
                Outcome::Written(object)
            }
            Step::ReviewRights { .. } => Outcome::MissingRights(Some("rights are missing".to_owned())),
            _ => Outcome::Done,
        }
    }

    /// What was done, in short.
    pub(crate) fn log(&self) -> Vec<String> {
        let name = |value: &Value| value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let short = |step: &Step| match step {
            Step::Depend(_) | Step::Follow(_) => String::new(),
            Step::Configure { with_references, .. } => format!("configure {with_references}"),
            Step::Disown(deletion) => format!("disown {}", name(&deletion.object)),
            Step::Delete(deletion) => format!("delete {}", name(&deletion.object)),
            Step::PersistReferences(_) => "references".to_owned(),
            Step::Apply(application) => format!("apply {}", application.name),
            Step::Events { events, .. } => {
                let events: Vec<String> = events.iter().map(|event| event.text()).collect();
                format!("events {}", events.join("; "))
            }
            Step::ReplaceStatus { .. } => "replace status".to_owned(),
            Step::ApplyStatus { .. } => "apply status".to_owned(),
            Step::Forget { uid } => format!("forget {uid}"),
            Step::RemoveFinalizer { .. } => "remove finalizer".to_owned(),
            Step::ReviewRights { .. } => "review rights".to_owned(),
            other => format!("{other:?}"),
        };
        self.steps.iter().map(short).filter(|line| !line.is_empty()).collect()
    }

    fn status(&self) -> &Value {
        let status = self.steps.iter().rev().find_map(|step| match step {
            Step::ApplyStatus { intent: object, .. } | Step::ReplaceStatus { object } => {
                Some(&object["status"])
            }
            _ => None,
        });
        status.expect("the status was written")
    }
}

async fn reconcile(xr: Value, script: &Script, world: &dyn World, refuse: Refuse) -> (Recorded, Next) {
    let (composition, nesting) = (composition(), Nesting::default());
    reconcile_as(&setup(&composition, &nesting), xr, script, world, refuse).await
}

pub(crate) fn setup<'a>(composition: &'a Composition, nesting: &'a Nesting) -> Setup<'a> {
    Setup {
        mode: Mode::ControlPlane,
        layout: Layout::Modern,
        selection: Selection::Given(composition),
        connection_secret_keys: &[],
        context: Map::new(),
        extra_resources: true,
        polling: Polling::default(),
        nesting,
        account: None,
    }
}

pub(crate) async fn reconcile_as(
    setup: &Setup<'_>,
    xr: Value,
    script: &Script,
    world: &dyn World,
    refuse: Refuse,
) -> (Recorded, Next) {
    let (mut reconcile, todo) = Reconcile::start(setup, xr, Requirements::new(), &moment());
    drive(&mut reconcile, todo, script, world, refuse).await
}

/// Carries a reconcile that was started to its end.
pub(crate) async fn drive(
    reconcile: &mut Reconcile<'_>,
    mut todo: Todo,
    runner: &dyn FunctionRunner,
    world: &dyn World,
    refuse: Refuse,
) -> (Recorded, Next) {
    let mut recorded = Recorded { refuse, version: 1, steps: Vec::new() };
    loop {
        todo = match todo {
            Todo::Prepare => reconcile.prepare(world, &moment()).await,
            Todo::Compose => {
                let composed = reconcile.compose(now(), runner, world).await;
                let interim = reconcile.interim();
                reconcile.composed(composed, interim, &moment())
            }
            Todo::Execute(plan) => {
                let outcomes = recorded.execute(&plan);
                reconcile.executed(&plan, outcomes, &moment())
            }
            Todo::Done(next) => return (recorded, next),
        };
    }
}

pub(crate) const SELECTED: &str = "events Successfully selected composition: comp";

#[tokio::test]
async fn what_was_applied_is_looked_at_once_more_before_the_status_is_written() {
    let script = wanting(&["a", "b"]);
    let (recorded, next) = reconcile(xr(), &script, &Objects::new(), |_| None).await;
    let expected = [
        SELECTED,
        "configure true",
        "apply a",
        "apply b",
        "references",
        "apply a",
        "apply b",
        "apply status",
    ];
    assert_eq!(recorded.log(), expected);
    let ttl = Next::After(Duration::from_secs(54));
    assert_eq!(next, ttl, "the second look changed nothing, and the response expires after a minute");
    assert_eq!(script.calls().len(), 2);
    let conditions: Vec<&Value> =
        recorded.status()["conditions"].as_array().unwrap().iter().map(|c| &c["status"]).collect();
    assert_eq!(conditions, ["True", "True", "True"], "Responsive, Synced and Ready");
}

pub(crate) fn with_old() -> (Value, Objects) {
    let mut xr = xr();
    xr["metadata"]["labels"] = json!({"crossplane.io/composite": "thing"});
    xr["spec"]["crossplane"] = json!({
        "compositionRef": {"name": "comp"},
        "resourceRefs": [{"apiVersion": "example.org/v1", "kind": "Part", "name": "old"}],
    });
    let mut old = object("Part", "old", true);
    old["metadata"]["managedFields"] = json!([{"manager": "apiextensions.crossplane.io/composed/x"}]);
    (xr, [old].into_iter().collect())
}

#[tokio::test]
async fn what_is_unwanted_is_deleted_while_it_is_referenced() {
    let (xr, world) = with_old();
    let (recorded, next) = reconcile(xr, &wanting(&["a"]), &world, |_| None).await;
    let log = recorded.log();
    assert_eq!(log[..4], ["disown old", "delete old", "references", "apply a"]);
    assert_eq!(log.last().unwrap(), "apply status");
    assert_eq!(next, Next::Again, "what functions see changed");
}

#[tokio::test]
async fn what_is_in_use_stays_referenced_and_holds_up_nothing() {
    let (xr, world) = with_old();
    let in_use: Refuse = |step| matches!(step, Step::Delete(_)).then_some(RefusalKind::InUse);
    let (recorded, _) = reconcile(xr, &wanting(&["a"]), &world, in_use).await;
    let references = recorded.steps.iter().find_map(|step| match step {
        Step::PersistReferences(references) => Some(&references.intent["spec"]["crossplane"]["resourceRefs"]),
        _ => None,
    });
    let names: Vec<&Value> = references.unwrap().as_array().unwrap().iter().map(|r| &r["name"]).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&&json!("old")));
    assert!(recorded.log().iter().any(|line| line == "apply a"));
}

#[tokio::test]
async fn a_refused_write_ends_the_plan_and_is_reported() {
    let forbidden: Refuse =
        |step| matches!(step, Step::Apply(a) if a.name == "a").then_some(RefusalKind::Forbidden);
    let (recorded, next) = reconcile(xr(), &wanting(&["a", "b"]), &Objects::new(), forbidden).await;
    let message = r#"cannot compose resources: cannot apply composed resource "a": no"#;
    let events = format!("events {message}; rights are missing");
    let expected = [SELECTED, "configure true", "apply a", "review rights", &events, "replace status"];
    assert_eq!(recorded.log(), expected);
    assert_eq!(next, Next::Failed(message.to_owned()));
    let synced = &recorded.status()["conditions"][1];
    assert_eq!(synced["message"], format!("{message}\nrights are missing"));

    let conflict: Refuse = |step| matches!(step, Step::Apply(_)).then_some(RefusalKind::Conflict);
    let (recorded, next) = reconcile(xr(), &wanting(&["a"]), &Objects::new(), conflict).await;
    assert_eq!(recorded.log(), [SELECTED, "configure true", "apply a"], "nothing is reported");
    assert_eq!(next, Next::Conflict);
}

/// A world in which nothing exists and objects of one kind cannot be read.
struct Forbidding(&'static str);

#[async_trait]
impl World for Forbidding {
    async fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        _: &str,
    ) -> Result<Option<Value>, WorldError> {
        if kind.kind != self.0 {
            return Ok(None);
        }
        let (kind, namespace) = (kind.clone(), namespace.to_owned());
        Err(WorldError::Forbidden(Box::new(ForbiddenRead { kind, namespace, error: "forbidden".into() })))
    }

    async fn list(
        &self,
        _: &GroupVersionKind,
        _: Option<&str>,
        _: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, WorldError> {
        Ok(Vec::new())
    }

    async fn schema(&self, _: &GroupVersionKind) -> Result<Option<Value>, WorldError> {
        Ok(None)
    }

    async fn secret(&self, _: &str, _: &str) -> Result<Option<BTreeMap<String, Vec<u8>>>, WorldError> {
        Ok(None)
    }

    async fn is_namespaced(&self, _: &GroupVersionKind) -> Result<bool, WorldError> {
        Ok(true)
    }
}

#[tokio::test]
async fn a_forbidden_read_is_reported_with_the_rights_that_are_missing() {
    let requiring = Script::new().then(|request| {
        let mut response = request.copy_response();
        let selector = ResourceSelector::named("v1", "ConfigMap", "limits").in_namespace("shared");
        response.requirements.get_or_insert_default().resources.insert("limits".to_owned(), selector);
        response
    });
    let composed = "cannot get existing composed resources: cannot get composed resource: forbidden";
    let required = r#"cannot run Composition pipeline step "a": fetching resources for limits: forbidden"#;
    let all: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
    for (xr, script, kind, namespace, verbs, why) in [
        (with_old().0, wanting(&["a"]), "Part", "team", all, composed),
        (xr(), requiring, "ConfigMap", "shared", &all[..3], required),
    ] {
        let (recorded, next) = reconcile(xr, &script, &Forbidding(kind), |_| None).await;
        let reviewed = recorded.steps.iter().filter_map(|step| match step {
            Step::ReviewRights { kind, namespace, verbs } => Some((&*kind.kind, &**namespace, *verbs)),
            _ => None,
        });
        assert_eq!(reviewed.collect::<Vec<_>>(), [(kind, namespace, verbs)]);
        let message = format!("cannot compose resources: {why}");
        let synced = &recorded.status()["conditions"][1];
        assert_eq!(synced["message"], format!("{message}\nrights are missing"));
        assert_eq!(next, Next::Failed(message));
    }
}

#[tokio::test]
async fn an_invalid_composed_resource_does_not_hold_up_the_others() {
    let invalid: Refuse =
        |step| matches!(step, Step::Apply(a) if a.name == "a").then_some(RefusalKind::Invalid);
    let (recorded, next) = reconcile(xr(), &wanting(&["a", "b"]), &Objects::new(), invalid).await;
    assert_eq!(recorded.log()[1..4], ["configure true", "apply a", "apply b"]);
    let synced = &recorded.status()["conditions"][1];
    assert_eq!(synced["message"], "Unsynced resources: a (a: no)");
    assert_eq!(next, Next::Again);
}

#[tokio::test]
async fn what_was_chosen_is_saved_even_if_the_pipeline_fails() {
    let script = Script::new().then_fail("gone");
    let (recorded, next) = reconcile(xr(), &script, &Objects::new(), |_| None).await;
    let log = recorded.log();
    assert_eq!((log[1].as_str(), log.last().unwrap().as_str()), ("configure false", "replace status"));
    assert!(matches!(next, Next::Failed(_)));
    let refused: Refuse = |step| matches!(step, Step::Configure { .. }).then_some(RefusalKind::Other);
    let (recorded, next) = reconcile(xr(), &script, &Objects::new(), refused).await;
    let message = "cannot update composite resource: no";
    assert_eq!(recorded.log()[2..], [&format!("events {message}"), "replace status"]);
    assert_eq!(next, Next::Error(message.to_owned()));
}

#[tokio::test]
async fn a_paused_composite_resource_is_left_alone() {
    let mut paused = xr();
    paused["metadata"]["annotations"] = json!({"crossplane.io/paused": "true"});
    let script = wanting(&["a"]);
    let (recorded, next) = reconcile(paused, &script, &Objects::new(), |_| None).await;
    assert_eq!(
        recorded.log(),
        ["events Reconciliation is paused via the pause annotation", "replace status"]
    );
    assert_eq!((next, script.calls().len()), (Next::Wait, 0));
}

#[tokio::test]
async fn a_composite_resource_that_is_deleted_loses_our_finalizer() {
    let mut deleted = xr();
    deleted["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z".into();
    deleted["metadata"]["finalizers"] = json!(["composite.apiextensions.crossplane.io"]);
    let (recorded, next) = reconcile(deleted.clone(), &wanting(&[]), &Objects::new(), |_| None).await;
    assert_eq!(recorded.log(), ["forget uid-123", "remove finalizer"]);
    assert_eq!(next, Next::Wait);
    deleted["metadata"]["finalizers"] = json!(["composite.apiextensions.crossplane.io", "other"]);
    let (recorded, _) = reconcile(deleted.clone(), &wanting(&[]), &Objects::new(), |_| None).await;
    assert_eq!(recorded.log(), ["forget uid-123", "remove finalizer", "replace status"]);
    let gone: Refuse = |step| matches!(step, Step::RemoveFinalizer { .. }).then_some(RefusalKind::NotFound);
    let (_, next) = reconcile(deleted, &wanting(&[]), &Objects::new(), gone).await;
    assert_eq!(next, Next::Gone);
}
