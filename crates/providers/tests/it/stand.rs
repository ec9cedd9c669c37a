//! An API server with `provider-kubernetes`, which manages objects of the same server.

use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use transom_engine::{Clock, Cluster, Metrics, Ownership};
use transom_object::{GroupVersionKind, meta};
use transom_provider::{Condition, Context, RunningProvider, conditions};
use transom_testkit::embedded;

pub(crate) const ACCOUNT: &str = "system:serviceaccount:crossplane-system:provider-kubernetes";
pub(crate) const OBJECT: &str = "kubernetes.crossplane.io/v1alpha2/Object";
pub(crate) const MODERN_OBJECT: &str = "kubernetes.m.crossplane.io/v1alpha1/Object";
pub(crate) const MAP: &str = "v1/ConfigMap";
const WAIT_LIMIT: Duration = Duration::from_secs(120);

pub(crate) struct Stand {
    pub(crate) cluster: Cluster,
    _running: RunningProvider,
}

/// How soon a provider looks again by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Often.
    Polls,
    /// Not while a test runs: what happens is due to a watch.
    Waits,
}

impl Stand {
    /// With a provider that may do everything.
    pub(crate) async fn new(pace: Pace) -> Self {
        let stand = Self::without_rights(pace).await;
        stand.bind().await;
        stand
    }

    /// With a provider that may do nothing for Objects.
    pub(crate) async fn without_rights(pace: Pace) -> Self {
        let server = embedded::rbac_server().await;
        let upkeep = server.clone();
        tokio::spawn(async move { upkeep.run_upkeep().await });
        let client = embedded::admin_kube_client(&server);
        let cluster = Cluster::new(client.clone());
        let provider = transom_providers::find("provider-kubernetes").unwrap();
        let provider = provider.acting_as(ACCOUNT).with_settings(|settings| {
            let long = Duration::from_secs(24 * 60 * 60);
            let (poll, backoff) = match pace {
                Pace::Polls => (Duration::from_millis(200), Duration::from_millis(10)),
                Pace::Waits => (long, long),
            };
            settings.poll_interval = Some(poll);
            settings.sooner_polls = pace == Pace::Polls;
            settings.min_poll_interval = Duration::from_millis(1);
            settings.first_backoff = backoff;
            settings.longest_backoff = backoff * 4;
        });
        provider.install(&cluster).await.unwrap();
        let running = provider.start(Context {
            client,
            clock: Clock::starting_at(transom_object::time::Timestamp::now()),
            metrics: Arc::<Metrics>::default(),
            seed: 1,
            ownership: Ownership::whole(),
        });
        let stand = Self { cluster, _running: running };
        if stand.get("v1/Namespace", "default").await.is_none() {
            stand.create("v1/Namespace", "default", &json!({})).await;
        }
        let credentials = json!({"spec": {"credentials": {"source": "InjectedIdentity"}}});
        for config in [
            "kubernetes.crossplane.io/v1alpha1/ProviderConfig",
            "kubernetes.m.crossplane.io/v1alpha1/ClusterProviderConfig",
        ] {
            stand.create(config, "default", &credentials).await;
        }
        stand
    }

    /// Gives the provider the rights of an administrator.
    pub(crate) async fn bind(&self) {
        let binding = json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "crossplane-system", "name": "provider-kubernetes"}],
        });
        self.create("rbac.authorization.k8s.io/v1/ClusterRoleBinding", "provider-kubernetes", &binding).await;
    }

    /// Creates an object; a name may have a namespace before a slash.
    pub(crate) async fn create(&self, kind: &str, name: &str, content: &Value) {
        let (gvk, (namespace, name)) = (gvk(kind), place(name));
        let mut object = content.clone();
        object["apiVersion"] = gvk.api_version().into();
        object["kind"] = gvk.kind.as_str().into();
        meta::set_name(&mut object, name);
        if !namespace.is_empty() {
            meta::set_namespace(&mut object, namespace);
        }
        self.cluster.create(&object, "test").await.unwrap_or_else(|e| panic!("{kind} {name}: {}", e.chain()));
    }

    pub(crate) async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let (namespace, name) = place(name);
        self.cluster.get(&gvk(kind), namespace, name).await.unwrap()
    }

    pub(crate) async fn patch(&self, kind: &str, name: &str, patch: &Value) {
        let (gvk, (namespace, name)) = (gvk(kind), place(name));
        let mut object =
            json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": {"name": name}});
        if !namespace.is_empty() {
            meta::set_namespace(&mut object, namespace);
        }
        self.cluster.merge_patch(&object, patch, "test").await.unwrap();
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        let (namespace, name) = place(name);
        self.cluster.delete(&gvk(kind), namespace, name, Default::default()).await.unwrap();
    }

    /// Waits until an object is as it should be.
    pub(crate) async fn until(&self, kind: &str, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            let found = self.get(kind, name).await.unwrap_or_default();
            if holds(&found) {
                return found;
            }
            assert!(Instant::now() < deadline, "{kind} {name}: {found:#}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn until_ready(&self, kind: &str, name: &str) -> Value {
        self.until(kind, name, is_ready).await
    }

    pub(crate) async fn until_gone(&self, kind: &str, name: &str) {
        self.until(kind, name, Value::is_null).await;
    }

    /// Waits until the message of `Synced` has these words.
    pub(crate) async fn until_it_says(&self, kind: &str, name: &str, words: &str) -> Value {
        self.until(kind, name, |object| condition(object, "Synced").message.contains(words)).await
    }
}

pub(crate) fn gvk(kind: &str) -> GroupVersionKind {
    let (version, kind) = kind.rsplit_once('/').unwrap();
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    GroupVersionKind::new(group, version, kind)
}

fn place(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or(("", name))
}

pub(crate) fn condition(object: &Value, kind: &str) -> Condition {
    conditions::get(&conditions::of(object), kind)
}

pub(crate) fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").is_true() && condition(object, "Synced").is_true()
}

/// A ConfigMap of the namespace `default`.
pub(crate) fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data})
}

/// An Object for a manifest, with more fields in its spec.
pub(crate) fn object(manifest: &Value, more: &Value) -> Value {
    let mut object = json!({"spec": {"forProvider": {"manifest": manifest}}});
    for (field, value) in more.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}
