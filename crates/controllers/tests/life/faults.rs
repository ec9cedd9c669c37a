//! Functions that fail: nothing is deleted by fault, the cause is named, and others are not affected.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use transom_function::{Error, Resource, ResourceSelector};
use transom_object::meta;

/// What the function does from now on.
const WELL: usize = 0;
const FATAL: usize = 1;
const ERROR: usize = 2;
const PANIC: usize = 3;
const UNSETTLED: usize = 4;
const BAD_NAME: usize = 5;
const NO_KIND: usize = 6;
const NOT_AN_OBJECT: usize = 7;
const SAME_NAME: usize = 8;
const NOTHING: usize = 9;

async fn moody(plane: &Plane) -> Arc<AtomicUsize> {
    let mood = Arc::new(AtomicUsize::new(WELL));
    let felt = mood.clone();
    plane
        .function("moody", move |mut request| {
            let only_bad = request.observed_composite().get_str("spec.size").unwrap_or_default() == "bad";
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let mut good = config_map(&json!({"a": "b"}));
            meta::set_namespace(&mut good, "default");
            let mood = if only_bad { felt.load(Ordering::SeqCst) } else { WELL };
            match mood {
                FATAL => drop(response.fatal("I will not")),
                ERROR => return Err(Error::from(std::io::Error::other("no disk"))),
                #[expect(clippy::panic, reason = "that is the fault")]
                PANIC => panic!("boom"),
                UNSETTLED => {
                    static CALLS: AtomicUsize = AtomicUsize::new(0);
                    let name = format!("cm-{}", CALLS.fetch_add(1, Ordering::SeqCst));
                    response.require("more", ResourceSelector::named("v1", "ConfigMap", name));
                }
                BAD_NAME => {
                    let mut bad = good.clone();
                    meta::set_name(&mut bad, "NOT_A_NAME");
                    response.set_composed("bad", Resource::new(bad)?);
                }
                NO_KIND => {
                    let unknown =
                        json!({"apiVersion": "nowhere.io/v1", "kind": "Ghost", "metadata": {"name": "x"}});
                    response.set_composed("ghost", Resource::new(unknown)?);
                }
                NOT_AN_OBJECT => {
                    response.set_composed("empty", Resource::default());
                }
                SAME_NAME => {
                    let mut twin = good.clone();
                    meta::set_name(&mut twin, "twin");
                    response.set_composed("left", Resource::new(twin.clone())?);
                    response.set_composed("right", Resource::new(twin)?);
                }
                // The last thing of a function that is dying: no state at all, and the reason.
                NOTHING => {
                    response.desired = None;
                    response.fatal("out of memory");
                }
                _ => {}
            }
            if mood != FATAL && mood != NOTHING {
                response.set_composed("good", ready(good));
            }
            Ok(response)
        })
        .await;
    mood
}

#[tokio::test]
async fn faulty_functions_delete_nothing() {
    let mut plane = Plane::new().await;
    let mood = moody(&plane).await;
    things(&plane, &["moody"]).await;
    plane.apply(&xr("bad", "bad")).await;
    plane.apply(&xr("good", "good")).await;
    let composed = composed_name(&plane.until_true(XR, "bad", "Ready").await);
    for (fault, expected) in [
        (FATAL, "cannot compose resources: pipeline step \"moody\" returned a fatal result: I will not"),
        (ERROR, "cannot compose resources: pipeline step \"moody\" returned a fatal result: no disk"),
        (PANIC, "cannot compose resources: cannot run Composition pipeline step \"moody\": "),
        (UNSETTLED, "requirements didn't stabilize after the maximum number of iterations"),
        (BAD_NAME, "cannot apply composed resource \"bad\" because it has an invalid name \"NOT_A_NAME\""),
        (NO_KIND, "cannot apply composed resource \"ghost\": no matches for kind \"Ghost\""),
        (NOT_AN_OBJECT, "\"empty\""),
        (
            SAME_NAME,
            "composed resources \"left\" and \"right\" have the same name: both are ConfigMap \"twin\"",
        ),
        (NOTHING, "pipeline step \"moody\" returned a fatal result: out of memory"),
    ] {
        mood.store(fault, Ordering::SeqCst);
        plane.patch(XR, "bad", json!({"metadata": {"annotations": {"try": fault.to_string()}}})).await;
        let failed = plane.until(XR, "bad", |o| message_of(o, "Synced").contains(expected)).await;
        assert_eq!(reason_of(&failed, "Synced"), "ReconcileError");
        assert_eq!(status_of(&failed, "Ready"), "True", "readiness is left as it was");
        let object = plane.get("v1/ConfigMap", &composed).await.expect("it is not deleted by fault");
        assert!(!meta::is_deleting(&object));
        mood.store(WELL, Ordering::SeqCst);
        plane
            .patch(XR, "bad", json!({"metadata": {"annotations": {"try": format!("well after {fault}")}}}))
            .await;
        let well = plane.until_true(XR, "bad", "Synced").await;
        assert_eq!(message_of(&well, "Synced"), "", "nothing is left of the error");
    }
    let before = plane.until_idle().await;
    plane.start().await;
    plane.until_idle().await;
    assert_eq!(plane.log(), Vec::<String>::new(), "after {before} writes a restart changes nothing");
    let unaffected = plane.get(XR, "good").await.unwrap();
    assert_eq!((status_of(&unaffected, "Ready"), status_of(&unaffected, "Synced")), ("True", "True"));
}

