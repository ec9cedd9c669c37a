//! `function-environment-configs`: merges EnvironmentConfigs into the environment that later steps see.
//!
//! A first call only returns which configs are required; once they are there, their data is merged: later entries of
//! the input over earlier ones, all of them over the environment of earlier steps, that over the default data.

pub(crate) mod native;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use transom_function::{
    ENVIRONMENT, Requirements, Resource, ResourceSelector, RunFunctionRequest, RunFunctionResponse,
};
use transom_object::fieldpath;
use transom_object::quote::quote;
use transom_object::{GroupVersion, json as go};

use crate::input;
use crate::named::{OneOf, names};
use crate::review::{self, Builtin, Review, Unsupported};
use crate::selection::{self, LabelMatcher, Policy, Reference, SourceType};

names! {
    /// How many configs a selector finds.
    Mode: "Single", "Multiple";
}

/// The function.
pub(crate) struct EnvironmentConfigs;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Input {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    default_data: Map<String, Value>,
    environment_configs: Option<Vec<Source>>,
    policy: Policy,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Source {
    r#type: OneOf<SourceType>,
    r#ref: Option<Reference>,
    selector: Option<Selector>,
    to_field_path: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Selector {
    mode: OneOf<Mode>,
    max_match: Option<u64>,
    min_match: Option<u64>,
    sort_by_field_path: String,
    match_labels: Vec<LabelMatcher>,
}

/// What a source selects, once it is known to be complete.
enum Selected<'a> {
    Named(&'a str),
    Labelled(&'a Selector),
    /// A type that does not exist selects nothing.
    Nothing,
}

impl Source {
    fn selected(&self) -> Result<Selected<'_>, String> {
        Ok(match &*self.r#type {
            "" | "Reference" => {
                Selected::Named(&self.r#ref.as_ref().ok_or("Ref cannot be nil for type 'Reference'")?.name)
            }
            "Selector" => Selected::Labelled(
                self.selector.as_ref().ok_or("Selector cannot be nil for type 'Selector'")?,
            ),
            _ => Selected::Nothing,
        })
    }
}

impl Builtin for EnvironmentConfigs {
    fn answer(&self, request: &mut RunFunctionRequest) -> RunFunctionResponse {
        input::answer(request, |request, response| run(request, response, Profile::Function))
    }

    fn input_kind(&self) -> &'static str {
        "Input"
    }

    fn review(&self, input: &Map<String, Value>) -> Review {
        review::by_fields::<Input>(input, Unsupported::Ignored)
    }
}

review::function!(EnvironmentConfigs);

/// Which of the two users of this language it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Profile {
    /// A step of a pipeline: without configs there is no environment, not even its default data.
    Function,
    /// `spec.environment` of a Composition.
    Native,
}

fn run(
    request: &RunFunctionRequest,
    response: &mut RunFunctionResponse,
    profile: Profile,
) -> Result<(), String> {
    let input: Input = input::read(request, "v1beta1.Input")?;
    let sources = match &input.spec.environment_configs {
        None if profile == Profile::Function => return Ok(()),
        sources => sources.as_deref().unwrap_or_default(),
    };
    let composite = request.observed_composite().object();
    let requirements = requirements(sources, composite);
    let requirements = requirements.map_err(|e| format!("cannot build requirements: {e}"))?;
    let complete = profile == Profile::Native && requirements.resources.is_empty();
    response.requirements = Some(requirements);
    if request.required_resources.is_empty() && !complete {
        return Ok(());
    }
    set_environment(input, request, response)
}

/// Merges what was found into the environment of the response.
fn set_environment(
    input: Input,
    request: &RunFunctionRequest,
    response: &mut RunFunctionResponse,
) -> Result<(), String> {
    let sources = input.spec.environment_configs.as_deref().unwrap_or_default();
    let groups = select(sources, &input.spec.policy, request)
        .map_err(|error| format!("cannot get selected environment configs: {error}"))?;
    let mut data = merge_all(&groups).map_err(|error| format!("cannot merge environment data: {error}"))?;

    // In this order: a list between two objects hides the lower one only while it is itself not hidden.
    if let Some(earlier) = response.context.as_mut().and_then(|c| c.fields_mut().remove(ENVIRONMENT)) {
        data = merged(object(earlier), data);
    }
    let mut environment = merged(input.spec.default_data, data);
    name_kind(&mut environment);
    response.set_context(ENVIRONMENT, environment);
    Ok(())
}

fn requirement(index: usize) -> String {
    format!("environment-config-{index}")
}

