//! Packages that run by Deployments: what the controllers made is followed. No Deployment controller runs: what it would report
//! is written by the tests. Where a test says so the clock of the controllers stands still, so that nothing runs that waits for a
//! time, and only a watch can have woken the revision.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use transom_deploy::{Authority, ClusterRuntime, ClusterRuntimeOptions};
use transom_engine::{Clock, Cluster};
use transom_object::meta;
use transom_object::time::Timestamp;
use transom_runner::{Installer, LocalRuntime, Options, ProviderRuntime, Resolver, Router};

const NAMESPACE: &str = "crossplane-system";
const DEPLOYMENT: &str = "apps/v1/Deployment";
const SECRET: &str = "v1/Secret";
const SERVICE: &str = "v1/Service";
const CLIENT: &str = "crossplane-tls-client";
const AUTHORITY: &str = "crossplane-root-ca";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs packages by Deployments.
pub(crate) struct OnCluster;

impl OnCluster {
    pub(crate) fn run(
        &self,
        client: &kube::Client,
        clock: Clock,
        router: Arc<Router>,
    ) -> (Installer, Arc<dyn ProviderRuntime>) {
        let call = Options { wait_for_start: Duration::ZERO, ..Options::default() };
        let options = ClusterRuntimeOptions { namespace: NAMESPACE.to_owned(), clock, call };
        let local = LocalRuntime::new(|_| None, call);
        let runtime = Arc::new(ClusterRuntime::new(Cluster::new(client.clone()), options, local));
        (Installer::new(Resolver::default(), runtime.clone(), router), runtime)
    }
}

async fn plane() -> Plane {
    let mut plane = Plane::quiet().await;
    plane.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n")).await;
    plane.on_cluster = Some(OnCluster);
    plane.start().await;
    plane
}

fn named(name: &str) -> String {
    format!("{NAMESPACE}/{name}")
}

/// Installs a Provider without objects. Returns the name of its revision once its Deployment is there.
async fn install_provider(plane: &Plane, name: &str) -> String {
    let package =
        format!("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {{name: {name}}}\n");
    let reference = format!("r.io/acme/{name}:v1.0.0");
    let digest = plane.registry.push(&reference, &package);
    plane.apply(&install(name, &reference).replace("kind: Configuration", "kind: Provider")).await;
    let revision = revision_of(name, &digest);
    let words = "provider package deployment has no condition of type \"Available\" yet";
    plane.until(PROVIDER_REVISION, &revision, |r| message_of(r, "RuntimeHealthy") == words).await;
    plane.until_idle().await;
    revision
}

/// The same for a Function.
async fn install_a_function(plane: &Plane, name: &str) -> String {
    let reference = format!("r.io/acme/{name}:v1.0.0");
    let spec = "  capabilities: [composition, certificate-reload]\n";
    let digest = plane.registry.push(&reference, &function_package(name, spec));
    plane.apply(&install_function(name, &reference)).await;
    let revision = revision_of(name, &digest);
    let words = "function package deployment has no condition of type \"Available\" yet";
    plane.until(FUNCTION_REVISION, &revision, |r| message_of(r, "RuntimeHealthy") == words).await;
    plane.until_idle().await;
    revision
}

/// Reports what a Deployment controller would.
async fn report(plane: &Plane, name: &str, available: &str) {
    let mut deployment = plane.get(DEPLOYMENT, &named(name)).await.unwrap();
    let condition =
        json!({"type": "Available", "status": available, "reason": "r", "message": "no pod runs"});
    let generation = deployment["metadata"]["generation"].clone();
    deployment["status"] = json!({
        "conditions": [condition], "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1,
    });
    plane.user.update_status(&deployment, "test").await.unwrap();
}

/// A Provider whose Deployment is available.
async fn healthy_provider(plane: &Plane, name: &str) -> String {
    let revision = install_provider(plane, name).await;
    report(plane, &revision, "True").await;
    plane.until_true(PROVIDER_REVISION, &revision, "RuntimeHealthy").await;
    plane.until(PROVIDER, name, is_healthy).await;
    plane.until_idle().await;
    revision
}

