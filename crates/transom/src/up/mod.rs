//! `transom up`: everything in one process.
//!
//! Stages, each returning what the next one needs: data directory → store → certificates → server → socket → kubeconfig →
//! controllers → listener → wait. Stopping goes the other way. A start that fails leaves no new data directory behind.

mod announce;
mod controllers;
mod functions;
mod heads;
mod kubeconfig;
mod listen;
mod listener;
#[cfg(debug_assertions)]
mod mortal;
mod pki;
mod place;
mod runtimes;

pub(crate) use listen::Listen;
pub(crate) use place::default_data_dir;

use crate::cli::Up;
use crate::failure::Failure;
use crate::logging;
use announce::Announcer;
use place::Place;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use transom_apiserver::{Options, Server};
use transom_controllers::{Controllers, Protection};
use transom_engine::Metrics;
use transom_engine::Readiness;
use transom_runner::CacheOptions;
use transom_store::{HistoryLimits, OpenError, Store};

/// How long open requests may take to finish when the server stops.
const DRAIN: Duration = Duration::from_secs(5);

pub(crate) fn run(options: Up) -> Result<ExitCode, Failure> {
    logging::init(options.log_format, options.verbose);
    let announcer = Announcer { format: options.log_format, in_memory: options.in_memory };
    let ended = runtimes::Runtimes::start()?.run(|working| serve(options, announcer, working));
    Ok(match ended {
        Ok(()) => {
            announcer.stopped();
            ExitCode::SUCCESS
        }
        Err(failure) => {
            announcer.failed(&failure);
            ExitCode::FAILURE
        }
    })
}

/// Serves on the runtime it is called on; controllers and upkeep run on the other one.
async fn serve(options: Up, announcer: Announcer, working: Handle) -> Result<(), Failure> {
    let place = Place::create(&options)?;
    let store = open_store(&options, &place).inspect_err(|_| {
        if place.temporary {
            place.discard();
        }
    })?;
    // Before anything is announced: a client that reads that the plane serves may stop it at once.
    let signals = Signals::handle()?;
    let unused = place.is_new() && store.resources().is_empty();
    let plane = match Plane::start(&options, &place, &store, announcer, &working).await {
        Ok(plane) => plane,
        Err(failure) => {
            if unused {
                // While the store is locked: no other process has anything in there.
                place.discard();
            }
            store.shutdown().await;
            return Err(failure);
        }
    };
    let ended = wait(&store, signals).await;
    plane.stop().await;
    store.shutdown().await;
    if place.temporary {
        place.discard();
    }
    match ended {
        Ended::Asked => Ok(()),
        Ended::Failed(why) => Err(Failure::new(format!("the store failed: {why}"))
            .remedy("check the disk, run `transom db verify`, then start again; every acknowledged write up to here is kept")),
    }
}

/// A plane that answers requests.
struct Plane {
    server: Server,
    controllers: Option<(Controllers, AbortOnDrop)>,
    upkeep: JoinHandle<()>,
    listening: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Plane {
    async fn start(
        options: &Up,
        place: &Place,
        store: &Store,
        announcer: Announcer,
        working: &Handle,
    ) -> Result<Self, Failure> {
        let (authority, token_key) = if options.in_memory {
            (pki::Authority::ephemeral()?, None)
        } else {
            let dir = place.data_dir.join("pki");
            (pki::Authority::load_or_create(&dir)?, Some(pki::token_key(&dir)?))
        };
        let metrics: Arc<Metrics> = Arc::default();
        let protection: Arc<Protection> = Arc::default();
        let readiness: Arc<OnceLock<Arc<Readiness>>> = Arc::default();
        let counted = metrics.clone();
        let mut server_options = Options {
            ca_certificate: authority.certificate_pem().to_owned(),
            token_key,
            more_metrics: Some(Box::new(move || counted.render())),
            ..Options::default()
        };
        if !options.api_server_only {
            server_options.ready_checks = vec![controllers_are_ready(&readiness)];
            server_options.admission = vec![Box::new(controllers::UsageProtection(protection.clone()))];
        }
        let server = Server::start(store.clone(), server_options)
            .await
            .map_err(|e| Failure::new(format!("cannot prepare the API server: {e}")))?;
        let socket = options.listen.bind().await?;
        let address = socket
            .local_addr()
            .map_err(|e| Failure::new(format!("cannot read the listening address: {e}")))?;
        let tls = listener::tls_config(&authority, address, options.listen.host(), &options.tls_san)?;
        kubeconfig::write(&place.kubeconfig, address, &authority)?;
        let controllers = if options.api_server_only {
            None
        } else {
            let started =
                start_controllers(options, place, &server, metrics, protection, announcer, working).await?;
            let _ = readiness.set(started.0.readiness());
            Some(started)
        };
        let upkeep = working.spawn({
            let server = server.clone();
            async move { server.run_upkeep().await }
        });
        let (stop, stopped) = watch::channel(false);
        let listening = tokio::spawn(listener::serve(socket, tls, server.clone(), stopped));
        announcer.serving(address, place);
        Ok(Self { server, controllers, upkeep, listening, stop })
    }

    async fn stop(self) {
        tracing::debug!("stopping");
        drop(self.controllers);
        self.server.stop();
        self.stop.send_replace(true);
        let _ = tokio::time::timeout(DRAIN, self.listening).await;
        let _ = self.upkeep.await;
    }
}

async fn start_controllers(
    options: &Up,
    place: &Place,
    server: &Server,
    metrics: Arc<Metrics>,
    protection: Arc<Protection>,
    announcer: Announcer,
    working: &Handle,
) -> Result<(Controllers, AbortOnDrop), Failure> {
    let templates = place.data_dir.join("templates");
    let certificates = options.tls_client_certs_dir.as_deref();
    let mut functions = functions::Functions::new(&templates, certificates, metrics.clone())?;
    if options.enable_function_response_cache {
        functions = functions.cached(cache_options(options));
    }
    let cache = functions.cache();
    let settings = controller_options(options);
    let starting = controllers::start(server.clone(), functions, metrics, protection, settings, announcer);
    let started = working.spawn(starting).await;
    let controllers = started.map_err(|e| Failure::new(format!("cannot start the controllers: {e}")))??;
    let expiry = working.spawn(async move {
        if let Some(cache) = cache {
            cache.expire().await;
        }
    });
    Ok((controllers, AbortOnDrop(expiry.abort_handle())))
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

enum Ended {
    Asked,
    Failed(String),
}

/// The signals that ask to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on they no longer end the process.
    fn handle() -> Result<Self, Failure> {
        let handle = |kind| signal(kind).map_err(|e| Failure::new(format!("cannot wait for signals: {e}")));
        Ok(Self { terminate: handle(SignalKind::terminate())?, interrupt: handle(SignalKind::interrupt())? })
    }
}

/// Until a signal asks to stop or the store fails for good. A second signal ends the process at once.
async fn wait(store: &Store, signals: Signals) -> Ended {
    let Signals { mut terminate, mut interrupt } = signals;
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
    ended
}
