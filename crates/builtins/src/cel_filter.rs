//! `function-cel-filter`: keeps a composed resource desired only while an expression is true.
//!
//! All expressions are evaluated, whether or not a resource has the name they are for, and a failing expression is fatal. A
//! resource is dropped when any filter that matches its name is false; if it exists, it is thereby deleted.

use regex::bytes::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};
use transom_function::{RunFunctionRequest, RunFunctionResponse};
use transom_go::regexp::{self, Limits};
use transom_object::quote::quote;

use crate::expression::{self, Problem, Typing};
use crate::review::{self, Builtin, Review, Unsupported};
use crate::{input, strict};

/// The function.
pub(crate) struct CelFilter;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Input {
    filters: Vec<Filter>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Filter {
    name: String,
    expression: String,
}

impl Builtin for CelFilter {
    fn answer(&self, request: &mut RunFunctionRequest) -> RunFunctionResponse {
        input::answer(request, |request, response| {
            let excluded = excluded(request, response)?;
            if let Some(desired) = &mut response.desired {
                desired.resources.retain(|name, _| !excluded.iter().any(|r| r.is_match(name.as_bytes())));
            }
            Ok(())
        })
    }

    fn input_kind(&self) -> &'static str {
        "Filters"
    }

    fn review(&self, input: &Map<String, Value>) -> Review {
        review::by_fields::<Input>(input, Unsupported::Ignored)
    }
}

review::function!(CelFilter);

/// The patterns of names whose expressions do not hold.
fn excluded(request: &RunFunctionRequest, response: &RunFunctionResponse) -> Result<Vec<Regex>, String> {
    let input: Input = strict::input(request, "v1beta1.Filters")
        .map_err(|error| format!("cannot get filters from *v1.RunFunctionRequest: {error}"))?;
    let mut excluded = Vec::new();
    for (i, filter) in input.filters.iter().enumerate() {
        let pattern = format!("^{}$", filter.name);
        let name = regexp::compile_bytes(&pattern, Limits::default()).map_err(|error| {
            format!("cannot compile regular expression {} for filter {i}: {error}", quote(&pattern))
        })?;
        let source = &filter.expression;
        let (desired, context) = (response.desired.as_ref(), response.context.as_ref());
        let holds = expression::holds(source, Typing::Static, request.observed.as_ref(), desired, context);
        let holds = holds.map_err(|problem| {
            let problem = describe(problem, source);
            format!("cannot evaluate CEL expression {} for filter {i}: {problem}", quote(source))
        })?;
        if !holds {
            excluded.push(name);
        }
    }
    Ok(excluded)
}

fn describe(problem: Problem, source: &str) -> String {
    match problem {
        Problem::Syntax(issues) => format!("cannot parse expression: {issues}"),
        Problem::Meaning(issues) => format!("cannot type-check expression: {issues}"),
        Problem::Type(name) => {
            format!("expression {} must return a boolean, but will return {name} instead", quote(source))
        }
        Problem::Evaluation(error) => format!("cannot evaluate CEL program: {error}"),
        Problem::NotBool => "expression did not return a bool".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use transom_function::testing::{RequestBuilder, run};

    async fn filtered(filters: Value) -> Result<Vec<String>, String> {
        let request = RequestBuilder::new(json!({"spec": {"small": true, "size": 3}}))
            .desired("bucket-a", json!({"kind": "Bucket"}))
            .desired("bucket-b", json!({"kind": "Bucket"}))
            .desired("queue", json!({"kind": "Queue"}))
            .input(
                json!({"apiVersion": "cel.fn.crossplane.io/v1beta1", "kind": "Filters", "filters": filters}),
            )
            .build();
        let response = run(&CelFilter, request, &[]).await;
        match response.results.first() {
            Some(result) => Err(result.message.clone()),
            None => Ok(response.desired.unwrap().resources.into_keys().collect()),
        }
    }

    #[tokio::test]
    async fn resources_are_dropped() {
        const SIZE: &str = "observed.composite.resource.spec.size";
        for (filters, expected) in [
            (json!([]), vec!["bucket-a", "bucket-b", "queue"]),
            (
                json!([{"name": "bucket-.*", "expression": format!("{SIZE} > 2")}]),
                vec!["bucket-a", "bucket-b", "queue"],
            ),
            (json!([{"name": "bucket-.*", "expression": format!("{SIZE} < 2")}]), vec!["queue"]),
            (json!([{"name": "bucket", "expression": "false"}]), vec!["bucket-a", "bucket-b", "queue"]),
            // The anchors are not around the alternative.
            (json!([{"name": "bucket|queue", "expression": "false"}]), vec![]),
            (
                json!([{"name": ".*a", "expression": "true"}, {"name": "bucket-a", "expression": "false"}]),
                vec!["bucket-b", "queue"],
            ),
        ] {
            assert_eq!(filtered(filters.clone()).await.unwrap(), expected, "{filters}");
        }
    }

    #[tokio::test]
    async fn problems_are_fatal() {
        for (name, expression, expected) in [
            (
                "(",
                "true",
                r#"cannot compile regular expression "^($" for filter 0: error parsing regexp: missing closing ): `^($`"#,
            ),
            (
                "none",
                "observed.composite.resource.spec.small",
                r#"cannot evaluate CEL expression "observed.composite.resource.spec.small" for filter 0: expression "observed.composite.resource.spec.small" must return a boolean, but will return dyn instead"#,
            ),
            (
                "none",
                "context.none == 1",
                r#"cannot evaluate CEL expression "context.none == 1" for filter 0: cannot evaluate CEL program: no such key: none"#,
            ),
            (
                "none",
                "none",
                "cannot evaluate CEL expression \"none\" for filter 0: cannot type-check expression: ERROR: <input>:1:1: undeclared reference to 'none' (in container '')\n | none\n | ^",
            ),
        ] {
            let filters = json!([{"name": name, "expression": expression}]);
            assert_eq!(filtered(filters).await.unwrap_err(), expected);
        }
        let syntax = filtered(json!([{"name": "a", "expression": "1 +"}])).await.unwrap_err();
        assert!(syntax.contains("cannot parse expression: ERROR: <input>:1:4: Syntax error"), "{syntax}");
        let misspelt = filtered(json!([{"names": "a"}])).await.unwrap_err();
        assert!(
            misspelt.starts_with("cannot get filters from *v1.RunFunctionRequest: cannot get function input")
        );
    }
}
