//! Compositions and their revisions.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use transom_object::meta;

const HASH: &str = "crossplane.io/composition-hash";
const CREATED: &str = "Normal CreateRevision Created new revision";

/// A Composition of things that says this.
fn says(name: &str, words: &str) -> Value {
    documents(&composition(name, "Thing", &json!({}), &[one_map("Thing", words)])).remove(0)
}

async fn apply(user: &User, composition: &Value) {
    user.apply(&composition.to_string()).await;
}

/// The revisions that carry a Composition's name, by their numbers.
async fn revisions(user: &User, composition: &str) -> Vec<Value> {
    let mut all = user.list(REVISION).await;
    all.retain(|r| meta::label(r, "crossplane.io/composition-name") == Some(composition));
    all.sort_by_key(|r| r["spec"]["revision"].as_i64());
    all
}

fn numbers(revisions: &[Value]) -> Vec<i64> {
    revisions.iter().filter_map(|r| r["spec"]["revision"].as_i64()).collect()
}

async fn until_numbers(user: &User, composition: &str, wanted: &[i64]) -> Vec<Value> {
    let started = Instant::now();
    loop {
        let all = revisions(user, composition).await;
        if numbers(&all) == wanted && all.iter().all(|r| !status_of(r, "ValidPipeline").is_empty()) {
            return all;
        }
        assert!(started.elapsed() < transom_testkit::process::WAIT_LIMIT, "{wanted:?}: {all:#?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until everything that happened to Compositions so far was looked at: another one that comes later was.
async fn until_looked_at(user: &User, later: &str) {
    apply(user, &says(later, "later")).await;
    until_numbers(user, later, &[1]).await;
    user.until_idle().await;
}

async fn warnings_about(user: &User, name: &str) -> Vec<String> {
    let mut events = user.events_of(name).await;
    events.retain(|e| e.starts_with("Warning"));
    events
}

fn owned_by(composition: &Value) -> Value {
    json!([{
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "name": meta::name(composition),
        "uid": meta::uid(composition), "controller": true, "blockOwnerDeletion": true,
    }])
}

#[tokio::test(flavor = "multi_thread")]
async fn case_50_a_deleted_composition_is_ignored() {
    let user = User::new().await;
    let mut held = says("a", "first");
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    apply(&user, &held).await;
    let first = until_numbers(&user, "a", &[1]).await.remove(0);
    user.delete(COMPOSITION, "a", None).await;
    user.until(COMPOSITION, "a", meta::is_deleting).await;
    user.patch(COMPOSITION, "a", json!({"metadata": {"labels": {"channel": "late"}}})).await;
    until_looked_at(&user, "later").await;
    assert_eq!(
        revisions(&user, "a").await,
        std::slice::from_ref(&first),
        "nothing is made for one that goes"
    );
    user.patch(COMPOSITION, "a", json!({"metadata": {"finalizers": null}})).await;
    user.until_gone(COMPOSITION, "a").await;
    user.until_gone(REVISION, meta::name(&first)).await;
    until_looked_at(&user, "later-still").await;
    assert_eq!(revisions(&user, "a").await, Vec::<Value>::new(), "nothing comes back");
    assert_eq!(warnings_about(&user, "a").await, Vec::<String>::new());
    let log = user.home.log();
    assert!(!log.contains("cannot reconcile"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_51_54_each_state_has_one_revision_and_the_next_number() {
    let user = User::new().await;
    apply(&user, &says("a", "first")).await;
    let first = until_numbers(&user, "a", &[1]).await.remove(0);
    user.until_event("a", CREATED).await;
    let hash = meta::label(&first, HASH).unwrap();
    assert_eq!((hash.len(), meta::name(&first)), (63, format!("a-{}", &hash[..7]).as_str()));
    // The same again, from the side of the Composition and from that of the revision.
    apply(&user, &says("a", "first")).await;
    user.patch(COMPOSITION, "a", json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    let touched =
        user.patch(REVISION, meta::name(&first), json!({"metadata": {"annotations": {"a": "b"}}})).await;
    until_looked_at(&user, "later").await;
    assert_eq!(revisions(&user, "a").await, [touched], "a state that has a revision gets no other");
    for (words, wanted) in [("second", vec![1, 2]), ("third", vec![1, 2, 3])] {
        apply(&user, &says("a", words)).await;
        let all = until_numbers(&user, "a", &wanted).await;
        let newest = all.last().unwrap();
        let said = &newest["spec"]["pipeline"][0]["input"]["response"]["desired"]["composite"];
        assert_eq!(said["resource"]["status"]["coolerField"], words);
    }
    // Back again: the first revision gets the next number.
    apply(&user, &says("a", "first")).await;
    let all = until_numbers(&user, "a", &[2, 3, 4]).await;
    assert_eq!((meta::name(&all[2]), meta::uid(&all[2])), (meta::name(&first), meta::uid(&first)));
    assert_eq!(warnings_about(&user, "a").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_52_53_an_owner_is_restored_but_none_is_replaced() {
    let user = User::new().await;
    apply(&user, &says("a", "first")).await;
    apply(&user, &says("other", "other")).await;
    let first = until_numbers(&user, "a", &[1]).await.remove(0);
    until_numbers(&user, "other", &[1]).await;
    let name = meta::name(&first);
    let owners = |value: Value| json!({"metadata": {"ownerReferences": value}});
    let composition = user.get(COMPOSITION, "a").await.unwrap();
    assert_eq!(first["metadata"]["ownerReferences"], owned_by(&composition));
    user.patch(REVISION, name, owners(Value::Null)).await;
    let restored = user.until(REVISION, name, |o| meta::controller_of(o).is_some()).await;
    assert_eq!(restored["metadata"]["ownerReferences"], owned_by(&composition));
    assert_eq!(restored["spec"], first["spec"]);
    assert_eq!(warnings_about(&user, "a").await, Vec::<String>::new());

    let foreign = owned_by(&user.get(COMPOSITION, "other").await.unwrap());
    user.patch(REVISION, name, owners(foreign.clone())).await;
    let words = format!(
        "Warning UpdateRevision cannot own CompositionRevision: {name} is already controlled by Composition other"
    );
    user.until_event("a", &words).await;
    // That stops everything, so nothing is made of a change.
    apply(&user, &says("a", "second")).await;
    until_looked_at(&user, "later").await;
    let all = revisions(&user, "a").await;
    assert_eq!(numbers(&all), [1]);
    assert_eq!(all[0]["metadata"]["ownerReferences"], foreign);
    user.patch(REVISION, name, owners(Value::Null)).await;
    let all = until_numbers(&user, "a", &[1, 2]).await;
    assert!(all.iter().all(|r| r["metadata"]["ownerReferences"] == owned_by(&composition)), "{all:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_55_labels_and_annotations_alone_make_revisions() {
    let user = User::new().await;
    apply(&user, &says("a", "first")).await;
    let plain = until_numbers(&user, "a", &[1]).await.remove(0);
    user.patch(COMPOSITION, "a", json!({"metadata": {"labels": {"channel": "edge"}}})).await;
    let labelled = until_numbers(&user, "a", &[1, 2]).await.remove(1);
    user.patch(COMPOSITION, "a", json!({"metadata": {"annotations": {"note": "well"}}})).await;
    let annotated = until_numbers(&user, "a", &[1, 2, 3]).await.remove(2);
    let notes = |r: &Value| {
        let annotation = meta::annotation(r, "note").map(str::to_owned);
        (meta::label(r, "channel").map(str::to_owned), annotation)
    };
    let (edge, well) = (Some("edge".to_owned()), Some("well".to_owned()));
    assert_eq!(
        [&plain, &labelled, &annotated].map(notes),
        [(None, None), (edge.clone(), None), (edge, well)]
    );
    for revision in [&labelled, &annotated] {
        assert_eq!(revision["spec"]["pipeline"], plain["spec"]["pipeline"]);
        assert_ne!(meta::label(revision, HASH), meta::label(&plain, HASH));
    }
    assert_ne!(meta::label(&labelled, HASH), meta::label(&annotated, HASH));
}

#[tokio::test(flavor = "multi_thread")]
async fn case_56_the_latest_revision_is_one_of_the_compositions_own() {
    let user = User::new().await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    apply(&user, &says("a", "own")).await;
    apply(&user, &says("other", "other")).await;
    let own = until_numbers(&user, "a", &[1]).await.remove(0);
    until_numbers(&user, "other", &[1]).await;
    // It has the name of the one and belongs to the other.
    let mut foreign = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositionRevision",
        "metadata": {
            "name": "a-foreign", "labels": {"crossplane.io/composition-name": "a", HASH: "foreign"},
            "ownerReferences": owned_by(&user.get(COMPOSITION, "other").await.unwrap()),
        },
        "spec": says("x", "foreign")["spec"],
    });
    foreign["spec"]["revision"] = json!(9);
    user.cluster.create(&foreign, "kubectl").await.expect("it can be created");
    until_numbers(&user, "a", &[1, 9]).await;
    user.apply(&object("Thing", "one", "crossplane: {compositionRef: {name: a}}")).await;
    let one = user.until_ready(THING, "one").await;
    user.until_idle().await;
    assert_eq!(user.get(THING, "one").await.unwrap(), one);
    assert_eq!(one["spec"]["crossplane"]["compositionRevisionRef"]["name"], meta::name(&own));
    assert_eq!(one["status"]["coolerField"], "own");
    // Its number would have been high enough: once it belongs to the Composition, that counts on from it.
    let composition = user.get(COMPOSITION, "a").await.unwrap();
    user.patch(REVISION, "a-foreign", json!({"metadata": {"ownerReferences": owned_by(&composition)}})).await;
    let all = until_numbers(&user, "a", &[9, 10]).await;
    assert_eq!((meta::name(&all[0]), meta::name(&all[1])), ("a-foreign", meta::name(&own)));
    apply(&user, &says("a", "next")).await;
    until_numbers(&user, "a", &[9, 10, 11]).await;
    user.until(THING, "one", |o| o["status"]["coolerField"] == "next").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_57_a_missing_capability_is_a_condition_and_no_error() {
    let user = User::new().await;
    let capable_of = |name: &'static str, what: &'static str| user.set_capabilities(name, json!([what]));
    user.pause_function("function-dummy").await;
    for (name, state, number) in [("dummy-1", "Active", 1), ("dummy-2", "Inactive", 2)] {
        user.function_revision(name, "pkg.crossplane.io/package: function-dummy", state, number).await;
    }
    // What is not active does not matter.
    capable_of("dummy-2", "operation").await;
    capable_of("dummy-1", "composition").await;
    apply(&user, &says("a", "first")).await;
    let first = until_numbers(&user, "a", &[1]).await.remove(0);
    let name = meta::name(&first);
    assert_eq!(
        (status_of(&first, "ValidPipeline"), reason_of(&first, "ValidPipeline")),
        ("True", "ValidPipeline")
    );
    user.until_event(name, "Normal CheckCapabilities All functions have required composition capability")
        .await;
    capable_of("dummy-1", "operation").await;
    let words = "function \"function-dummy\" (active revision \"dummy-1\") is missing required capabilities: composition";
    let invalid = user.until(REVISION, name, |o| status_of(o, "ValidPipeline") == "False").await;
    assert_eq!(
        (reason_of(&invalid, "ValidPipeline"), message_of(&invalid, "ValidPipeline")),
        ("MissingCapabilities", words)
    );
    assert_eq!((status_of(&invalid, "Synced"), reason_of(&invalid, "Synced")), ("True", "ReconcileSuccess"));
    user.until_event(name, &format!("Warning CheckCapabilities {words}")).await;
    // Compositions do not mind.
    apply(&user, &says("a", "second")).await;
    let second = until_numbers(&user, "a", &[1, 2]).await.remove(1);
    assert_eq!(status_of(&second, "ValidPipeline"), "False");
    user.until_idle().await;
    assert_eq!(warnings_about(&user, "a").await, Vec::<String>::new());
    let log = user.home.log();
    assert!(!log.contains("cannot reconcile"), "{log}");
    capable_of("dummy-1", "Compo-sition").await;
    for revision in [&first, &second] {
        let valid = user.until_true(REVISION, meta::name(revision), "ValidPipeline").await;
        assert_eq!(message_of(&valid, "ValidPipeline"), "");
    }
}
