//! Several commands at once, users without rights, and mistakes.

use super::*;
use rustix::process::{Pid, Signal, kill_process};
use transom_testkit::process::wait_until;

/// A rollout that does not become ready, in a command that runs.
async fn under_way() -> (Platform, Child, TempDir) {
    let platform = Platform::new(2).await;
    platform.json(0, &["pin", "a"]);
    platform.compose(&[map("second")]).await;
    let (child, folder) = platform.background(&["start", "a", "--yes", "-o", "json"]);
    let moved = async || {
        let output = platform.run(&["status", "a", "-o", "json"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        status["waves"][0]["moved"] == 1 && status["active"] == true
    };
    wait_until("the first wave is moved", moved).await;
    (platform, child, folder)
}

fn ended(child: Child) -> (Option<i32>, Value) {
    let output = tokio::task::block_in_place(|| child.wait_with_output()).expect("it ends");
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_commands_do_not_work_on_one_rollout() {
    let (platform, child, _folder) = under_way().await;
    for arguments in [["resume", "a"], ["rollback", "a"]] {
        let refused = platform.error(&arguments);
        assert!(refused.contains("another command works on the rollout of Composition \"a\""), "{refused}");
    }
    assert!(platform.error(&["start", "a", "--yes"]).contains("is Progressing"));
    // It can be paused from elsewhere, and continued by another command.
    assert_eq!(platform.json(0, &["pause", "a"])["paused"], true);
    let (code, status) = ended(child);
    assert_eq!(
        (code, &status["paused"], &status["active"]),
        (Some(2), &json!(true), &json!(false)),
        "{status:#}"
    );
    assert_eq!(platform.json(0, &["status", "a"])["phase"], "Progressing");
    let back = platform.json(0, &["rollback", "a"]);
    assert_eq!((&back["phase"], &back["paused"]), (&json!("RolledBack"), &json!(false)), "{back:#}");
    let list = platform.text(0, &["list"]);
    assert!(list.starts_with("COMPOSITION  KIND   TO") && list.contains("RolledBack  1/2"), "{list}");
    assert_eq!(platform.json(0, &["list"]).as_array().map(Vec::len), Some(1));
    assert!(platform.text(0, &["delete", "a"]).contains("is forgotten"));
    assert!(platform.error(&["status", "a"]).contains("there is no rollout of Composition \"a\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_command_lets_others_continue_at_once() {
    for signal in [Signal::INT, Signal::TERM] {
        let (platform, child, _folder) = under_way().await;
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let (code, status) = ended(child);
        assert_eq!((code, &status["active"]), (Some(2), &json!(false)), "{status:#}");
        assert_eq!(platform.json(0, &["rollback", "a"])["phase"], "RolledBack");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_rights_gets_an_error_that_names_them() {
    let platform = Platform::new(1).await;
    let path = platform.user.home.data().join("kubeconfig");
    let text = std::fs::read_to_string(&path).unwrap();
    let own = ["client-certificate-data", "client-key-data"];
    let lines: Vec<&str> = text.lines().filter(|line| !own.iter().any(|key| line.contains(key))).collect();
    let anonymous = platform.user.home.root().join("anonymous");
    std::fs::write(&anonymous, lines.join("\n").replace("user:\n", "user: {}\n")).unwrap();
    for arguments in
        [&["plan", "a"][..], &["start", "a", "--yes"], &["status", "a"], &["pin", "a"], &["list"]]
    {
        let mut command = transom(&[&["rollout"], arguments].concat());
        let output = command.arg("--kubeconfig").arg(&anonymous).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("the user of the kubeconfig has too few rights"), "{arguments:?}: {stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_explained() {
    let platform = Platform::new(1).await;
    for (arguments, words) in [
        (&["plan", "aa"][..], "there is no Composition \"aa\"; did you mean \"a\"?"),
        (&["plan", "a", "--to", "7"], "Composition \"a\" has no revision \"7\"; its revisions are a-"),
        (&["start", "a", "--to", "nothing", "--yes"], "has no revision \"nothing\""),
        (&["start", "a", "--from", "9", "--yes"], "has no revision \"9\""),
        (&["resume", "a"], "there is no rollout of Composition \"a\" in namespace crossplane-system"),
        (&["rollback", "a"], "there is no rollout"),
        (&["pause", "a"], "there is no rollout"),
    ] {
        let error = platform.error(arguments);
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
    platform
        .user
        .patch(THING, &name(0), json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}}))
        .await;
    platform.json(0, &["pin", "a"]);
    platform.say("second").await;
    assert!(platform.error(&["pause", "a"]).contains("there is no rollout"));
    let nothing = platform.text(0, &["start", "a", "--yes"]);
    assert!(nothing.contains("1 cannot be moved\n  default/t00: it is paused"), "{nothing}");
    platform
        .user
        .patch(THING, &name(0), json!({"metadata": {"annotations": {"crossplane.io/paused": null}}}))
        .await;
    platform.user.until_ready(THING, &name(0)).await;
    let asked = platform.error(&["start", "a"]);
    assert!(asked.contains("add --yes"), "{asked}");
    let usage = platform.run(&["plan", "a", "--waves", "10"]);
    assert_eq!(usage.status.code(), Some(80), "as every mistake in a command line");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_function_elsewhere_would_change_is_not_known() {
    let platform = Platform::new(2).await;
    platform.json(0, &["pin", "a"]);
    // One that can be called is called.
    platform.user.function("function-there", |_, _| Ok(())).await;
    platform.compose(&[map("second"), ("function-there", Value::Null), auto_ready()]).await;
    platform.user.until_true(FUNCTION, "function-there", "Healthy").await;
    let plan = platform.json(0, &["plan", "a"]);
    assert_eq!((&plan["summary"]["unknown"], &plan["summary"]["change"]), (&json!(0), &json!(2)), "{plan:#}");
    platform.user.apply(&function("function-elsewhere", "transom.io/endpoint: '127.0.0.1:9'")).await;
    platform.compose(&[("function-elsewhere", json!({"apiVersion": "e/v1", "kind": "In"}))]).await;
    let plan = platform.json(0, &["plan", "a"]);
    assert_eq!((&plan["summary"]["unknown"], &plan["waves"]), (&json!(2), &json!([1, 1])), "{plan:#}");
    let why = plan["resources"][0]["unknown"].as_str().unwrap();
    assert!(
        why.contains("a function cannot be called from here") && why.contains("function-elsewhere"),
        "{why}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_shows_what_is_created_and_deleted_and_what_the_server_refuses() {
    let platform = Platform::new(1).await;
    platform.json(0, &["pin", "a"]);
    let replaced = |old: &str, new: &str| {
        let (function, mut input) = map("second");
        let text = input["inline"]["template"].as_str().unwrap();
        assert!(text.contains(old), "{text}");
        input["inline"]["template"] = text.replace(old, new).into();
        (function, input)
    };
    platform.compose(&[replaced("\"map\"", "\"other\""), auto_ready()]).await;
    let plan = platform.json(0, &["plan", "a"]);
    let changes = plan["resources"][0]["changes"].as_array().unwrap();
    let actions: Vec<[&Value; 2]> =
        changes.iter().map(|change| [&change["action"], &change["resource"]]).collect();
    assert_eq!(json!(actions), json!([["create", "other"], ["delete", "map"]]), "{plan:#}");
    let text = platform.text(0, &["plan", "a"]);
    assert!(
        text.contains("  create ConfigMap default/") && text.contains(" (other)\n  delete ConfigMap"),
        "{text}"
    );

    platform.compose(&[replaced("says: second", "says: {no: text}"), auto_ready()]).await;
    let plan = platform.json(2, &["plan", "a"]);
    let why = plan["resources"][0]["fails"].as_str().unwrap();
    assert!(why.starts_with("ConfigMap t00-") && why.contains("would be refused: "), "{why}");
    assert!(platform.text(2, &["plan", "a"]).contains("\n1 would fail\n"));
}
