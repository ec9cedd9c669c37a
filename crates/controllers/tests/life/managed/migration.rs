//! Providers that were installed before there were definitions: their CRDs are adopted, and nothing is lost.

use super::providers::{REVISION, V2, crd, installed, provider};
use super::*;
use crate::life::packages::{PROVIDER, revision_of};
use transom_packages::Digest;

/// A plane without controllers, as it was left by controllers that knew no definitions: the revision controls the CRD, and
/// there is an object of it.
async fn without_definitions(capabilities: &str) -> (Plane, Digest) {
    let (mut plane, digest) = installed(capabilities, &[crd("Bucket", "size")]).await;
    plane.patch(MRD, BUCKETS, json!({"spec": {"state": "Active"}})).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.apply(&bucket("one")).await;
    plane.until_idle().await;
    plane.stop();
    let name = revision_of("cloud", &digest);
    let mut revision = plane.get(REVISION, &name).await.unwrap();
    let definition = plane.get(MRD, BUCKETS).await.unwrap();
    let mut made = plane.get(CRD, BUCKETS).await.unwrap();
    made["metadata"]["ownerReferences"] = definition["metadata"]["ownerReferences"].clone();
    for entry in made["metadata"]["managedFields"].as_array_mut().unwrap() {
        entry["manager"] = "crossplane".into();
        entry["operation"] = "Update".into();
    }
    let made = plane.user.update(&made, "crossplane").await.unwrap();
    assert!(managers(&made).iter().all(|manager| manager.starts_with("crossplane Update")), "{made:#}");
    plane.delete_with(MRD, BUCKETS, Some("Orphan")).await;
    plane.until_gone(MRD, BUCKETS).await;
    let reference = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                           "name": BUCKETS, "uid": meta::uid(&made)});
    revision["status"]["objectRefs"] = json!([reference]);
    revision["status"]["conditions"] = json!([]);
    plane.user.update_status(&revision, "crossplane").await.unwrap();
    (plane, digest)
}

/// What must not change.
async fn identities(plane: &Plane) -> (String, String) {
    let uid = |object: Option<Value>| meta::uid(&object.unwrap()).to_owned();
    (uid(plane.get(CRD, BUCKETS).await), uid(plane.get(BUCKET, "one").await))
}

#[tokio::test]
async fn crds_are_adopted_without_a_moment_of_absence() {
    let (mut plane, digest) = without_definitions("").await;
    let before = identities(&plane).await;
    let states = plane.record(CRD, "customresourcedefinitions").await;
    plane.start().await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.until_idle().await;
    assert_eq!(identities(&plane).await, before);
    let revision = revision_of("cloud", &digest);
    let crd = plane.get(CRD, BUCKETS).await.unwrap();
    let controller = meta::controller_of(&crd).unwrap();
    assert_eq!((controller.kind.as_str(), controller.name.as_str()), ("ProviderRevision", revision.as_str()));
    assert!(owners(&crd).iter().any(|owner| owner.0 == "ManagedResourceDefinition"), "{crd:#}");
    for crd in states.lock().unwrap().iter().filter(|crd| meta::name(crd) == BUCKETS) {
        assert!(!meta::owner_references(crd).is_empty() && !meta::is_deleting(crd), "{crd:#}");
    }
    let object = plane.get(REVISION, &revision).await.unwrap();
    assert_eq!(object["status"]["objectRefs"][0]["kind"], "ManagedResourceDefinition");
    // The second time there is nothing left to do.
    plane.start().await;
    assert_eq!(plane.until_idle().await, 0, "{:#?}", plane.log());
    plane.delete(PROVIDER, "cloud").await;
    plane.until_gone(CRD, BUCKETS).await;
}

#[tokio::test]
async fn crds_are_adopted_by_another_revision() {
    let (mut plane, _) = without_definitions("").await;
    let before = identities(&plane).await;
    let second = plane.registry.push(V2, &provider("", &[crd("Bucket", "size"), crd("Disk", "size")]));
    plane.patch(PROVIDER, "cloud", json!({"spec": {"package": V2}})).await;
    plane.start().await;
    let new = revision_of("cloud", &second);
    plane.until(CRD, BUCKETS, |crd| meta::controller_of(crd).is_some_and(|c| c.name == new)).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.until_idle().await;
    assert_eq!(identities(&plane).await, before);
    plane.start().await;
    assert_eq!(plane.until_idle().await, 0, "{:#?}", plane.log());
}

#[tokio::test]
async fn a_crd_of_an_inactive_definition_stays_until_it_is_adopted() {
    let (mut plane, first) = without_definitions("safe-start").await;
    let before = identities(&plane).await;
    plane.start().await;
    plane.until(MRD, BUCKETS, |o| reason_of(o, "Established") == "InactiveManagedResource").await;
    plane.until_idle().await;
    assert_eq!(identities(&plane).await, before);
    // The next revision controls the definition, and the CRD is still controlled by the first.
    let second = plane.registry.push(V2, &provider("safe-start", &[crd("Bucket", "colour")]));
    plane.patch(PROVIDER, "cloud", json!({"spec": {"package": V2}})).await;
    let new = revision_of("cloud", &second);
    plane.until_true(REVISION, &new, "RevisionHealthy").await;
    plane.until_idle().await;
    let controller = meta::controller_of(&plane.get(CRD, BUCKETS).await.unwrap()).unwrap();
    assert_eq!(controller.name, revision_of("cloud", &first));
    plane.apply(&policy("all", &["*"])).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.until_idle().await;
    let crd = plane.get(CRD, BUCKETS).await.unwrap();
    assert_eq!(meta::controller_of(&crd).unwrap().name, new);
    assert_eq!(identities(&plane).await, before);
    plane.start().await;
    assert_eq!(plane.until_idle().await, 0, "{:#?}", plane.log());
}
