//! What a CustomResourceDefinition must be, and the status that it gets.
//!
//! A definition is a JSON value, normalised and defaulted as the table of built-in kinds describes it. It guarantees
//! kube-apiserver's verdicts and messages, and its conditions. Pure: no I/O, no clock, no randomness; what other
//! definitions exist and what time it is, the caller says. It must not know of requests, of the store, or of how custom
//! kinds are served: that is `transom_apiserver`.
//!
//! | module | what it does |
//! |---|---|
//! | `validate` | errors and warnings of a definition |
//! | `status` | accepted names, conditions, stored versions |

#![warn(missing_docs)]

mod status;
mod validate;

pub use status::{
    CLEANUP, TakenNames, accept_names, add_stored_version, condition, has_condition, mark_emptying,
    mark_terminating, set_condition,
};
pub use validate::{validate, validate_status, warnings};
