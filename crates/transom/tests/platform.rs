//! `examples/platform` on the real binary: the steps of docs/getting-started.md work, heals, survives
//! `kill -9`, and goes away again.

#![allow(clippy::panic, reason = "a test that cannot go on has failed")]

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use transom_engine::{Cluster, DeleteOptions};
use transom_object::{GroupVersion, GroupVersionKind};
use transom_testkit::process::{Home, Plane, WAIT_LIMIT};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of the platform that a page has the user apply, in its order.
fn applied_by(page: &str) -> Vec<PathBuf> {
    let page = std::fs::read_to_string(root().join(page)).expect("a page");
    let commands =
        page.lines().filter(|l| l.starts_with("kubectl apply") && l.contains("examples/platform/"));
    let files = commands.flat_map(|l| l.split(" -f ").skip(1).map(str::to_owned).collect::<Vec<_>>());
    files.map(|file| root().join(file.trim())).collect()
}

/// The files that the guide, and the README, have the user apply.
fn applied() -> Vec<PathBuf> {
    let guide = applied_by("docs/getting-started.md");
    assert_eq!(applied_by("README.md"), guide, "the README and the guide say the same");
    guide
}

async fn connect(home: &Home) -> Cluster {
    let config = Kubeconfig::read_from(home.data().join("kubeconfig")).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await.expect("a usable kubeconfig");
    Cluster::new(kube::Client::try_from(config).expect("a client"))
}

fn gvk(api_version: &str, kind: &str) -> GroupVersionKind {
    GroupVersion::parse(api_version).expect("an apiVersion").with_kind(kind)
}

fn is_true(object: &Value, condition: &str) -> bool {
    let list = object["status"]["conditions"].as_array();
    list.is_some_and(|list| transom_object::conditions::has_status(list, condition, "True"))
}

async fn until(
    user: &Cluster,
    kind: &GroupVersionKind,
    name: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Value {
    let started = Instant::now();
    let mut last = Value::Null;
    while started.elapsed() < WAIT_LIMIT {
        last = user.get(kind, "default", name).await.ok().flatten().unwrap_or_default();
        if wanted(&last) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} {name} does not look as wanted: {last:#}", kind.kind);
}

async fn apply(user: &Cluster, file: &Path) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    for document in transom_object::yaml::read_documents(&text).expect("YAML") {
        let object = document.value;
        let started = Instant::now();
        // A kind is served a moment after it is defined.
        while let Err(e) = user.apply(&object, "kubectl").await {
            assert!(started.elapsed() < WAIT_LIMIT, "{}: {e}", file.display());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn the_example_platform_becomes_ready_and_goes_away() {
    let home = Home::new();
    let mut plane = Plane::start_with(&home, &["--with-controllers"]);
    let user = connect(&home).await;
    let files = applied();
    assert!(files.len() >= 3, "{files:?}");
    for file in &files {
        apply(&user, file).await;
    }
    let (platform, app) = (gvk("platform.example.org/v1", "Platform"), gvk("platform.example.org/v1", "App"));
    let claim = until(&user, &platform, "team-a", |o| is_true(o, "Ready")).await;
    assert_eq!(
        claim["status"]["cidr"], "10.0.0.0/16",
        "from the network, through the platform, to the claim"
    );
    let app_ready =
        until(&user, &app, "shop", |o| is_true(o, "Ready") && o["status"]["config"].is_string()).await;
    let secret = until(&user, &gvk("v1", "Secret"), "team-a-cluster", |o| !o.is_null()).await;
    assert!(secret["data"]["kubeconfig"].is_string());
    let log = home.log();
    assert!(log.contains("App default/shop is ready."), "{log}");

    // Killed and started again, everything is as it was, and heals as before.
    plane.kill();
    let plane = Plane::start_with(&home, &["--with-controllers"]);
    let user = connect(&home).await;
    let config = app_ready["status"]["config"].as_str().expect("a name").to_owned();
    let map =
        user.get(&gvk("v1", "ConfigMap"), "default", &config).await.expect("an answer").expect("it is there");
    user.merge_patch(&map, &json!({"data": {"image": "drift"}}), "kubectl").await.expect("it can be patched");
    until(&user, &gvk("v1", "ConfigMap"), &config, |o| o["data"]["image"] == "shop:1.0").await;
    let metrics = plane.client().await.get("/metrics").await.expect("metrics").text();
    assert!(
        metrics.contains(
            "controller_runtime_reconcile_total{controller=\"composite/apps.platform.example.org\""
        ),
        "{metrics}"
    );

    user.delete(&platform, "default", "team-a", DeleteOptions::default()).await.expect("it can be deleted");
    user.delete(&app, "default", "shop", DeleteOptions::default()).await.expect("it can be deleted");
    let started = Instant::now();
    loop {
        let maps = user.list(&gvk("v1", "ConfigMap"), "default", &BTreeMap::new()).await.expect("a list");
        let nops = user.list(&gvk("nop.crossplane.io/v1alpha1", "NopResource"), "", &BTreeMap::new()).await;
        let composed = maps
            .iter()
            .filter(|m| m["metadata"]["annotations"]["crossplane.io/composition-resource-name"].is_string());
        if composed.count() == 0 && nops.expect("a list").is_empty() {
            break;
        }
        assert!(started.elapsed() < WAIT_LIMIT, "what was composed does not go");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    home.assert_no_panic();
}
