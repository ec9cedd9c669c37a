//! The Kubernetes HTTP API over a store: discovery, OpenAPI, CRDs, verbs, watch, garbage collection.
//! Knows nothing of Crossplane. The types of built-in kinds are in `transom_kinds`.
//!
//! [`Server`] is a `tower::Service`: the HTTPS listener and the in-process client are two thin adapters over it.
//!
//! | module | what it holds |
//! |---|---|
//! | `server` | the path of a request through the server |
//! | `request`, `negotiate`, `auth` | the parsed request, the format of the response, and the user with its permissions |
//! | `admission` | plugins that change or refuse writes |
//! | `registry`, `resource`, `strategy`, `subresource` | what is served, and how kinds differ |
//! | `crd` | custom kinds |
//! | `verbs`, `change`, `write` | the verbs, changes of live objects, and the compare-and-swap they end in |
//! | `represent`, `respond`, `body` | responses |
//! | `discovery`, `openapi`, `health`, `metrics` | paths that are not resources |
//! | `services` | addresses and node ports of Services |
//! | `upkeep` | garbage collection, namespaces, expiry |

#![warn(missing_docs)]

mod admission;
mod auth;
mod body;
mod bootstrap;
mod call;
mod change;
mod crd;
mod decode;
mod discovery;
mod environment;
mod health;
mod metrics;
mod negotiate;
mod openapi;
mod ownership;
mod registry;
mod represent;
mod request;
mod resource;
mod respond;
mod scale;
mod select;
mod server;
mod services;
mod strategy;
mod subresource;
mod tokens;
mod upkeep;
mod verbs;
mod write;

pub use admission::{Admission, Endpoint, Operation, Phase, Review, Verdict};
pub use async_trait::async_trait;
pub use auth::{Attributes, Authorizer, Decision, Identity, MastersOnly};
pub use body::ApiBody;
pub use bootstrap::Options;
pub use environment::{Environment, SystemEnvironment};
pub use health::{Check, Probe};
pub use server::Server;
pub use subresource::Subresource;
pub use tokens::Signer;
