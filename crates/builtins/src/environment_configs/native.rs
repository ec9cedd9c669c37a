//! `spec.environment` of a Composition, as Crossplane v1 had it, in the terms of the function's input.

use serde_json::{Map, Value, json};
use transom_function::{Error, Function, RunFunctionRequest, RunFunctionResponse, Struct, async_trait};
use transom_object::fieldpath;

use super::{Input, Profile, run};
use crate::{input, strict};

/// Makes the environment that a Composition describes, which is its input: default data, EnvironmentConfigs and policy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Environment;

#[async_trait]
impl Function for Environment {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let environment = request.input.take().map_or_else(|| json!({}), |input| input.as_value().clone());
        let environment = rewrite(environment, request.observed_composite().object());
        request.input = Some(Struct::try_from(json!({"spec": environment}))?);
        Ok(input::answer(&mut request, |request, response| run(request, response, Profile::Native)))
    }
}

/// Makes the environment for another function, whose input has it as one of its parts. Returns whether everything was there that
/// it is made from; if not, the response requires it.
pub(crate) fn make(
    environment: Value,
    request: &RunFunctionRequest,
    response: &mut RunFunctionResponse,
) -> Result<bool, String> {
    let spec = rewrite(environment, request.observed_composite().object());
    let input = strict::object(&Map::from_iter([("spec".to_owned(), spec)]));
    let input: Input = input.map_err(|error| format!("environment: {error}"))?;
    let sources = input.spec.environment_configs.as_deref().unwrap_or_default();
    let required = super::requirements(sources, request.observed_composite().object())?;
    let complete = required.resources.keys().all(|name| request.required_resources.contains_key(name));
    response.requirements.get_or_insert_default().resources.extend(required.resources);
    if complete {
        super::set_environment(input, request, response)?;
    }
    Ok(complete)
}

fn rewrite(mut environment: Value, composite: &Value) -> Value {
    // The configs are selected at every reconcile, with any policy.
    if let Some(policy) = environment.get_mut("policy").and_then(Value::as_object_mut) {
        policy.remove("resolve");
    }
    let sources = environment.get_mut("environmentConfigs").and_then(Value::as_array_mut);
    for source in sources.into_iter().flatten() {
        let matchers = source.pointer_mut("/selector/matchLabels").and_then(Value::as_array_mut);
        matchers.into_iter().flatten().for_each(|matcher| write_out(matcher, composite));
    }
    environment
}

/// The value of a label may come from a field that is not a string; the function takes strings only.
fn write_out(matcher: &mut Value, composite: &Value) {
    let Some(path) = matcher.get("valueFromFieldPath").and_then(Value::as_str) else { return };
    if matcher.get("type").is_some_and(|kind| kind != "FromCompositeFieldPath") {
        return;
    }
    if let Ok(value @ (Value::Bool(_) | Value::Number(_))) = fieldpath::get(composite, path) {
        *matcher = json!({"type": "Value", "key": matcher.get("key"), "value": value.to_string()});
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transom_function::testing::{RequestBuilder, run};
    use transom_function::{ENVIRONMENT, Severity};

    fn config(name: &str, data: &Value) -> Value {
        json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig",
            "metadata": {"name": name, "labels": {"tier": "5"}}, "data": data})
    }

    async fn environment(input: Value, configs: &[Value]) -> RunFunctionResponse {
        let xr = json!({"apiVersion": "example.org/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"tier": 5}});
        run(&Environment, RequestBuilder::new(xr).input(input).build(), configs).await
    }

    fn made(response: &RunFunctionResponse) -> &Value {
        &response.context.as_ref().unwrap().as_value()[ENVIRONMENT]
    }

    #[tokio::test]
    async fn default_data_needs_no_config() {
        let input = json!({"defaultData": {"region": "eu"}, "policy": {"resolve": "Always"}});
        assert_eq!(made(&environment(input, &[]).await)["region"], "eu");
    }

    #[tokio::test]
    async fn configs_are_merged_over_default_data() {
        let input = json!({
            "defaultData": {"region": "eu", "a": {"b": 1, "c": 1}},
            "environmentConfigs": [
                {"type": "Reference", "ref": {"name": "one"}},
                {"type": "Selector", "selector": {"mode": "Single", "sortByFieldPath": "metadata.name", "matchLabels": [
                    {"key": "tier", "type": "FromCompositeFieldPath", "valueFromFieldPath": "spec.tier",
                     "fromFieldPathPolicy": "Required"},
                ]}},
            ],
            "policy": {"resolution": "Required", "resolve": "IfNotPresent"},
        });
        let response = environment(input, &[config("one", &json!({"a": {"c": 2}, "zone": "z"}))]).await;
        let made = made(&response);
        assert_eq!(
            (&made["region"], &made["a"], &made["zone"]),
            (&json!("eu"), &json!({"b": 1, "c": 2}), &json!("z"))
        );
    }

    /// The design of extra resources leaves it open whether function-patch-and-transform reads EnvironmentConfigs itself.
    #[tokio::test]
    async fn patch_and_transform_makes_an_environment_too() {
        let function = crate::find("function-patch-and-transform").unwrap();
        let input = |more: Value| {
            let mut environment =
                json!({"environmentConfigs": [{"type": "Reference", "ref": {"name": "one"}}]});
            environment.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({
                "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "environment": environment,
                "resources": [{
                    "name": "map", "base": {"apiVersion": "v1", "kind": "ConfigMap"},
                    "patches": [{"type": "FromEnvironmentFieldPath", "fromFieldPath": "zone", "toFieldPath": "data.zone"}],
                }],
            })
        };
        let xr = json!({"apiVersion": "example.org/v1", "kind": "X", "metadata": {"name": "x"}});
        let ask = async |more: Value, configs: &[Value]| {
            run(&function, RequestBuilder::new(xr.clone()).input(input(more)).build(), configs).await
        };
        let response =
            ask(json!({"defaultData": {"region": "eu"}}), &[config("one", &json!({"zone": "z"}))]).await;
        assert!(response.results.is_empty(), "{:?}", response.results);
        assert_eq!((&made(&response)["zone"], &made(&response)["region"]), (&json!("z"), &json!("eu")));
        let map = response.desired.unwrap().resources["map"].object().clone();
        assert_eq!(map["data"]["zone"], "z");
        let response = ask(json!({}), &[]).await;
        let why = &response.results[0].message;
        assert!(
            why.starts_with("cannot make the environment: ") && why.contains("\"one\" not found"),
            "{why}"
        );
        let response = ask(json!({"policy": {"resolution": "Optional"}}), &[]).await;
        assert!(response.results.is_empty(), "{:?}", response.results);
    }

    #[tokio::test]
    async fn a_config_that_is_missing_is_fatal_unless_it_is_optional() {
        let input = |policy: &str| {
            json!({"defaultData": {"a": 1}, "environmentConfigs": [{"ref": {"name": "none"}}],
                "policy": {"resolution": policy}})
        };
        let response = environment(input("Required"), &[]).await;
        assert_eq!(response.results[0].severity(), Severity::Fatal);
        assert!(response.results[0].message.contains("\"none\" not found"), "{:?}", response.results);
        assert_eq!(made(&environment(input("Optional"), &[]).await)["a"], 1);
    }
}
