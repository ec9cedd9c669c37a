//! Writes the kubeconfig of a user: one context, with a token in place of a certificate.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Where the control plane is, and by which certificates it is known.
pub(super) struct Server {
    url: String,
    /// In PEM; empty for a server with a public certificate.
    authorities: String,
}

impl Server {
    pub(super) fn of(config: &kube::Config) -> Self {
        let authorities = config.root_cert.iter().flatten().map(|der| pem(der)).collect();
        Self { url: config.cluster_url.to_string().trim_end_matches('/').to_owned(), authorities }
    }
}

fn pem(der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// A kubeconfig with one context, in YAML.
pub(super) fn write(server: &Server, user: &str, namespace: Option<&str>, token: &str) -> String {
    let mut cluster = json!({"server": server.url});
    if !server.authorities.is_empty() {
        cluster["certificate-authority-data"] = STANDARD.encode(&server.authorities).into();
    }
    let mut context = json!({"cluster": "transom", "user": user});
    if let Some(namespace) = namespace {
        context["namespace"] = namespace.into();
    }
    let config: Value = json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "transom", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "transom", "context": context}],
        "current-context": "transom",
    });
    transom_object::yaml::write(&config)
}
