//! The cluster that a ProviderConfig leads to: the one that it is in, or that of a kubeconfig.

use super::kubeconfig;
use super::manifest::digest;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use transom_engine::{DeleteOptions, Watches};
use transom_object::{GroupVersionKind, meta};
use transom_provider::{Cluster, Dependency, Error, ErrorContext, Result, secret_data};

/// Connections that nothing has used for so long are closed. Longer than the poll interval.
const UNUSED_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// A cluster with the objects of Objects.
pub(super) struct Target {
    /// Its client.
    pub(super) cluster: Cluster,
    /// Its watches.
    pub(super) watches: Watches,
    /// Distinguishes it from all others of this process.
    pub(super) id: u64,
}

impl Target {
    fn new(cluster: Cluster) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { watches: Watches::new(cluster.clone()), cluster, id })
    }

    /// The object that a manifest describes, as it is.
    pub(super) async fn get(&self, manifest: &Value) -> Result<Option<Value>> {
        let gvk = gvk_of(manifest)?;
        get(&self.cluster, &gvk, meta::namespace(manifest), meta::name(manifest)).await
    }

    /// Applies a manifest, and takes fields from other managers.
    pub(super) async fn apply(&self, manifest: &Value, manager: &str) -> Result<Value> {
        let applied = self.cluster.apply(manifest, manager).await;
        if let (Err(e), Some(gvk)) = (&applied, meta::gvk(manifest))
            && e.is_not_found()
        {
            // Its definition may have been deleted.
            self.cluster.forget_group(&gvk.group);
        }
        applied
    }

    /// Deletes the object that a manifest describes.
    pub(super) async fn delete(&self, manifest: &Value, propagation: Option<&str>) -> Result<()> {
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        let (namespace, name) = (meta::namespace(manifest), meta::name(manifest));
        self.cluster.delete(&gvk_of(manifest)?, namespace, name, options).await
    }
}

fn gvk_of(manifest: &Value) -> Result<GroupVersionKind> {
    meta::gvk(manifest).ok_or_else(|| Error::permanent("the manifest has no apiVersion and kind"))
}

/// Reads an object. One of a namespaced kind without a namespace is refused, as clients of Kubernetes do.
pub(super) async fn get(
    cluster: &Cluster,
    gvk: &GroupVersionKind,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>> {
    if cluster.kind(gvk).await?.namespaced && namespace.is_empty() {
        let words = "an empty namespace may not be set when a resource name is provided";
        return Err(Error::permanent(words));
    }
    cluster.get(gvk, namespace, name).await
}

/// What is needed to find where a ProviderConfig leads.
pub(super) struct Surroundings<'a> {
    /// The cluster that it is in.
    pub(super) cluster: &'a Cluster,
    /// The same cluster with the rights that the provider has for Objects.
    pub(super) identity: &'a Cluster,
}

/// All targets, by their kubeconfigs: objects that share one share its connections.
#[derive(Default)]
pub(super) struct Targets {
    own: Mutex<Option<Arc<Target>>>,
    /// By digests: a kubeconfig is a secret.
    others: Mutex<HashMap<String, (Arc<Target>, Instant)>>,
}

impl Targets {
    /// The cluster that a ProviderConfig leads to. What it depends on is passed to `follow` before it is read.
    pub(super) async fn of(
        &self,
        config: &Value,
        around: &Surroundings<'_>,
        follow: impl Fn(Dependency),
    ) -> Result<Arc<Target>> {
        let text = |path: &str| config.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let identity = text("/spec/identity/type");
        if !identity.is_empty() {
            return Err(Error::permanent(format!(
                "identity type {identity} is not supported: use a kubeconfig with a token, or the original provider"
            )));
        }
        match text("/spec/credentials/source") {
            "InjectedIdentity" => Ok(self.own(around.identity)),
            "Secret" => {
                let kubeconfig = kubeconfig(config, around.cluster, follow).await?;
                self.of_kubeconfig(&kubeconfig).await
            }
            other => Err(Error::permanent(format!(
                "credentials source {other} is not supported: use Secret or InjectedIdentity"
            ))),
        }
    }

    fn own(&self, identity: &Cluster) -> Arc<Target> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.get_or_insert_with(|| Target::new(identity.clone())).clone()
    }

    async fn of_kubeconfig(&self, text: &[u8]) -> Result<Arc<Target>> {
        let (key, now) = (digest(text), Instant::now());
        if let Some(known) = self.known(&key, now) {
            return Ok(known);
        }
        let client = kubeconfig::read(text).await.map_err(Error::permanent)?;
        let target = Target::new(Cluster::new(client).remote().foreign());
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(others.entry(key).or_insert((target, now)).0.clone())
    }

    /// The target of a kubeconfig that was used before. Those that are no longer used are forgotten.
    fn known(&self, key: &str, now: Instant) -> Option<Arc<Target>> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.retain(|_, (_, used)| now.duration_since(*used) < UNUSED_TIMEOUT);
        let (target, used) = others.get_mut(key)?;
        *used = now;
        Some(target.clone())
    }
}

/// The kubeconfig that a ProviderConfig refers to. One in a namespace reads Secrets of its own namespace alone.
async fn kubeconfig(config: &Value, cluster: &Cluster, follow: impl Fn(Dependency)) -> Result<Vec<u8>> {
    let attempted = "cannot get credentials";
    let text = |field: &str| {
        config
            .pointer(&format!("/spec/credentials/secretRef/{field}"))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (namespace, name, key) = (text("namespace"), text("name"), text("key"));
    if name.is_empty() {
        let words = "cannot extract from secret key when none specified";
        return Err(Error::permanent(words)).context(attempted);
    }
    let own = meta::namespace(config);
    if !own.is_empty() && namespace != own {
        return Err(Error::permanent(format!(
            "spec.credentials.secretRef.namespace is {namespace:?}: a ProviderConfig in namespace {own:?} may use Secrets of that \
             namespace alone; use a ClusterProviderConfig"
        )))
        .context(attempted);
    }
    let gvk = GroupVersionKind::new("", "v1", "Secret");
    follow(Dependency::Named { gvk: gvk.clone(), namespace: namespace.to_owned(), name: name.to_owned() });
    let live = cluster.get(&gvk, namespace, name).await.context(attempted)?;
    let missing = |what: String| Error::domain(what);
    let live = live
        .ok_or_else(|| missing(format!("secrets {name:?} not found in namespace {namespace:?}")))
        .context(attempted)?;
    let found = secret_data(&live).remove(key);
    found
        .ok_or_else(|| missing(format!("Secret {name:?} in namespace {namespace:?} has no key {key:?}")))
        .context(attempted)
}
