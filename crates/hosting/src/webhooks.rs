//! Admission webhooks over HTTPS: certificates that renew themselves, and the configurations that make the API server call.
//!
//! The certificates are in a Secret that all processes share. A process that finds that they must be renewed writes the Secret by
//! compare-and-swap; the others read it at their next look. The configurations are applied after the certificate is
//! served, so that no request meets a server that is not trusted.

use crate::certificates::{CertificateError, Certificates, Lifetimes};
use crate::endpoint::{Endpoint, Handler};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use time::OffsetDateTime;
use tokio::task::AbortHandle;
use transom_engine::{Cluster, Error, ErrorContext, Result};
use transom_object::{GroupVersionKind, meta};

/// The field manager of Secret and configurations.
const MANAGER: &str = "transom-webhooks";
/// How often certificates and configurations are looked at, at most and at least.
const LOOK_INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(600));
/// The pause after a look that failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// How the API server reaches the webhooks.
#[derive(Clone, Debug)]
pub enum Reached {
    /// Through a Service in the cluster.
    Service {
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
    /// At an address, for a process outside of the cluster: `https://host:port`.
    Url(String),
}

/// A ValidatingWebhookConfiguration with one webhook, without `clientConfig`.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// The configuration.
    pub configuration: Value,
    /// The path that the API server calls.
    pub path: &'static str,
}

/// How webhooks are served.
pub struct WebhookOptions {
    /// Where they are served.
    pub address: SocketAddr,
    /// How the API server reaches them.
    pub reached: Reached,
    /// The namespace of the Secret and of the Service.
    pub namespace: String,
    /// The name of the Secret.
    pub secret: String,
    /// How long certificates are valid.
    pub lifetimes: Lifetimes,
    /// What the API server calls.
    pub webhooks: Vec<Webhook>,
    /// Who else has the API server call this endpoint.
    pub announced: Option<Announced>,
}

/// A path whose `clientConfig` is passed on, at the start and when certificates are renewed.
pub struct Announced {
    /// The path.
    pub path: &'static str,
    /// Called with the `clientConfig`.
    pub tell: Arc<dyn Fn(&Value) + Send + Sync>,
}

/// Webhooks that are served. They stop when dropped; the configurations stay, so that what they protect stays protected
/// until another process serves them.
pub struct Webhooks {
    endpoint: Endpoint,
    upkeep: AbortHandle,
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        self.upkeep.abort();
    }
}

impl Webhooks {
    /// Serves, and keeps certificates and configurations up to date. The time is that of the callers' clock.
    pub async fn start(
        cluster: Cluster,
        options: WebhookOptions,
        handler: Handler,
        now: fn() -> OffsetDateTime,
    ) -> Result<Self> {
        let current = Arc::new(Current::default());
        let mut upkeep = Upkeep { cluster, names: options.names(), options, current: current.clone(), now };
        upkeep.certificates().await?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.map_err(Error::permanent)?.with_no_client_auth().with_cert_resolver(current);
        let address = upkeep.options.address;
        let endpoint = Endpoint::https(address, Arc::new(config), handler)
            .await
            .map_err(|e| Error::permanent(format!("cannot serve webhooks on {address}: {e}")))?;
        if let Reached::Url(url) = &mut upkeep.options.reached
            && url.is_empty()
        {
            *url = format!("https://{}", endpoint.address());
        }
        upkeep.configurations().await?;
        let upkeep = tokio::spawn(upkeep.run()).abort_handle();
        Ok(Self { endpoint, upkeep })
    }

    /// The address that is served.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }
}

impl WebhookOptions {
    /// The names in the certificate.
    fn names(&self) -> Vec<String> {
        match &self.reached {
            Reached::Service { name, .. } => {
                let namespace = &self.namespace;
                vec![format!("{name}.{namespace}.svc"), format!("{name}.{namespace}"), name.clone()]
            }
            Reached::Url(url) if url.is_empty() => vec![self.address.ip().to_string()],
            Reached::Url(url) => {
                let host = url.split("://").nth(1).unwrap_or(url).split('/').next().unwrap_or_default();
                let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
                vec![host.trim_matches(['[', ']']).to_owned()]
            }
        }
    }
}

