//! What functions require beyond what is composed; by a function that listens elsewhere.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use transom_function::{ResourceSelector, RunFunctionRequest, RunFunctionResponse};

/// A plane whose things say in their status what a function elsewhere was given.
async fn asking(
    script: impl Fn(&RunFunctionRequest, &mut RunFunctionResponse) -> Option<String> + Send + Sync + 'static,
) -> User {
    asking_with(&[], script).await
}

/// The same with flags of the plane.
async fn asking_with(
    flags: &[&str],
    script: impl Fn(&RunFunctionRequest, &mut RunFunctionResponse) -> Option<String> + Send + Sync + 'static,
) -> User {
    let user = User::with(flags).await;
    let says = move |request: &RunFunctionRequest, response: &mut RunFunctionResponse| {
        let found = script(request, response).unwrap_or_else(|| "nothing".to_owned());
        response.composite().set("status.coolerField", found)?;
        Ok(())
    };
    user.function("asking", says).await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("asks", "Thing", &json!({}), &[("asking", Value::Null)])).await;
    user
}

#[tokio::test(flavor = "multi_thread")]
async fn required_resources() {
    let user = asking(|request, response| {
        let wanted = ResourceSelector::named("v1", "ConfigMap", "wanted").in_namespace("default");
        response.require("wanted", wanted);
        let given = request.required("wanted").and_then(|list| list.first());
        given.and_then(|map| map.get_str("data.value").ok()).map(str::to_owned)
    })
    .await;
    let wanted = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: wanted, namespace: default}}\ndata: {{value: {value}}}\n"
        )
    };
    user.apply(&wanted("before")).await;
    user.apply(&object("Thing", "one", "")).await;
    let xr = user.until(THING, "one", |o| o["status"]["coolerField"] == "before").await;
    assert_eq!(status_of(&xr, "Synced"), "True");
    user.apply(&wanted("after")).await;
    user.until(THING, "one", |o| o["status"]["coolerField"] == "after").await;
}

/// Without extra resources a function gets only those that the Composition requires for it.
#[tokio::test(flavor = "multi_thread")]
async fn extra_resources_can_be_turned_off() {
    let named = || ResourceSelector::named("v1", "ConfigMap", "wanted").in_namespace("default");
    let user = asking_with(&["--disable-extra-resources"], move |request, response| {
        if request.required("given").is_none() {
            response.require("asked", named());
        }
        let given = request.required("given").and_then(|list| list.first());
        given.and_then(|map| map.get_str("data.value").ok()).map(str::to_owned)
    })
    .await;
    user.apply(&map("wanted", "here")).await;
    user.apply(&object("Thing", "one", "")).await;
    let refused = |o: &Value| message_of(o, "Synced").contains("extra resources are turned off");
    user.until(THING, "one", refused).await;
    let plain = composition("asks", "Thing", &json!({}), &[("asking", Value::Null)]);
    let mut giving = documents(&plain).remove(0);
    giving["spec"]["pipeline"][0]["requirements"] = json!({"requiredResources": [{
        "requirementName": "given", "apiVersion": "v1", "kind": "ConfigMap", "name": "wanted", "namespace": "default",
    }]});
    user.apply(&giving.to_string()).await;
    user.until(THING, "one", |o| o["status"]["coolerField"] == "here" && status_of(o, "Synced") == "True")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn required_schemas() {
    let user = asking(|request, response| {
        response.require_schema("pods", "v1", "Pod");
        let schema = request.required_schema("pods").flatten().map(|s| s.as_value().clone());
        // References are resolved: what is far below is there.
        let deep = "/properties/spec/properties/containers/items/properties/name/type";
        schema.and_then(|s| s.pointer(deep).and_then(|t| t.as_str()).map(str::to_owned))
    })
    .await;
    user.apply(&object("Thing", "one", "")).await;
    user.until(THING, "one", |o| o["status"]["coolerField"] == "string").await;
}

fn map(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\ndata: {{value: {value}}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_is_followed_and_a_list_is_kept_to() {
    // Requires app-1, then instead of it what that names, and says what it was given in the end.
    let user = asking(|request, response| {
        let of = |name: &str| ResourceSelector::named("v1", "ConfigMap", name).in_namespace("default");
        let found = |name: &str| request.required(name).and_then(|list| list.first());
        let next = found("first").and_then(|first| first.get_str("data.value").ok());
        match (found("second"), next) {
            (Some(second), _) => response.require("second", of(second.name())),
            (None, Some(next)) => response.require("second", of(next)),
            (None, None) => response.require("first", of("app-1")),
        }
        found("second").map(|second| second.name().to_owned())
    })
    .await;
    for (name, next) in [("app-1", "app-2"), ("app-2", "end"), ("app-3", "end")] {
        user.apply(&map(name, next)).await;
    }
    user.apply(&object("Thing", "one", "")).await;
    user.until(THING, "one", |o| o["status"]["coolerField"] == "app-2").await;
    user.apply(&map("app-1", "app-3")).await;
    user.until(THING, "one", |o| o["status"]["coolerField"] == "app-3").await;
    // The list allows the start of the chain, and not where it leads.
    let allowing = |pattern: &str| {
        let plain = composition("asks", "Thing", &json!({}), &[("asking", Value::Null)]);
        let mut limited = documents(&plain).remove(0);
        let list = json!([{"apiVersion": "v1", "kind": "ConfigMap", "matchName": pattern}]);
        limited["spec"]["pipeline"][0]["allowedExtraResources"] = list;
        limited.to_string()
    };
    user.apply(&allowing("app-[12]")).await;
    let denied =
        |o: &Value| message_of(o, "Synced").contains("its allowedExtraResources do not allow what second");
    let refused = user.until(THING, "one", denied).await;
    let watched = refused["status"]["watchedResourceRefs"].as_array().unwrap();
    let watched: Vec<&Value> = watched.iter().map(|reference| &reference["name"]).collect();
    assert_eq!(watched, ["app-1"], "what led to the failure");
    user.apply(&map("app-1", "app-2")).await;
    user.until(THING, "one", |o| o["status"]["coolerField"] == "app-2" && status_of(o, "Synced") == "True")
        .await;
}
