//! Functions: their revisions, which of them is called, and what needs no registry.

use super::*;
use crate::life::basics::{XR, composition, things, xr};
use serde_json::json;
use std::time::Duration;
use transom_function::testing::serve;
use transom_function::{Error, Function, RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_object::meta;

const AUTO_READY: &str = "xpkg.example.org/crossplane-contrib/function-auto-ready";

/// A function that says a word in the status of composite resources.
pub(super) struct Says(pub(super) &'static str);

#[async_trait]
impl Function for Says {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let mut response = request.start_response();
        response.meta.get_or_insert_default().ttl = None;
        response.composite().set("status.size", self.0)?;
        Ok(response)
    }
}

fn with(manifest: &str, spec: &str) -> String {
    manifest.replace("spec: {", &format!("spec: {{{spec}, "))
}

fn annotated(manifest: &str, annotations: &str) -> String {
    manifest.replace("metadata: {", &format!("metadata: {{annotations: {{{annotations}}}, "))
}

/// The revision of a Function that is not pulled: named by the digest of what identifies it.
fn unpulled(function: &str, identity: &str) -> String {
    revision_of(function, &Digest::of(identity.as_bytes()))
}

fn state(revision: &Value) -> (i64, &str) {
    (revision["spec"]["revision"].as_i64().unwrap(), revision["spec"]["desiredState"].as_str().unwrap())
}

async fn states(plane: &Plane) -> Vec<(i64, String)> {
    let revisions = plane.list(FUNCTION_REVISION).await;
    let mut all: Vec<_> = revisions.iter().map(|r| (state(r).0, state(r).1.to_owned())).collect();
    all.sort();
    all
}

/// A composite resource that is composed again, with a message that the test chooses.
async fn until_says(plane: &Plane, word: &str) {
    plane.until(XR, "one", |o| o["status"]["size"] == word).await;
}

async fn poke(plane: &Plane, word: &str) {
    plane.patch(XR, "one", json!({"metadata": {"annotations": {"poke": word}}})).await;
}

#[tokio::test]
async fn a_built_in_has_a_revision_and_asks_no_registry() {
    let plane = Plane::new().await;
    let manifest = install_function("ready", &format!("{AUTO_READY}:v0.4.2"))
        .replace("metadata: {", "metadata: {labels: {channel: stable}, ");
    plane.apply(&manifest).await;
    let function = plane.until(FUNCTION, "ready", is_healthy).await;
    let name = unpulled("ready", &format!("{AUTO_READY}:v0.4.2"));
    let status = &function["status"];
    assert_eq!(status["currentRevision"], *name);
    assert_eq!(status["currentIdentifier"], format!("{AUTO_READY}:v0.4.2"));
    assert_eq!(status["resolvedPackage"], format!("{AUTO_READY}:v0.4.2"));
    assert_eq!(
        (reason_of(&function, "Installed"), reason_of(&function, "Healthy")),
        ("ActivePackageRevision", "HealthyPackageRevision")
    );
    assert_eq!(message_of(&function, "Healthy"), "runs in this process; equals function-auto-ready v0.7.0");

    let revision = plane.get(FUNCTION_REVISION, &name).await.unwrap();
    assert_eq!(state(&revision), (1, "Active"));
    assert_eq!(revision["spec"]["image"], format!("{AUTO_READY}:v0.4.2"));
    assert_eq!(revision["spec"]["tlsServerSecretName"], "ready-tls-server");
    assert_eq!(meta::label(&revision, "pkg.crossplane.io/package"), Some("ready"));
    assert_eq!(
        meta::label(&revision, "channel"),
        Some("stable"),
        "labels of the Function are its revisions'"
    );
    assert_eq!(meta::finalizers(&revision), ["revision.pkg.crossplane.io"]);
    assert_eq!(meta::controller_of(&revision).unwrap().name, "ready");
    assert_eq!(
        (status_of(&revision, "RevisionHealthy"), status_of(&revision, "RuntimeHealthy")),
        ("True", "True")
    );
    assert_eq!(message_of(&revision, "RuntimeHealthy"), message_of(&function, "Healthy"));
    assert_eq!(revision["status"]["capabilities"], json!(["composition"]));
    assert_eq!(revision["status"]["endpoint"], "in-process");
    assert_eq!(meta::annotation(&revision, "transom.io/image-digest"), None, "there is no image");

    let lock = plane.until_true(LOCK, "lock", "Resolved").await;
    let entry = &lock["packages"][0];
    assert_eq!((&entry["name"], &entry["source"]), (&json!(name), &json!(AUTO_READY)));
    assert_eq!((&entry["version"], &entry["kind"]), (&json!("v0.4.2"), &json!("Function")));
    plane.until_idle().await;
    assert_eq!(plane.registry.take_requests(), [""; 0]);
    let events = plane.events_of("ready").await;
    assert!(events.iter().any(|e| e.starts_with("Normal InstallPackageRevision")), "{events:?}");
    let events = plane.events_of(&name).await;
    assert!(events.iter().any(|e| e.starts_with("Normal SyncPackage")), "{events:?}");
}

#[tokio::test]
async fn another_tag_of_a_built_in_is_another_revision_and_history_has_a_limit() {
    let plane = Plane::new().await;
    let image = |n: usize| format!("{AUTO_READY}:v0.{n}.0");
    plane.apply(&install_function("ready", &image(1))).await;
    plane.until(FUNCTION, "ready", is_healthy).await;
    for n in 2..=4 {
        plane.patch(FUNCTION, "ready", json!({"spec": {"package": image(n)}})).await;
        let current = unpulled("ready", &image(n));
        plane.until(FUNCTION, "ready", |f| f["status"]["currentRevision"] == *current && is_healthy(f)).await;
    }
    plane.until_gone(FUNCTION_REVISION, &unpulled("ready", &image(2))).await;
    plane.until_idle().await;
    assert_eq!(states(&plane).await, [(3, "Inactive".to_owned()), (4, "Active".to_owned())]);
    let old = plane.get(FUNCTION_REVISION, &unpulled("ready", &image(3))).await.unwrap();
    assert_eq!((status_of(&old, "RuntimeHealthy"), &old["status"]["endpoint"]), ("Unknown", &Value::Null));
    let lock = plane.get(LOCK, "lock").await.unwrap();
    assert_eq!(lock["packages"].as_array().unwrap().len(), 1);
    assert_eq!(lock["packages"][0]["version"], "v0.4.0");
    assert!(plane.functions.router.knows("ready"));
    // A roll-back finds the old revision.
    plane.patch(FUNCTION, "ready", json!({"spec": {"package": image(3)}})).await;
    let current = unpulled("ready", &image(3));
    plane.until(FUNCTION, "ready", |f| f["status"]["currentRevision"] == *current && is_healthy(f)).await;
    plane.until_idle().await;
    assert_eq!(states(&plane).await, [(4, "Inactive".to_owned()), (5, "Active".to_owned())]);
    assert_eq!(plane.registry.take_requests(), [""; 0]);
}

/// A plane with a function at an endpoint, and a composite resource that it composes.
async fn at_endpoint(more: &str) -> (Plane, String) {
    let plane = Plane::new().await;
    let address = serve(Says("one")).await.to_string();
    plane.apply(&with(&at(&address), more)).await;
    things(&plane, &["remote"]).await;
    plane.apply(&xr("one", "small")).await;
    (plane, address)
}

pub(super) fn at(address: &str) -> String {
    annotated(
        &install_function("remote", "example.org/remote:v1"),
        &format!("transom.io/endpoint: '{address}'"),
    )
}

#[tokio::test]
async fn an_endpoint_needs_no_registry_and_another_one_is_another_revision() {
    let (plane, first) = at_endpoint("revisionHistoryLimit: 3").await;
    let function = plane.until(FUNCTION, "remote", is_healthy).await;
    let name = unpulled("remote", &format!("example.org/remote:v1\n{first}"));
    assert_eq!(function["status"]["currentRevision"], *name);
    let revision = plane.get(FUNCTION_REVISION, &name).await.unwrap();
    assert_eq!(revision["status"]["endpoint"], *first);
    assert_eq!(meta::annotation(&revision, "transom.io/endpoint"), Some(first.as_str()));
    until_says(&plane, "one").await;

    // The next one does not listen yet: the one before is called until it does.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let missing = listener.local_addr().unwrap().to_string();
    drop(listener);
    plane.apply(&at(&missing)).await;
    let named = |f: &Value| message_of(f, "Healthy").contains(&missing);
    let ill = plane.until(FUNCTION, "remote", named).await;
    assert_eq!((status_of(&ill, "Installed"), status_of(&ill, "Healthy")), ("True", "False"));
    assert!(message_of(&ill, "Healthy").starts_with("Package runtime health is \"False\" with message: "));
    plane.until_queues_are_idle().await;
    poke(&plane, "still there").await;
    plane.until_queues_are_idle().await;
    assert_eq!(status_of(&plane.get(XR, "one").await.unwrap(), "Synced"), "True");
    assert_eq!(plane.functions.router.active("remote").unwrap().1.target(), first);

    let second = serve(Says("two")).await.to_string();
    plane.apply(&at(&second)).await;
    plane.until(FUNCTION, "remote", is_healthy).await;
    poke(&plane, "the next").await;
    until_says(&plane, "two").await;
    plane.apply(&at(&first)).await;
    plane.until(FUNCTION, "remote", |f| f["status"]["currentRevision"] == *name && is_healthy(f)).await;
    poke(&plane, "back again").await;
    until_says(&plane, "one").await;
    assert_eq!(states(&plane).await.last().unwrap(), &(4, "Active".to_owned()));
    assert_eq!(plane.registry.take_requests(), [""; 0]);
}

#[tokio::test]
async fn after_a_restart_the_revision_before_is_called_while_the_active_one_is_not_ready() {
    let (mut plane, _) = at_endpoint("revisionHistoryLimit: 3").await;
    until_says(&plane, "one").await;
    plane.until(FUNCTION, "remote", is_healthy).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let missing = listener.local_addr().unwrap().to_string();
    drop(listener);
    plane.apply(&at(&missing)).await;
    plane.until(FUNCTION, "remote", |f| message_of(f, "Healthy").contains(&missing)).await;
    plane.stop();
    plane.functions = TestFunctions::default();
    plane.start().await;
    assert!(plane.functions.router.knows("remote"));
    let (active, instance) = plane.functions.router.active("remote").unwrap();
    assert_ne!(instance.target(), missing, "{active}");
}

#[tokio::test]
async fn a_function_that_is_activated_by_hand_cannot_be_called_before() {
    let (plane, address) = at_endpoint("revisionActivationPolicy: Manual").await;
    let inactive = |f: &Value| reason_of(f, "Installed") == "InactivePackageRevision";
    let function = plane.until(FUNCTION, "remote", inactive).await;
    assert_eq!(message_of(&function, "Installed"), "Package is inactive");
    let words = "there is no function \"remote\": Function \"remote\" has no active revision; set spec.desiredState: Active";
    plane.until(XR, "one", |o| message_of(o, "Synced").contains(words)).await;
    let first = unpulled("remote", &format!("example.org/remote:v1\n{address}"));
    let activate = json!({"spec": {"desiredState": "Active"}});
    plane.patch(FUNCTION_REVISION, &first, activate.clone()).await;
    plane.until(FUNCTION, "remote", is_healthy).await;
    poke(&plane, "active").await;
    until_says(&plane, "one").await;

    // Users activate and deactivate revisions as they wish.
    let second = serve(Says("two")).await.to_string();
    plane.apply(&with(&at(&second), "revisionActivationPolicy: Manual")).await;
    let new = unpulled("remote", &format!("example.org/remote:v1\n{second}"));
    let older = format!("package revision {new:?} is inactive; {first:?} is active");
    plane.until(FUNCTION, "remote", |f| is_healthy(f) && message_of(f, "Installed") == older).await;
    plane.until_idle().await;
    let states_are = |one: &str, two: &str| [(1, one.to_owned()), (2, two.to_owned())];
    assert_eq!(states(&plane).await, states_are("Active", "Inactive"));
    poke(&plane, "still the first").await;
    until_says(&plane, "one").await;
    plane.patch(FUNCTION_REVISION, &new, activate).await;
    plane.until(FUNCTION, "remote", |f| is_healthy(f) && message_of(f, "Installed").is_empty()).await;
    plane.until_true(FUNCTION_REVISION, &new, "RuntimeHealthy").await;
    poke(&plane, "the second").await;
    until_says(&plane, "two").await;
    plane.until_idle().await;
    assert_eq!(states(&plane).await, states_are("Active", "Active"));
    let deactivate = json!({"spec": {"desiredState": "Inactive"}});
    plane.patch(FUNCTION_REVISION, &new, deactivate.clone()).await;
    plane.until(FUNCTION, "remote", |f| message_of(f, "Installed") == older).await;
    plane.patch(FUNCTION_REVISION, &first, deactivate).await;
    plane.until(FUNCTION, "remote", inactive).await;
    plane.until_idle().await;
    assert_eq!(states(&plane).await, states_are("Inactive", "Inactive"));
    assert!(!plane.functions.router.knows("remote"), "neither is called");
    poke(&plane, "inactive").await;
    plane.until(XR, "one", |o| message_of(o, "Synced").contains(words)).await;
}

#[tokio::test]
async fn a_paused_function_goes_on_with_what_it_has() {
    let (mut plane, first) = at_endpoint("revisionHistoryLimit: 1").await;
    plane.until(FUNCTION, "remote", is_healthy).await;
    until_says(&plane, "one").await;
    let paused = json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}});
    plane.patch(FUNCTION, "remote", paused).await;
    plane.until(FUNCTION, "remote", |f| reason_of(f, "Synced") == "ReconcilePaused").await;
    let second = serve(Says("two")).await.to_string();
    let move_on = json!({"metadata": {"annotations": {"transom.io/endpoint": second}}});
    plane.patch(FUNCTION, "remote", move_on).await;
    plane.until_idle().await;
    plane.start().await;
    plane.until_idle().await;
    assert_eq!(states(&plane).await, [(1, "Active".to_owned())]);
    let (_, instance) = plane.functions.router.active("remote").unwrap();
    assert_eq!(instance.target(), first);
    let on = json!({"metadata": {"annotations": {"crossplane.io/paused": null}}});
    plane.patch(FUNCTION, "remote", on).await;
    plane.until(FUNCTION, "remote", |f| is_healthy(f) && status_of(f, "Synced").is_empty()).await;
    poke(&plane, "go on").await;
    until_says(&plane, "two").await;
}

