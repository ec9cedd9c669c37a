//! Traces in the OpenTelemetry protocol (OTLP over gRPC). Off until [`install`] is called: then a span costs one load.
//!
//! | module | what it holds |
//! |---|---|
//! | `span` | [`traced`]: a future as a span; [`traceparent`]: the current span for others |
//! | `export` | spans in batches to a collector |
//! | `testing` | a collector for tests |
//! | `messages` | the messages of the protocol that are used |
//!
//! A span belongs to the one around it in the same task. What is traced works the same without a collector: spans that cannot be
//! delivered are dropped, which is logged once.
//!
//! The crate must not know what is traced: names and attributes come from its users.

#![warn(missing_docs)]

mod export;
pub mod messages;
mod span;
pub mod testing;

pub use export::{Exporter, InstallError, install};
pub use span::{Attributes, traced, traceparent};
