//! The in-process client: kube's own client with the server as its transport. What controllers do against a
//! cluster they do here, without a socket.

use futures_util::{StreamExt, TryStreamExt};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use transom_apiserver::{Identity, Options, Server};
use transom_store::{HistoryLimits, Store};
use transom_testkit::embedded;

const WAIT_LIMIT: Duration = Duration::from_secs(120);

async fn plane(history: HistoryLimits) -> (Server, Client) {
    let store = Store::in_memory(transom_store::Options { history, ..transom_store::Options::default() });
    let server = embedded::server_with(&store, Options::default()).await;
    let client = embedded::kube_client(&server, Identity::admin("controllers"));
    (server, client)
}

async fn admin() -> Client {
    plane(HistoryLimits::default()).await.1
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": value}})).expect("a config map")
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

#[tokio::test]
async fn objects_are_created_read_updated_listed_and_deleted() {
    let api: Api<ConfigMap> = Api::default_namespaced(admin().await);
    let created = api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    assert!(created.uid().is_some() && created.creation_timestamp().is_some());
    let again = api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap_err();
    assert_eq!(code(&again), 409);

    let mut changed = created.clone();
    changed.data = Some([("k".to_owned(), "2".to_owned())].into());
    let updated = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(updated.resource_version(), created.resource_version());
    let stale = api.replace("a", &PostParams::default(), &changed).await.unwrap_err();
    assert_eq!(code(&stale), 409, "the version it was read at is gone");

    let merged = api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"l": "3"}}))).await;
    assert_eq!(merged.unwrap().data.unwrap().len(), 2);
    for i in 0..5 {
        api.create(&PostParams::default(), &config_map(&format!("b{i}"), "1")).await.unwrap();
    }
    let page = api.list(&ListParams::default().limit(4)).await.unwrap();
    let token = page.metadata.continue_.clone().unwrap();
    let rest = api.list(&ListParams::default().limit(4).continue_token(&token)).await.unwrap();
    let names: BTreeSet<String> = page.items.iter().chain(&rest.items).map(ResourceExt::name_any).collect();
    assert!(["a", "b0", "b4"].iter().all(|n| names.contains(*n)), "{names:?}");

    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
    assert_eq!(code(&api.get("a").await.unwrap_err()), 404);
}

#[tokio::test]
async fn applies_own_their_fields_and_conflict() {
    let api: Api<ConfigMap> = Api::default_namespaced(admin().await);
    let apply = |value: &str| {
        Patch::Apply(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}}),
        )
    };
    let first = api.patch("a", &PatchParams::apply("one"), &apply("1")).await.unwrap();
    let same = api.patch("a", &PatchParams::apply("one"), &apply("1")).await.unwrap();
    assert_eq!(first.resource_version(), same.resource_version(), "an apply that changes nothing");
    let conflict = api.patch("a", &PatchParams::apply("two"), &apply("2")).await.unwrap_err();
    assert_eq!(code(&conflict), 409);
    assert!(conflict.to_string().contains("one"), "{conflict}");
    let forced = api.patch("a", &PatchParams::apply("two").force(), &apply("2")).await.unwrap();
    assert_eq!(forced.data.unwrap()["k"], "2");
    let owners: Vec<String> =
        forced.metadata.managed_fields.unwrap().into_iter().filter_map(|f| f.manager).collect();
    assert_eq!(owners, ["two"], "the first one owns nothing any more");
}

#[tokio::test]
async fn a_watcher_sees_what_is_there_and_what_happens() {
    for streaming in [false, true] {
        let api: Api<ConfigMap> = Api::default_namespaced(admin().await);
        api.create(&PostParams::default(), &config_map("there", "1")).await.unwrap();
        let config = watcher::Config::default();
        let config = if streaming { config.streaming_lists() } else { config };
        let mut events = watcher(api.clone(), config).boxed();
        let mut initial = Vec::new();
        loop {
            match events.try_next().await.unwrap().unwrap() {
                watcher::Event::InitApply(o) => initial.push(o.name_any()),
                watcher::Event::InitDone => break,
                watcher::Event::Init => {}
                other => unreachable!("{other:?} before the initial list is done"),
            }
        }
        assert!(initial.contains(&"there".to_owned()), "{initial:?}");
        api.create(&PostParams::default(), &config_map("new", "1")).await.unwrap();
        api.delete("there", &DeleteParams::default()).await.unwrap();
        let next = events.try_next().await.unwrap().unwrap();
        assert!(matches!(&next, watcher::Event::Apply(o) if o.name_any() == "new"), "{next:?}");
        let next = events.try_next().await.unwrap().unwrap();
        assert!(matches!(&next, watcher::Event::Delete(o) if o.name_any() == "there"), "{next:?}");
    }
}

