//! Composite resources that are gone, that cannot be written, and that cannot be composed.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use transom_object::meta;

const FINALIZER: &str = "composite.apiextensions.crossplane.io";

/// Nothing of a thing that is and stays `blocked` can be written but a new status.
const BLOCKED: &str = "oldSelf.spec.coolField != 'blocked' || self.spec.coolField != 'blocked' \
                       || (has(self.status) && (!has(oldSelf.status) || self.status != oldSelf.status))";

/// Waits for a revision of a Composition to be judged so.
async fn until_judged(user: &User, composition: &str, status: &str) -> Value {
    let judged = |r: &Value| {
        meta::label(r, "crossplane.io/composition-name") == Some(composition)
            && status_of(r, "ValidPipeline") == status
    };
    user.until_any(REVISION, judged).await
}

/// Waits until a thing complains in exactly these words, in its condition and in an event with this reason.
async fn until_wrong(user: &User, name: &str, reason: &str, words: &str) -> Value {
    let wrong = user.until(THING, name, |o| message_of(o, "Synced") == words).await;
    assert_eq!((status_of(&wrong, "Synced"), reason_of(&wrong, "Synced")), ("False", "ReconcileError"));
    user.until_event(name, &format!("Warning {reason} {words}")).await;
    wrong
}

async fn until_well(user: &User, name: &str) {
    let well = user.until_ready(THING, name).await;
    assert_eq!(message_of(&well, "Synced"), "", "nothing is left of an error");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_25_what_is_gone_is_not_an_error() {
    let user = User::new().await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("things", "Thing", &json!({}), &[one_map("Thing", "x")])).await;
    until_judged(&user, "things", "True").await;
    user.apply(&object("Thing", "one", "")).await;
    let first = user.until_ready(THING, "one").await;
    // A paused one is not finalised: it is gone before its controller knows that it is to go.
    user.patch(THING, "one", json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}})).await;
    user.until(THING, "one", |o| reason_of(o, "Synced") == "ReconcilePaused").await;
    user.patch(THING, "one", json!({"metadata": {"finalizers": null}})).await;
    user.delete(THING, "one", None).await;
    user.until_gone(THING, "one").await;
    user.until_none(MAP, "one").await;
    user.apply(&object("Thing", "after", "")).await;
    user.until_ready(THING, "after").await;
    user.apply(&object("Thing", "one", "")).await;
    let second = user.until_ready(THING, "one").await;
    assert_ne!(meta::uid(&first), meta::uid(&second));
    assert_eq!(user.composed(MAP, "one").await.len(), 1, "nothing is kept of the one that is gone");
    user.until_event("one", "Normal ReconciliationPaused").await;
    let events = user.events_of("one").await;
    assert!(!events.iter().any(|e| e.starts_with("Warning")), "{events:#?}");
    let log = user.home.log();
    assert!(!log.contains("cannot reconcile"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_26_without_its_finalizer_nothing_is_composed() {
    let user = User::new().await;
    user.apply(&ruled(&definition("Thing", "Cluster", ""), BLOCKED)).await;
    user.apply(&composition("things", "Thing", &json!({}), &[one_map("Thing", "x")])).await;
    let revision = until_judged(&user, "things", "True").await;
    // It has everything that its controller would write, except for the finalizer.
    let pinned = format!(
        "coolField: blocked, crossplane: {{compositionRef: {{name: things}}, compositionUpdatePolicy: Manual, \
         compositionRevisionRef: {{name: {}}}}}",
        meta::name(&revision)
    );
    let labelled = object("Thing", "one", &pinned)
        .replace("{name: one}", "{name: one, labels: {crossplane.io/composite: one}}");
    user.apply(&labelled).await;
    let words = "cannot update composite resource: ";
    let wrong = user.until(THING, "one", |o| message_of(o, "Synced").starts_with(words)).await;
    assert!(message_of(&wrong, "Synced").contains("it is against the rules"), "{wrong:#}");
    assert_eq!(reason_of(&wrong, "Synced"), "ReconcileError");
    assert_eq!(meta::finalizers(&wrong), Vec::<&str>::new());
    user.until_event("one", &format!("Warning InitializeCompositeResource {words}")).await;
    assert_eq!(
        user.composed(MAP, "one").await,
        Vec::<Value>::new(),
        "nothing is made that would not be deleted"
    );
    user.patch(THING, "one", json!({"spec": {"coolField": "free"}})).await;
    until_well(&user, "one").await;
    assert_eq!(user.composed(MAP, "one").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_26_a_finalizer_that_cannot_be_removed_is_an_error() {
    let user = User::new().await;
    user.apply(&ruled(&definition("Thing", "Cluster", ""), BLOCKED)).await;
    user.apply(&composition("things", "Thing", &json!({}), &[one_map("Thing", "x")])).await;
    user.apply(&object("Thing", "one", "coolField: free")).await;
    user.until_ready(THING, "one").await;
    user.patch(THING, "one", json!({"spec": {"coolField": "blocked"}})).await;
    user.until_idle().await;
    user.delete(THING, "one", None).await;
    let words = "cannot remove composite resource finalizer: ";
    user.until_event("one", &format!("Warning DeleteCompositeResource {words}")).await;
    let held = user.until(THING, "one", |o| status_of(o, "Synced") == "False").await;
    assert!(message_of(&held, "Synced").starts_with(words), "{held:#}");
    assert_eq!(reason_of(&held, "Synced"), "ReconcileError");
    assert_eq!(reason_of(&held, "Ready"), "Deleting");
    assert!(meta::is_deleting(&held));
    assert_eq!(meta::finalizers(&held), [FINALIZER]);
    user.patch(THING, "one", json!({"spec": {"coolField": "free"}})).await;
    user.until_gone(THING, "one").await;
    user.until_none(MAP, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_27_without_a_composition_that_fits_it_is_not_synced() {
    let user = User::new().await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&definition("Other", "Cluster", "")).await;
    user.apply(&composition("others", "Other", &json!({}), &[one_map("Other", "x")])).await;
    until_judged(&user, "others", "True").await;
    user.apply(&object("Thing", "selects", "")).await;
    let words = "cannot select Composition: no compatible Compositions found";
    let wrong = until_wrong(&user, "selects", "SelectComposition", words).await;
    assert_eq!(meta::finalizers(&wrong), [FINALIZER], "that much is done");
    let referring = |name: &str, to: &str| {
        object("Thing", name, &format!("crossplane: {{compositionRef: {{name: {to}}}}}"))
    };
    user.apply(&referring("fetches", "things")).await;
    let words = "cannot fetch Composition: cannot get Composition: \
                 compositions.apiextensions.crossplane.io \"things\" not found";
    until_wrong(&user, "fetches", "ComposeResources", words).await;
    user.apply(&referring("configures", "others")).await;
    let words = "cannot configure composite resource: \
                 referenced composition is not compatible with this composite resource";
    until_wrong(&user, "configures", "ComposeResources", words).await;
    for name in ["selects", "fetches", "configures"] {
        assert_eq!(user.composed(MAP, name).await, Vec::<Value>::new(), "{name}");
    }
    user.apply(&composition("things", "Thing", &json!({}), &[one_map("Thing", "x")])).await;
    until_well(&user, "selects").await;
    until_well(&user, "fetches").await;
    let still = user.get(THING, "configures").await.unwrap();
    assert_eq!(message_of(&still, "Synced"), words, "a choice is not questioned");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_27_what_cannot_be_published_is_not_synced() {
    let user = User::new().await;
    user.function("connected", |_, response| {
        response.set_connection_detail("password", "sesame");
        response.normal("it is connected");
        response.composite().set("status.coolerField", "composed")?;
        Ok(())
    })
    .await;
    user.apply(&definition("Thing", "LegacyCluster", "")).await;
    user.apply(&composition("things", "Thing", &json!({}), &[("connected", Value::Null)])).await;
    until_judged(&user, "things", "True").await;
    let owner = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owner, namespace: default}\n";
    user.apply(owner).await;
    let owner = meta::uid(&user.get(MAP, "default/owner").await.unwrap()).to_owned();
    let owned = format!(
        "ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {owner}, controller: true}}]"
    );
    let secret = |name: &str, kind: &str, more: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\ntype: {kind}\nmetadata: {{name: {name}, namespace: default, {more}}}\nstringData: {{a: b}}\n"
        )
    };
    user.apply(&secret("plain", "Opaque", "")).await;
    user.apply(&secret("owned", "connection.crossplane.io/v1alpha1", &owned)).await;
    for (name, why) in [
        ("plain", "refusing to modify uncontrolled secret of type \"Opaque\"".to_owned()),
        ("owned", "existing secret is not controlled by UID".to_owned()),
    ] {
        let spec = format!("writeConnectionSecretToRef: {{name: {name}, namespace: default}}");
        user.apply(&object("Thing", name, &spec)).await;
        let words = format!("cannot publish connection details: {why}");
        let wrong = user.until(THING, name, |o| message_of(o, "Synced").starts_with(&words)).await;
        assert_eq!((status_of(&wrong, "Synced"), reason_of(&wrong, "Synced")), ("False", "ReconcileError"));
        assert_eq!(wrong["status"]["coolerField"], "composed", "composing went well");
        assert!(wrong["status"].get("connectionDetails").is_none(), "{wrong:#}");
        user.until_event(name, &format!("Warning PublishConnectionSecret {words}")).await;
        let theirs = user.get(SECRET, &format!("default/{name}")).await.unwrap();
        assert_eq!(theirs["data"], json!({"a": "Yg=="}));
        let events = user.events_of(name).await;
        assert!(!events.iter().any(|e| e.contains("it is connected")), "{events:#?}");
        user.delete(SECRET, &format!("default/{name}"), None).await;
        until_well(&user, name).await;
        let ours = user.get(SECRET, &format!("default/{name}")).await.unwrap();
        assert_eq!(ours["data"], json!({"password": "c2VzYW1l"}));
        user.until_event(name, "it is connected").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_28_an_invalid_revision_composes_nothing() {
    let user = User::new().await;
    let capable_of = |what: &'static str| user.set_capabilities("dummy-1", json!([what]));
    user.pause_function("function-dummy").await;
    user.function_revision("dummy-1", "pkg.crossplane.io/package: function-dummy", "Active", 2).await;
    capable_of("operation").await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("things", "Thing", &json!({}), &[one_map("Thing", "x")])).await;
    let revision = until_judged(&user, "things", "False").await;
    let name = meta::name(&revision);
    user.apply(&object("Thing", "one", "crossplane: {compositionUpdatePolicy: Manual}")).await;
    let invalid = |why: &str| {
        format!("selected CompositionRevision {name} does not have a valid function pipeline: {why}")
    };
    let why = message_of(&revision, "ValidPipeline");
    assert!(why.contains("missing required capabilities: composition"), "{why}");
    let wrong = until_wrong(&user, "one", "ComposeResources", &invalid(why)).await;
    assert_eq!(
        wrong["spec"]["crossplane"]["compositionRevisionRef"]["name"], name,
        "it is selected all the same"
    );
    assert_eq!(user.composed(MAP, "one").await, Vec::<Value>::new());
    capable_of("composition").await;
    user.until_true(REVISION, name, "ValidPipeline").await;
    until_well(&user, "one").await;

    // A revision that is being deleted is not judged; what its functions can do is known all the same.
    user.patch(REVISION, name, json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    user.delete(REVISION, name, None).await;
    let mut unjudged = user.until(REVISION, name, meta::is_deleting).await;
    unjudged["status"] = json!({"conditions": []});
    user.cluster.update_status(&unjudged, "kubectl").await.expect("the status is written");
    capable_of("operation").await;
    user.patch(THING, "one", json!({"spec": {"coolField": "again"}})).await;
    until_wrong(&user, "one", "ComposeResources", &invalid(why)).await;
    assert_eq!(user.composed(MAP, "one").await.len(), 1, "what is composed stays");
    capable_of("composition").await;
    until_well(&user, "one").await;
}
