//! An HTTP endpoint that answers each request by a function.

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// A connection that sends no headers for this long is closed.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a request's body: an API server sends objects of at most 3 MiB, old and new.
const MAX_BODY_BYTES: usize = 16 << 20;
/// The most connections at a time; further ones wait.
const MAX_CONNECTIONS: usize = 512;

/// A request.
pub struct Question {
    /// The method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The body.
    pub body: Bytes,
}

/// A response.
pub struct Answer {
    /// The status code.
    pub status: StatusCode,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// A text.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: text.into().into_bytes() }
    }

    /// There is nothing at the path.
    pub fn not_found() -> Self {
        Self::text(StatusCode::NOT_FOUND, "404 page not found\n")
    }
}

/// Answers requests.
pub type Handler = Arc<dyn Fn(Question) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// An endpoint that accepts connections until it is dropped.
pub struct Endpoint {
    address: SocketAddr,
    task: AbortHandle,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Endpoint {
    /// Serves plain HTTP.
    pub async fn http(address: SocketAddr, handler: Handler) -> std::io::Result<Self> {
        Self::start(address, None, handler).await
    }

    /// Serves HTTPS.
    pub async fn https(
        address: SocketAddr,
        tls: Arc<rustls::ServerConfig>,
        handler: Handler,
    ) -> std::io::Result<Self> {
        Self::start(address, Some(TlsAcceptor::from(tls)), handler).await
    }

    async fn start(address: SocketAddr, tls: Option<TlsAcceptor>, handler: Handler) -> std::io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        let task = tokio::spawn(accept(socket, tls, handler)).abort_handle();
        Ok(Self { address, task })
    }

    /// The address that is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn accept(socket: TcpListener, tls: Option<TlsAcceptor>, handler: Handler) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Connections end with this task: dropping the set aborts them.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        match socket.accept().await {
            Ok((stream, _)) => {
                let (handler, tls) = (handler.clone(), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => connection(stream, handler).await,
                        Some(tls) => {
                            match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
                                Ok(Ok(stream)) => connection(stream, handler).await,
                                _ => tracing::debug!("a TLS handshake failed"),
                            }
                        }
                    }
                    drop(slot);
                });
            }
            Err(e) => {
                // Most likely the process is out of file descriptors: other connections will close.
                tracing::warn!(error = %e, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Serves one connection until its peer closes it.
async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, handler: Handler) {
    let service = service_fn(move |request: http::Request<Incoming>| {
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(respond(request, handler).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    if let Err(e) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(error = %e, "a connection ended");
    }
}

async fn respond(request: http::Request<Incoming>, handler: Handler) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let answer = match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(body) => {
            let path = head.uri.path().to_owned();
            handler(Question { method: head.method, path, body: body.to_bytes() }).await
        }
        Err(_) => Answer::text(StatusCode::PAYLOAD_TOO_LARGE, "the body could not be read or is too large\n"),
    };
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() = answer.status;
    let content_type = http::HeaderValue::from_static(answer.content_type);
    response.headers_mut().insert(http::header::CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn requests_are_answered_by_the_function_until_the_endpoint_is_dropped() {
        let handler: Handler = Arc::new(|question: Question| {
            Box::pin(async move {
                match question.path.as_str() {
                    "/known" => Answer::text(StatusCode::OK, "yes"),
                    _ => Answer::not_found(),
                }
            })
        });
        let endpoint = Endpoint::http("127.0.0.1:0".parse().unwrap(), handler).await.unwrap();
        let address = endpoint.address();
        assert!(get(address, "/known?query=1").await.ends_with("yes"));
        assert!(get(address, "/unknown").await.starts_with("HTTP/1.1 404"));
        drop(endpoint);
        let refused = async {
            while tokio::net::TcpStream::connect(address).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), refused).await.expect("nothing listens any longer");
    }
}
