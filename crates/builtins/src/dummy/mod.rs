//! `function-dummy`: adds the response that its input spells out to the desired state. It is meant for tests of Compositions.

mod literal;

use prost::Message;
use serde::Deserialize;
use serde_json::{Map, Value};
use transom_function::{RunFunctionRequest, RunFunctionResponse};

use crate::input;
use crate::review::{self, Builtin, Review, Unsupported};

/// The function.
pub(crate) struct Dummy;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Input {
    response: Value,
}

impl Builtin for Dummy {
    fn answer(&self, request: &mut RunFunctionRequest) -> RunFunctionResponse {
        input::answer(request, |request, response| {
            let spelt_out = spelt_out(request)?.encode_to_vec();
            // Decoding a message into an existing one is protobuf's own way to merge them.
            response.merge(spelt_out.as_slice()).map_err(|error| error.to_string())
        })
    }

    fn input_kind(&self) -> &'static str {
        "Response"
    }

    fn review(&self, input: &Map<String, Value>) -> Review {
        review::by_fields::<Input>(input, Unsupported::Ignored)
    }
}

review::function!(Dummy);

/// The response that the input spells out.
fn spelt_out(request: &RunFunctionRequest) -> Result<RunFunctionResponse, String> {
    let input: Input = input::read(request, "v1beta1.Response")?;
    let refused = |problem: String| {
        // The space after the colon is a no-break space, as in the original's library.
        format!("cannot unmarshal RunFunctionResponse from *v1.RunFunctionRequest: proto:\u{a0}{problem}")
    };
    let unexpected = |token: &str| refused(format!("syntax error (line 1:1): unexpected token {token}"));
    match input.response {
        Value::Object(_) => {
            let tidied = literal::tidied(&literal::RESPONSE, input.response).map_err(refused)?;
            RunFunctionResponse::deserialize(tidied).map_err(|error| refused(error.to_string()))
        }
        Value::Null => Err(unexpected("")),
        Value::Array(_) => Err(unexpected("[")),
        scalar => Err(unexpected(&scalar.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use transom_function::testing::{RequestBuilder, run};

    async fn answer(input: Value) -> Value {
        let request = RequestBuilder::new(json!({}))
            .desired("a", json!({"kind": "A"}))
            .desired("b", json!({"kind": "B", "spec": {}}))
            .context("x", json!({"kept": true}))
            .input(input)
            .build();
        serde_json::to_value(run(&Dummy, request, &[]).await).unwrap()
    }

    #[tokio::test]
    async fn the_literal_is_merged_onto_what_is_desired() {
        let response = json!({
            "meta": {"ttl": "10s"},
            "desired": {
                "composite": {"resource": {"status": {"ok": true}}, "ready": "READY_TRUE"},
                "resources": {"b": {"resource": {"kind": "Other"}}, "c": {"ready": "READY_TRUE"}},
            },
            "results": [{"severity": "SEVERITY_NORMAL", "message": "hello"}],
            "context": {"x": {"new": 1}, "y": 2},
        });
        let expected = json!({
            "meta": {"tag": "test", "ttl": "10s"},
            "desired": {
                "composite": {"resource": {"status": {"ok": true}}, "ready": "READY_TRUE"},
                "resources": {
                    "a": {"resource": {"kind": "A"}},
                    "b": {"resource": {"kind": "Other"}},
                    "c": {"ready": "READY_TRUE"},
                },
            },
            "results": [{"severity": "SEVERITY_NORMAL", "message": "hello"}],
            "context": {"x": {"new": 1}, "y": 2},
        });
        assert_eq!(answer(json!({"response": response})).await, expected);
    }

    #[tokio::test]
    async fn null_means_absent() {
        let response = json!({"meta": null, "results": null, "desired": {"resources": {"a": {"ready": null, "resource": {"kind": null}}}}});
        let answer = answer(json!({"response": response})).await;
        assert_eq!(answer["desired"]["resources"]["a"], json!({"resource": {"kind": null}}));
        assert_eq!(answer.get("results"), None);
    }

    #[tokio::test]
    async fn what_is_not_a_response_is_fatal() {
        let start = "cannot unmarshal RunFunctionResponse from *v1.RunFunctionRequest: proto:\u{a0}";
        for (input, expected) in [
            (json!({}), format!("{start}syntax error (line 1:1): unexpected token ")),
            (json!({"response": "x"}), format!("{start}syntax error (line 1:1): unexpected token \"x\"")),
            (json!({"response": [1]}), format!("{start}syntax error (line 1:1): unexpected token [")),
            (json!({"response": {"none": 1}}), format!("{start}unknown field `none`")),
            (json!({"response": {"results": [{"reasons": null}]}}), format!("{start}unknown field `reasons`")),
            (json!({"response": {"desired": []}}), format!("{start}unexpected token [")),
            (json!({"response": {"results": [null]}}), format!("{start}unexpected token null")),
            (
                json!({"resources": []}),
                "cannot get Function input from *v1.RunFunctionRequest: cannot get function input *v1beta1.Response"
                    .to_owned(),
            ),
        ] {
            let response = answer(input).await;
            let message = response["results"][0]["message"].as_str().unwrap();
            assert!(message.starts_with(&expected), "{message}");
            assert_eq!(response["desired"]["resources"]["a"]["resource"]["kind"], "A");
        }
    }
}
