//! The built-in kinds of Kubernetes, as data. One checked-in table (`types.json`, written by `conformance/kinds` from
//! the Go types of Kubernetes) lists the fields of each type; everything about built-in kinds reads it.
//!
//! It guarantees that a built-in object is decoded, defaulted, validated, described and printed as kube-apiserver
//! does it; the files in `testdata` hold the results of upstream's own code. Pure: no I/O, no clock, no randomness.
//! It must not know of requests, of the store, or of which kinds are served under which paths: that is
//! `transom_apiserver`. Custom kinds have no part in it: their schemas are in their definitions.
//!
//! | module | what it does |
//! |---|---|
//! | `table` | the types and their fields, loaded once |
//! | `typed` | [`normalize`]: a JSON document as Go's typed decoder and encoder would read and write it |
//! | `protobuf` | [`decode_protobuf`]: the `k8s\0` protobuf envelope → the same JSON |
//! | `scalars` | quantities and times in their canonical form |
//! | `schema` | [`schema()`]: the schema tree for server-side apply and strategic merge patch |
//! | `defaults` | [`default`]: what kube-apiserver fills in |
//! | [`validate`](mod@validate) | what kube-apiserver refuses |
//! | [`autoscaler`] | HorizontalPodAutoscalers in their two versions |
//! | [`pkcs10`] | the request in a CertificateSigningRequest, and its signature |
//! | [`openapi`] | the published schemas; descriptions are loaded only for them |
//! | [`printer`] | the columns and cells of `kubectl get` |
//!
//! To regenerate the table: `cd conformance/kinds && go run . ../../crates/kinds/src`.

#![warn(missing_docs)]

pub mod autoscaler;
mod defaults;
pub mod openapi;
pub mod pkcs10;
pub mod printer;
mod protobuf;
mod scalars;
mod schema;
mod table;
mod typed;
pub mod validate;

pub use defaults::default;
pub use protobuf::{ProtoError, decode_protobuf};
pub use schema::schema;
pub use typed::{TypeError, normalize};
pub use validate::{validate, validate_status};

use table::types;

/// The minor version of Kubernetes whose kinds these are.
pub const KUBERNETES_MINOR: u32 = 36;

/// The name of a kind's type; empty for a kind that is not in the table.
pub fn type_of(gvk: &transom_object::GroupVersionKind) -> &'static str {
    types().kind(&gvk.group, &gvk.version, &gvk.kind).map_or("", |k| k.type_name)
}

#[cfg(test)]
mod tests;
