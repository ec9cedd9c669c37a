//! When the controllers say that they are ready.

use crate::life::basics::*;
use crate::life::fixture::*;
use std::time::{Duration, Instant};

async fn until_ready(plane: &Plane) {
    let deadline = Instant::now() + PATIENCE;
    while !plane.readiness().is_reached() {
        assert!(Instant::now() < deadline, "it does not become ready");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn controllers_are_ready_once_they_know_what_exists() {
    let mut plane = with_things("Cluster", false).await;
    plane.apply(&xr("one", "small")).await;
    plane.until_true(XR, "one", "Ready").await;
    plane.start().await;
    until_ready(&plane).await;
    assert!(plane.watched_kinds().contains(&gvk(XR)), "the kinds of definitions are watched by then");
    assert!(plane.functions.router.knows("sizer"), "functions can be called by then");
    plane.delete(XR, "one").await;
    plane.until_gone(XR, "one").await;
    assert!(plane.readiness().is_reached(), "it is never lost again");
}

#[tokio::test]
async fn controllers_are_not_ready_while_a_kind_cannot_be_seen() {
    let mut plane = with_things("Cluster", false).await;
    plane.hide("xthings");
    plane.start().await;
    plane.until(XRD, "xthings.example.org", |_| plane.watched_kinds().contains(&gvk(XR))).await;
    plane.until_queues_are_idle().await;
    assert!(!plane.readiness().is_reached(), "the composite resources that exist have not been listed");
    plane.show();
    until_ready(&plane).await;
}

#[tokio::test]
async fn what_is_deleted_before_it_is_watched_comes_back() {
    let mut plane = with_things("Cluster", false).await;
    plane.apply(&xr("one", "small")).await;
    let map = composed_name(&plane.until_true(XR, "one", "Ready").await);
    plane.stop();
    plane.hide("configmaps");
    plane.start().await;
    let (_, name) = map.split_once('/').unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !plane.take_reads().iter().any(|read| read.ends_with(name)) {
        assert!(Instant::now() < deadline, "it is not reconciled");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    plane.until_queues_are_idle().await;
    plane.delete("v1/ConfigMap", &map).await;
    plane.until_gone("v1/ConfigMap", &map).await;
    plane.show();
    plane.until("v1/ConfigMap", &map, |o| o["data"]["size"] == "small").await;
}

#[tokio::test]
async fn a_definition_that_is_deleted_goes_although_the_first_list_of_crds_is_late() {
    let mut plane = with_things("Cluster", false).await;
    plane.stop();
    plane.delete(XRD, "xthings.example.org").await;
    plane.hide("customresourcedefinitions");
    plane.start().await;
    plane.take_reads();
    let deadline = Instant::now() + PATIENCE;
    let is_definition = |read: &String| read.ends_with("/compositeresourcedefinitions/xthings.example.org");
    while !plane.take_reads().iter().any(is_definition) {
        assert!(Instant::now() < deadline, "it is not reconciled");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // A CRD that is deleted now would be missing in the first list, and its deletion would be reported by nothing.
    plane.show();
    plane.until_gone(XRD, "xthings.example.org").await;
}
