//! Crossplane's kinds as Rust types, and the CRDs derived from an XRD.
//!
//! Pure: no I/O, no clock, no randomness. Names, schemas and constants here are wire-visible and match Crossplane to
//! the letter.
//!
//! Objects whose schema is fixed are typed ([`Composition`], [`Definition`], …); fields the types do not name are
//! ignored on reading, as a client would. Objects whose schema is born at run time (composite resources, claims) stay
//! dynamic values.

#![warn(missing_docs)]

pub mod account;
pub mod claim;
pub mod composite;
pub mod composition;
pub mod conditions;
pub mod connection;
pub mod constants;
pub mod crds;
pub mod definition;
pub mod derive;
pub mod first_design;
pub mod function;
pub mod image_config;
pub mod inline;
pub mod lock;
pub mod managed;
pub mod metadata;
pub mod package;
pub mod revision;
pub mod roles;
pub mod runtime_config;
pub mod selection;
pub mod usage;

pub use account::AccountReference;
pub use composite::Composite;
pub use composition::{Composition, CompositionRevision, CompositionSpec, PipelineStep};
pub use conditions::Condition;
pub use crds::crds;
pub use definition::Definition;
pub use function::{Function, FunctionRevision};
pub use image_config::ImageConfig;
pub use inline::InlineFunction;
pub use lock::Lock;
pub use managed::{ManagedResourceActivationPolicy, ManagedResourceDefinition};
pub use metadata::Metadata;
pub use package::{Package, PackageKind, PackageRevision};
pub use runtime_config::DeploymentRuntimeConfig;
pub use usage::Usage;
