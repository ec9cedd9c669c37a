//! `function-extra-resources`: reads other resources and leaves them for later steps, as a map of lists in the
//! context.
//!
//! A first call only returns what is required; once that is there, it is counted, sorted and passed on.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use transom_function::{Requirements, Resource, ResourceSelector, RunFunctionRequest, RunFunctionResponse};
use transom_object::quote::quote;

use crate::input;
use crate::named::OneOf;
use crate::review::{self, Builtin, Review, Unsupported};
use crate::selection::{self, LabelMatcher, Policy, Reference, SourceType};

/// The context key of the resources when the input has none.
const CONTEXT_KEY: &str = "apiextensions.crossplane.io/extra-resources";

/// The function.
pub(crate) struct ExtraResources;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Input {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    context: Context,
    extra_resources: Vec<Source>,
    policy: Policy,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Context {
    key: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Source {
    r#type: OneOf<SourceType>,
    r#ref: Option<Reference>,
    selector: Option<Selector>,
    kind: String,
    api_version: String,
    namespace: Option<String>,
    into: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Selector {
    max_match: Option<u64>,
    min_match: Option<u64>,
    sort_by_field_path: String,
    match_labels: Vec<LabelMatcher>,
}

impl Builtin for ExtraResources {
    fn answer(&self, request: &mut RunFunctionRequest) -> RunFunctionResponse {
        input::answer(request, run)
    }

    fn input_kind(&self) -> &'static str {
        "Input"
    }

    fn review(&self, input: &Map<String, Value>) -> Review {
        review::by_fields::<Input>(input, Unsupported::Ignored)
    }
}

review::function!(ExtraResources);

fn run(request: &RunFunctionRequest, response: &mut RunFunctionResponse) -> Result<(), String> {
    let input: Input = input::read(request, "v1beta1.Input")?;
    let spec = &input.spec;
    let requirements = requirements(&spec.extra_resources, request.observed_composite().object());
    response.requirements =
        Some(requirements.map_err(|error| format!("could not build extra resource requirements: {error}"))?);
    if request.required_resources.is_empty() {
        return Ok(());
    }
    let mut found = Map::new();
    for source in &spec.extra_resources {
        let resources = verified(source, &spec.policy, request)
            .map_err(|error| format!("verifying and sorting extra resources: {error}"))?;
        if let Some(resources) = resources {
            let objects: Vec<Value> = resources.iter().map(|resource| object(resource)).collect();
            found.insert(source.into.clone(), objects.into());
        }
    }
    response.set_context(spec.context.key.as_deref().unwrap_or(CONTEXT_KEY), found);
    Ok(())
}

fn object(resource: &Resource) -> Value {
    match resource.object() {
        Value::Null => Value::Object(Map::new()),
        object => object.clone(),
    }
}

fn requirements(sources: &[Source], composite: &Value) -> Result<Requirements, String> {
    let mut resources = BTreeMap::new();
    for source in sources {
        let (api_version, kind) = (source.api_version.as_str(), source.kind.as_str());
        let mut selector = match &*source.r#type {
            "" | "Reference" => {
                let reference = source.r#ref.as_ref().ok_or("Ref cannot be nil for type 'Reference'")?;
                ResourceSelector::named(api_version, kind, &reference.name)
            }
            "Selector" => {
                let selector =
                    source.selector.as_ref().ok_or("Selector cannot be nil for type 'Selector'")?;
                let labels = selection::labels(&selector.match_labels, composite)?;
                if labels.is_empty() {
                    continue;
                }
                ResourceSelector::labelled(api_version, kind, labels)
            }
            _ => continue,
        };
        selector.namespace.clone_from(&source.namespace);
        resources.insert(source.into.clone(), selector);
    }
    Ok(Requirements { resources, ..Requirements::default() })
}

/// What was found for a source, in order; `None` when nothing was, and need not be.
fn verified<'a>(
    source: &Source,
    policy: &Policy,
    request: &'a RunFunctionRequest,
) -> Result<Option<Vec<&'a Resource>>, String> {
    let into = quote(&source.into);
    let found = request.required_resources.get(&source.into);
    let found = found.ok_or_else(|| format!("cannot find expected extra resource {into}"))?;
    let mut found: Vec<&Resource> = found.items.iter().collect();
    let count = found.len();
    match (&*source.r#type, &source.selector) {
        ("" | "Reference", _) => match count {
            0 if policy.is_optional() => return Ok(None),
            0 => return Err(format!("Required extra resource {into} not found")),
            1 => {}
            _ => return Err(format!("expected exactly one extra resource {into}, got {count}")),
        },
        ("Selector", Some(selector)) => {
            if let Some(least) = selector.min_match.filter(|least| (count as u64) < *least) {
                return Err(format!("expected at least {least} extra resources {into}, got {count}"));
            }
            selection::sort(&mut found, selection::sort_path(&selector.sort_by_field_path))?;
            found.truncate(selector.max_match.and_then(|most| usize::try_from(most).ok()).unwrap_or(count));
        }
        _ => {}
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests;
