//! Edge cases 79 to 88: how often functions are called, and what they may require.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use transom_function::{
    Error, Requirements, Resource, ResourceSelector, RunFunctionRequest, RunFunctionResponse,
};
use transom_testkit::process::WAIT_LIMIT;

/// What a function was asked.
pub(super) type Calls = Arc<Mutex<Vec<RunFunctionRequest>>>;

/// A plane whose things are composed by a function of the test, after the definition of its step was changed.
pub(super) async fn asking(
    flags: &[&str],
    change: impl Fn(&mut Value),
    script: impl Fn(&RunFunctionRequest, &mut RunFunctionResponse) -> Result<(), Error> + Send + Sync + 'static,
) -> (User, Calls) {
    let user = User::with(flags).await;
    let calls = Calls::default();
    let heard = calls.clone();
    user.function("asking", move |request, response| {
        heard.lock().unwrap().push(request.clone());
        script(request, response)
    })
    .await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    let mut asks = documents(&composition("asks", "Thing", &json!({}), &[("asking", Value::Null)])).remove(0);
    change(&mut asks["spec"]["pipeline"][0]);
    user.apply(&asks.to_string()).await;
    (user, calls)
}

pub(super) fn as_it_is(_: &mut Value) {}

pub(super) fn count(calls: &Calls) -> usize {
    calls.lock().unwrap().len()
}

pub(super) async fn until_called(calls: &Calls, times: usize) {
    let started = Instant::now();
    while count(calls) < times {
        assert!(started.elapsed() < WAIT_LIMIT, "{} of {times} calls", count(calls));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Makes a thing be looked at once, and says what its function was asked then.
async fn looked_at(user: &User, calls: &Calls, name: &str) -> Vec<RunFunctionRequest> {
    user.until_ready(THING, name).await;
    user.until_idle().await;
    let before = count(calls);
    user.patch(THING, name, json!({"metadata": {"annotations": {"look": "again"}}})).await;
    until_called(calls, before + 1).await;
    user.until_idle().await;
    calls.lock().unwrap()[before..].to_vec()
}

fn names(items: Option<&[Resource]>) -> Vec<String> {
    items.expect("it was looked up").iter().map(|r| format!("{}/{}", r.namespace(), r.name())).collect()
}

fn secret(namespace: &str, name: &str, app: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{namespace: {namespace}, name: {name}, labels: {{app: {app}}}}}\n"
    )
}

