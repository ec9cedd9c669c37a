//! The vocabulary of the Kubernetes API: identities, metadata, dynamic objects, paths into them,
//! selectors and the `Status` error. Pure: no I/O, no clock, no randomness.
//!
//! Texts, errors and limits are those of Kubernetes and of Crossplane, and no input panics or takes memory out of proportion to
//! its size. The crate must not know any kind: what belongs to one is in `transom_kinds` or `transom_xapi`.

#![warn(missing_docs)]

pub mod conditions;
pub mod error_chain;
mod event;
pub mod field;
pub mod fieldpath;
pub mod fields;
pub mod formats;
pub mod hash;
pub mod header;
pub mod ids;
pub mod intstr;
pub mod json;
pub mod jsonpath;
pub mod labels;
pub mod meta;
pub mod names;
pub mod quantity;
pub mod quote;
pub mod shorten;
pub mod status;
pub mod suggest;
pub mod time;
pub mod wildcard;
pub mod yaml;

pub use event::EventType;
pub use header::{Header, OwnerReference};
pub use ids::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
pub use serde_json::{Map, Value};
pub use status::Status;
