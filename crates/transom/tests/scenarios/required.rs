//! What functions require beyond what is composed; by a function that listens elsewhere.

use crate::user::*;
use serde_json::json;
use std::net::SocketAddr;
use transom_function::{
    Error, Function, ResourceSelector, RunFunctionRequest, RunFunctionResponse, ServeOptions, Server,
    async_trait,
};

const THING: &str = "example.org/v1/Thing";

/// Says in the status what it was given.
enum Asking {
    Resources,
    Schemas,
}

#[async_trait]
impl Function for Asking {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let mut response = request.start_response();
        response.meta.as_mut().unwrap().ttl = None;
        let found = match self {
            Self::Resources => {
                let wanted = ResourceSelector::named("v1", "ConfigMap", "wanted").in_namespace("default");
                response.require("wanted", wanted);
                let given = request.required("wanted").and_then(|list| list.first());
                given.and_then(|map| map.get_str("data.value").ok()).map(str::to_owned)
            }
            Self::Schemas => {
                response.require_schema("pods", "v1", "Pod");
                let schema = request.required_schema("pods").flatten().map(|s| s.as_value().clone());
                // References are resolved: what is far below is there.
                let deep = "/properties/spec/properties/containers/items/properties/name/type";
                schema.and_then(|s| s.pointer(deep).and_then(|t| t.as_str()).map(str::to_owned))
            }
        };
        response.composite().set("status.coolerField", found.unwrap_or_else(|| "nothing".to_owned()))?;
        Ok(response)
    }
}

async fn serve(function: Asking) -> SocketAddr {
    let options =
        ServeOptions { insecure: true, address: "127.0.0.1:0".to_owned(), ..ServeOptions::default() };
    let server = Server::bind(&options).await.expect("a port");
    let address = server.local_addr().expect("an address");
    tokio::spawn(server.run(function, std::future::pending()));
    address
}

async fn asking(function: Asking) -> User {
    let address = serve(function).await;
    let user = User::new().await;
    user.apply(&crate::user::function("asking", &format!("transom.io/endpoint: '{address}'"))).await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("asks", "Thing", &json!({}), &[("asking", serde_json::Value::Null)])).await;
    user
}

#[tokio::test(flavor = "multi_thread")]
async fn required_resources() {
    let user = asking(Asking::Resources).await;
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
    let user = asking(Asking::Schemas).await;
    user.apply(&object("Thing", "one", "")).await;
    user.until(THING, "one", |o| o["status"]["coolerField"] == "string").await;
}
