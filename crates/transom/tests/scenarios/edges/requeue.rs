//! When a composite resource is looked at again, and when it is not.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use transom_function::{Ready, Resource};
use transom_object::meta;

const WITHOUT_WATCHES: &str = "--enable-realtime-compositions=false";

/// When a function was called, by the composite resource that it was called for.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<BTreeMap<String, Vec<Instant>>>>);

impl Calls {
    fn of(&self, name: &str) -> Vec<Instant> {
        self.0.lock().unwrap().get(name).cloned().unwrap_or_default()
    }

    fn count(&self, name: &str) -> usize {
        self.of(name).len()
    }

    async fn until(&self, name: &str, count: usize) {
        let started = Instant::now();
        while self.count(name) < count {
            assert!(
                started.elapsed() < transom_testkit::process::WAIT_LIMIT,
                "{name} is not composed {count} times"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The pauses after this call.
    fn pauses_after(&self, name: &str, call: usize) -> Vec<Duration> {
        let calls = self.of(name);
        calls.windows(2).skip(call - 1).map(|pair| pair[1] - pair[0]).collect()
    }
}

/// Things, composed by a function that makes one map which says what the thing says, and notes its calls. It warns of
/// things that say `worried`, fails for those that say `fails`, and the map of those that say `slow` is not ready.
async fn things(user: &User, definition: &str) -> Calls {
    let calls = Calls::default();
    let noted = calls.clone();
    user.function("noting", move |request, response| {
        let thing = request.observed_composite();
        noted.0.lock().unwrap().entry(thing.name().to_owned()).or_default().push(Instant::now());
        let says = thing.get_str("spec.coolField")?.to_owned();
        match says.as_str() {
            "worried" => drop(response.warning("it may rain")),
            "fails" => drop(response.fatal("it rains")),
            _ => {}
        }
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": {"says": says}});
        let ready = if says == "slow" { Ready::False } else { Ready::True };
        response.set_composed("map", Resource::new(map)?.with_ready(ready));
        response.composite().set("status.coolerField", says)?;
        Ok(())
    })
    .await;
    user.apply(definition).await;
    user.apply(&composition("things", "Thing", &json!({}), &[("noting", Value::Null)])).await;
    user.until_true(XRD, "things.example.org", "Established").await;
    calls
}

fn thing(name: &str, annotations: &str, says: &str) -> String {
    object("Thing", name, &format!("coolField: {says}"))
        .replace(&format!("{{name: {name}}}"), &format!("{{name: {name}, annotations: {{{annotations}}}}}"))
}

/// Waits as long as it takes to try again, with growing pauses, what fails: two times at least.
async fn while_another_is_tried_again(user: &User, calls: &Calls) {
    user.apply(&thing("failing", "", "fails")).await;
    calls.until("failing", 3).await;
}

async fn map_of(user: &User, name: &str) -> Value {
    user.composed(MAP, name).await.pop().expect("a map")
}

#[tokio::test(flavor = "multi_thread")]
async fn case_29_warnings_alone_are_not_errors() {
    let user = User::new().await;
    let calls = things(&user, &definition("Thing", "Cluster", "")).await;
    user.apply(&thing("one", "", "worried")).await;
    // With watches what is not ready is not looked at for that alone, either.
    user.apply(&thing("slow", "", "slow")).await;
    let one = user.until_ready(THING, "one").await;
    assert_eq!((reason_of(&one, "Synced"), message_of(&one, "Synced")), ("ReconcileSuccess", ""));
    user.until_event("one", "Warning ComposeResources Pipeline step \"step-0\": it may rain").await;
    let slow = user.until(THING, "slow", |o| status_of(o, "Ready") == "False").await;
    assert_eq!(
        (reason_of(&slow, "Ready"), message_of(&slow, "Ready")),
        ("Creating", "Unready resources: map")
    );
    assert_eq!(status_of(&slow, "Synced"), "True");
    user.until_idle().await;
    let before = [calls.count("one"), calls.count("slow")];
    while_another_is_tried_again(&user, &calls).await;
    assert_eq!([calls.count("one"), calls.count("slow")], before, "no retry because of a warning");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_30_without_watches_what_is_unready_is_tried_again() {
    let user = User::with(&[WITHOUT_WATCHES, "--poll-interval=1h"]).await;
    let calls = things(&user, &definition("Thing", "Cluster", "")).await;
    user.apply(&thing("one", "", "slow")).await;
    let unready = user.until(THING, "one", |o| reason_of(o, "Ready") == "Creating").await;
    assert_eq!(message_of(&unready, "Ready"), "Unready resources: map");
    assert_eq!(status_of(&unready, "Synced"), "True", "that is not an error");
    user.until_idle().await;
    let settled = calls.count("one");
    calls.until("one", settled + 2).await;
    user.patch(THING, "one", json!({"spec": {"coolField": "fine"}})).await;
    user.until_ready(THING, "one").await;
    user.until_idle().await;
    let settled = calls.count("one");
    while_another_is_tried_again(&user, &calls).await;
    assert_eq!(calls.count("one"), settled, "now there is no hurry");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_31_without_watches_what_is_ready_is_looked_at_every_poll_interval() {
    let user = User::with(&[WITHOUT_WATCHES, "--poll-interval=1s"]).await;
    let calls = things(&user, &definition("Thing", "Cluster", "")).await;
    user.apply(&thing("one", "", "fine")).await;
    user.until_ready(THING, "one").await;
    user.until_idle().await;
    let settled = calls.count("one");
    calls.until("one", settled + 3).await;
    let pauses = calls.pauses_after("one", settled);
    // The interval varies by a tenth, and calls take their time.
    assert!(pauses.iter().all(|pause| *pause > Duration::from_millis(700)), "{pauses:?}");
    let map = format!("default/{}", meta::name(&map_of(&user, "one").await));
    user.patch(MAP, &map, json!({"data": {"says": "drifted"}})).await;
    user.until(MAP, &map, |o| o["data"]["says"] == "fine").await;
}

const PAUSED: &str = "crossplane.io/paused: 'true'";

async fn pause(user: &User, value: Value) {
    user.patch(THING, "one", json!({"metadata": {"annotations": {"crossplane.io/paused": value}}})).await;
}

/// Waits until it is said of the current state that it is paused.
async fn until_paused(user: &User) -> Value {
    user.until(THING, "one", |o| {
        let synced = condition(o, "Synced");
        synced["reason"] == "ReconcilePaused" && synced["observedGeneration"] == o["metadata"]["generation"]
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn case_32_only_true_pauses() {
    let user = User::new().await;
    let calls = things(&user, &definition("Thing", "Cluster", "")).await;
    user.apply(&thing("one", PAUSED, "first")).await;
    let paused = until_paused(&user).await;
    let words = "Reconciliation (including deletion) is paused via the pause annotation";
    assert_eq!((status_of(&paused, "Synced"), message_of(&paused, "Synced")), ("False", words));
    assert_eq!((meta::finalizers(&paused), &paused["spec"]["crossplane"]), (vec![], &Value::Null));
    user.until_event("one", "Normal ReconciliationPaused Reconciliation is paused via the pause annotation")
        .await;
    assert_eq!(calls.count("one"), 0);
    pause(&user, json!("yes")).await;
    user.until_ready(THING, "one").await;
    assert_eq!(map_of(&user, "one").await["data"]["says"], "first");
    user.until_idle().await;

    pause(&user, json!("true")).await;
    until_paused(&user).await;
    let before = calls.count("one");
    user.apply(&thing("one", PAUSED, "second")).await;
    let map = format!("default/{}", meta::name(&map_of(&user, "one").await));
    user.patch(MAP, &map, json!({"data": {"says": "drifted"}})).await;
    let paused = until_paused(&user).await;
    assert_eq!(status_of(&paused, "Ready"), "True", "nothing is known of that");
    user.until_idle().await;
    assert_eq!(
        (calls.count("one"), &map_of(&user, "one").await["data"]["says"]),
        (before, &json!("drifted"))
    );
    pause(&user, Value::Null).await;
    user.until(MAP, &map, |o| o["data"]["says"] == "second").await;
    user.until_ready(THING, "one").await;

    pause(&user, json!("true")).await;
    until_paused(&user).await;
    user.delete(THING, "one", None).await;
    user.apply(&thing("after", "", "fine")).await;
    user.until_ready(THING, "after").await;
    user.until_idle().await;
    assert!(meta::is_deleting(&user.get(THING, "one").await.unwrap()), "it waits with that, too");
    pause(&user, json!("True")).await;
    user.until_gone(THING, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_32_that_it_is_paused_is_said_until_it_can_be() {
    let user = User::new().await;
    let mute =
        ruled(&definition("Thing", "Cluster", ""), "self.spec.coolField != 'mute' || !has(self.status)");
    things(&user, &mute).await;
    user.apply(&thing("one", PAUSED, "mute")).await;
    let failures = || {
        let log = user.home.log();
        let words = "cannot update composite resource status";
        log.lines().filter(|line| line.contains("cannot reconcile") && line.contains(words)).count()
    };
    let started = Instant::now();
    while failures() < 2 {
        assert!(started.elapsed() < transom_testkit::process::WAIT_LIMIT, "{}", user.home.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(user.get(THING, "one").await.unwrap().get("status"), None);
    user.patch(THING, "one", json!({"spec": {"coolField": "speaks"}})).await;
    until_paused(&user).await;
}

/// A plane with a thing whose map is changed as often as it takes until that is noticed: the plane, the thing, the map.
async fn storm() -> (User, Value, String) {
    let user = User::new().await;
    things(&user, &definition("Thing", "Cluster", "")).await;
    user.apply(&thing("one", "", "first")).await;
    let mut one = user.until_ready(THING, "one").await;
    assert_eq!(status_of(&one, "Responsive"), "True");
    assert_eq!(reason_of(&one, "Responsive"), "WatchCircuitClosed");
    let map = format!("default/{}", meta::name(&map_of(&user, "one").await));
    let started = Instant::now();
    while reason_of(&one, "Responsive") != "WatchCircuitOpen" {
        assert!(started.elapsed() < transom_testkit::process::WAIT_LIMIT, "the storm is not noticed");
        let now = format!("{:?}", started.elapsed());
        user.patch(MAP, &map, json!({"data": {"says": now}})).await;
        one = user.get(THING, "one").await.unwrap();
    }
    (user, one, map)
}

#[tokio::test(flavor = "multi_thread")]
async fn case_38_an_open_circuit_is_a_condition_and_nothing_else() {
    let (user, one, map) = storm().await;
    assert_eq!(status_of(&one, "Responsive"), "False");
    assert!(message_of(&one, "Responsive").starts_with("Too many watch events from "), "{one:#}");
    assert_eq!((status_of(&one, "Synced"), status_of(&one, "Ready")), ("True", "True"));
    user.apply(&thing("one", "", "second")).await;
    let one = user.until(THING, "one", |o| o["status"]["coolerField"] == "second").await;
    assert_eq!((status_of(&one, "Synced"), status_of(&one, "Ready")), ("True", "True"));
    user.until(MAP, &map, |o| o["data"]["says"] == "second").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_38_an_open_circuit_names_who_opened_it() {
    let (_user, one, map) = storm().await;
    let name = map.strip_prefix("default/").unwrap();
    assert_eq!(
        message_of(&one, "Responsive"),
        format!("Too many watch events from ConfigMap/{name} (default). Allowing events periodically.")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn case_39_the_annotation_asks_for_a_poll_interval() {
    let user = User::with(&["--min-poll-interval=500ms"]).await;
    let calls = things(&user, &definition("Thing", "Cluster", "")).await;
    let all = ["valid", "minimum", "below", "unparsable", "negative", "absent"];
    let intervals = ["1500ms", "500ms", "1ms", "often", "-1s"];
    for (name, interval) in all.iter().zip(intervals) {
        user.apply(&thing(name, &format!("crossplane.io/poll-interval: {interval}"), "fine")).await;
    }
    user.apply(&thing("absent", "", "fine")).await;
    for name in all {
        user.until_ready(THING, name).await;
    }
    user.until_idle().await;
    let before = all.map(|name| calls.count(name));
    calls.until("valid", before[0] + 3).await;
    // Intervals vary by a tenth, and no composite resource is reconciled sooner than that.
    for (i, least) in [1000, 300, 300].into_iter().enumerate() {
        let pauses = calls.pauses_after(all[i], before[i]);
        assert!(pauses.iter().all(|p| *p > Duration::from_millis(least)), "{}: {pauses:?}", all[i]);
    }
    let after = all.map(|name| calls.count(name));
    assert!(after[1] >= before[1] + 5 && after[2] >= before[2] + 5, "{before:?} {after:?}");
    assert_eq!(after[3..], before[3..], "who asks for nothing sensible is not polled");
}

async fn request(user: &User, token: &str) {
    let annotations = json!({"crossplane.io/reconcile-requested-at": token});
    user.patch(THING, "one", json!({"metadata": {"annotations": annotations}})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_40_a_request_is_handled_once() {
    let mut user = User::new().await;
    let calls = things(&user, &definition("Thing", "Cluster", "")).await;
    user.apply(&thing("one", "", "fine")).await;
    let one = user.until_ready(THING, "one").await;
    assert_eq!(one["status"].get("lastHandledReconcileAt"), None);
    user.until_idle().await;
    for token in ["first", "second"] {
        let before = calls.count("one");
        request(&user, token).await;
        user.until(THING, "one", |o| o["status"]["lastHandledReconcileAt"] == token).await;
        assert!(calls.count("one") > before, "it is looked at");
        user.until_event("one", "Normal ReconcileRequestHandled Handling reconcile request").await;
        user.until_idle().await;
    }
    let (before, handled) = (calls.count("one"), user.get(THING, "one").await);
    request(&user, "second").await;
    while_another_is_tried_again(&user, &calls).await;
    assert_eq!((calls.count("one"), user.get(THING, "one").await), (before, handled), "the same token");

    // New controllers reconcile everything, and find that this request was handled.
    let handled = |events: Vec<Value>| {
        let count = |e: &Value| e["count"].as_u64().unwrap_or_default();
        let own =
            |e: &&Value| e["involvedObject"]["name"] == "one" && e["reason"] == "ReconcileRequestHandled";
        events.iter().filter(own).map(count).sum::<u64>()
    };
    let events = handled(user.list("v1/Event").await);
    user.restart(&[]).await;
    calls.until("one", before + 1).await;
    pause(&user, json!("true")).await;
    user.until_event("one", "ReconciliationPaused").await;
    assert_eq!(handled(user.list("v1/Event").await), events);
}
