//! Edge cases 92 to 94: what wakes a composite resource, what is watched for it, and how a storm is weathered.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use transom_function::{Error, Resource, ResourceSelector, RunFunctionRequest, RunFunctionResponse};
use transom_object::meta;
use transom_testkit::process::WAIT_LIMIT;

const OURS: &str = "controller=\"composite/things.example.org\"";

/// How often each thing was composed.
type Runs = Arc<Mutex<BTreeMap<String, usize>>>;

/// A plane whose things require what they say: `name x/a`, `label x`, `label` or `all`, several with a comma between.
async fn reading() -> (User, Runs) {
    reading_with(&[]).await
}

/// The same, started with these flags.
async fn reading_with(flags: &[&str]) -> (User, Runs) {
    let user = User::with(flags).await;
    let runs = Runs::default();
    let counted = runs.clone();
    let script = move |request: &RunFunctionRequest,
                       response: &mut RunFunctionResponse|
          -> Result<(), Error> {
        let xr = request.observed_composite();
        *counted.lock().unwrap().entry(xr.name().to_owned()).or_default() += 1;
        for wanted in xr.get_str("spec.coolField")?.split(',') {
            let labelled = || ResourceSelector::labelled("v1", "Secret", [("app", "x")]);
            let selector = match wanted.split_once(' ') {
                Some(("name", place)) => {
                    let (namespace, name) = place.split_once('/').unwrap();
                    ResourceSelector::named("v1", "Secret", name).in_namespace(namespace)
                }
                Some((_, namespace)) => labelled().in_namespace(namespace),
                None if wanted == "label" => labelled(),
                None if wanted == "all" => ResourceSelector::all("v1", "Secret"),
                None => continue,
            };
            response.require(wanted, selector);
        }
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": {"a": "b"}});
        let mut map = Resource::new(map)?;
        map.set_ready(transom_function::Ready::True);
        response.set_composed("map", map);
        Ok(())
    };
    user.function("reader", script).await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("reads", "Thing", &json!({}), &[("reader", Value::Null)])).await;
    (user, runs)
}

fn secret(place: &str, labels: &str) -> String {
    let (namespace, name) = place.split_once('/').unwrap();
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{namespace: {namespace}, name: {name}, labels: {{{labels}}}}}\n"
    )
}

