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
mod timeless;
mod ttl;

#[cfg(test)]
mod upstream;

use std::sync::Arc;

use transom_function::Function;

pub use go_templating::GoTemplating;
use timeless::Timeless;

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

/// Built-ins that look at a clock, at chance or at files, or that an author has say anything at all.
const IN_TIME: &[&str] = &["function-dummy", "function-go-templating"];

/// The built-in for a plane that learns of every change: an answer that depends on the request alone says no TTL, since it
/// holds until the request changes.
pub fn find_timeless(name: &str) -> Option<Arc<dyn Function>> {
    let found = find(name)?;
    Some(if IN_TIME.contains(&name) { found } else { Arc::new(Timeless(found)) })
}

/// As [`templates`], for such a plane.
pub fn timeless_templates() -> Arc<dyn Function> {
    Arc::new(Timeless(templates()))
}

/// The names of every built-in.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use transom_function::{RunFunctionRequest, Struct};

    async fn ttl(function: Arc<dyn Function>, input: serde_json::Value) -> Option<i64> {
        let input = Some(Struct::try_from(input).unwrap());
        let response = function.run(RunFunctionRequest { input, ..Default::default() }).await.unwrap();
        response.meta.unwrap().ttl.map(|ttl| ttl.seconds)
    }

    #[tokio::test]
    async fn what_depends_on_the_request_alone_says_no_ttl_to_a_plane() {
        for name in names() {
            let timeless = !IN_TIME.contains(&name);
            assert_eq!(ttl(find(name).unwrap(), json!({})).await, Some(60), "{name}");
            let expected = if timeless { None } else { Some(60) };
            assert_eq!(ttl(find_timeless(name).unwrap(), json!({})).await, expected, "{name}");
        }
    }

    #[tokio::test]
    async fn a_ttl_that_was_asked_for_stays() {
        let input = json!({"apiVersion": "autoready.fn.crossplane.io/v1beta1", "kind": "Input", "ttl": "5m"});
        let function = find_timeless("function-auto-ready").unwrap();
        assert_eq!(ttl(function, input).await, Some(300));
    }
}
