//! Definitions that providers bring.

use super::*;
use crate::life::packages::{PROVIDER, revision_of};
use transom_packages::Digest;

pub(super) const REVISION: &str = "pkg.crossplane.io/v1/ProviderRevision";
pub(super) const V1: &str = "r.io/acme/cloud:v1.0.0";
pub(super) const V2: &str = "r.io/acme/cloud:v2.0.0";

/// The CRD of a kind as a package has it.
pub(super) fn crd(kind: &str, field: &str) -> Value {
    let name = format!("{}s.cloud.io", kind.to_lowercase());
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
           "metadata": {"name": name, "creationTimestamp": null}, "spec": spec(kind, field)})
}

/// A provider with these capabilities and objects.
pub(super) fn provider(capabilities: &str, objects: &[Value]) -> String {
    let meta = format!(
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {{name: cloud}}\nspec: {{capabilities: [{capabilities}]}}\n"
    );
    objects.iter().fold(meta, |all, object| format!("{all}---\n{object}\n"))
}

pub(super) fn install(package: &str) -> String {
    json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "cloud"},
           "spec": {"package": package}})
    .to_string()
}

/// A plane with a provider whose content is established.
pub(super) async fn installed(capabilities: &str, objects: &[Value]) -> (Plane, Digest) {
    let plane = Plane::new().await;
    let digest = plane.registry.push(V1, &provider(capabilities, objects));
    plane.apply(&install(V1)).await;
    plane.until_true(REVISION, &revision_of("cloud", &digest), "RevisionHealthy").await;
    (plane, digest)
}

