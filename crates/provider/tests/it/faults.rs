//! Nothing is created twice, and nothing is lost.

use crate::cloud::{Cloud, Faults, Stand, condition, is_ready};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;
use transom_testkit::rng::Rng;

const THINGS: usize = 6;

/// Kills the provider again and again while it works.
async fn killed_often(stand: &mut Stand, rng: &mut Rng) {
    for n in 0..THINGS {
        stand.create(&format!("t{n}"), &json!({"forProvider": {"size": n}}), &json!({})).await;
    }
    for _ in 0..12 {
        tokio::time::sleep(Duration::from_millis(rng.below(25))).await;
        stand.kill();
        stand.start();
    }
}

fn schedules() -> u64 {
    std::env::var("TRANSOM_PROVIDER_SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(8)
}

/// Names of things are those of their objects: whatever happens, all of them exist in the end, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn things_with_known_names_heal_from_everything() {
    // Few: what was created less than 30 s ago and is missing is waited for, also when it is being deleted.
    for seed in 0..schedules().div_ceil(8) {
        let mut stand = Stand::new(Cloud::new(seed, true)).await;
        *stand.cloud.faults.lock().unwrap() = Faults { fails: 20, lies: 20, slow: 5, hidden: 30 };
        killed_often(&mut stand, &mut Rng::new(seed)).await;
        for n in 0..THINGS {
            stand.until("it is ready", &format!("t{n}"), is_ready).await;
        }
        assert_eq!(stand.cloud.count(), THINGS, "seed {seed}");
        for n in 0..THINGS {
            stand.delete(&format!("t{n}")).await;
        }
        stand.kill();
        stand.start();
        for n in 0..THINGS {
            stand.until("it is gone", &format!("t{n}"), |object| object.is_none()).await;
        }
        assert_eq!(stand.cloud.count(), 0, "seed {seed}");
    }
}

/// The external system chooses names: after a kill during a creation it is unknown whether it happened, and no second one
/// is attempted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn things_with_unknown_names_are_never_made_twice() {
    let mut blocked = 0;
    for seed in 0..schedules() {
        let mut stand = Stand::new(Cloud::new(seed, false)).await;
        *stand.cloud.faults.lock().unwrap() = Faults { fails: 10, lies: 0, slow: 12, hidden: 20 };
        killed_often(&mut stand, &mut Rng::new(seed)).await;
        for n in 0..THINGS {
            let settled = |object: Option<&serde_json::Value>| {
                let unknown =
                    |o| condition(o, "Synced").message.starts_with("cannot determine creation result");
                is_ready(object) || object.is_some_and(unknown)
            };
            let object = stand.until("it is ready or blocked", &format!("t{n}"), settled).await;
            blocked += usize::from(!is_ready(object.as_ref()));
        }
        let mut made: BTreeMap<String, usize> = BTreeMap::new();
        for thing in stand.cloud.things.lock().unwrap().values() {
            *made.entry(thing.of.clone()).or_default() += 1;
        }
        assert!(made.values().all(|count| *count == 1), "seed {seed}: {made:?}");
    }
    assert!(blocked > 0, "no kill hit a creation: the test proves nothing");
}

/// At rest nothing is written, and the external system is read at the poll interval only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_rest_nothing_is_written() {
    let stand = Stand::new(Cloud::new(1, true)).await;
    stand.create("t", &json!({"forProvider": {}}), &json!({})).await;
    let settled = |object: Option<&serde_json::Value>| {
        is_ready(object) && object.is_some_and(|o| condition(o, "UpToDate").is_true())
    };
    let before = stand.until("it is ready", "t", settled).await.unwrap();
    let reads = stand.cloud.reads.load(Ordering::SeqCst);
    stand.until("it was polled", "t", |_| stand.cloud.reads.load(Ordering::SeqCst) >= reads + 3).await;
    let after = stand.get("t").await.unwrap();
    assert_eq!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
}

/// A Kubernetes as external system refuses changes with the code that writes of stale managed resources are refused with: it is
/// reported like everything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_of_the_external_system_are_reported() {
    let stand = Stand::new(Cloud::new(1, true)).await;
    let says = async |words: &str| {
        let holds = |object: Option<&serde_json::Value>| {
            object.is_some_and(|object| condition(object, "Synced").message == words)
        };
        stand.until(words, "used", holds).await;
    };
    stand.cloud.conflicts.store(true, Ordering::SeqCst);
    stand.create("used", &json!({"forProvider": {"size": 1}}), &json!({})).await;
    says("create failed: the thing is in use").await;
    stand.cloud.conflicts.store(false, Ordering::SeqCst);
    stand.until("it is ready", "used", is_ready).await;
    stand.cloud.conflicts.store(true, Ordering::SeqCst);
    stand.patch("used", &json!({"spec": {"forProvider": {"size": 2}}})).await;
    says("update failed: the thing is in use").await;
    stand.delete("used").await;
    says("delete failed: the thing is in use").await;
    stand.cloud.conflicts.store(false, Ordering::SeqCst);
    stand.until("it is gone", "used", |object| object.is_none()).await;
}

/// The watch of what is waited for may not be allowed, so there are polls as well. And what is deleted before it has a finalizer is
/// forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_polled_and_forgotten() {
    let stand = Stand::new(Cloud::new(1, true)).await;
    let waits = |object: Option<&serde_json::Value>| {
        object.is_some_and(|object| condition(object, "Synced").message == "observe failed: it waits")
    };
    stand.cloud.waits.store(true, Ordering::SeqCst);
    for name in ["one", "two"] {
        stand.create(name, &json!({"forProvider": {}}), &json!({})).await;
        stand.until("it waits", name, waits).await;
    }
    assert_eq!(stand.cloud.forgotten.load(Ordering::SeqCst), 0);
    stand.delete("two").await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while stand.cloud.forgotten.load(Ordering::SeqCst) == 0 {
        assert!(tokio::time::Instant::now() < deadline, "it is not forgotten");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    stand.cloud.waits.store(false, Ordering::SeqCst);
    stand.until("it is ready", "one", is_ready).await;
}
