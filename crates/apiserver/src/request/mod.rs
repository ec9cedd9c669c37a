//! Parsing of requests: path, verb, query parameters and options.

mod info;
mod options;

pub use info::{RequestInfo, Target, Verb};
pub use options::{
    DeleteOptions, FieldValidation, ListOptions, Preconditions, Propagation, Query, VersionMatch,
    WriteOptions,
};
