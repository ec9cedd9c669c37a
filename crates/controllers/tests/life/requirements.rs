//! What functions require: what makes a composite resource be composed anew, and what they are not given any more.

use crate::life::basics::*;
use crate::life::fixture::*;
use crate::life::realtime::{Runs, config, runs_of};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transom_function::{ResourceSelector, RunFunctionRequest, RunFunctionResponse};

fn map(name: &str) -> ResourceSelector {
    ResourceSelector::named("v1", "ConfigMap", name).in_namespace("default")
}

fn watched(xr: &Value) -> Vec<&str> {
    let refs = xr["status"]["watchedResourceRefs"].as_array();
    refs.into_iter().flatten().filter_map(|r| r["name"].as_str()).collect()
}

/// A function that requires app-1, then instead of it what that names, and reports the last one. It requires them
/// under the deprecated name of the field if the composite resource says so.
async fn chain(plane: &Plane) {
    plane
        .function("chain", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let found = |name: &str| request.required(name).and_then(|found| found.first());
            let next =
                found("first").map(|first| first.object()["data"]["says"].as_str().unwrap().to_owned());
            let (name, wanted) = match (found("second"), next) {
                (Some(second), _) => ("second", second.name().to_owned()),
                (None, Some(next)) if next != "nothing" => ("second", next),
                _ => ("first", "app-1".to_owned()),
            };
            let required = response.requirements.get_or_insert_default();
            match request.observed_composite().get_str("spec.size")? {
                "extra" => required.extra_resources.insert(name.to_owned(), map(&wanted)),
                _ => required.resources.insert(name.to_owned(), map(&wanted)),
            };
            response.composite().set("status.size", wanted)?;
            Ok(response)
        })
        .await;
    things(plane, &["chain"]).await;
}

const CHAINS: [&str; 2] = ["resources", "extra"];

async fn all_end_at(plane: &Plane, end: &str, read: &[&str]) {
    for name in CHAINS {
        let is_there = |o: &Value| o["status"]["size"] == end && status_of(o, "Ready") == "True";
        plane.until(XR, name, |o| is_there(o) && watched(o) == read).await;
    }
}

#[tokio::test]
async fn a_change_anywhere_in_a_chain_is_followed() {
    let plane = Plane::new().await;
    chain(&plane).await;
    for (name, next) in [("app-1", "app-2"), ("app-2", "nothing"), ("app-3", "nothing")] {
        plane.apply(&config(name, next)).await;
    }
    for name in CHAINS {
        plane.apply(&xr(name, name)).await;
    }
    all_end_at(&plane, "app-2", &["app-1", "app-2"]).await;
    plane.until_idle().await;
    for (next, end, read) in [
        ("app-3", "app-3", &["app-1", "app-3"][..]),
        ("app-2", "app-2", &["app-1", "app-2"]),
        // It may end where it began, and go on from there later.
        ("nothing", "app-1", &["app-1"]),
        ("app-3", "app-3", &["app-1", "app-3"]),
    ] {
        plane.apply(&config("app-1", next)).await;
        all_end_at(&plane, end, read).await;
        plane.until_idle().await;
    }
    // What it no longer leads to is not watched.
    let before = plane.until_idle().await;
    plane.apply(&config("app-2", "changed")).await;
    plane.until_idle().await;
    assert_eq!(plane.writes(), before);
}

#[tokio::test]
async fn a_request_to_reconcile_follows_a_chain_from_its_start() {
    let mut plane = Plane::quiet().await;
    plane.options.realtime = false;
    plane.options.poll_interval = Duration::from_secs(3600);
    plane.start().await;
    chain(&plane).await;
    for (name, next) in [("app-1", "app-2"), ("app-2", "nothing"), ("app-3", "nothing")] {
        plane.apply(&config(name, next)).await;
    }
    for name in CHAINS {
        plane.apply(&xr(name, name)).await;
    }
    all_end_at(&plane, "app-2", &["app-1", "app-2"]).await;
    plane.until_idle().await;
    plane.apply(&config("app-1", "app-3")).await;
    for name in CHAINS {
        let token = json!({"metadata": {"annotations": {"crossplane.io/reconcile-requested-at": "now"}}});
        plane.patch(XR, name, token).await;
    }
    all_end_at(&plane, "app-3", &["app-1", "app-3"]).await;
}

