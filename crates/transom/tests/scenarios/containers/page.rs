//! docs/container-functions.md: its shell script is a function, in both modes of a Composition, for a command and for a runner.

use super::*;
use crate::pages::{assert_all_are_known, block};
use std::process::{Child, Output, Stdio};
use transom_oci::testing::images::image as image_of;
use transom_testkit::process::Home;

const PAGE: &str = "container-functions.md";
const SCRIPT: &str = "#!/bin/sh";
const STEP: &str = "apiVersion: apiextensions.crossplane.io/v1";
const FIELD: &str = "spec:";
const COMMANDS: &str = "transom xfn start --address unix:/run/xfn.sock";
const IMAGE: &str = "registry.example.org/acme/size:v1";
const DOCUMENT: &str = "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: FunctionIO\nobserved:\n  composite:\n    \
    resource: {apiVersion: example.org/v1, kind: Thing,\n      spec: {\n        size: 3\n      }}\n";

#[test]
fn every_block_about_container_functions_is_run_or_there_is_a_reason() {
    let not_run = [
        (
            "kubectl create namespace crossplane-system   # unless it is there",
            "it needs kubectl; scenarios/packages tests pull secrets",
        ),
        (
            "      container:",
            "it is a part of a step; scenarios/containers.rs and conformance/xfn pull with Secrets",
        ),
        ("  - step: size", "it needs a server with a certificate; scenarios/web_functions.rs has one"),
        (
            "apiVersion: apiextensions.crossplane.io/v1alpha1   # these two may be left out of the answer",
            "it shows fields without values; the crate xfn has tests of the document",
        ),
        (
            "apiVersion: fn.apiextensions.crossplane.io/v1alpha1",
            "it shows fields without values; the crate xfn has tests of the document",
        ),
    ];
    assert_all_are_known(PAGE, &[SCRIPT, STEP, FIELD, COMMANDS], &not_run);
}

/// A registry with the image of the page's script.
async fn registry() -> Registry {
    let registry = Registry::start().await;
    let script = tar_of_mode(0o755, &[("function.sh", b'0', block(PAGE, SCRIPT).as_bytes())]);
    let tools = ["/bin/sh", "/bin/sed", "/bin/head", "/bin/cat"].map(|path| (path, path));
    let config = json!({"config": {"Entrypoint": ["/function.sh"], "Env": ["PATH=/bin"]}}).to_string();
    registry.0.push("acme/size", "v1", &image_of(&config, &[programs(&tools), script], false));
    registry
}

/// A command in a home, with flags for what runs containers.
fn command(home: &Home, words: &[&str]) -> Command {
    let mut command = transom(words);
    command.args(CHROOT).arg("--accept-unenforced-limits").arg("--cache-dir").arg(home.root().join("cache"));
    command.current_dir(home.root()).env("DOCKER_CONFIG", home.root());
    command
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What `transom render xr.yaml composition.yaml functions.yaml` prints, by kind.
fn rendered(home: &Home, composition: &str) -> BTreeMap<String, Value> {
    std::fs::write(home.root().join("composition.yaml"), composition).expect("a file");
    let xr = object("Thing", "default/t", "size: 3");
    std::fs::write(home.root().join("xr.yaml"), xr).expect("a file");
    let functions = function("function-auto-ready", "");
    std::fs::write(home.root().join("functions.yaml"), functions).expect("a file");
    let mut command = command(home, &["render", "xr.yaml", "composition.yaml", "functions.yaml"]);
    let output = tokio::task::block_in_place(|| command.output()).expect("the binary runs");
    let all = documents(&printed(&output)).into_iter();
    all.map(|document| (document["kind"].as_str().unwrap_or_default().to_owned(), document)).collect()
}

/// A runner that is stopped at the end.
struct Runner(Child);

impl Drop for Runner {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_of_the_page_is_a_function() {
    let (registry, home) = (registry().await, Home::new());
    let image = registry.at("acme/size:v1");
    let here = |text: String| {
        assert!(text.contains(IMAGE), "{text}");
        text.replace(IMAGE, &image)
    };
    let step = here(block(PAGE, STEP));
    let expected = json!({"size": "3"});
    assert_eq!(rendered(&home, &step)["ConfigMap"]["data"], expected);
    // The field beside the templates of a Composition.
    let head = "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: things}\n";
    let all = rendered(&home, &format!("{head}{}", here(block(PAGE, FIELD))));
    assert_eq!(all["ConfigMap"]["data"], expected);
    assert!(!all.contains_key("Bucket"), "the script returns nothing but its own resource: {all:?}");

    // A runner, and a step that is run by it.
    let socket = home.root().join("xfn.sock");
    let lines = here(block(PAGE, COMMANDS)).replace("/run/xfn.sock", socket.to_str().expect("text"));
    let [start, run] = lines.lines().collect::<Vec<_>>()[..] else { panic!("{lines}") };
    let words = |line: &str| line.split(' ').skip(1).map(str::to_owned).collect::<Vec<_>>();
    let (start, run) = (words(start), words(run));
    let mut starting = command(&home, &start.iter().map(String::as_str).collect::<Vec<_>>());
    let _runner =
        Runner(starting.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs"));
    until("the runner listens", || socket.exists()).await;
    let with_runner = format!("image: {image}\n        runner: {{endpoint: 'unix:{}'}}", socket.display());
    let delegated = step.replace(&format!("image: {image}"), &with_runner);
    assert!(delegated != step);
    assert_eq!(rendered(&home, &delegated)["ConfigMap"]["data"], expected);

    std::fs::write(home.root().join("function-io.yaml"), DOCUMENT).expect("a file");
    let mut running = command(&home, &run.iter().map(String::as_str).collect::<Vec<_>>());
    let output = tokio::task::block_in_place(|| running.output()).expect("the binary runs");
    let shown = printed(&output);
    assert!(shown.contains(r#"data: {size: "3"}"#), "{shown}");
}
