//! Upgrades of functions that run from their packages: the revision before is drained and stopped, unless the new one does
//! not work.

use super::*;
use crate::scenarios::rollout::{Changing, count};

/// The numbers and states of the function's revisions.
async fn states(user: &User) -> Vec<(i64, String)> {
    let all = user.list(FUNCTION_REVISION).await;
    let state = |r: &Value| {
        (r["spec"]["revision"].as_i64().unwrap(), r["spec"]["desiredState"].as_str().unwrap().to_owned())
    };
    let mut states: Vec<_> = all.iter().map(state).collect();
    states.sort();
    states
}

fn in_order(states: &[&str]) -> Vec<(i64, String)> {
    (1..).zip(states.iter().map(|state| (*state).to_owned())).collect()
}

/// With a limit of one active revision, each upgrade stops the container before while it is called.
#[tokio::test(flavor = "multi_thread")]
async fn upgrades_under_load_stop_the_old_revision_and_lose_no_call() {
    let registry = Registry::start().await;
    let (user, digests) = with_packaged(&registry).await;
    let names: Vec<String> = (0..count()).map(|i| format!("load-{i}")).collect();
    for name in &names {
        user.apply(&object("Thing", name, "coolField: a")).await;
    }
    for name in &names {
        user.until_ready(THING, name).await;
    }
    let changing = Changing::start(&user, &names);
    for (tag, digest) in [("v2", &digests[1]), ("v1", &digests[0]), ("v2", &digests[1])] {
        let before = below(user.plane.pid());
        let package = registry.at(&format!("acme/{PACKAGED}:{tag}"));
        let calls = format!("function_package=\"{package}\"");
        let called = user.counted("function_run_function_request_total", &calls).await;
        user.patch(FUNCTION, PACKAGED, json!({"spec": {"package": package}})).await;
        let current = |f: &Value| {
            f["status"]["currentRevision"] == *revision_of(PACKAGED, digest)
                && status_of(f, "Healthy") == "True"
        };
        user.until(FUNCTION, PACKAGED, current).await;
        until("the container of the revision before ends", || {
            before.keys().all(|id| !Path::new(&format!("/proc/{id}")).exists())
        })
        .await;
        let wanted = called + u64::try_from(count()).unwrap();
        transom_testkit::process::wait_until("the new revision is called", async || {
            user.counted("function_run_function_request_total", &calls).await >= wanted
        })
        .await;
    }
    assert!(changing.stop().await > 0, "no change failed");
    user.until_idle().await;
    assert_eq!(user.failed_calls(PACKAGED).await, 0);
    assert_eq!(below(user.plane.pid()).len(), 3, "one container runs");
    for name in &names {
        let thing = user.get(THING, name).await.expect("it is there");
        assert_eq!(status_of(&thing, "Synced"), "True", "{name}");
        let events = user.events_of(name).await;
        assert!(events.iter().all(|e| !e.starts_with("Warning")), "{name}: {events:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_revision_that_crashes_leaves_the_old_one_active() {
    let registry = Registry::start().await;
    let (mut user, [first, second]) = with_packaged(&registry).await;
    let script = "echo out of order >&2; exit 3";
    registry.push_function(&format!("acme/{PACKAGED}:v3"), &shell(), &["/bin/sh", "-c", script], "A=b");
    let upgrade = async |user: &User, tag: &str| {
        let package = registry.at(&format!("acme/{PACKAGED}:{tag}"));
        user.patch(FUNCTION, PACKAGED, json!({"spec": {"package": package}})).await;
    };
    upgrade(&user, "v3").await;
    let words = format!("package revision {:?} is called instead", revision_of(PACKAGED, &first));
    let says_so = |f: &Value| {
        let message = message_of(f, "Healthy");
        message.contains("exit code 3") && message.contains("out of order") && message.ends_with(&words)
    };
    for round in ["as it was", "after a restart"] {
        let ill = user.until(FUNCTION, PACKAGED, says_so).await;
        assert_eq!((status_of(&ill, "Healthy"), status_of(&ill, "Installed")), ("False", "True"), "{round}");
        assert_eq!(states(&user).await, in_order(&["Active", "Active"]), "{round}");
        user.until_true(FUNCTION_REVISION, &revision_of(PACKAGED, &first), "RuntimeHealthy").await;
        user.apply(&object("Thing", "two", &format!("coolField: {round}"))).await;
        user.until(THING, "two", |o| status_of(o, "Ready") == "True" && o["spec"]["coolField"] == round)
            .await;
        assert_eq!(user.failed_calls(PACKAGED).await, 0, "{round}");
        user.restart(&CHROOT).await;
    }
    upgrade(&user, "v2").await;
    user.until(FUNCTION, PACKAGED, |f| {
        f["status"]["currentRevision"] == *revision_of(PACKAGED, &second) && status_of(f, "Healthy") == "True"
    })
    .await;
    user.until_idle().await;
    // The history has one place, which is that of the revision that worked until the end.
    let kept = [(1, "Inactive".to_owned()), (3, "Active".to_owned())];
    assert_eq!(states(&user).await, kept);
}
