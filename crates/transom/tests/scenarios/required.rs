//! What functions require beyond what is composed; by a function that listens elsewhere.

use crate::user::*;
use serde_json::{Value, json};
use transom_function::{ResourceSelector, RunFunctionRequest, RunFunctionResponse};

/// A plane whose things say in their status what a function elsewhere was given.
async fn asking(
    script: impl Fn(&RunFunctionRequest, &mut RunFunctionResponse) -> Option<String> + Send + Sync + 'static,
) -> User {
    let user = User::new().await;
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