#[tokio::test]
async fn an_invalid_composed_resource_does_not_hold_up_others() {
    let plane = Plane::new().await;
    plane
        .function("mixed", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let mut good = config_map(&json!({"a": "b"}));
            meta::set_namespace(&mut good, "default");
            let mut bad = config_map(&json!({"not a key!": "b"}));
            meta::set_namespace(&mut bad, "default");
            response.set_composed("good", ready(good));
            response.set_composed("bad", ready(bad));
            Ok(response)
        })
        .await;
    things(&plane, &["mixed"]).await;
    plane.apply(&xr("one", "small")).await;
    let xr = plane
        .until(XR, "one", |o| message_of(o, "Synced").starts_with("Unsynced resources: bad (bad: "))
        .await;
    assert_eq!(status_of(&xr, "Ready"), "True", "the functions say so");
    let maps = plane.list("v1/ConfigMap").await;
    assert_eq!(maps.iter().filter(|m| meta::name(m).starts_with("one-")).count(), 1);
    plane.until_idle().await;
    let events = plane.events_of("one").await;
    assert!(
        events
            .iter()
            .any(|e| e.starts_with("Warning ComposeResources: cannot apply composed resource \"bad\"")),
        "{events:#?}"
    );
}

#[tokio::test]
async fn what_belongs_to_others_is_not_touched() {
    let plane = Plane::new().await;
    plane
        .function("greedy", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let mut mine = config_map(&json!({"whose": "mine"}));
            meta::set_namespace(&mut mine, "default");
            meta::set_name(&mut mine, "theirs");
            response.set_composed("config", ready(mine));
            Ok(response)
        })
        .await;
    plane.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: someone, namespace: default}\n").await;
    let someone = plane.get("v1/ConfigMap", "default/someone").await.unwrap();
    let owner = format!(
        "{{apiVersion: v1, kind: ConfigMap, name: someone, uid: {}, controller: true}}",
        meta::uid(&someone)
    );
    let theirs = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: theirs\n  namespace: default\n  ownerReferences: [OWNER]\ndata: {whose: theirs}\n";
    plane.apply(&theirs.replace("OWNER", &owner)).await;
    things(&plane, &["greedy"]).await;
    plane.apply(&xr("one", "small")).await;
    plane.until(XR, "one", |o| status_of(o, "Synced") == "False").await;
    plane.delete(XR, "one").await;
    plane.until_gone(XR, "one").await;
    plane.until_idle().await;
    let theirs = plane.get("v1/ConfigMap", "default/theirs").await.expect("it is not deleted");
    assert_eq!(theirs["data"]["whose"], "theirs");
}

#[tokio::test]
async fn resources_that_are_no_longer_desired_are_deleted_and_those_without_a_controller_stay() {
    let plane = Plane::new().await;
    counted(&plane, "counted", "config").await;
    things(&plane, &["counted"]).await;
    plane.apply(&xr("one", "'4'")).await;
    let xr_ = plane
        .until(XR, "one", |o| {
            o["spec"]["crossplane"]["resourceRefs"].as_array().is_some_and(|r| r.len() == 4)
                && status_of(o, "Ready") == "True"
        })
        .await;
    let all: Vec<String> = xr_["spec"]["crossplane"]["resourceRefs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| format!("default/{}", r["name"].as_str().unwrap()))
        .collect();
    let released = {
        let mut found = None;
        for name in &all {
            let map = plane.get("v1/ConfigMap", name).await.unwrap();
            if map["data"]["i"] == "3" {
                found = Some(name.clone());
            }
        }
        found.unwrap()
    };
    plane.patch("v1/ConfigMap", &released, json!({"metadata": {"ownerReferences": null}})).await;
    plane.until("v1/ConfigMap", &released, |o| meta::controller_of(o).is_some()).await;
    plane.apply(&xr("one", "'1'")).await;
    plane
        .until(XR, "one", |o| {
            o["spec"]["crossplane"]["resourceRefs"].as_array().is_some_and(|r| r.len() == 1)
        })
        .await;
    let mut left = 0;
    for name in &all {
        let map = plane.get("v1/ConfigMap", name).await.unwrap_or_default();
        if map["data"]["i"] == "0" {
            left += 1;
        } else if !map.is_null() {
            plane.until_gone("v1/ConfigMap", name).await;
        }
    }
    assert_eq!(left, 1);
}

#[tokio::test]
async fn a_fatal_result_half_way_changes_nothing() {
    let plane = Plane::new().await;
    counted(&plane, "counted", "map").await;
    plane
        .function("picky", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            if request.observed_composite().get_str("spec.size")? == "0" {
                response.condition("Picky", transom_function::Status::ConditionTrue, "Zero");
                response.fatal("zero is not a size");
            }
            Ok(response)
        })
        .await;
    things(&plane, &["counted", "picky"]).await;
    plane.apply(&xr("one", "'2'")).await;
    plane.until_true(XR, "one", "Ready").await;
    plane.until_idle().await;
    let before = plane.list("v1/ConfigMap").await;
    // The first step wants to delete everything; the second one does not let it.
    plane.apply(&xr("one", "'0'")).await;
    let failed = plane.until(XR, "one", |o| status_of(o, "Synced") == "False").await;
    assert_eq!(
        message_of(&failed, "Synced"),
        "cannot compose resources: pipeline step \"picky\" returned a fatal result: zero is not a size"
    );
    assert_eq!(reason_of(&failed, "Picky"), "Zero", "conditions of the fatal answer are kept");
    assert_eq!(failed["status"]["size"], "map-2", "nothing of the first step is");
    plane.until_idle().await;
    assert_eq!(plane.list("v1/ConfigMap").await, before);
}
