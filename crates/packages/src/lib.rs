//! Decisions about packages: which image a reference means, what a package may contain, which versions fit together, which revision is
//! active, and how objects change owners, as Crossplane decides it. Pure: values in, values out; no I/O, no clock, no randomness.
//! The crate must not know how images are fetched, or how objects are written.
//!
//! | module | what it decides |
//! |---|---|
//! | [`digest`](Digest), [`reference`](Reference) | what identifies a package |
//! | [`names`] | names of revisions and of packages that are dependencies; lists in messages |
//! | [`meta`] | the meta object of a package |
//! | [`stream`], [`content`], [`lint`] | what a package consists of, and what it may consist of |
//! | [`constraint`] | which versions are acceptable, and which of them is chosen |
//! | [`lock`] | what depends on what, and whether all of it is there |
//! | [`solver`] | what is installed or changed so that dependencies are satisfied |
//! | [`revisions`] | which revision is current, which are deactivated and deleted |
//! | [`establish`] | how objects pass into and out of the control of a revision |
//! | [`image_config`] | where an image is pulled from, by which secret, and how it is verified and runs |
//! | [`trust`] | whether verified signatures make an image trusted |
//! | [`registry`](Registry) | what a source of packages can do (a trait: others do the I/O) |

#![warn(missing_docs)]

pub mod constraint;
pub mod content;
mod digest;
pub mod establish;
pub mod image_config;
pub mod lint;
pub mod lock;
pub mod meta;
pub mod names;
mod reference;
mod registry;
pub mod revisions;
pub mod solver;
pub mod stream;
pub mod trust;

pub use digest::{Digest, DigestError};
pub use reference::{Reference, ReferenceError};
pub use registry::{Content, Credentials, Fetched, Platform, Registry, RegistryError, RegistryErrorKind};
pub use transom_xapi::PackageKind;
