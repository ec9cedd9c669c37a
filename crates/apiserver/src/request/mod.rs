//! Parsing of requests: path, verb, query parameters and options.

mod info;
mod options;

pub(crate) use info::{RequestInfo, Target, Verb};
pub(crate) use options::{
    DeleteOptions, FieldValidation, ListOptions, Preconditions, Propagation, Query, VersionMatch,
    WriteOptions,
};