#[tokio::test]
async fn a_deleted_function_cannot_be_called_and_leaves_nothing() {
    let (plane, address) = at_endpoint("revisionHistoryLimit: 1").await;
    plane.until(FUNCTION, "remote", is_healthy).await;
    until_says(&plane, "one").await;
    plane.delete(FUNCTION, "remote").await;
    let name = unpulled("remote", &format!("example.org/remote:v1\n{address}"));
    plane.until_gone(FUNCTION_REVISION, &name).await;
    plane.until(LOCK, "lock", |l| l["packages"].as_array().is_none_or(Vec::is_empty)).await;
    plane.until_idle().await;
    assert!(!plane.functions.router.knows("remote"));
    poke(&plane, "gone").await;
    plane.until(XR, "one", |o| message_of(o, "Synced").contains("no such Function is installed")).await;
    // And the same again.
    plane.apply(&at(&address)).await;
    plane.until(FUNCTION, "remote", is_healthy).await;
    poke(&plane, "back").await;
    plane.until_true(XR, "one", "Synced").await;
}

#[tokio::test]
async fn a_revision_that_a_user_deletes_comes_back_and_is_called_meanwhile() {
    let (plane, address) = at_endpoint("revisionHistoryLimit: 1").await;
    plane.until(FUNCTION, "remote", is_healthy).await;
    let name = unpulled("remote", &format!("example.org/remote:v1\n{address}"));
    let uid = meta::uid(&plane.get(FUNCTION_REVISION, &name).await.unwrap()).to_owned();
    plane.delete(FUNCTION_REVISION, &name).await;
    assert!(plane.functions.router.knows("remote"));
    plane
        .until(FUNCTION_REVISION, &name, |r| meta::uid(r) != uid && status_of(r, "RuntimeHealthy") == "True")
        .await;
    assert!(plane.functions.router.knows("remote"));
    plane.until(FUNCTION, "remote", is_healthy).await;
}

