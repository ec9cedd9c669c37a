//! Serving a function over gRPC as function images do: the same flags, both versions of the protocol, health, metrics,
//! mutual TLS by default with certificates that may be replaced meanwhile, and a graceful stop.

use crate::metrics::{Calls, Metrics};
use crate::proto::{v1, v1beta1};
use crate::tls::ServerTls;
use crate::{Function, RunFunctionRequest, RunFunctionResponse, answer};
use futures_util::Stream;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::server::{Connected, Router, TcpIncoming};
use tonic::{Code, Request, Response, Status};

/// How long calls may take to finish once the server is stopped.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// The flags every function accepts.
#[derive(Clone, Debug, clap::Parser)]
pub struct ServeOptions {
    /// Log at debug level, and as text instead of JSON.
    #[arg(short, long)]
    pub debug: bool,
    /// Network to listen on: tcp, tcp4, tcp6 or unix.
    #[arg(long, default_value = "tcp")]
    pub network: String,
    /// Address to listen on; for the network "unix" a path.
    #[arg(long, default_value = ":9443")]
    pub address: String,
    /// Directory with tls.crt, tls.key, and ca.crt, the authority that must have signed clients' certificates. They may be
    /// replaced while the function is served.
    #[arg(long, env = "TLS_SERVER_CERTS_DIR")]
    pub tls_certs_dir: Option<PathBuf>,
    /// Serve without TLS, even if there are certificates.
    #[arg(long)]
    pub insecure: bool,
    /// Largest request accepted, in megabytes.
    #[arg(long, value_name = "MB", default_value_t = 64)]
    pub max_recv_message_size: usize,
    /// Address to serve metrics at, such as :8080; by default they are not served.
    #[arg(long)]
    pub metrics_address: Option<String>,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            debug: false,
            network: "tcp".to_owned(),
            address: ":9443".to_owned(),
            tls_certs_dir: None,
            insecure: false,
            max_recv_message_size: 64,
            metrics_address: None,
        }
    }
}

impl ServeOptions {
    /// Logs to stderr: readable lines when debugging, else JSON. Does nothing where logging is already set up.
    pub fn init_logging(&self) {
        let builder = tracing_subscriber::fmt().with_writer(std::io::stderr);
        let _ = if self.debug {
            builder.with_max_level(tracing::Level::DEBUG).try_init()
        } else {
            builder.json().with_max_level(tracing::Level::INFO).try_init()
        };
    }
}

/// Why a function cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// There are no certificates, and serving without them was not asked for.
    #[error("no TLS certificates: set --tls-certs-dir or TLS_SERVER_CERTS_DIR, or serve with --insecure")]
    NoCertificates,
    /// A certificate file cannot be read.
    #[error("cannot read {path}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The certificates do not fit together, or are not certificates.
    #[error("the certificates in {} cannot be used: {problem}", dir.display())]
    UnusableCertificates {
        /// Where they are.
        dir: PathBuf,
        /// Why.
        problem: String,
    },
    /// An unknown network.
    #[error("unknown network {0:?}: use tcp, tcp4, tcp6 or unix")]
    Network(String),
    /// The server cannot listen on the address.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// The server failed.
    #[error("cannot serve")]
    Transport(#[from] tonic::transport::Error),
}

/// Serves a function until the process is interrupted or terminated.
pub async fn serve(function: impl Function, options: &ServeOptions) -> Result<(), ServeError> {
    Server::bind(options).await?.run(function, signalled()).await
}

/// Completes on SIGINT or SIGTERM.
async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        tracing::warn!("cannot watch for SIGTERM");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A server that is listening and ready to run a function.
pub struct Server {
    listener: Listener,
    metrics: Option<TcpListener>,
    tls: Option<Arc<ServerTls>>,
    max_message_size: usize,
}

impl Server {
    /// Reads the certificates and listens.
    pub async fn bind(options: &ServeOptions) -> Result<Self, ServeError> {
        let tls = match &options.tls_certs_dir {
            _ if options.insecure => None,
            Some(dir) if !dir.as_os_str().is_empty() => Some(Arc::new(ServerTls::read(dir).await?)),
            _ => return Err(ServeError::NoCertificates),
        };
        let listener = match options.network.as_str() {
            "unix" => {
                let listener = UnixListener::bind(&options.address);
                Listener::Unix(listener.map_err(|source| cannot_listen(&options.address, source))?)
            }
            network @ ("tcp" | "tcp4" | "tcp6") => Listener::Tcp(listen(network, &options.address).await?),
            other => return Err(ServeError::Network(other.to_owned())),
        };
        let metrics = match options.metrics_address.as_deref() {
            Some(address) => Some(listen("tcp", address).await?),
            None => None,
        };
        let max_message_size = options.max_recv_message_size.saturating_mul(1 << 20);
        Ok(Self { listener, metrics, tls, max_message_size })
    }

