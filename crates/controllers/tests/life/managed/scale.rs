//! What many definitions cost: counted in requests, not in time.

use super::*;

const DEFINITIONS: usize = 2_000;
/// How many of them the policy matches.
const MATCHED: usize = 200;
const MRDS: &str = "/apis/apiextensions.crossplane.io/v1alpha1/managedresourcedefinitions";
const MRAPS: &str = "/apis/apiextensions.crossplane.io/v1alpha1/managedresourceactivationpolicies";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn count(lines: &[String], start: &str) -> usize {
    lines.iter().filter(|line| line.starts_with(start)).count()
}

/// Small definitions without schema: `a0s.cloud.io`, … of which the first are matched by `m*`.
fn small(n: usize) -> String {
    let kind = format!("{}{n}", if n < MATCHED { "M" } else { "A" });
    let mut object = documents(&definition(&kind, "Inactive")).remove(0);
    object["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object"});
    object.to_string()
}

#[tokio::test]
async fn a_change_costs_the_same_however_many_definitions_there_are() {
    let mut plane = Plane::quiet().await;
    plane.start().await;
    plane.stop();
    for n in 0..DEFINITIONS {
        plane.apply(&small(n)).await;
    }
    plane.start().await;
    plane.until(MRD, "a1999s.cloud.io", |o| status_of(o, "Established") == "False").await;
    assert_eq!(plane.until_idle().await, u64::try_from(DEFINITIONS).unwrap(), "a condition for each");

    // A policy: what it does not match costs nothing.
    plane.take_reads();
    let before = usize::try_from(plane.writes()).unwrap();
    plane.apply(&policy("some", &["m*"])).await;
    plane.until(MRAP, "some", |p| activated(p).len() == MATCHED).await;
    plane.until_idle().await;
    let writes = plane.log()[before..].to_vec();
    let reads = plane.take_reads();
    assert_eq!(count(&writes, &format!("PATCH {MRDS}")), MATCHED);
    assert_eq!(count(&writes, &format!("PATCH {CRDS}")), MATCHED);
    assert_eq!(count(&writes, &format!("PUT {MRDS}")), MATCHED);
    assert_eq!(count(&writes, &format!("PUT {MRAPS}")), 1, "one write of its status");
    assert_eq!(writes.len(), 3 * MATCHED + 1);
    assert_eq!(count(&reads, &format!("{MRDS}/")), MATCHED);
    assert_eq!(count(&reads, &format!("{MRDS}?")), 0, "definitions are not listed");
    assert_eq!(count(&reads, &format!("{MRAPS}/")), 1);

    // One more definition.
    let before = usize::try_from(plane.writes()).unwrap();
    plane.apply(&definition("Mine", "Inactive")).await;
    plane.until(MRAP, "some", |p| activated(p).len() == MATCHED + 1).await;
    plane.until_true(MRD, "mines.cloud.io", "Established").await;
    plane.until_idle().await;
    assert!(plane.log()[before..].len() <= 5, "{:#?}", &plane.log()[before..]);
    let reads = plane.take_reads();
    assert!(count(&reads, MRDS) + count(&reads, MRAPS) + count(&reads, CRDS) <= 6, "{reads:#?}");

    // A definition that the policy does not match, and a change that concerns no policy.
    let before = usize::try_from(plane.writes()).unwrap();
    plane.patch(MRD, "a1999s.cloud.io", json!({"metadata": {"labels": {"a": "b"}}})).await;
    plane.patch(MRD, "m0s.cloud.io", json!({"metadata": {"labels": {"a": "b"}}})).await;
    plane.until_idle().await;
    assert_eq!(plane.log()[before..], [""; 0]);
    let reads = plane.take_reads();
    assert_eq!(count(&reads, MRAPS), 0, "{reads:#?}");
    assert_eq!(count(&reads, MRDS) + count(&reads, CRDS), 3, "{reads:#?}");
}
