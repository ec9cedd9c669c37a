//! The crate through its public interface, against registries in this process: ordinary ones and hostile ones.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod auth;
mod cache;
mod hostile;
mod layout;
mod push;
mod remote;
mod signature;
mod signature_bundles;
mod signature_keyless;
mod signature_keys;
mod sigstore;
mod tarball;
mod tls;

use transom_oci::testing::images;