#[tokio::test]
async fn a_reflector_mirrors_a_collection() {
    let api: Api<ConfigMap> = Api::default_namespaced(admin().await);
    api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let (reader, writer) = reflector::store();
    let stream = reflector(writer, watcher(api.clone(), watcher::Config::default())).default_backoff();
    let mirror = tokio::spawn(stream.for_each(|_| std::future::ready(())));
    tokio::time::timeout(WAIT_LIMIT, reader.wait_until_ready()).await.unwrap().unwrap();
    let key = |name: &str| reflector::ObjectRef::<ConfigMap>::new(name).within("default");
    assert!(reader.get(&key("a")).is_some());
    api.create(&PostParams::default(), &config_map("b", "1")).await.unwrap();
    api.delete("a", &DeleteParams::default()).await.unwrap();
    tokio::time::timeout(WAIT_LIMIT, async {
        while reader.get(&key("b")).is_none() || reader.get(&key("a")).is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("the mirror follows");
    mirror.abort();
}

#[tokio::test]
async fn a_controller_reconciles_once_and_is_not_woken_by_what_changes_nothing() {
    let api: Api<ConfigMap> = Api::default_namespaced(admin().await);
    let labelled = |name: &str, value: &str| ConfigMap {
        metadata: ObjectMeta { labels: Some([("watched".into(), "yes".into())].into()), ..named(name) },
        ..config_map(name, value)
    };
    api.create(&PostParams::default(), &labelled("only", "1")).await.unwrap();
    let config = watcher::Config::default().labels("watched=yes");
    let runs = Arc::new(AtomicUsize::new(0));
    let reconcile = |object: Arc<ConfigMap>, context: Arc<(Api<ConfigMap>, Arc<AtomicUsize>)>| async move {
        if object.name_any() == "only" {
            context.1.fetch_add(1, Ordering::Relaxed);
        }
        let status = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": object.name_any()}, "data": {"seen": "yes"},
        });
        context.0.patch(&object.name_any(), &PatchParams::apply("controller"), &Patch::Apply(status)).await?;
        Ok::<_, kube::Error>(Action::await_change())
    };
    let controller = Controller::new(api.clone(), config).run(
        reconcile,
        |_, error, _| unreachable!("the reconciler failed: {error}"),
        Arc::new((api.clone(), Arc::clone(&runs))),
    );
    let running = tokio::spawn(controller.for_each(|outcome| {
        assert!(outcome.is_ok(), "{outcome:?}");
        std::future::ready(())
    }));
    let reconciled = async |name: &str| {
        let seen = async || api.get(name).await.unwrap().data.unwrap().contains_key("seen");
        let waiting = async {
            while !seen().await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(WAIT_LIMIT, waiting).await.expect("the object is reconciled");
    };
    reconciled("only").await;
    // The watch reports changes in order: those of the first object come before these, each of which is reconciled.
    for marker in ["marker-1", "marker-2", "marker-3"] {
        api.create(&PostParams::default(), &labelled(marker, "1")).await.unwrap();
        reconciled(marker).await;
    }
    // Its own first write wakes it once more; the apply that follows changes nothing and causes no further run.
    let runs = runs.load(Ordering::Relaxed);
    assert!((1..=2).contains(&runs), "reconciled {runs} times");
    running.abort();
}

fn tiny() -> HistoryLimits {
    HistoryLimits { min_age: Duration::ZERO, min_events: 1, max_events: 5, ..HistoryLimits::default() }
}

#[tokio::test]
async fn a_watch_from_too_long_ago_has_expired() {
    let (_server, client) = plane(tiny()).await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let created = api.create(&PostParams::default(), &config_map("a", "0")).await.unwrap();
    for i in 0..20 {
        let patch = Patch::Merge(json!({"data": {"k": i.to_string()}}));
        api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    }
    let old = created.resource_version().unwrap();
    let mut events = api.watch(&WatchParams::default(), &old).await.unwrap().boxed();
    match events.try_next().await.unwrap() {
        Some(WatchEvent::Error(status)) => {
            assert_eq!((status.code, status.reason.as_str()), (410, "Expired"), "{status:?}");
        }
        other => unreachable!("{other:?} in place of an error"),
    }
    assert!(events.try_next().await.unwrap().is_none(), "the stream ends");
}

#[tokio::test]
async fn a_watcher_that_fell_behind_lists_again() {
    let (_server, client) = plane(tiny()).await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let mut events = watcher(api.clone(), watcher::Config::default()).boxed();
    while !matches!(events.try_next().await.unwrap(), Some(watcher::Event::InitDone)) {}
    api.create(&PostParams::default(), &config_map("first", "0")).await.unwrap();
    assert!(matches!(events.try_next().await.unwrap(), Some(watcher::Event::Apply(_))));
    // The watch is not read while the history moves on.
    for i in 0..50 {
        api.create(&PostParams::default(), &config_map(&format!("c{i}"), "0")).await.unwrap();
    }
    let caught_up = tokio::time::timeout(WAIT_LIMIT, async {
        let mut listed = BTreeSet::new();
        loop {
            match events.next().await.expect("a watcher never ends") {
                Ok(watcher::Event::Init) => listed.clear(),
                Ok(watcher::Event::InitApply(o)) => drop(listed.insert(o.name_any())),
                Ok(watcher::Event::InitDone) => return listed,
                // What it still gets of the old watch, and the error that ends it.
                Ok(_) | Err(_) => {}
            }
        }
    });
    let listed = caught_up.await.expect("the watcher recovers");
    assert!((0..50).all(|i| listed.contains(&format!("c{i}"))), "{listed:?}");
}

#[tokio::test]
async fn a_custom_kind_is_usable_as_soon_as_it_is_created() {
    let client = admin().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for i in 0..10 {
        let (plural, kind) = (format!("widget{i}s"), format!("Widget{i}"));
        let definition = json!({
            "metadata": {"name": format!("{plural}.example.org")},
            "spec": {
                "group": "example.org", "scope": "Namespaced",
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
                        "size": {"type": "integer", "minimum": 1}, "color": {"type": "string", "default": "blue"},
                    }}},
                }}}],
            },
        });
        let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.org", "v1", &kind), &plural);
        let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
        let object = |size: i64| DynamicObject::new("one", &resource).data(json!({"spec": {"size": size}}));
        let invalid = api.create(&PostParams::default(), &object(0)).await.unwrap_err();
        assert_eq!(code(&invalid), 422, "{invalid}");
        let created = api.create(&PostParams::default(), &object(3)).await.unwrap();
        assert_eq!(created.data["spec"], json!({"size": 3, "color": "blue"}));
        assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
    }
}

