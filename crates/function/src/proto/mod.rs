//! The protocol's messages and services, generated from `proto/`. Both versions have the same messages on the wire,
//! so there is one set of types.

#[rustfmt::skip]
#[allow(missing_docs, clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod v1;
#[rustfmt::skip]
#[allow(missing_docs, clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod v1beta1;
