//! The requirements loop: what is looked up, when a step is called again, and when its requirements are stable.

use crate::script::{Case, Script};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use transom_compose::Cause;
use transom_function::{Requirements, Resource, ResourceSelector, RunFunctionResponse};

fn config(namespace: &str, name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, "labels": labels}})
}

fn names(items: &[Resource]) -> Vec<String> {
    items.iter().map(|item| format!("{}/{}", item.namespace(), item.name())).collect()
}

fn case(requirements: &Value) -> Case {
    let mut case = Case::new(&json!({"pipeline": [{
        "step": "a", "functionRef": {"name": "f"}, "requirements": requirements,
    }]}));
    case.world.add(config("y", "one", &json!({"app": "x"})));
    case.world.add(config("x", "two", &json!({"app": "x"})));
    case.world.add(config("x", "three", &json!({"app": "z"})));
    case
}

fn requiring(selector: ResourceSelector) -> RunFunctionResponse {
    let mut response = RunFunctionResponse::default();
    response.require("cm", selector);
    response
}

#[tokio::test]
async fn no_requirements_mean_one_call() {
    let script = Script::new().then(|request| request.copy_response());
    case(&Value::Null).run(&script).await.unwrap();
    assert_eq!(script.calls().len(), 1);
    // An empty message is not the absence of one, but asks for nothing new either.
    let script = Script::new().then(|_| RunFunctionResponse {
        requirements: Some(Requirements::default()),
        ..RunFunctionResponse::default()
    });
    case(&Value::Null).run(&script).await.unwrap();
    assert_eq!(script.calls().len(), 1);
}

#[tokio::test]
async fn a_step_is_called_until_it_requires_the_same_twice() {
    let calls = AtomicUsize::new(0);
    let script = Script::new().then(move |request| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        let mut response = match call {
            0 => requiring(ResourceSelector::named("v1", "ConfigMap", "two").in_namespace("x")),
            _ => requiring(ResourceSelector::labelled("v1", "ConfigMap", [("app", "x")])),
        };
        response.normal(format!("call {call}"));
        response.set_context("call", call);
        assert_eq!(request.context_value("call").and_then(Value::as_u64), (call as u64).checked_sub(1));
        response
    });
    let plan = case(&Value::Null).run(&script).await.unwrap();
    let calls = script.calls();
    assert_eq!(calls.len(), 3);
    assert!(calls[0].request.required("cm").is_none());
    assert_eq!(names(calls[1].request.required("cm").unwrap()), ["x/two"]);
    assert_eq!(
        names(calls[2].request.required("cm").unwrap()),
        ["x/two", "y/one"],
        "sorted by namespace and name"
    );
    assert_eq!(calls[0].request.meta, calls[2].request.meta, "the tag stays");
    assert_eq!(calls.iter().map(|call| call.iteration).collect::<Vec<_>>(), [0, 1, 2]);
    let said: Vec<&str> = plan.events.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(said, ["call 2"], "earlier answers are discarded");
    assert_eq!(
        plan.requirements["a"].requirements.resources["cm"],
        ResourceSelector::labelled("v1", "ConfigMap", [("app", "x")]),
        "what was required last"
    );
}

#[tokio::test]
async fn what_does_not_exist_is_looked_up_and_empty() {
    let script = Script::new().then(|_| requiring(ResourceSelector::named("v1", "ConfigMap", "absent")));
    case(&Value::Null).run(&script).await.unwrap();
    assert_eq!(script.calls()[1].request.required("cm"), Some(&[][..]));
}

#[tokio::test]
async fn nothing_to_match_means_everything_of_the_kind() {
    let script = Script::new().then(|_| requiring(ResourceSelector::all("v1", "ConfigMap")));
    case(&Value::Null).run(&script).await.unwrap();
    let calls = script.calls();
    let found = names(calls.last().unwrap().request.required("cm").unwrap());
    assert_eq!(found, ["x/three", "x/two", "y/one"], "sorted by namespace and name");
}

