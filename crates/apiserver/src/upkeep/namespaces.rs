//! Namespaces: the initial content of a new one, and the removal of the content of a deleted one.

use super::{Work, identity, ignore_superseded};
use crate::change::{Edit, Existing};
use crate::request::{DeleteOptions, Preconditions, Propagation, WriteOptions};
use crate::resource::NAMESPACES;
use crate::resource::Resource;
use crate::server::Inner;
use crate::subresource::Subresource;
use crate::write::{self, Create, DeleteRequest, Update};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use transom_crd::{condition, set_condition};
use transom_object::{GroupVersionResource, Status};
use transom_store::{Entry, Event, Key, ObjectKey};

/// The field manager of what the namespace controller writes.
const MANAGER: &str = "kube-controller-manager";

/// What every namespace has: resource and name.
const INITIAL_CONTENT: [(&str, &str); 2] =
    [("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")];

/// In `kube-system`: since when uses of tokens in Secrets would be recorded. Programs that look for such tokens read it;
/// here are none.
const TOKEN_TRACKING: (&str, &str) = ("configmaps", "kube-apiserver-legacy-service-account-token-tracking");

/// How long a namespace keeps its content after it is deleted. A client that deletes a namespace together with its
/// content (`kubectl delete -f`, `-k`) deletes one after the other and expects each to be there; Kubernetes waits for
/// five seconds.
const CONTENT_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Adds the keys that a change makes necessary, each with a delay.
pub(super) fn note(server: &Inner, event: &Event, mut add: impl FnMut(Work, Duration)) {
    let namespace = &event.key.object.namespace;
    if &*event.key.resource == NAMESPACES {
        let was_deleting = event.old.as_ref().is_some_and(|old| old.header.deleting);
        let delay = if was_deleting { Duration::ZERO } else { CONTENT_GRACE_PERIOD };
        match &event.new {
            Some(entry) if entry.header.deleting => {
                add(Work::Namespace(event.key.object.name.clone()), delay);
            }
            Some(_) => add(Work::Fill(event.key.object.name.clone()), Duration::ZERO),
            None => {}
        }
        return;
    }
    if event.new.is_some() || namespace.is_empty() {
        return;
    }
    let Some(owner) = server.store.get(&Key::new(NAMESPACES, "", namespace)) else { return };
    if owner.header.deleting {
        add(Work::Namespace(namespace.clone()), Duration::ZERO);
    } else if is_initial(namespace, (&event.key.resource, &event.key.object.name)) {
        add(Work::Fill(namespace.clone()), Duration::ZERO);
    }
}

fn is_initial(namespace: &str, object: (&str, &str)) -> bool {
    INITIAL_CONTENT.contains(&object) || (namespace == "kube-system" && object == TOKEN_TRACKING)
}

