//! Controllers that are stopped dead between any two writes of an installation, an upgrade, a roll-back or a removal: those that
//! start next bring everything into the state that it has without that.

use super::*;
use crate::life::basics::{composition, definition};
use serde_json::json;
use std::sync::atomic::Ordering;
use transom_object::meta;

const KINDS: [&str; 6] = [
    CONFIGURATION,
    CONFIGURATION_REVISION,
    LOCK,
    "apiextensions.crossplane.io/v1/Composition",
    "apiextensions.crossplane.io/v1/CompositionRevision",
    "apiextensions.crossplane.io/v1/CompositeResourceDefinition",
];

#[derive(Clone, Copy, Debug)]
enum Act {
    Install,
    Upgrade,
    RollBack,
    Remove,
}

const LIFE: [Act; 4] = [Act::Install, Act::Upgrade, Act::RollBack, Act::Remove];

/// A plane without controllers, and a registry with two versions of a Configuration and what it depends on.
async fn prepared() -> Plane {
    let mut plane = Plane::new().await;
    let push = |name: &str, version: &str, dependencies: &[(&str, &str)], documents: &[String]| {
        let spec = if dependencies.is_empty() { String::new() } else { depends_on(dependencies) };
        plane.registry.push(&format!("r.io/acme/{name}:{version}"), &configuration(name, &spec, documents));
    };
    let things = |function: &str| vec![definition("Cluster", false), composition("things", &[function])];
    push("platform", "v1.0.0", &[("r.io/acme/b", ">=v1.0.0")], &things("sizer"));
    let second = [things("other"), vec![composition("more", &["sizer"])]].concat();
    push("platform", "v2.0.0", &[("r.io/acme/b", ">=v1.0.0"), ("r.io/acme/c", "v1.0.0")], &second);
    push("b", "v1.0.0", &[("r.io/acme/c", ">=v1.0.0")], &[composition("b", &["sizer"])]);
    push("c", "v1.0.0", &[], &[composition("c", &["sizer"])]);
    plane.until_idle().await;
    plane.stop();
    plane
}

async fn begin(plane: &Plane, act: Act) {
    match act {
        Act::Install | Act::RollBack => plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await,
        Act::Upgrade => plane.apply(&install("platform", "r.io/acme/platform:v2.0.0")).await,
        Act::Remove => plane.delete(CONFIGURATION, "platform").await,
    }
}

/// All objects, with names instead of uids, and without versions and times.
async fn state(plane: &Plane) -> BTreeMap<String, Value> {
    let mut objects = Vec::new();
    for kind in KINDS {
        objects.extend(plane.list(kind).await);
    }
    let name = |object: &Value| format!("{} {}", meta::kind(object), meta::name(object));
    let names: Vec<(String, String)> =
        objects.iter().map(|object| (meta::uid(object).to_owned(), name(object))).collect();
    let described = objects.iter().map(|object| {
        let mut words = forget(object.clone()).to_string();
        for (uid, name) in &names {
            words = words.replace(uid.as_str(), name);
        }
        (name(object), serde_json::from_str(&words).unwrap())
    });
    described.collect()
}

fn forget(mut object: Value) -> Value {
    let generation = object["metadata"]["generation"].clone();
    if let Some(metadata) = meta::metadata_mut(&mut object) {
        let unforeseen = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"];
        metadata.retain(|field, _| !unforeseen.contains(&field.as_str()));
    }
    for condition in
        object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten()
    {
        condition["lastTransitionTime"] = Value::Null;
        condition["observedGeneration"] = json!(condition["observedGeneration"] == generation);
    }
    // Packages join the Lock in the order in which they are ready to.
    for list in ["/packages", "/status/conditions"] {
        if let Some(list) = object.pointer_mut(list).and_then(Value::as_array_mut) {
            list.sort_by_key(ToString::to_string);
        }
    }
    object
}

/// The state after each act of a life without interruptions.
async fn undisturbed() -> Vec<BTreeMap<String, Value>> {
    let mut plane = prepared().await;
    plane.start().await;
    let mut states = Vec::new();
    for act in LIFE {
        begin(&plane, act).await;
        plane.until_idle().await;
        states.push(state(&plane).await);
    }
    let count = |n: usize, kind: &str| states[n].keys().filter(|name| name.starts_with(kind)).count();
    let counts: Vec<_> =
        (0..LIFE.len()).map(|n| (count(n, "Configuration "), count(n, "ConfigurationRevision "))).collect();
    assert_eq!(counts, [(3, 3), (3, 4), (3, 4), (2, 2)], "{states:#?}");
    states
}

async fn until_state(plane: &Plane, wanted: &BTreeMap<String, Value>, when: &str) {
    plane.until_idle().await;
    let found = state(plane).await;
    for name in found.keys().chain(wanted.keys()) {
        assert_eq!(found.get(name), wanted.get(name), "{when}: {name}\n{:#?}", plane.log());
    }
}

#[tokio::test]
async fn killed_after_every_write() {
    let states = undisturbed().await;
    for offset in 0..2 {
        let mut plane = prepared().await;
        let mut kills = 0;
        for (act, wanted) in LIFE.into_iter().zip(&states) {
            plane.stop();
            begin(&plane, act).await;
            for lives in 0.. {
                assert!(lives < 200, "{act:?} does not end");
                plane.try_start(1, lives % 2 == offset).await.expect("a restart needs no writes");
                plane.until_cut().await;
                if !plane.wire.cut.load(Ordering::SeqCst) {
                    break;
                }
                kills += 1;
            }
            until_state(&plane, wanted, &format!("{act:?}")).await;
        }
        assert!(kills > 40, "only {kills} kills");
    }
}

#[tokio::test]
async fn an_upgrade_that_is_interrupted_at_any_write_is_finished() {
    let states = undisturbed().await;
    for lose_answer in [false, true] {
        for writes in 0.. {
            let mut plane = prepared().await;
            plane.start().await;
            begin(&plane, Act::Install).await;
            until_state(&plane, &states[0], "installed").await;
            plane.stop();
            begin(&plane, Act::Upgrade).await;
            plane.try_start(writes, lose_answer).await.expect("a restart needs no writes");
            plane.until_cut().await;
            if !plane.wire.cut.load(Ordering::SeqCst) {
                assert!(writes > 8, "only {writes} writes");
                break;
            }
            assert!(writes < 100, "it does not end");
            plane.start().await;
            until_state(&plane, &states[1], &format!("after {writes} writes")).await;
        }
    }
}