/// What each call of a function was given.
type Given = Arc<Mutex<Vec<Vec<String>>>>;

fn given(request: &RunFunctionRequest) -> Vec<String> {
    let found = request.required_resources.values().chain(request.extra_resources.values());
    found.flat_map(|found| &found.items).map(|item| item.name().to_owned()).collect()
}

/// Requires what its input names, if anything, and reports what it is given.
fn greedy(request: &mut RunFunctionRequest) -> RunFunctionResponse {
    let mut response = request.start_response();
    response.meta.as_mut().unwrap().ttl = None;
    let input = request.input.as_ref().map(|input| input.fields().clone()).unwrap_or_default();
    if let Some(wanted) = input.get("data").and_then(|data| data["wants"].as_str()) {
        response.require("it", map(wanted));
    }
    response.composite().set("status.size", given(request).join("+")).unwrap();
    response
}

/// Functions that record what they are given.
async fn greedy_functions(plane: &Plane) -> Given {
    let all = Given::default();
    for name in ["greedy", "other"] {
        let all = all.clone();
        plane
            .function(name, move |mut request| {
                all.lock().unwrap().push(given(&request));
                Ok(greedy(&mut request))
            })
            .await;
    }
    all
}

/// A Composition of one step: the function, what its input makes it want, and further fields.
fn greedy_composition(function: &str, wants: &str, fields: &str) -> String {
    let step = format!("  - {{step: {function}, functionRef: {{name: {function}}}}}\n");
    let wants = if wants.is_empty() { "{}".to_owned() } else { format!("{{wants: {wants}}}") };
    let input = format!("input: {{apiVersion: v1, kind: ConfigMap, data: {wants}}}");
    let better = format!("  - {{step: it, functionRef: {{name: {function}}}, {input}{fields}}}\n");
    composition("things", &[function]).replace(&step, &better)
}

const DENY: &str = ", allowedExtraResources: []";

/// What calls were given since the last time.
fn take(given: &Given) -> Vec<Vec<String>> {
    std::mem::take(&mut *given.lock().unwrap())
}

async fn until_called(given: &Given, times: usize) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while given.lock().unwrap().len() < times {
        assert!(std::time::Instant::now() < deadline, "it was called {} times", given.lock().unwrap().len());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn until_given_again(plane: &Plane, given: &Given) {
    plane.apply(&greedy_composition("greedy", "secret", "")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "secret" && status_of(o, "Synced") == "True").await;
    plane.until_idle().await;
    assert_eq!(watched(&plane.get(XR, "one").await.unwrap()), ["secret"]);
    take(given);
}

#[tokio::test]
async fn what_a_step_may_no_longer_read_is_not_given_to_anyone() {
    let plane = Plane::new().await;
    let given = greedy_functions(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&config("secret", "hush")).await;
    plane.apply(&greedy_composition("greedy", "secret", "")).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane.apply(&xr("one", "small")).await;
    until_given_again(&plane, &given).await;

    // The list is tightened, and the function keeps asking: in the first try, and in the next.
    plane.apply(&greedy_composition("greedy", "secret", DENY)).await;
    let denied = |o: &Value| message_of(o, "Synced").contains("its allowedExtraResources do not allow");
    plane.until(XR, "one", denied).await;
    until_called(&given, 3).await;
    assert!(take(&given).iter().all(Vec::is_empty), "it is not given what it may not read");
    let refused = plane.until(XR, "one", |o| watched(o).is_empty()).await;
    assert!(denied(&refused), "{refused}");

    // The list is tightened, and the function does not ask.
    until_given_again(&plane, &given).await;
    plane.apply(&greedy_composition("greedy", "", DENY)).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "" && watched(o).is_empty()).await;
    assert!(take(&given).iter().all(Vec::is_empty));

    // Another function takes the step over, and there is no list.
    until_given_again(&plane, &given).await;
    plane.apply(&greedy_composition("other", "", "")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "" && watched(o).is_empty()).await;
    assert!(take(&given).iter().all(Vec::is_empty), "it never asked");

    // It is given again what it may read again.
    until_given_again(&plane, &given).await;
}

