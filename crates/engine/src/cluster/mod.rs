//! The client of the Kubernetes API: dynamic objects of any kind, over any transport.
//!
//! `kube::Client` sends the requests, to a cluster or to a server in this process. Nothing here is generic over kinds:
//! objects are JSON values, and one set of functions serves all kinds.

mod kinds;
mod paths;
mod sending;

pub use kinds::Kind;
use kube::client::Body;
use sending::MIN_PAGE_BYTES;

use crate::error::{Error, Result, found};
use crate::ownership::Ownership;
use bytes::Bytes;
use kinds::Kinds;
use paths::Query;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use transom_object::{GroupKind, GroupVersionKind, meta};

const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
/// The metadata of objects alone; servers that do not know this form send all.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_OF_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// How many objects a page of a list has at most.
const PAGE_SIZE: usize = 500;

/// A client of an API server. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    kinds: Arc<Kinds>,
    /// Whether objects travel over a network.
    remote: bool,
    /// Whether others run the server: it may send anything.
    foreign: bool,
    /// What writes depend on.
    ownership: Ownership,
    /// The user that requests about objects are sent as; that of the connection if there is none.
    user: Option<Arc<str>>,
    /// The namespace that watches are limited to; none for all.
    watched: Option<Arc<str>>,
    /// The newest version of each kind that this client wrote, by group and kind.
    written: Arc<Mutex<HashMap<GroupKind, u64>>>,
}

/// How much of objects a list or watch reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Metadata,
    Whole,
}

/// How to delete an object.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions<'a> {
    /// `Foreground`, `Background` or `Orphan`; without it, the default of the kind.
    pub propagation: Option<&'a str>,
    /// A precondition: the object has this uid.
    pub uid: Option<&'a str>,
}

/// Whether the server stores what it accepts, or only checks it.
#[derive(Clone, Copy)]
enum Persist {
    Yes,
    No,
}

impl Persist {
    fn dry_run(self) -> &'static str {
        match self {
            Self::Yes => "",
            Self::No => "All",
        }
    }
}

impl Cluster {
    /// A client that sends its requests through this one.
    pub fn new(client: kube::Client) -> Self {
        Self {
            client,
            kinds: Arc::default(),
            remote: false,
            foreign: false,
            ownership: Ownership::whole(),
            user: None,
            watched: None,
            written: Arc::default(),
        }
    }

    /// The same client, of a server that is reached over a network: watches ask for metadata where they need no more. A
    /// server in this process has the whole object at hand.
    pub fn remote(self) -> Self {
        Self { remote: true, ..self }
    }

    /// The same client, of a server that others run: it may send more than fits into memory, so that responses and lists beyond
    /// a limit are errors.
    pub fn foreign(self) -> Self {
        Self { foreign: true, ..self }
    }

    /// The same client, which writes only what this process holds.
    pub fn writing_by(&self, ownership: &Ownership) -> Self {
        Self { ownership: ownership.clone(), ..self.clone() }
    }

    /// The same client, whose writes depend on nothing: for what does no harm when two processes do it.
    pub fn writing_always(&self) -> Self {
        self.writing_by(&Ownership::whole())
    }

    /// The same client, which impersonates a user: the server decides about its requests by the rights of that user, and the
    /// user of the connection must have the right to impersonate it. Which kinds are served is still asked as the latter.
    pub fn acting_as(&self, user: &str) -> Self {
        Self { user: Some(user.into()), ..self.clone() }
    }

    /// The same client, whose [`Watches`](crate::Watches) report the objects of one namespace: for kinds that it may not watch in
    /// all of them.
    pub fn watching_in(&self, namespace: &str) -> Self {
        Self { watched: Some(namespace.into()), ..self.clone() }
    }

    /// The path that lists and watches of a kind are requested at.
    fn watched(&self, kind: &Kind) -> String {
        kind.collection(self.watched.as_deref().unwrap_or_default())
    }

    /// The newest version of any object of a kind that this client wrote.
    pub fn newest_written(&self, gvk: &GroupVersionKind) -> u64 {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.get(&gvk.group_kind()).copied().unwrap_or_default()
    }

    fn wrote(&self, object: &Value) {
        let version = crate::version(meta::resource_version(object));
        if let Some(gvk) = meta::gvk(object).filter(|_| version > 0) {
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            let newest = written.entry(gvk.group_kind()).or_default();
            *newest = version.max(*newest);
        }
    }

    /// How the server serves a kind; an error when it does not.
    pub async fn kind(&self, gvk: &GroupVersionKind) -> Result<Arc<Kind>> {
        if let Some(kind) = self.kinds.find(gvk) {
            return Ok(kind);
        }
        let path = paths::group_version(&gvk.group, &gvk.version);
        // One request at a time for each path; the others wait for its response.
        let asking = self.kinds.asking(&path);
        let _asking = asking.lock().await;
        if let Some(kind) = self.kinds.find(gvk) {
            return Ok(kind);
        }
        if let Some(list) = found(self.as_itself().get_path(&path).await)? {
            self.kinds.learn(gvk, &list);
        }
        self.kinds.find(gvk).ok_or_else(|| Error::UnknownKind(gvk.clone()))
    }

