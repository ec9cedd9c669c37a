//! Crossplane's kinds as Rust types, and the CRDs derived from an XRD.
//!
//! Pure: no I/O, no clock, no randomness. Names, schemas and constants here are wire-visible and match Crossplane to
//! the letter.
//!
//! Objects whose schema is fixed are typed ([`Composition`], [`CompositionRevision`], …); fields the types do not name
//! are ignored on reading, as a client would. Objects whose schema is born at run time (composite resources, claims)
//! stay dynamic values.

pub mod composition;
pub mod conditions;
pub mod constants;
pub mod metadata;

pub use composition::{Composition, CompositionRevision, CompositionSpec, PipelineStep};
pub use conditions::Condition;
pub use metadata::Metadata;
