//! The server to measure, as a kubeconfig describes it.

use crate::failure::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

pub(super) struct Target {
    /// `host:port`, to connect to and as the Host header.
    pub(super) authority: String,
    pub(super) name: ServerName<'static>,
    pub(super) tls: Arc<rustls::ClientConfig>,
    /// `Bearer …`, unless the user has a client certificate.
    pub(super) credential: Option<String>,
}

pub(super) fn read(path: &Path) -> Result<Target, Failure> {
    let unusable = |why: String| {
        Failure::new(format!("cannot use the kubeconfig {}: {why}", path.display())).remedy(
            "pass one with an https server, certificate-authority-data, and a token or a client certificate",
        )
    };
    let text = std::fs::read_to_string(path).map_err(|e| unusable(e.to_string()))?;
    let config = transom_object::yaml::read(&text).map_err(|e| unusable(e.to_string()))?;
    parse(&config).map_err(unusable)
}

fn parse(config: &Value) -> Result<Target, String> {
    let context = &named(config, "contexts", text(config, "current-context")?)?["context"];
    let cluster = &named(config, "clusters", text(context, "cluster")?)?["cluster"];
    let user = &named(config, "users", text(context, "user")?)?["user"];
    let server = text(cluster, "server")?;
    let uri: http::Uri = server.parse().map_err(|e| format!("server {server:?}: {e}"))?;
    let host = uri.host().ok_or_else(|| format!("server {server:?} names no host"))?;
    if uri.scheme_str() != Some("https") {
        return Err(format!("server {server:?} is not https"));
    }
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(Target {
        authority: format!("{}:{}", uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(443)),
        name: ServerName::try_from(host).map_err(|e| format!("server {server:?}: {e}"))?,
        tls: tls(cluster, user)?,
        credential: user["token"].as_str().map(|token| format!("Bearer {token}")),
    })
}

fn named<'a>(config: &'a Value, list: &str, name: &str) -> Result<&'a Value, String> {
    config[list]
        .as_array()
        .and_then(|all| all.iter().find(|one| one["name"] == name))
        .ok_or_else(|| format!("{list} has no {name:?}"))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("{key} is missing"))
}

fn tls(cluster: &Value, user: &Value) -> Result<Arc<rustls::ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(&decoded(cluster, "certificate-authority-data")?)? {
        roots.add(authority).map_err(|e| format!("certificate-authority-data: {e}"))?;
    }
    let builder =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .with_root_certificates(roots);
    let config = if user["client-certificate-data"].is_string() {
        let chain = certificates(&decoded(user, "client-certificate-data")?)?;
        let key = PrivateKeyDer::from_pem_slice(&decoded(user, "client-key-data")?)
            .map_err(|e| format!("client-key-data: {e}"))?;
        builder.with_client_auth_cert(chain, key).map_err(|e| format!("client-certificate-data: {e}"))?
    } else {
        builder.with_no_client_auth()
    };
    Ok(Arc::new(config))
}

fn decoded(value: &Value, key: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text(value, key)?).map_err(|e| format!("{key}: {e}"))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|e| format!("a certificate: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn says_what_a_kubeconfig_lacks() {
        let says = |config: Value| parse(&config).err().unwrap_or_default();
        assert_eq!(says(json!({})), "current-context is missing");
        assert_eq!(says(json!({"current-context": "a"})), "contexts has no \"a\"");
        let plain = json!({
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": {}}],
        });
        assert_eq!(says(plain), "server \"http://127.0.0.1:1\" is not https");
    }
}
