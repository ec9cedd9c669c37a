//! What requests contain, and how responses are used.

use crate::script::{Case, Script, object, resource, wanting};
use serde_json::json;
use std::time::Duration;
use transom_compose::{Cause, Event, EventType, Target};
use transom_function::proto::v1::Result as FunctionResult;
use transom_function::{RunFunctionRequest, RunFunctionResponse, Severity, State, Status};
use transom_object::error_chain::chain;

#[tokio::test]
async fn the_desired_state_of_a_step_is_passed_to_the_next() {
    let case = Case::steps(3);
    let script = Script::new()
        .then(|request| {
            let mut response = wanting(request, "one", "A");
            response.set_context("key", json!({"n": 1}));
            response
        })
        // Leaves out what the first wanted, and the context.
        .then(|_| {
            let mut response = RunFunctionResponse::default();
            response.set_composed("two", resource("B"));
            response
        })
        .then(|request| wanting(request, "three", "C"));
    let plan = case.run(&script).await.unwrap();
    let calls = script.calls();
    assert_eq!(calls[0].request.desired, Some(State::default()));
    assert_eq!(calls[0].request.context, Some(transom_function::Struct::default()));
    assert_eq!(calls[1].request.context_value("key"), Some(&json!({"n": 1})));
    assert_eq!(calls[1].request.desired.as_ref().unwrap().resources.len(), 1);
    assert_eq!(calls[2].request.context, None, "a context that is gone stays gone");
    let names: Vec<&str> = plan.apply.iter().map(|application| application.name.as_str()).collect();
    assert_eq!(names, ["three", "two"]);
    let places: Vec<_> = calls.iter().map(|call| (call.step.as_str(), call.index, call.iteration)).collect();
    assert_eq!(places, [("a", 0, 0), ("b", 1, 0), ("c", 2, 0)]);
    assert_eq!(calls[0].function, "function");
}

#[tokio::test]
async fn observed_state_is_whole_and_the_same_for_every_step() {
    let case = Case::steps(2).observe("db", object("Db", "db", true));
    let script = Script::new().then(|request| wanting(request, "db", "Db"));
    case.run(&script).await.unwrap();
    let calls = script.calls();
    assert_eq!(calls[0].request.observed, calls[1].request.observed);
    assert_eq!(calls[0].request.observed_composite().object(), &case.xr);
    let observed = calls[0].request.observed_composed("db").unwrap();
    assert_eq!(observed.object(), &object("Db", "db", true));
    assert_eq!(observed.ready, 0, "readiness is never sent");
}

#[tokio::test]
async fn a_last_answer_without_desired_state_deletes_everything() {
    let case = Case::steps(1).observe("db", object("Db", "db", true));
    let plan = case.run(&Script::new().then(|_| RunFunctionResponse::default())).await.unwrap();
    assert!(plan.apply.is_empty());
    assert_eq!(plan.delete.len(), 1);
}

#[tokio::test]
async fn requests_are_tagged_by_content() {
    let script = || Script::new().then(|request| request.copy_response());
    let tag = async |case: &Case| {
        let script = script();
        case.run(&script).await.unwrap();
        let request = script.calls()[0].request.clone();
        let meta = request.meta.unwrap();
        assert_eq!(meta.capabilities, [1, 2, 3, 4, 5]);
        meta.tag
    };
    let mut case = Case::steps(1);
    let first = tag(&case).await;
    assert_eq!(first.len(), 64);
    assert_eq!(first, tag(&case).await);
    case.xr["spec"]["size"] = 4.into();
    assert_ne!(first, tag(&case).await);
}

#[tokio::test]
async fn input_is_passed_and_must_be_an_object() {
    let step = |input| json!({"pipeline": [{"step": "a", "functionRef": {"name": "f"}, "input": input}]});
    let script = Script::new().then(|request| request.copy_response());
    Case::new(&step(json!({"kind": "Input"}))).run(&script).await.unwrap();
    assert_eq!(script.calls()[0].request.input.as_ref().unwrap().as_value(), &json!({"kind": "Input"}));
    let failure = Case::new(&step(json!([1]))).run(&script).await.unwrap_err();
    assert!(matches!(failure.cause, Cause::Input { .. }), "{failure}");
}

#[tokio::test]
async fn input_may_be_kept_elsewhere() {
    let mut case = Case::new(&json!({"pipeline": [{
        "step": "a", "functionRef": {"name": "f"},
        "inputRef": {"apiVersion": "example.org/v1", "kind": "Input", "name": "shared"},
    }]}));
    let script = Script::new().then(|request| request.copy_response());
    let failure = case.run(&script).await.unwrap_err();
    assert!(matches!(failure.cause, Cause::InputRef { .. }), "{failure}");
    let input = json!({
        "apiVersion": "example.org/v1", "kind": "Input", "metadata": {"name": "shared", "labels": {"a": "b"}}, "a": 1,
    });
    // What the server adds is not part of an input.
    let mut stored = input.clone();
    for (field, value) in [
        ("uid", json!("u")),
        ("resourceVersion", json!("7")),
        ("generation", json!(2)),
        ("creationTimestamp", json!("2026-01-01T00:00:00Z")),
        ("managedFields", json!([{"manager": "kubectl"}])),
    ] {
        stored["metadata"][field] = value;
    }
    case.world.add(stored);
    case.run(&script).await.unwrap();
    assert_eq!(script.calls()[0].request.input.as_ref().unwrap().as_value(), &input);
}