/// The certificate that is presented.
#[derive(Debug, Default)]
struct Current(RwLock<Option<Arc<CertifiedKey>>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Upkeep {
    cluster: Cluster,
    options: WebhookOptions,
    names: Vec<String>,
    current: Arc<Current>,
    now: fn() -> OffsetDateTime,
}

fn permanent(error: CertificateError) -> Error {
    Error::permanent(error)
}

impl Upkeep {
    async fn run(self) {
        let (least, most) = LOOK_INTERVALS;
        let interval = (self.options.lifetimes.server / 12).clamp(least, most);
        let mut wait = interval;
        loop {
            tokio::time::sleep(wait).await;
            wait = match self.look().await {
                Ok(()) => interval,
                Err(e) => {
                    tracing::warn!(error = %e.chain(), "cannot keep the certificates of webhooks");
                    RETRY_INTERVAL.min(interval)
                }
            };
        }
    }

    async fn look(&self) -> Result<()> {
        self.certificates().await?;
        self.configurations().await
    }

    /// Serves the certificate of the Secret, which is written if it must be renewed.
    async fn certificates(&self) -> Result<Certificates> {
        let gvk = GroupVersionKind::new("", "v1", "Secret");
        let WebhookOptions { namespace, secret: name, lifetimes, .. } = &self.options;
        loop {
            let stored = self.cluster.get(&gvk, namespace, name).await;
            let stored = stored.context(format!("cannot get Secret {namespace}/{name}"))?;
            let found = stored.as_ref().and_then(|secret| Certificates::read(&decoded(secret)));
            let renewed = Certificates::renewed(found.as_ref(), &self.names, *lifetimes, (self.now)());
            let certificates = match (renewed.map_err(permanent)?, found) {
                (None, Some(found)) => found,
                (Some(renewed), _) => match self.store(stored, &renewed).await {
                    Ok(()) => renewed,
                    // Another process was faster: what it wrote is served.
                    Err(e) if e.is_conflict() || e.is_already_exists() => continue,
                    Err(e) => return Err(e).context(format!("cannot write Secret {namespace}/{name}")),
                },
                (None, None) => return Err(Error::permanent("there are no certificates")),
            };
            let serving = certificates.serving().map_err(permanent)?;
            *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = Some(serving);
            return Ok(certificates);
        }
    }

    async fn store(&self, stored: Option<Value>, certificates: &Certificates) -> Result<()> {
        let data: BTreeMap<&str, String> =
            certificates.data().into_iter().map(|(key, text)| (key, STANDARD.encode(text))).collect();
        let WebhookOptions { namespace, secret: name, .. } = &self.options;
        match stored {
            Some(mut secret) => {
                secret["data"] = json!(data);
                self.cluster.update(&secret, MANAGER).await.map(drop)
            }
            None => {
                let metadata = json!({"name": name, "namespace": namespace});
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data});
                self.cluster.create(&secret, MANAGER).await.map(drop)
            }
        }
    }

    /// Applies the configurations that are not as they should be.
    async fn configurations(&self) -> Result<()> {
        let authorities = self.certificates().await?.authorities;
        if let Some(Announced { path, tell }) = &self.options.announced {
            tell(&self.client_config(path, &authorities));
        }
        for webhook in &self.options.webhooks {
            let mut wanted = webhook.configuration.clone();
            let client = self.client_config(webhook.path, &authorities);
            if let Some(webhooks) = wanted["webhooks"].as_array_mut() {
                webhooks.iter_mut().for_each(|webhook| webhook["clientConfig"] = client.clone());
            }
            let name = meta::name(&wanted).to_owned();
            let gvk =
                GroupVersionKind::new("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration");
            let stored = self.cluster.get(&gvk, "", &name).await?;
            if stored.is_some_and(|stored| stored["webhooks"][0]["clientConfig"] == client) {
                continue;
            }
            let applied = self.cluster.apply(&wanted, MANAGER).await;
            applied.context(format!("cannot apply ValidatingWebhookConfiguration {name}"))?;
        }
        Ok(())
    }

    fn client_config(&self, path: &str, authorities: &str) -> Value {
        let bundle = STANDARD.encode(authorities);
        match &self.options.reached {
            Reached::Service { name, port } => {
                let namespace = &self.options.namespace;
                let service = json!({"name": name, "namespace": namespace, "path": path, "port": port});
                json!({"service": service, "caBundle": bundle})
            }
            Reached::Url(url) => {
                json!({"url": format!("{}{path}", url.trim_end_matches('/')), "caBundle": bundle})
            }
        }
    }
}

fn decoded(secret: &Value) -> BTreeMap<String, Vec<u8>> {
    let data = secret["data"].as_object().into_iter().flatten();
    let entries = data.filter_map(|(key, text)| Some((key.clone(), STANDARD.decode(text.as_str()?).ok()?)));
    entries.collect()
}
