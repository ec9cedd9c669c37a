//! `transom function logs` with its flags.

use super::*;
use std::fs::File;
use std::process::{Child, Output};

const TALKS: &str = "function-talks";
/// Prints numbered lines, and never opens a port.
const SCRIPT: &str = "i=0; while :; do i=$((i+1)); echo \"WORD $i\"; sleep 1; done";

fn command(user: &User, arguments: &[&str]) -> Command {
    let mut command = transom(&[&["function", "logs"], arguments].concat());
    command.arg("--data-dir").arg(user.home.data());
    command
}

fn printed(user: &User, arguments: &[&str]) -> Output {
    let mut command = command(user, arguments);
    tokio::task::block_in_place(|| command.output()).expect("the binary runs")
}

fn text(user: &User, arguments: &[&str]) -> String {
    let output = printed(user, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Ends with the test, also with one that fails.
struct Follower(Child);

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_those_of_a_revision_and_are_followed() {
    let registry = Registry::start().await;
    let push = |version: &str, word: &str| {
        let script = SCRIPT.replace("WORD", word);
        registry.push_function(
            &format!("acme/{TALKS}:{version}"),
            &shell(),
            &["/bin/sh", "-c", &script],
            "A=b",
        )
    };
    let revisions = [push("v1", "first"), push("v2", "second")].map(|digest| revision_of(TALKS, &digest));
    let [first, second] = &revisions;
    let user = User::of_packages(&CHROOT).await;
    // The first goes on while the second is not healthy.
    for version in ["v1", "v2"] {
        user.apply(&install_function(TALKS, &registry.at(&format!("acme/{TALKS}:{version}")))).await;
        let revision = if version == "v1" { first } else { second };
        until("the revision prints", || {
            printed(&user, &[TALKS, "--revision", revision]).stdout.ends_with(b"\n")
        })
        .await;
    }
    let (of_first, of_second) =
        (text(&user, &[TALKS, "--revision", first]), text(&user, &[TALKS, "--revision", second]));
    assert!(of_first.lines().all(|line| line.contains("first ")), "{of_first}");
    assert!(of_second.lines().all(|line| line.contains("second ")), "{of_second}");

    let output = printed(&user, &[TALKS, "--revision", "nowhere"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("there is no log of revision \"nowhere\" of Function \"function-talks\""),
        "{stderr}"
    );
    assert!(revisions.iter().all(|revision| stderr.contains(revision.as_str())), "{stderr}");

    // Followed, it prints what is there and what comes.
    let path = user.home.root().join("followed");
    let mut command = command(&user, &[TALKS, "--revision", first, "-f"]);
    command.stdout(File::create(&path).unwrap());
    let mut follower = Follower(command.spawn().expect("the binary runs"));
    // The last line may be on its way.
    let followed = || {
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        text
    };
    let before = text(&user, &[TALKS, "--revision", first]).lines().count();
    until("lines are printed that were not there before", || followed().lines().count() > before + 1).await;
    assert!(follower.0.try_wait().unwrap().is_none(), "it goes on");
    let all = followed();
    assert!(all.starts_with(&of_first), "{all}");
    assert!(all.lines().all(|line| line.contains("first ")), "{all}");
}