#[tokio::test]
async fn built_ins_satisfy_dependencies_and_concern_only_their_dependents() {
    let plane = Plane::new().await;
    let spec = format!("  dependsOn:\n  - {{function: {AUTO_READY}, version: '>=v0.5.0'}}\n");
    let package = |spec: &str, name: &str| configuration(name, spec, &[composition(name, &["ready"])]);
    plane.registry.push("r.io/acme/a:v1.0.0", &package(&spec, "a"));
    plane.registry.push("r.io/acme/other:v1.0.0", &package("", "other"));
    plane.apply(&install_function("ready", &format!("{AUTO_READY}:v0.4.0"))).await;
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    plane.apply(&install("other", "r.io/acme/other:v1.0.0")).await;
    plane.until(CONFIGURATION, "other", is_healthy).await;
    let named = format!("existing package {AUTO_READY}@v0.4.0 is incompatible with constraint >=v0.5.0");
    plane.until(CONFIGURATION, "a", |p| message_of(p, "Healthy").contains(&named)).await;
    plane.until_idle().await;
    plane.take_reads();
    plane.patch(FUNCTION, "ready", json!({"spec": {"package": format!("{AUTO_READY}:v0.6.0")}})).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    plane.until_idle().await;
    let reads = plane.take_reads();
    let of = |name: &str| reads.iter().any(|read| read.contains(&format!("/configurationrevisions/{name}-")));
    assert!(of("a") && !of("other"), "{reads:#?}");
    assert_eq!(plane.list(FUNCTION).await.len(), 1, "nothing else was installed");
    // By digest, too.
    let digest = Digest::of(b"x");
    plane.patch(FUNCTION, "ready", json!({"spec": {"package": format!("{AUTO_READY}@{digest}")}})).await;
    let pinned =
        |l: &Value| l["packages"].as_array().unwrap().iter().any(|p| p["version"] == digest.as_str());
    plane.until(LOCK, "lock", pinned).await;
}