#[tokio::test]
async fn the_deprecated_field_is_answered_in_kind() {
    let script = Script::new().then(|_| {
        let mut response = RunFunctionResponse::default();
        let selector = ResourceSelector { r#match: None, ..ResourceSelector::all("v1", "ConfigMap") };
        response.requirements.get_or_insert_default().extra_resources.insert("all".to_owned(), selector);
        response
    });
    let plan = case(&Value::Null).run(&script).await.unwrap();
    let request = &script.calls()[1].request;
    assert_eq!(names(&request.extra_resources["all"].items), ["x/three", "x/two", "y/one"]);
    assert!(request.required_resources.is_empty());
    let selectors: Vec<&str> = plan.requirements["a"].selectors().map(|(name, _)| name).collect();
    assert_eq!(selectors, ["all"]);
}

#[tokio::test]
async fn a_function_that_never_settles_is_stopped() {
    let never = || {
        let calls = AtomicUsize::new(0);
        Script::new().then(move |_| {
            let call = calls.fetch_add(1, Ordering::SeqCst);
            requiring(ResourceSelector::named("v1", "ConfigMap", format!("cm-{call}")))
        })
    };
    let script = never();
    let failure = case(&Value::Null).run(&script).await.unwrap_err();
    assert_eq!(script.calls().len(), 6);
    assert_eq!(
        failure.to_string(),
        r#"cannot run Composition pipeline step "a": requirements didn't stabilize after the maximum number of iterations (5)"#
    );
    let mut case = case(&Value::Null);
    for limit in [1, 3] {
        case.composition.pipeline[0].max_iterations = Some(limit);
        let script = never();
        let failure = case.run(&script).await.unwrap_err().to_string();
        assert_eq!(script.calls().len(), limit as usize, "a step may set its own limit");
        assert!(failure.ends_with(&format!("iterations ({limit})")), "{failure}");
    }
}

#[tokio::test]
async fn without_a_limit_the_deadline_ends_a_function_that_never_settles() {
    let after = |changes: usize| {
        let calls = AtomicUsize::new(0);
        Script::new().then(move |_| {
            let call = calls.fetch_add(1, Ordering::SeqCst).min(changes);
            requiring(ResourceSelector::named("v1", "ConfigMap", format!("cm-{call}")))
        })
    };
    let mut case = case(&Value::Null);
    case.composition.pipeline[0].max_iterations = Some(-1);
    let script = after(150);
    case.run(&script).await.unwrap();
    assert_eq!(script.calls().len(), 152);
    let never = after(usize::MAX);
    let run = case.run(&never);
    assert!(
        tokio::time::timeout(std::time::Duration::from_millis(20), run).await.is_err(),
        "it can be stopped"
    );
}

#[tokio::test]
async fn a_policy_may_name_namespaces() {
    let mut case = case(&Value::Null);
    let allowed = json!([{"apiVersion": "v1", "kind": "ConfigMap", "matchNamespace": "x|z"}]);
    case.composition.pipeline[0].allowed_extra_resources = serde_json::from_value(allowed).unwrap();
    let named = |namespace: &'static str| {
        let selector = ResourceSelector::named("v1", "ConfigMap", "one");
        Script::new().then(move |_| {
            requiring(if namespace.is_empty() {
                selector.clone()
            } else {
                selector.clone().in_namespace(namespace)
            })
        })
    };
    assert!(case.run(&named("x")).await.is_ok());
    for namespace in ["y", "xx", ""] {
        let failure = case.run(&named(namespace)).await.unwrap_err();
        assert!(matches!(failure.cause, Cause::NotAllowed { .. }), "{namespace}: {failure}");
    }
    let any = json!([{"apiVersion": "v1", "kind": "ConfigMap", "matchNamespace": "*"}]);
    case.composition.pipeline[0].allowed_extra_resources = serde_json::from_value(any).unwrap();
    assert!(case.run(&named("")).await.is_ok());
    let broken = json!([{"apiVersion": "v1", "kind": "ConfigMap", "matchNamespace": "("}]);
    case.composition.pipeline[0].allowed_extra_resources = serde_json::from_value(broken).unwrap();
    let failure = case.run(&named("x")).await.unwrap_err().to_string();
    assert!(failure.contains("allowedExtraResources[0].matchNamespace is malformed"), "{failure}");
}

#[tokio::test]
async fn a_fatal_answer_is_not_asked_again() {
    let script = Script::new().then(|_| {
        let mut response = requiring(ResourceSelector::named("v1", "ConfigMap", "one"));
        response.fatal("no");
        response
    });
    let failure = case(&Value::Null).run(&script).await.unwrap_err();
    assert!(matches!(failure.cause, Cause::Fatal { .. }));
    assert_eq!(script.calls().len(), 1);
}

#[tokio::test]
async fn what_the_step_requires_is_there_from_the_start_and_stays() {
    let requirements = json!({
        "requiredResources": [
            {"requirementName": "named", "apiVersion": "v1", "kind": "ConfigMap", "namespace": "x", "name": "two"},
            {"requirementName": "labelled", "apiVersion": "v1", "kind": "ConfigMap", "matchLabels": {"app": "x"}},
            {"requirementName": "all", "apiVersion": "v1", "kind": "ConfigMap"},
            {"requirementName": "absent", "apiVersion": "v1", "kind": "ConfigMap", "name": "absent"},
        ],
        "requiredSchemas": [{"requirementName": "schema", "apiVersion": "example.org/v1", "kind": "Thing"}],
    });
    let mut case = case(&requirements);
    case.world.add_schemas(json!({"components": {"schemas": {"thing": {
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "example.org", "version": "v1", "kind": "Thing"}],
    }}}}));
    let script = Script::new().then(|_| {
        let mut response = requiring(ResourceSelector::named("v1", "ConfigMap", "one").in_namespace("y"));
        response.require_schema("other", "example.org/v1", "Other");
        response
    });
    case.run(&script).await.unwrap();
    let calls = script.calls();
    assert_eq!(calls.len(), 2);
    for call in &calls {
        let found = |name: &str| names(call.request.required(name).unwrap());
        assert_eq!(found("named"), ["x/two"]);
        assert_eq!(found("labelled"), ["x/two", "y/one"]);
        assert_eq!(found("all").len(), 3);
        assert_eq!(found("absent"), Vec::<String>::new());
        let schema = call.request.required_schema("schema").unwrap().unwrap();
        assert_eq!(schema.fields()["type"], "object");
    }
    assert_eq!(names(calls[1].request.required("cm").unwrap()), ["y/one"]);
    assert_eq!(calls[1].request.required_schema("other"), Some(None), "an unknown kind has no schema");
}

#[tokio::test]
async fn a_step_reads_what_it_is_allowed_to() {
    let mut case = case(&Value::Null);
    let allowed = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o.*"}]);
    case.composition.pipeline[0].allowed_extra_resources = serde_json::from_value(allowed).unwrap();
    let script = Script::new().then(|_| requiring(ResourceSelector::named("v1", "ConfigMap", "one")));
    assert!(case.run(&script).await.is_ok());
    let script = Script::new().then(|_| requiring(ResourceSelector::named("v1", "ConfigMap", "two")));
    let failure = case.run(&script).await.unwrap_err();
    assert!(matches!(failure.cause, Cause::NotAllowed { .. }), "{failure}");
    assert_eq!(script.calls().len(), 1);
}
