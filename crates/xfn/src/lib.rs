//! Inline functions of Compositions: programs of images, which are run once for every call, and web servers.
//!
//! | module | what it holds |
//! |---|---|
//! | `document` | from a request to the document that a function reads, and from what it writes to a response; pure |
//! | `function_io`, `resource_list` | the two kinds of documents; pure |
//! | `derived` | readiness and connection details that a FunctionIO derives from observed resources; pure |
//! | `settings` | [`RunSettings`]: what a function may use, with defaults; pure |
//! | `host` | [`Host`]: what this crate needs of the process that it runs in |
//! | `local` | [`Programs`]: runs programs of images in containers on this machine |
//! | `webhook` | calls web servers |
//! | `protocol`, `remote`, `serve` | Crossplane's protocol of runners: its messages, a client, and a server |
//! | `adapted` | [`Adapted`]: a program that reads and writes documents, as a function of today's protocol |
//! | `inline` | [`InlineFunctions`]: all of it behind the router of functions |
//!
//! Every call ends within its timeout, in a response or in an error. A document that is incomplete is an
//! error: it never means that a resource is not wanted. The crate must not know how a composite resource is reconciled: a request
//! goes in, a response comes out.

#![warn(missing_docs)]

mod adapted;
mod derived;
mod document;
mod function_io;
mod host;
mod inline;
mod local;
mod protocol;
mod remote;
mod resource_list;
mod serve;
mod settings;
mod webhook;

pub use adapted::{Adapted, AdaptedIo};
pub use document::{DocumentError, DocumentProblem, Io, decode, encode};
pub use host::{Host, HostError, Image, WantedImage};
pub use inline::InlineFunctions;
pub use local::{Enforcement, Programs, RunError};
pub use serve::{AddressError, RunnerAddress, serve};
pub use settings::{RunSettings, SettingsError};
pub use transom_xapi::package::PullPolicy;