#[tokio::test]
async fn what_another_revision_allows_is_not_given() {
    let plane = Plane::new().await;
    let given = greedy_functions(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&config("secret", "hush")).await;
    plane.apply(&greedy_composition("greedy", "secret", "")).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    let manual = "{size: small, crossplane: {compositionUpdatePolicy: Manual}}";
    plane.apply(&xr("one", "small").replace("{size: small}", manual)).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "secret" && status_of(o, "Ready") == "True").await;
    plane.apply(&greedy_composition("greedy", "secret", DENY)).await;
    plane.until_idle().await;
    let first = plane.get(XR, "one").await.unwrap()["spec"]["crossplane"]["compositionRevisionRef"].clone();
    let revisions = plane.list(REVISION).await;
    let second =
        revisions.iter().map(|r| &r["metadata"]["name"]).find(|name| **name != first["name"]).unwrap();
    take(&given);
    for _ in 0..2 {
        let switch = json!({"spec": {"crossplane": {"compositionRevisionRef": {"name": second}}}});
        plane.patch(XR, "one", switch).await;
        plane.until(XR, "one", |o| status_of(o, "Synced") == "False" && watched(o).is_empty()).await;
        assert!(take(&given).iter().all(Vec::is_empty));
        // And back.
        plane.patch(XR, "one", json!({"spec": {"crossplane": {"compositionRevisionRef": first}}})).await;
        plane.until(XR, "one", |o| status_of(o, "Synced") == "True" && watched(o) == ["secret"]).await;
        plane.until_idle().await;
        take(&given);
    }
}

#[tokio::test]
async fn what_a_failure_read_is_watched_and_listed_until_it_is_no_longer_read() {
    let plane = Plane::new().await;
    plane
        .function("picky", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            if request.observed_composite().get_str("spec.size")? == "none" {
                return Ok(response);
            }
            response.require("it", map("a"));
            let found = request.required("it").and_then(|found| found.first());
            if found.is_some_and(|found| found.object()["data"]["says"] == "bad") {
                response.fatal("that is bad");
            }
            Ok(response)
        })
        .await;
    things(&plane, &["picky"]).await;
    plane.apply(&config("a", "bad")).await;
    plane.apply(&xr("one", "some")).await;
    plane.until(XR, "one", |o| message_of(o, "Synced").contains("that is bad") && watched(o) == ["a"]).await;
    plane.apply(&config("a", "good")).await;
    plane.until(XR, "one", |o| status_of(o, "Synced") == "True" && watched(o) == ["a"]).await;
    // The failure was written by another manager than the success; nothing of it stays.
    plane.apply(&xr("one", "none")).await;
    plane.until(XR, "one", |o| o["status"].get("watchedResourceRefs").is_none()).await;
    let before = plane.until_idle().await;
    plane.apply(&config("a", "bad")).await;
    plane.until_idle().await;
    assert_eq!(plane.writes(), before);
}

