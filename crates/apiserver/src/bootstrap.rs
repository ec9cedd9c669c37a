//! Building a server: what is served, and what must exist before the first request.

use crate::admission::{Admission, Chain, Dynamic, WebhookCaller};
use crate::audit::AuditLog;
use crate::auth::{Authorizer, MastersOnly, TokenAuthenticator};
use crate::certificates::CertificateSigner;
use crate::environment::{Environment, SystemEnvironment};
use crate::overload::{Limits, Seats};
use crate::rbac::{Rbac, RbacAndBeyond};
use crate::registry::Registry;
use crate::request::WriteOptions;
use crate::resource::Resource;
use crate::server::{Inner, Server};
use crate::strategy::builtin;
use crate::tokens::Signer;
use crate::write::{self, Create};
use crate::{crd, health, metrics, openapi, policy, services, upkeep};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Mutex;
use transom_metrics::MetricsRegistry;
use transom_object::{GroupVersionResource, Status};
use transom_store::Store;

/// What a server is started with.
pub struct Options {
    /// Asked about tokens that the server did not sign, in their order.
    pub authenticators: Vec<Box<dyn TokenAuthenticator>>,
    /// Decides about every request, unless `rbac` is set.
    pub authorizer: Box<dyn Authorizer>,
    /// Roles and bindings decide about every request. Those that Kubernetes makes at its start, and `policy`, exist.
    pub rbac: bool,
    /// With `rbac`, asked about requests that roles and bindings do not allow.
    pub beyond_rbac: Option<Box<dyn Authorizer>>,
    /// Further roles and bindings that exist, as objects with apiVersion and kind; kept up to date at every start.
    pub policy: Vec<Value>,
    /// PEM of the authority that signed the server's certificate; empty without TLS.
    pub ca_certificate: String,
    /// The PKCS#8 key that signs service account tokens; without one, tokens end with the process.
    pub token_key: Option<Vec<u8>>,
    /// Served at `/metrics`. The server adds its own metrics.
    pub metrics: MetricsRegistry,
    /// What `/readyz` waits for besides the server itself, by name.
    pub ready_checks: Vec<(&'static str, health::Check)>,
    /// What is served at `/readyz/NAME` alone: readiness does not depend on it.
    pub probes: Vec<(&'static str, health::Probe)>,
    /// Plugins that review writes, in the order in which they are called.
    pub admission: Vec<Box<dyn Admission>>,
    /// Records requests.
    pub audit: Option<Arc<dyn AuditLog>>,
    /// How many requests are answered at the same time.
    pub limits: Limits,
    /// Calls webhooks; without it, they fail.
    pub webhooks: Option<Arc<dyn WebhookCaller>>,
    /// Signs approved requests for certificates of clients; without it, they stay approved.
    pub certificate_signer: Option<Arc<dyn CertificateSigner>>,
    /// Time and randomness.
    pub environment: Box<dyn Environment>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            authenticators: Vec::new(),
            authorizer: Box::new(MastersOnly),
            rbac: false,
            beyond_rbac: None,
            policy: Vec::new(),
            ca_certificate: String::new(),
            token_key: None,
            metrics: MetricsRegistry::default(),
            ready_checks: Vec::new(),
            probes: Vec::new(),
            admission: Vec::new(),
            audit: None,
            limits: Limits::default(),
            webhooks: None,
            certificate_signer: None,
            environment: Box::new(SystemEnvironment),
        }
    }
}

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

impl Server {
    /// A server over `store`, ready for requests: built-in kinds and stored definitions are served, and the
    /// namespaces every client expects exist.
    pub async fn start(store: Store, options: Options) -> Result<Self, Status> {
        let key = options.token_key.map_or_else(Signer::generate, Ok).map_err(Status::internal)?;
        let signer = Signer::from_pkcs8(&key).map_err(Status::internal)?;
        let (stopping, _) = tokio::sync::watch::channel(false);
        let rbac = Arc::new(Rbac::new(store.clone()));
        let inner = Inner {
            store,
            registry: Registry::new(builtin::resources()),
            authenticators: options.authenticators,
            authorizer: match (options.rbac, options.beyond_rbac) {
                (false, _) => Arc::from(options.authorizer),
                (true, None) => rbac.clone(),
                (true, Some(beyond)) => Arc::new(RbacAndBeyond { rbac: rbac.clone(), beyond }),
            },
            rbac,
            admission: Chain::new(options.admission),
            audit: options.audit,
            seats: Seats::new(options.limits),
            dynamic: Dynamic::new(options.webhooks),
            certificate_signer: options.certificate_signer,
            environment: options.environment,
            definitions: Arc::new(Mutex::new(())),
            service_claims: services::Claims::default(),
            health: health::Health::with(options.ready_checks, options.probes),
            metrics: metrics::Metrics::new(options.metrics),
            documents: openapi::Cache::default(),
            ca_certificate: options.ca_certificate,
            signer,
            stopping,
            upkeep_idle_at: Default::default(),
        };
        crd::install_all(&inner);
        // Together, so that they share one sync of the disk.
        let namespaces = NAMESPACES.map(|name| {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            ensure(&inner, "namespaces", "", namespace)
        });
        try_join_all(namespaces).await?;
        if options.rbac {
            policy::ensure_policy(&inner, options.policy).await?;
        }
        ensure(&inner, "services", "default", kubernetes_service()).await?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Ends watches and upkeep, and reports not ready, so that load balancers choose another server.
    pub fn stop(&self) {
        self.inner.health.set_stopping();
        self.inner.stopping.send_replace(true);
    }
}

fn kubernetes_service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.96.0.1",
            "clusterIPs": ["10.96.0.1"],
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 443}],
        },
    })
}

pub(crate) async fn ensure(
    server: &Inner,
    plural: &str,
    namespace: &str,
    mut value: Value,
) -> Result<(), Status> {
    let group = value["apiVersion"].as_str().and_then(|v| v.split_once('/')).map_or("", |(group, _)| group);
    let gvr =
        GroupVersionResource { group: group.to_owned(), version: "v1".into(), resource: plural.to_owned() };
    let resource: Arc<Resource> =
        server.registry.find(&gvr).ok_or_else(|| Status::internal(format!("{plural} are not served")))?;
    let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if server.store.get(&resource.key(namespace, &name)).is_some() {
        return Ok(());
    }
    resource.strategy.normalize(&mut value).map_err(Status::internal)?;
    write::match_path(&mut value, namespace, None)?;
    let request = Create {
        value,
        namespace,
        options: &WriteOptions::of_manager("kube-apiserver"),
        owns_fields: true,
        from_update: false,
        by: upkeep::identity::server(),
    };
    match write::create(server, &resource, request).await {
        Err(status) if status.code != 409 => Err(status),
        _ => Ok(()),
    }
}
