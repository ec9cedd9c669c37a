//! What a step required in the last run: when it is given at once, and when it is not given at all.

use crate::script::{Call, Case, Script};
use serde_json::{Value, json};
use transom_compose::{Cause, Decision, Failure};
use transom_function::{ResourceSelector, RunFunctionRequest, RunFunctionResponse};

/// The field of requirements that a function uses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Resources,
    Extra,
}

const FIELDS: [Field; 2] = [Field::Resources, Field::Extra];

fn app(name: &str) -> ResourceSelector {
    ResourceSelector::named("v1", "ConfigMap", name).in_namespace("x")
}

/// A ConfigMap that names another one.
fn link(name: &str, next: &str) -> Value {
    let metadata = json!({"name": name, "namespace": "x"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"next": next}})
}

fn require(response: &mut RunFunctionResponse, field: Field, name: &str, selector: ResourceSelector) {
    let required = response.requirements.get_or_insert_default();
    let field = if field == Field::Extra { &mut required.extra_resources } else { &mut required.resources };
    field.insert(name.to_owned(), selector);
}

/// The names of everything a request gives, by field and requirement.
fn given(request: &RunFunctionRequest) -> Vec<String> {
    let mut all = Vec::new();
    for (field, resources) in [("", &request.required_resources), ("extra ", &request.extra_resources)] {
        for (name, found) in resources {
            let items: Vec<&str> = found.items.iter().map(|item| item.name()).collect();
            all.push(format!("{field}{name}={}", items.join("+")));
        }
    }
    all.extend(request.required_schemas.keys().map(|name| format!("schema {name}")));
    all
}

/// What each call was given.
fn all_given(calls: &[Call]) -> Vec<Vec<String>> {
    calls.iter().map(|call| given(&call.request)).collect()
}

fn case() -> Case {
    let input = json!({"apiVersion": "v1", "kind": "Input", "of": "first"});
    let step = json!({"step": "a", "functionRef": {"name": "f"}, "input": input});
    let mut case = Case::new(&json!({"pipeline": [step]}));
    case.world.add(link("app-1", "app-2"));
    case.world.add(link("app-2", ""));
    case.world.add(link("app-3", ""));
    case
}

/// Runs once more: returns what each call was given, and remembers what was required.
async fn again(
    case: &mut Case,
    answer: impl Fn(&RunFunctionRequest) -> RunFunctionResponse + Send + Sync + 'static,
) -> (Vec<Vec<String>>, Result<Decision, Failure>) {
    let script = Script::new().then(answer);
    let outcome = case.run(&script).await;
    case.before = match &outcome {
        Ok(plan) => plan.requirements.clone(),
        Err(failure) => failure.requirements.clone(),
    };
    (all_given(&script.calls()), outcome)
}

/// A function that always requires the same.
fn steady(field: Field) -> impl Fn(&RunFunctionRequest) -> RunFunctionResponse {
    move |request| {
        let mut response = request.copy_response();
        require(&mut response, field, "first", app("app-1"));
        response
    }
}

/// A function that requires app-1, then what that names instead, and says which one it found at the end.
fn chain(field: Field) -> impl Fn(&RunFunctionRequest) -> RunFunctionResponse {
    move |request| {
        let mut response = request.copy_response();
        let fields = [&request.required_resources, &request.extra_resources];
        let find = |name: &str| fields.iter().find_map(|f| f.get(name)).and_then(|found| found.items.first());
        let (first, second) = (find("first"), find("second"));
        let next = first.map(|first| first.object()["data"]["next"].as_str().unwrap_or_default().to_owned());
        match (second, next.as_deref()) {
            (Some(second), _) => {
                response.normal(format!("end: {}", second.name()));
                require(&mut response, field, "second", app(second.name()));
            }
            (None, Some("")) => {
                response.normal("end: app-1");
                require(&mut response, field, "first", app("app-1"));
            }
            (None, Some(next)) => require(&mut response, field, "second", app(next)),
            (None, None) => require(&mut response, field, "first", app("app-1")),
        }
        response
    }
}

fn end(outcome: &Result<Decision, Failure>) -> Vec<&str> {
    let plan = outcome.as_ref().expect("it composes");
    plan.events.iter().map(|event| event.message.as_str()).collect()
}

#[tokio::test]
async fn what_is_required_before_and_after_it_is_given_saves_a_call() {
    for field in FIELDS {
        let mut case = case();
        let it = if field == Field::Extra { "extra first=app-1" } else { "first=app-1" };
        assert_eq!(again(&mut case, steady(field)).await.0, [vec![], vec![it]]);
        for _ in 0..2 {
            assert_eq!(
                again(&mut case, steady(field)).await.0,
                [[it]],
                "once, and in the field it asked with"
            );
        }
        case.world.add(link("app-1", "changed"));
        let (calls, plan) = again(&mut case, steady(field)).await;
        assert_eq!(calls, [[it]], "its content does not matter");
        assert!(plan.unwrap().unused_lookups.is_empty(), "it is read, and counts");
    }
}

