//! `transom up`: everything in one process.
//!
//! Stages, each returning what the next one needs: data directory → store → certificates → server → controllers →
//! listener → kubeconfig → wait. Stopping goes the other way.

mod controllers;
mod functions;
mod heads;
mod kubeconfig;
mod listener;
#[cfg(debug_assertions)]
mod mortal;
mod pki;

use crate::cli::Up;
use crate::failure::Failure;
use crate::logging;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use transom_apiserver::{Options, Server};
use transom_controllers::metrics::Metrics;
use transom_controllers::{Protection, Readiness};
use transom_runner::CacheOptions;
use transom_store::{HistoryLimits, OpenError, Store};

/// How long open requests may take to finish when the server stops.
const DRAIN: Duration = Duration::from_secs(5);
const WORKER_STACK: usize = 4 * 1024 * 1024;

pub(crate) fn run(options: Up) -> Result<ExitCode, Failure> {
    logging::init(options.log_format, options.verbose);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(WORKER_STACK)
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("cannot start the runtime: {e}")))?;
    let code = runtime.block_on(serve(options));
    // Watches of clients that do not hang up must not keep the process alive.
    runtime.shutdown_timeout(Duration::from_millis(200));
    code
}

async fn serve(options: Up) -> Result<ExitCode, Failure> {
    let place = Place::settle(&options)?;
    let store = open_store(&options, &place)?;
    let (authority, token_key) = if options.in_memory {
        (pki::Authority::ephemeral()?, None)
    } else {
        let dir = place.data_dir.join("pki");
        (pki::Authority::load_or_create(&dir)?, Some(pki::token_key(&dir)?))
    };
    let ca_certificate = authority.certificate_pem().to_owned();
    let metrics: Arc<Metrics> = Arc::default();
    let counted = metrics.clone();
    let more_metrics: transom_apiserver::MoreMetrics = Box::new(move || counted.render());
    let protection: Arc<Protection> = Arc::default();
    let readiness: Arc<OnceLock<Arc<Readiness>>> = Arc::default();
    let mut server_options = Options {
        ca_certificate,
        token_key,
        more_metrics: Some(more_metrics),
        ready_checks: if options.api_server_only {
            Vec::new()
        } else {
            vec![controllers_are_ready(&readiness)]
        },
        ..Options::default()
    };
    if !options.api_server_only {
        server_options.admission = Box::new(controllers::Guard(protection.clone()));
    }
    let server = Server::start(store.clone(), server_options)
        .await
        .map_err(|e| Failure::new(format!("cannot prepare the API server: {e}")))?;
    let socket = bind(options.listen).await?;
    let controllers = if options.api_server_only {
        None
    } else {
        let templates = place.data_dir.join("templates");
        let certificates = options.tls_client_certs_dir.as_deref();
        let mut functions = functions::Embedded::new(&templates, certificates, metrics.clone())?;
        if options.enable_function_response_cache {
            functions = functions.cached(cache_options(&options));
        }
        let cache = functions.cache();
        let controllers =
            controllers::start(&server, functions, metrics, protection, controller_options(&options)).await?;
        let _ = readiness.set(controllers.readiness());
        let expiry = tokio::spawn(async move {
            if let Some(cache) = cache {
                cache.expire().await;
            }
        });
        Some((controllers, AbortOnDrop(expiry.abort_handle())))
    };
    let address =
        socket.local_addr().map_err(|e| Failure::new(format!("cannot read the listening address: {e}")))?;
    let tls = listener::tls_config(&authority, address, &options.tls_san)?;
    kubeconfig::write(&place.kubeconfig, address, &authority)?;
    let upkeep = tokio::spawn({
        let server = server.clone();
        async move { server.run_upkeep().await }
    });
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let listening = tokio::spawn(listener::serve(socket, tls, server.clone(), stopped));
    announce(address, &place, options.in_memory);

    let reason = wait(&store).await?;
    tracing::debug!("stopping");
    drop(controllers);
    server.stop();
    stop.send_replace(true);
    let _ = tokio::time::timeout(DRAIN, listening).await;
    let _ = upkeep.await;
    store.shutdown().await;
    match reason {
        Ended::Asked => Ok(ExitCode::SUCCESS),
        Ended::Failed(why) => Err(Failure::new(format!("the store failed: {why}"))
            .remedy("check the disk, run `transom db verify`, then start again; every acknowledged write up to here is kept")),
    }
}

/// What `/readyz` waits for besides the server.
fn controllers_are_ready(
    readiness: &Arc<OnceLock<Arc<Readiness>>>,
) -> (&'static str, transom_apiserver::Check) {
    let readiness = readiness.clone();
    ("controllers", Box::new(move || readiness.get().is_some_and(|readiness| readiness.is_reached())))
}

