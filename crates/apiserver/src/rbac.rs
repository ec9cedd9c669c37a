//! RBAC over the store: the index that decisions are made from, and the policy that every server starts with.
//!
//! The index follows the store's history. A decision is made from everything that was acknowledged before it, so a client
//! that has written a binding can use it at once.

use crate::auth::{Attributes, Authorizer, Decision, Identity};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use transom_rbac::{Index, Request, Rule, User};
use transom_store::{Entry, Event, Key, Store, Watch};

/// The store's names for the four kinds.
const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
const STORED: [&str; 4] = [
    CLUSTER_ROLES,
    "clusterrolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
];

/// Whether these are ClusterRoles.
pub(crate) fn is_cluster_role(key: &Key) -> bool {
    &*key.resource == CLUSTER_ROLES
}

/// Decides by the roles and bindings of a store. Members of `system:masters` may do everything.
pub(crate) struct Rbac {
    store: Store,
    index: RwLock<Index>,
    /// The index has everything up to this revision.
    seen: AtomicU64,
    /// Positions in the history of each kind; none before the first decision.
    cursors: Mutex<Vec<Watch>>,
}

impl Rbac {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, index: RwLock::default(), seen: AtomicU64::new(0), cursors: Mutex::default() }
    }

    /// The index with everything that is stored now.
    pub(crate) fn current(&self) -> RwLockReadGuard<'_, Index> {
        let revision = self.store.revision();
        if self.seen.load(Ordering::Acquire) < revision || revision == 0 {
            self.catch_up(revision);
        }
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn catch_up(&self, revision: u64) {
        let mut cursors = self.cursors.lock().unwrap_or_else(PoisonError::into_inner);
        for cursor in cursors.iter_mut() {
            while let Some(event) = cursor.try_next() {
                let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
                note(&mut index, &event);
            }
        }
        // A cursor that fell out of the history stays behind.
        if cursors.is_empty() || cursors.iter().any(|cursor| cursor.revision() < revision) {
            self.rebuild(&mut cursors);
        }
        self.seen.fetch_max(revision, Ordering::AcqRel);
    }

    fn rebuild(&self, cursors: &mut Vec<Watch>) {
        let mut new = Index::default();
        cursors.clear();
        for resource in STORED {
            let snapshot = self.store.snapshot(resource);
            for entry in snapshot.objects.values() {
                put(&mut new, resource, entry);
            }
            cursors.extend(self.store.watch(resource, snapshot.revision));
        }
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = new;
    }
}

fn note(index: &mut Index, event: &Event) {
    if let Some(entry) = &event.new {
        return put(index, &event.key.resource, entry);
    }
    let (namespace, name) = (&*event.key.object.namespace, &*event.key.object.name);
    if is_binding(&event.key.resource) {
        index.remove_binding(namespace, name);
    } else {
        index.remove_role(namespace, name);
    }
}

fn put(index: &mut Index, resource: &str, entry: &Entry) {
    let value: Value = serde_json::from_slice(&entry.body).unwrap_or_default();
    let (namespace, name) = (&entry.header.namespace, &entry.header.name);
    if is_binding(resource) {
        index.put_binding(namespace, name, &value);
    } else {
        index.put_role(namespace, name, &value);
    }
}

fn is_binding(resource: &str) -> bool {
    resource.starts_with("clusterrolebindings") || resource.starts_with("rolebindings")
}

pub(crate) fn user(identity: &Identity) -> User<'_> {
    User { name: &identity.user, groups: &identity.groups }
}

fn request<'a>(attributes: &Attributes<'a>) -> Request<'a> {
    Request {
        verb: attributes.verb,
        group: attributes.group,
        resource: attributes.resource,
        subresource: attributes.subresource,
        namespace: attributes.namespace,
        name: attributes.name,
        path: attributes.is_path.then_some(attributes.path),
    }
}

#[async_trait]
impl Authorizer for Rbac {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        if attributes.user.is_admin() {
            return Decision::Allowed;
        }
        let index = self.current();
        if index.allows(&user(attributes.user), &request(attributes)) {
            return Decision::Allowed;
        }
        Decision::Denied { reason: index.decide(&user(attributes.user), &request(attributes)).reason }
    }

    async fn explain(&self, attributes: &Attributes<'_>) -> (bool, String) {
        if attributes.user.is_admin() {
            return (true, String::new());
        }
        let decision = self.current().decide(&user(attributes.user), &request(attributes));
        (decision.allowed, decision.reason)
    }

    fn rules(&self, identity: &Identity, namespace: &str) -> Option<Vec<Rule>> {
        Some(self.current().rules_for(&user(identity), namespace).into_iter().cloned().collect())
    }
}

#[async_trait]
impl Authorizer for std::sync::Arc<Rbac> {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        self.as_ref().authorize(attributes).await
    }

    async fn explain(&self, attributes: &Attributes<'_>) -> (bool, String) {
        self.as_ref().explain(attributes).await
    }

    fn rules(&self, identity: &Identity, namespace: &str) -> Option<Vec<Rule>> {
        self.as_ref().rules(identity, namespace)
    }
}

/// Roles and bindings, and what else allows requests.
pub(crate) struct RbacAndBeyond {
    pub(crate) rbac: std::sync::Arc<Rbac>,
    pub(crate) beyond: Box<dyn Authorizer>,
}

#[async_trait]
impl Authorizer for RbacAndBeyond {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let denied = match self.rbac.authorize(attributes).await {
            Decision::Allowed => return Decision::Allowed,
            denied @ Decision::Denied { .. } => denied,
        };
        match self.beyond.authorize(attributes).await {
            Decision::Allowed => Decision::Allowed,
            Decision::Denied { .. } => denied,
        }
    }

    async fn explain(&self, attributes: &Attributes<'_>) -> (bool, String) {
        let denied = match self.rbac.explain(attributes).await {
            (true, reason) => return (true, reason),
            (false, reason) => reason,
        };
        match self.beyond.explain(attributes).await {
            (true, reason) => (true, reason),
            (false, _) => (false, denied),
        }
    }

    fn rules(&self, identity: &Identity, namespace: &str) -> Option<Vec<Rule>> {
        self.rbac.rules(identity, namespace)
    }
}
