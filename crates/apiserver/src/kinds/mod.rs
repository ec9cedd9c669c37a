//! The built-in kinds, as data. One checked-in table (`types.json`, written by `conformance/kinds` from
//! the Go types of Kubernetes) lists the fields of each type; everything about built-in kinds reads it.
//!
//! | module | what it does |
//! |---|---|
//! | [`table`] | the types and their fields, loaded once |
//! | [`typed`] | a JSON document as Go's typed decoder and encoder would read and write it |
//! | [`protobuf`] | the `k8s\0` protobuf envelope → the same JSON |
//! | [`scalars`] | quantities and times in their canonical form |
//! | [`schema`] | the schema tree for server-side apply and strategic merge patch |
//! | [`openapi`] | the published schemas; descriptions are loaded only for them |
//! | [`defaults`] | what kube-apiserver fills in |
//! | [`validate`] | what kube-apiserver refuses |
//! | [`printer`] | the columns and cells of `kubectl get` |
//!
//! To regenerate the table: `cd conformance/kinds && go run . ../../crates/apiserver/src/kinds`.

pub mod defaults;
pub mod openapi;
pub mod printer;
pub mod protobuf;
pub mod scalars;
pub mod schema;
pub mod table;
pub mod typed;
pub mod validate;

/// The name of a kind's type; empty for a kind that is not in the table.
pub fn type_of(gvk: &transom_object::GroupVersionKind) -> &'static str {
    types().kind(&gvk.group, &gvk.version, &gvk.kind).map_or("", |k| k.type_name)
}

pub use defaults::default;
pub use protobuf::decode_protobuf;
pub use schema::schema;
pub use table::types;
pub use typed::normalize;
pub use validate::{validate, validate_status};

#[cfg(test)]
mod tests;
