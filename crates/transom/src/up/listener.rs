//! HTTPS: accepts connections, vouches for client certificates, and hands requests to the server.

use super::heads::{Heads, Heard};
use super::pki::Authority;
use crate::failure::Failure;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use transom_apiserver::{Identity, Server};

const HANDSHAKE: Duration = Duration::from_secs(10);
/// For the head of a request from its first byte, and for the first request of a connection.
const HEADERS: Duration = Duration::from_secs(15);
/// Between two requests on an HTTP/1 connection, as long as clients keep them.
const IDLE: Duration = Duration::from_secs(180);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const HEADER_BYTES: u32 = 64 * 1024;
/// Clients keep hundreds of watches on one connection.
const STREAMS: u32 = 2_000;

pub(super) fn tls_config(
    authority: &Authority,
    address: SocketAddr,
    host: &str,
    more_names: &[String],
) -> Result<Arc<rustls::ServerConfig>, Failure> {
    let mut names: Vec<String> =
        ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
            .map(str::to_owned)
            .to_vec();
    names.push(address.ip().to_string());
    names.extend(hostname());
    names.extend(Some(host).filter(|host| is_host_name(host)).map(str::to_owned));
    names.extend(more_names.iter().cloned());
    let leaf = authority.server(&names)?;
    build_config(authority.certificate_pem(), &leaf.certificate, &leaf.key)
        .map_err(|e| Failure::new(format!("cannot set up TLS: {e}")))
}

fn hostname() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim()).filter(|name| is_host_name(name)).map(str::to_owned)
}

fn is_host_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
}

fn build_config(
    ca: &str,
    certificate: &str,
    key: &str,
) -> Result<Arc<rustls::ServerConfig>, Box<dyn std::error::Error>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes())?)?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes())?],
            PrivateKeyDer::from_pem_slice(key.as_bytes())?,
        )?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Accepts until told to stop, then lets open requests finish.
pub(super) async fn serve(
    socket: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    server: Server,
    mut stop: watch::Receiver<bool>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let graceful = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(e) => {
                    // Out of file descriptors, most likely: others will close.
                    tracing::warn!(error = %e, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = async { drop(stop.wait_for(|stop| *stop).await) } => break,
        };
        let (acceptor, server, watcher) = (acceptor.clone(), server.clone(), graceful.watcher());
        tokio::spawn(async move {
            if let Err(e) = connection(stream, acceptor, server, watcher).await {
                tracing::debug!(error = %e, "a connection ended");
            }
        });
    }
    graceful.shutdown().await;
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    server: Server,
    watcher: hyper_util::server::graceful::Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let tls = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await??;
    let identity =
        tls.get_ref().1.peer_certificates().and_then(|chain| chain.first()).and_then(|c| identity_of(c));
    let is_http2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    let heads = Heads::new();
    let service = service_fn({
        let heads = Arc::clone(&heads);
        move |mut request: Request<Incoming>| {
            let serving = heads.complete();
            if let Some(identity) = &identity {
                request.extensions_mut().insert(identity.clone());
            }
            let server = server.clone();
            async move {
                let response = server.handle(request).await;
                drop(serving);
                Ok::<_, std::convert::Infallible>(response)
            }
        }
    });
    let builder = http_builder(is_http2);
    let stream = TokioIo::new(Heard { stream: tls, heads: Arc::clone(&heads) });
    let serving = watcher.watch(builder.serve_connection(stream, service).into_owned());
    let mut serving = std::pin::pin!(serving);
    if let Ok(ended) = tokio::time::timeout(HEADERS, &mut serving).await {
        return ended;
    }
    if !heads.any() {
        return Err("no request came in time".into());
    }
    if is_http2 {
        // Its frames come at any time; its library closes connections that do not answer.
        return serving.await;
    }
    tokio::select! {
        ended = &mut serving => ended,
        () = heads.overdue(HEADERS) => Err("a request did not come to its end in time".into()),
    }
}

fn http_builder(is_http2: bool) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(HEADER_BYTES as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        // A peer that vanished without a word would keep its watches for ever.
        .keep_alive_interval(KEEP_ALIVE)
        .max_header_list_size(HEADER_BYTES)
        .max_concurrent_streams(STREAMS);
    if is_http2 { builder.http2_only() } else { builder.http1_only() }
}

/// The verified certificate's common name is the user, its organizations the groups.
fn identity_of(certificate: &CertificateDer<'_>) -> Option<Identity> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let user = parsed.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups: Vec<String> =
        parsed.subject().iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect();
    Some(Identity::new(user, groups))
}
