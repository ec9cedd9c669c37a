//! A function that composes one ConfigMap per replica the composite resource asks for, named after a prefix in the
//! step's input. Run it with `cargo run -p transom-function --example replicas -- --insecure --debug`.

use clap::Parser;
use serde::Deserialize;
use serde_json::json;
use transom_function::{
    Error, Function, Ready, Resource, ResourceSelector, RunFunctionRequest, RunFunctionResponse, ServeError,
    ServeOptions, Status, async_trait, serve,
};

/// What the Composition's step says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    prefix: String,
}

struct Replicas;

#[async_trait]
impl Function for Replicas {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let mut response = request.start_response();
        let input: Input = request.parse_input()?;

        // What is required arrives with the next call; until then there is nothing to say.
        response
            .require("limits", ResourceSelector::named("v1", "ConfigMap", "limits").in_namespace("default"));
        let Some(limits) = request.required("limits") else { return Ok(response) };
        let limit = limits.first().and_then(|limits| limits.get_str("data.replicas").ok());
        let limit: u64 = limit.unwrap_or("3").parse()?;

        let wanted = request.observed_composite().get("spec.replicas")?.as_u64();
        let wanted = wanted.ok_or_else(|| Error::fatal("spec.replicas is not a whole number"))?;
        if wanted > limit {
            response.warning(format!("{wanted} replicas asked for, {limit} allowed")).with_reason("Limited");
        }
        let count = wanted.min(limit);
        for number in 0..count {
            let name = format!("{}-{number}", input.prefix);
            let map =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"number": number.to_string()}});
            let ready = if request.observed_composed(&name).is_some() { Ready::True } else { Ready::False };
            response.set_composed(name, Resource::new(map)?.with_ready(ready));
        }
        response.composite().set("status.replicas", count)?;
        response.condition("Scaled", Status::ConditionTrue, "Composed");
        Ok(response)
    }
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let options = ServeOptions::parse();
    options.init_logging();
    serve(Replicas, &options).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use transom_function::testing::{RequestBuilder, run};

    fn request(replicas: &serde_json::Value) -> RunFunctionRequest {
        RequestBuilder::new(json!({"spec": {"replicas": replicas}}))
            .input(json!({"prefix": "map"}))
            .observed("map-0", json!({"kind": "ConfigMap"}))
            .build()
    }

    #[tokio::test]
    async fn one_map_per_replica() {
        let response = run(&Replicas, request(&json!(2)), &[]).await;
        let desired = response.desired.unwrap();
        assert_eq!(desired.resources["map-0"].ready(), Ready::True);
        assert_eq!(desired.resources["map-1"].ready(), Ready::False);
        assert_eq!(desired.resources.len(), 2);
        assert_eq!(desired.composite.unwrap().object(), &json!({"status": {"replicas": 2}}));
        assert!(response.results.is_empty());
    }

    #[tokio::test]
    async fn no_more_than_allowed() {
        let limits = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"replicas": "1"},
            "metadata": {"name": "limits", "namespace": "default"}});
        let response = run(&Replicas, request(&json!(2)), &[limits]).await;
        assert_eq!(response.desired.unwrap().resources.len(), 1);
        assert_eq!(response.results[0].message, "2 replicas asked for, 1 allowed");
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_fatal() {
        let response = run(&Replicas, request(&json!("many")), &[]).await;
        assert_eq!(response.results[0].message, "spec.replicas is not a whole number");
    }
}
