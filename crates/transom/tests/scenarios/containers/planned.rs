//! The plan of `transom rollout` with functions that run in containers: it calls them on the machine of the command.

use super::*;
use std::process::{Output, Stdio};
use transom_oci::testing::images::image as image_of;
use transom_testkit::process::{Terminal, screen};

/// Composes the ConfigMap of the other functions of these tests.
pub(super) const PROGRAM: &str = r#"while read -r line; do :; done
echo "desired:
  resources:
  - name: map
    resource: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: default}, data: {says: inline}}
    readinessChecks: [{type: None}]"
"#;

/// `transom rollout plan things` with a cache of images beside the data of the plane.
async fn plan(user: &User, code: i32, flags: &[&str]) -> Value {
    let cache = cache(user);
    let arguments = ["plan", "things", "-o", "json", "--cache-dir", &*cache];
    let output = rollout(user, &[&arguments[..], flags].concat()).await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}\n{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {stderr}"))
}

async fn rollout(user: &User, arguments: &[&str]) -> Output {
    let mut command = transom(&[&["rollout"], arguments].concat());
    command.arg("--kubeconfig").arg(user.home.data().join("kubeconfig")).stdin(Stdio::null());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn cache(user: &User) -> String {
    user.home.root().join("cache").to_string_lossy().into_owned()
}

/// Changes the Composition of pinned composite resources, and waits for its revision.
async fn compose(user: &User, step: Value) {
    let mut manifest = documents(&composition("things", "Thing", &json!({}), &[])).remove(0);
    manifest["spec"]["pipeline"] = json!([step]);
    user.apply(&manifest.to_string()).await;
    user.until_any(REVISION, |revision| {
        let found = &revision["spec"]["pipeline"][0];
        found["step"] == step["step"]
            && found["input"] == step["input"]
            && found["inline"]["container"]["image"] == step["inline"]["container"]["image"]
    })
    .await;
}

/// What a plan says that changes one field of one composed resource.
fn says(plan: &Value) -> Vec<(&str, &str)> {
    let resources = plan["resources"].as_array().into_iter().flatten();
    let changes = resources.flat_map(|one| one["changes"].as_array().into_iter().flatten());
    let fields = changes.flat_map(|change| change["fields"].as_array().into_iter().flatten());
    fields.filter_map(|field| Some((field["path"].as_str()?, field["after"].as_str()?))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_calls_functions_from_packages_and_inline_ones() {
    let registry = Registry::start().await;
    let (user, _) = with_packaged(&registry).await;
    let pinned = rollout(&user, &["pin", "things"]).await;
    assert!(pinned.status.success(), "{}", String::from_utf8_lossy(&pinned.stderr));
    user.until_idle().await;
    let step =
        json!({"step": "second", "functionRef": {"name": PACKAGED}, "input": one_map("Thing", "second").1});
    compose(&user, step).await;
    user.until_idle().await;
    let versions = async || {
        let all = user.list(THING).await.into_iter().chain(user.list(MAP).await);
        all.map(|object| object["metadata"]["resourceVersion"].clone()).collect::<Vec<_>>()
    };
    let before = versions().await;
    let planned = plan(&user, 0, &CHROOT).await;
    assert_eq!(
        (&planned["summary"]["unknown"], &planned["summary"]["change"]),
        (&json!(0), &json!(1)),
        "{planned:#}"
    );
    assert_eq!(says(&planned), [("data.says", "\"second\"")], "{planned:#}");
    // Where packages cannot be run, the plan says so and shows the waves.
    let planned = plan(&user, 0, &["--container-runtime", "none"]).await;
    assert_eq!((&planned["summary"]["unknown"], &planned["waves"]), (&json!(1), &json!([1])), "{planned:#}");
    let why = planned["resources"][0]["unknown"].as_str().unwrap();
    assert!(
        why.contains("cannot be called from here") && why.contains("--container-runtime is none"),
        "{why}"
    );

    let config = json!({"config": {"Entrypoint": ["/bin/sh", "-c", PROGRAM]}}).to_string();
    registry.0.push("acme/inline", "v1", &image_of(&config, &[shell()], false));
    let container = json!({"image": registry.at("acme/inline:v1")});
    compose(&user, json!({"step": "third", "inline": {"type": "Container", "container": container}})).await;
    let [flag, runtime] = CHROOT;
    let planned = plan(&user, 0, &[flag, runtime, "--accept-unenforced-limits"]).await;
    assert_eq!(says(&planned), [("data.says", "\"inline\"")], "{planned:#}");
    ask_on_a_terminal(&user);
    assert_eq!(versions().await, before, "nothing is written");
    let left = std::fs::read_dir(Path::new(&cache(&user)).join("containers/run")).unwrap().count();
    assert_eq!(left, 0, "no container is left");
}

/// `transom rollout start`, which pulls an image, shows the plan and asks: no line about the image is left above them.
fn ask_on_a_terminal(user: &User) {
    let [flag, runtime] = CHROOT;
    let (cache, kubeconfig) = (user.home.root().join("empty-cache"), user.home.data().join("kubeconfig"));
    let mut terminal = Terminal::new();
    terminal.type_line("n");
    let mut command = transom(&["rollout", "start", "things", flag, runtime, "--accept-unenforced-limits"]);
    command.arg("--cache-dir").arg(&cache).arg("--kubeconfig").arg(kubeconfig);
    command.stdin(terminal.output()).stdout(terminal.output()).stderr(terminal.output());
    let program = command.spawn().expect("the binary runs");
    drop(command);
    let (code, written) = tokio::task::block_in_place(|| terminal.read(program));
    assert_eq!(code, Some(1), "{written}");
    assert!(written.contains("\r\x1b[Kpulling "), "{written:?}");
    let left = screen(&written);
    assert!(!left.iter().any(|line| line.contains("pulling")), "{left:#?}");
    assert!(left.iter().any(|line| line.starts_with("Start? [y/N] ")), "{left:#?}");
}

/// A package whose program does not start leaves the plan unknown, with the reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_why_a_package_cannot_be_called() {
    let registry = Registry::start().await;
    let (user, _) = with_packaged(&registry).await;
    rollout(&user, &["pin", "things"]).await;
    let crash = registry.push_script("function-crash", "echo out of order >&2; exit 3");
    user.apply(&install_function("function-crash", &registry.at("acme/function-crash:v1"))).await;
    user.until(FUNCTION_REVISION, &revision_of("function-crash", &crash), |r| {
        message_of_runtime(r).contains("out of order")
    })
    .await;
    compose(&user, json!({"step": "crash", "functionRef": {"name": "function-crash"}})).await;
    let planned = plan(&user, 0, &CHROOT).await;
    let why = planned["resources"][0]["unknown"].as_str().unwrap();
    assert!(why.contains("exit code 3") && why.contains("out of order"), "{why}");
}
