//! A recorded plan is all that it takes to make a change: it is executed against the embedded server.

use super::*;
use http::Request;
use kube::client::Body;
use serde_json::{Map, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::ServiceExt;
use transom_apiserver::Identity;
use transom_compose::{
    Answer, FunctionRunner, Layout, Mode, Moment, Nesting, Objects, Polling, Reconcile, Requirements,
    RunError, Selection, Setup, StepRef, Todo,
};
use transom_engine::Clock;
use transom_function::{Resource, RunFunctionRequest};
use transom_object::GroupVersionKind;
use transom_object::time::Timestamp;
use transom_xapi::Composition;

/// Wants two ConfigMaps.
struct Wants;

#[async_trait::async_trait]
impl FunctionRunner for Wants {
    async fn run(&self, _: StepRef<'_>, request: RunFunctionRequest) -> Result<Answer, RunError> {
        let mut response = request.copy_response();
        for name in ["a", "b"] {
            let metadata = json!({"name": name, "namespace": "default"});
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            response.set_composed(name, Resource::new(object).expect("an object"));
        }
        Ok(response.into())
    }
}

struct NoMemory;

impl Memory for NoMemory {
    fn depend(&self, _: &Lookup) {}
    fn follow(&self, _: &BTreeSet<Lookup>) {}
    fn forget(&self, _: &str) {}
}

/// A server, and the writes that it is sent.
async fn server() -> (Cluster, Arc<Mutex<Vec<String>>>) {
    let server = transom_testkit::embedded::server().await;
    let writes: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = writes.clone();
    let client = server.map_request(move |mut request: Request<Body>| {
        request.extensions_mut().insert(Identity::admin("crossplane"));
        let path = request.uri().path();
        if *request.method() != http::Method::GET && !path.contains("/events") {
            let name = path.rsplit_once("xthings/").or(path.rsplit_once('/')).map_or(path, |(_, name)| name);
            log.lock().expect("no test panicked").push(format!("{} {name}", request.method()));
        }
        request
    });
    (Cluster::new(kube::Client::new(client, "default")), writes)
}

async fn create(cluster: &Cluster, object: Value) -> Value {
    cluster.create(&object, "test").await.expect("it is created")
}

async fn definition(cluster: &Cluster) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}});
    create(
        cluster,
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "xthings.example.org"},
            "spec": {
                "group": "example.org", "scope": "Cluster", "names": {"plural": "xthings", "kind": "XThing"},
                "versions": [version],
            },
        }),
    )
    .await;
}

/// A composite resource that composes a ConfigMap which is no longer wanted.
async fn composite(cluster: &Cluster) -> (Value, Value) {
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "old", "namespace": "default"});
    let xr = json!({
        "apiVersion": "example.org/v1", "kind": "XThing", "metadata": {"name": "thing"},
        "spec": {"crossplane": {"resourceRefs": [reference]}},
    });
    let xr = create(cluster, xr).await;
    let owner = json!({
        "apiVersion": "example.org/v1", "kind": "XThing", "name": "thing", "uid": meta::uid(&xr), "controller": true,
    });
    let old = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "old", "namespace": "default", "ownerReferences": [owner],
            "labels": {"crossplane.io/composite": "thing"},
            "annotations": {"crossplane.io/composition-resource-name": "old"},
        },
    });
    // Without a field owner of ours it would be migrated to server-side apply first.
    let old = cluster.create(&old, "apiextensions.crossplane.io/composed/test").await;
    (xr, old.expect("it is created"))
}

/// The plan that deletes, refers and applies.
async fn plan(xr: Value, old: Value) -> Plan {
    let spec = json!({
        "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"},
        "pipeline": [{"step": "one", "functionRef": {"name": "f"}}],
    });
    let composition: Composition =
        serde_json::from_value(json!({"metadata": {"name": "comp"}, "spec": spec})).expect("a Composition");
    let (nesting, now) = (Nesting::default(), Timestamp::default());
    let setup = Setup {
        mode: Mode::ControlPlane,
        layout: Layout::Modern,
        selection: Selection::Given(&composition),
        connection_secret_keys: &[],
        context: Map::new(),
        extra_resources: true,
        polling: Polling::default(),
        nesting: &nesting,
        account: None,
    };
    let moment = Moment { now, random: 0, slowed_by: None };
    let world: Objects = [old].into_iter().collect();
    let (mut reconcile, mut todo) = Reconcile::start(&setup, xr, Requirements::new(), &moment);
    loop {
        todo = match todo {
            Todo::Prepare => reconcile.prepare(&world, &moment).await,
            Todo::Compose => {
                let composed = reconcile.compose(now, &Wants, &world).await;
                let interim = reconcile.interim();
                reconcile.composed(composed, interim, &moment)
            }
            Todo::Execute(plan) if plan.within_deadline => return plan,
            Todo::Execute(plan) => {
                let outcomes = vec![Outcome::Done; plan.steps.len()];
                reconcile.executed(&plan, outcomes, &moment)
            }
            Todo::Done(next) => panic!("it ended with {next:?}"),
        };
    }
}

async fn execute(cluster: &Cluster, plan: &Plan) -> Vec<Outcome> {
    let (recorder, task) = Recorder::start(cluster.clone(), Clock::starting_at(Timestamp::default()), "test");
    let log = RunLog::default();
    let executor = Executor {
        cluster,
        composed: cluster,
        account: None,
        log: &log,
        memory: &NoMemory,
        recorder: &recorder,
        controller: "test",
        deadline: Instant::now() + Duration::from_secs(60),
    };
    let outcomes = executor.execute(plan).await;
    task.abort();
    outcomes
}

#[tokio::test]
async fn a_recorded_plan_is_executed_in_its_order_and_needs_nothing_else() {
    let (cluster, writes) = server().await;
    definition(&cluster).await;
    let (xr, old) = composite(&cluster).await;
    let recorded = plan(xr, old).await.clone();
    writes.lock().expect("no test panicked").clear();

    let outcomes = execute(&cluster, &recorded).await;
    assert_eq!(outcomes.len(), recorded.steps.len(), "{outcomes:?}");
    assert!(!outcomes.iter().any(|outcome| matches!(outcome, Outcome::Refused(_))), "{outcomes:?}");
    let log = std::mem::take(&mut *writes.lock().expect("no test panicked"));
    let (ordered, parallel) = log.split_at(4);
    assert_eq!(ordered, ["PUT thing", "PUT old", "DELETE old", "PATCH thing"]);
    let mut parallel = parallel.to_vec();
    parallel.sort();
    assert_eq!(parallel, ["PATCH a", "PATCH b"]);
    let config_map = GroupVersionKind::new("", "v1", "ConfigMap");
    for name in ["a", "b"] {
        let composed = cluster.get(&config_map, "default", name).await.expect("it answers");
        assert!(composed.is_some_and(|composed| meta::controller_of(&composed).is_some()), "{name}");
    }

    // The world has moved on since it was recorded: the first step is refused, and ends the plan.
    let outcomes = execute(&cluster, &recorded).await;
    let is_conflict =
        |outcome: &Outcome| matches!(outcome, Outcome::Refused(refusal) if refusal.is_conflict());
    assert!(
        outcomes.last().is_some_and(is_conflict) && outcomes.len() < recorded.steps.len(),
        "{outcomes:?}"
    );
    assert_eq!(*writes.lock().expect("no test panicked"), ["PUT thing"]);
}