#[tokio::test]
async fn schemas_are_given_at_once_too() {
    let mut case = case();
    let answer = |request: &RunFunctionRequest| {
        let mut response = request.copy_response();
        response.require_schema("kind", "v1", "ConfigMap");
        response
    };
    assert_eq!(again(&mut case, answer).await.0, [vec![], vec!["schema kind"]]);
    assert_eq!(again(&mut case, answer).await.0, [["schema kind"]]);
}

#[tokio::test]
async fn a_chain_is_followed_from_its_start_every_time() {
    for field in FIELDS {
        let mut case = case();
        for (next, last) in [("app-2", "app-2"), ("app-2", "app-2"), ("app-3", "app-3"), ("", "app-1")] {
            case.world.add(link("app-1", next));
            let (calls, plan) = again(&mut case, chain(field)).await;
            assert_eq!(end(&plan), [format!("end: {last}")], "{field:?} {next}");
            assert_eq!(calls[0], Vec::<String>::new());
        }
        // It ended where it began, which is remembered. It is a chain again as soon as it goes on.
        for (next, last, calls) in [("", "app-1", 1), ("app-2", "app-2", 4), ("app-3", "app-3", 3)] {
            case.world.add(link("app-1", next));
            let (made, plan) = again(&mut case, chain(field)).await;
            assert_eq!(end(&plan), [format!("end: {last}")], "{field:?} {next}");
            assert_eq!(made.len(), calls);
            assert!(plan.unwrap().unused_lookups.is_empty(), "app-1 is still what decides");
        }
    }
}

#[tokio::test]
async fn what_is_no_longer_required_is_as_if_it_had_not_been_given() {
    let mut case = case();
    again(&mut case, steady(Field::Resources)).await.1.unwrap();
    // It fails if it is given anything, and may yet succeed with nothing.
    let (calls, plan) = again(&mut case, |request| {
        let mut response = request.copy_response();
        if request.required("first").is_some() {
            response.fatal("too much");
        }
        response.normal("fine");
        response
    })
    .await;
    assert_eq!(calls, [vec!["first=app-1"], vec![]]);
    let plan = plan.unwrap();
    assert_eq!(plan.events.len(), 1);
    assert_eq!(plan.unused_lookups.len(), 1, "nothing depends on it: {:?}", plan.unused_lookups);
    assert!(case.before.is_empty());
    // Another requirement is another start; what both have in common counts.
    again(&mut case, steady(Field::Resources)).await.1.unwrap();
    let (calls, plan) = again(&mut case, |request| {
        let mut response = request.copy_response();
        response.require("first", app("app-1"));
        response.require("second", app("app-2"));
        response
    })
    .await;
    assert_eq!(calls, [vec!["first=app-1"], vec![], vec!["first=app-1", "second=app-2"]]);
    assert!(plan.unwrap().unused_lookups.is_empty());
}

#[tokio::test]
async fn the_context_that_a_function_set_is_not_lost() {
    // It notes in the context what it did in its first call, and passes that on.
    let answer = |request: &RunFunctionRequest| {
        let mut response = request.copy_response();
        response.require("first", app("app-1"));
        if request.required("first").is_none() {
            response.set_context("began", true);
        }
        response
    };
    let mut case = case();
    for _ in 0..2 {
        let (calls, plan) = again(&mut case, answer).await;
        assert_eq!(calls.len(), 2);
        assert_eq!(plan.unwrap().context.unwrap().fields()["began"], true);
    }
}

#[tokio::test]
async fn what_was_required_belongs_to_the_step_as_it_is_written() {
    type Edit = fn(&mut Case);
    let edits: [(&str, Edit); 4] = [
        ("another function", |case| case.composition.pipeline[0].function_ref.name = "g".to_owned()),
        ("another input", |case| case.composition.pipeline[0].input = Some(json!({"of": "second"}))),
        ("another step", |case| case.composition.pipeline[0].step = "b".to_owned()),
        ("more is allowed", |case| {
            let all = json!([{"apiVersion": "v1", "kind": "ConfigMap"}]);
            case.composition.pipeline[0].allowed_extra_resources = serde_json::from_value(all).unwrap();
        }),
    ];
    for (what, edit) in edits {
        let mut case = case();
        again(&mut case, steady(Field::Resources)).await.1.unwrap();
        edit(&mut case);
        let (calls, _) = again(&mut case, |request| request.copy_response()).await;
        assert_eq!(calls, [Vec::<String>::new()], "{what}: nothing it did not ask for");
    }
}