    /// The same client, as the user of the connection.
    fn as_itself(&self) -> Self {
        Self { user: None, ..self.clone() }
    }

    /// Forgets how a group's kinds are served: a definition changed.
    pub fn forget_group(&self, group: &str) {
        self.kinds.forget(group);
    }

    /// Reads an object; none if it does not exist.
    pub async fn get(&self, gvk: &GroupVersionKind, namespace: &str, name: &str) -> Result<Option<Value>> {
        let kind = self.kind(gvk).await?;
        found(self.get_path(&kind.object(namespace, name)).await)
    }

    /// Reads a document that is not an object: discovery, OpenAPI.
    pub async fn get_path(&self, path: &str) -> Result<Value> {
        self.send("GET", path.to_owned(), JSON, Vec::new()).await
    }

    /// The objects with all these labels, in one namespace or (empty) in all.
    pub async fn list(
        &self,
        gvk: &GroupVersionKind,
        namespace: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>> {
        Ok(self.list_at(gvk, namespace, labels).await?.0)
    }

    /// The objects with all these labels, and the version of the list.
    pub async fn list_at(
        &self,
        gvk: &GroupVersionKind,
        namespace: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<(Vec<Value>, u64)> {
        let kind = self.kind(gvk).await?;
        let selector: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let selector = selector.join(",");
        let (api_version, kind_name) = (gvk.api_version(), gvk.kind.as_str());
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut token = String::new();
        loop {
            let query = Query::default()
                .with("limit", &PAGE_SIZE.to_string())
                .with("labelSelector", &selector)
                .with("continue", &token);
            let path = query.on(kind.collection(namespace));
            let (mut page, length) = self.transmit("GET", path, JSON, Vec::new()).await?;
            bytes += length.max(MIN_PAGE_BYTES);
            self.check_list(gvk, bytes)?;
            if let Some(Value::Array(list)) = page.get_mut("items").map(Value::take) {
                items.extend(list.into_iter().map(|mut item| {
                    // Items of built-in kinds lack these fields.
                    item["apiVersion"] = api_version.as_str().into();
                    item["kind"] = kind_name.into();
                    item
                }));
            }
            match page["metadata"]["continue"].as_str() {
                Some(next) if !next.is_empty() => next.clone_into(&mut token),
                _ => return Ok((items, crate::version(meta::resource_version(&page)))),
            }
        }
    }

    /// Creates an object. Returns it as it is stored, as do all writes.
    pub async fn create(&self, object: &Value, manager: &str) -> Result<Value> {
        self.post(object, manager, Persist::Yes).await
    }

    /// Has the server check a creation without making it. Returns the object as it would be stored.
    pub async fn try_create(&self, object: &Value, manager: &str) -> Result<Value> {
        self.post(object, manager, Persist::No).await
    }

    async fn post(&self, object: &Value, manager: &str, persist: Persist) -> Result<Value> {
        let kind = self.kind(&gvk_of(object)?).await?;
        let query = Query::default().with("fieldManager", manager).with("dryRun", persist.dry_run());
        let path = query.on(kind.collection(meta::namespace(object)));
        self.written(persist, self.send("POST", path, JSON, encode(object)).await)
    }

    /// Replaces an object; its resourceVersion is a precondition.
    pub async fn update(&self, object: &Value, manager: &str) -> Result<Value> {
        self.put(object, manager, "", Persist::Yes).await
    }

    /// Has the server check an update without making it. Returns the object as it would be stored.
    pub async fn try_update(&self, object: &Value, manager: &str) -> Result<Value> {
        self.put(object, manager, "", Persist::No).await
    }

    /// Replaces the status of an object; its resourceVersion is a precondition.
    pub async fn update_status(&self, object: &Value, manager: &str) -> Result<Value> {
        self.put(object, manager, "/status", Persist::Yes).await
    }

    async fn put(&self, object: &Value, manager: &str, subresource: &str, persist: Persist) -> Result<Value> {
        let kind = self.kind(&gvk_of(object)?).await?;
        let path = kind.object(meta::namespace(object), meta::name(object)) + subresource;
        let query = Query::default().with("fieldManager", manager).with("dryRun", persist.dry_run());
        self.written(persist, self.send("PUT", query.on(path), JSON, encode(object)).await)
    }

    /// Notes the version of what was written. A dry run has written nothing.
    fn written(&self, persist: Persist, answer: Result<Value>) -> Result<Value> {
        if let (Persist::Yes, Ok(object)) = (persist, &answer) {
            self.wrote(object);
        }
        answer
    }

    /// Applies an intent by server-side apply, and takes fields from other managers.
    pub async fn apply(&self, intent: &Value, owner: &str) -> Result<Value> {
        self.apply_to(intent, owner, "", Persist::Yes).await
    }

    /// Has the server check an apply without making it. Returns the object as it would be stored.
    pub async fn try_apply(&self, intent: &Value, owner: &str) -> Result<Value> {
        self.apply_to(intent, owner, "", Persist::No).await
    }

    /// Applies the status of an intent by server-side apply, and takes fields from other managers.
    pub async fn apply_status(&self, intent: &Value, owner: &str) -> Result<Value> {
        self.apply_to(intent, owner, "/status", Persist::Yes).await
    }

    async fn apply_to(
        &self,
        intent: &Value,
        owner: &str,
        subresource: &str,
        persist: Persist,
    ) -> Result<Value> {
        let kind = self.kind(&gvk_of(intent)?).await?;
        let path = kind.object(meta::namespace(intent), meta::name(intent)) + subresource;
        let query = Query::default().with("fieldManager", owner).with("force", "true");
        let query = query.with("dryRun", persist.dry_run());
        self.written(persist, self.send("PATCH", query.on(path), APPLY, encode(intent)).await)
    }

    /// Changes an object by a JSON merge patch.
    pub async fn merge_patch(&self, object: &Value, patch: &Value, manager: &str) -> Result<Value> {
        self.patch(object, MERGE_PATCH, patch, manager, "", Persist::Yes).await
    }

    /// Has the server check a JSON merge patch without storing it. Returns the object as it would be stored.
    pub async fn try_merge_patch(&self, object: &Value, patch: &Value, manager: &str) -> Result<Value> {
        self.patch(object, MERGE_PATCH, patch, manager, "", Persist::No).await
    }

    /// Changes the status of an object by a JSON merge patch.
    pub async fn merge_patch_status(&self, object: &Value, patch: &Value, manager: &str) -> Result<Value> {
        self.patch(object, MERGE_PATCH, patch, manager, "/status", Persist::Yes).await
    }

    /// Changes an object by a JSON patch.
    pub async fn json_patch(&self, object: &Value, patch: &Value, manager: &str) -> Result<Value> {
        self.patch(object, JSON_PATCH, patch, manager, "", Persist::Yes).await
    }

    async fn patch(
        &self,
        object: &Value,
        form: &str,
        patch: &Value,
        manager: &str,
        subresource: &str,
        persist: Persist,
    ) -> Result<Value> {
        let kind = self.kind(&gvk_of(object)?).await?;
        let path = kind.object(meta::namespace(object), meta::name(object)) + subresource;
        let query = Query::default().with("fieldManager", manager).with("dryRun", persist.dry_run());
        self.written(persist, self.send("PATCH", query.on(path), form, encode(patch)).await)
    }

    /// Deletes an object. It is not an error if the object does not exist.
    pub async fn delete(
        &self,
        gvk: &GroupVersionKind,
        namespace: &str,
        name: &str,
        options: DeleteOptions<'_>,
    ) -> Result<()> {
        let kind = self.kind(gvk).await?;
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if let Some(policy) = options.propagation {
            body["propagationPolicy"] = policy.into();
        }
        if let Some(uid) = options.uid {
            body["preconditions"] = json!({"uid": uid});
        }
        found(self.send("DELETE", kind.object(namespace, name), JSON, encode(&body)).await).map(drop)
    }

    /// The encoded objects of a kind, one page; `before` is what the pages before it had together.
    pub(crate) async fn page(
        &self,
        kind: &Kind,
        token: &str,
        extent: Extent,
        before: &mut usize,
    ) -> Result<Bytes> {
        let query = Query::default().with("limit", &PAGE_SIZE.to_string()).with("continue", token);
        let accept = if self.asks_for_metadata(extent) { METADATA_OF_LIST } else { JSON };
        let path = query.on(self.watched(kind));
        let page = self.collect("GET", &path, self.stream(&path, accept).await?).await?;
        *before += page.len().max(MIN_PAGE_BYTES);
        self.check_list(&kind.gvk, *before)?;
        Ok(page)
    }

    /// The changes of a kind after a version, one per line.
    pub(crate) async fn watch(
        &self,
        kind: &Kind,
        version: &str,
        seconds: u64,
        extent: Extent,
    ) -> Result<Body> {
        let query = Query::default()
            .with("watch", "true")
            .with("allowWatchBookmarks", "true")
            .with("timeoutSeconds", &seconds.to_string())
            .with("resourceVersion", version);
        let accept = if self.asks_for_metadata(extent) { METADATA } else { JSON };
        self.stream(&query.on(self.watched(kind)), accept).await
    }

    fn asks_for_metadata(&self, extent: Extent) -> bool {
        self.remote && extent == Extent::Metadata
    }
}

fn encode(object: &Value) -> Vec<u8> {
    transom_object::json::encode(object)
}

fn gvk_of(object: &Value) -> Result<GroupVersionKind> {
    meta::gvk(object).ok_or_else(|| Error::permanent("an object has no apiVersion and kind"))
}
