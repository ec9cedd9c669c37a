//! What is refused before anything is done, and what users read about it.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::{Value, json};
use transom_function::{Resource, ResourceSelector, RunFunctionRequest, RunFunctionResponse};
use transom_object::meta;

const MAP: &str = "v1/ConfigMap";
const NAME: &str = "crossplane.io/composition-resource-name";

/// A function whose response depends on `spec.size`.
async fn by_size(
    plane: &Plane,
    name: &str,
    act: impl Fn(&str, &RunFunctionRequest, &mut RunFunctionResponse) + Send + Sync + 'static,
) {
    plane
        .function(name, move |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let size = request.observed_composite().get_str("spec.size").unwrap_or_default().to_owned();
            act(&size, &request, &mut response);
            Ok(response)
        })
        .await;
}

fn map() -> Value {
    let mut map = config_map(&json!({"a": "b"}));
    meta::set_namespace(&mut map, "default");
    map
}

fn references(xr: &Value) -> Vec<String> {
    let list = xr["spec"]["crossplane"]["resourceRefs"].as_array().cloned().unwrap_or_default();
    list.iter().map(|r| r["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Makes a composite resource control and refer to one more ConfigMap.
async fn refer_to(plane: &Plane, name: &str, metadata: Value) {
    let xr = plane.get(XR, "one").await.unwrap();
    let mut object = map();
    object["metadata"] = metadata;
    meta::set_name(&mut object, name);
    meta::set_namespace(&mut object, "default");
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "example.org/v1", "kind": "XThing", "name": "one", "uid": meta::uid(&xr), "controller": true,
    }]);
    plane.user.create(&object, "kubectl").await.expect("it can be made");
    let mut references = xr["spec"]["crossplane"]["resourceRefs"].as_array().cloned().unwrap();
    references.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": "default"}));
    plane.patch(XR, "one", json!({"spec": {"crossplane": {"resourceRefs": references}}})).await;
}

#[tokio::test]
async fn a_resource_without_a_name_is_refused_and_what_has_none_does_not_stop_anything() {
    let plane = Plane::new().await;
    by_size(&plane, "naming", |size, _, response| {
        response.set_composed(if size == "empty" { "" } else { "map" }, ready(map()));
    })
    .await;
    things(&plane, &["naming"]).await;
    plane.apply(&xr("one", "well")).await;
    let well = plane.until_true(XR, "one", "Ready").await;
    let own = composed_name(&well);
    plane.apply(&xr("one", "empty")).await;
    let refused = "cannot compose resources: pipeline step \"naming\" (function \"naming\") returned a composed resource without a name";
    plane.until(XR, "one", |o| message_of(o, "Synced").starts_with(refused)).await;
    assert!(!meta::is_deleting(&plane.get(MAP, &own).await.expect("nothing is deleted")));
    plane.apply(&xr("one", "well")).await;
    plane.until_true(XR, "one", "Synced").await;

    // What such a function left behind goes.
    let leftover = transom_compose::child_name("one-", meta::uid(&well), "");
    refer_to(&plane, &leftover, json!({"annotations": {NAME: ""}, "generateName": "one-"})).await;
    plane.until_gone(MAP, &format!("default/{leftover}")).await;
    let healed = plane.until(XR, "one", |o| references(o).len() == 1).await;
    assert_eq!(status_of(&healed, "Synced"), "True");

    // What lost its annotation gets it back.
    plane.patch(MAP, &own, json!({"metadata": {"annotations": {NAME: null}}})).await;
    let map = plane.until(MAP, &own, |o| meta::annotation(o, NAME) == Some("map")).await;
    assert!(!meta::is_deleting(&map));

    // Resources that cannot be distinguished stay, and this is reported.
    refer_to(&plane, "stray", json!({})).await;
    plane.until_idle().await;
    let stray = plane.get(MAP, "default/stray").await.expect("it is not deleted");
    assert!(!meta::is_deleting(&stray));
    let xr = plane.until_true(XR, "one", "Synced").await;
    assert!(references(&xr).contains(&"stray".to_owned()), "{:?}", references(&xr));
    let events = plane.events_of("one").await;
    assert!(
        events.iter().any(|e| e.starts_with("Warning UnnamedResource: ") && e.contains("\"stray\"")),
        "{events:#?}"
    );
    plane.delete(MAP, "default/stray").await;
    plane.until(XR, "one", |o| references(o).len() == 1).await;
    assert!(plane.get(MAP, &own).await.is_some());
}