/// Three secrets in two namespaces.
async fn secrets(user: &User) {
    user.apply("{apiVersion: v1, kind: Namespace, metadata: {name: x}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: z}}").await;
    for (namespace, name, app) in [("z", "one", "x"), ("x", "two", "x"), ("x", "three", "z")] {
        user.apply(&secret(namespace, name, app)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_79_a_fatal_answer_is_not_asked_again() {
    let (user, calls) = asking(&[], as_it_is, |_, response| {
        response.require("more", ResourceSelector::all("v1", "Secret"));
        response.fatal("no");
        Ok(())
    })
    .await;
    user.apply(&object("Thing", "one", "")).await;
    let words = "pipeline step \"step-0\" returned a fatal result: no";
    let failed = user.until(THING, "one", |o| message_of(o, "Synced").contains(words)).await;
    assert_eq!(reason_of(&failed, "Synced"), "ReconcileError");
    // It is tried again later, from the start.
    until_called(&calls, 2).await;
    assert!(calls.lock().unwrap().iter().all(|call| call.required("more").is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn case_80_no_requirements_mean_one_call() {
    let (user, calls) = asking(&[], as_it_is, |request, response| {
        // An empty message is not the absence of one, but asks for nothing either.
        let empty = request.observed_composite().get_str("spec.coolField")? == "empty";
        response.requirements = empty.then(Requirements::default);
        Ok(())
    })
    .await;
    for cool in ["nothing", "empty"] {
        user.apply(&object("Thing", cool, &format!("coolField: {cool}"))).await;
        assert_eq!(looked_at(&user, &calls, cool).await.len(), 1, "{cool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_81_a_function_that_never_settles_is_stopped() {
    let (user, calls) = asking(&[], as_it_is, |request, response| {
        let last = request.required_resources.keys().filter_map(|k| k.parse::<usize>().ok()).max();
        let next = last.map_or(0, |n| n + 1).to_string();
        response.require(&*next, ResourceSelector::named("v1", "ConfigMap", &*next).in_namespace("default"));
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}});
        response.set_composed("map", Resource::new(map)?);
        Ok(())
    })
    .await;
    user.apply(&object("Thing", "one", "")).await;
    let words = "cannot run Composition pipeline step \"step-0\": requirements didn't stabilize after the maximum number of iterations (5)";
    let failed = user.until(THING, "one", |o| message_of(o, "Synced").contains(words)).await;
    assert_eq!(reason_of(&failed, "Synced"), "ReconcileError");
    until_called(&calls, 8).await;
    let given: Vec<Vec<String>> =
        calls.lock().unwrap().iter().map(|c| c.required_resources.keys().cloned().collect()).collect();
    let expected: [&[&str]; 8] = [&[], &["0"], &["1"], &["2"], &["3"], &["4"], &[], &["0"]];
    assert_eq!(given[..8], expected, "six calls, each with what the one before required");
    assert_eq!(user.composed(MAP, "one").await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn case_82_what_was_required_before_is_there_at_once() {
    let (user, calls) = asking(&[], as_it_is, |_, response| {
        response.require("it", ResourceSelector::named("v1", "Secret", "two").in_namespace("x"));
        Ok(())
    })
    .await;
    secrets(&user).await;
    user.apply(&object("Thing", "one", "")).await;
    user.until_ready(THING, "one").await;
    let first = calls.lock().unwrap()[..2].to_vec();
    assert!(first[0].required("it").is_none() && first[1].required("it").is_some(), "not known before");
    let again = looked_at(&user, &calls, "one").await;
    assert_eq!(again.len(), 1);
    assert_eq!(names(again[0].required("it")), ["x/two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_83_what_the_step_requires_is_there_from_the_start_and_stays() {
    let step = |step: &mut Value| {
        let secret = |name: &str, more: Value| {
            let mut one = json!({"requirementName": name, "apiVersion": "v1", "kind": "Secret"});
            one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            one
        };
        step["requirements"] = json!({
            "requiredResources": [
                secret("named", json!({"namespace": "x", "name": "two"})),
                secret("labelled", json!({"matchLabels": {"app": "x"}})),
                secret("absent", json!({"namespace": "x", "name": "absent"})),
            ],
            "requiredSchemas": [{"requirementName": "pods", "apiVersion": "v1", "kind": "Pod"}],
        });
    };
    let (user, calls) = asking(&[], step, |_, response| {
        response.require("more", ResourceSelector::named("v1", "Secret", "one").in_namespace("z"));
        response.require_schema("maps", "v1", "ConfigMap");
        Ok(())
    })
    .await;
    secrets(&user).await;
    user.apply(&object("Thing", "one", "")).await;
    user.until_ready(THING, "one").await;
    let calls = calls.lock().unwrap().clone();
    assert!(calls[0].required("more").is_none() && calls[0].required_schema("maps").is_none());
    assert_eq!(names(calls[1].required("more")), ["z/one"]);
    assert!(calls[1].required_schema("maps").flatten().is_some());
    for call in &calls {
        assert_eq!(names(call.required("named")), ["x/two"]);
        assert_eq!(names(call.required("labelled")), ["x/two", "z/one"]);
        assert_eq!(call.required("absent"), Some(&[][..]));
        let pod = call.required_schema("pods").flatten().unwrap();
        assert_eq!(pod.fields()["type"], "object");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_84_85_86_absent_sorted_and_all() {
    let (user, calls) = asking(&[], as_it_is, |_, response| {
        let secret = || ResourceSelector::all("v1", "Secret");
        response.require("absent", ResourceSelector::named("v1", "Secret", "no").in_namespace("x"));
        response.require("labelled", ResourceSelector::labelled("v1", "Secret", [("app", "x")]));
        response.require("nobody", ResourceSelector::labelled("v1", "Secret", [("app", "none")]));
        response.require("all", secret());
        response.require("some", secret().in_namespace("x"));
        Ok(())
    })
    .await;
    secrets(&user).await;
    user.apply(&object("Thing", "one", "")).await;
    let xr = user.until_ready(THING, "one").await;
    assert_eq!(reason_of(&xr, "Synced"), "ReconcileSuccess", "what is absent is not an error");
    let given = looked_at(&user, &calls, "one").await.remove(0);
    assert_eq!(given.required("absent"), Some(&[][..]), "it was looked up");
    assert_eq!(given.required("nobody"), Some(&[][..]));
    assert_eq!(names(given.required("labelled")), ["x/two", "z/one"], "by namespace and name");
    assert_eq!(names(given.required("all")), ["x/three", "x/two", "z/one"]);
    assert_eq!(names(given.required("some")), ["x/three", "x/two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_87_a_selector_that_says_nothing_is_an_error() {
    // A missing selector is an empty one on the wire.
    let (user, calls) = asking(&[], as_it_is, |_, response| {
        response.require("nothing", ResourceSelector::default());
        Ok(())
    })
    .await;
    user.apply(&object("Thing", "one", "")).await;
    let words = "cannot run Composition pipeline step \"step-0\": fetching resources for nothing: \"\" is not an apiVersion";
    let failed = user.until(THING, "one", |o| message_of(o, "Synced").contains(words)).await;
    assert_eq!(reason_of(&failed, "Synced"), "ReconcileError");
    until_called(&calls, 2).await;
    assert!(calls.lock().unwrap().iter().all(|call| call.required_resources.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn case_88_schemas_are_those_of_one_kind_written_out() {
    let (user, calls) = asking(&[], as_it_is, |request, response| {
        if request.observed_composite().get_str("spec.coolField")? == "odd" {
            response.require_schema("odd", "a/b/c", "Thing");
            return Ok(());
        }
        response.require_schema("pods", "v1", "Pod");
        response.require_schema("own", "example.org/v1", "Thing");
        response.require_schema("shared", "apps/v1", "DeleteOptions");
        response.require_schema("kind", "v1", "Unknown");
        response.require_schema("version", "v9", "Pod");
        response.require_schema("group", "unknown.org/v1", "Pod");
        Ok(())
    })
    .await;
    user.apply(&object("Thing", "one", "coolField: fine")).await;
    user.until_ready(THING, "one").await;
    let call = calls.lock().unwrap()[1].clone();
    let schema = |name: &str| call.required_schema(name).unwrap().map(|s| s.as_value().to_string());
    let pods = schema("pods").unwrap();
    assert!(!pods.contains("$ref") && pods.contains("terminationGracePeriodSeconds"), "{pods}");
    assert!(schema("own").unwrap().contains("coolField"), "of what is defined here, too");
    for name in ["shared", "kind", "version", "group"] {
        assert_eq!(call.required_schema(name), Some(None), "{name} was looked up, and is none");
    }
    user.apply(&object("Thing", "two", "coolField: odd")).await;
    let words = "fetching schema for odd: \"a/b/c\" is not an apiVersion";
    user.until(THING, "two", |o| message_of(o, "Synced").contains(words)).await;
}
