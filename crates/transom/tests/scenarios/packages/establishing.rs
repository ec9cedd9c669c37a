//! Establishing objects: all or nothing, without a moment in which one has no owner, and gone only with its package.

use super::*;
use serde_json::json;
use std::sync::{Arc, Mutex};
use transom_object::meta;
use transom_testkit::process::wait_until;

const DEFINITIONS: &str = "/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions";
const COMPOSITIONS: &str = "/apis/apiextensions.crossplane.io/v1/compositions";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Every event of a kind, from the first state on.
struct Recorded {
    path: &'static str,
    events: Arc<Mutex<Vec<Value>>>,
}

impl Recorded {
    async fn start(user: &User, path: &'static str) -> Self {
        let mut lines =
            user.client().await.watch(&format!("{path}?watch=1&resourceVersion=0")).await.unwrap();
        let events: Arc<Mutex<Vec<Value>>> = Arc::default();
        let recorded = events.clone();
        tokio::spawn(async move {
            while let Some(event) = lines.next().await {
                recorded.lock().unwrap().push(event);
            }
        });
        let recorded = Self { path, events };
        recorded.take(user).await;
        recorded
    }

    /// The events until now.
    async fn take(&self, user: &User) -> Vec<Value> {
        let client = user.client().await;
        let listed = client.get(self.path).await.unwrap().json();
        for object in listed["items"].as_array().unwrap() {
            let version = object["metadata"]["resourceVersion"].clone();
            wait_until("the watch has reported all", async || {
                let events = self.events.lock().unwrap();
                let mut versions = events.iter().map(|event| &event["object"]["metadata"]["resourceVersion"]);
                versions.any(|seen| *seen == version)
            })
            .await;
        }
        self.events.lock().unwrap().clone()
    }
}