async fn certificate(plane: &Plane, secret: &str) -> Value {
    plane.get(SECRET, &named(secret)).await.map_or(Value::Null, |secret| secret["data"]["tls.crt"].clone())
}

#[tokio::test]
async fn a_provider_is_as_healthy_as_its_deployment() {
    let plane = plane().await;
    let revision = install_provider(&plane, "p").await;
    report(&plane, &revision, "True").await;
    plane
        .until_without_time(PROVIDER_REVISION, &revision, |r| status_of(r, "RuntimeHealthy") == "True")
        .await;
    plane.until(PROVIDER, "p", is_healthy).await;
    report(&plane, &revision, "False").await;
    let words = "provider package deployment is unavailable with message: no pod runs";
    let is_ill = |r: &Value| message_of(r, "RuntimeHealthy") == words;
    plane.until_without_time(PROVIDER_REVISION, &revision, is_ill).await;
    let ill = plane.get(PROVIDER_REVISION, &revision).await.unwrap();
    assert_eq!(
        (status_of(&ill, "RuntimeHealthy"), reason_of(&ill, "RuntimeHealthy")),
        ("False", "UnhealthyPackageRevision")
    );
    plane.until(PROVIDER, "p", |p| status_of(p, "Healthy") == "False").await;
    report(&plane, &revision, "True").await;
    plane
        .until_without_time(PROVIDER_REVISION, &revision, |r| status_of(r, "RuntimeHealthy") == "True")
        .await;
}

/// Its pods are not called here: they have no address on this machine.
#[tokio::test]
async fn a_function_reports_what_its_deployment_reports() {
    let plane = plane().await;
    let revision = install_a_function(&plane, "f").await;
    let words = "function package deployment is unavailable with message: no pod runs";
    report(&plane, &revision, "False").await;
    let is_ill = |r: &Value| message_of(r, "RuntimeHealthy") == words;
    plane.until_without_time(FUNCTION_REVISION, &revision, is_ill).await;
    // The Deployment is made again, and nothing is known of the new one.
    plane.delete(DEPLOYMENT, &named(&revision)).await;
    plane.until_without_time(FUNCTION_REVISION, &revision, |r| !is_ill(r)).await;
}

#[tokio::test]
async fn what_is_deleted_or_changed_is_made_again() {
    let plane = plane().await;
    let provider = healthy_provider(&plane, "p").await;
    let function = install_a_function(&plane, "f").await;
    for (kind, name) in [
        (SERVICE, "p"),
        (DEPLOYMENT, &*provider),
        ("v1/ServiceAccount", &*provider),
        (SECRET, "p-tls-server"),
        (SECRET, "p-tls-client"),
        (SERVICE, "f"),
        (SERVICE, &*function),
        (DEPLOYMENT, &*function),
        ("v1/ServiceAccount", &*function),
        (SECRET, &*format!("{function}-tls-server")),
        (SECRET, CLIENT),
    ] {
        let name = named(name);
        let uid = meta::uid(&plane.get(kind, &name).await.unwrap()).to_owned();
        plane.delete(kind, &name).await;
        plane.until_without_time(kind, &name, |object| meta::uid(object) != uid).await;
    }
    plane.patch(DEPLOYMENT, &named(&provider), json!({"spec": {"replicas": 5}})).await;
    plane.until_without_time(DEPLOYMENT, &named(&provider), |d| d["spec"]["replicas"] == 1).await;
    for alias in ["p", "f"] {
        let elsewhere = json!({"spec": {"selector": {"pkg.crossplane.io/revision": "another"}}});
        plane.patch(SERVICE, &named(alias), elsewhere).await;
        let revision = if alias == "p" { &provider } else { &function };
        let is_back = |s: &Value| s["spec"]["selector"]["pkg.crossplane.io/revision"] == **revision;
        plane.until_without_time(SERVICE, &named(alias), is_back).await;
    }
    let before = certificate(&plane, "p-tls-server").await;
    plane.patch(SECRET, &named("p-tls-server"), json!({"data": {"tls.crt": "eA=="}})).await;
    let is_new = |s: &Value| s["data"]["tls.crt"] != "eA==" && s["data"]["tls.crt"] != before;
    plane.until_without_time(SECRET, &named("p-tls-server"), is_new).await;
}