#[tokio::test]
async fn another_kind_under_the_same_name_replaces_the_object() {
    let mut plane = Plane::new().await;
    by_size(&plane, "shifting", |size, _, response| {
        // They differ in nothing but their kind.
        let object = json!({"apiVersion": "v1", "kind": size, "metadata": {"namespace": "default"}});
        response.set_composed("thing", ready(object));
    })
    .await;
    things(&plane, &["shifting"]).await;
    plane.apply(&xr("one", "ConfigMap")).await;
    let name = composed_name(&plane.until_true(XR, "one", "Ready").await);
    plane.apply(&xr("one", "Secret")).await;
    plane.until_gone(MAP, &name).await;
    let secret = plane.until("v1/Secret", &name, |o| !meta::is_deleting(o)).await;
    assert_eq!(meta::annotation(&secret, NAME), Some("thing"));
    let xr = plane.until(XR, "one", |o| o["spec"]["crossplane"]["resourceRefs"][0]["kind"] == "Secret").await;
    assert_eq!(references(&xr).len(), 1);
    plane.until_idle().await;
    plane.start().await;
    plane.until_idle().await;
    assert_eq!(plane.log(), Vec::<String>::new(), "a restart changes nothing");
}

#[tokio::test]
async fn what_is_too_large_does_not_hide_the_error() {
    let plane = Plane::new().await;
    by_size(&plane, "loud", |size, _, response| match size.split_once(' ') {
        Some(("status", bytes)) => {
            response.composite().set("status.size", "x".repeat(bytes.parse().unwrap())).unwrap();
        }
        Some(("fatal", bytes)) => {
            let bytes = bytes.parse().unwrap();
            response.fatal(format!("first {} last", "x".repeat(bytes)));
        }
        _ => {}
    })
    .await;
    things(&plane, &["loud"]).await;
    plane.apply(&xr("one", "status 3500000")).await;
    let large = plane.until(XR, "one", |o| status_of(o, "Synced") == "False").await;
    let message = message_of(&large, "Synced");
    let words = "cannot apply composite resource status: the status that functions returned has ";
    assert!(message.starts_with(words), "{message}");
    assert!(
        message.ends_with("the limit is 2097152. The largest field is status.size with 3500002 bytes"),
        "{message}"
    );
    plane.apply(&xr("one", "well")).await;
    plane.until_true(XR, "one", "Synced").await;
    plane.apply(&xr("one", "status 2000000")).await;
    plane.until(XR, "one", |o| o["status"]["size"].as_str().is_some_and(|s| s.len() == 2_000_000)).await;
    plane.apply(&xr("one", "fatal 2000000")).await;
    let failed = plane.until(XR, "one", |o| message_of(o, "Synced").contains("fatal result")).await;
    let message = message_of(&failed, "Synced");
    assert!(message.len() <= 16 << 10, "{}", message.len());
    assert!(message.contains("fatal result: first x") && message.ends_with("x last"));
    plane.until_idle().await;
    let events = plane.events_of("one").await;
    let event = events.iter().find(|e| e.contains("fatal result")).expect("it is reported");
    assert!(event.ends_with("x last") && event.len() < 1100, "{event}");
    plane.apply(&xr("one", "well")).await;
    plane.until(XR, "one", |o| status_of(o, "Synced") == "True" && o["status"].get("size").is_none()).await;
    // One that no controller can write back in one request.
    plane.apply(&xr("huge", &"x".repeat(3_145_500))).await;
    let words = "cannot update composite resource: Request entity too large";
    plane.until(XR, "huge", |o| message_of(o, "Synced").starts_with(words)).await;
    plane.delete(XR, "huge").await;
    plane.until_gone(XR, "huge").await;
}

