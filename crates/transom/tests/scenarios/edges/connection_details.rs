//! The connection details of composite resources, and the fields that are set on those without them.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use std::time::Duration;
use transom_object::meta;
use transom_object::time::{self, Timestamp};

const OTHER: &str = "example.org/v1/Other";

#[tokio::test(flavor = "multi_thread")]
async fn case_41_details_are_published_where_when_and_as_far_as_they_are_wanted() {
    let user = User::new().await;
    user.apply(&definition("Thing", "LegacyCluster", "connectionSecretKeys: [password]")).await;
    user.apply(&definition("Other", "LegacyCluster", "")).await;
    user.function("connected", |request, response| {
        let mood = request.observed_composite().get_str("spec.coolField")?.to_owned();
        response.set_connection_detail("username", "ali");
        response.set_connection_detail("password", if mood == "new" { "simsim" } else { "sesame" });
        response.composite().set("status.coolerField", mood)?;
        Ok(())
    })
    .await;
    for kind in ["Thing", "Other"] {
        let name = plural(kind);
        user.apply(&composition(&name, kind, &json!({}), &[("connected", Value::Null)])).await;
    }
    let to = |name: &str| {
        format!("coolField: old, writeConnectionSecretToRef: {{name: {name}, namespace: default}}")
    };
    user.apply(&object("Thing", "silent", "coolField: old")).await;
    user.apply(&object("Thing", "some", &to("some"))).await;
    user.apply(&object("Other", "all", &to("all"))).await;
    let some = user
        .until(THING, "some", |o| o["status"]["connectionDetails"]["lastPublishedTime"].is_string())
        .await;
    user.until_event("some", "Normal PublishConnectionSecret Successfully published connection details")
        .await;
    let secret = user.get(SECRET, "default/some").await.unwrap();
    assert_eq!(secret["data"], json!({"password": "c2VzYW1l"}), "only what the definition lets through");
    assert_eq!(secret["type"], "connection.crossplane.io/v1alpha1");
    assert_eq!(meta::controller_of(&secret).unwrap().uid, meta::uid(&some));
    let all = user.until(SECRET, "default/all", |_| true).await;
    assert_eq!(all["data"], json!({"password": "c2VzYW1l", "username": "YWxp"}));
    user.until_ready(OTHER, "all").await;

    let silent = user.until_ready(THING, "silent").await;
    user.until_idle().await;
    assert_eq!(silent["status"].get("connectionDetails"), None);
    let published = user.list(SECRET).await;
    let owned = |s: &&Value| meta::controller_of(s).is_some_and(|c| c.uid == meta::uid(&silent));
    assert_eq!(published.iter().find(owned), None);
    let events = user.events_of("silent").await;
    assert!(!events.iter().any(|e| e.contains("PublishConnectionSecret")), "{events:#?}");

    // Details that were published again would have another time, and times have a resolution of a second.
    let published = &some["status"]["connectionDetails"]["lastPublishedTime"];
    while *published == time::format(Timestamp::now()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    user.patch(THING, "some", json!({"spec": {"coolField": "still old"}})).await;
    let again = user.until(THING, "some", |o| o["status"]["coolerField"] == "still old").await;
    assert_eq!(again["status"]["connectionDetails"], some["status"]["connectionDetails"]);
    user.until_idle().await;
    assert_eq!(user.get(SECRET, "default/some").await.unwrap(), secret, "equal data are not written");
    user.patch(THING, "some", json!({"spec": {"coolField": "new"}})).await;
    user.until(SECRET, "default/some", |s| s["data"] == json!({"password": "c2ltc2lt"})).await;
    user.until(THING, "some", |o| o["status"]["connectionDetails"] != some["status"]["connectionDetails"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_48_49_what_is_missing_is_filled_in_and_what_is_there_stays() {
    let user = User::new().await;
    user.apply(&definition("Thing", "LegacyCluster", "")).await;
    user.apply(&definition("Other", "Cluster", "")).await;
    for (name, kind) in [("things", "Thing"), ("others", "Other")] {
        let mut composition =
            documents(&composition(name, kind, &json!({}), &[one_map(kind, "x")])).remove(0);
        composition["spec"]["writeConnectionSecretsToNamespace"] = json!("kube-system");
        user.apply(&composition.to_string()).await;
    }
    let own = "writeConnectionSecretToRef: {name: mine, namespace: default}";
    user.apply(&object("Thing", "silent", "")).await;
    let labelled = "{name: own, labels: {crossplane.io/composite: top}}";
    user.apply(&object("Thing", "own", own).replace("{name: own}", labelled)).await;
    user.apply(&object("Other", "modern", "")).await;
    let silent = user.until_ready(THING, "silent").await;
    let wanted = json!({"name": meta::uid(&silent), "namespace": "kube-system"});
    assert_eq!(silent["spec"]["writeConnectionSecretToRef"], wanted);
    user.until_ready(THING, "own").await;
    user.until_idle().await;
    let own = user.get(THING, "own").await.unwrap();
    assert_eq!(own["spec"]["writeConnectionSecretToRef"], json!({"name": "mine", "namespace": "default"}));
    let modern = user.until_ready(OTHER, "modern").await;
    assert!(!modern.to_string().contains("kube-system"), "{modern:#}");

    assert_eq!(meta::label(&silent, "crossplane.io/composite"), Some("silent"));
    assert_eq!(user.composed(MAP, "silent").await[0]["metadata"]["generateName"], "silent-");
    assert_eq!(meta::label(&own, "crossplane.io/composite"), Some("top"));
    assert_eq!(user.composed(MAP, "own").await, Vec::<Value>::new());
    let maps = user.composed(MAP, "top").await;
    assert_eq!(maps.len(), 1);
    assert_eq!(maps[0]["metadata"]["generateName"], "top-");
    assert_eq!(meta::controller_of(&maps[0]).unwrap().uid, meta::uid(&own));
}