#[tokio::test]
async fn a_replaced_authority_replaces_all_certificates() {
    let plane = plane().await;
    let provider = healthy_provider(&plane, "p").await;
    let function = install_a_function(&plane, "f").await;
    let server = format!("{function}-tls-server");
    let secrets = ["p-tls-server", "p-tls-client", &*server, CLIENT];
    let annotation = "/spec/template/metadata/annotations/transom.io~1certificates";
    // Replaced by another one, and deleted, as an installation by Helm does.
    for is_deleted in [false, true] {
        let mut before = Vec::new();
        for secret in secrets {
            before.push(certificate(&plane, secret).await);
        }
        let pods = plane.get(DEPLOYMENT, &named(&provider)).await.unwrap();
        if is_deleted {
            plane.delete(SECRET, &named(AUTHORITY)).await;
        } else {
            let other = Authority::new(Timestamp::now()).unwrap();
            let (certificate, key) = (STANDARD.encode(other.certificate()), STANDARD.encode(other.key()));
            let data = json!({"data": {"tls.crt": certificate, "tls.key": key}});
            plane.patch(SECRET, &named(AUTHORITY), data).await;
        }
        for (secret, before) in secrets.iter().zip(&before) {
            plane.until_without_time(SECRET, &named(secret), |s| s["data"]["tls.crt"] != *before).await;
        }
        let is_replaced = |d: &Value| d.pointer(annotation) != pods.pointer(annotation);
        plane.until_without_time(DEPLOYMENT, &named(&provider), is_replaced).await;
        plane.until_idle().await;
    }
}

#[tokio::test]
async fn certificates_are_replaced_before_they_expire_and_what_was_replaced_is_trusted_for_a_day() {
    let plane = plane().await;
    healthy_provider(&plane, "p").await;
    let secrets = ["p-tls-server", "p-tls-client"];
    let mut certificates = Vec::new();
    for secret in secrets {
        certificates.push(certificate(&plane, secret).await);
    }
    plane.delete(SECRET, &named(AUTHORITY)).await;
    let has_both = |s: &Value| {
        let bundle = STANDARD.decode(s["data"]["ca.crt"].as_str().unwrap_or_default()).unwrap();
        String::from_utf8(bundle).unwrap().matches("BEGIN CERTIFICATE").count() == 2
    };
    for secret in secrets {
        plane.until(SECRET, &named(secret), has_both).await;
    }
    plane.after(DAY / 2).await;
    assert!(has_both(&plane.get(SECRET, &named("p-tls-server")).await.unwrap()));
    plane.after(DAY / 2 + Duration::from_secs(90)).await;
    for secret in secrets {
        plane.until(SECRET, &named(secret), |s| !has_both(s)).await;
    }
    certificates.clear();
    for secret in secrets {
        certificates.push(certificate(&plane, secret).await);
    }
    let writes = plane.after(240 * DAY).await;
    assert_eq!(plane.after(3 * DAY).await, writes, "not yet");
    for (secret, before) in secrets.iter().zip(&certificates) {
        assert_eq!(certificate(&plane, secret).await, *before);
    }
    plane.after(3 * DAY).await;
    for (secret, before) in secrets.iter().zip(&certificates) {
        plane.until(SECRET, &named(secret), |s| s["data"]["tls.crt"] != *before).await;
    }
}

