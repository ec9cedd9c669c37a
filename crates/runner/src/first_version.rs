//! The functions that the engine calls for fields of Crossplane v1's Compositions.

use crate::router::Router;
use std::sync::Arc;
use transom_compose::{environment, resources_mode};
use transom_function::Function;

/// The functions of Compositions of Crossplane v1. No Function object stands for them, so whatever runs pipelines gives them
/// to its router.
pub struct FirstVersionFunctions {
    /// Runs compositions of mode `Resources`.
    pub templates: Arc<dyn Function>,
    /// Makes the environment of a Composition with `spec.environment`.
    pub environment: Arc<dyn Function>,
}

impl Router {
    /// Runs these functions under the names by which the engine calls them. [`counting`](Self::counting) comes before this.
    #[must_use]
    pub fn with_first_version(self, functions: FirstVersionFunctions) -> Self {
        self.run_in_process(resources_mode::FUNCTION, functions.templates);
        self.run_in_process(environment::FUNCTION, functions.environment);
        self
    }
}
