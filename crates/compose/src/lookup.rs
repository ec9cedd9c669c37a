//! What a requirement makes the engine look up.

use crate::inputs::Requirements;
use crate::requirements::selector;
use std::collections::{BTreeMap, BTreeSet};
use transom_function::ResourceSelector;
use transom_function::proto::v1::resource_selector::Match;
use transom_xapi::PipelineStep;

/// One look at the world: an object by its name, or all with some labels, in one namespace or in all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    Named {
        api_version: String,
        kind: String,
        namespace: String,
        name: String,
    },
    Labelled {
        api_version: String,
        kind: String,
        namespace: Option<String>,
        labels: BTreeMap<String, String>,
    },
}

impl Lookup {
    /// What a selector selects. Without a word about names and labels that is everything of the kind.
    pub fn of(selector: &ResourceSelector) -> Self {
        let (api_version, kind) = (selector.api_version.clone(), selector.kind.clone());
        let namespace = selector.namespace.clone().filter(|namespace| !namespace.is_empty());
        let labels = match &selector.r#match {
            Some(Match::MatchName(name)) => {
                let (namespace, name) = (namespace.unwrap_or_default(), name.clone());
                return Self::Named { api_version, kind, namespace, name };
            }
            Some(Match::MatchLabels(labels)) => labels.labels.clone(),
            None => BTreeMap::new(),
        };
        Self::Labelled { api_version, kind, namespace, labels }
    }

    /// What steps required.
    pub fn of_all(requirements: &Requirements) -> BTreeSet<Self> {
        requirements.values().flat_map(BTreeMap::values).map(Self::of).collect()
    }

    /// What a pipeline itself looks up before its functions are asked.
    pub fn of_steps(steps: &[PipelineStep]) -> BTreeSet<Self> {
        let required = steps.iter().filter_map(|step| step.requirements.as_ref());
        let required = required.flat_map(|r| &r.required_resources).map(|r| Self::of(&selector(r)));
        let inputs = steps.iter().filter_map(|step| step.input_ref.as_ref()).map(|input| Self::Named {
            api_version: input.api_version.clone(),
            kind: input.kind.clone(),
            namespace: input.namespace.clone(),
            name: input.name.clone(),
        });
        required.chain(inputs).collect()
    }
}
