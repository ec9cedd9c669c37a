//! What a composition is decided from.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_function::ResourceSelector;
use transom_object::time::Timestamp;
use transom_xapi::CompositionSpec;
use transom_xapi::composite::Layout;

/// Everything that is known before the first function is called.
#[derive(Clone, Debug)]
pub struct Inputs<'a> {
    /// The composite resource, with the conditions that are already known but not yet written.
    pub xr: &'a Value,
    /// What functions see in its place, if anything else.
    pub visible_xr: Option<&'a Value>,
    /// Where it keeps what belongs to Crossplane.
    pub layout: Layout,
    /// Its connection details, when it is a legacy one and has published some.
    pub connection_details: BTreeMap<String, Vec<u8>>,
    /// How it is composed: the spec of the chosen revision.
    pub composition: &'a CompositionSpec,
    /// The composed resources that exist; see [`observe`](crate::observe).
    pub observed: &'a Observed,
    /// What else the composite resource refers to.
    pub spare: &'a [Spare],
    /// What the steps required in the last run: [`Decision::requirements`](crate::Decision::requirements) or
    /// [`Failure::requirements`](crate::Failure::requirements) of then.
    pub required_before: &'a Requirements,
    /// The pipeline's initial context.
    pub context: serde_json::Map<String, Value>,
    /// The time that conditions carry.
    pub now: Timestamp,
    /// Limits and switches.
    pub options: Options,
}

/// Limits and switches.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How often a step that does not say so itself is called again because it requires something new.
    pub max_iterations: usize,
    /// Whether functions may require resources. What the author of a Composition gives them does not depend on it.
    pub extra_resources: bool,
    /// Also deletes observed resources that are no longer wanted and have no controller. Older versions of Crossplane
    /// did so; a user may have removed the controller to keep the resource.
    pub delete_uncontrolled: bool,
    /// Whether the world knows which kinds are namespaced. Files do not contain that, so every kind counts as namespaced.
    pub scopes_known: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_iterations: 5, extra_resources: true, delete_uncontrolled: false, scopes_known: false }
    }
}

/// The composed resources that exist, by their name in the composition.
pub type Observed = BTreeMap<String, ObservedResource>;

/// A composed resource that exists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedResource {
    /// The whole object. Every step gets it, so it is shared, not copied.
    pub object: Arc<Value>,
    /// What its connection Secret contains.
    pub connection_details: BTreeMap<String, Vec<u8>>,
}

/// The objects that a composite resource refers to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The composed resources.
    pub observed: Observed,
    /// The others.
    pub spare: Vec<Spare>,
}

/// An object that is referred to and is not observed as a composed resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Spare {
    /// The name in the composition, which another object has, too; `None` if it has no name.
    pub name: Option<String>,
    /// The object.
    pub object: Value,
}

/// What the function of each step required in its last response, by step.
pub type Requirements = BTreeMap<String, Required>;

/// What a function required in its last response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Required {
    /// As it was returned.
    pub requirements: transom_function::Requirements,
    /// Identifies the step, as it was written then, if its function required the same before and after it was given
    /// it. Such a function may be given it in the first call of the next run.
    pub(crate) at_once: Option<[u8; 32]>,
}

impl Required {
    /// The selectors of resources by the name of their requirement, in no particular order. A name occurs twice when
    /// the function requires it under the deprecated name of the field, too.
    pub fn selectors(&self) -> impl Iterator<Item = (&str, &ResourceSelector)> {
        let selectors = self.requirements.resources.iter().chain(&self.requirements.extra_resources);
        selectors.map(|(name, selector)| (name.as_str(), selector))
    }
}
