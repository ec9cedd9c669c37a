//! Compositions and their revisions: which functions run, in what order, to compose one type of composite resource.
//!
//! A Composition is what users write; every change of it becomes a CompositionRevision, which is what runs. Fields of
//! a pipeline step that Crossplane designed but never shipped (`function`, `functionRevisionRef`,
//! `functionRevisionSelector`, `allowedExtraResources`, `maxIterations`, `inputRef`) carry the names the designs gave them.
//!
//! A field of a step is also in `crds::composition`, whose schema and rules `render` checks as API servers do, and in the
//! additions that `tests/all/crds.rs` allows. An absent field is not serialized: otherwise the hash of every Composition changes.

#![expect(missing_docs, reason = "names and fields are Crossplane's, which its CRDs describe")]

use crate::conditions::Condition;
use crate::function::WantedRevision;
use crate::inline::{FunctionEntry, InlineFunction};
use crate::metadata::Metadata;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What is left out of an encoded object, as Go's `omitempty` would.
pub(crate) mod omit {
    use std::collections::BTreeMap;

    pub(crate) fn text(text: &str) -> bool {
        text.is_empty()
    }

    pub(crate) fn list<T>(list: &[T]) -> bool {
        list.is_empty()
    }

    pub(crate) fn map<V>(map: &BTreeMap<String, V>) -> bool {
        map.is_empty()
    }

    pub(crate) fn zero(number: &i64) -> bool {
        *number == 0
    }
}

/// Reads `null` as nothing, as Go does for lists, maps and texts.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// `mode: Pipeline`.
pub const MODE_PIPELINE: &str = "Pipeline";
/// `mode: Resources`, of Crossplane v1: patch-and-transform without naming the function.
pub const MODE_RESOURCES: &str = "Resources";

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Composition {
    pub metadata: Metadata,
    pub spec: CompositionSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompositionSpec {
    pub composite_type_ref: TypeReference,
    #[serde(skip_serializing_if = "omit::text")]
    pub mode: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub pipeline: Vec<PipelineStep>,
    /// The resource templates of `mode: Resources`, in the language of function-patch-and-transform.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub resources: Vec<Value>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub patch_sets: Vec<Value>,
    /// Run after the resource templates, in this order: alpha composition functions.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub functions: Vec<FunctionEntry>,
    /// The environment of Crossplane v1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_connection_secrets_to_namespace: Option<String>,
    /// Without effect: see [`CompositionSpec::store`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish_connection_details_with_store_config_ref: Option<NameReference>,
}

/// What resources are composed with beside the composite resource, as in Crossplane v1. What its parts mean is known to
/// the functions that they are given to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Environment {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_data: Option<Value>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub environment_configs: Vec<Value>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub patches: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
}

/// The store configuration that Crossplane v1 writes into every Composition.
const DEFAULT_STORE: &str = "default";

impl CompositionSpec {
    /// Whether the resource templates rather than the pipeline say what to compose. A Composition of Crossplane v1
    /// that names no mode means this one; the API server's default has then already written `Pipeline`.
    pub fn is_resources_mode(&self) -> bool {
        let is_described = !self.resources.is_empty() || !self.functions.is_empty();
        self.mode == MODE_RESOURCES || (self.pipeline.is_empty() && is_described)
    }

    /// The external secret store that connection details are to be published to. There are none, so it cannot work.
    pub fn store(&self) -> Option<&str> {
        let store = self.publish_connection_details_with_store_config_ref.as_ref()?;
        Some(store.name.as_str()).filter(|name| *name != DEFAULT_STORE)
    }

    /// What has no effect because of the mode, a sentence each.
    pub fn ignored(&self) -> Vec<String> {
        let mut ignored = Vec::new();
        let mut note = |present: bool, field: &str, mode: &str, remedy: &str| {
            if present {
                ignored.push(format!("spec.{field} has no effect in mode {mode}: {remedy}"));
            }
        };
        if self.is_resources_mode() {
            let remedy = "remove it, or set spec.mode to Pipeline and remove spec.resources";
            note(!self.pipeline.is_empty(), "pipeline", MODE_RESOURCES, remedy);
            return ignored;
        }
        let remedy = "remove it, or give it to a step that calls function-patch-and-transform";
        note(!self.resources.is_empty(), "resources", MODE_PIPELINE, remedy);
        note(!self.patch_sets.is_empty(), "patchSets", MODE_PIPELINE, remedy);
        let patches = self.environment.as_ref().is_some_and(|e| !e.patches.is_empty());
        note(patches, "environment.patches", MODE_PIPELINE, remedy);
        let remedy = "remove it, or make each a step of the pipeline with the field inline";
        note(!self.functions.is_empty(), "functions", MODE_PIPELINE, remedy);
        ignored
    }

    /// Whether a step describes its function itself.
    pub fn has_inline_functions(&self) -> bool {
        if self.is_resources_mode() {
            return !self.functions.is_empty();
        }
        self.pipeline.iter().any(|step| step.inline.is_some())
    }

