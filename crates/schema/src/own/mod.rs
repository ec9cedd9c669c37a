//! Field ownership: field sets, typed merge and compare, server-side apply and managedFields.
//!
//! | module | what it does |
//! |---|---|
//! | [`element`] | one step of a path into an object, with the order Kubernetes gives it |
//! | [`set`] | sets of paths, as a tree |
//! | [`fields`] | the `FieldsV1` JSON of such a set |
//! | [`types`] | a [`Schema`](crate::Schema) read as scalars, lists and maps, the way merging needs it |
//! | [`typed`] | validate, collect, merge, compare, remove, extract and reconcile values of a type |
//! | [`updater`] | who owns what after an apply or an update; conflicts; pruning |
//! | [`managers`] | `metadata.managedFields` to owners and back |
//! | [`apply`](mod@apply) | the entry points of the API server: [`apply()`] and [`update()`] |
//! | [`extract`](mod@extract) | the configuration a manager applied, read back |
//! | [`conflict`] | why an apply is refused, and the `Status` of the refusal |
//! | [`matcher`] | patterns of paths, for endpoints that own only some fields |
//! | [`scale`] | owners of `spec.replicas` seen through the `scale` subresource |
//!
//! A *manager* owns a [`Set`] of fields at one API version. Applying a configuration merges it into the
//! live object, takes away what the manager applied before and no other manager owns, and refuses to change
//! fields that other managers own unless forced. An update takes ownership of whatever it changes.

pub mod apply;
pub mod conflict;
pub mod element;
pub mod extract;
pub mod fields;
pub mod managers;
pub mod matcher;
pub mod scale;
pub mod set;
pub mod typed;
pub mod types;
pub mod updater;
mod wording;

pub use apply::{Context, apply, apply_change, keep_timestamps, update};
pub use conflict::{ApplyError, Conflict};
pub use element::{Element, Path};
pub use extract::extract;
pub use managers::{ManagedFieldsError, ManagerId, Managers, Operation, Owned};
pub use set::Set;
pub use types::Type;
