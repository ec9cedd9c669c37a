//! Functions behind web servers: the document is the body of a POST request, and that of its response.

use crate::settings::timeout;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Uri, header};
use http_body_util::Full;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use transom_object::error_chain::chain;
use transom_xapi::inline::WebhookFunction;

/// The largest response, in bytes.
const RESPONSE_BYTES_MAX: usize = 64 << 20;
/// How much of the body of a failed request is in its error, in characters.
const EXCERPT_CHARACTERS_MAX: usize = 300;
const MEDIA_TYPE: &str = "application/yaml";

type SecretData = BTreeMap<String, Vec<u8>>;

/// Sends a document, and returns the one of the response. The Secret has the client's certificate.
pub(crate) async fn post(
    function: &WebhookFunction,
    secret: &SecretData,
    input: Vec<u8>,
) -> Result<Vec<u8>, String> {
    let within = timeout(function.timeout.as_deref()).map_err(|e| format!("webhook.timeout: {e}"))?;
    let posted = tokio::time::timeout(within, exchange(function, secret, input)).await;
    posted.unwrap_or_else(|_| Err(format!("it did not respond within {} s", within.as_secs_f64())))
}

async fn exchange(
    function: &WebhookFunction,
    secret: &SecretData,
    input: Vec<u8>,
) -> Result<Vec<u8>, String> {
    let wrong = |problem: &str| format!("webhook.url: {:?} {problem}", function.url);
    let url: Uri = function.url.parse().map_err(|_| wrong("is not a URL"))?;
    let host = url.host().ok_or_else(|| wrong("has no host"))?;
    let is_https = match url.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(wrong("is neither http:// nor https://")),
    };
    let port = url.port_u16().unwrap_or(if is_https { 443 } else { 80 });
    let address = host.trim_matches(['[', ']']);
    let connected = TcpStream::connect((address, port)).await;
    let stream = connected.map_err(|e| format!("cannot connect to {host}:{port}: {e}"))?;
    // Nothing is kept waiting for more: the request is written at once.
    let _ = stream.set_nodelay(true);
    if !is_https {
        return send(stream, &url, input).await;
    }
    let tls = TlsConnector::from(Arc::new(config(function, secret)?));
    let name =
        ServerName::try_from(address.to_owned()).map_err(|_| wrong("has a host that is not a name"))?;
    let stream =
        tls.connect(name, stream).await.map_err(|e| format!("TLS with {host}:{port} failed: {e}"))?;
    send(stream, &url, input).await
}

/// Which servers are trusted, and the certificate that they are shown.
fn config(function: &WebhookFunction, secret: &SecretData) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let bundle = function.ca_bundle.as_deref().map(|bundle| BASE64_STANDARD.decode(bundle)).transpose();
    let bundle = bundle.map_err(|_| "webhook.caBundle: it is not Base64".to_owned())?;
    match bundle.as_ref().or(secret.get("ca.crt")) {
        Some(pem) => {
            for certificate in certificates(pem).map_err(|e| format!("webhook.caBundle: {e}"))? {
                roots.add(certificate).map_err(|e| format!("webhook.caBundle: {e}"))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots);
    match (secret.get("tls.crt"), secret.get("tls.key")) {
        (Some(certificate), Some(key)) => {
            // The errors of keys say nothing of what is in them.
            let wrong = |what: &str| format!("webhook.tlsSecretRef: {what}");
            let chain = certificates(certificate).map_err(|e| wrong(&format!("tls.crt: {e}")))?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| wrong("tls.key is not a key in PEM"))?;
            builder.with_client_auth_cert(chain, key).map_err(|e| wrong(&e.to_string()))
        }
        (None, None) => Ok(builder.with_no_client_auth()),
        _ => Err("webhook.tlsSecretRef: the Secret has only one of tls.crt and tls.key".to_owned()),
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(found) if found.is_empty() => Err("it has no certificate in PEM".to_owned()),
        Ok(found) => Ok(found),
        Err(e) => Err(format!("it is not valid PEM: {e}")),
    }
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    url: &Uri,
    input: Vec<u8>,
) -> Result<Vec<u8>, String> {
    let request = transom_https::post(url)
        .header(header::CONTENT_TYPE, MEDIA_TYPE)
        .header(header::ACCEPT, format!("{MEDIA_TYPE}, application/json"))
        .body(Full::new(Bytes::from(input)))
        .map_err(|e| e.to_string())?;
    let exchanged = transom_https::exchange(stream, request, RESPONSE_BYTES_MAX).await;
    // With all sources: that the server wants another certificate is in the last one.
    let response = exchanged.map_err(|error| chain(&error))?;
    if response.status().is_success() {
        return Ok(response.into_body().to_vec());
    }
    let text = String::from_utf8_lossy(response.body());
    let excerpt: String =
        text.trim().chars().filter(|c| !c.is_control()).take(EXCERPT_CHARACTERS_MAX).collect();
    Err(format!("it responded with status {}: {excerpt}", response.status()))
}

#[cfg(test)]
#[path = "webhook_tests.rs"]
mod tests;