#[tokio::test]
async fn the_user_is_the_one_that_the_transport_authenticated() {
    let (server, _) = plane(HistoryLimits::default()).await;
    let powerless = embedded::kube_client(&server, Identity::new("nobody", []));
    let refused = Api::<Namespace>::all(powerless).list(&ListParams::default()).await.unwrap_err();
    assert_eq!(code(&refused), 403);
    let unknown = Client::new(server.clone(), "default");
    let refused = Api::<Namespace>::all(unknown).list(&ListParams::default()).await.unwrap_err();
    assert_eq!(code(&refused), 403);
    // A header says nothing about who asks.
    let request = Request::builder()
        .uri("/api/v1/namespaces")
        .header("x-remote-user", "admin")
        .header("x-remote-group", "system:masters")
        .header("impersonate-user", "admin");
    let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    assert_eq!(server.handle(request).await.status(), 403);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_is_given_up() {
    let (server, _) = plane(HistoryLimits::default()).await;
    let endless = futures_util::stream::pending::<Result<http_body::Frame<bytes::Bytes>, std::io::Error>>();
    let mut request = Request::builder()
        .method("POST")
        .uri("/api/v1/namespaces")
        .header("content-type", "application/json")
        .body(http_body_util::StreamBody::new(endless))
        .unwrap();
    request.extensions_mut().insert(Identity::admin("slow"));
    let response = tokio::time::timeout(Duration::from_secs(120), server.handle(request)).await.unwrap();
    assert_eq!(response.status(), 504);
}
