//! What a step may read and how often it may ask, what several Compositions share, and what is said when that is not
//! kept to.

use crate::life::basics::*;
use crate::life::fixture::*;
use crate::life::realtime::config;
use serde_json::{Value, json};
use transom_function::ResourceSelector;
use transom_object::meta;

/// A Composition of one step with these further fields.
fn policed(fields: &str) -> String {
    let step = "  - {step: reader, functionRef: {name: reader}}\n";
    let policed = format!("  - {{step: reader, functionRef: {{name: reader}}, {fields}}}\n");
    composition("things", &["reader"]).replace(step, &policed)
}

async fn plane(fields: &str) -> Plane {
    let plane = Plane::new().await;
    crate::life::realtime::reader(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&policed(fields)).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane
}

/// Why a composite resource is not synced.
async fn refusal(plane: &Plane, name: &str) -> String {
    // Before a revision is known to be valid, it is for that reason.
    let step = |o: &Value| message_of(o, "Synced").contains("pipeline step");
    let refused = plane.until(XR, name, |o| reason_of(o, "Synced") == "ReconcileError" && step(o)).await;
    message_of(&refused, "Synced").to_owned()
}

#[tokio::test]
async fn a_step_reads_what_is_allowed_and_nothing_else() {
    let plane = plane(
        "allowedExtraResources: [{apiVersion: v1, kind: ConfigMap, matchName: 'open-.*'}, \
         {apiVersion: v1, kind: ConfigMap, matchLabels: {app: 'open-(a|b)'}}]",
    )
    .await;
    for name in ["open-a", "closed", "not-open-a"] {
        plane.apply(&config(name, "hello")).await;
    }
    plane.apply(&xr("by-name", "open-a")).await;
    plane.apply(&xr("by-label", "label-open-a")).await;
    for name in ["by-name", "by-label"] {
        plane.until(XR, name, |o| o["status"]["size"] == "hello" && status_of(o, "Ready") == "True").await;
    }
    for (name, wanted, named) in [
        ("closed", "closed", "\"matchName\":\"closed\""),
        ("half", "not-open-a", "\"matchName\":\"not-open-a\""),
        ("label", "label-closed", "\"app\":\"closed\""),
        ("longer", "label-open-ab", "\"app\":\"open-ab\""),
    ] {
        plane.apply(&xr(name, wanted)).await;
        let why = refusal(&plane, name).await;
        // Which step, under which name, what exactly, and where to allow it.
        for part in
            ["pipeline step \"reader\"", "allowedExtraResources", "what it requires", named, "ConfigMap"]
        {
            assert!(why.contains(part), "{part} is not in {why}");
        }
        let refused = plane.get(XR, name).await.unwrap();
        assert!(refused["status"].get("size").is_none(), "nothing was read: {refused}");
    }
    // The list is part of the Composition: a user who may change that may allow more.
    plane.apply(&policed("allowedExtraResources: [{apiVersion: v1, kind: ConfigMap}]")).await;
    plane.until(XR, "closed", |o| o["status"]["size"] == "hello" && status_of(o, "Synced") == "True").await;
}

#[tokio::test]
async fn an_empty_list_allows_nothing() {
    let plane = plane("allowedExtraResources: []").await;
    plane.apply(&config("a", "hello")).await;
    plane.apply(&xr("one", "a")).await;
    let why = refusal(&plane, "one").await;
    assert!(why.contains("its allowedExtraResources do not allow what it requires"), "{why}");
}

/// A function that wants to see one ConfigMap more in every iteration, up to as many as its composite resource's size.
async fn curious(plane: &Plane) {
    plane
        .function("reader", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let wanted: usize = request.observed_composite().get_str("spec.size")?.parse()?;
            let asked = request.required_resources.len();
            let asking = (asked + 1).min(wanted);
            for i in 0..asking {
                let mut selector = ResourceSelector::named("v1", "ConfigMap", format!("cm-{i}"));
                selector.namespace = Some("default".to_owned());
                response.require(format!("cm-{i}"), selector);
            }
            response.composite().set("status.size", asking.to_string())?;
            Ok(response)
        })
        .await;
}

#[tokio::test]
async fn how_often_a_step_may_ask_is_up_to_its_composition() {
    let plane = plane("maxIterations: 3").await;
    curious(&plane).await;
    plane.apply(&xr("two", "'2'")).await;
    plane.until(XR, "two", |o| o["status"]["size"] == "2" && status_of(o, "Ready") == "True").await;
    plane.apply(&xr("seven", "'7'")).await;
    let why = refusal(&plane, "seven").await;
    let stabilize = "requirements didn't stabilize after the maximum number of iterations (3)";
    assert!(why.contains(&format!("pipeline step \"reader\": {stabilize}")), "{why}");
    plane.apply(&policed("maxIterations: 8")).await;
    plane.until(XR, "seven", |o| o["status"]["size"] == "7" && status_of(o, "Synced") == "True").await;
    plane.apply(&policed("maxIterations: -1")).await;
    plane.apply(&xr("many", "'130'")).await;
    plane.until(XR, "many", |o| o["status"]["size"] == "130" && status_of(o, "Synced") == "True").await;
}