/// How often a revision was run since the reads were last taken: its Deployment is read once each time.
fn runs(plane: &Plane, revision: &str) -> usize {
    let deployment = format!("/deployments/{revision}");
    plane.take_reads().iter().filter(|read| read.ends_with(&deployment)).count()
}

#[tokio::test]
async fn nothing_is_written_at_rest_and_own_writes_wake_nothing() {
    let plane = plane().await;
    let revision = healthy_provider(&plane, "p").await;
    plane.after(Duration::from_secs(3600)).await;
    let writes = plane.writes();
    plane.take_reads();
    assert_eq!(plane.after(100 * DAY).await, writes);
    assert_eq!(runs(&plane, &revision), 0, "nothing is looked at");
    // Another client's change is looked at once, and nothing is written for it.
    let annotate = |value: &str| json!({"metadata": {"annotations": {"of-a-user": value}}});
    let looked_at = async |times: usize| {
        let (mut seen, deadline) = (0, std::time::Instant::now() + PATIENCE);
        while seen < times {
            assert!(std::time::Instant::now() < deadline, "nothing looks at it");
            seen += runs(&plane, &revision);
            tokio::task::yield_now().await;
        }
        plane.until_idle().await;
        assert_eq!(seen + runs(&plane, &revision), times);
    };
    plane.patch(DEPLOYMENT, &named(&revision), annotate("one")).await;
    looked_at(1).await;
    assert_eq!(plane.writes(), writes);
    // The write that makes a Service again is reported before the next change of the Service.
    let uid = meta::uid(&plane.get(SERVICE, &named("p")).await.unwrap()).to_owned();
    plane.delete(SERVICE, &named("p")).await;
    plane.until(SERVICE, &named("p"), |service| meta::uid(service) != uid).await;
    looked_at(1).await;
    assert_eq!(plane.writes(), writes + 1, "{:#?}", plane.log());
    plane.patch(SERVICE, &named("p"), annotate("two")).await;
    looked_at(1).await;
    assert_eq!(plane.writes(), writes + 1);
    // Objects that nothing depends on wake nothing.
    let other = "apiVersion: v1\nkind: Secret\nmetadata: {name: other, namespace: crossplane-system}\n";
    plane.apply(other).await;
    plane.patch(SECRET, &named("p-tls-client"), annotate("three")).await;
    looked_at(1).await;
    assert_eq!(plane.writes(), writes + 1);
}

#[tokio::test]
async fn packages_that_disagree_about_an_object_do_not_wake_each_other() {
    let plane = plane().await;
    let mut revisions = Vec::new();
    for name in ["one", "two"] {
        plane
            .apply(&format!(
                "apiVersion: pkg.crossplane.io/v1beta1\nkind: DeploymentRuntimeConfig\nmetadata: {{name: {name}}}\nspec:\n  \
                 serviceAccountTemplate: {{metadata: {{name: shared, labels: {{of: {name}}}}}}}\n"
            ))
            .await;
        revisions.push(healthy_provider(&plane, name).await);
        plane.patch(PROVIDER, name, json!({"spec": {"runtimeConfigRef": {"name": name}}})).await;
        let account = |d: &Value| d["spec"]["template"]["spec"]["serviceAccountName"] == "shared";
        plane.until(DEPLOYMENT, &named(revisions.last().unwrap()), account).await;
    }
    let of = |wanted: &'static str| move |account: &Value| account["metadata"]["labels"]["of"] == wanted;
    plane.until("v1/ServiceAccount", &named("shared"), of("two")).await;
    plane.until_idle().await;
    let writes = plane.after(DAY).await;
    assert_eq!(plane.after(DAY).await, writes);
    // The one that looks at it for another reason writes it once, and the other one is not woken.
    plane.take_reads();
    report(&plane, &revisions[0], "True").await;
    plane.until("v1/ServiceAccount", &named("shared"), of("one")).await;
    plane.until_idle().await;
    assert_eq!(plane.after(DAY).await, writes + 1, "{:#?}", plane.log());
    assert_eq!(runs(&plane, &revisions[1]), 0);
}
