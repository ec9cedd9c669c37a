//! What the function composes: a ConfigMap with a greeting.

use crate::input::Input;
use function_sdk_rust::proto::v1::function_runner_service_server::FunctionRunnerService;
use function_sdk_rust::proto::v1::{Ready, RunFunctionRequest, RunFunctionResponse};
use function_sdk_rust::{Error, request, resource, response};
use serde_json::{Value, json};
use tonic::{Request, Response, Status};

/// The name of the ConfigMap in the pipeline.
const GREETING: &str = "greeting";

pub struct Greeter;

#[tonic::async_trait]
impl FunctionRunnerService for Greeter {
    async fn run_function(
        &self,
        call: Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        let req = call.into_inner();
        let mut rsp = response::to(&req, response::DEFAULT_TTL);
        if let Err(error) = greet(&req, &mut rsp) {
            // Nothing is changed then, and the composite resource shows the message.
            response::fatal(&mut rsp, error.to_string());
        }
        Ok(Response::new(rsp))
    }
}

fn greet(req: &RunFunctionRequest, rsp: &mut RunFunctionResponse) -> Result<(), Error> {
    let input: Input = request::get_input(req)?;
    let composite: Value = resource::get(request::observed_composite(req))?;
    let name = composite["metadata"]["name"].as_str().unwrap_or_default();
    let message = format!("{}, {name}", input.message);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"message": message}});
    // A ConfigMap is ready as soon as it exists.
    let ready = if request::observed_composed(req, GREETING).is_some() { Ready::True } else { Ready::False };
    let greeting = response::desired_composed(rsp, GREETING);
    resource::update(greeting, &map)?;
    resource::set_ready(greeting, ready);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The response to a request with this input, when these resources exist.
    async fn run(input: Value, observed: Value) -> RunFunctionResponse {
        let composite = json!({"resource": {"metadata": {"name": "world"}}});
        let req = json!({"input": input, "observed": {"composite": composite, "resources": observed}});
        let req: RunFunctionRequest = serde_json::from_value(req).expect("a request");
        Greeter.run_function(Request::new(req)).await.expect("a response").into_inner()
    }

    #[tokio::test]
    async fn requests_and_their_responses() {
        let greeting = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"message": "Hello, world"}});
        let cases = [
            ("first call", json!({}), Ready::False),
            ("exists", json!({GREETING: {"resource": greeting}}), Ready::True),
        ];
        for (name, observed, ready) in cases {
            let rsp = run(json!({"message": "Hello"}), observed).await;
            let desired = rsp.desired.expect(name);
            let composed: Value = resource::get(desired.resources.get(GREETING)).expect(name);
            assert_eq!(composed, greeting, "{name}");
            assert_eq!(desired.resources[GREETING].ready(), ready, "{name}");
            assert!(rsp.results.is_empty(), "{name}");
        }
    }

    #[tokio::test]
    async fn an_input_without_a_message_is_fatal() {
        let rsp = run(json!({"mesage": "Hello"}), json!({})).await;
        assert_eq!(rsp.results.len(), 1);
        assert!(rsp.desired.is_none_or(|desired| desired.resources.is_empty()));
    }
}
