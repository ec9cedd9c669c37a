//! Waves that fail: the rollout stops, says why, and continues or goes back.

use super::*;

/// Five composite resources, the third of which the second revision cannot compose.
async fn with_a_bad_one() -> (Platform, String, String) {
    let platform = Platform::new(5).await;
    platform.json(0, &["pin", "a"]);
    platform.user.patch(THING, &name(2), json!({"spec": {"coolField": "second"}})).await;
    platform.user.until_ready(THING, &name(2)).await;
    let first = platform.choices().await[0]["compositionRevisionRef"]["name"].as_str().unwrap().to_owned();
    let second = platform.say("second").await;
    (platform, first, second)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wave_that_fails_stops_the_rollout_which_is_continued_when_the_cause_is_gone() {
    let (platform, first, second) = with_a_bad_one().await;
    let plan = platform.json(2, &["plan", "a"]);
    assert_eq!(plan["summary"]["failing"], 1, "{plan:#}");
    let why = plan["resources"][2]["fails"].as_str().unwrap();
    assert!(why.contains("this is not what it should say"), "{why}");

    let output = platform.run(&["start", "a", "--yes", "--waves", "1,3,100%"]);
    assert_eq!(output.status.code(), Some(2));
    let progress = String::from_utf8(output.stderr).unwrap();
    assert!(
        progress.starts_with("wave 1 of 3: 1 Thing to") && progress.contains("\nwave 2 of 3: 2 Thing"),
        "{progress}"
    );
    assert!(!progress.contains("wave 3"), "{progress}");
    let text = String::from_utf8(output.stdout).unwrap();
    for words in [
        "Stopped, wave 2 of 3",
        "problem: Thing default/t02: Synced is False: ReconcileError: ",
        "this is not what it should say",
        "`transom rollout resume a` continues, `transom rollout rollback a` undoes it",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let choices = platform.choices().await;
    let moved: Vec<bool> = choices.iter().map(|choice| *choice == pinned(&second)).collect();
    assert_eq!(moved, [true, true, true, false, false], "{choices:#?}");
    assert_eq!(choices[3], pinned(&first));

    // Nothing else can be started, and without a remedy it stops again.
    let refused = platform.error(&["start", "a", "--yes"]);
    assert!(refused.contains("is Stopped") && refused.contains("transom rollout resume a"), "{refused}");
    assert!(platform.error(&["delete", "a"]).contains("is Stopped"), "it is not forgotten by accident");
    assert_eq!(platform.json(2, &["resume", "a"])["phase"], "Stopped");
    platform.user.patch(THING, &name(2), json!({"spec": {"coolField": "fine"}})).await;
    let done = platform.json(0, &["resume", "a"]);
    assert_eq!((&done["phase"], &done["problem"]), (&json!("Done"), &Value::Null), "{done:#}");
    assert_eq!(platform.choices().await, vec![pinned(&second); 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wave_that_fails_is_rolled_back_with_all_before_it() {
    let (platform, first, _) = with_a_bad_one().await;
    let fields = async || -> Vec<Value> {
        let all = platform.user.list(THING).await;
        all.iter().map(|xr| xr["spec"].clone()).collect()
    };
    let before = fields().await;
    let back = platform.json(2, &["start", "a", "--yes", "--waves", "1,3,100%", "--rollback-on-failure"]);
    assert_eq!(back["phase"], "RolledBack", "{back:#}");
    assert_eq!(back["problem"]["resource"], "Thing default/t02", "it still says why");
    assert_eq!(fields().await, before, "every field is as it was");
    assert_eq!(platform.choices().await, vec![pinned(&first); 5]);
    for n in 0..5 {
        let xr = platform.user.until_ready(THING, &name(n)).await;
        assert_eq!(xr["status"]["coolerField"], "first");
    }
    assert_eq!(platform.json(2, &["resume", "a"])["phase"], "RolledBack", "there is nothing to continue");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wave_that_does_not_become_ready_in_time_stops_the_rollout() {
    let platform = Platform::new(3).await;
    let first = platform.choices().await[0]["compositionRevisionRef"]["name"].as_str().unwrap().to_owned();
    platform.json(0, &["pin", "a"]);
    // Nothing says that the map is ready.
    platform.compose(&[map("second")]).await;
    let stopped = platform.json(2, &["start", "a", "--yes", "--timeout", "1s"]);
    assert_eq!((&stopped["phase"], &stopped["wave"]), (&json!("Stopped"), &json!(1)), "{stopped:#}");
    let why = stopped["problem"]["message"].as_str().unwrap();
    assert!(why.starts_with("not ready after 1s: "), "{why}");
    // However long that takes, it says so, and goes back in the time that it is given.
    let xr = platform.user.until(THING, &name(0), |xr| status_of(xr, "Ready") == "False").await;
    assert_eq!(status_of(&xr, "Synced"), "True", "{xr:#}");
    let message = platform.json(0, &["status", "a"])["resources"][0]["message"].clone();
    assert!(message.as_str().unwrap().starts_with("Ready is False: Creating"), "{message}");
    let back = platform.json(0, &["rollback", "a", "--timeout", "1m"]);
    assert_eq!((&back["phase"], &back["problem"]), (&json!("RolledBack"), &Value::Null), "{back:#}");
    assert_eq!(platform.choices().await, vec![pinned(&first); 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composite_resource_that_is_changed_back_again_and_again_stops_the_rollout() {
    let platform = Platform::new(1).await;
    platform.json(0, &["pin", "a"]);
    let first = platform.choices().await.remove(0);
    // It does not become ready, so that the other one has all the time.
    platform.compose(&[map("second")]).await;
    let (child, _folder) = platform.background(&["start", "a", "--yes", "-o", "json"]);
    let ending = tokio::task::spawn_blocking(move || child.wait_with_output());
    while !ending.is_finished() {
        platform.user.patch(THING, &name(0), json!({"spec": {"crossplane": first}})).await;
    }
    let output = ending.await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let stopped: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problem = stopped["problem"]["message"].as_str().unwrap();
    assert!(problem.starts_with("something else changes its revision back"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_does_not_accept_stops_the_rollout_and_is_rolled_back() {
    let platform = Platform::new(3).await;
    platform.json(0, &["pin", "a"]);
    let before = platform.choices().await;
    let second = platform.say("second").await;
    let of = |thing: &str, revision: &Value| {
        let name = revision["compositionRevisionRef"]["name"].as_str().unwrap();
        let rule = format!(
            "!(self.metadata.name == '{thing}' && self.spec.crossplane.compositionRevisionRef.name == '{name}')"
        );
        ruled(&definition("Thing", NAMESPACED, ""), &rule)
    };
    let rules = async |yaml: &str, words: &str| {
        platform.user.apply(yaml).await;
        platform.user.until(CRD, "things.example.org", |crd| crd.to_string().contains(words)).await;
    };
    rules(&of("t01", &pinned(&second)), &second).await;
    let stopped = platform.json(2, &["start", "a", "--yes", "--waves", "100%"]);
    assert_eq!(stopped["problem"]["resource"], "Thing default/t01", "{stopped:#}");
    let why = stopped["problem"]["message"].as_str().unwrap();
    assert!(
        why.starts_with("its revision cannot be changed: ") && why.contains("against the rules"),
        "{why}"
    );

    // What cannot go back holds up nothing else, and is not forgotten.
    let first = before[2].clone();
    rules(&of("t02", &first), first["compositionRevisionRef"]["name"].as_str().unwrap()).await;
    let blocked = platform.json(2, &["rollback", "a"]);
    let (phase, resource) = (&blocked["phase"], &blocked["problem"]["resource"]);
    assert_eq!((phase, resource), (&json!("RollingBack"), &json!("Thing default/t02")), "{blocked:#}");
    assert_eq!(platform.choices().await, [before[0].clone(), before[1].clone(), pinned(&second)]);
    platform.user.apply(&definition("Thing", NAMESPACED, "")).await;
    platform
        .user
        .until(CRD, "things.example.org", |crd| !crd.to_string().contains("against the rules"))
        .await;
    assert_eq!(platform.json(0, &["rollback", "a"])["phase"], "RolledBack");
    assert_eq!(platform.choices().await, before);
}