fn cache_options(options: &Up) -> CacheOptions {
    let max_bytes = options.xfn_cache_max_size.saturating_mul(1 << 20);
    CacheOptions { max_ttl: options.xfn_cache_max_ttl, max_bytes }
}

fn controller_options(options: &Up) -> transom_controllers::Options {
    transom_controllers::Options {
        realtime: options.enable_realtime_compositions,
        poll_interval: options.poll_interval,
        min_poll_interval: options.min_poll_interval,
        extra_resources: !options.disable_extra_resources,
        ..transom_controllers::Options::default()
    }
}

/// A task that ends with its owner.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Where things are kept.
struct Place {
    data_dir: PathBuf,
    kubeconfig: PathBuf,
}

impl Place {
    fn settle(options: &Up) -> Result<Self, Failure> {
        let data_dir = match (&options.data_dir, options.in_memory) {
            (Some(dir), _) => dir.clone(),
            (None, true) => std::env::temp_dir().join(format!("transom-{}", std::process::id())),
            (None, false) => default_data_dir()?,
        };
        let kubeconfig = options.kubeconfig.clone().unwrap_or_else(|| data_dir.join("kubeconfig"));
        if !options.in_memory || options.kubeconfig.is_none() {
            create_private(&data_dir)?;
        }
        let kubeconfig = std::path::absolute(&kubeconfig).unwrap_or(kubeconfig);
        Ok(Self { data_dir, kubeconfig })
    }
}

pub(crate) fn default_data_dir() -> Result<PathBuf, Failure> {
    let set = |key: &str| std::env::var_os(key).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(dir) = set("XDG_DATA_HOME") {
        return Ok(dir.join("transom"));
    }
    set("HOME")
        .map(|home| home.join(".local/share/transom"))
        .ok_or_else(|| Failure::new("no home directory to keep data in").remedy("pass --data-dir DIR"))
}

/// A directory only its owner can enter.
fn create_private(dir: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|e| {
        Failure::new(format!("cannot create the data directory {}: {e}", dir.display()))
            .remedy("pass another one with --data-dir DIR")
    })
}

fn open_store(options: &Up, place: &Place) -> Result<Store, Failure> {
    let defaults = transom_store::Options::default();
    let store_options = transom_store::Options {
        history: HistoryLimits { min_age: options.history_window, ..defaults.history.clone() },
        ..defaults
    };
    if options.in_memory {
        return Ok(Store::in_memory(store_options));
    }
    #[cfg(debug_assertions)]
    let store_options = mortal::settle(store_options);
    let dir = place.data_dir.join("store");
    Store::open(&dir, store_options).map_err(|e| explain(&e))
}

pub(crate) fn explain(error: &OpenError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        OpenError::Locked { .. } => failure.remedy("stop the other instance, or pass another --data-dir"),
        OpenError::NewerFormat { .. } => {
            failure.remedy("run the version of transom that wrote it, or a newer one")
        }
        OpenError::Corrupt { .. } => failure,
        OpenError::Io { .. } => {
            failure.remedy("check that the directory is readable and writable, or pass another --data-dir")
        }
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|e| {
        let failure = Failure::new(format!("cannot listen on {address}: {e}"));
        match e.kind() {
            std::io::ErrorKind::AddrInUse => failure
                .remedy("stop what uses the port, or pass --listen 127.0.0.1:PORT (0 picks a free one)"),
            _ => failure.remedy("pass another address with --listen"),
        }
    })
}

fn announce(address: SocketAddr, place: &Place, in_memory: bool) {
    let kept = if in_memory {
        "in memory (nothing survives a stop)".to_owned()
    } else {
        format!("in {}", place.data_dir.display())
    };
    anstream::eprintln!("Transom {} serves https://{address}, data {kept}.", env!("CARGO_PKG_VERSION"));
    anstream::eprintln!("In another terminal:");
    anstream::println!("export KUBECONFIG={}", place.kubeconfig.display());
    anstream::eprintln!("kubectl get namespaces");
}

enum Ended {
    Asked,
    Failed(String),
}

/// Until a signal asks to stop or the store fails for good. A second signal ends the process at once.
async fn wait(store: &Store) -> Result<Ended, Failure> {
    let broken = |e: std::io::Error| Failure::new(format!("cannot wait for signals: {e}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(broken)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(broken)?;
    let mut failed = store.failed();
    let ended = tokio::select! {
        _ = terminate.recv() => Ended::Asked,
        _ = interrupt.recv() => Ended::Asked,
        why = failed.wait_for(Option::is_some) => {
            Ended::Failed(why.ok().and_then(|w| w.clone()).unwrap_or_else(|| "its writer stopped".into()))
        }
    };
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        #[expect(clippy::exit, reason = "the user asked twice")]
        std::process::exit(130);
    });
    Ok(ended)
}
