//! The HTTPS endpoint: accepts connections, verifies client certificates, and hands requests to the server.
//!
//! The identity of a verified certificate travels in the request's extensions, never in a header that a client could set.

use super::args::ListenerArgs;
use super::pki::Authority;
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
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use transom_apiserver::{ClientAddress, Identity, Server};
use transom_console::Failure;
use transom_hosting::{HeaderProgress, ObservedStream};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two requests on an HTTP/1 connection: as long as common clients keep idle connections.
const IDLE_TIMEOUT: Duration = Duration::from_secs(180);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const MAX_HEADER_BYTES: u32 = 64 * 1024;
/// Clients keep hundreds of watches on one connection.
const MAX_CONCURRENT_STREAMS: u32 = 2_000;
/// How long open requests may take to finish when the server stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// A bound socket with its certificate. Nothing is accepted yet.
pub(crate) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    tls: Arc<rustls::ServerConfig>,
    header_timeout: Duration,
}

impl Listener {
    pub(super) async fn bind(args: &ListenerArgs, authority: &Authority) -> Result<Self, Failure> {
        let socket = args.listen.bind().await?;
        let address = socket
            .local_addr()
            .map_err(|e| Failure::new(format!("cannot read the listening address: {e}")))?;
        let tls = tls_config(authority, address, args.listen.host(), &args.tls_san)?;
        Ok(Self { socket, address, tls, header_timeout: args.header_timeout })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts connections on the runtime it is called on.
    pub(super) fn serve(self, server: Server) -> Listening {
        let (stop, stopped) = watch::channel(false);
        Listening { address: self.address, stop, task: tokio::spawn(accept(self, server, stopped)) }
    }
}

/// A listener that accepts connections.
pub(crate) struct Listening {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Listening {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more, and waits until open requests are finished, up to a limit.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        if tokio::time::timeout(DRAIN_TIMEOUT, self.task).await.is_err() {
            let limit = DRAIN_TIMEOUT.as_secs();
            tracing::warn!("requests that were not finished {limit} s after the stop began are cut off");
        }
    }
}

fn tls_config(
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

/// Accepts connections until `stop` is true, then waits until open requests are finished.
async fn accept(listener: Listener, server: Server, mut stop: watch::Receiver<bool>) {
    let Listener { socket, tls, header_timeout, .. } = listener;
    let acceptor = TlsAcceptor::from(tls);
    let graceful = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(e) => {
                    // Most likely the process is out of file descriptors: other connections will close.
                    tracing::warn!(error = %e, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = async { drop(stop.wait_for(|stop| *stop).await) } => break,
        };
        let (acceptor, server, watcher) = (acceptor.clone(), server.clone(), graceful.watcher());
        tokio::spawn(async move {
            if let Err(e) = connection(stream, acceptor, server, header_timeout, watcher).await {
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
    header_timeout: Duration,
    watcher: hyper_util::server::graceful::Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let address = ClientAddress(stream.peer_addr()?.ip());
    let tls = tokio::time::timeout(HANDSHAKE_TIMEOUT.min(header_timeout), acceptor.accept(stream)).await??;
    let identity =
        tls.get_ref().1.peer_certificates().and_then(|chain| chain.first()).and_then(|c| identity_of(c));
    let is_http2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    let headers = HeaderProgress::new();
    let service = service_fn({
        let headers = Arc::clone(&headers);
        move |mut request: Request<Incoming>| {
            let serving = headers.complete();
            request.extensions_mut().insert(address);
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
    let stream = TokioIo::new(ObservedStream { stream: tls, headers: Arc::clone(&headers) });
    let serving = watcher.watch(builder.serve_connection(stream, service).into_owned());
    let mut serving = std::pin::pin!(serving);
    if let Ok(ended) = tokio::time::timeout(header_timeout, &mut serving).await {
        return ended;
    }
    if !headers.any() {
        return Err("no request arrived in time".into());
    }
    if is_http2 {
        // Its frames arrive at any time; its library closes connections that do not answer pings.
        return serving.await;
    }
    tokio::select! {
        ended = &mut serving => ended,
        () = headers.overdue(header_timeout) => Err("the headers of a request were not complete in time".into()),
    }
}

fn http_builder(is_http2: bool) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        // Without pings the watches of a peer that vanished would stay open indefinitely.
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS);
    if is_http2 { builder.http2_only() } else { builder.http1_only() }
}

/// The verified certificate's common name is the user, its organizations the groups.
fn identity_of(certificate: &CertificateDer<'_>) -> Option<Identity> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let user = parsed.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups: Vec<String> =
        parsed.subject().iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect();
    let digest: String = Sha256::digest(certificate).iter().map(|byte| format!("{byte:02x}")).collect();
    Some(Identity::new(user, groups).with_credential(format!("X509SHA256={digest}")))
}
