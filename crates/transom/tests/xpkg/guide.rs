//! The commands of docs/packages.md, from the files of a package to a place without a network, as a new user types them.

use super::Folder;
use super::initial::{CONFIGURATIONS, package, start, until_healthy};
use serde_json::Value;
use std::path::Path;
use transom_oci::testing::Server;
use transom_testkit::process::{Client, Home, wait_until};

/// The registry of the page.
const REGISTRY: &str = "127.0.0.1:5000";

/// The lines of the commands, with another registry and without comments.
fn lines(host: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/packages.md")).expect("the page");
    let section = page.split("\n## From nothing to an air gap\n").nth(1).expect("the section");
    let block = section.split("```").nth(1).expect("its commands");
    let without_comment = |line: &str| line.split("  #").next().unwrap_or_default().trim_end().to_owned();
    block.replace(REGISTRY, host).lines().map(without_comment).filter(|line| !line.is_empty()).collect()
}

fn example() -> Folder {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = Folder::new();
    for name in ["crossplane.yaml", "definition.yaml", "composition.yaml", "examples/note.yaml"] {
        let name = format!("examples/package/{name}");
        folder.write(&name, &std::fs::read_to_string(root.join(&name)).expect("the example"));
    }
    folder
}

/// The tag of the current image, once it is installed or cannot be.
async fn until_settled(client: &Client, name: &str) -> (String, bool) {
    let settled = |object: &Value| -> Option<(String, bool)> {
        let wanted = object["spec"]["package"].as_str()?.to_owned();
        let generation = &object["metadata"]["generation"];
        let conditions = object.pointer("/status/conditions")?.as_array()?;
        let installed = conditions.iter().find(|c| c["type"] == "Installed")?;
        let is_current = installed["observedGeneration"] == *generation;
        let tag = wanted.rsplit(':').next()?.to_owned();
        is_current.then(|| (tag, installed["status"] == "True"))
    };
    let mut found = None;
    wait_until(&format!("{name} is settled"), async || {
        found = package(client, CONFIGURATIONS, name).await.as_ref().and_then(settled);
        found.is_some()
    })
    .await;
    found.expect("it is settled")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_packages_leads_from_files_to_an_air_gap() {
    let (server, folder, home) = (Server::start().await, example(), Home::new());
    let plane = start(&home, &[]);
    let client = plane.client().await;
    wait_until("Configurations are served", async || client.get(CONFIGURATIONS).await.is_ok_and(|r| r.ok()))
        .await;
    let kubeconfig = home.data().join("kubeconfig");
    let run = |line: &str| {
        let mut command = folder.command(&line.split_whitespace().skip(1).collect::<Vec<_>>());
        let output = command.env("KUBECONFIG", &kubeconfig).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let (mut settled, mut flags) = (Vec::new(), Vec::new());
    let lines = lines(&server.host);
    let mut lines = lines.iter().map(String::as_str);
    while let Some(line) = lines.next() {
        if line.starts_with("kubectl apply -f - <<EOF") {
            let manifest: Vec<&str> = lines.by_ref().take_while(|line| *line != "EOF").collect();
            let object = transom_object::yaml::read(&manifest.join("\n")).expect("YAML");
            assert!(client.post(CONFIGURATIONS, &object).await.expect("an answer").ok());
        } else if line.starts_with("kubectl wait configuration/notes --for=condition=Healthy") {
            until_healthy(&client, "notes").await;
        } else if line.starts_with("transom xpkg plan ") {
            let shown = run(line);
            assert!(shown.contains("v1.1.0"), "{shown}");
        } else if line.starts_with("transom xpkg update ") {
            run(line);
            settled.push(until_settled(&client, "notes").await);
        } else if line.starts_with("transom xpkg ") {
            run(line);
        } else if let Some(rest) = line.strip_prefix("transom up ") {
            flags = rest.split_whitespace().map(str::to_owned).collect();
        } else {
            assert!(line.starts_with("kubectl get "), "the test does not know what to do with {line:?}");
        }
    }
    let expected = [("v1.1.0", true), ("v1.0.0", true), ("v9.0.0", false)];
    assert_eq!(settled, expected.map(|(tag, installed)| (tag.to_owned(), installed)));
    // Why the last one is not installed is read from the condition.
    let notes = package(&client, CONFIGURATIONS, "notes").await.expect("a Configuration");
    assert!(notes["status"].to_string().contains("acme/notes:v9.0.0"), "{notes:#}");
    // The same without the registry, on another plane.
    drop((plane, server));
    let bundle = flags.iter().position(|flag| flag == "--packages").and_then(|at| flags.get(at + 1));
    let bundle = folder.path(bundle.expect("a bundle")).display().to_string();
    let away = Home::new();
    let plane = start(&away, &["--packages", &bundle]);
    until_healthy(&plane.client().await, "acme-notes").await;
}
