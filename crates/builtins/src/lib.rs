//! The composition functions that ship with the binary, one module each.
//!
//! A built-in is an ordinary [`Function`]: it sees exactly what an external function sees, and takes the same input
//! as the function of the same name that it stands in for.

mod auto_ready;
mod cel_filter;
mod cidr;
mod conditioned;
mod desired;
mod dummy;
mod environment_configs;
mod expression;
mod extra_resources;
mod go_templating;
mod input;
pub mod patch_and_transform;
mod selection;
mod sequencer;
mod status_transformer;
pub mod strict;
mod tag_manager;
mod ttl;

#[cfg(test)]
mod upstream;

use std::sync::Arc;

use transom_function::Function;

pub use go_templating::GoTemplating;

/// Makes a function.
type Make = fn() -> Arc<dyn Function>;

/// The built-in functions, by the last segment of the package repository each stands in for.
const BUILTINS: &[(&str, Make)] = &[
    ("function-auto-ready", || Arc::new(auto_ready::AutoReady)),
    ("function-cel-filter", || Arc::new(cel_filter::CelFilter)),
    ("function-cidr", || Arc::new(cidr::Cidr)),
    ("function-dummy", || Arc::new(dummy::Dummy)),
    ("function-environment-configs", || Arc::new(environment_configs::EnvironmentConfigs)),
    ("function-extra-resources", || Arc::new(extra_resources::ExtraResources)),
    ("function-go-templating", GoTemplating::shared),
    ("function-patch-and-transform", || Arc::new(patch_and_transform::PatchAndTransform)),
    ("function-sequencer", || Arc::new(sequencer::Sequencer)),
    ("function-status-transformer", || Arc::new(status_transformer::StatusTransformer)),
    ("function-tag-manager", || Arc::new(tag_manager::TagManager)),
];

/// The built-in that stands in for packages whose repository ends in `name`.
pub fn find(name: &str) -> Option<Arc<dyn Function>> {
    BUILTINS.iter().find(|(builtin, _)| *builtin == name).map(|(_, make)| make())
}

/// What runs compositions of mode `Resources`: the templates, with their names, are its input.
pub fn templates() -> Arc<dyn Function> {
    Arc::new(patch_and_transform::native::Templates)
}

/// The names of every built-in.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|(name, _)| *name)
}