#[tokio::test]
async fn watched_resources_are_listed_up_to_a_bound() {
    let plane = Plane::new().await;
    by_size(&plane, "reader", |_, request, response| {
        response.require("all", ResourceSelector::labelled("v1", "ConfigMap", [("read", "me")]));
        let found = request.required_resources.get("all").map_or(0, |found| found.items.len());
        response.composite().set("status.size", found.to_string()).unwrap();
    })
    .await;
    things(&plane, &["reader"]).await;
    for i in 0..260 {
        let mut map = map();
        map["metadata"] =
            json!({"name": format!("map-{i:03}"), "namespace": "default", "labels": {"read": "me"}});
        plane.user.create(&map, "kubectl").await.expect("it can be made");
    }
    plane.apply(&xr("one", "small")).await;
    let xr = plane.until(XR, "one", |o| o["status"]["size"] == "260").await;
    assert_eq!(xr["status"]["watchedResourceRefs"].as_array().map(Vec::len), Some(256));
    assert_eq!(xr["status"]["watchedResourceRefsOmitted"], 4);
    for i in 255..260 {
        plane.delete(MAP, &format!("default/map-{i:03}")).await;
    }
    let xr = plane.until(XR, "one", |o| o["status"]["size"] == "255").await;
    assert!(xr["status"].get("watchedResourceRefsOmitted").is_none());
}

#[tokio::test]
async fn what_has_no_effect_is_reported_once() {
    let plane = Plane::new().await;
    by_size(&plane, "wishful", |_, _, response| {
        response.composite().set("spec.region", "north").unwrap();
        response.set_connection_detail("password", "secret");
    })
    .await;
    things(&plane, &["wishful"]).await;
    let mut one = documents(&xr("one", "small")).remove(0);
    one["spec"]["crossplane"] = json!({
        "compositionUpdatePolicy": "Manual", "compositionRevisionSelector": {"matchLabels": {"channel": "alpha"}},
    });
    plane.apply(&one.to_string()).await;
    plane.until_true(XR, "one", "Ready").await;
    for i in 0..3 {
        plane.patch(XR, "one", json!({"metadata": {"annotations": {"look": i.to_string()}}})).await;
        plane.until_idle().await;
    }
    let events = plane.events_of("one").await;
    for warning in [
        "Pipeline step \"wishful\": has no effect: spec.region; ",
        "Pipeline step \"wishful\": has no effect: connectionDetails.password; ",
        "compositionRevisionSelector has no effect because no revision of the Composition has its labels, ",
    ] {
        let words = format!("Warning IgnoredFields: {warning}");
        assert_eq!(events.iter().filter(|e| e.starts_with(&words)).count(), 1, "{warning}: {events:#?}");
    }
    assert!(events.iter().all(|e| !e.contains("secret")), "{events:#?}");
}

#[tokio::test]
async fn composite_resources_are_nested_up_to_a_limit() {
    let plane = Plane::new().await;
    by_size(&plane, "endless", |size, _, response| {
        if size == "again" {
            let child = json!({"apiVersion": "example.org/v1", "kind": "XThing", "spec": {"size": "again"}});
            response.set_composed("child", Resource::new(child).unwrap());
        }
    })
    .await;
    things(&plane, &["endless"]).await;
    plane.apply(&xr("root", "again")).await;
    let words = "cannot compose resources: composite resources are nested 32 levels deep; the limit is 32. ";
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let all = plane.list(XR).await;
        if all.iter().any(|o| message_of(o, "Synced").starts_with(words)) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{} are nested", all.len());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    plane.until_idle().await;
    let all = plane.list(XR).await;
    assert_eq!(all.len(), 33, "the topmost one and 32 below it");
    let stopped = all.iter().filter(|o| status_of(o, "Synced") == "False");
    let stopped: Vec<&str> = stopped.map(|o| message_of(o, "Synced")).collect();
    assert!(stopped.len() == 1 && stopped[0].contains("\"root\""), "{stopped:?}");
    // A composite resource without nested ones is not affected.
    plane.apply(&xr("plain", "once")).await;
    plane.until_true(XR, "plain", "Ready").await;
    plane.delete(XR, "root").await;
    plane.until_gone(XR, "root").await;
}

