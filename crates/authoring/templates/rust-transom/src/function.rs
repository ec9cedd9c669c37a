//! What the function composes: a ConfigMap with a greeting.

use crate::input::Input;
use serde_json::json;
use transom_function::{
    Error, Function, Ready, Resource, RunFunctionRequest, RunFunctionResponse, async_trait,
};

/// The name of the ConfigMap in the pipeline.
const GREETING: &str = "greeting";

pub struct Greeter;

#[async_trait]
impl Function for Greeter {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let mut response = request.start_response();
        let input: Input = request.parse_input()?;
        let message = format!("{}, {}", input.message, request.observed_composite().name());
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"message": message}});
        // A ConfigMap is ready as soon as it exists.
        let ready = if request.observed_composed(GREETING).is_some() { Ready::True } else { Ready::False };
        response.set_composed(GREETING, Resource::new(map)?.with_ready(ready));
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transom_function::testing::{RequestBuilder, run};

    /// Requests, and the resources that are wanted then or the message of the fatal result.
    #[tokio::test]
    async fn requests_and_their_responses() {
        let composite = json!({"metadata": {"name": "world"}});
        let greeting = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"message": "Hello, world"}});
        let request = || RequestBuilder::new(composite.clone()).input(json!({"message": "Hello"}));
        let cases = [
            ("first call", request(), Ready::False),
            ("exists", request().observed(GREETING, greeting.clone()), Ready::True),
        ];
        for (name, request, ready) in cases {
            let response = run(&Greeter, request.build(), &[]).await;
            let desired = response.desired.expect(name);
            assert_eq!(desired.resources[GREETING].object(), &greeting, "{name}");
            assert_eq!(desired.resources[GREETING].ready(), ready, "{name}");
            assert!(response.results.is_empty(), "{name}");
        }
    }

    #[tokio::test]
    async fn an_input_without_a_message_is_fatal() {
        let request = RequestBuilder::new(json!({})).input(json!({"mesage": "Hello"})).build();
        let response = run(&Greeter, request, &[]).await;
        assert_eq!(response.results.len(), 1);
        assert!(response.desired.is_none_or(|desired| desired.resources.is_empty()));
    }
}
