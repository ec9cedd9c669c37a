//! What functions say of a composite resource and its claim.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use transom_function::Status::{ConditionFalse, ConditionTrue};
use transom_function::{Error, Ready, Resource, RunFunctionResponse};
use transom_object::meta;

const CLAIM: &str = "example.org/v1/Claim";
const XR: &str = "example.org/v1/XClaim";
const SYSTEM: [&str; 5] = ["Ready", "Synced", "Healthy", "UpToDate", "Responsive"];

/// Claims, whose composite resources are composed by a function that says something else for each `coolField`.
async fn talking(
    say: impl Fn(&str, &mut RunFunctionResponse) -> Result<(), Error> + Send + Sync + 'static,
) -> User {
    let user = User::new().await;
    user.function("talker", move |request, response| {
        let mood = request.observed_composite().get_str("spec.coolField")?.to_owned();
        response.composite().set("status.coolerField", mood.as_str())?;
        say(&mood, response)
    })
    .await;
    user.apply(&definition("XClaim", "LegacyCluster", "claimNames: {kind: Claim, plural: claims}")).await;
    user.apply(&composition("talks", "XClaim", &json!({}), &[("talker", Value::Null)])).await;
    user.until_true(XRD, "xclaims.example.org", "Offered").await;
    user
}

/// Claims something, and says which composite resource it got.
async fn claim(user: &User, mood: &str) -> String {
    user.apply(&object("Claim", "default/one", &format!("coolField: {mood}"))).await;
    let claim = user.until_ready(CLAIM, "default/one").await;
    claim["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn case_33_custom_events_and_conditions_reach_the_claim() {
    let user = talking(|_, response| {
        response.condition("DatabaseUp", ConditionTrue, "Seen").with_message("it answers").and_claim();
        response.condition("BucketUp", ConditionFalse, "Hidden");
        response.normal("for everybody").with_reason("Announced").and_claim();
        response.warning("for operators").with_reason("Whispered");
        Ok(())
    })
    .await;
    let xr = claim(&user, "fine").await;
    let one = user.until_true(CLAIM, "default/one", "DatabaseUp").await;
    assert_eq!((reason_of(&one, "DatabaseUp"), message_of(&one, "DatabaseUp")), ("Seen", "it answers"));
    user.until_event("one", "Normal Announced for everybody").await;
    user.until_event(&xr, "Normal Announced Pipeline step \"step-0\": for everybody").await;
    user.until_event(&xr, "Warning Whispered Pipeline step \"step-0\": for operators").await;
    user.until_idle().await;
    let object = user.get(XR, &xr).await.unwrap();
    assert_eq!((status_of(&object, "DatabaseUp"), reason_of(&object, "DatabaseUp")), ("True", "Seen"));
    assert_eq!((status_of(&object, "BucketUp"), reason_of(&object, "BucketUp")), ("False", "Hidden"));
    assert_eq!(object["status"]["claimConditionTypes"], json!(["DatabaseUp"]));
    let one = user.get(CLAIM, "default/one").await.unwrap();
    assert_eq!(condition(&one, "BucketUp"), &Value::Null, "that is not for the claim");
    let events = user.events_of("one").await;
    assert!(
        !events.iter().any(|e| e.contains("for operators") || e.contains("Pipeline step")),
        "{events:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn case_34_after_a_fatal_result_what_was_not_said_is_unknown() {
    let user = talking(|mood, response| {
        response
            .condition("Seen", ConditionTrue, if mood == "bad" { "SeenAgain" } else { "Seen" })
            .and_claim();
        if mood == "bad" {
            response.normal("it staggers").and_claim();
            response.fatal("it falls").and_claim();
        } else {
            response.condition("Unseen", ConditionTrue, "Seen").with_message("all is well").and_claim();
        }
        Ok(())
    })
    .await;
    let xr = claim(&user, "fine").await;
    let before = user.until_true(XR, &xr, "Unseen").await;
    user.patch(CLAIM, "default/one", json!({"spec": {"coolField": "bad"}})).await;
    let words = "cannot compose resources: pipeline step \"step-0\" returned a fatal result: it falls";
    let failed = user.until(XR, &xr, |o| message_of(o, "Synced") == words).await;
    assert_eq!((status_of(&failed, "Synced"), reason_of(&failed, "Synced")), ("False", "ReconcileError"));
    assert_eq!((status_of(&failed, "Seen"), reason_of(&failed, "Seen")), ("True", "SeenAgain"));
    assert_eq!((status_of(&failed, "Unseen"), reason_of(&failed, "Unseen")), ("Unknown", "FatalError"));
    assert_eq!(
        message_of(&failed, "Unseen"),
        "A fatal error occurred before the status of this condition could be determined."
    );
    assert_eq!(condition(&failed, "Unseen")["observedGeneration"], failed["metadata"]["generation"]);
    assert_eq!(status_of(&failed, "Ready"), "True", "nothing is known of that");
    assert_eq!(failed["status"]["coolerField"], before["status"]["coolerField"]);
    let events = user.until(CLAIM, "default/one", |o| status_of(o, "Unseen") == "Unknown").await;
    assert_eq!((status_of(&events, "Seen"), reason_of(&events, "Seen")), ("True", "SeenAgain"));
    user.until_event(&xr, &format!("Warning ComposeResources {words}")).await;
    user.until_event("one", "Normal ComposeResources it staggers").await;
    user.until_idle().await;
    let events = user.events_of("one").await;
    assert!(!events.iter().any(|e| e.contains("it falls")), "{events:#?}");
    user.patch(CLAIM, "default/one", json!({"spec": {"coolField": "fine"}})).await;
    let well = user.until_true(XR, &xr, "Unseen").await;
    assert_eq!(message_of(&well, "Unseen"), "all is well");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_35_a_custom_condition_is_updated_and_one_that_is_not_said_stays() {
    let user = talking(|mood, response| {
        if mood == "first" {
            response.condition("Said", ConditionTrue, "First").with_message("for the first time");
            response.condition("Kept", ConditionTrue, "First").with_message("for ever");
        } else {
            response.condition("Said", ConditionFalse, "Second");
        }
        Ok(())
    })
    .await;
    let xr = claim(&user, "first").await;
    let first = user.until_true(XR, &xr, "Said").await;
    assert_eq!((reason_of(&first, "Said"), message_of(&first, "Said")), ("First", "for the first time"));
    user.patch(CLAIM, "default/one", json!({"spec": {"coolField": "second"}})).await;
    let second = user.until(XR, &xr, |o| reason_of(o, "Said") == "Second").await;
    assert_eq!((status_of(&second, "Said"), message_of(&second, "Said")), ("False", ""));
    user.until_ready(XR, &xr).await;
    user.until_idle().await;
    let rested = user.get(XR, &xr).await.unwrap();
    assert_eq!(rested["status"]["coolerField"], "second");
    assert_eq!(condition(&rested, "Kept"), condition(&first, "Kept"), "as it was, with its time");
    assert_eq!(
        rested["status"]["conditions"].as_array().unwrap().iter().filter(|c| c["type"] == "Said").count(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn case_36_functions_set_readiness_but_no_conditions_of_the_system() {
    let user = talking(|mood, response| {
        for kind in SYSTEM {
            response.condition(kind, ConditionFalse, "Nonsense").with_message("nonsense").and_claim();
        }
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}});
        let ready = if mood == "unready" { Ready::True } else { Ready::False };
        response.set_composed("map", Resource::new(map)?.with_ready(ready));
        response.composite().set_ready(match mood {
            "unready" => Ready::False,
            "silent" => Ready::Unspecified,
            _ => Ready::True,
        });
        Ok(())
    })
    .await;
    // It is ready by its own account, whatever becomes of the map.
    let xr = claim(&user, "ready").await;
    let ready = user.until_ready(XR, &xr).await;
    assert_eq!((reason_of(&ready, "Ready"), reason_of(&ready, "Synced")), ("Available", "ReconcileSuccess"));
    let now = |mood: &'static str| json!({"spec": {"coolField": mood}});
    user.patch(CLAIM, "default/one", now("unready")).await;
    let unready = user.until(XR, &xr, |o| status_of(o, "Ready") == "False").await;
    assert_eq!(
        (reason_of(&unready, "Ready"), message_of(&unready, "Ready")),
        ("Creating", "A function reports that the composite resource is not ready")
    );
    assert_eq!(status_of(&unready, "Synced"), "True");
    user.until(CLAIM, "default/one", |o| reason_of(o, "Ready") == "Waiting").await;
    user.patch(CLAIM, "default/one", now("silent")).await;
    user.until(XR, &xr, |o| message_of(o, "Ready") == "Unready resources: map").await;
    user.until_idle().await;
    let rested = user.get(XR, &xr).await.unwrap();
    assert_eq!(
        (status_of(&rested, "Responsive"), reason_of(&rested, "Responsive")),
        ("True", "WatchCircuitClosed")
    );
    assert_eq!((condition(&rested, "Healthy"), condition(&rested, "UpToDate")), (&Value::Null, &Value::Null));
    assert_eq!(rested["status"].get("claimConditionTypes"), None);
    let claim = user.get(CLAIM, "default/one").await.unwrap();
    for object in [&rested, &claim] {
        assert!(SYSTEM.iter().all(|kind| reason_of(object, kind) != "Nonsense"), "{object:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_37_reports_for_a_missing_claim_fail_nothing() {
    let user = talking(|_, response| {
        response.warning("it may rain").and_claim();
        response.condition("Dry", ConditionTrue, "Yet").and_claim();
        Ok(())
    })
    .await;
    for (name, kind) in
        [("unclaimed", "example.org/v1, kind: Claim"), ("unknown", "nowhere.org/v1, kind: Ghost")]
    {
        let claim = format!("claimRef: {{apiVersion: {kind}, namespace: default, name: nobody}}");
        user.apply(&object("XClaim", name, &format!("coolField: fine, {claim}"))).await;
        let ready = user.until_ready(XR, name).await;
        assert_eq!((reason_of(&ready, "Synced"), message_of(&ready, "Synced")), ("ReconcileSuccess", ""));
        assert_eq!(status_of(&ready, "Dry"), "True");
        assert_eq!(ready["status"]["claimConditionTypes"], json!(["Dry"]));
        user.until_event(name, "Warning ComposeResources Pipeline step \"step-0\": it may rain").await;
        user.until_idle().await;
        let rested = user.get(XR, name).await.unwrap();
        assert_eq!((status_of(&rested, "Synced"), meta::is_deleting(&rested)), ("True", false));
    }
    assert_eq!(user.events_of("nobody").await, Vec::<String>::new());
}