#[tokio::test]
async fn credentials_are_read_from_secrets() {
    let mut case = Case::new(&json!({"pipeline": [{
        "step": "a", "functionRef": {"name": "f"},
        "credentials": [
            {"name": "cloud", "source": "Secret", "secretRef": {"namespace": "ns", "name": "keys"}},
            {"name": "none", "source": "None"},
        ],
    }]}));
    let script = Script::new().then(|request| request.copy_response());
    let failure = case.run(&script).await.unwrap_err();
    assert_eq!(
        chain(&failure),
        r#"cannot get Composition pipeline step "a" credential "cloud" from Secret: Secret "keys" not found"#
    );
    assert_eq!(failure.step(), Some("a"));
    assert!(script.calls().is_empty());
    case.world.add(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "keys"},
        "data": {"id": "YWJj"}, "stringData": {"plain": "text"},
    }));
    case.run(&script).await.unwrap();
    let request = &script.calls()[0].request;
    assert_eq!(request.credentials.len(), 1);
    let data = request.credential_data("cloud").unwrap();
    assert_eq!((data["id"].as_slice(), data["plain"].as_slice()), (&b"abc"[..], &b"text"[..]));
}

#[tokio::test]
async fn results_become_events() {
    let script = Script::new().then(|request| {
        let mut response = request.copy_response();
        response.normal("fine");
        response.warning("odd").reason = Some("Odd".to_owned());
        let unknown =
            FunctionResult { severity: 77, message: "what".to_owned(), ..FunctionResult::default() };
        response.results.push(unknown);
        response.results[0].target = Some(transom_function::Target::CompositeAndClaim as i32);
        response.results[2].target = Some(transom_function::Target::CompositeAndClaim as i32);
        response
    });
    let plan = Case::steps(1).run(&script).await.unwrap();
    let shown: Vec<_> =
        plan.events.iter().map(|e| (e.r#type, e.reason.as_str(), e.text(), e.target)).collect();
    let unknown = r#"Pipeline step "a" returned a result of unknown severity (assuming warning): what"#;
    assert_eq!(
        shown,
        [
            (
                EventType::Normal,
                "ComposeResources",
                r#"Pipeline step "a": fine"#.to_owned(),
                Target::CompositeAndClaim
            ),
            (EventType::Warning, "Odd", r#"Pipeline step "a": odd"#.to_owned(), Target::Composite),
            (EventType::Warning, "ComposeResources", unknown.to_owned(), Target::Composite),
        ]
    );
    assert_eq!(plan.events[0].message, "fine", "a claim is not told the step");
}

#[tokio::test]
async fn a_fatal_result_stops_everything_and_keeps_what_was_said() {
    let case = Case::steps(3).observe("db", object("Db", "db", true));
    let script = Script::new()
        .then(|request| {
            let mut response = wanting(request, "db", "Db");
            response.normal("first");
            response
        })
        .then(|request| {
            let mut response = request.copy_response();
            response.remove_composed("db");
            response.condition("Custom", Status::ConditionTrue, "Because");
            response.warning("before");
            response.fatal("no");
            response.warning("after");
            response
        });
    let failure = case.run(&script).await.unwrap_err();
    assert_eq!(failure.to_string(), r#"pipeline step "b" returned a fatal result: no"#);
    assert!(failure.is_fatal_result());
    assert_eq!(script.calls().len(), 2, "later steps do not run");
    let said: Vec<&str> = failure.events.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(said, ["first", "before"]);
    assert_eq!(failure.conditions[0].condition.kind, "Custom");
    assert!(
        failure.desired.unwrap().resources.contains_key("db"),
        "what was wanted before is there to be shown"
    );
}

#[tokio::test]
async fn a_fatal_result_that_says_nothing_names_its_step() {
    let script = Script::new().then(|request| {
        let mut response = request.copy_response();
        response.fatal("");
        response
    });
    let failure = Case::steps(1).run(&script).await.unwrap_err();
    assert_eq!(failure.to_string(), r#"pipeline step "a" returned a fatal result: "#);
}

#[tokio::test]
async fn a_call_that_fails_names_its_step() {
    let case = Case::steps(2).observe("db", object("Db", "db", true));
    let script = Script::new()
        .then(|request| {
            let mut response = request.copy_response();
            response.normal("first");
            response
        })
        .then_fail("nobody listens");
    let failure = case.run(&script).await.unwrap_err();
    assert_eq!(
        chain(&failure),
        r#"cannot run Composition pipeline step "b": cannot run function "f": Unavailable: nobody listens"#
    );
    assert_eq!((failure.step(), failure.events.len()), (Some("b"), 1));
    assert!(!failure.is_fatal_result());
}

#[tokio::test]
async fn the_shortest_positive_ttl_counts() {
    let ttl = |seconds: u64| {
        move |request: &transom_function::RunFunctionRequest| {
            let mut response = request.copy_response();
            response.set_ttl(Duration::from_secs(seconds));
            response
        }
    };
    let script = Script::new().then(ttl(60)).then(ttl(0)).then(ttl(10)).then(ttl(30));
    assert_eq!(Case::steps(4).run(&script).await.unwrap().ttl, Some(Duration::from_secs(10)));
    let none = Script::new().then(ttl(0));
    assert_eq!(Case::steps(1).run(&none).await.unwrap().ttl, None);
}

#[tokio::test]
async fn severities_are_numbered_as_in_the_protocol() {
    assert_eq!(
        [
            Severity::Unspecified as i32,
            Severity::Fatal as i32,
            Severity::Warning as i32,
            Severity::Normal as i32
        ],
        [0, 1, 2, 3]
    );
}

#[tokio::test]
async fn an_invalid_ttl_is_ignored_and_reported() {
    let longest = 315_576_000_000;
    for (seconds, nanos, holds) in [
        (longest, 999_999_999, true),
        (0, 1, true),
        (longest + 1, 0, false),
        (i64::MAX, i32::MAX, false),
        (i64::MIN, i32::MIN, false),
        (-5, 0, false),
        (0, -1, false),
        (1, -1, false),
        (1, 1_000_000_000, false),
    ] {
        let answer = move |request: &RunFunctionRequest| {
            let mut response = request.copy_response();
            response.meta.get_or_insert_default().ttl = Some(prost_types::Duration { seconds, nanos });
            response
        };
        let plan = Case::steps(1).run(&Script::new().then(answer)).await.unwrap();
        assert_eq!(plan.ttl.is_some(), holds, "{seconds} s {nanos} ns");
        let said: Vec<String> = plan.events.iter().map(Event::text).collect();
        let invalid =
            format!("without its TTL: a TTL of {seconds} seconds and {nanos} nanoseconds is invalid");
        let reported = said.iter().filter(|text| text.contains(&invalid)).count();
        assert_eq!((reported, said.len()), if holds { (0, 0) } else { (1, 1) }, "{said:?}");
    }
}

#[tokio::test]
async fn what_is_observed_is_shown_to_every_step_without_a_copy() {
    let case =
        Case::steps(3).observe("a", json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}));
    let script = Script::new().then(RunFunctionRequest::copy_response);
    case.run(&script).await.unwrap();
    let own: *const serde_json::Value = &*case.observed["a"].object;
    for call in script.calls() {
        let shown = call.request.observed_composed("a").unwrap().object();
        assert!(std::ptr::eq(shown, own), "step {} was given a copy", call.step);
    }
}

#[tokio::test]
async fn the_answer_to_another_request_is_refused() {
    let answering = |tag: &'static str| {
        Script::new().then(move |request| {
            let mut response = request.copy_response();
            response.meta.get_or_insert_default().tag = tag.to_owned();
            response
        })
    };
    assert!(Case::steps(1).run(&answering("")).await.is_ok(), "not every function sets it");
    let failure = Case::steps(1).run(&answering("of another request")).await.unwrap_err();
    assert_eq!(
        transom_object::error_chain::chain(&failure),
        "cannot run Composition pipeline step \"a\": function \"function\" answered another request: the tag of its response \
         is \"of another request\", not that of the request"
    );
}

#[tokio::test]
async fn a_step_says_which_revision_it_wants() {
    let labels = json!({"matchLabels": {"a": "b"}});
    for (fields, expected) in [
        (json!({"functionRef": {"name": "f"}}), ("f", "Newest")),
        (
            json!({"functionRef": {"name": "f"}, "functionRevisionRef": {"name": "f-1"}}),
            ("f", "Named(\"f-1\")"),
        ),
        (
            json!({"functionRef": {"name": "f"}, "functionRevisionSelector": labels}),
            ("f", "Labelled({\"a\": \"b\"})"),
        ),
        (json!({"function": "r.io/f@sha256:0"}), ("r.io/f@sha256:0", "Image(\"r.io/f@sha256:0\")")),
    ] {
        let mut step = json!({"step": "a"});
        step.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let script = Script::new().then(RunFunctionRequest::copy_response);
        Case::new(&json!({"pipeline": [step]})).run(&script).await.unwrap();
        let calls = script.calls();
        assert_eq!((calls[0].function.as_str(), calls[0].revision.as_str()), expected);
    }
}
