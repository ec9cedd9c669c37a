//! The Kubernetes HTTP API over a store: discovery, OpenAPI, CRDs, verbs, watch, garbage collection.
//! Knows nothing of Crossplane. The types of built-in kinds are in `transom_kinds`.
//!
//! [`Server`] is a `tower::Service`: the HTTPS listener and the in-process client are two thin adapters over it.
//!
//! | module | what it holds |
//! |---|---|
//! | `server` | the path of a request through the server |
//! | `request`, `negotiate`, `auth` | the parsed request, the format of the response, and the user with its permissions |
//! | `impersonation`, `rbac`, `tokens` | acting as another user, roles and bindings, service account tokens |
//! | `overload` | how many requests are answered at the same time |
//! | `audit` | what is recorded of requests |
//! | `admission` | plugins that change or refuse writes |
//! | `registry`, `resource`, `strategy`, `subresource` | what is served, and how kinds differ |
//! | `crd` | custom kinds |
//! | `verbs`, `change`, `write` | the verbs, changes of live objects, and the compare-and-swap they end in |
//! | `represent`, `respond`, `body` | responses |
//! | `discovery`, `openapi`, `health`, `metrics` | paths that are not resources |
//! | `pods` | what the subresources of pods change |
//! | `certificates` | certificate signing requests: who may decide, and what is signed |
//! | `services` | addresses and node ports of Services |
//! | `upkeep` | garbage collection, namespaces, expiry |

#![warn(missing_docs)]

mod admission;
mod audit;
mod auth;
mod body;
mod bootstrap;
mod call;
mod certificates;
mod change;
mod convert;
mod crd;
mod decode;
mod discovery;
mod environment;
mod health;
mod impersonation;
mod metrics;
mod negotiate;
mod openapi;
mod overload;
mod ownership;
mod pods;
mod policy;
mod rbac;
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

pub use admission::{
    Admission, Endpoint, Operation, Phase, Review, Verdict, WebhookCall, WebhookCallError, WebhookCaller,
};
pub use async_trait::async_trait;
pub use audit::{AuditLog, ClientAddress};
pub use auth::{Attributes, Authorizer, Decision, Identity, MastersOnly, TokenAuthenticator};
pub use body::ApiBody;
pub use bootstrap::Options;
pub use certificates::{
    AlternativeName, CertificateOrder, CertificateSigner, CertificateSignerError, SigningRequest,
};
pub use environment::{Environment, SystemEnvironment};
pub use health::{Check, Probe};
pub use overload::Limits;
pub use server::Server;
pub use subresource::Subresource;
pub use tokens::{Signer, SignerError};
