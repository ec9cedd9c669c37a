//! Requirements: the `ExtraResources` and `RequiredResources` documents of a template, and what the control plane
//! found for them, which later steps read from the context.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use transom_function::{Requirements, Resource, ResourceSelector, Resources};

/// What a document requires under one name.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Requirement {
    api_version: Option<String>,
    kind: Option<String>,
    match_labels: Option<BTreeMap<String, Option<String>>>,
    match_name: Option<String>,
    namespace: Option<String>,
}

/// Which kind of document requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Document {
    /// For every control plane: also written where older ones look, unless namespaced. The original forgets the
    /// namespace when labels select.
    ExtraResources,
    /// For those that know required resources, which have namespaces.
    RequiredResources,
}

impl Requirement {
    /// A name takes precedence over labels, and no labels select everything.
    fn selector(&self, document: Document) -> ResourceSelector {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (api_version, kind) = (text(&self.api_version), text(&self.kind));
        let name = self.match_name.as_deref().filter(|name| !name.is_empty());
        let labels = self.match_labels.iter().flatten();
        let labels = labels.map(|(key, value)| (key.clone(), text(value)));
        let selector = match name {
            Some(name) => ResourceSelector::named(api_version, kind, name),
            None => ResourceSelector::labelled(api_version, kind, labels),
        };
        match self.namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
            Some(namespace) if name.is_some() || document == Document::RequiredResources => {
                selector.in_namespace(namespace)
            }
            _ => selector,
        }
    }

    fn is_namespaced(&self) -> bool {
        self.namespace.as_deref().is_some_and(|namespace| !namespace.is_empty())
    }
}

/// Adds what a document requires.
pub(super) fn add(
    requirements: &mut Requirements,
    document: Document,
    required: &Value,
) -> Result<(), String> {
    let required =
        Option::<BTreeMap<String, Option<Requirement>>>::deserialize(required).map_err(|problem| {
            format!(
                "cannot get extra resources requirements: cannot unmarshal value from JSON: json: {problem}"
            )
        })?;
    for (name, requirement) in required.into_iter().flatten() {
        if requirements.extra_resources.contains_key(&name) {
            return Err(format!("duplicate extra resource key {name:?}"));
        }
        let requirement = requirement.unwrap_or_default();
        let selector = requirement.selector(document);
        if document == Document::ExtraResources && !requirement.is_namespaced() {
            requirements.extra_resources.insert(name.clone(), selector.clone());
        }
        requirements.resources.insert(name, selector);
    }
    Ok(())
}

/// Resources that were found, as the context holds them: names as the protocol's file has them, not as its JSON.
pub(super) fn found(resources: &BTreeMap<String, Resources>) -> Map<String, Value> {
    let group = |(name, resources): (&String, &Resources)| {
        let items: Vec<Value> = resources.items.iter().map(item).collect();
        (name.clone(), if items.is_empty() { json!({}) } else { json!({ "items": items }) })
    };
    resources.iter().map(group).collect()
}

fn item(resource: &Resource) -> Value {
    let mut fields = Map::new();
    if let Some(object) = &resource.resource {
        fields.insert("resource".to_owned(), object.as_value().clone());
    }
    if !resource.connection_details.is_empty() {
        let details = resource.connection_details.iter();
        let details: Map<_, _> =
            details.map(|(key, bytes)| (key.clone(), STANDARD.encode(bytes).into())).collect();
        fields.insert("connection_details".to_owned(), details.into());
    }
    if resource.ready != 0 {
        fields.insert("ready".to_owned(), resource.ready.into());
    }
    fields.into()
}
