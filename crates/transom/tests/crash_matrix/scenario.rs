//! What users do with composite resources and with packages, step by step.

use crate::platform::{self, documents};
use serde_json::Value;
use transom_testkit::manifests::status_of;
use transom_testkit::process::{Client, Gone};

/// The manifests that exist at the start, and the steps.
pub(crate) struct Scenario {
    pub name: &'static str,
    pub initial: String,
    pub steps: Vec<Step>,
    /// The paths of what is compared beside the kinds that are compared in every scenario.
    pub compared: &'static [&'static str],
}

/// One action of a user. Repeating it changes nothing.
#[derive(Clone)]
pub(crate) struct Step {
    pub name: &'static str,
    pub action: Action,
    /// The path of the object whose status shows that it is done.
    pub subject: String,
    pub done: Done,
    /// The definitions and Compositions that may be deleted; `None` when it may be any.
    pub removes: Option<&'static [&'static str]>,
}

/// How the subject of a step looks when the step is done.
#[derive(Clone)]
pub(crate) enum Done {
    /// A composite resource or claim is ready and has this size in its status.
    Size(&'static str),
    /// A package is healthy at this image.
    Installed(String),
    Gone,
}

#[derive(Clone)]
pub(crate) enum Action {
    Apply(Vec<Value>),
    Delete { path: String, foreground: bool },
}

pub(crate) fn apply(name: &'static str, yaml: &str, (subject, wanted): (&str, &'static str)) -> Step {
    let (action, subject) = (Action::Apply(documents(yaml)), subject.to_owned());
    Step { name, action, subject, done: Done::Size(wanted), removes: None }
}

pub(crate) fn delete(name: &'static str, subject: &str, foreground: bool) -> Step {
    let action = Action::Delete { path: subject.to_owned(), foreground };
    Step { name, action, subject: subject.to_owned(), done: Done::Gone, removes: None }
}

const CLAIM: &str = "/apis/example.org/v1/namespaces/default/stores/one";
const BOUND: &str = "/apis/example.org/v1/xstores/mine";
const ROOM: &str = "/apis/example.org/v1/namespaces/default/rooms/one";
const HALL: &str = "/apis/example.org/v1/halls/one";
const HALLS: &str = "/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions/halls.example.org";

fn claim(spec: &str) -> String {
    format!(
        "apiVersion: example.org/v1\nkind: Store\nmetadata: {{name: one, namespace: default}}\n\
         spec: {{{spec}, writeConnectionSecretToRef: {{name: mine}}}}\n"
    )
}

fn room(size: u8) -> String {
    format!(
        "apiVersion: example.org/v1\nkind: Room\nmetadata: {{name: one, namespace: default}}\nspec: {{size: {size}}}\n"
    )
}

/// Scenarios with composite resources alone.
pub(crate) fn composing() -> Vec<Scenario> {
    let initial = platform::initial();
    let bound = "resourceRef: {apiVersion: example.org/v1, kind: XStore, name: mine}";
    let unbound = "apiVersion: example.org/v1\nkind: XStore\nmetadata: {name: mine}\nspec: {size: 1}\n";
    let halls = [
        platform::definition("Hall", "halls", "Cluster", ""),
        platform::composition(
            "Hall",
            "halls",
            "apiVersion: example.org/v1\nkind: Hall\nstatus: {size: tall}",
        ),
        "apiVersion: example.org/v1\nkind: Hall\nmetadata: {name: one}\nspec: {size: 1}\n".to_owned(),
    ];
    vec![
        Scenario {
            name: "claim",
            initial: initial.clone(),
            steps: vec![
                apply("create", &claim("size: 2"), (CLAIM, "a-2")),
                apply("grow", &claim("size: 3"), (CLAIM, "a-3")),
                apply("shrink", &claim("size: 1"), (CLAIM, "a-1")),
                apply("switch revision", &platform::stores("b"), (CLAIM, "b-1")),
                delete("delete", CLAIM, false),
            ],
            compared: &[],
        },
        Scenario {
            name: "bound",
            initial: initial.clone(),
            steps: vec![
                apply("create", unbound, (BOUND, "a-1")),
                apply(
                    "bind",
                    &claim(&format!("size: 2, compositeDeletePolicy: Foreground, {bound}")),
                    (CLAIM, "a-2"),
                ),
                delete("delete", CLAIM, false),
            ],
            compared: &[],
        },
        Scenario {
            name: "namespaced",
            initial: initial.clone(),
            steps: vec![
                apply("create", &room(2), (ROOM, "a-2")),
                apply("grow", &room(3), (ROOM, "a-3")),
                apply("shrink", &room(1), (ROOM, "a-1")),
                apply("switch revision", &platform::rooms("b"), (ROOM, "b-1")),
                delete("delete", ROOM, true),
            ],
            compared: &[],
        },
        Scenario {
            name: "definition",
            initial,
            steps: vec![
                apply("define", &halls.join("\n---\n"), (HALL, "tall")),
                delete("undefine", HALLS, false),
            ],
            compared: &[],
        },
    ]
}

impl Step {
    /// Carries it out; repeats requests for kinds that are not served yet.
    pub(crate) async fn perform(&self, client: &Client) -> Result<(), Gone> {
        match &self.action {
            Action::Delete { path, foreground } => {
                let policy = if *foreground { "Foreground" } else { "Background" };
                let request =
                    client.request(http::Method::DELETE, &format!("{path}?propagationPolicy={policy}"));
                let reply = client.send(request, "").await?;
                assert!(reply.ok() || reply.status == 404, "{path}: {}", reply.text());
            }
            Action::Apply(objects) => {
                for object in objects {
                    apply_one(client, object).await?;
                }
            }
        }
        Ok(())
    }

    /// Whether the object shows that it is done.
    pub(crate) async fn looks_done(&self, client: &Client) -> Result<bool, Gone> {
        let reply = client.get(&self.subject).await?;
        let object = reply.json();
        let is_true = |kind: &str| status_of(&object, kind) == "True";
        Ok(match &self.done {
            Done::Gone => reply.status == 404,
            Done::Size(size) => {
                reply.ok() && object["status"]["size"] == *size && is_true("Ready") && is_true("Synced")
            }
            Done::Installed(image) => {
                let current = &object["status"]["currentIdentifier"];
                reply.ok() && current == image && is_true("Installed") && is_true("Healthy")
            }
        })
    }
}

/// Applies an object as kubectl does on the server's side.
pub(crate) async fn apply_one(client: &Client, object: &Value) -> Result<(), Gone> {
    let path = format!("{}?fieldManager=kubectl&force=true", platform::path(object));
    let started = std::time::Instant::now();
    loop {
        let reply = client.patch(&path, "application/apply-patch+yaml", object.to_string()).await?;
        if reply.ok() {
            return Ok(());
        }
        let waiting = reply.status == 404 && started.elapsed() < transom_testkit::process::WAIT_LIMIT;
        assert!(waiting, "{path}: {}", reply.text());
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
