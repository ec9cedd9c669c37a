//! Objects seen through their schema: parse and check structural schemas, prune, default, validate,
//! evaluate CEL rules, track field ownership, apply and patch. Pure: no I/O, no clock, no randomness.
//!
//! | module | what it does |
//! |---|---|
//! | [`model`] | the compiled [`Schema`] tree that all the others read |
//! | [`structural`] | OpenAPI v3 schema → [`Schema`], and what makes a schema structural |
//! | [`normalize`] | prune, default, coerce |
//! | [`validate`] | values against a schema, list types, ratcheting |
//! | [`rules`] | `x-kubernetes-validations`: CEL rules bound to schemas, evaluated with ratcheting |
//! | [`own`] | field sets, merge, compare, server-side apply, managedFields |
//! | [`patch`] | JSON patch, merge patch, strategic merge patch |

#![warn(missing_docs)]

pub mod model;
pub mod normalize;
pub mod own;
pub mod patch;
pub mod rules;
pub mod structural;
mod trail;
pub mod validate;

pub use model::{Additional, ListType, MapType, Rule, Schema, Type};
