//! What a controller process in a cluster serves: probes, metrics, and admission webhooks with their certificates.
//!
//! | module | what it holds |
//! |---|---|
//! | `endpoint` | accepts connections and answers each request by a function; stops when dropped |
//! | `slow_headers` | a deadline for the headers of requests |
//! | `connection` | a client of an API server that notices when the other end is gone |
//! | `certificates` | an authority and a server certificate: when they are renewed, and with what overlap. Pure but for keys |
//! | `webhooks` | keeps the certificates in a Secret, serves the newest, and has the API server trust and call it |
//!
//! This crate knows no kind of Crossplane and decides nothing about objects: answers come from the functions it is given.

#![warn(missing_docs)]

mod certificates;
mod connection;
mod endpoint;
mod slow_headers;
mod webhooks;

pub use certificates::{CertificateError, Certificates, Lifetimes};
pub use connection::connect;
pub use endpoint::{Answer, Endpoint, Handler, Question};
pub use slow_headers::{HeaderProgress, ObservedStream, Serving};
pub use webhooks::{Announced, Reached, Webhook, WebhookOptions, Webhooks};
