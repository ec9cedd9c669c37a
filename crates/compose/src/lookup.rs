//! What a requirement makes the engine look up.

use crate::world::{WorldError, kind};
use std::collections::{BTreeMap, BTreeSet};
use transom_function::ResourceSelector;
use transom_function::proto::v1::resource_selector::Match;
use transom_object::{GroupVersionKind, meta};
use transom_xapi::composition::InputReference;

/// One read of the world: an object by its name, or all objects with some labels, in one namespace or in all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// One object by its name.
    Named {
        /// Its kind.
        kind: GroupVersionKind,
        /// Empty for a cluster-scoped object.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The objects with all of these labels.
    Labelled {
        /// Their kind.
        kind: GroupVersionKind,
        /// `None` for every namespace.
        namespace: Option<String>,
        /// No labels select every object.
        labels: BTreeMap<String, String>,
    },
}

impl Lookup {
    /// What a selector selects. A selector with neither a name nor labels selects everything of the kind.
    pub fn of(selector: &ResourceSelector) -> Result<Self, WorldError> {
        let kind = kind(&selector.api_version, &selector.kind)?;
        let namespace = selector.namespace.clone().filter(|namespace| !namespace.is_empty());
        let labels = match &selector.r#match {
            Some(Match::MatchName(name)) => {
                let (namespace, name) = (namespace.unwrap_or_default(), name.clone());
                return Ok(Self::Named { kind, namespace, name });
            }
            Some(Match::MatchLabels(labels)) => labels.labels.clone(),
            None => BTreeMap::new(),
        };
        Ok(Self::Labelled { kind, namespace, labels })
    }

    /// The object that holds the input of a step.
    pub(crate) fn of_input(input: &InputReference) -> Result<Self, WorldError> {
        let kind = kind(&input.api_version, &input.kind)?;
        Ok(Self::Named { kind, namespace: input.namespace.clone(), name: input.name.clone() })
    }

    /// An object itself; `None` without an `apiVersion` and a `kind`.
    pub(crate) fn of_object(object: &serde_json::Value, namespace: &str) -> Option<Self> {
        let (namespace, name) = (namespace.to_owned(), meta::name(object).to_owned());
        Some(Self::Named { kind: meta::gvk(object)?, namespace, name })
    }
}

/// What a run looked up.
#[derive(Default)]
pub(crate) struct Lookups {
    /// For requests that its outcome depends on.
    used: BTreeSet<Lookup>,
    /// For requests whose responses were discarded.
    discarded: BTreeSet<Lookup>,
}

impl Lookups {
    pub(crate) fn add(&mut self, lookup: Lookup) {
        self.used.insert(lookup);
    }

    /// Adds the lookups for a request whose response is used.
    pub(crate) fn merge(&mut self, other: Self) {
        self.used.extend(other.used);
        self.discarded.extend(other.discarded);
    }

    /// Adds the lookups for a request whose response is discarded.
    pub(crate) fn merge_discarded(&mut self, other: Self) {
        self.discarded.extend(other.used);
        self.discarded.extend(other.discarded);
    }

    /// The lookups that the outcome does not depend on.
    pub(crate) fn unused(self) -> BTreeSet<Lookup> {
        self.discarded.difference(&self.used).cloned().collect()
    }
}