#[tokio::test]
async fn what_was_required_belongs_to_the_input_that_is_shared() {
    let mut case = case();
    let shared = |of: &str| {
        let metadata = json!({"name": "shared", "namespace": "x"});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"of": of}})
    };
    case.world.add(shared("first"));
    let step = &mut case.composition.pipeline[0];
    step.input = None;
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "shared", "namespace": "x"});
    step.input_ref = serde_json::from_value(reference).unwrap();
    again(&mut case, steady(Field::Resources)).await.1.unwrap();
    assert_eq!(again(&mut case, steady(Field::Resources)).await.0, [["first=app-1"]]);
    case.world.add(shared("second"));
    let (calls, _) = again(&mut case, |request| request.copy_response()).await;
    assert_eq!(calls, [Vec::<String>::new()]);
}

#[tokio::test]
async fn what_is_no_longer_allowed_is_neither_read_nor_given_nor_remembered() {
    for field in FIELDS {
        let mut case = case();
        again(&mut case, steady(field)).await.1.unwrap();
        assert!(!case.before.is_empty());
        case.composition.pipeline[0].allowed_extra_resources = Some(Vec::new());
        // Each try is one call that is given nothing and refused.
        for _ in 0..3 {
            let (calls, outcome) = again(&mut case, steady(field)).await;
            assert_eq!(calls, [Vec::<String>::new()], "{field:?}");
            let failure = outcome.unwrap_err();
            assert!(matches!(failure.cause, Cause::NotAllowed { .. }), "{failure}");
            assert!(failure.requirements.is_empty() && failure.unused_lookups.is_empty());
        }
        case.composition.pipeline[0].allowed_extra_resources = None;
        assert_eq!(again(&mut case, steady(field)).await.0.len(), 2, "from the start");
    }
}

#[tokio::test]
async fn what_is_remembered_is_refused_once_nothing_may_be_required() {
    // The very step that required it, in a control plane that meanwhile allows nothing.
    let mut case = case();
    again(&mut case, steady(Field::Resources)).await.1.unwrap();
    case.options.extra_resources = false;
    let (calls, outcome) = again(&mut case, steady(Field::Resources)).await;
    assert_eq!(calls, [Vec::<String>::new()]);
    assert!(matches!(outcome.unwrap_err().cause, Cause::ExtraResourcesOff { .. }));
}

#[tokio::test]
async fn what_the_author_gives_is_given_although_functions_may_require_nothing() {
    let mut case = case();
    case.options.extra_resources = false;
    let step = &mut case.composition.pipeline[0];
    step.input = None;
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "app-1", "namespace": "x"});
    step.input_ref = serde_json::from_value(reference).unwrap();
    step.allowed_extra_resources = Some(Vec::new());
    let given = json!({"requiredResources": [
        {"requirementName": "all", "apiVersion": "v1", "kind": "ConfigMap", "matchLabels": {"no": "one"}},
        {"requirementName": "one", "apiVersion": "v1", "kind": "ConfigMap", "namespace": "x", "name": "app-2"},
    ]});
    step.requirements = serde_json::from_value(given).unwrap();
    for _ in 0..2 {
        let (calls, plan) = again(&mut case, |request| {
            let mut response = request.copy_response();
            response.normal(request.input.as_ref().unwrap().fields()["data"]["next"].as_str().unwrap());
            response
        })
        .await;
        assert_eq!(calls, [["all=", "one=app-2"]]);
        assert_eq!(end(&plan), ["app-2"], "its input");
    }
    let (calls, outcome) = again(&mut case, steady(Field::Extra)).await;
    assert_eq!(calls.len(), 1);
    let words = outcome.unwrap_err().to_string();
    assert!(
        words.contains("step \"a\"") && words.contains("\"first\"") && words.contains("turned off"),
        "{words}"
    );
}

#[tokio::test]
async fn a_malformed_pattern_is_an_error_whatever_is_required() {
    let mut case = case();
    let list = json!([
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "v1", "kind": "Secret", "name": "app)|(?:.*"},
    ]);
    case.composition.pipeline[0].allowed_extra_resources = serde_json::from_value(list).unwrap();
    let (calls, outcome) = again(&mut case, |request| request.copy_response()).await;
    assert!(calls.is_empty(), "the function is not called");
    assert_eq!(
        outcome.unwrap_err().to_string(),
        r#"cannot run Composition pipeline step "a": allowedExtraResources[1].matchName is malformed: "app)|(?:.*" is not a regular expression: unexpected )"#
    );
}