/// The `default` service account and the server's root certificate, and in `kube-system` what programs look for there.
pub(super) async fn fill(server: &Arc<Inner>, namespace: &str) -> Result<(), Status> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let certificate = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "kube-root-ca.crt",
            "annotations": {"kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."},
        },
        "data": {"ca.crt": server.ca_certificate},
    });
    let mut content: Vec<_> = INITIAL_CONTENT.into_iter().zip([account, certificate]).collect();
    if namespace == "kube-system" {
        let since = server.environment.now().strftime("%Y-%m-%d").to_string();
        let metadata = json!({"name": TOKEN_TRACKING.1});
        let tracking =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"since": since}});
        content.push((TOKEN_TRACKING, tracking));
    }
    let options = WriteOptions::of_manager(MANAGER);
    for ((plural, name), mut value) in content {
        let Some(resource) = core(server, plural) else { continue };
        if server.store.get(&resource.key(namespace, name)).is_some() {
            continue;
        }
        write::match_path(&mut value, namespace, None)?;
        let request = Create {
            value,
            namespace,
            options: &options,
            owns_fields: true,
            from_update: false,
            by: identity::namespaces(),
        };
        match write::create(server, &resource, request).await {
            // Created by another client meanwhile, or its namespace is being deleted.
            Err(status) if matches!(status.code, 403 | 404 | 409) => {}
            Err(status) => return Err(status),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// Deletes everything in a namespace, reports what is left, and releases the namespace when nothing is.
pub(super) async fn empty(server: &Arc<Inner>, name: &str) -> Result<(), Status> {
    let Some(resource) = core(server, NAMESPACES) else { return Ok(()) };
    let key = resource.key("", name);
    let Some(entry) = server.store.get(&key) else { return Ok(()) };
    if !entry.header.deleting {
        return Ok(());
    }
    for (kind, content) in contents(server, name) {
        for object in content.iter().filter(|e| !e.header.deleting) {
            delete(server, &kind, object).await?;
        }
    }
    let left = contents(server, name);
    report(server, &resource, &entry, &left).await?;
    if left.is_empty() { finalize(server, &resource, &entry).await } else { Ok(()) }
}

async fn delete(server: &Arc<Inner>, kind: &Resource, object: &Entry) -> Result<(), Status> {
    let preconditions = Preconditions { uid: Some(object.header.uid.clone()), resource_version: None };
    let options = DeleteOptions { propagation: Some(Propagation::Background), preconditions, dry_run: false };
    let request = DeleteRequest {
        namespace: &object.header.namespace,
        name: &object.header.name,
        options: &options,
        by: identity::namespaces(),
    };
    ignore_superseded(write::delete(server, kind, &request).await.map(drop))
}

/// What a namespace holds, by kind. Costs one lookup per kind, however many objects other namespaces have.
fn contents(server: &Inner, namespace: &str) -> Vec<(Arc<Resource>, Vec<Arc<Entry>>)> {
    let from = ObjectKey { namespace: namespace.into(), name: "".into() };
    let to = ObjectKey { namespace: format!("{namespace}\0").into(), name: "".into() };
    let mut found = Vec::new();
    for kind in server.registry.served().stored_kinds().into_iter().filter(|r| r.namespaced) {
        let objects = server.store.snapshot(&kind.store_key).objects;
        let entries: Vec<Arc<Entry>> =
            objects.range(from.clone()..to.clone()).map(|(_, e)| e.clone()).collect();
        if !entries.is_empty() {
            found.push((kind, entries));
        }
    }
    found
}

async fn report(
    server: &Arc<Inner>,
    resource: &Arc<Resource>,
    entry: &Entry,
    left: &[(Arc<Resource>, Vec<Arc<Entry>>)],
) -> Result<(), Status> {
    let conditions = conditions(left, &server.timestamp());
    change(server, resource, entry, Subresource::Status, |namespace| {
        for condition in &conditions {
            set_condition(namespace, condition.clone());
        }
    })
    .await
}

fn conditions(left: &[(Arc<Resource>, Vec<Arc<Entry>>)], now: &str) -> Vec<Value> {
    let mut all = vec![
        condition(
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
            now,
        ),
        condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
            now,
        ),
        condition(
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
            now,
        ),
    ];
    let counts: Vec<String> = left
        .iter()
        .map(|(r, e)| format!("{}.{} has {} resource instances", r.names.plural, r.group, e.len()))
        .collect();
    all.push(if counts.is_empty() {
        condition(
            "NamespaceContentRemaining",
            "False",
            "ContentRemoved",
            "All content successfully removed",
            now,
        )
    } else {
        let message = format!("Some resources are remaining: {}", counts.join(", "));
        condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", &message, now)
    });
    let mut finalizers: BTreeMap<&str, usize> = BTreeMap::new();
    for finalizer in left.iter().flat_map(|(_, entries)| entries).flat_map(|e| &e.header.finalizers) {
        *finalizers.entry(finalizer).or_default() += 1;
    }
    all.push(if finalizers.is_empty() {
        condition(
            "NamespaceFinalizersRemaining",
            "False",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
            now,
        )
    } else {
        let counts: Vec<String> =
            finalizers.iter().map(|(f, n)| format!("{f} in {n} resource instances")).collect();
        let message =
            format!("Some content in the namespace has finalizers remaining: {}", counts.join(", "));
        condition("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", &message, now)
    });
    all
}

async fn finalize(server: &Arc<Inner>, resource: &Arc<Resource>, entry: &Entry) -> Result<(), Status> {
    change(server, resource, entry, Subresource::Finalize, |namespace| {
        if let Some(finalizers) = namespace["spec"].get_mut("finalizers").and_then(Value::as_array_mut) {
            finalizers.retain(|f| f != "kubernetes");
            if finalizers.is_empty() {
                namespace["spec"] = json!({});
            }
        }
    })
    .await
}

async fn change(
    server: &Arc<Inner>,
    resource: &Arc<Resource>,
    entry: &Entry,
    subresource: Subresource,
    edit: impl Fn(&mut Value) + Send + Sync,
) -> Result<(), Status> {
    let request = Update {
        namespace: "",
        name: &entry.header.name,
        subresource,
        options: &WriteOptions::of_manager(MANAGER),
        owns_fields: true,
        create_missing: false,
        require_version: false,
        pins_version: false,
        by: identity::namespaces(),
    };
    let mut change = Edit(|existing: &Existing<'_>| {
        let gone = || Status::not_found(&resource.group_resource(), request.name);
        let mut namespace = existing
            .value
            .filter(|v| v["metadata"]["uid"] == entry.header.uid.as_str())
            .ok_or_else(gone)?
            .clone();
        edit(&mut namespace);
        Ok(namespace)
    });
    ignore_superseded(write::update(server, resource, &request, &mut change).await.map(drop))
}

pub(super) fn core(server: &Inner, plural: &str) -> Option<Arc<Resource>> {
    let gvr =
        GroupVersionResource { group: String::new(), version: "v1".into(), resource: plural.to_owned() };
    server.registry.find(&gvr)
}
