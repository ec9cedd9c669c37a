//! The providers that come with Transom, on the SDK of `transom-provider`.
//!
//! Each is named after the package of the original, and has its kinds and its behaviour; deliberate differences are in
//! `docs/compatibility.md`. This crate must not know how providers are started.
//!
//! | module | provider |
//! |---|---|
//! | `kubernetes` | `provider-kubernetes`: objects of Kubernetes clusters |
//! | `nop` | `provider-nop`: managed resources that manage nothing |
//! | `sql` | `provider-sql`: databases, roles and privileges of PostgreSQL |

#![warn(missing_docs)]

pub mod kubernetes;
pub mod nop;
pub mod sql;

use transom_provider::Provider;

/// The names of the providers.
pub fn names() -> impl Iterator<Item = &'static str> {
    ["provider-kubernetes", "provider-nop", "provider-sql"].into_iter()
}

/// The provider of this name.
pub fn find(name: &str) -> Option<Provider> {
    match name {
        "provider-kubernetes" => Some(kubernetes::provider()),
        "provider-nop" => Some(nop::provider()),
        "provider-sql" => Some(sql::provider()),
        _ => None,
    }
}
