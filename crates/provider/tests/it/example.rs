//! The provider that `docs/providers.md` shows.

#[expect(dead_code, reason = "its main is for a process")]
#[path = "../../examples/files.rs"]
mod files;

use crate::cloud::is_ready;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use transom_object::meta;
use transom_provider::{Cluster, GroupVersionKind};
use transom_testkit::embedded;

const EXAMPLE: &str = include_str!("../../examples/files.rs");
const PAGE: &str = include_str!("../../../../docs/providers.md");

#[test]
fn the_page_shows_the_example_in_60_lines() {
    let (_, code) = EXAMPLE.split_once("\n\n").unwrap();
    let code = code.replace("pub(crate) ", "");
    assert!(PAGE.contains(&format!("```rust\n{code}```\n")), "docs/providers.md has another text");
    let lines = code.lines().filter(|line| !line.is_empty()).count();
    assert!(lines <= 60, "{lines} lines");
}

fn gvk() -> GroupVersionKind {
    GroupVersionKind::new("files.example.org", "v1", "File")
}

async fn until(cluster: &Cluster, what: &str, holds: impl Fn(Option<&Value>) -> bool) -> Option<Value> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        // Its kind is not served at first.
        let found = cluster.get(&gvk(), "", "greeting").await.ok().flatten();
        if holds(found.as_ref()) {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "{what}: {found:#?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn content(folder: &Path) -> Option<String> {
    std::fs::read_to_string(folder.join("greeting")).ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_runs_until_it_gets_a_signal() {
    let folder = std::env::temp_dir().join(format!("transom-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let client = embedded::admin_kube_client(&embedded::server().await);
    let cluster = Cluster::new(client.clone());
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let provider = files::provider(folder.clone());
    let running = tokio::spawn(provider.run(client, async { drop(ended.await) }));
    let served = |cluster: Cluster| async move { cluster.get(&gvk(), "", "none").await.is_ok() };
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while !served(cluster.clone()).await {
        assert!(tokio::time::Instant::now() < deadline, "its kind is not served");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let file = json!({
        "apiVersion": "files.example.org/v1", "kind": "File", "metadata": {"name": "greeting"},
        "spec": {"forProvider": {"content": "hello"}},
    });
    cluster.create(&file, "test").await.unwrap();
    let object = until(&cluster, "it is ready", is_ready).await.unwrap();
    assert_eq!(content(&folder).as_deref(), Some("hello"));
    let noted =
        |key: &str| meta::annotation(&object, &format!("crossplane.io/external-create-{key}")).is_some();
    assert!(noted("pending") && noted("succeeded") && !noted("failed"));
    let event = GroupVersionKind::new("", "v1", "Event");
    let created = async || {
        let events = cluster.list(&event, "", &Default::default()).await.unwrap();
        let of = |event: &&Value| event["reason"] == "CreatedExternalResource";
        events.iter().filter(of).map(|event| event["count"].as_i64().unwrap_or(1)).sum::<i64>()
    };
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while created().await == 0 {
        assert!(tokio::time::Instant::now() < deadline, "there is no event");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(created().await, 1, "it is created once");
    cluster.delete(&gvk(), "", "greeting", Default::default()).await.unwrap();
    until(&cluster, "it is gone", |object| object.is_none()).await;
    assert_eq!(content(&folder), None);
    end.send(()).unwrap();
    running.await.unwrap().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
