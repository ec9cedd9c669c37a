//! The commands of the README work: its manifests are applied, survive `kill -9`, and are listed.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use transom_testkit::process::{Home, Plane, transom};

const APPLY: &str = "application/apply-patch+yaml";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files the README has the user apply, in its order, but for the platform, which has a test of its own.
fn applied() -> Vec<PathBuf> {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("the README");
    let commands =
        readme.lines().filter(|l| l.starts_with("kubectl apply") && !l.contains("examples/platform/"));
    commands.filter_map(|l| l.split_once("-f ").map(|(_, file)| root().join(file.trim()))).collect()
}

fn read(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).expect("a file the README names");
    transom_object::yaml::read(&text).expect("an example that is YAML")
}

/// The arguments of the command that the README renders its example with.
fn rendered() -> Vec<String> {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("the README");
    let command = readme.lines().find_map(|l| l.strip_prefix("cargo run --release -- render "));
    command.expect("the README renders an example").split_whitespace().map(str::to_owned).collect()
}

/// Why kubectl would refuse a command, as far as the command alone shows it.
fn refusal(command: &str) -> Option<&'static str> {
    let words: Vec<&str> =
        command.split_whitespace().take_while(|word| !["#", "|", ">"].contains(word)).collect();
    let ["kubectl", "get", rest @ ..] = &words[..] else { return None };
    let watches = rest.iter().any(|word| ["-w", "--watch", "--watch-only"].contains(word));
    let types = rest.iter().find(|word| !word.starts_with('-'))?;
    let several = types.contains(',') || rest.iter().filter(|word| word.contains('/')).count() > 1;
    // Categories are several types, too.
    let category = ["all", "composite", "claim", "managed", "crossplane"].contains(types);
    if types.split(',').any(|name| ["usage", "usages"].contains(&name)) {
        return Some("`usages` is the legacy kind: name the group");
    }
    (watches && (several || category)).then_some("you may only specify a single resource type")
}

#[test]
fn documented_commands_are_ones_that_kubectl_accepts() {
    let docs =
        std::fs::read_dir(root().join("docs")).expect("the documents").flatten().map(|entry| entry.path());
    let pages =
        docs.chain([root().join("README.md")]).filter(|page| page.extension().is_some_and(|e| e == "md"));
    let mut commands = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        // Commands stand on lines of their own, or in the text between backquotes.
        for command in text.split(['\n', '`']).map(str::trim).filter(|part| part.starts_with("kubectl ")) {
            assert_eq!(refusal(command), None, "{}: {command}", page.display());
            commands += 1;
        }
    }
    assert!(commands > 20, "{commands}");
    assert!(refusal("kubectl get platforms,apps --watch").is_some());
    assert!(refusal("kubectl get composite -w").is_some());
    assert!(refusal("kubectl get usages,clusterusages -A").is_some());
    assert!(refusal("kubectl get widgets -n demo --watch").is_none());
}

#[test]
fn the_readmes_example_is_rendered_in_one_command() {
    let mut command = transom(&[]);
    let output = command.arg("render").args(rendered()).current_dir(root()).output().expect("transom runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let documents = transom_object::yaml::read_documents(&text).expect("YAML");
    let kinds: Vec<&Value> = documents.iter().map(|document| &document.value["kind"]).collect();
    assert_eq!(kinds, ["App", "Deployment", "Service"]);
}

#[tokio::test]
async fn the_readmes_manifests_are_accepted_and_survive() {
    let home = Home::new();
    let mut plane = Plane::start(&home);
    let client = plane.client().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}});
    assert_eq!(client.post("/api/v1/namespaces", &namespace).await.unwrap().status, 201);
    let files = applied();
    assert!(files.len() >= 2, "the README applies a definition and an object of it");
    for file in &files {
        let object = read(file);
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = match object["kind"].as_str().unwrap() {
            "CustomResourceDefinition" => {
                format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
            }
            "Widget" => format!("/apis/example.org/v1/namespaces/demo/widgets/{name}"),
            other => panic!("{}: say here where a {other} is served", file.display()),
        };
        let reply =
            client.patch(&format!("{path}?fieldManager=readme"), APPLY, object.to_string()).await.unwrap();
        assert_eq!(reply.status, 201, "{}: {}", file.display(), reply.text());
    }
    plane.kill();
    let plane = Plane::start(&home);
    let list = plane.client().await.get("/apis/example.org/v1/widgets").await.unwrap().json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(list["items"][0]["spec"]["replicas"], 1, "defaulted by the schema");
    home.assert_no_panic();
}
