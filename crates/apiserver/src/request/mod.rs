//! Parses requests: `info` finds the resource, the verb and the name in method and path, `options` the query parameters and the
//! options of writes, with kube-apiserver's errors.
//!
//! Nothing is looked up here: whether the resource exists is for the registry to say.

mod info;
mod options;

pub(crate) use info::{RequestInfo, Target, Verb};
pub(crate) use options::{
    DeleteOptions, FieldValidation, ListOptions, Preconditions, Propagation, Query, VersionMatch,
    WriteOptions,
};