/// How often each thing was composed since the last call. Waits until `all` is composed and the controllers are idle.
async fn woken(user: &User, runs: &Runs) -> String {
    let started = Instant::now();
    while !runs.lock().unwrap().contains_key("all") {
        assert!(started.elapsed() < WAIT_LIMIT, "nothing is requeued");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    user.until_idle().await;
    let woken = std::mem::take(&mut *runs.lock().unwrap());
    woken.iter().map(|(name, times)| format!("{name} {times}")).collect::<Vec<_>>().join(", ")
}

#[tokio::test(flavor = "multi_thread")]
async fn case_92_a_change_wakes_exactly_those_that_depend_on_it() {
    let (user, runs) = reading().await;
    for namespace in ["x", "z"] {
        user.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}")).await;
    }
    for (name, reads) in [
        ("all", "all"),
        ("any", "label"),
        ("here", "label x"),
        ("named", "name x/a"),
        ("twice", "name x/a,label x"),
        ("none", "nothing"),
    ] {
        user.apply(&object("Thing", name, &format!("coolField: {reads:?}"))).await;
        user.until_ready(THING, name).await;
    }
    woken(&user, &runs).await;
    for (place, labels, expected) in [
        ("x/a", "", "all 1, named 1, twice 1"),
        ("x/a", "seen: again", "all 1, named 1, twice 1"),
        ("z/a", "", "all 1"),
        ("x/b", "app: x", "all 1, any 1, here 1, twice 1"),
        ("z/b", "app: x", "all 1, any 1"),
        ("x/c", "app: other", "all 1"),
        ("x/b", "app: not-x", "all 1, any 1, here 1, twice 1"),
        ("x/b", "app: still-not-x", "all 1"),
        ("x/a", "app: x", "all 1, any 1, here 1, named 1, twice 1"),
    ] {
        user.apply(&secret(place, labels)).await;
        assert_eq!(woken(&user, &runs).await, expected, "{place} {labels}");
    }
    user.delete(SECRET, "x/a", None).await;
    assert_eq!(
        woken(&user, &runs).await,
        "all 1, any 1, here 1, named 1, twice 1",
        "its end is a change, too"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn case_92_what_is_required_anew_replaces_what_was() {
    let (user, runs) = reading().await;
    user.apply(&object("Thing", "all", "coolField: all")).await;
    user.apply(&object("Thing", "named", "coolField: name default/a")).await;
    user.until_ready(THING, "all").await;
    user.until_ready(THING, "named").await;
    woken(&user, &runs).await;
    user.apply(&secret("default/a", "")).await;
    assert_eq!(woken(&user, &runs).await, "all 1, named 1");
    user.apply(&object("Thing", "named", "coolField: name default/b")).await;
    user.until(THING, "named", |o| {
        let conditions = o["status"]["conditions"].as_array().into_iter().flatten();
        conditions
            .filter(|c| c["type"] == "Synced")
            .any(|c| c["observedGeneration"] == o["metadata"]["generation"])
    })
    .await;
    // What it required before is looked up once more, in case it is required again.
    user.patch(THING, "named", json!({"metadata": {"annotations": {"look": "again"}}})).await;
    user.until_idle().await;
    user.patch(THING, "all", json!({"metadata": {"annotations": {"look": "again"}}})).await;
    woken(&user, &runs).await;
    user.apply(&secret("default/a", "seen: again")).await;
    assert_eq!(woken(&user, &runs).await, "all 1");
    user.apply(&secret("default/b", "")).await;
    assert_eq!(woken(&user, &runs).await, "all 1, named 1");
    user.delete(THING, "named", None).await;
    user.until_gone(THING, "named").await;
    user.apply(&secret("default/b", "seen: again")).await;
    assert_eq!(woken(&user, &runs).await, "all 1", "what is gone depends on nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_92_93_what_nothing_depends_on_is_not_watched_any_longer() {
    let (user, runs) = reading_with(&["--sweep-interval=500ms"]).await;
    let watches = async |state: &str, kind: &str| {
        user.counted(&format!("engine_watches_{state}_total"), &format!("{OURS},type=\"{kind}\"")).await
    };
    user.apply(&object("Thing", "all", "coolField: all")).await;
    user.until_ready(THING, "all").await;
    assert_eq!(watches("started", "Dependency").await, 2, "Secrets and ConfigMaps");
    assert_eq!(watches("stopped", "Dependency").await, 0);
    user.apply(&object("Thing", "all", "coolField: nothing")).await;
    user.until(THING, "all", |o| o["metadata"]["generation"].as_i64() > Some(2)).await;
    woken(&user, &runs).await;
    user.patch(THING, "all", json!({"metadata": {"annotations": {"look": "again"}}})).await;
    woken(&user, &runs).await;
    let started = Instant::now();
    while watches("stopped", "Dependency").await == 0 {
        assert!(started.elapsed() < WAIT_LIMIT, "the watch goes on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(watches("stopped", "Dependency").await, 1, "the ConfigMaps are still needed");
    for kind in ["CompositeResource", "CompositionRevision"] {
        assert_eq!((watches("started", kind).await, watches("stopped", kind).await), (1, 0), "{kind}");
    }
    let map = map_of(&user, "all").await;
    user.patch(MAP, &map, json!({"data": {"a": "drift"}})).await;
    user.until(MAP, &map, |o| o["data"]["a"] == "b").await;
    // The watch starts again when it is needed again.
    user.apply(&object("Thing", "all", "coolField: all")).await;
    user.until_ready(THING, "all").await;
    woken(&user, &runs).await;
    assert_eq!(watches("started", "Dependency").await, 3);
    user.apply(&secret("default/a", "")).await;
    woken(&user, &runs).await;
}

/// Changes what a thing composed, again and again, until it is enough; it is put right each time.
async fn disturb(user: &User, map: &str, times: usize, enough: impl AsyncFn() -> bool) -> bool {
    for i in 0..times {
        user.patch(MAP, map, json!({"data": {"says": format!("storm {i}")}})).await;
        if enough().await {
            return true;
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn case_94_a_storm_is_slowed_down_for_the_one_it_is_about() {
    let user = User::new().await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("basic", "Thing", &json!({}), &[one_map("Thing", "cool")])).await;
    for name in ["one", "other"] {
        user.apply(&object("Thing", name, "")).await;
        let xr = user.until_ready(THING, name).await;
        assert_eq!(
            (status_of(&xr, "Responsive"), reason_of(&xr, "Responsive")),
            ("True", "WatchCircuitClosed")
        );
    }
    let (map, other) = (map_of(&user, "one").await, map_of(&user, "other").await);
    // Few changes delay no reconcile.
    disturb(&user, &map, 20, async || false).await;
    user.until(MAP, &map, |o| o["data"]["says"] == "cool").await;
    assert_eq!(opened(&user).await, 0);
    assert_eq!(user.counted("circuit_breaker_events_total", "HalfOpenAllowed").await, 0);
    // The condition is set before the first reconcile is delayed.
    let is_open = async || {
        let xr = user.get(THING, "one").await.unwrap();
        let events = (status_of(&xr, "Responsive"), reason_of(&xr, "Responsive"));
        events == ("False", "WatchCircuitOpen") && opened(&user).await > 0
    };
    assert!(disturb(&user, &map, 600, is_open).await, "the storm is noticed");
    // Meanwhile others are served at once.
    user.patch(MAP, &other, json!({"data": {"says": "drift"}})).await;
    user.until(MAP, &other, |o| o["data"]["says"] == "cool").await;
    let calm = user.get(THING, "other").await.unwrap();
    assert_eq!(reason_of(&calm, "Responsive"), "WatchCircuitClosed");
    // The last event is not lost.
    user.until(MAP, &map, |o| o["data"]["says"] == "cool").await;
    assert!(user.counted("circuit_breaker_events_total", "HalfOpenAllowed").await >= 1);
}

/// A plane with a thing in the middle of a storm, and the map that it composes.
async fn stormy(metadata: &str) -> (User, String) {
    let user = User::new().await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("basic", "Thing", &json!({}), &[one_map("Thing", "cool")])).await;
    user.apply(&object("Thing", "one", "").replace("{name: one", &format!("{{name: one{metadata}"))).await;
    user.until_ready(THING, "one").await;
    let map = map_of(&user, "one").await;
    assert!(disturb(&user, &map, 600, async || opened(&user).await > 0).await, "the storm is noticed");
    (user, map)
}

async fn opened(user: &User) -> u64 {
    user.counted("circuit_breaker_opens_total", OURS).await
}

async fn map_of(user: &User, name: &str) -> String {
    format!("default/{}", meta::name(&user.composed(MAP, name).await[0]))
}

/// A new thing of the same name is not slowed down by the changes of the earlier one.
async fn comes_back_calm(user: &User) {
    user.apply(&object("Thing", "one", "")).await;
    let xr = user.until_ready(THING, "one").await;
    assert_eq!(reason_of(&xr, "Responsive"), "WatchCircuitClosed");
    let before = opened(user).await;
    // Far more than what would have come back in the meantime.
    let map = map_of(user, "one").await;
    disturb(user, &map, 20, async || false).await;
    user.until(MAP, &map, |o| o["data"]["says"] == "cool").await;
    assert_eq!(opened(user).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_94_what_is_gone_leaves_no_storm_behind() {
    let (user, first) = stormy("").await;
    user.delete(THING, "one", None).await;
    user.until_gone(THING, "one").await;
    user.until_gone(MAP, &first).await;
    // The deletion closes the circuit, so that a new object of the same name does not wait.
    let started = Instant::now();
    while user.counted("circuit_breaker_closes_total", OURS).await < opened(&user).await {
        assert!(started.elapsed() < WAIT_LIMIT, "the circuit stays open");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    comes_back_calm(&user).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_94_a_deletion_ends_the_storm_at_once() {
    let (user, first) = stormy(", finalizers: [example.org/hold]").await;
    user.delete(THING, "one", None).await;
    for i in 0..10 {
        user.patch(THING, "one", json!({"metadata": {"annotations": {"look": i.to_string()}}})).await;
    }
    user.delete(MAP, &first, None).await;
    user.patch(THING, "one", json!({"metadata": {"finalizers": null}})).await;
    user.until_gone(THING, "one").await;
    comes_back_calm(&user).await;
}