/// A composite resource that was made for a claim has no controller: what is above it is its claim.
#[tokio::test]
async fn the_limit_of_nesting_counts_claims() {
    let plane = Plane::new().await;
    by_size(&plane, "endless", |_, _, response| {
        let child = json!({
            "apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"namespace": "default"},
            "spec": {"size": "again"},
        });
        response.set_composed("child", Resource::new(child).unwrap());
    })
    .await;
    plane.apply(&definition("LegacyCluster", true)).await;
    plane.until_true(XRD, "xthings.example.org", "Offered").await;
    things(&plane, &["endless"]).await;
    plane.apply(&xr("root", "again")).await;
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let all = plane.list(XR).await;
        if all.iter().any(|o| message_of(o, "Synced").contains("nested 32 levels deep")) {
            break;
        }
        assert!(std::time::Instant::now() < deadline && all.len() < 40, "{} are nested", all.len());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    plane.until_idle().await;
    assert_eq!(plane.list(XR).await.len(), 17, "the topmost one and, with as many claims, 16 below it");
}

#[tokio::test]
async fn a_namespaced_resource_of_a_cluster_scoped_composite_resource_needs_a_namespace() {
    let plane = Plane::new().await;
    by_size(&plane, "homeless", |size, _, response| {
        let mut map = map();
        meta::set_namespace(&mut map, size);
        response.set_composed("cm", ready(map));
    })
    .await;
    things(&plane, &["homeless"]).await;
    plane.apply(&xr("one", "''")).await;
    let words = "cannot apply composed resource \"cm\": ConfigMap is namespaced: set metadata.namespace in the template of resource \"cm\"";
    let failed = plane.until(XR, "one", |o| message_of(o, "Synced").ends_with(words)).await;
    assert!(references(&failed).is_empty(), "nothing is begun");
    plane.apply(&xr("one", "default")).await;
    plane.until_true(XR, "one", "Ready").await;
}

#[tokio::test]
async fn conditions_name_the_cause() {
    let plane = Plane::new().await;
    by_size(&plane, "partial", |size, _, response| {
        let mut bad = config_map(&json!({"not a key!": "b"}));
        meta::set_namespace(&mut bad, "default");
        match size {
            "bad" => response.set_composed("bad", ready(bad)),
            _ => {
                response.composite().ready = transom_function::Ready::False as i32;
                response.warning("not adding new composed resource \"site\": status.network: no such field");
            }
        }
    })
    .await;
    things(&plane, &["partial"]).await;
    plane.apply(&xr("one", "bad")).await;
    let bad = plane.until(XR, "one", |o| status_of(o, "Synced") == "False").await;
    let message = message_of(&bad, "Synced");
    assert!(message.starts_with("Unsynced resources: bad (bad: ConfigMap "), "{message}");
    assert!(message.contains("not a key!"), "{message}");
    plane.until(XR, "one", |o| status_of(o, "Ready") == "True").await;
    plane.apply(&xr("one", "held")).await;
    let held = plane.until(XR, "one", |o| status_of(o, "Ready") == "False").await;
    assert_eq!(reason_of(&held, "Ready"), "Creating");
    assert_eq!(
        message_of(&held, "Ready"),
        "A function reports that the composite resource is not ready (Pipeline step \"partial\": not adding new composed resource \"site\": status.network: no such field)"
    );
}

#[tokio::test]
async fn a_misspelt_function_is_recognised() {
    let plane = with_things("Cluster", false).await;
    plane.apply(&composition("things", &["sizr"])).await;
    plane.apply(&xr("one", "small")).await;
    let words = "there is no function \"sizr\": no such Function is installed; did you mean \"sizer\"?";
    plane.until(XR, "one", |o| message_of(o, "Synced").ends_with(words)).await;
}
