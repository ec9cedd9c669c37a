//! `transom up`: a whole control plane in one process.
//!
//! Assembles the stages of [`crate::plane`], announces that the plane serves, and waits for a signal. A start that fails
//! leaves no new data directory behind.

mod announce;
mod args;

pub(crate) use args::Up;

use crate::plane::{DataLocation, EmbeddedOptions, EmbeddedPlane, Runtimes, open_store};
use announce::Announcer;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::runtime::Handle;
use transom_console::{Failure, Signals};
use transom_store::Store;

pub(crate) fn run(options: &Up) -> Result<ExitCode, Failure> {
    options.log.init();
    let announcer = Announcer { format: options.log.log_format, in_memory: options.data.in_memory };
    let ended = Runtimes::start()?.run(|working| serve(options, announcer, working));
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
async fn serve(options: &Up, announcer: Announcer, working: Handle) -> Result<(), Failure> {
    let location = DataLocation::resolve(&options.data)?;
    let store = open_store(&options.data, &location).inspect_err(|_| {
        if location.temporary {
            location.discard();
        }
    })?;
    // Before anything is announced: a client that reads that the plane serves may stop it at once.
    let signals = Signals::handle()?;
    let unused = location.is_new() && store.resources().is_empty();
    let stages = EmbeddedOptions {
        listener: &options.listener,
        audit: &options.audit,
        authentication: &options.authentication,
        controllers: (!options.api_server_only).then_some(&options.controllers),
        packages: &options.packages,
        announce: Arc::new(move |notice| announcer.notice(notice)),
    };
    let plane = match EmbeddedPlane::start(stages, &location, store.clone(), &working).await {
        Ok(plane) => plane,
        Err(failure) => {
            if unused {
                // While the store is locked: no other process has put data there.
                location.discard();
            }
            store.shutdown().await;
            return Err(failure);
        }
    };
    announcer.serving(plane.address(), &location);
    let shutdown = wait(&store, signals).await;
    plane.stop().await;
    store.shutdown().await;
    if location.temporary {
        location.discard();
    }
    match shutdown {
        Shutdown::Signal => Ok(()),
        Shutdown::StoreFailed(why) => Err(Failure::new(format!("the store failed: {why}"))
            .remedy("check the disk, run `transom db verify`, then start again; every acknowledged write up to here is kept")),
    }
}

/// Why the plane stops.
enum Shutdown {
    Signal,
    StoreFailed(String),
}

/// Waits until a signal arrives or the store fails permanently. A second signal ends the process at once.
async fn wait(store: &Store, mut signals: Signals) -> Shutdown {
    let mut failed = store.failed();
    let shutdown = tokio::select! {
        () = signals.received() => Shutdown::Signal,
        why = failed.wait_for(Option::is_some) => {
            Shutdown::StoreFailed(why.ok().and_then(|w| w.clone()).unwrap_or_else(|| "its writer stopped".into()))
        }
    };
    signals.exit_on_next();
    shutdown
}
