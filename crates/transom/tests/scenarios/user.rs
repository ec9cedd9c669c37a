//! A user of a plane of its own, with the built-in functions installed.

pub(super) use super::manifests::*;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use transom_engine::{Cluster, DeleteOptions};
use transom_function::testing::{Scripted, serve};
use transom_function::{Error, RunFunctionRequest, RunFunctionResponse};
use transom_object::{GroupVersion, GroupVersionKind, meta};
use transom_testkit::process::{Client, Home, Plane, WAIT_LIMIT, up};

pub(super) const XRD: &str = "apiextensions.crossplane.io/v1/CompositeResourceDefinition";
pub(super) const MAP: &str = "v1/ConfigMap";
pub(super) const CRD: &str = "apiextensions.k8s.io/v1/CustomResourceDefinition";
pub(super) const COMPOSITION: &str = "apiextensions.crossplane.io/v1/Composition";
pub(super) const REVISION: &str = "apiextensions.crossplane.io/v1/CompositionRevision";
pub(super) const FUNCTION: &str = "pkg.crossplane.io/v1/Function";
pub(super) const FUNCTION_REVISION: &str = "pkg.crossplane.io/v1/FunctionRevision";
pub(super) const THING: &str = "example.org/v1/Thing";
pub(super) const SECRET: &str = "v1/Secret";
pub(super) const NOP: &str = "nop.crossplane.io/v1alpha1/NopResource";

const FUNCTIONS: [&str; 4] =
    ["function-dummy", "function-auto-ready", "function-go-templating", "function-patch-and-transform"];
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(5);

pub(super) struct User {
    pub home: Home,
    pub plane: Plane,
    pub cluster: Cluster,
}

impl User {
    pub(super) async fn new() -> Self {
        Self::with(&[]).await
    }

    /// A user of a plane with more flags than it takes to have controllers.
    pub(super) async fn with(flags: &[&str]) -> Self {
        let user = Self::without_functions(flags, &[]).await;
        for name in FUNCTIONS {
            user.apply(&function(name, "")).await;
        }
        user
    }

    /// A user of a plane with these flags and variables, and without any function.
    pub(super) async fn without_functions(flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let home = Home::new();
        let (plane, cluster) = start(&home, flags, variables).await;
        Self { home, plane, cluster }
    }

    /// A connection for requests that the cluster has no method for.
    pub(super) async fn client(&self) -> Client {
        self.plane.client().await
    }

    /// Ends the plane without warning and starts it again with these flags.
    pub(super) async fn restart(&mut self, flags: &[&str]) {
        self.plane.kill();
        (self.plane, self.cluster) = start(&self.home, flags, &[]).await;
    }

    /// What the plane counts under a name, summed up over the labels that contain some words.
    pub(super) async fn counted(&self, name: &str, labels: &str) -> u64 {
        self.sum(name, |series| series.contains(labels)).await
    }

    /// How many calls of a function ended with another code than OK.
    pub(super) async fn failed_calls(&self, function: &str) -> u64 {
        let is_failed = |series: &str| series.contains(function) && !series.contains("grpc_code=\"OK\"");
        self.sum("function_run_function_response_total", is_failed).await
    }

    /// The sum of some series of a metric, all of one moment.
    async fn sum(&self, name: &str, wanted: impl Fn(&str) -> bool) -> u64 {
        let metrics = self.plane.client().await.get("/metrics").await.expect("metrics").text();
        let series = metrics.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
        let values = series.filter(|s| wanted(s)).filter_map(|s| s.rsplit_once(' '));
        values.filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
    }

