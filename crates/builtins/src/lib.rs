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
mod lasting;
mod named;
pub mod patch_and_transform;
pub mod review;
mod selection;
mod sequencer;
mod status_transformer;
pub mod strict;
mod tag_manager;
mod ttl;

#[cfg(test)]
mod upstream;

use std::sync::Arc;

use serde_json::{Map, Value};
use transom_function::Function;

pub use go_templating::GoTemplating;
pub use lasting::Lasting;
pub use review::{Builtin, Explained, Mistake, Review};

/// Makes a function.
type Make = fn() -> Arc<dyn Builtin>;

/// What an answer depends on besides the request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// Nothing: it holds until the request changes.
    Timeless,
    /// A clock, chance or files, or whatever an author has it say.
    InTime,
}
use Nature::{InTime, Timeless};

/// The built-in functions, by the last segment of the package repository each stands in for.
const BUILTINS: &[(&str, Nature, Make)] = &[
    ("function-auto-ready", Timeless, || Arc::new(auto_ready::AutoReady)),
    ("function-cel-filter", Timeless, || Arc::new(cel_filter::CelFilter)),
    ("function-cidr", Timeless, || Arc::new(cidr::Cidr)),
    ("function-dummy", InTime, || Arc::new(dummy::Dummy)),
    ("function-environment-configs", Timeless, || Arc::new(environment_configs::EnvironmentConfigs)),
    ("function-extra-resources", Timeless, || Arc::new(extra_resources::ExtraResources)),
    ("function-go-templating", InTime, || GoTemplating::shared()),
    ("function-patch-and-transform", Timeless, || Arc::new(patch_and_transform::PatchAndTransform)),
    ("function-sequencer", Timeless, || Arc::new(sequencer::Sequencer)),
    ("function-status-transformer", Timeless, || Arc::new(status_transformer::StatusTransformer)),
    ("function-tag-manager", Timeless, || Arc::new(tag_manager::TagManager)),
];

/// The built-in that stands in for packages whose repository ends in `name`. It answers letter by letter as the original.
pub fn find(name: &str) -> Option<Arc<dyn Function>> {
    BUILTINS.iter().find(|(builtin, ..)| *builtin == name).map(|(.., make)| -> Arc<dyn Function> { make() })
}

/// The same, but an input that it refuses is refused in the words of a [`review`].
pub fn find_explained(name: &str) -> Option<Arc<dyn Function>> {
    let (.., make) = BUILTINS.iter().find(|(builtin, ..)| *builtin == name)?;
    Some(Arc::new(Explained::new(make())))
}

/// The built-in for a plane that learns of every change: an answer that depends on the request alone says no TTL, since it
/// holds until the request changes. An input that it refuses is refused in the words of a [`review`].
pub fn find_lasting(name: &str) -> Option<Arc<dyn Function>> {
    let (_, nature, make) = BUILTINS.iter().find(|(builtin, ..)| *builtin == name)?;
    let explained = Arc::new(Explained::new(make()));
    Some(if *nature == Timeless { Arc::new(Lasting(explained)) } else { explained })
}

/// What is wrong with an input of a built-in, its kind included; nothing for a function that is not built in.
pub fn review_input(name: &str, input: &Map<String, Value>) -> Review {
    let Some((.., make)) = BUILTINS.iter().find(|(builtin, ..)| *builtin == name) else {
        return Review::default();
    };
    let builtin = make();
    let mut review = builtin.review(input);
    review.mistakes.extend(review::review_kind(&*builtin, input));
    review
}

/// What is wrong with the templates of a composition of mode `Resources`, given its `spec`.
pub fn review_templates(spec: &Map<String, Value>) -> Review {
    patch_and_transform::native::review(spec)
}

/// What runs compositions of mode `Resources`: the templates, with their names, are its input.
pub fn templates() -> Arc<dyn Function> {
    Arc::new(patch_and_transform::native::Templates)
}

/// What makes the environment of a Composition: its `spec.environment`, without patches, is its input.
pub fn environment() -> Arc<dyn Function> {
    Arc::new(environment_configs::native::Environment)
}

/// The names of every built-in.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|(name, ..)| *name)
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
        for (name, nature, make) in BUILTINS {
            assert_eq!(ttl(make(), json!({})).await, Some(60), "{name}");
            let expected = if *nature == Timeless { None } else { Some(60) };
            assert_eq!(ttl(find_lasting(name).unwrap(), json!({})).await, expected, "{name}");
        }
    }

    #[tokio::test]
    async fn a_ttl_that_was_asked_for_stays() {
        let input = json!({"apiVersion": "autoready.fn.crossplane.io/v1beta1", "kind": "Input", "ttl": "5m"});
        let function = find_lasting("function-auto-ready").unwrap();
        assert_eq!(ttl(function, input).await, Some(300));
    }
}
