//! OpenAPI v2 and v3 of resources: documents as kube-apiserver writes them, from a description of each resource.
//!
//! It guarantees that every reference in a document leads to a schema of the same document, and that the same resources
//! make the same document. Pure: no I/O, no clock, no randomness. It must not know of requests, of the store, or of how
//! documents are cached and served: that is `transom_apiserver`.
//!
//! | module | what it holds |
//! |---|---|
//! | `resource` | [`Resource`]: all that documents say about one |
//! | `v2`, `v3` | the two kinds of documents |
//! | `operations` | paths |
//! | `custom` | the schemas of custom kinds; those of built-in kinds come from `transom_kinds` |
//! | `protobuf` | v2 in protobuf |

#![warn(missing_docs)]

mod custom;
mod operations;
mod protobuf;
mod resource;
mod v2;
mod v3;

pub use protobuf::encode as v2_protobuf;
pub use resource::{Resource, Subresource};
pub use v2::document as v2;
pub use v3::document as v3;

use serde_json::Value;

/// The version of Kubernetes in the documents.
fn kubernetes_version() -> String {
    format!("v1.{}.0", transom_kinds::KUBERNETES_MINOR)
}

/// A list in a document; empty when it is absent.
fn selected<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
