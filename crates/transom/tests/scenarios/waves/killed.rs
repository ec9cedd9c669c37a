//! `kill -9` at every write of a rollout, which is then continued from another folder and home.

use super::*;

const COUNT: usize = 4;
const WAVES: [&str; 2] = ["--waves", "1,100%"];

/// Runs a command that is killed at a write. Returns whether it was: otherwise it had fewer writes and ended with this code.
fn killed(platform: &Platform, at: &str, arguments: &[&str], code: i32) -> bool {
    let (mut command, _folder) = platform.command(arguments);
    command.env("TRANSOM_DIE_AT", at);
    let output = tokio::task::block_in_place(|| command.output()).expect("the binary runs");
    let ended = output.status.code();
    assert!(ended.is_none_or(|ended| ended == code), "{at}: {}", String::from_utf8_lossy(&output.stderr));
    ended.is_none()
}

/// How a rollout ends that was killed before: it is continued, or it had not begun and is started again.
fn continued(platform: &Platform, start: &[&str], code: i32, to: &str) -> Value {
    let found = platform.run(&["status", "a", "-o", "json"]);
    let status: Value = serde_json::from_slice(&found.stdout).unwrap_or_default();
    match status["to"] == to {
        true => platform.json(code, &["resume", "a", "--take-over"]),
        false => platform.json(code, start),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_that_is_killed_at_any_write_ends_the_same_once_it_is_continued() {
    let platform = Platform::new(COUNT).await;
    platform.json(0, &["pin", "a"]);
    let first = platform.choices().await[0]["compositionRevisionRef"]["name"].as_str().unwrap().to_owned();
    let second = platform.say("second").await;
    let (mut kills, mut direction) = (0, 0);
    for point in ["unsent", "answered"] {
        for n in 1.. {
            let to = [&second, &first][direction % 2];
            direction += 1;
            let start = [&["start", "a", "--yes", "--to", to], &WAVES[..]].concat();
            let was_killed = killed(&platform, &format!("{point}:{n}"), &start, 0);
            if was_killed {
                kills += 1;
                let done = continued(&platform, &start, 0, to);
                assert_eq!(done["phase"], "Done", "{point}:{n}: {done:#}");
            }
            assert_eq!(platform.choices().await, vec![pinned(to); COUNT], "{point}:{n}");
            // The next one starts without a trace of this one.
            platform.json(0, &["delete", "a"]);
            if !was_killed {
                break;
            }
        }
    }
    // The record, each composite resource, the second wave, the end; and the namespace at first.
    assert!(kills > 2 * (COUNT + 3), "{kills}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_that_is_killed_at_any_write_restores_everything() {
    let platform = Platform::new(COUNT).await;
    platform.json(0, &["pin", "a"]);
    platform.user.patch(THING, &name(2), json!({"spec": {"coolField": "second"}})).await;
    platform.user.until_ready(THING, &name(2)).await;
    let before = platform.choices().await;
    let second = platform.say("second").await;
    let start = [&["start", "a", "--yes", "--rollback-on-failure"], &WAVES[..]].concat();
    let mut kills = 0;
    for n in 1.. {
        let was_killed = killed(&platform, &format!("answered:{n}"), &start, 2);
        if was_killed {
            kills += 1;
            let back = continued(&platform, &start, 2, &second);
            assert_eq!(back["phase"], "RolledBack", "{n}: {back:#}");
        }
        assert_eq!(platform.choices().await, before, "{n}");
        platform.json(0, &["delete", "a"]);
        if !was_killed {
            break;
        }
    }
    // All of them there and back.
    assert!(kills > 2 * COUNT + 3, "{kills}");
}

#[tokio::test(flavor = "multi_thread")]
async fn going_back_and_going_on_can_be_killed_at_any_write() {
    let platform = Platform::new(COUNT).await;
    platform.json(0, &["pin", "a"]);
    let before = platform.choices().await;
    let second = platform.say("second").await;
    // So that the first write is the record.
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: crossplane-system}\n";
    platform.user.apply(namespace).await;
    let mut kills = 0;
    for n in 1.. {
        let kills_before = kills;
        let at = format!("unsent:{n}");
        // A command that continues is killed, too.
        let start = [&["start", "a", "--yes"], &WAVES[..]].concat();
        assert!(killed(&platform, "answered:2", &start, 0));
        if killed(&platform, &at, &["resume", "a", "--take-over"], 0) {
            kills += 1;
            platform.json(0, &["resume", "a", "--take-over"]);
        }
        assert_eq!(platform.choices().await, vec![pinned(&second); COUNT], "{at}");
        if killed(&platform, &at, &["rollback", "a"], 0) {
            kills += 1;
            // It may not have begun: then there is nothing to go on with.
            platform.json(0, &["resume", "a", "--take-over"]);
            platform.json(0, &["rollback", "a"]);
        }
        assert_eq!(platform.choices().await, before, "{at}");
        platform.json(0, &["delete", "a"]);
        if kills == kills_before {
            break;
        }
    }
    assert!(kills > 2 * COUNT, "{kills}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_dead_is_recognised() {
    let platform = Platform::new(2).await;
    platform.json(0, &["pin", "a"]);
    let second = platform.say("second").await;
    assert!(killed(&platform, "answered:4", &["start", "a", "--yes"], 0));
    assert_eq!(platform.json(0, &["status", "a"])["active"], true, "nobody knows yet");
    let output = platform.run(&["resume", "a"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("waiting whether that still works"), "{stderr}");
    assert_eq!(platform.choices().await, vec![pinned(&second); 2]);
}