    /// A function of the test, which the plane calls over the network. It starts with what earlier steps want, and its
    /// answers hold until something changes.
    pub(super) async fn function(
        &self,
        name: &str,
        script: impl Fn(&RunFunctionRequest, &mut RunFunctionResponse) -> Result<(), Error>
        + Send
        + Sync
        + 'static,
    ) {
        let address = serve(Scripted(move |mut request: RunFunctionRequest| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            script(&request, &mut response).map(|()| response)
        }))
        .await;
        self.apply(&function(name, &format!("transom.io/endpoint: '{address}'"))).await;
    }

    /// Keeps the plane from deciding about the revisions of a function: a test does.
    pub(super) async fn pause_function(&self, name: &str) {
        let paused = serde_json::json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}});
        self.until_true(FUNCTION, name, "Healthy").await;
        self.patch(FUNCTION, name, paused).await;
        self.until(FUNCTION, name, |o| reason_of(o, "Synced") == "ReconcilePaused").await;
    }

    /// A revision of a function that the plane does not reconcile.
    pub(super) async fn function_revision(&self, name: &str, labels: &str, state: &str, number: i64) {
        let text = format!(
            "apiVersion: pkg.crossplane.io/v1\nkind: FunctionRevision\nmetadata:\n  name: {name}\n  labels: {{{labels}}}\n  \
             annotations: {{crossplane.io/paused: 'true'}}\nspec: {{desiredState: {state}, image: example.org/f:v1, \
             revision: {number}}}\n"
        );
        self.apply(&text).await;
        self.until(FUNCTION_REVISION, name, |o| reason_of(o, "Synced") == "ReconcilePaused").await;
    }

    /// Says what a revision of a function can do.
    pub(super) async fn set_capabilities(&self, revision: &str, capabilities: Value) {
        let mut object = self.get(FUNCTION_REVISION, revision).await.expect("it is there");
        object["status"]["capabilities"] = capabilities;
        self.cluster.update_status(&object, "kubectl").await.expect("the status is written");
    }

    /// Applies documents; a kind may take a moment to be served.
    pub(super) async fn apply(&self, yaml: &str) {
        for object in documents(yaml) {
            let started = Instant::now();
            while let Err(e) = self.cluster.apply(&object, "kubectl").await {
                let waiting = (e.is_not_found() || e.is_unknown_kind()) && started.elapsed() < WAIT_LIMIT;
                assert!(waiting, "{} {}: {e}", meta::kind(&object), meta::name(&object));
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }

    /// Why something cannot be created.
    pub(super) async fn refusal(&self, yaml: &str) -> String {
        let created = self.cluster.create(&documents(yaml)[0], "kubectl").await;
        created.expect_err("it is refused").to_string()
    }

    /// Why something cannot be applied.
    pub(super) async fn refused_change(&self, yaml: &str) -> String {
        let applied = self.cluster.apply(&documents(yaml)[0], "kubectl").await;
        applied.expect_err("it is refused").to_string()
    }

    /// An object, by `apiVersion/kind` and `name` or `namespace/name`.
    pub(super) async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        self.cluster.get(&gvk(kind), namespace, name).await.ok().flatten()
    }

    pub(super) async fn list(&self, kind: &str) -> Vec<Value> {
        self.cluster.list(&gvk(kind), "", &BTreeMap::new()).await.unwrap_or_default()
    }

    /// The composed resources of a kind that belong to the composite resource with this name, or its descendants.
    pub(super) async fn composed(&self, kind: &str, composite: &str) -> Vec<Value> {
        let mut all = self.list(kind).await;
        all.retain(|o| meta::label(o, "crossplane.io/composite") == Some(composite));
        all
    }

    pub(super) async fn until(&self, kind: &str, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let object = self.get(kind, name).await.unwrap_or_default();
            if !object.is_null() && wanted(&object) {
                return object;
            }
            if started.elapsed() > WAIT_LIMIT {
                let events = self.events_of(name.rsplit('/').next().unwrap_or(name)).await;
                let log = self.home.log();
                panic!("{kind} {name} does not look as wanted: {object:#}\n{events:#?}\n{log}");
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits for any object of a kind that looks as wanted.
    pub(super) async fn until_any(&self, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let all = self.list(kind).await;
            if let Some(object) = all.iter().find(|object| wanted(object)) {
                return object.clone();
            }
            assert!(started.elapsed() < WAIT_LIMIT, "no {kind} looks as wanted: {all:#?}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    pub(super) async fn until_true(&self, kind: &str, name: &str, condition: &str) -> Value {
        self.until(kind, name, |o| status_of(o, condition) == "True").await
    }

    pub(super) async fn until_ready(&self, kind: &str, name: &str) -> Value {
        self.until(kind, name, |o| status_of(o, "Ready") == "True" && status_of(o, "Synced") == "True").await
    }

    pub(super) async fn until_gone(&self, kind: &str, name: &str) {
        let started = Instant::now();
        while let Some(object) = self.get(kind, name).await {
            assert!(started.elapsed() < WAIT_LIMIT, "{kind} {name} does not go: {object:#}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    pub(super) async fn until_none(&self, kind: &str, composite: &str) {
        let started = Instant::now();
        while !self.composed(kind, composite).await.is_empty() {
            assert!(started.elapsed() < WAIT_LIMIT, "what {composite} composed does not go");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    pub(super) async fn patch(&self, kind: &str, name: &str, patch: Value) -> Value {
        let object = self.get(kind, name).await.expect("it is there");
        self.cluster.merge_patch(&object, &patch, "kubectl-edit").await.expect("it can be patched")
    }

    pub(super) async fn delete(&self, kind: &str, name: &str, propagation: Option<&str>) {
        self.try_delete(kind, name, propagation).await.expect("it can be deleted");
    }

    pub(super) async fn try_delete(
        &self,
        kind: &str,
        name: &str,
        propagation: Option<&str>,
    ) -> Result<(), String> {
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let deleted =
            self.cluster.delete(&gvk(kind), namespace, name, DeleteOptions { propagation, uid: None }).await;
        deleted.map_err(|e| e.to_string())
    }

    /// Type, reason and message of the events about an object.
    pub(super) async fn events_of(&self, name: &str) -> Vec<String> {
        let events = self.list("v1/Event").await;
        let about = events.iter().filter(|e| e["involvedObject"]["name"] == name);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        about.map(|e| [&e["type"], &e["reason"], &e["message"]].map(text).join(" ")).collect()
    }

    /// Waits for an event about an object.
    pub(super) async fn until_event(&self, name: &str, words: &str) {
        let started = Instant::now();
        loop {
            let events = self.events_of(name).await;
            if events.iter().any(|event| event.contains(words)) {
                return;
            }
            assert!(started.elapsed() < WAIT_LIMIT, "no event about {name}: {words}, but {events:#?}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits until the controllers have nothing left to do at the moment.
    pub(super) async fn until_idle(&self) {
        self.plane.until_idle().await;
    }
}

async fn start(home: &Home, flags: &[&str], variables: &[(&str, &str)]) -> (Plane, Cluster) {
    let flags = [&["--with-controllers"], flags].concat();
    let mut command = up(home, &flags);
    command.envs(variables.iter().copied());
    let plane = tokio::task::block_in_place(|| Plane::launch(home, &mut command));
    (plane.expect("the plane starts"), connect(home).await)
}

/// A client of the plane of a home.
pub(super) async fn connect(home: &Home) -> Cluster {
    let config = Kubeconfig::read_from(home.data().join("kubeconfig")).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    let client = kube::Client::try_from(config.expect("a usable kubeconfig")).expect("a client");
    Cluster::new(client)
}

impl Drop for User {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.home.assert_no_panic();
        }
    }
}

pub(super) fn documents(yaml: &str) -> Vec<Value> {
    let documents = transom_object::yaml::read_documents(yaml).expect("it is YAML");
    documents.into_iter().map(|d| d.value).filter(|v| !v.is_null()).collect()
}

pub(super) fn gvk(kind: &str) -> GroupVersionKind {
    let (version, kind) = kind.rsplit_once('/').expect("apiVersion/kind");
    GroupVersion::parse(version).expect("an apiVersion").with_kind(kind)
}

pub(super) fn reason_of<'a>(object: &'a Value, kind: &str) -> &'a str {
    condition(object, kind)["reason"].as_str().unwrap_or_default()
}

pub(super) fn message_of<'a>(object: &'a Value, kind: &str) -> &'a str {
    condition(object, kind)["message"].as_str().unwrap_or_default()
}
