//! The commands of docs/packages.md, from the files of a package to a place without a network, as a new user types them. What
//! kubectl would do is asked of the API: not every machine has it.

use super::Folder;
use super::initial::{CONFIGURATIONS, package, start, until_healthy};
use crate::pages;
use serde_json::Value;
use std::path::Path;
use transom_oci::testing::Server;
use transom_testkit::process::{Client, Home, Plane, wait_until};

/// The registry of the page.
const REGISTRY: &str = "127.0.0.1:5000";

/// The lines of the commands, with another registry and without comments.
fn lines(host: &str) -> Vec<String> {
    let blocks = pages::blocks("packages.md").into_iter();
    let texts = blocks.filter(|block| block.section == "From nothing to an air gap").map(|block| block.text);
    pages::commands(&texts.collect::<String>().replace(REGISTRY, host))
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

/// What a user has, and what was seen so far.
struct Story {
    folder: Folder,
    /// The registry, until the plane of the bundle starts.
    server: Option<Server>,
    home: Home,
    plane: Plane,
    /// The tags that the platform was set to, and whether they were installed.
    settled: Vec<(String, bool)>,
    /// What `kubectl get` printed.
    printed: Vec<String>,
}

impl Story {
    async fn begin(server: Server) -> Self {
        let home = Home::new();
        let plane = start(&home, &[]);
        let story = Self {
            folder: example(),
            server: Some(server),
            home,
            plane,
            settled: Vec::new(),
            printed: Vec::new(),
        };
        story.until_served().await;
        story
    }

    async fn until_served(&self) {
        let client = self.plane.client().await;
        wait_until("Configurations are served", async || {
            client.get(CONFIGURATIONS).await.is_ok_and(|reply| reply.ok())
        })
        .await;
    }

    /// A command of the binary. It succeeds.
    fn transom(&self, line: &str) -> String {
        let mut command = self.folder.command(&line.split_whitespace().skip(1).collect::<Vec<_>>());
        let output = command.env("KUBECONFIG", self.home.data().join("kubeconfig")).output();
        let output = output.expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// `transom up` with these flags, on another port, while there is no registry any longer.
    async fn up(&mut self, flags: &str) {
        drop(self.server.take());
        self.home = Home::new();
        let mut flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
        let listen = flags.iter().position(|flag| flag == "--listen").expect("an address");
        flags.drain(listen..listen + 2);
        if let Some(source) = flags.iter().position(|flag| flag == "--package-source") {
            flags[source + 1] = self.folder.path(&flags[source + 1]).display().to_string();
        }
        self.plane = start(&self.home, &flags.iter().map(String::as_str).collect::<Vec<_>>());
        self.until_served().await;
    }

    /// `kubectl get KINDS`: the names. `kubectl get KIND NAME -o jsonpath=…`: the message of the condition `Installed`.
    async fn get(&self, words: &[&str]) -> String {
        let client = self.plane.client().await;
        if let [_, name, "-o", path] = words {
            assert!(path.contains(r#"?(@.type=="Installed")].message"#), "{path}");
            let object = package(&client, CONFIGURATIONS, name).await.expect("it is there");
            let conditions = object["status"]["conditions"].as_array().expect("conditions").clone();
            let installed = conditions.iter().find(|c| c["type"] == "Installed").expect("Installed");
            return installed["message"].as_str().unwrap_or_default().to_owned();
        }
        let mut names = Vec::new();
        for kind in words[0].split(',') {
            let path = match kind {
                "xrd" => "/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions".to_owned(),
                kind => format!("/apis/pkg.crossplane.io/v1/{kind}"),
            };
            let list = client.get(&path).await.expect("an answer").json();
            let items = list["items"].as_array().expect("a list").clone();
            names.extend(items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()));
        }
        names.join(" ")
    }

    /// Does what a line says; `document` is what stands between `<<EOF` and `EOF`.
    async fn act(&mut self, line: &str, document: &str) {
        let client = self.plane.client().await;
        if let Some(file) = line.strip_prefix("cat > ") {
            self.folder.write(file.split(' ').next().expect("a file"), document);
        } else if line == "kubectl apply -f - <<EOF" {
            let object = transom_object::yaml::read(document).expect("YAML");
            assert!(client.post(CONFIGURATIONS, &object).await.expect("an answer").ok());
        } else if let Some(waited) = line.strip_prefix("kubectl wait configuration/") {
            let name = waited.strip_suffix(" --for=condition=Healthy").expect("until it is healthy");
            until_healthy(&client, name).await;
        } else if line.starts_with("transom xpkg plan ") {
            let shown = self.transom(line);
            assert!(shown.contains("v1.1.0"), "{shown}");
        } else if line.starts_with("transom xpkg update ") {
            self.transom(line);
            self.settled.push(until_settled(&client, "platform").await);
        } else if line.starts_with("transom xpkg ") {
            self.transom(line);
        } else if let Some(flags) = line.strip_prefix("transom up ") {
            self.up(flags).await;
        } else if let Some(words) = line.strip_prefix("kubectl get ") {
            let printed = self.get(&words.split(' ').collect::<Vec<_>>()).await;
            self.printed.push(printed);
        } else {
            // `cat` makes the folder as well.
            assert!(line.starts_with("mkdir "), "the test does not know what to do with {line:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_packages_leads_from_files_to_an_air_gap() {
    let server = Server::start().await;
    let lines = lines(&server.host);
    let mut story = Story::begin(server).await;
    let mut rest = lines.iter().map(String::as_str);
    while let Some(line) = rest.next() {
        let document: Vec<&str> = match line.ends_with("<<EOF") {
            true => rest.by_ref().take_while(|line| *line != "EOF").collect(),
            false => Vec::new(),
        };
        story.act(line, &document.join("\n")).await;
    }
    assert!(story.server.is_none(), "the second half needs no registry");
    let once = [("v1.1.0", true), ("v1.0.0", true), ("v9.0.0", false)];
    let twice: Vec<_> = [once, once].concat().iter().map(|(tag, done)| ((*tag).to_owned(), *done)).collect();
    assert_eq!(story.settled, twice);
    let [listed, why, listed_away, why_away] = &story.printed[..] else { panic!("{:?}", story.printed) };
    let expected = "acme-notes platform crossplane-contrib-function-patch-and-transform notes.example.org";
    assert_eq!((&**listed, &**listed_away), (expected, expected));
    assert!(why.contains("acme/platform:v9.0.0") && why.contains("has no such"), "{why}");
    assert!(why_away.contains("acme/platform:v9.0.0") && why_away.contains("platform.tar"), "{why_away}");
}