fn requirements(sources: &[Source], composite: &Value) -> Result<Requirements, String> {
    const API_VERSION: &str = "apiextensions.crossplane.io/v1beta1";
    const KIND: &str = "EnvironmentConfig";
    let mut resources = BTreeMap::new();
    for (index, source) in sources.iter().enumerate() {
        let selector = match source.selected()? {
            Selected::Named(name) => ResourceSelector::named(API_VERSION, KIND, name),
            Selected::Labelled(selector) => {
                let labels = selection::labels(&selector.match_labels, composite)?;
                if labels.is_empty() {
                    continue;
                }
                ResourceSelector::labelled(API_VERSION, KIND, labels)
            }
            Selected::Nothing => continue,
        };
        resources.insert(requirement(index), selector);
    }
    Ok(Requirements { resources, ..Requirements::default() })
}

/// Configs whose data belongs at one path.
struct Group<'a> {
    path: &'a str,
    configs: Vec<&'a Resource>,
}

fn select<'a>(
    sources: &'a [Source],
    policy: &Policy,
    request: &'a RunFunctionRequest,
) -> Result<Vec<Group<'a>>, String> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let requirement = requirement(index);
        // Only what was requested can be missing.
        let Some(found) = request.required_resources.get(&requirement) else { continue };
        let found: Vec<&Resource> = found.items.iter().collect();
        let configs = match source.selected()? {
            Selected::Named(name) => named(name, found, policy).map_err(|error| {
                let name = quote(name);
                format!(
                    "cannot process environment config {name} by reference, {}: {error}",
                    quote(&requirement)
                )
            })?,
            Selected::Labelled(selector) => labelled(selector, found).map_err(|error| {
                format!("cannot process environment config {} by selector: {error}", quote(&requirement))
            })?,
            Selected::Nothing => continue,
        };
        match groups.iter_mut().find(|group| group.path == source.to_field_path) {
            Some(group) => group.configs.extend(configs),
            None => groups.push(Group { path: &source.to_field_path, configs }),
        }
    }
    Ok(groups)
}

fn named<'a>(name: &str, found: Vec<&'a Resource>, policy: &Policy) -> Result<Vec<&'a Resource>, String> {
    match found.len() {
        0 if policy.is_optional() => Ok(found),
        0 => Err(format!("Required environment config {} not found", quote(name))),
        1 => Ok(found),
        count => Err(format!("expected exactly one required resource {}, got {count}", quote(name))),
    }
}

fn labelled<'a>(selector: &Selector, mut found: Vec<&'a Resource>) -> Result<Vec<&'a Resource>, String> {
    let count = found.len();
    match &*selector.mode {
        "" | "Single" if count == 1 => Ok(found),
        "" | "Single" => Err(format!("expected exactly one required resource, got {count}")),
        "Multiple" => {
            if let Some(least) = selector.min_match.filter(|least| (count as u64) < *least) {
                return Err(format!("expected at least {least} required resources, got {count}"));
            }
            selection::sort(&mut found, selection::sort_path(&selector.sort_by_field_path))?;
            found.truncate(selector.max_match.and_then(|most| usize::try_from(most).ok()).unwrap_or(count));
            Ok(found)
        }
        mode => Err(format!("unknown selector mode {}", quote(mode))),
    }
}

fn merge_all(groups: &[Group<'_>]) -> Result<Map<String, Value>, String> {
    let mut merged = Map::new();
    for group in groups {
        for config in &group.configs {
            merge(&mut merged, data_at(config, group.path)?);
        }
    }
    Ok(merged)
}

/// A config's data, below the path it belongs at.
fn data_at(config: &Resource, path: &str) -> Result<Map<String, Value>, String> {
    if !path.is_empty() {
        let data = config.object().get("data").cloned().unwrap_or_default();
        let mut placed = json!({});
        fieldpath::set(&mut placed, path, data).map_err(|_| {
            format!("cannot get data from environment config {} into path {}", config.name(), quote(path))
        })?;
        return Ok(object(placed));
    }
    let problem = match config.get("data") {
        Ok(Value::Object(data)) => return Ok(data.clone()),
        Ok(Value::Null) => return Ok(Map::new()),
        Ok(other) => format!(
            "cannot unmarshal value from JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go::kind_of(other)
        ),
        Err(error) => error.to_string(),
    };
    Err(format!("cannot get data from environment config {}: {problem}", quote(config.name())))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn merged(mut into: Map<String, Value>, from: Map<String, Value>) -> Map<String, Value> {
    merge(&mut into, from);
    into
}

/// Merges objects recursively; for anything else the later value is kept.
fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge(into, from),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}

/// An environment that has neither API version nor kind gets both.
fn name_kind(environment: &mut Map<String, Value>) {
    let text = |field: &str| environment.get(field).and_then(Value::as_str).unwrap_or_default();
    let unnamed = match GroupVersion::parse(text("apiVersion")) {
        Some(version) => version.group.is_empty() && version.version.is_empty() && text("kind").is_empty(),
        None => true,
    };
    if unnamed {
        environment.insert("apiVersion".to_owned(), "internal.crossplane.io/v1alpha1".into());
        environment.insert("kind".to_owned(), "Environment".into());
    }
}

#[cfg(test)]
mod tests;