fn packaged(n: usize) -> String {
    function_package("packaged", &format!("  crossplane: {{version: '>=v1.{n}.0'}}\n"))
}

#[tokio::test]
async fn a_package_that_cannot_be_run_is_healthy_but_for_its_runtime() {
    let plane = Plane::new().await;
    let documents = format!(
        "{}---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: inputs.fn.io}}\nspec:\n  \
         group: fn.io\n  scope: Cluster\n  names: {{kind: Input, plural: inputs}}\n  versions: []\n",
        packaged(1)
    );
    let digest = plane.registry.push("r.io/acme/packaged:v1.0.0", &documents);
    plane.apply(&install_function("packaged", "r.io/acme/packaged:v1.0.0")).await;
    let name = revision_of("packaged", &digest);
    let revision = plane.until(FUNCTION_REVISION, &name, |r| status_of(r, "RuntimeHealthy") == "False").await;
    assert_eq!(status_of(&revision, "RevisionHealthy"), "True");
    assert_eq!(meta::annotation(&revision, "transom.io/image-digest"), Some(digest.as_str()));
    assert_eq!(revision["status"]["capabilities"], json!(["composition"]));
    assert_eq!(revision["status"].get("objectRefs"), None, "a Function establishes nothing");
    let words = "\"packaged\" is not built in: this runtime does not run packages; or say where the function \
                 listens with the annotation transom.io/endpoint";
    assert_eq!(message_of(&revision, "RuntimeHealthy"), words);
    let function = plane.until(FUNCTION, "packaged", |f| message_of(f, "Healthy").ends_with(words)).await;
    assert_eq!((status_of(&function, "Installed"), status_of(&function, "Healthy")), ("True", "False"));
    let crd = plane.get("apiextensions.k8s.io/v1/CustomResourceDefinition", "inputs.fn.io").await;
    assert!(crd.is_none(), "input documentation only");
    plane.until_true(LOCK, "lock", "Resolved").await;
    // Its endpoint becomes known: the package is not needed.
    let address = serve(Says("one")).await;
    let endpoint = json!({"metadata": {"annotations": {"transom.io/endpoint": address.to_string()}}});
    plane.patch(FUNCTION, "packaged", endpoint).await;
    plane.until(FUNCTION, "packaged", is_healthy).await;
}