/// A Configuration with a few definitions and Compositions, labelled with their version, and more documents.
fn pieces(registry: &Registry, version: &str, more: &[String]) -> String {
    let kinds = ["One", "Two", "Three", "Four", "Five"];
    let defined = kinds.iter().map(|kind| {
        definition(kind, "Cluster", "")
            .replace("metadata: {", &format!("metadata: {{labels: {{version: '{version}'}}, "))
    });
    let labels = json!({"version": version});
    let composed =
        kinds.iter().map(|kind| composition(&plural(kind), kind, &labels, &[("nothing", Value::Null)]));
    let documents: Vec<String> = defined.chain(composed).chain(more.iter().cloned()).collect();
    registry.configuration("pieces", &[], &documents)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_whose_last_object_cannot_be_written_changes_nothing() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    let wrong_name = definition("Last", "Cluster", "").replace("lasts.example.org", "others.example.org");
    let wrong_mode = composition("last", "Last", &json!({}), &[]).replace("Pipeline", "Nonsense");
    let broken =
        [("v1.1.0", wrong_name, "others.example.org"), ("v1.2.0", wrong_mode, "Composition \"last\"")];
    for (version, last, _) in &broken {
        registry
            .push(&format!("acme/pieces:{version}"), &pieces(&registry, version, std::slice::from_ref(last)));
    }
    let good = registry.push("acme/pieces:v1.0.0", &pieces(&registry, "v1.0.0", &[]));
    let mut recorded = Vec::new();
    for path in [DEFINITIONS, COMPOSITIONS, CRDS] {
        let watch = Recorded::start(&user, path).await;
        let before = watch.take(&user).await.len();
        recorded.push((watch, before));
    }
    user.apply(&install("pieces", &registry.at("acme/pieces:v1.1.0"))).await;
    for (version, _, name) in &broken {
        user.set_package("pieces", &registry.at(&format!("acme/pieces:{version}"))).await;
        let message = user.until_unhealthy("pieces", name).await;
        assert!(message.contains("cannot establish control of Compos"), "{message}");
    }
    user.until_idle().await;
    for (watch, before) in &recorded {
        let written = watch.take(&user).await.split_off(*before);
        assert!(written.is_empty(), "{}: {written:#?}", watch.path);
    }
    // Nor does an upgrade to such a package change anything of what is installed.
    user.set_package("pieces", &registry.at("acme/pieces:v1.0.0")).await;
    user.until_installed("pieces", &good).await;
    user.until_idle().await;
    let mut before = Vec::new();
    for (watch, _) in &recorded[..2] {
        before.push(watch.take(&user).await.len());
    }
    for (version, _, name) in &broken {
        user.set_package("pieces", &registry.at(&format!("acme/pieces:{version}"))).await;
        user.until_unhealthy("pieces", name).await;
    }
    user.until_idle().await;
    for ((watch, _), before) in recorded.iter().zip(before) {
        for event in watch.take(&user).await.split_off(before) {
            assert_ne!(event["type"], "DELETED");
            let label = meta::label(&event["object"], "version");
            assert_eq!(label, Some("v1.0.0"), "{event:#}");
            let generation = meta::generation(&event["object"]);
            assert_eq!(generation, 1, "only owners are written: {event:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ownership_moves_without_a_gap_and_composite_resources_stay_ready() {
    let registry = Registry::start().await;
    let user = User::new().await;
    let push = |version: &str| {
        let labels = json!({"version": version});
        let things = composition("things", "Thing", &labels, &[one_map("Thing", version)]);
        let documents = [definition("Thing", "Cluster", ""), things];
        registry.push(&format!("acme/things:{version}"), &registry.configuration("things", &[], &documents))
    };
    let digests = ["v1.0.0", "v2.0.0", "v3.0.0"].map(|version| (version, push(version)));
    user.apply(&install("things", &registry.at("acme/things:v1.0.0"))).await;
    let package = user.until_installed("things", &digests[0].1).await;
    user.until_true(XRD, "things.example.org", "Established").await;
    user.apply(&object("Thing", "one", "coolField: x")).await;
    user.until_ready(THING, "one").await;
    let watches = [
        Recorded::start(&user, DEFINITIONS).await,
        Recorded::start(&user, COMPOSITIONS).await,
        Recorded::start(&user, CRDS).await,
        Recorded::start(&user, "/apis/example.org/v1/things").await,
    ];
    let says = |version: &'static str| {
        move |thing: &Value| {
            thing["status"]["coolerField"] == version
                && status_of(thing, "Ready") == "True"
                && status_of(thing, "Synced") == "True"
        }
    };
    for (version, digest) in [&digests[1], &digests[0], &digests[2]] {
        user.set_package("things", &registry.at(&format!("acme/things:{version}"))).await;
        user.until_installed("things", digest).await;
        user.until(THING, "one", says(version)).await;
    }
    user.until_idle().await;
    for watch in &watches {
        for event in watch.take(&user).await {
            assert_ne!(event["type"], "DELETED", "{}: {event:#}", watch.path);
            let object = &event["object"];
            assert!(!meta::is_deleting(object), "{event:#}");
            match watch.path {
                DEFINITIONS | COMPOSITIONS => {
                    let owners = meta::owner_references(object);
                    assert!(owners.iter().any(|owner| owner.uid == meta::uid(&package)), "{event:#}");
                    let controllers = owners.iter().filter(|owner| owner.controller == Some(true)).count();
                    assert!(controllers <= 1, "{event:#}");
                }
                CRDS if meta::name(object) == "things.example.org" => {
                    assert!(meta::controller_of(object).is_some(), "{event:#}");
                }
                CRDS => {}
                _ => assert_eq!(status_of(object, "Ready"), "True", "{event:#}"),
            }
        }
    }
    let things = user.get(COMPOSITION, "things").await.unwrap();
    let current = revision_of("things", &digests[2].1);
    assert_eq!(meta::controller_of(&things).map(|owner| owner.name), Some(current));
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_go_with_their_package_and_not_before() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    let push = |version: &str, kinds: &[&str]| {
        let documents: Vec<String> = kinds.iter().map(|kind| definition(kind, "Cluster", "")).collect();
        registry.push(&format!("acme/p:{version}"), &registry.configuration("p", &[], &documents))
    };
    let first = push("v1.0.0", &["One", "Two"]);
    let others = [push("v2.0.0", &["One"]), push("v3.0.0", &["One", "Three"])];
    user.apply(&install("p", &registry.at("acme/p:v1.0.0"))).await;
    user.until_installed("p", &first).await;
    for (n, digest) in others.iter().enumerate() {
        user.set_package("p", &registry.at(&format!("acme/p:v{}.0.0", n + 2))).await;
        user.until_installed("p", digest).await;
    }
    // The only revision that has the second definition is gone; the package stays its owner.
    user.until_gone(CONFIGURATION_REVISION, &revision_of("p", &first)).await;
    user.until_idle().await;
    for name in ["ones", "twos", "threes"] {
        user.until_true(XRD, &format!("{name}.example.org"), "Established").await;
    }
    user.delete(CONFIGURATION, "p", None).await;
    for name in ["ones", "twos", "threes"] {
        user.until_gone(XRD, &format!("{name}.example.org")).await;
        user.until_gone(CRD, &format!("{name}.example.org")).await;
    }
    user.until(LOCK, "lock", |lock| lock["packages"].as_array().is_none_or(Vec::is_empty)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_of_two_packages_belongs_to_the_first() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    let digests = ["first", "second"].map(|name| {
        let marked = definition("Thing", "Cluster", "")
            .replace("metadata: {", &format!("metadata: {{labels: {{from: {name}}}, "));
        let own = composition(name, "Thing", &json!({}), &[("nothing", Value::Null)]);
        registry.push(&format!("acme/{name}:v1.0.0"), &registry.configuration(name, &[], &[marked, own]))
    });
    user.apply(&install("first", &registry.at("acme/first:v1.0.0"))).await;
    user.until_installed("first", &digests[0]).await;
    user.apply(&install("second", &registry.at("acme/second:v1.0.0"))).await;
    let message = user.until_unhealthy("second", "already controlled").await;
    let owner = format!("ConfigurationRevision {}", revision_of("first", &digests[0]));
    assert!(message.contains(&owner) && message.contains("things.example.org"), "{message}");
    user.until_idle().await;
    user.until_healthy("first").await;
    let from = |xrd: &Value| meta::label(xrd, "from").unwrap_or_default().to_owned();
    assert_eq!(from(&user.get(XRD, "things.example.org").await.unwrap()), "first");
    assert!(user.get(COMPOSITION, "second").await.is_none(), "nothing of the second is installed");
    // Without the first, the second gets what it wants.
    user.delete(CONFIGURATION, "first", None).await;
    user.until_installed("second", &digests[1]).await;
    user.until(XRD, "things.example.org", |xrd| from(xrd) == "second").await;
    user.until_true(XRD, "things.example.org", "Established").await;
}
