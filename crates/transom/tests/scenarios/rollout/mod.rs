//! Controlled rollout of functions: every sentence of Crossplane's design "Controlled Rollout of Composition Functions" on the
//! real binary. The revisions of a function are servers of the test whose answers tell them apart.

mod changing;
mod choosing;
mod example;
mod faults;
mod package_manager;
mod upgrade;

pub(super) use changing::{Changing, count};

use crate::scenarios::user::*;
use serde_json::{Value, json};
use std::net::SocketAddr;
use transom_function::testing::{Scripted, serve};
use transom_function::{Ready, Resource, RunFunctionRequest, RunFunctionResponse};
use transom_object::meta;
use transom_packages::Digest;
use transom_packages::names::revision_name;

pub(super) const LOCK: &str = "pkg.crossplane.io/v1beta1/Lock";
/// The function of these tests.
pub(super) const NAME: &str = "function-words";
const PACKAGE: &str = "registry.example.org/team/function-words";

/// An answer that says a word in the status and in a composed ConfigMap.
pub(super) fn answer(mut request: RunFunctionRequest, word: &str) -> RunFunctionResponse {
    let mut response = request.start_response();
    response.meta.get_or_insert_default().ttl = None;
    response.composite().set("status.coolerField", word).expect("a field");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": {"says": word}});
    response.set_composed("map", Resource::new(map).expect("an object").with_ready(Ready::True));
    response
}

/// A server that says a word.
pub(super) async fn saying(word: &'static str) -> SocketAddr {
    serve(Scripted(move |request| Ok(answer(request, word)))).await
}

/// A Function in a version that a server runs, with labels and more fields of its spec.
pub(super) fn version(tag: &str, address: SocketAddr, labels: &str, more: &str) -> String {
    format!(
        "apiVersion: pkg.crossplane.io/v1\nkind: Function\n\
         metadata: {{name: {NAME}, labels: {{{labels}}}, annotations: {{transom.io/endpoint: '{address}'}}}}\n\
         spec: {{package: '{PACKAGE}:{tag}', revisionHistoryLimit: 4{more}}}\n"
    )
}

/// The name of the revision of a version at an address.
pub(super) fn revision(tag: &str, address: SocketAddr) -> String {
    revision_name(NAME, &Digest::of(format!("{PACKAGE}:{tag}\n{address}").as_bytes()))
}

/// Waits until a revision of the function is called by those that do not choose.
pub(super) async fn until_current(user: &User, revision: &str) {
    let is_current = |o: &Value| {
        o["status"]["currentRevision"] == revision
            && status_of(o, "Healthy") == "True"
            && status_of(o, "Installed") == "True"
    };
    user.until(FUNCTION, NAME, is_current).await;
}

/// The numbers and states of the function's revisions.
pub(super) async fn states(user: &User) -> Vec<(i64, String)> {
    let of_function = |r: &&Value| meta::label(r, "pkg.crossplane.io/package") == Some(NAME);
    let state = |r: &Value| {
        let text = r["spec"]["desiredState"].as_str().unwrap_or_default().to_owned();
        (r["spec"]["revision"].as_i64().unwrap_or_default(), text)
    };
    let mut all: Vec<_> = user.list(FUNCTION_REVISION).await.iter().filter(of_function).map(state).collect();
    all.sort();
    all
}

pub(super) fn in_order(states: &[&str]) -> Vec<(i64, String)> {
    (1..).zip(states.iter().map(|state| (*state).to_owned())).collect()
}

/// Waits until the revisions of the function are in these states, from the first to the last.
pub(super) async fn until_states(user: &User, wanted: &[&str]) {
    let is_so =
        |all: &[(i64, String)]| all.iter().map(|(_, state)| state.as_str()).eq(wanted.iter().copied());
    let started = std::time::Instant::now();
    loop {
        let all = states(user).await;
        if is_so(&all) {
            return;
        }
        assert!(started.elapsed() < transom_testkit::process::WAIT_LIMIT, "{all:?} are not {wanted:?}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// A plane with things.
pub(super) async fn with_things(flags: &[&str]) -> User {
    let user = User::without_functions(flags, &[]).await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.until_true(XRD, "things.example.org", "Established").await;
    user
}

/// A Composition for things whose only step calls the function as these fields say.
pub(super) fn calling(name: &str, labels: &Value, fields: &Value) -> String {
    let mut step = json!({"step": "words", "functionRef": {"name": NAME}});
    for (field, value) in fields.as_object().expect("fields") {
        step[field] = value.clone();
        if field == "function" {
            step.as_object_mut().expect("a step").remove("functionRef");
        }
    }
    let mut composition = documents(&composition(name, "Thing", labels, &[])).remove(0);
    composition["spec"]["pipeline"] = json!([step]);
    composition.to_string()
}

pub(super) fn by_label(channel: &str) -> Value {
    json!({"functionRevisionSelector": {"matchLabels": {"release-channel": channel}}})
}

/// A thing that a Composition composes.
pub(super) fn thing(name: &str, composition: &str) -> String {
    object("Thing", name, &format!("crossplane: {{compositionRef: {{name: {composition}}}}}"))
}

/// Has a thing composed anew.
pub(super) async fn poke(user: &User, name: &str) {
    let nonce = format!("{:?}", std::time::Instant::now());
    user.patch(THING, name, json!({"metadata": {"annotations": {"poke": nonce}}})).await;
}

pub(super) async fn until_says(user: &User, name: &str, word: &str) -> Value {
    user.until(THING, name, |o| o["status"]["coolerField"] == word && status_of(o, "Synced") == "True").await
}

/// The FunctionRevisions that a thing says it was composed by.
pub(super) fn composed_by(thing: &Value) -> Vec<&str> {
    let references = thing["status"]["watchedResourceRefs"].as_array();
    let revisions = references.into_iter().flatten().filter(|r| r["kind"] == "FunctionRevision");
    revisions.filter_map(|r| r["name"].as_str()).collect()
}
