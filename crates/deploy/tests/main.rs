//! Packages on an API server. No Deployment controller runs: what it would report is written by the tests.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use std::sync::Arc;
use transom_apiserver::Identity;
use transom_deploy::{ClusterRuntime, ClusterRuntimeOptions};
use transom_engine::{Clock, Cluster};
use transom_object::GroupVersionKind;
use transom_object::time::Timestamp;
use transom_runner::{
    FunctionRuntime, LocalRuntime, Options, PackageImage, ProviderRuntime, ProviderSpec, ProviderState,
    Reason, Resolver, RevisionSpec, RuntimeState,
};
use transom_testkit::embedded;
use transom_xapi::function::FunctionRevision;

const NAMESPACE: &str = "crossplane-system";
const REFERENCE: &str = "r.io/acme/function-x:v1";

mod reloading;

struct Plane {
    cluster: Cluster,
    runtime: ClusterRuntime,
}

fn runtime(cluster: &Cluster) -> ClusterRuntime {
    let clock = Clock::starting_at(Timestamp::now());
    let call = Options { wait_for_start: std::time::Duration::ZERO, ..Options::default() };
    let options = ClusterRuntimeOptions { namespace: NAMESPACE.to_owned(), clock, call };
    ClusterRuntime::new(cluster.clone(), options, LocalRuntime::new(|_| None, Options::default()))
}

fn gvk(kind: &str) -> GroupVersionKind {
    let (group, version) = match kind {
        "Deployment" => ("apps", "v1"),
        "FunctionRevision" | "ProviderRevision" => ("pkg.crossplane.io", "v1"),
        _ => ("", "v1"),
    };
    GroupVersionKind::new(group, version, kind)
}

impl Plane {
    async fn new() -> Self {
        let server = embedded::server().await;
        let cluster = Cluster::new(embedded::kube_client(&server, Identity::admin("test")));
        for crd in transom_xapi::crds() {
            cluster.create(&crd, "test").await.unwrap();
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        cluster.create(&namespace, "test").await.unwrap();
        Self { runtime: runtime(&cluster), cluster }
    }

    /// Another process takes over after the one before was killed.
    fn restart(&mut self) {
        self.runtime = runtime(&self.cluster);
    }

    async fn ensure(&self, spec: &RevisionSpec) -> RuntimeState {
        FunctionRuntime::ensure(&self.runtime, spec).await
    }

    async fn revision(&self, kind: &str, package: &str, number: i64) -> Value {
        let spec = json!({"desiredState": "Active", "image": REFERENCE, "revision": number});
        let metadata =
            json!({"name": format!("{package}-{number}"), "labels": {"pkg.crossplane.io/package": package}});
        let object =
            json!({"apiVersion": "pkg.crossplane.io/v1", "kind": kind, "metadata": metadata, "spec": spec});
        self.cluster.create(&object, "test").await.unwrap()
    }

    async fn function(&self, number: i64) -> RevisionSpec {
        let created = self.revision("FunctionRevision", "function-x", number).await;
        let revision: FunctionRevision = serde_json::from_value(created).unwrap();
        RevisionSpec::of(&revision, &Resolver::default())
    }

    async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        self.cluster.get(&gvk(kind), NAMESPACE, name).await.unwrap()
    }

    /// Reports what a Deployment controller would.
    async fn available(&self, name: &str, is_available: bool) {
        let mut deployment = self.get("Deployment", name).await.unwrap();
        let status = if is_available { "True" } else { "False" };
        let condition =
            json!({"type": "Available", "status": status, "reason": "r", "message": "no pod runs"});
        let generation = deployment["metadata"]["generation"].clone();
        deployment["status"] = json!({
            "conditions": [condition], "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1,
        });
        self.cluster.update_status(&deployment, "test").await.unwrap();
    }

    /// Replaces the authority of all certificates.
    async fn replace_authority(&self) {
        let of = gvk("Secret");
        self.cluster.delete(&of, NAMESPACE, "crossplane-root-ca", Default::default()).await.unwrap();
    }

