//! Opens the store of a plane, on disk or in memory, and explains with a remedy why one does not open.

use super::args::DataArgs;
use super::data_location::DataLocation;
use transom_console::Failure;
use transom_object::error_chain::chain;
use transom_store::{HistoryLimits, OpenError, Options, Store};

pub(crate) fn open_store(args: &DataArgs, location: &DataLocation) -> Result<Store, Failure> {
    let defaults = Options::default();
    let options = Options {
        history: HistoryLimits { min_age: args.history_window, ..defaults.history.clone() },
        ..defaults
    };
    if args.in_memory {
        return Ok(Store::in_memory(options));
    }
    #[cfg(debug_assertions)]
    let options = super::crash_injection::apply(options);
    Store::open(&location.store_dir(), options).map_err(|e| explain(&e))
}

/// The error with what to do about it.
pub(crate) fn explain(error: &OpenError) -> Failure {
    let failure = Failure::new(chain(error));
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
