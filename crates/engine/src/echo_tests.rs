//! The timelines of `README.md`: which changes wake a key after a run, and which are echoes.

use crate::{ChangeNotice, Key, Next, ObjectHash, Pace, Queue, RunLog, Via};
use serde_json::{Value, json};
use std::time::Duration;
use transom_object::GroupVersionKind;

fn kind() -> GroupVersionKind {
    GroupVersionKind::new("", "v1", "ConfigMap")
}

/// An object as the server returns it.
fn at(name: &str, version: u64) -> Value {
    let metadata = json!({"name": name, "resourceVersion": version.to_string()});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// One key, `x`, that depends on ConfigMaps.
struct Timeline {
    queue: Queue,
    key: Key,
}

impl Timeline {
    /// The first run has started.
    async fn start() -> Self {
        let timeline = Self { queue: Queue::new(Pace::default()), key: Key::new("", "x") };
        timeline.queue.wake(&timeline.key);
        assert!(timeline.runs().await);
        timeline
    }

    /// Whether the key runs now. If it does, the run has started.
    async fn runs(&self) -> bool {
        tokio::time::timeout(Duration::from_millis(1), self.queue.next()).await.is_ok()
    }

    fn reported(&self, name: &str, version: u64, via: Via) {
        let object = ObjectHash::new(&kind(), "", name);
        self.queue.wake_by(&self.key, ChangeNotice { object, version, via });
    }

    fn ends(&self, log: &RunLog) {
        self.queue.done(&self.key, Next::Wait, log.take_seen());
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_of_the_run_is_an_echo_and_the_next_write_is_not() {
    let timeline = Timeline::start().await;
    let log = RunLog::default();
    log.read(&at("a", 10));
    log.wrote(&at("a", 11));
    timeline.ends(&log);
    timeline.reported("a", 11, Via::Watch);
    assert!(!timeline.runs().await, "v11 is the write of the run");
    timeline.reported("a", 12, Via::Watch);
    assert!(timeline.runs().await, "v12 was written by another client");
}

#[tokio::test(start_paused = true)]
async fn changes_during_a_run_are_judged_when_it_ends() {
    let timeline = Timeline::start().await;
    let log = RunLog::default();
    log.read(&at("a", 10));
    log.wrote(&at("a", 11));
    timeline.reported("a", 11, Via::Watch);
    assert!(!timeline.runs().await, "a key never runs twice at once");
    timeline.ends(&log);
    assert!(!timeline.runs().await, "v11 is the write of the run");
}

#[tokio::test(start_paused = true)]
async fn a_write_between_a_read_and_a_write_of_the_run_wakes_its_key() {
    let timeline = Timeline::start().await;
    let log = RunLog::default();
    log.read(&at("a", 10));
    log.wrote(&at("a", 12));
    timeline.reported("a", 11, Via::Watch);
    timeline.reported("a", 12, Via::Watch);
    timeline.ends(&log);
    assert!(timeline.runs().await, "v11 was written by another client, and the run never read it");
}

#[tokio::test(start_paused = true)]
async fn a_list_wakes_a_key_whose_run_wrote_the_object() {
    let timeline = Timeline::start().await;
    let log = RunLog::default();
    log.read(&at("a", 10));
    log.read(&at("b", 9));
    log.wrote(&at("a", 12));
    timeline.ends(&log);
    timeline.reported("b", 9, Via::List);
    assert!(!timeline.runs().await, "the run decided on v9 of b");
    timeline.reported("a", 12, Via::List);
    assert!(timeline.runs().await, "the list may hide a v11 of another client");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_wakes_the_key_also_if_the_run_deleted_the_object() {
    let timeline = Timeline::start().await;
    let log = RunLog::default();
    log.read(&at("a", 10));
    log.changed();
    timeline.ends(&log);
    timeline.reported("a", 13, Via::Watch);
    assert!(timeline.runs().await, "the event DELETED has a version that no run has seen");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_list_lacks_wakes_only_keys_that_saw_it() {
    let timeline = Timeline::start().await;
    let log = RunLog::default();
    log.read(&at("a", 10));
    timeline.ends(&log);
    timeline.reported("never-read", 20, Via::Absence);
    timeline.reported("a", 9, Via::Absence);
    assert!(!timeline.runs().await, "the list of v9 is older than v10 of a");
    timeline.reported("a", 20, Via::Absence);
    assert!(timeline.runs().await, "a was deleted between v10 and v20");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changed_after_a_label_lookup_wakes_the_key() {
    let timeline = Timeline::start().await;
    let log = RunLog::default();
    log.listed(&kind(), 20);
    log.read(&at("a", 19));
    log.read(&at("b", 21));
    timeline.ends(&log);
    timeline.reported("a", 19, Via::Watch);
    assert!(!timeline.runs().await, "v19 is part of the lookup at v20");
    timeline.reported("b", 21, Via::Watch);
    assert!(timeline.runs().await, "b may have got its labels at v21, after the lookup");
}

#[test]
fn every_test_that_the_readme_names_exists() {
    let sources = [include_str!("echo_tests.rs"), include_str!("queue_tests.rs"), include_str!("run_log.rs")];
    let named: Vec<&str> = include_str!("../README.md")
        .split('`')
        .filter(|word| word.contains('_') && word.split('_').count() > 4)
        .collect();
    assert!(named.len() >= 7, "{named:?}");
    for test in named {
        let is_test = |source: &&str| source.contains(&format!("fn {test}("));
        assert!(sources.iter().any(is_test), "{test}");
    }
}