#[tokio::test]
async fn packages_of_functions_are_upgraded_and_rolled_back() {
    let plane = Plane::new().await;
    plane.function("packaged", |mut request| Ok(request.start_response())).await;
    let digests: Vec<Digest> =
        (1..=2).map(|n| plane.registry.push(&format!("r.io/acme/packaged:v{n}.0.0"), &packaged(n))).collect();
    for (n, number) in [(1, 2), (2, 3), (1, 4)] {
        plane
            .patch(FUNCTION, "packaged", json!({"spec": {"package": format!("r.io/acme/packaged:v{n}.0.0")}}))
            .await;
        let current = revision_of("packaged", &digests[n - 1]);
        plane
            .until(FUNCTION, "packaged", |f| f["status"]["currentRevision"] == *current && is_healthy(f))
            .await;
        assert!(plane.functions.router.knows("packaged"));
        plane.until_idle().await;
        assert_eq!(state(&plane.get(FUNCTION_REVISION, &current).await.unwrap()), (number, "Active"));
        assert_eq!(plane.functions.router.active("packaged").unwrap().0.revision, current);
    }
    plane.patch(FUNCTION, "packaged", json!({"spec": {"package": "r.io/acme/packaged:v9.0.0"}})).await;
    let unpacking = |f: &Value| reason_of(f, "Installed") == "UnpackingPackage";
    plane.until(FUNCTION, "packaged", unpacking).await;
    assert!(plane.functions.router.knows("packaged"), "what is installed stays");
}