#[tokio::test]
async fn a_steady_requirement_costs_one_call_and_nothing_at_rest() {
    let plane = Plane::new().await;
    let given = greedy_functions(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&config("secret", "hush")).await;
    plane.apply(&greedy_composition("greedy", "secret", "")).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane.apply(&xr("one", "small")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "secret" && status_of(o, "Ready") == "True").await;
    plane.until_idle().await;
    assert_eq!(take(&given)[..2], [vec![], vec!["secret".to_owned()]]);
    plane.apply(&config("secret", "changed")).await;
    plane.until_idle().await;
    assert_eq!(take(&given), [["secret"]]);
    plane.until_idle().await;
    assert_eq!(take(&given), Vec::<Vec<String>>::new());
}

#[tokio::test]
async fn a_ttl_neither_spins_nor_breaks_anything() {
    let plane = Plane::new().await;
    let runs = Runs::default();
    let counted = runs.clone();
    plane
        .function("hasty", move |mut request| {
            let mut response = request.start_response();
            let xr = request.observed_composite();
            *counted.lock().unwrap().entry(xr.get_str("metadata.name")?.to_owned()).or_default() += 1;
            let ttl = response.meta.as_mut().unwrap().ttl.as_mut().unwrap();
            (ttl.seconds, ttl.nanos) = match xr.get_str("spec.size")? {
                "tiny" => (0, 1),
                "longest" => (315_576_000_000, 999_999_999),
                "absurd" => (i64::MAX, 0),
                _ => (i64::MIN, i32::MIN),
            };
            Ok(response)
        })
        .await;
    things(&plane, &["hasty"]).await;
    let all = ["tiny", "longest", "absurd", "negative"];
    for name in all {
        plane.apply(&xr(name, name)).await;
        plane.until_true(XR, name, "Ready").await;
    }
    plane.until_idle().await;
    let before = all.map(|name| runs_of(&runs, name));
    let seconds = plane.after_steps(Duration::from_millis(500), 5).await;
    let [tiny, longest, absurd, negative] = std::array::from_fn(|i| runs_of(&runs, all[i]) - before[i]);
    assert!((1..=1 + seconds).contains(&tiny), "once a second, not {tiny} times in {seconds}");
    assert_eq!((longest, absurd, negative), (0, 0, 0));
    for (name, warned) in [("tiny", false), ("longest", false), ("absurd", true), ("negative", true)] {
        let events = plane.events_of(name).await;
        let warning =
            |e: &String| e.starts_with("Warning") && e.contains("step \"hasty\"") && e.contains("a TTL of");
        assert_eq!(events.iter().any(warning), warned, "{name}: {events:#?}");
    }
    let metrics = plane.metrics.render();
    assert!(!metrics.contains("controller_runtime_reconcile_panics_total{"), "{metrics}");
}

#[tokio::test]
async fn functions_see_the_connection_details_that_were_published_last() {
    let plane = Plane::new().await;
    let runs = Runs::default();
    let counted = runs.clone();
    plane
        .function("publisher", move |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let xr = request.observed_composite();
            *counted.lock().unwrap().entry(xr.get_str("metadata.name")?.to_owned()).or_default() += 1;
            let published = xr.connection_details.get("username").cloned().unwrap_or_default();
            let username = xr.get_str("spec.size")?.to_owned();
            response.set_connection_detail("username", username);
            response.composite().set("status.size", String::from_utf8_lossy(&published).into_owned())?;
            Ok(response)
        })
        .await;
    plane.apply(&definition("LegacyCluster", false)).await;
    let publishing = composition("things", &["publisher"]) + "  writeConnectionSecretsToNamespace: default\n";
    plane.apply(&publishing).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    for username in ["root", "root2", "root"] {
        plane.apply(&xr("one", username)).await;
        plane.until(XR, "one", |o| o["status"]["size"] == username).await;
        let writes = plane.until_idle().await;
        let calls = runs_of(&runs, "one");
        plane.after(Duration::from_secs(2)).await;
        assert_eq!(
            (plane.writes(), runs_of(&runs, "one")),
            (writes, calls),
            "it does not go round in circles"
        );
    }
}
