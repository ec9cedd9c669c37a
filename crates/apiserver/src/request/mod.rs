//! What a request asks for, before any of it is done.

mod info;
mod options;

pub use info::{RequestInfo, Target, Verb};
pub use options::{
    DeleteOptions, FieldValidation, ListOptions, Preconditions, Propagation, Query, VersionMatch,
    WriteOptions,
};