    /// The functions that the steps of the pipeline name, in its order. Steps that pin an image or describe their function name
    /// none.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        let named = self.pipeline.iter().filter(|step| step.function.is_none() && step.inline.is_none());
        named.map(|step| step.function_ref.name.as_str())
    }
}

/// A type of resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TypeReference {
    pub api_version: String,
    pub kind: String,
}

impl TypeReference {
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into() }
    }
}

/// One call of a function.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PipelineStep {
    pub step: String,
    /// The function to run; empty in a step that pins an image.
    #[serde(skip_serializing_if = "NameReference::is_empty")]
    pub function_ref: NameReference,
    /// Runs the active revision with this image, `REPOSITORY@sha256:…`, regardless of the name of its Function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// An inline function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline: Option<InlineFunction>,
    /// Runs this very revision of the function instead of its newest active one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function_revision_ref: Option<NameReference>,
    /// Runs the newest active revision of the function that carries these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function_revision_selector: Option<LabelMatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// An object that holds the input, so that several Compositions can share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_ref: Option<InputReference>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub credentials: Vec<Credentials>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requirements: Option<Requirements>,
    /// What the function may ask for. `None` allows everything; a list allows what it names and nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_extra_resources: Option<Vec<AllowedResource>>,
    /// How often the function may be called before what it requires must no longer change; -1 for any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<i64>,
}

impl PipelineStep {
    /// What the step calls, for messages: the name of its function, the image that it pins, or what it describes.
    pub fn function_name(&self) -> &str {
        if let Some(inline) = &self.inline {
            return inline.target();
        }
        self.function.as_deref().unwrap_or(&self.function_ref.name)
    }

    /// Which revision of its function the step wants.
    pub fn wanted_revision(&self) -> WantedRevision<'_> {
        if let Some(image) = &self.function {
            return WantedRevision::Image(image);
        }
        if let Some(reference) = &self.function_revision_ref {
            return WantedRevision::Named(&reference.name);
        }
        match &self.function_revision_selector {
            Some(selector) => WantedRevision::Labelled(&selector.match_labels),
            None => WantedRevision::Newest,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct NameReference {
    pub name: String,
}

impl NameReference {
    pub(crate) fn is_empty(&self) -> bool {
        self.name.is_empty()
    }

    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelMatch {
    #[serde(deserialize_with = "nullable")]
    pub match_labels: BTreeMap<String, String>,
}

impl LabelMatch {
    /// Whether an object with these labels is meant.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(k, v)| labels.get(k) == Some(v))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InputReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub namespace: String,
}

/// A secret handed to the function under a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Credentials {
    pub name: String,
    /// `None` or `Secret`.
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
}

impl Credentials {
    /// The secret to read, if one is meant.
    pub fn secret(&self) -> Option<&SecretReference> {
        self.secret_ref.as_ref().filter(|_| self.source == "Secret")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(default)]
pub struct SecretReference {
    pub name: String,
    pub namespace: String,
}

/// What the function gets before it asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Requirements {
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub required_resources: Vec<RequiredResource>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub required_schemas: Vec<RequiredSchema>,
}

/// Objects by name, by labels, or (neither given) all of the kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequiredResource {
    pub requirement_name: String,
    pub api_version: String,
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::map")]
    pub match_labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequiredSchema {
    pub requirement_name: String,
    pub api_version: String,
    pub kind: String,
}

/// Objects a function may ask for. The name and the values of labels are regular expressions that must match the
/// whole text; the value `*` allows any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllowedResource {
    pub api_version: String,
    pub kind: String,
    /// The design's prose says `name`, its types `matchName`: both are read.
    #[serde(alias = "name", skip_serializing_if = "Option::is_none")]
    pub match_name: Option<String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::map")]
    pub match_labels: BTreeMap<String, String>,
    /// Without it, objects in all namespaces and without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_namespace: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CompositionRevision {
    pub metadata: Metadata,
    pub spec: CompositionRevisionSpec,
    pub status: ConditionedStatus,
}

/// The spec of the Composition as it was, and the number of the revision.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct CompositionRevisionSpec {
    #[serde(flatten)]
    pub composition: CompositionSpec,
    pub revision: i64,
}