/// A function that reports what its input says.
async fn parrot(plane: &Plane) {
    plane
        .function("reader", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let input = request.input.as_ref().map(|input| input.fields().clone()).unwrap_or_default();
            let says = input.get("data").and_then(|d| d["says"].as_str()).unwrap_or("nothing").to_owned();
            response.composite().set("status.size", says)?;
            Ok(response)
        })
        .await;
}

const SHARED: &str = "inputRef: {apiVersion: v1, kind: ConfigMap, name: shared, namespace: default}";

#[tokio::test]
async fn an_input_can_be_shared() {
    let plane = plane(SHARED).await;
    parrot(&plane).await;
    plane.apply(&xr("one", "small")).await;
    let why = refusal(&plane, "one").await;
    for part in ["pipeline step \"reader\"", "ConfigMap \"shared\"", "it does not exist"] {
        assert!(why.contains(part), "{part} is not in {why}");
    }
    plane.apply(&config("shared", "hello")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "hello" && status_of(o, "Synced") == "True").await;
    plane.apply(&config("shared", "world")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "world").await;
    // It is that or an input of its own.
    let own = "input: {apiVersion: v1, kind: ConfigMap, data: {says: mine}}";
    let why = plane.try_apply(&policed(&format!("{own}, {SHARED}"))).await.unwrap_err().to_string();
    assert!(why.contains("input and inputRef are mutually exclusive"), "{why}");
    plane.apply(&policed(own)).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "mine").await;
}

/// A function that reports what its input says and what its step gives it as `it`, and asks for nothing.
async fn content(plane: &Plane) {
    plane
        .function("reader", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let given = request.required("it").unwrap_or_default().iter().map(|r| r.object().clone());
            let input = request.input.as_ref().map(|input| input.as_value().clone());
            let says = input.into_iter().chain(given).map(|o| o["data"]["says"].as_str().unwrap().to_owned());
            response.composite().set("status.size", says.collect::<Vec<_>>().join("+"))?;
            Ok(response)
        })
        .await;
}

#[tokio::test]
async fn what_the_composition_gives_is_given_although_extra_resources_are_off() {
    let mut plane = Plane::quiet().await;
    plane.options.extra_resources = false;
    plane.start().await;
    content(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane.apply(&config("shared", "hello")).await;
    let given = "requirements: {requiredResources: [{requirementName: it, apiVersion: v1, kind: ConfigMap, matchLabels: {app: shared}}]}";
    plane.apply(&policed(&format!("{SHARED}, {given}"))).await;
    plane.apply(&xr("one", "small")).await;
    plane
        .until(XR, "one", |o| o["status"]["size"] == "hello+hello" && watched(o) == ["ConfigMap/shared"])
        .await;
    plane.apply(&config("shared", "world")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "world+world").await;
    // What a function asks for besides is refused.
    crate::life::realtime::reader(&plane).await;
    let token = json!({"metadata": {"annotations": {"crossplane.io/reconcile-requested-at": "now"}}});
    plane.patch(XR, "one", token).await;
    let why = refusal(&plane, "one").await;
    for part in ["pipeline step \"reader\"", "\"it\"", "turned off"] {
        assert!(why.contains(part), "{part} is not in {why}");
    }
}

fn watched(xr: &Value) -> Vec<String> {
    let refs = xr["status"]["watchedResourceRefs"].as_array().cloned().unwrap_or_default();
    refs.iter().map(|r| format!("{}/{}", r["kind"].as_str().unwrap(), r["name"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn what_is_watched_is_recorded() {
    let plane = Plane::new().await;
    plane
        .function("reader", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let size = request.observed_composite().get_str("spec.size")?.to_owned();
            let mut composed = config_map(&json!({"a": "b"}));
            meta::set_namespace(&mut composed, "default");
            response.set_composed("config", ready(composed));
            if size == "all" {
                let mut selector = ResourceSelector::labelled("v1", "ConfigMap", [("team", "red")]);
                selector.namespace = Some("default".to_owned());
                response.require("maps", selector);
                response.require("space", ResourceSelector::named("v1", "Namespace", "default"));
            }
            Ok(response)
        })
        .await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&composition("things", &["reader"])).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    let red = |name: &str| config(name, "x").replace(&format!("{{app: {name}}}"), "{team: red}");
    plane.apply(&red("b")).await;
    plane.apply(&red("a")).await;
    plane.apply(&config("blue", "x")).await;
    plane.apply(&xr("one", "all")).await;
    let all = plane.until(XR, "one", |o| watched(o).len() == 3 && status_of(o, "Ready") == "True").await;
    assert_eq!(
        watched(&all),
        ["ConfigMap/a", "ConfigMap/b", "Namespace/default"],
        "and not what it composes"
    );
    plane.delete("v1/ConfigMap", "default/a").await;
    plane.apply(&red("c")).await;
    plane.until(XR, "one", |o| watched(o) == ["ConfigMap/b", "ConfigMap/c", "Namespace/default"]).await;
    plane.apply(&xr("one", "none")).await;
    plane.until(XR, "one", |o| o["status"].get("watchedResourceRefs").is_none()).await;
}
