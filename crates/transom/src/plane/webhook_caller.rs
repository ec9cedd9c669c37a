//! Calls webhooks over HTTPS: one connection for each call, its certificate verified by the authorities of the
//! configuration or else those of the system.

use bytes::Bytes;
use http::header;
use http_body_util::Full;
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use transom_apiserver::{WebhookCall, WebhookCallError, WebhookCaller, async_trait};
use transom_https::{ExchangeError, Verifier};

/// The largest response of a webhook.
const MAX_RESPONSE_BYTES: usize = 3 * 1024 * 1024;

/// The caller of a plane.
pub(super) struct HttpsCaller;

#[async_trait]
impl WebhookCaller for HttpsCaller {
    async fn call(&self, call: WebhookCall) -> Result<Bytes, WebhookCallError> {
        let url = call.url.parse::<http::Uri>();
        let url = url.map_err(|e| WebhookCallError::configuration("the URL is not one", e))?;
        let host = url.host().ok_or_else(no_host)?.trim_matches(['[', ']']).to_owned();
        let port = url.port_u16().unwrap_or(443);
        let config = client_config(&call.authorities)?;
        let (address, port) = call.connect_to.clone().unwrap_or_else(|| (host.clone(), port));
        let stream = TcpStream::connect((address.as_str(), port)).await;
        let stream = stream.map_err(|e| not_connected(&address, port, &e))?;
        let server = ServerName::try_from(host.clone())
            .map_err(|e| WebhookCallError::configuration(format!("{host:?} is not a host"), e))?;
        let tls = TlsConnector::from(Arc::new(config));
        let stream = tls.connect(server, stream).await;
        exchange(stream.map_err(|e| WebhookCallError::connection("tls", e))?, &url, call.body).await
    }
}

fn no_host() -> WebhookCallError {
    WebhookCallError::Configuration { what: "the URL has no host".to_owned(), source: None }
}

/// Worded as by Go, whose text of the operating system's error differs from Rust's: so that one is not the source.
fn not_connected(address: &str, port: u16, error: &std::io::Error) -> WebhookCallError {
    let what = format!("dial tcp {address}:{port}: connect: {}", plain(error));
    WebhookCallError::Connection { what, source: None }
}

async fn exchange<S>(stream: S, url: &http::Uri, body: Vec<u8>) -> Result<Bytes, WebhookCallError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let request = transom_https::post(url)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .body(Full::new(Bytes::from(body)))
        .map_err(|e| WebhookCallError::Exchange(e.into()))?;
    let exchanged = transom_https::exchange(stream, request, MAX_RESPONSE_BYTES).await;
    let response = exchanged.map_err(|error| match error {
        ExchangeError::Request(e) => WebhookCallError::Exchange(e.into()),
        response @ ExchangeError::Response(_) => WebhookCallError::Exchange(response.into()),
    })?;
    let status = response.status();
    let body = response.into_body();
    if status.is_success() { Ok(body) } else { Err(refused(status, &body)) }
}

fn refused(status: http::StatusCode, body: &[u8]) -> WebhookCallError {
    let text = String::from_utf8_lossy(body);
    WebhookCallError::Refused { status, text: text.trim().chars().take(200).collect() }
}

/// The operating system's words for an error, without Rust's number of it.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

fn client_config(authorities: &[u8]) -> Result<ClientConfig, WebhookCallError> {
    let mut roots = RootCertStore::empty();
    let mut given = Vec::new();
    if authorities.is_empty() {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
    } else {
        for certificate in CertificateDer::pem_slice_iter(authorities) {
            let certificate =
                certificate.map_err(|e| WebhookCallError::configuration("the caBundle cannot be read", e))?;
            roots.add(certificate.clone()).map_err(|e| {
                WebhookCallError::configuration("the caBundle contains a malformed certificate", e)
            })?;
            given.push(certificate);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let by_authority = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|e| WebhookCallError::configuration("no authority is trusted", e))?;
    let verifier = Verifier::of_listed(by_authority, given, &provider);
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|e| WebhookCallError::Connection { what: e.to_string(), source: None })?;
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}