#[tokio::test]
async fn a_built_in_can_be_forced_to_be_its_package() {
    let plane = Plane::new().await;
    let image = "r.io/acme/function-auto-ready:v0.4.0";
    let digest = plane.registry.push(image, &function_package("function-auto-ready", ""));
    plane.apply(&annotated(&install_function("ready", image), "transom.io/runtime: Package")).await;
    let pulled = revision_of("ready", &digest);
    plane.until(FUNCTION, "ready", |f| f["status"]["currentRevision"] == *pulled).await;
    plane.until_idle().await;
    let asked = plane.registry.take_requests();
    assert!(asked.iter().any(|r| r.starts_with("resolve r.io/acme/function-auto-ready")), "{asked:?}");
    plane.patch(FUNCTION, "ready", json!({"metadata": {"annotations": {"transom.io/runtime": null}}})).await;
    let built_in = unpulled("ready", image);
    plane.until(FUNCTION, "ready", |f| f["status"]["currentRevision"] == *built_in && is_healthy(f)).await;
    plane.until_idle().await;
    assert_eq!(plane.registry.take_requests(), [""; 0]);
    assert_eq!(states(&plane).await, [(1, "Inactive".to_owned()), (2, "Active".to_owned())]);
}

#[tokio::test]
async fn a_restart_writes_nothing_and_functions_are_callable_at_once() {
    let mut plane = Plane::new().await;
    let address = serve(Says("one")).await.to_string();
    plane.apply(&at(&address)).await;
    plane.apply(&install_function("ready", &format!("{AUTO_READY}:v0.4.2"))).await;
    plane.function("packaged", |mut request| Ok(request.start_response())).await;
    for name in ["remote", "ready", "packaged"] {
        plane.until(FUNCTION, name, is_healthy).await;
    }
    plane.until_idle().await;
    for name in ["remote", "ready", "packaged"] {
        plane.functions.router.remove(name);
    }
    plane.registry.take_requests();
    plane.start().await;
    for name in ["remote", "ready", "packaged"] {
        assert!(plane.functions.router.knows(name), "{name} is callable before anything is reconciled");
    }
    assert_eq!(plane.until_idle().await, 0, "{:#?}", plane.log());
    plane.registry.take_requests();
    let before = plane.until_idle().await;
    plane.after(Duration::from_secs(3600)).await;
    assert_eq!(plane.log()[usize::try_from(before).unwrap()..], [""; 0]);
    assert_eq!(plane.registry.take_requests(), [""; 0]);
}

