//! What a composition is decided from.

use serde_json::Value;
use std::collections::BTreeMap;
use transom_function::ResourceSelector;
use transom_object::time::Timestamp;
use transom_xapi::CompositionSpec;
use transom_xapi::composite::Schema;

/// Everything the engine knows before it calls the first function.
#[derive(Clone, Debug)]
pub struct Inputs<'a> {
    /// The composite resource, with the conditions that are already known but not yet written.
    pub xr: &'a Value,
    /// What functions are shown in its place, if anything else.
    pub shown: Option<&'a Value>,
    /// Where it keeps what belongs to Crossplane.
    pub schema: Schema,
    /// Its connection details, when it is a legacy one and has published some.
    pub connection_details: BTreeMap<String, Vec<u8>>,
    /// How it is composed: the spec of the chosen revision.
    pub composition: &'a CompositionSpec,
    /// The composed resources that exist; see [`observe`](crate::observe).
    pub observed: &'a Observed,
    /// What the steps required the last time, by step and requirement. They are looked up before the first call, so
    /// that a function that requires the same again is called once.
    pub seeds: &'a Requirements,
    /// The pipeline's initial context.
    pub context: serde_json::Map<String, Value>,
    /// The time conditions carry.
    pub now: Timestamp,
    pub options: Options,
}

/// Limits and switches.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How often a step is called again because it requires something new.
    pub max_iterations: usize,
    /// Deletes what is observed, no longer wanted and controlled by nobody, too. Crossplane did so once; somebody may
    /// have let go of it on purpose.
    pub delete_uncontrolled: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_iterations: 5, delete_uncontrolled: false }
    }
}

/// The composed resources that exist, by their name in the composition.
pub type Observed = BTreeMap<String, ObservedResource>;

/// A composed resource that exists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedResource {
    /// The whole object.
    pub object: Value,
    pub connection_details: BTreeMap<String, Vec<u8>>,
}

/// Selectors by step, then by the requirement's name.
pub type Requirements = BTreeMap<String, BTreeMap<String, ResourceSelector>>;