    /// The address listened on; `None` for a unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match &self.listener {
            Listener::Tcp(listener) => listener.local_addr().ok(),
            Listener::Unix(_) => None,
        }
    }

    /// Where metrics are served, if they are.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `shutdown` completes and the calls under way have ended, or five seconds later.
    pub async fn run(
        self,
        function: impl Function,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let metrics = Metrics::default();
        let router = router(Arc::new(function), self.max_message_size, &metrics).await;
        let shown = async {
            match self.metrics {
                Some(listener) => metrics.serve(listener).await,
                None => std::future::pending().await,
            }
        };
        let draining = tokio::sync::Notify::new();
        let stop = async {
            shutdown.await;
            tracing::info!("stopping");
            draining.notify_one();
        };
        let overdue = async {
            draining.notified().await;
            tokio::time::sleep(GRACE_PERIOD).await;
        };
        let serving = async {
            match self.listener {
                Listener::Tcp(listener) => {
                    if let Ok(address) = listener.local_addr() {
                        tracing::info!(%address, "serving");
                    }
                    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                    serve_incoming(router, self.tls, incoming, stop).await
                }
                Listener::Unix(listener) => {
                    if let Ok(address) = listener.local_addr()
                        && let Some(path) = address.as_pathname()
                    {
                        tracing::info!(address = %path.display(), "serving");
                    }
                    serve_incoming(router, self.tls, UnixListenerStream::new(listener), stop).await
                }
            }
        };
        tokio::select! {
            result = serving => Ok(result?),
            () = overdue => Ok(()),
            () = shown => Ok(()),
        }
    }
}

async fn serve_incoming<IO>(
    router: Router,
    tls: Option<Arc<ServerTls>>,
    incoming: impl Stream<Item = io::Result<IO>> + Send + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error>
where
    IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    match tls {
        Some(tls) => router.serve_with_incoming_shutdown(tls.accept(incoming), stop).await,
        None => router.serve_with_incoming_shutdown(incoming, stop).await,
    }
}

async fn router(function: Arc<impl Function>, max_message_size: usize, metrics: &Metrics) -> Router {
    let service = |name| Service { function: function.clone(), calls: metrics.of(name) };
    let (v1, beta) = (service(SERVICES[0]), service(SERVICES[1]));
    let v1 = v1::function_runner_service_server::FunctionRunnerServiceServer::new(v1)
        .max_decoding_message_size(max_message_size);
    let beta = v1beta1::function_runner_service_server::FunctionRunnerServiceServer::new(beta)
        .max_decoding_message_size(max_message_size);
    let (health, health_service) = tonic_health::server::health_reporter();
    for service in SERVICES {
        health.set_service_status(service, tonic_health::ServingStatus::Serving).await;
    }
    let mut builder = tonic::transport::Server::builder();
    builder.add_service(v1).add_service(beta).add_service(health_service)
}

fn cannot_listen(address: &str, source: std::io::Error) -> ServeError {
    ServeError::Listen { address: address.to_owned(), source }
}

async fn listen(network: &str, address: &str) -> Result<TcpListener, ServeError> {
    let addresses = resolve(network, address).await.map_err(|source| cannot_listen(address, source))?;
    TcpListener::bind(&addresses[..]).await.map_err(|source| cannot_listen(address, source))
}

/// The addresses to try for `host:port`; without a host, every interface.
async fn resolve(network: &str, address: &str) -> std::io::Result<Vec<SocketAddr>> {
    let found: Vec<SocketAddr> = match address.strip_prefix(':') {
        Some(port) => {
            let port = port.parse().map_err(|e| std::io::Error::new(std::io::ErrorKind::InvalidInput, e))?;
            let any = [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)];
            any.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()
        }
        None => tokio::net::lookup_host(address).await?.collect(),
    };
    let wanted = |address: &SocketAddr| match network {
        "tcp4" => address.is_ipv4(),
        "tcp6" => address.is_ipv6(),
        _ => true,
    };
    Ok(found.into_iter().filter(wanted).collect())
}

/// The name of the service in both versions of the protocol.
const SERVICES: [&str; 2] = [
    "apiextensions.fn.proto.v1.FunctionRunnerService",
    "apiextensions.fn.proto.v1beta1.FunctionRunnerService",
];

/// One function behind both versions' services.
struct Service<F> {
    function: Arc<F>,
    calls: Calls,
}

impl<F: Function> Service<F> {
    async fn call(
        &self,
        request: Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        let request = request.into_inner();
        let tag = request.tag().to_owned();
        let began = Instant::now();
        self.calls.start();
        let answer = answer(&*self.function, request).await;
        self.calls.end(answer.as_ref().map_or_else(Status::code, |_| Code::Ok), began.elapsed());
        match &answer {
            Ok(response) => tracing::debug!(tag, results = response.results.len(), "answered"),
            Err(status) => tracing::warn!(tag, %status, "failed"),
        }
        answer.map(Response::new)
    }
}

#[tonic::async_trait]
impl<F: Function> v1::function_runner_service_server::FunctionRunnerService for Service<F> {
    async fn run_function(
        &self,
        request: Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        self.call(request).await
    }
}

#[tonic::async_trait]
impl<F: Function> v1beta1::function_runner_service_server::FunctionRunnerService for Service<F> {
    async fn run_function(
        &self,
        request: Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        self.call(request).await
    }
}