fn references(revision: &Value) -> Vec<(&str, &str)> {
    let list = revision["status"]["objectRefs"].as_array().into_iter().flatten();
    list.map(|r| (r["kind"].as_str().unwrap(), r["name"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn a_provider_defines_its_managed_resources() {
    let objects = [crd("Bucket", "size"), crd("ProviderConfig", "secret")];
    let (plane, digest) = installed("", &objects).await;
    let revision = revision_of("cloud", &digest);
    let definition = plane.until_true(MRD, BUCKETS, "Established").await;
    assert_eq!(definition["spec"]["state"], "Active");
    let text = |a: &str, b: &str, c| (a.to_owned(), b.to_owned(), c);
    let by_package =
        [text("ProviderRevision", &revision, Some(true)), text("Provider", "cloud", Some(false))];
    assert_eq!(owners(&definition), by_package);
    let made = plane.get(CRD, BUCKETS).await.unwrap();
    let by_definition =
        [text("ManagedResourceDefinition", BUCKETS, None), text("ProviderRevision", &revision, Some(true))];
    assert_eq!(owners(&made), by_definition);
    let config = plane.get(CRD, "providerconfigs.cloud.io").await.unwrap();
    assert_eq!(owners(&config), by_package);
    assert_eq!(plane.list(MRD).await.len(), 1);
    plane.apply(&bucket("one")).await;
    let object = plane.get(REVISION, &revision).await.unwrap();
    assert_eq!(
        references(&object),
        [("CustomResourceDefinition", "providerconfigs.cloud.io"), ("ManagedResourceDefinition", BUCKETS),]
    );
    assert_eq!(
        (status_of(&object, "RuntimeActive"), reason_of(&object, "RuntimeActive")),
        ("True", "ActiveRuntime")
    );
    for (kind, name) in [(REVISION, revision.as_str()), (MRD, BUCKETS), (PROVIDER, "cloud")] {
        assert_eq!(writes_after_touching(&plane, kind, name).await, [""; 0], "{kind} {name}");
    }
    // What is deleted by hand comes back, and nothing is lost.
    let uid = meta::uid(&plane.get(BUCKET, "one").await.unwrap()).to_owned();
    plane.delete(MRD, BUCKETS).await;
    plane
        .until(MRD, BUCKETS, |o| {
            meta::uid(o) != meta::uid(&definition) && status_of(o, "Established") == "True"
        })
        .await;
    assert_eq!(meta::uid(&plane.get(BUCKET, "one").await.unwrap()), uid);

    plane.delete(PROVIDER, "cloud").await;
    for name in [BUCKETS, "providerconfigs.cloud.io"] {
        plane.until_gone(CRD, name).await;
    }
    plane.until_gone(MRD, BUCKETS).await;
}

#[tokio::test]
async fn a_provider_that_starts_safely_waits_for_an_activation() {
    let objects = [crd("Bucket", "size"), crd("Disk", "size"), crd("ProviderConfig", "secret")];
    let (mut plane, digest) = installed("safe-start", &objects).await;
    let revision = revision_of("cloud", &digest);
    plane.until(MRD, BUCKETS, |o| reason_of(o, "Established") == "InactiveManagedResource").await;
    let message =
        "Package runtime is scaled to zero; awaiting the first ManagedResourceDefinition to be activated";
    let object = plane.until(REVISION, &revision, |r| status_of(r, "RuntimeActive") == "False").await;
    assert_eq!(
        (reason_of(&object, "RuntimeActive"), message_of(&object, "RuntimeActive")),
        ("AwaitingActivation", message)
    );
    assert_eq!(status_of(&object, "RuntimeHealthy"), "True");
    let package = plane.until_true(PROVIDER, "cloud", "Healthy").await;
    assert_eq!(
        (reason_of(&package, "Healthy"), message_of(&package, "Healthy")),
        ("AwaitingActivation", message)
    );
    plane.until_idle().await;
    assert!(plane.get(CRD, BUCKETS).await.is_none());
    assert!(plane.get(CRD, "providerconfigs.cloud.io").await.is_some());
    plane.start().await;
    assert_eq!(plane.until_idle().await, 0, "{:#?}", plane.log());

    plane.apply(&policy("disks", &["disks.*"])).await;
    plane.until_true(MRD, "disks.cloud.io", "Established").await;
    let object = plane.until_true(REVISION, &revision, "RuntimeActive").await;
    assert_eq!(reason_of(&object, "RuntimeActive"), "ActiveRuntime");
    plane.until(PROVIDER, "cloud", |p| message_of(p, "Healthy").contains("not run here")).await;
    plane.until_idle().await;
    assert!(plane.get(CRD, BUCKETS).await.is_none());
    // More of them are activated, which is nothing new for the revision.
    let before = plane.sent(&format!("PUT /apis/pkg.crossplane.io/v1/providerrevisions/{revision}"));
    plane.apply(&policy("all", &["*"])).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.until_idle().await;
    assert_eq!(plane.sent(&format!("PUT /apis/pkg.crossplane.io/v1/providerrevisions/{revision}")), before);
}

#[tokio::test]
async fn a_policy_that_is_there_first_activates_what_a_provider_brings() {
    let plane = Plane::new().await;
    plane.apply(&policy("default", &["*"])).await;
    let digest = plane.registry.push(V1, &provider("SafeStart", &[crd("Bucket", "size")]));
    plane.apply(&install(V1)).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.until_true(REVISION, &revision_of("cloud", &digest), "RuntimeActive").await;
    plane.apply(&bucket("one")).await;
    assert_eq!(writes_after_touching(&plane, PROVIDER, "cloud").await, [""; 0]);
}

#[tokio::test]
async fn an_upgrade_keeps_states_and_moves_control() {
    let objects = |field: &str| [crd("Bucket", field), crd("Disk", field)];
    let (plane, first) = installed("safe-start", &objects("size")).await;
    plane.apply(&policy("buckets", &["buckets.*"])).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.apply(&bucket("one")).await;
    let before = plane.get(CRD, BUCKETS).await.unwrap();
    plane.until_idle().await;
    let states = plane.record(CRD, "customresourcedefinitions").await;
    let second = plane.registry.push(V2, &provider("safe-start", &objects("colour")));
    plane.patch(PROVIDER, "cloud", json!({"spec": {"package": V2}})).await;
    let (old, new) = (revision_of("cloud", &first), revision_of("cloud", &second));
    plane.until_true(REVISION, &new, "RevisionHealthy").await;
    let moved = |crd: &Value| meta::controller_of(crd).is_some_and(|controller| controller.name == new);
    let after = plane.until(CRD, BUCKETS, moved).await;
    plane.until_idle().await;
    assert_eq!(meta::uid(&after), meta::uid(&before));
    let fields =
        &after["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    assert_eq!(*fields, json!({"colour": {"type": "string"}}));
    assert_eq!(plane.get(MRD, "disks.cloud.io").await.unwrap()["spec"]["state"], "Inactive");
    assert!(plane.get(CRD, "disks.cloud.io").await.is_none());
    plane.until_true(REVISION, &new, "RuntimeActive").await;
    for crd in states.lock().unwrap().iter().filter(|crd| meta::name(crd) == BUCKETS) {
        assert!(owners(crd).iter().any(|owner| owner.0 == "ManagedResourceDefinition"), "{crd:#}");
        assert!(!meta::is_deleting(crd));
    }
    assert!(plane.get(BUCKET, "one").await.is_some());

    // And back.
    plane.patch(PROVIDER, "cloud", json!({"spec": {"package": V1}})).await;
    plane.until(CRD, BUCKETS, |crd| meta::controller_of(crd).is_some_and(|c| c.name == old)).await;
    plane.until_idle().await;
    assert_eq!(meta::uid(&plane.get(CRD, BUCKETS).await.unwrap()), meta::uid(&before));
}

#[tokio::test]
async fn a_definition_that_is_dropped_stays_with_its_package() {
    let (plane, _) = installed("", &[crd("Bucket", "size"), crd("Disk", "size")]).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.apply(&bucket("one")).await;
    let second = plane.registry.push(V2, &provider("", &[crd("Disk", "size")]));
    plane.patch(PROVIDER, "cloud", json!({"spec": {"package": V2, "revisionHistoryLimit": 1}})).await;
    plane.until_true(REVISION, &revision_of("cloud", &second), "RevisionHealthy").await;
    let released = |crd: &Value| meta::controller_of(crd).is_none();
    plane.until(CRD, BUCKETS, released).await;
    plane.until_idle().await;
    assert!(plane.get(BUCKET, "one").await.is_some());
    assert_eq!(status_of(&plane.get(MRD, BUCKETS).await.unwrap(), "Established"), "True");
    plane.delete(PROVIDER, "cloud").await;
    plane.until_gone(CRD, BUCKETS).await;
}

#[tokio::test]
async fn versions_that_a_provider_converts_are_refused_by_name() {
    let plane = Plane::new().await;
    let mut converted = crd("Disk", "size");
    converted["spec"]["conversion"] =
        json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}});
    let digest = plane.registry.push(V1, &provider("", &[crd("Bucket", "size"), converted]));
    plane.apply(&install(V1)).await;
    let revision = revision_of("cloud", &digest);
    let object = plane.until(REVISION, &revision, |r| status_of(r, "RevisionHealthy") == "False").await;
    assert_eq!(
        message_of(&object, "RevisionHealthy"),
        "cannot establish control of object: cannot deploy a CRD with webhook conversion strategy without having a TLS \
         bundle: the versions of \"disks.cloud.io\" are converted by the package's own server, which does not run"
    );
    assert!(plane.get(MRD, BUCKETS).await.is_none(), "nothing of it is there");
    plane.until(PROVIDER, "cloud", |p| message_of(p, "Healthy").contains("disks.cloud.io")).await;
}

/// What a revision says when it cannot be established.
async fn refusal(plane: &Plane, digest: &Digest) -> String {
    let name = revision_of("cloud", digest);
    let object = plane.until(REVISION, &name, |r| status_of(r, "RevisionHealthy") == "False").await;
    message_of(&object, "RevisionHealthy").to_owned()
}

#[tokio::test]
async fn a_provider_with_a_crd_that_the_server_refuses_is_not_installed() {
    let plane = Plane::new().await;
    let mut wrong = crd("Disk", "size");
    wrong["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"] = "int".into();
    for capabilities in ["", "safe-start"] {
        let digest =
            plane.registry.push(V1, &provider(capabilities, &[crd("Bucket", "size"), wrong.clone()]));
        plane.apply(&install(V1)).await;
        let why = refusal(&plane, &digest).await;
        let start = "cannot establish control of object: cannot establish control of ManagedResourceDefinition \"disks.cloud.io\": ";
        assert!(why.starts_with(start) && why.contains("\"int\""), "{why}");
        plane.until_idle().await;
        assert!(plane.list(MRD).await.is_empty());
        plane.delete(PROVIDER, "cloud").await;
        plane.until_gone(REVISION, &revision_of("cloud", &digest)).await;
    }
}

#[tokio::test]
async fn an_upgrade_that_a_crd_cannot_follow_changes_nothing() {
    let (plane, _) = installed("", &[crd("Bucket", "size"), crd("Disk", "size")]).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.until_true(MRD, "disks.cloud.io", "Established").await;
    plane.until_idle().await;
    let mut other = crd("Disk", "size");
    other["spec"]["versions"][0]["name"] = "v2".into();
    let second = plane.registry.push(V2, &provider("", &[crd("Bucket", "colour"), other]));
    plane.patch(PROVIDER, "cloud", json!({"spec": {"package": V2}})).await;
    let why = refusal(&plane, &second).await;
    assert!(
        why.contains("ManagedResourceDefinition \"disks.cloud.io\"") && why.contains("storedVersions"),
        "{why}"
    );
    plane.until_idle().await;
    let versions = plane.get(MRD, BUCKETS).await.unwrap()["spec"]["versions"].clone();
    assert_eq!(versions, spec("Bucket", "size")["versions"]);
}

#[tokio::test]
async fn a_provider_does_not_take_the_crd_of_something_else() {
    let plane = Plane::new().await;
    plane.apply(&crate::life::basics::definition("Cluster", false)).await;
    plane.until_true(crate::life::basics::XRD, "xthings.example.org", "Established").await;
    let mut taken = crd("XThing", "size");
    taken["metadata"]["name"] = "xthings.example.org".into();
    taken["spec"]["group"] = "example.org".into();
    let digest = plane.registry.push(V1, &provider("", &[taken]));
    plane.apply(&install(V1)).await;
    let why = refusal(&plane, &digest).await;
    let owner = "CustomResourceDefinition \"xthings.example.org\" exists, and is controlled by \
                 CompositeResourceDefinition \"xthings.example.org\"";
    assert!(why.ends_with(owner), "{why}");
    assert!(plane.list(MRD).await.is_empty());
}