/// A status of which only the conditions matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ConditionedStatus {
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_fields_are_ignored_and_zero_values_left_out() {
        let composition: Composition = serde_json::from_value(json!({
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "Composition",
            "metadata": {"name": "c", "managedFields": [{}]},
            "spec": {
                "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"},
                "mode": "Pipeline",
                "surprise": 1,
                "resources": null,
                "pipeline": [{
                    "step": "one",
                    "functionRef": {"name": "f"},
                    "allowedExtraResources": [{"apiVersion": "v1", "kind": "Secret", "name": "a.*"}],
                    "functionRevisionSelector": {"matchLabels": {"channel": "alpha"}},
                }],
            },
        }))
        .unwrap();
        assert_eq!(
            serde_json::to_value(&composition.spec).unwrap(),
            json!({
                "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"},
                "mode": "Pipeline",
                "pipeline": [{
                    "step": "one",
                    "functionRef": {"name": "f"},
                    "allowedExtraResources": [{"apiVersion": "v1", "kind": "Secret", "matchName": "a.*"}],
                    "functionRevisionSelector": {"matchLabels": {"channel": "alpha"}},
                }],
            })
        );
        assert_eq!(composition.spec.function_names().collect::<Vec<_>>(), ["f"]);
    }

    #[test]
    fn a_step_wants_a_revision_by_image_name_or_labels() {
        let step = |more: Value| -> PipelineStep { serde_json::from_value(more).unwrap() };
        let (reference, labels) = (json!({"name": "f"}), json!({"matchLabels": {"a": "b"}}));
        let plain = step(json!({"step": "s", "functionRef": reference}));
        assert_eq!((plain.function_name(), plain.wanted_revision()), ("f", WantedRevision::Newest));
        let labelled = step(json!({"functionRef": reference, "functionRevisionSelector": labels}));
        let wanted = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        assert_eq!(labelled.wanted_revision(), WantedRevision::Labelled(&wanted));
        let both = json!({"functionRef": reference, "functionRevisionSelector": labels, "functionRevisionRef": {"name": "f-1"}});
        assert_eq!(step(both).wanted_revision(), WantedRevision::Named("f-1"));
        let pinned = json!({"step": "s", "function": "r.io/f@sha256:0"});
        assert_eq!(step(pinned.clone()).wanted_revision(), WantedRevision::Image("r.io/f@sha256:0"));
        assert_eq!(step(pinned.clone()).function_name(), "r.io/f@sha256:0");
        assert_eq!(json!(step(pinned.clone())), pinned, "it has no functionRef");
        let spec = CompositionSpec { pipeline: vec![step(pinned)], ..CompositionSpec::default() };
        assert_eq!(spec.function_names().count(), 0);
    }

    #[test]
    fn a_revision_is_a_composition_with_a_number() {
        let revision: CompositionRevision = serde_json::from_value(json!({
            "spec": {"compositeTypeRef": {"apiVersion": "a/v1", "kind": "K"}, "revision": 3},
            "status": {"conditions": [{"type": "ValidPipeline", "status": "True"}]},
        }))
        .unwrap();
        assert_eq!(
            (revision.spec.revision, revision.spec.composition.composite_type_ref.kind.as_str()),
            (3, "K")
        );
        assert_eq!(revision.status.conditions[0].kind, "ValidPipeline");
    }

    #[test]
    fn what_the_mode_ignores_is_named() {
        let spec = |value| serde_json::from_value::<CompositionSpec>(value).unwrap();
        let step = json!([{"step": "s"}]);
        let both = spec(json!({"mode": "Pipeline", "pipeline": step, "resources": [{}], "patchSets": [{}],
            "environment": {"patches": [{}]}}));
        let fields: Vec<String> =
            both.ignored().iter().map(|s| s.split(' ').next().unwrap_or_default().to_owned()).collect();
        assert_eq!(fields, ["spec.resources", "spec.patchSets", "spec.environment.patches"]);
        let reverse = spec(json!({"mode": "Resources", "pipeline": step, "resources": [{}],
            "environment": {"patches": [{}]}}));
        assert!(reverse.ignored()[0].starts_with("spec.pipeline has no effect in mode Resources"));
        assert_eq!(reverse.ignored().len(), 1);
        for fine in
            [json!({"mode": "Pipeline", "pipeline": step}), json!({"resources": [{}], "patchSets": [{}]})]
        {
            assert_eq!(spec(fine).ignored(), Vec::<String>::new());
        }
    }

    #[test]
    fn only_the_default_store_counts_as_none() {
        let spec = |name: &str| {
            let spec = json!({"publishConnectionDetailsWithStoreConfigRef": {"name": name}});
            serde_json::from_value::<CompositionSpec>(spec).unwrap()
        };
        assert_eq!((spec("default").store(), spec("vault").store()), (None, Some("vault")));
        assert_eq!(json!(spec("default"))["publishConnectionDetailsWithStoreConfigRef"]["name"], "default");
    }

    #[test]
    fn templates_without_a_pipeline_mean_resources_mode() {
        let spec = |value| serde_json::from_value::<CompositionSpec>(value).unwrap();
        assert!(spec(json!({"mode": "Resources"})).is_resources_mode());
        assert!(spec(json!({"mode": "Pipeline", "resources": [{}]})).is_resources_mode());
        assert!(
            !spec(json!({"mode": "Pipeline", "pipeline": [{"step": "s"}], "resources": [{}]}))
                .is_resources_mode()
        );
        assert!(!spec(json!({"mode": "Pipeline"})).is_resources_mode());
    }
}