    /// The names of all objects of a kind.
    async fn names(&self, kind: &str) -> Vec<String> {
        let all = self.cluster.list(&gvk(kind), NAMESPACE, &Default::default()).await.unwrap();
        all.iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The versions of all objects that run functions.
    async fn versions(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for kind in ["Deployment", "Service", "ServiceAccount", "Secret"] {
            for object in self.cluster.list(&gvk(kind), NAMESPACE, &Default::default()).await.unwrap() {
                let metadata = &object["metadata"];
                all.push(json!([kind, metadata["name"], metadata["resourceVersion"]]));
            }
        }
        all
    }

    async fn leads_to(&self, service: &str) -> Value {
        self.get("Service", service).await.unwrap()["spec"]["selector"]["pkg.crossplane.io/revision"].clone()
    }
}

fn problem(state: &RuntimeState) -> (Reason, String) {
    let problem = state.problem().unwrap();
    (problem.reason, problem.message.clone())
}

#[tokio::test]
async fn a_revision_has_its_objects_and_is_released_without_a_trace() {
    let plane = Plane::new().await;
    let spec = plane.function(1).await;
    let (reason, message) = problem(&FunctionRuntime::ensure(&plane.runtime, &spec).await);
    assert_eq!(reason, Reason::Unavailable);
    assert_eq!(message, "function package deployment has no condition of type \"Available\" yet");
    for (kind, name) in [
        ("Service", "function-x-1"),
        ("Service", "function-x"),
        ("ServiceAccount", "function-x-1"),
        ("Deployment", "function-x-1"),
        ("Secret", "function-x-1-tls-server"),
        ("Secret", "crossplane-root-ca"),
        ("Secret", "crossplane-tls-client"),
    ] {
        assert!(plane.get(kind, name).await.is_some(), "{kind} {name}");
    }
    plane.available("function-x-1", false).await;
    let (_, message) = problem(&FunctionRuntime::ensure(&plane.runtime, &spec).await);
    assert_eq!(message, "function package deployment is unavailable with message: no pod runs");
    plane.available("function-x-1", true).await;
    let state = FunctionRuntime::ensure(&plane.runtime, &spec).await;
    assert_eq!(problem(&state).0, Reason::Unreachable, "its pods do not exist");
    assert_eq!(state.instance().unwrap().target(), "dns:///function-x-1.crossplane-system:9443");
    // Nothing is written again.
    let versions = |objects: Vec<Option<Value>>| -> Vec<Value> {
        objects.into_iter().map(|object| object.unwrap()["metadata"]["resourceVersion"].clone()).collect()
    };
    let read = async || {
        versions(vec![
            plane.get("Deployment", "function-x-1").await,
            plane.get("Service", "function-x").await,
            plane.get("Secret", "function-x-1-tls-server").await,
        ])
    };
    let before = read().await;
    FunctionRuntime::ensure(&plane.runtime, &spec).await;
    assert_eq!(read().await, before);
    FunctionRuntime::release(&plane.runtime, &spec.id).await;
    for (kind, name) in
        [("Service", "function-x-1"), ("Deployment", "function-x-1"), ("Secret", "function-x-1-tls-server")]
    {
        assert!(plane.get(kind, name).await.is_none(), "{kind} {name}");
    }
}

#[tokio::test]
async fn the_name_of_the_function_leads_to_the_newest_that_is_ready() {
    let plane = Plane::new().await;
    let (first, second) = (plane.function(1).await, plane.function(2).await);
    FunctionRuntime::ensure(&plane.runtime, &first).await;
    plane.available("function-x-1", true).await;
    FunctionRuntime::ensure(&plane.runtime, &first).await;
    FunctionRuntime::ensure(&plane.runtime, &second).await;
    assert_eq!(plane.leads_to("function-x").await, "function-x-1", "the second has no pods yet");
    assert_eq!(plane.leads_to("function-x-2").await, "function-x-2");
    plane.available("function-x-2", true).await;
    FunctionRuntime::ensure(&plane.runtime, &second).await;
    assert_eq!(plane.leads_to("function-x").await, "function-x-2");
    FunctionRuntime::release(&plane.runtime, &first.id).await;
    assert_eq!(plane.leads_to("function-x").await, "function-x-2");
    let owners = plane.get("Service", "function-x").await.unwrap()["metadata"]["ownerReferences"].clone();
    assert_eq!((owners.as_array().map(Vec::len), &owners[0]["name"]), (Some(1), &json!("function-x-2")));
}

#[tokio::test]
async fn a_replaced_or_damaged_authority_heals() {
    let plane = Plane::new().await;
    let spec = plane.function(1).await;
    let certificates = async || {
        let deployment = plane.get("Deployment", "function-x-1").await.unwrap();
        let annotation =
            deployment["spec"]["template"]["metadata"]["annotations"]["transom.io/certificates"].clone();
        let server = plane.get("Secret", "function-x-1-tls-server").await.unwrap()["data"]["tls.crt"].clone();
        let client = plane.get("Secret", "crossplane-tls-client").await.unwrap()["data"]["tls.crt"].clone();
        (annotation, server, client)
    };
    FunctionRuntime::ensure(&plane.runtime, &spec).await;
    let mut known = certificates().await;
    // Deleted, emptied as an installation by Helm makes it, and damaged.
    for data in [None, Some(json!({})), Some(json!({"tls.crt": "eA==", "tls.key": "eQ=="}))] {
        match data {
            None => plane.replace_authority().await,
            Some(data) => {
                let mut authority = plane.get("Secret", "crossplane-root-ca").await.unwrap();
                authority["data"] = data;
                plane.cluster.update(&authority, "test").await.unwrap();
            }
        }
        FunctionRuntime::ensure(&plane.runtime, &spec).await;
        let now = certificates().await;
        assert!(
            now.0 != known.0 && now.1 != known.1 && now.2 != known.2,
            "pods are replaced with their certificates"
        );
        let secret = plane.get("Secret", "crossplane-tls-client").await.unwrap();
        assert_eq!(
            secret["data"]["previous.crt"], known.2,
            "the one before is kept for pods that know only that"
        );
        FunctionRuntime::ensure(&plane.runtime, &spec).await;
        assert_eq!(certificates().await, now, "and stays");
        known = now;
    }
}

#[tokio::test]
async fn a_process_that_takes_over_after_a_kill_changes_nothing() {
    let mut plane = Plane::new().await;
    let specs = [plane.function(1).await, plane.function(2).await];
    for spec in &specs {
        plane.ensure(spec).await;
        plane.available(&spec.id.revision, true).await;
        plane.ensure(spec).await;
    }
    let before = plane.versions().await;
    // Whichever revision is reconciled first.
    for order in [[0, 1], [1, 0]] {
        plane.restart();
        for index in order {
            plane.ensure(&specs[index]).await;
            assert_eq!(plane.leads_to("function-x").await, "function-x-2");
        }
        assert_eq!(plane.versions().await, before);
    }
    // The second was deactivated, and the process was killed before it released it.
    let mut revision =
        plane.cluster.get(&gvk("FunctionRevision"), "", "function-x-2").await.unwrap().unwrap();
    revision["spec"]["desiredState"] = "Inactive".into();
    plane.cluster.update(&revision, "test").await.unwrap();
    plane.restart();
    plane.ensure(&specs[0]).await;
    assert_eq!(plane.leads_to("function-x").await, "function-x-1");
    FunctionRuntime::release(&plane.runtime, &specs[1].id).await;
    assert_eq!(plane.names("Deployment").await, ["function-x-1"]);
    assert_eq!(plane.names("Service").await, ["function-x", "function-x-1"]);
}

#[tokio::test]
async fn many_revisions_run_side_by_side_and_leave_nothing() {
    let plane = Plane::new().await;
    let mut specs = Vec::new();
    for number in 1..=20 {
        let spec = plane.function(number).await;
        plane.ensure(&spec).await;
        plane.available(&spec.id.revision, true).await;
        plane.ensure(&spec).await;
        assert_eq!(plane.leads_to("function-x").await, spec.id.revision, "the newest that is ready");
        specs.push(spec);
    }
    let endpoints: std::collections::BTreeSet<String> = futures_util::future::join_all(
        specs.iter().map(async |spec| plane.ensure(spec).await.instance().unwrap().target().to_owned()),
    )
    .await
    .into_iter()
    .collect();
    assert_eq!(endpoints.len(), specs.len(), "each has its own");
    let before = plane.versions().await;
    futures_util::future::join_all(specs.iter().map(|spec| plane.ensure(spec))).await;
    assert_eq!(plane.versions().await, before, "nothing is written again");
    // The newest goes first: the name of the function follows.
    while let Some(spec) = specs.pop() {
        FunctionRuntime::release(&plane.runtime, &spec.id).await;
        if let Some(newest) = specs.last() {
            assert_eq!(plane.leads_to("function-x").await, newest.id.revision);
        }
        assert!(plane.get("Deployment", &spec.id.revision).await.is_none());
    }
    assert_eq!(plane.names("Deployment").await, [""; 0]);
    assert_eq!(plane.names("Service").await, ["function-x"], "it is deleted with the revisions");
    let secrets = plane.names("Secret").await;
    assert_eq!(secrets, ["crossplane-root-ca", "crossplane-tls-client"]);
}

#[tokio::test]
async fn a_provider_has_its_objects() {
    let plane = Plane::new().await;
    let revision = plane.revision("ProviderRevision", "provider-x", 1).await;
    let spec = ProviderSpec {
        provider: "provider-x".to_owned(),
        revision: "provider-x-1".to_owned(),
        uid: revision["metadata"]["uid"].as_str().unwrap().to_owned(),
        image: PackageImage { reference: REFERENCE.to_owned(), ..PackageImage::default() },
        config: Arc::default(),
    };
    let authority = plane.runtime.certify(&spec).await.unwrap().unwrap();
    assert!(authority.contains("BEGIN CERTIFICATE"));
    let state = ProviderRuntime::ensure(&plane.runtime, &spec).await;
    assert!(matches!(state, ProviderState::Pending(_)), "{state:?}");
    plane.available("provider-x-1", true).await;
    assert_eq!(ProviderRuntime::ensure(&plane.runtime, &spec).await, ProviderState::Running(String::new()));
    for secret in ["provider-x-tls-server", "provider-x-tls-client"] {
        assert!(plane.get("Secret", secret).await.is_some(), "{secret}");
    }
    ProviderRuntime::release(&plane.runtime, "provider-x-1").await;
    assert!(plane.get("Deployment", "provider-x-1").await.is_none());
}

#[tokio::test]
async fn revisions_can_share_a_service_account() {
    let plane = Plane::new().await;
    let config = json!({"serviceAccountTemplate": {"metadata": {"name": "shared"}}});
    let mut specs = [plane.function(1).await, plane.function(2).await];
    for spec in &mut specs {
        spec.config = Arc::new(serde_json::from_value(config.clone()).unwrap());
        plane.ensure(spec).await;
    }
    let account = plane.get("ServiceAccount", "shared").await.unwrap();
    let owners = account["metadata"]["ownerReferences"].as_array().unwrap();
    let mut all: Vec<_> =
        owners.iter().map(|owner| (owner["name"].clone(), owner["controller"].clone())).collect();
    all.sort_by_key(|(name, _)| name.to_string());
    assert_eq!(all, [(json!("function-x-1"), json!(true)), (json!("function-x-2"), json!(false))]);
    let before = plane.versions().await;
    for spec in &specs {
        plane.ensure(spec).await;
    }
    assert_eq!(plane.versions().await, before, "neither takes it from the other");
}
