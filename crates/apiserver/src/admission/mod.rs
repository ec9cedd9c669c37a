//! Admission: plugins that change or refuse writes after the client's object is decoded and before it is stored.
//!
//! A plugin is called at the place where Kubernetes calls its admission plugins and webhooks:
//!
//! | verb | order |
//! |---|---|
//! | create | decode, default → field ownership → **mutate** → system metadata, prepare → validation → **validate** → commit |
//! | update, patch, apply | live object → change, default → field ownership → **mutate** → prepare → validation → **validate** → commit |
//! | delete, deletecollection | for each object: preconditions → **mutate**, **validate** (old object only) → deletion |
//!
//! When another write came first, an update starts over with the newer object, plugins included.
//! Writes of the server's own upkeep pass through the same plugins. Guarantees: a plugin that does not review an
//! endpoint costs nothing; a plugin that panics or exceeds `REVIEW_TIMEOUT` fails the reviewed write alone.
//! After the plugins come webhooks, policies, limits and quotas, which objects configure: see `dynamic`.
//! Plugins see objects as the requested version serves them. They must not assume that the write succeeds.

mod chain;
mod dynamic;
pub(crate) mod lifecycle;
mod review;

pub(crate) use chain::{Chain, Options, Request};
pub(crate) use dynamic::Dynamic;
pub use dynamic::{WebhookCall, WebhookCallError, WebhookCaller};
pub use review::{Admission, Endpoint, Operation, Phase, Review, Verdict};
