//! Functions that a process has itself, found by name.

use crate::Function;
use std::sync::Arc;

/// The functions of a process. Names are the last segments of the repositories of the packages that they replace.
pub trait FunctionSet: Send + Sync + 'static {
    /// All names.
    fn names(&self) -> Vec<String>;

    /// A function by its name; the same one every time.
    fn find(&self, name: &str) -> Option<Arc<dyn Function>>;

    /// The version of the original that a function equals, if that is known.
    fn original_version(&self, name: &str) -> Option<&'static str>;

    /// What runs Compositions of Crossplane v1 with the mode `Resources`.
    fn templates(&self) -> Arc<dyn Function>;

    /// What makes the environment of a Composition with `spec.environment`.
    fn environment(&self) -> Arc<dyn Function>;
}
