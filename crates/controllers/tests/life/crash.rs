//! Killed between any two writes, the controllers' successors finish the work: no orphan, no duplicate, no lost
//! reference.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::Value;
use std::collections::BTreeSet;
use transom_object::meta;

const CLAIM: &str = "example.org/v1/Thing";

fn claim(size: &str) -> String {
    format!(
        "apiVersion: example.org/v1\nkind: Thing\nmetadata: {{name: one, namespace: default}}\nspec: {{size: '{size}'}}\n"
    )
}

/// A plane whose things compose as many ConfigMaps as their size says; the controllers are stopped.
async fn prepared() -> Plane {
    let mut plane = Plane::new().await;
    counted(&plane, "counted", "a").await;
    counted(&plane, "recounted", "b").await;
    plane.apply(&definition("LegacyCluster", true)).await;
    plane.apply(&composition("things", &["counted"])).await;
    plane.until_true(XRD, "xthings.example.org", "Offered").await;
    plane.until_idle().await;
    plane.stop();
    plane
}

/// What a user does in the life of a claim, and how it looks when that is done.
#[derive(Clone, Copy, Debug)]
enum Act {
    Create,
    Grow,
    Shrink,
    SwitchRevision,
    Delete,
}

const LIFE: [Act; 5] = [Act::Create, Act::Grow, Act::Shrink, Act::SwitchRevision, Act::Delete];

async fn begin(plane: &Plane, act: Act) {
    match act {
        Act::Create => plane.apply(&claim("2")).await,
        Act::Grow => plane.apply(&claim("3")).await,
        Act::Shrink => plane.apply(&claim("1")).await,
        Act::SwitchRevision => plane.apply(&composition("things", &["recounted"])).await,
        Act::Delete => plane.delete(CLAIM, "default/one").await,
    }
}

async fn end(plane: &Plane, act: Act) {
    let (size, count) = match act {
        Act::Create => ("a-2", 2),
        Act::Grow => ("a-3", 3),
        Act::Shrink => ("a-1", 1),
        Act::SwitchRevision => ("b-1", 1),
        Act::Delete => {
            plane.until_gone(CLAIM, "default/one").await;
            until(plane, "everything is gone", || async {
                plane.list(XR).await.is_empty() && composed(plane).await.is_empty()
            })
            .await;
            return;
        }
    };
    let looks_done = |o: &Value| o["status"]["size"] == size && status_of(o, "Ready") == "True";
    plane.until(CLAIM, "default/one", looks_done).await;
    until(plane, "what exists is what is referenced", || async {
        let xrs = plane.list(XR).await;
        let existing = composed(plane).await;
        xrs.len() == 1 && existing.len() == count && references(&xrs[0]) == existing
    })
    .await;
}

async fn until<F: Future<Output = bool>>(plane: &Plane, what: &str, holds: impl Fn() -> F) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while !holds().await {
        let shown = (plane.list(XR).await, composed(plane).await);
        assert!(std::time::Instant::now() < deadline, "not so: {what}\n{shown:#?}\n{:#?}", plane.log());
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
}

/// Every ConfigMap that was composed.
async fn composed(plane: &Plane) -> BTreeSet<String> {
    let maps = plane.list("v1/ConfigMap").await;
    let composed =
        maps.iter().filter(|m| meta::annotation(m, "crossplane.io/composition-resource-name").is_some());
    composed.map(|m| meta::name(m).to_owned()).collect()
}

fn references(xr: &Value) -> BTreeSet<String> {
    let list = xr["spec"]["resourceRefs"].as_array().cloned().unwrap_or_default();
    list.iter().filter_map(|r| r["name"].as_str().map(str::to_owned)).collect()
}

/// Lives one life in which the controllers are killed after `writes` writes of one act.
async fn live(victim: usize, writes: i64, lose_answer: bool) -> bool {
    let mut plane = prepared().await;
    let mut killed = false;
    for (i, act) in LIFE.into_iter().enumerate() {
        if i == victim {
            plane.stop();
            begin(&plane, act).await;
            plane.try_start(writes, lose_answer).await.expect("a restart needs no writes");
            plane.until_cut().await;
            killed = plane.wire.cut.load(std::sync::atomic::Ordering::SeqCst);
            plane.start().await;
        } else {
            if i == 0 {
                plane.start().await;
            }
            begin(&plane, act).await;
        }
        end(&plane, act).await;
    }
    killed
}

async fn matrix(lose_answer: bool) {
    let mut kills = 0;
    for (victim, act) in LIFE.into_iter().enumerate() {
        for writes in 0.. {
            assert!(writes < 100, "{act:?} never ends");
            if !live(victim, writes, lose_answer).await {
                break;
            }
            kills += 1;
        }
    }
    assert!(kills > 15, "only {kills} kills");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_before_any_write() {
    matrix(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_any_write() {
    matrix(true).await;
}

#[tokio::test]
async fn killed_after_every_write() {
    let mut plane = prepared().await;
    for act in LIFE {
        plane.stop();
        begin(&plane, act).await;
        for lives in 0.. {
            assert!(lives < 100, "{act:?} does not end");
            plane.try_start(1, lives % 2 == 1).await.expect("a restart needs no writes");
            plane.until_cut().await;
            if !plane.wire.cut.load(std::sync::atomic::Ordering::SeqCst) {
                break;
            }
        }
        end(&plane, act).await;
    }
}
