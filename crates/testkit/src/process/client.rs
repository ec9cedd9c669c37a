//! A small HTTPS client: one HTTP/2 connection, and access to raw TLS for requests that no client library sends.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The content of a kubeconfig: address, certificate authority, identity.
#[derive(Clone)]
pub struct Access {
    /// Where the API is served.
    pub address: SocketAddr,
    authority: Vec<u8>,
    /// Certificate and key, in PEM; without them the client is anonymous.
    identity: Option<(Vec<u8>, Vec<u8>)>,
    token: Option<String>,
}

/// The connection ended before the response: the request may have been carried out or not.
#[derive(Debug)]
pub struct Gone(pub String);

impl<E: std::error::Error> From<E> for Gone {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl Access {
    /// Access with the credentials of a kubeconfig.
    pub fn from_kubeconfig(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("the kubeconfig is readable");
        let config = transom_object::yaml::read(&text).expect("the kubeconfig is YAML");
        let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
        let server = cluster["server"].as_str().expect("a server");
        let decoded = |v: &Value| STANDARD.decode(v.as_str().expect("base64")).expect("base64");
        Self {
            address: server.strip_prefix("https://").and_then(|a| a.parse().ok()).expect("an address"),
            authority: decoded(&cluster["certificate-authority-data"]),
            identity: Some((decoded(&user["client-certificate-data"]), decoded(&user["client-key-data"]))),
            token: None,
        }
    }

    /// The same address without credentials.
    #[must_use]
    pub fn anonymous(&self) -> Self {
        Self { identity: None, token: None, ..self.clone() }
    }

    /// The same address with a bearer token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.anonymous() }
    }

    /// The same address with a client certificate and its key, in PEM.
    #[must_use]
    pub fn with_certificate(&self, certificate: &[u8], key: &[u8]) -> Self {
        Self { identity: Some((certificate.to_vec(), key.to_vec())), ..self.anonymous() }
    }

    /// An encrypted connection on which nothing has been sent yet.
    pub async fn dial(&self, protocol: &str) -> Result<TlsStream<TcpStream>, Gone> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&self.authority).expect("the authority is PEM"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder.with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate).expect("the certificate is PEM")],
                PrivateKeyDer::from_pem_slice(key).expect("the key is PEM"),
            )?,
        };
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::from(self.address.ip());
        Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
    }
}

/// One HTTP/2 connection. Clones share it.
#[derive(Clone)]
pub struct Client {
    sender: http2::SendRequest<Full<Bytes>>,
    authority: String,
    token: Option<String>,
}

/// A response, read to its end.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Reply {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Whether the status is one of success.
    pub fn ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The object's resourceVersion, or the list's; 0 without one.
    pub fn revision(&self) -> u64 {
        self.json()["metadata"]["resourceVersion"].as_str().and_then(|s| s.parse().ok()).unwrap_or(0)
    }

    /// A failure must be a Status that repeats the code and has a message.
    pub fn assert_status(&self, code: u16, context: &str) {
        let body = self.json();
        assert_eq!(self.status, code, "{context}: {}", self.text());
        assert_eq!(body["kind"], "Status", "{context}: {}", self.text());
        assert_eq!(body["code"], code, "{context}: {}", self.text());
        assert!(!body["message"].as_str().unwrap_or_default().is_empty(), "{context}: {}", self.text());
    }
}

impl Client {
    /// Connects to a server.
    pub async fn connect(access: &Access) -> Result<Self, Gone> {
        let io = TokioIo::new(access.dial("h2").await?);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
        // The connection ends with the last sender, or with the server.
        tokio::spawn(connection);
        Ok(Self { sender, authority: access.address.to_string(), token: access.token.clone() })
    }

    /// A request with the credentials of the client.
    pub fn request(&self, method: Method, path: &str) -> http::request::Builder {
        let mut request = Request::builder().method(method).uri(format!("https://{}{path}", self.authority));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request
    }

    /// Sends and waits for the headers of the response.
    pub async fn begin(
        &self,
        request: http::request::Builder,
        body: impl Into<Bytes>,
    ) -> Result<Response<Incoming>, Gone> {
        let request = request.body(Full::new(body.into()))?;
        let mut sender = self.sender.clone();
        sender.ready().await?;
        let answer = tokio::time::timeout(super::WAIT_LIMIT, sender.send_request(request)).await;
        Ok(answer.map_err(|_| Gone("no response in time".to_owned()))??)
    }

    /// Sends and waits for the whole response.
    pub async fn send(&self, request: http::request::Builder, body: impl Into<Bytes>) -> Result<Reply, Gone> {
        let (head, body) = self.begin(request, body).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Reply { status: head.status.as_u16(), headers: head.headers, body })
    }

    /// Reads an object or a list.
    pub async fn get(&self, path: &str) -> Result<Reply, Gone> {
        self.send(self.request(Method::GET, path), "").await
    }

    /// Creates an object.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Reply, Gone> {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        self.send(request, body.to_string()).await
    }

    /// Replaces an object.
    pub async fn put(&self, path: &str, body: &Value) -> Result<Reply, Gone> {
        let request = self.request(Method::PUT, path).header("content-type", "application/json");
        self.send(request, body.to_string()).await
    }

    /// Patches an object; `ty` is the media type of the patch.
    pub async fn patch(&self, path: &str, ty: &str, body: impl Into<Bytes>) -> Result<Reply, Gone> {
        self.send(self.request(Method::PATCH, path).header("content-type", ty), body).await
    }

    /// Patches an object by a JSON merge patch.
    pub async fn merge(&self, path: &str, body: &Value) -> Result<Reply, Gone> {
        self.patch(path, "application/merge-patch+json", body.to_string()).await
    }

    /// Deletes an object.
    pub async fn delete(&self, path: &str) -> Result<Reply, Gone> {
        self.send(self.request(Method::DELETE, path), "").await
    }

    /// Opens a watch.
    pub async fn watch(&self, path: &str) -> Result<Lines, Gone> {
        let response = self.begin(self.request(Method::GET, path), "").await?;
        assert_eq!(response.status(), 200, "watch {path}");
        Ok(Lines { body: response.into_body(), buffer: Vec::new() })
    }
}

/// A stream of JSON lines.
pub struct Lines {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Lines {
    /// The next whole line; `None` when the stream is over or broken, whatever is left of a line.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("a watch sends JSON lines"));
            }
            let frame = self.body.frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.buffer.extend_from_slice(data);
            }
        }
    }
}
