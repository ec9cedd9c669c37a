//! `transom rollout` against a plane: composite resources are pinned, planned, moved in waves and rolled back, while commands
//! fail, are killed or compete.

mod claims;
mod commands;
mod complete;
mod failing;
mod killed;

use super::user::*;
use serde_json::{Value, json};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;
use transom_testkit::process::transom;

/// Composite resources that compose a ConfigMap with what their Composition says.
const NAMESPACED: &str = "Namespaced";

/// A user with a Composition `a` of composite resources of the kind Thing, in the namespace `default`.
struct Platform {
    user: User,
}

impl Platform {
    async fn new(count: usize) -> Self {
        let user = User::new().await;
        user.apply(&definition("Thing", NAMESPACED, "")).await;
        let platform = Self { user };
        platform.say("first").await;
        for n in 0..count {
            platform.user.apply(&object("Thing", &name(n), "")).await;
        }
        for n in 0..count {
            platform.user.until_ready(THING, &name(n)).await;
        }
        platform
    }

    /// Changes the Composition; returns the name of the new revision.
    async fn say(&self, says: &str) -> String {
        self.compose(&[map(says), auto_ready()]).await
    }

    async fn compose(&self, pipeline: &[(&str, Value)]) -> String {
        self.user.apply(&composition("a", "Thing", &json!({}), pipeline)).await;
        self.newest(pipeline).await
    }

    /// The revision that has this pipeline.
    async fn newest(&self, pipeline: &[(&str, Value)]) -> String {
        let input = &pipeline[0].1;
        let has = |revision: &Value| revision.pointer("/spec/pipeline/0/input") == Some(input);
        let revision = self.user.until_any(REVISION, has).await;
        revision["metadata"]["name"].as_str().unwrap().to_owned()
    }

    /// A command of the user, from a folder and a home of its own.
    fn command(&self, arguments: &[&str]) -> (Command, TempDir) {
        command(&self.user, arguments)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let (mut command, _folder) = self.command(arguments);
        tokio::task::block_in_place(|| command.output()).expect("the binary runs")
    }

    /// What a command prints that ends with this code.
    fn text(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stdout = String::from_utf8(output.stdout).expect("text");
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {stdout}\n{stderr}\n{}",
            self.user.home.log()
        );
        stdout
    }

    /// The same as JSON.
    fn json(&self, code: i32, arguments: &[&str]) -> Value {
        let text = self.text(code, &[arguments, &["-o", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {text}"))
    }

    /// What a command says that fails.
    fn error(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
        stderr
    }

    fn background(&self, arguments: &[&str]) -> (Child, TempDir) {
        let (mut command, folder) = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        (command.spawn().expect("the binary runs"), folder)
    }

    /// What each composite resource says about its revision, without the references to what it composed.
    async fn choices(&self) -> Vec<Value> {
        let mut all = self.user.list(THING).await;
        all.sort_by_key(|xr| xr["metadata"]["name"].as_str().unwrap().to_owned());
        all.iter().map(|xr| choice(&xr["spec"]["crossplane"])).collect()
    }
}

fn command(user: &User, arguments: &[&str]) -> (Command, TempDir) {
    let folder = TempDir::new().expect("a folder");
    let mut command = transom(&[&["rollout"], arguments].concat());
    command.arg("--kubeconfig").arg(user.home.data().join("kubeconfig"));
    command
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null());
    (command, folder)
}

/// The fields that choose a revision.
fn choice(fields: &Value) -> Value {
    let fields = fields.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| name.starts_with("composition") && *name != "compositionRef");
    fields.map(|(name, value)| (name.clone(), value.clone())).collect::<serde_json::Map<_, _>>().into()
}

fn pinned(revision: &str) -> Value {
    json!({"compositionUpdatePolicy": "Manual", "compositionRevisionRef": {"name": revision}})
}

fn name(n: usize) -> String {
    format!("default/t{n:02}")
}

/// A step that composes a ConfigMap. A composite resource whose coolField is what is said cannot be composed.
fn map(says: &str) -> (&'static str, Value) {
    template(&format!(
        r#"{{{{ $spec := .observed.composite.resource.spec }}}}
{{{{ if eq (get $spec "coolField") "{says}" }}}}{{{{ fail "this is not what it should say" }}}}{{{{ end }}}}
apiVersion: v1
kind: ConfigMap
metadata:
  namespace: default
  annotations: {{ {{{{ setResourceNameAnnotation "map" }}}} }}
data: {{says: {says}}}
---
apiVersion: example.org/v1
kind: Thing
status: {{coolerField: {says}}}
"#
    ))
}
