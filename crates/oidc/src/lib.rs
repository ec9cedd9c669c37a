//! Tokens of OpenID Connect issuers, by Kubernetes' `AuthenticationConfiguration`. Pure: keys are fetched elsewhere.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | the configuration, checked when it is read |
//! | `jwt` | signatures, and who issued a token |
//! | `mapping` | from the claims of a token to a user |
//!
//! A token never becomes a user or a member of a group whose name begins with `system:`: these are the server's own.

#![warn(missing_docs)]

mod config;
mod jwt;
mod mapping;

pub use config::{ConfigError, Configuration, Issuer};
pub use jwt::{Key, KeySet, Refused, issuer_of};
pub use mapping::User;
