//! What a requirement makes the engine look up.

use std::collections::{BTreeMap, BTreeSet};
use transom_function::ResourceSelector;
use transom_function::proto::v1::resource_selector::Match;
use transom_xapi::composition::InputReference;

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

    /// The object that holds the input of a step.
    pub(crate) fn of_input(input: &InputReference) -> Self {
        Self::Named {
            api_version: input.api_version.clone(),
            kind: input.kind.clone(),
            namespace: input.namespace.clone(),
            name: input.name.clone(),
        }
    }
}

/// What a run looked up.
#[derive(Default)]
pub(crate) struct Looked {
    /// For requests that its outcome depends on.
    up: BTreeSet<Lookup>,
    /// For requests whose answers were discarded.
    in_vain: BTreeSet<Lookup>,
}

impl Looked {
    pub fn up(&mut self, lookup: Lookup) {
        self.up.insert(lookup);
    }

    /// Adds what was looked up for a request that counts.
    pub fn and(&mut self, other: Self) {
        self.up.extend(other.up);
        self.in_vain.extend(other.in_vain);
    }

    /// Adds what was looked up for a request that does not count.
    pub fn but_not(&mut self, other: Self) {
        self.in_vain.extend(other.up);
        self.in_vain.extend(other.in_vain);
    }

    /// What the outcome does not depend on although it was looked up.
    pub fn in_vain(self) -> BTreeSet<Lookup> {
        self.in_vain.difference(&self.up).cloned().collect()
    }
}