#[tokio::test]
async fn what_must_not_be_pulled_comes_from_the_cache_or_not_at_all() {
    let plane = Plane::new().await;
    // The same image in three repositories.
    let package = function_package("f", "");
    let digest = plane.registry.push("r.io/acme/a:v1.0.0", &package);
    plane.registry.push("r.io/acme/b:v1.0.0", &package);
    plane.registry.push("r.io/acme/c:v1.0.0", &package);
    let never =
        |name: &str, package: &str| with(&install_function(name, package), "packagePullPolicy: Never");
    plane.apply(&never("a", "r.io/acme/a:v1.0.0")).await;
    let unpacking = |p: &Value| reason_of(p, "Installed") == "UnpackingPackage";
    let refused = plane.until(FUNCTION, "a", unpacking).await;
    let message = message_of(&refused, "Installed");
    assert!(message.contains(&format!("r.io/acme/a@{digest} is not in the cache of packages")), "{message}");
    assert!(message.contains("packagePullPolicy is Never; set it to IfNotPresent"), "{message}");
    assert!(plane.list(FUNCTION_REVISION).await.is_empty());
    // Another package brings the image into the cache.
    plane.apply(&install_function("b", "r.io/acme/b:v1.0.0")).await;
    plane.until_true(FUNCTION, "b", "Installed").await;
    plane.after(Duration::from_secs(61)).await;
    plane.until_true(FUNCTION, "a", "Installed").await;
    plane.until_true(FUNCTION_REVISION, &revision_of("a", &digest), "RevisionHealthy").await;
    plane.until_idle().await;
    let asked = plane.registry.take_requests();
    assert!(!asked.contains(&"fetch r.io/acme/a".to_owned()), "{asked:?}");
    // With a digest the registry need not be there.
    plane.registry.set_down(true);
    plane.apply(&never("c", &format!("r.io/acme/c@{digest}"))).await;
    plane.until_true(FUNCTION_REVISION, &revision_of("c", &digest), "RevisionHealthy").await;
    plane.until_idle().await;
    assert_eq!(plane.registry.take_requests(), [""; 0], "a digest and the cache need no registry");
}

#[tokio::test]
async fn a_package_cannot_send_calls_elsewhere() {
    let plane = Plane::new().await;
    let meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\n\
                metadata: {name: f, annotations: {transom.io/endpoint: 'evil.example.org:1', note: kept}}\n";
    let digest = plane.registry.push("r.io/acme/packaged:v1.0.0", meta);
    plane.apply(&install_function("packaged", "r.io/acme/packaged:v1.0.0")).await;
    let name = revision_of("packaged", &digest);
    let revision = plane.until(FUNCTION_REVISION, &name, |r| status_of(r, "RuntimeHealthy") == "False").await;
    assert_eq!(meta::annotation(&revision, "transom.io/endpoint"), None);
    assert_eq!(meta::annotation(&revision, "note"), Some("kept"));
    assert!(!plane.functions.router.knows("packaged"));
}
