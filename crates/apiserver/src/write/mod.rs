//! Writes: create, update and delete of one object, used alike by the verbs and by the server's own upkeep.
//!
//! The order of the steps is that of Kubernetes, and `admission` documents it. `hooks` has what particular kinds add,
//! `admit` calls the admission plugins.
//!
//! Every write ends in one compare-and-swap. When another write came first, the object is read again and the new
//! one computed again, unless the client gave a resourceVersion.

mod admit;
mod create;
mod delete;
mod encode;
mod escalation;
mod hooks;
mod meta;
mod update;

pub(crate) use meta::match_path;

pub(crate) use create::{Create, create};
pub(crate) use delete::{DeleteRequest, Deleted, delete};
pub(crate) use encode::encode_for_store;
pub(crate) use update::{Update, update};

use serde_json::Value;
use std::sync::Arc;
use transom_object::Status;
use transom_store::{Entry, WriteError};

/// The result of a write.
pub(crate) enum Outcome {
    Stored {
        entry: Arc<Entry>,
        created: bool,
    },
    /// Not stored: a dry run, or the last state of an object that this write removed.
    Transient {
        value: Value,
        created: bool,
    },
}

impl Outcome {
    pub(crate) fn created(&self) -> bool {
        match self {
            Self::Stored { created, .. } | Self::Transient { created, .. } => *created,
        }
    }

    /// The resourceVersion of the object.
    pub(crate) fn version(&self) -> String {
        match self {
            Self::Stored { entry, .. } => entry.revision.to_string(),
            Self::Transient { value, .. } => {
                value["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
            }
        }
    }
}

/// The store cannot write: 500 with the reason.
pub(crate) fn unavailable(error: &WriteError) -> Status {
    Status::internal(format!("{error}; reads go on, writes are refused until it can write again"))
}
