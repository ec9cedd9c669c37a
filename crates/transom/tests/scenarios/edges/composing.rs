//! Pipelines that end with nothing applied, and what becomes of what functions say.

use super::scripted_function::*;
use crate::scenarios::user::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use transom_function::proto::v1::Result as FunctionResult;
use transom_function::{Ready, Resource, Status, Target};
use transom_object::meta;

/// The composition of things, with its step changed.
fn changed(change: impl Fn(&mut Value)) -> String {
    let mut object =
        documents(&composition("things", "Thing", &json!({}), &[("wishes", Value::Null)])).remove(0);
    change(&mut object["spec"]["pipeline"][0]);
    object.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn case_01_a_pipeline_that_fails_applies_nothing() {
    let (things, before) = Things::with_one("Cluster").await;
    let user = &things.user;
    things.want(&[("map", map("after")), ("other", map("after"))]);
    user.apply(&function("nobody", "transom.io/endpoint: '127.0.0.1:1'")).await;
    let secret = json!({"namespace": "default", "name": "absent"});
    let required =
        json!([{"requirementName": "r", "apiVersion": "no.example.org/v1", "kind": "Such", "name": "n"}]);
    for (composition, words) in [
        (
            changed(|step| {
                step["credentials"] = json!([{"name": "c", "source": "Secret", "secretRef": secret}]);
            }),
            r#"cannot get Composition pipeline step "step-0" credential "c" from Secret"#,
        ),
        (
            changed(|step| step["functionRef"]["name"] = "nobody".into()),
            r#"cannot run Composition pipeline step "step-0""#,
        ),
        (
            changed(|step| step["requirements"] = json!({"requiredResources": required})),
            r#"cannot fetch bootstrap required resources for requirement "r""#,
        ),
    ] {
        user.apply(&composition).await;
        things.until_wrong("one", words).await;
        assert_eq!(user.composed(MAP, "one").await, before, "{words}");
    }
    let why = user.refused_change(&changed(|step| step["input"] = json!("no object"))).await;
    assert!(why.contains(".input: expected map"), "{why}");
    // Existing objects cannot be distinguished without their annotation, so nothing is deleted, and they get the annotation back.
    let name = format!("default/{}", meta::name(&before[0]));
    user.apply(&changed(|_| {})).await;
    things.until_well("one").await;
    user.until(MAP, &name, |o| o["data"]["says"] == "after").await;
    things.want(&[("map", map("healed"))]);
    let anonymous = json!({"metadata": {"annotations": {"crossplane.io/composition-resource-name": null}}});
    user.patch(MAP, &name, anonymous).await;
    let healed = user.until(MAP, &name, |o| o["data"]["says"] == "healed").await;
    assert_eq!(meta::annotation(&healed, "crossplane.io/composition-resource-name"), Some("map"));
    things.until_well("one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_02_17_a_fatal_result_keeps_what_was_said_before_it() {
    let (things, before) = Things::with_one("Cluster").await;
    let user = &things.user;
    things.answer(|response| {
        response.condition("Custom", Status::ConditionTrue, "Because");
        response.warning("said before");
        response.fatal("enough");
        response.warning("said after");
    });
    things.look_again("one").await;
    let fatal = r#"cannot compose resources: pipeline step "step-0" returned a fatal result: enough"#;
    let thing = things.until_wrong("one", fatal).await;
    assert_eq!((status_of(&thing, "Custom"), reason_of(&thing, "Custom")), ("True", "Because"));
    user.until_event("one", "said before").await;
    user.until_event("one", fatal).await;
    assert!(user.events_of("one").await.iter().all(|event| !event.contains("said after")));
    things.answer(|response| {
        response.fatal("");
    });
    things.look_again("one").await;
    things.until_wrong("one", r#"pipeline step "step-0" returned a fatal result: "#).await;
    assert_eq!(user.composed(MAP, "one").await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_03_the_label_is_there_before_anything_is_composed() {
    let things = Things::new("Cluster").await;
    let user = &things.user;
    things.want(&[("map", map("x"))]);
    user.apply(&object("Thing", "one", "")).await;
    things.until_well("one").await;
    // Without it nothing could be composed; it comes back first.
    user.patch(THING, "one", json!({"metadata": {"labels": null}})).await;
    user.until(THING, "one", |o| meta::label(o, "crossplane.io/composite") == Some("one")).await;
    user.until_idle().await;
    things.until_well("one").await;
    assert_eq!(user.composed(MAP, "one").await.len(), 1);
    assert!(user.events_of("one").await.iter().all(|event| !event.contains("name label")));
}

#[tokio::test(flavor = "multi_thread")]
async fn case_08_without_all_resources_ready_it_is_synced_and_not_ready() {
    let things = Things::new("Cluster").await;
    things.answer(|response| {
        for (name, ready) in [("t", Ready::True), ("f", Ready::False), ("u", Ready::Unspecified)] {
            response.set_composed(name, Resource::new(map(name)).expect("an object").with_ready(ready));
        }
    });
    things.user.apply(&object("Thing", "one", "")).await;
    let thing = things.user.until(THING, "one", |o| status_of(o, "Ready") == "False").await;
    assert_eq!((status_of(&thing, "Synced"), reason_of(&thing, "Ready")), ("True", "Creating"));
    assert_eq!(message_of(&thing, "Ready"), "Unready resources: f, u");
    assert_eq!(things.user.composed(MAP, "one").await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_09_10_11_results_become_events_and_conditions_need_no_message() {
    let claimed = definition("Thing", "LegacyCluster", "claimNames: {kind: Claim, plural: claims}");
    let things = Things::defined_by(&claimed).await;
    let user = &things.user;
    things.answer(|response| {
        response.normal("all is fine");
        response.warning("told to both").with_reason("Odd").and_claim();
        let message = "of no severity".to_owned();
        let target = Some(Target::CompositeAndClaim as i32);
        response.results.push(FunctionResult { message, target, ..FunctionResult::default() });
        response.condition("Wordless", Status::ConditionTrue, "Because").and_claim();
    });
    user.until_true(XRD, "things.example.org", "Offered").await;
    user.apply(&object("Claim", "default/one", "")).await;
    let claim = user.until_ready("example.org/v1/Claim", "default/one").await;
    let thing = claim["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned();
    for words in [
        r#"Normal ComposeResources Pipeline step "step-0": all is fine"#,
        r#"Warning Odd Pipeline step "step-0": told to both"#,
        r#"Warning ComposeResources Pipeline step "step-0" returned a result of unknown severity (assuming warning): of no severity"#,
    ] {
        user.until_event(&thing, words).await;
    }
    user.until_event("one", "Warning Odd told to both").await;
    let events = user.events_of("one").await;
    assert!(
        events.iter().all(|e| !e.contains("of no severity") && !e.contains("all is fine")),
        "{events:#?}"
    );
    let claim = user.until_true("example.org/v1/Claim", "default/one", "Wordless").await;
    assert_eq!((reason_of(&claim, "Wordless"), message_of(&claim, "Wordless")), ("Because", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn case_12_an_answer_is_asked_for_again_when_its_time_is_up() {
    let things = Things::new("Cluster").await;
    const LAST: usize = 5;
    let last = LAST.to_string();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    things.answer(move |response| {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        // The first answers hold for a moment, the last for good.
        if call < LAST {
            response.set_ttl(Duration::from_millis(100));
        }
        response.composite().set("status.coolerField", call.min(LAST).to_string()).expect("an object");
    });
    things.user.apply(&object("Thing", "one", "")).await;
    things.user.until(THING, "one", |o| o["status"]["coolerField"] == last).await;
    things.user.until_idle().await;
    // The status changed with the last answer, so it is looked at once more.
    assert!(calls.load(Ordering::SeqCst) <= LAST + 2, "{calls:?}");
}
