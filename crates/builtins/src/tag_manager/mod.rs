//! `function-tag-manager`: adds, keeps and removes the tags of composed resources.
//!
//! It looks only at resources of the kinds that have tags (see [`taggable`]) and that do not opt out. On each, tags
//! are first added, then those that are managed outside are copied from the existing resource, then some are removed.

mod taggable;
mod tags;

use serde::Deserialize;
use serde_json::{Map, Value};
use tags::{AddTags, IgnoreTags, RemoveTags, Sources, Updates};
use transom_function::{ENVIRONMENT, Resource, RunFunctionRequest, RunFunctionResponse};
use transom_object::GroupVersion;

use crate::review::{self, Builtin, Review, Unsupported};
use crate::{desired, input};

/// The annotation, or the label in older compositions, of a resource whose tags are not managed.
const IGNORE: &str = "tag-manager.fn.crossplane.io/ignore-resource";

/// The function.
pub(crate) struct TagManager;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Input {
    add_tags: Vec<AddTags>,
    ignore_tags: Vec<IgnoreTags>,
    remove_tags: Vec<RemoveTags>,
}

impl Builtin for TagManager {
    fn answer(&self, request: &mut RunFunctionRequest) -> RunFunctionResponse {
        input::answer(request, |request, response| {
            manage(request, response)?;
            response.normal("Successfully Processed tags");
            Ok(())
        })
    }

    fn input_kind(&self) -> &'static str {
        "ManagedTags"
    }

    fn review(&self, input: &Map<String, Value>) -> Review {
        review::by_fields::<Input>(input, Unsupported::Ignored)
    }
}

review::function!(TagManager);

fn manage(request: &RunFunctionRequest, response: &mut RunFunctionResponse) -> Result<(), String> {
    let input: Input = input::read(request, "v1beta1.ManagedTags")?;
    let environment =
        response.context.as_ref().and_then(|context| context.fields().get(ENVIRONMENT)).cloned();
    let environment = environment.filter(Value::is_object).unwrap_or_default();
    let sources = Sources { composite: request.observed_composite().object(), environment: &environment };
    let added = Updates::adding(&input.add_tags, &sources)?;
    let removed = tags::removed(&input.remove_tags, &sources)?;
    for (name, resource) in &mut desired::write_back(response).resources {
        if is_ignored(resource) || !has_tags(resource) {
            continue;
        }
        added.apply(resource);
        if let Some(observed) = request.observed_composed(name)
            && let Some(kept) = Updates::keeping(&input.ignore_tags, observed, &sources)?
        {
            kept.apply(resource);
        }
        if !removed.is_empty() {
            tags::remove(resource, &removed);
        }
    }
    Ok(())
}

fn has_tags(resource: &Resource) -> bool {
    let text = |field| resource.get_str(field).unwrap_or_default();
    let version = GroupVersion::parse(text("apiVersion"));
    version.is_some_and(|version| taggable::is_taggable(&version.group, text("kind")))
}

/// Whether a resource opts out, by an annotation or else by a label.
fn is_ignored(resource: &Resource) -> bool {
    let is_true = |text: &str| text.eq_ignore_ascii_case("true");
    let annotations = resource.get("metadata.annotations").ok().and_then(Value::as_object);
    // One annotation that is not a string makes all of them unreadable.
    let annotations = annotations.filter(|all| all.values().all(|text| text.is_string() || text.is_null()));
    if let Some(annotation) = annotations.and_then(|all| all.get(IGNORE)) {
        return annotation.as_str().is_some_and(is_true);
    }
    let label = resource.get("metadata.labels").ok().and_then(|labels| labels.get(IGNORE)?.as_str());
    label.is_some_and(is_true)
}

#[cfg(test)]
mod tests;
