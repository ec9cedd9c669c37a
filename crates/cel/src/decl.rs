//! Declarations of variables: their CEL type, and how large their values can get, which bounds what an expression costs.

use super::types::Type;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The largest request an API server takes, from which sizes without other bound are derived.
pub const MAX_REQUEST_BYTES: i64 = 3 * 1024 * 1024;

/// A declared type with the bounds that cost estimation needs.
#[derive(Debug)]
pub struct Decl {
    /// The type.
    pub ty: Type,
    /// The most elements, code points or entries a value can have; zero where that has no meaning.
    pub max_elements: i64,
    /// The least bytes a value takes in JSON.
    pub min_size: i64,
    /// The declarations of what the value consists of.
    pub shape: Shape,
}

/// What a value consists of.
#[derive(Debug)]
pub enum Shape {
    /// Nothing that expressions can look into.
    Scalar,
    /// Elements.
    List(Arc<Decl>),
    /// Entries, by the declaration of their values.
    Map(Arc<Decl>),
    /// Fields, by their escaped names.
    Object(BTreeMap<String, Arc<Decl>>),
}

impl Decl {
    /// A value without parts.
    pub fn scalar(ty: Type, max_elements: i64, min_size: i64) -> Arc<Self> {
        Arc::new(Self { ty, max_elements, min_size, shape: Shape::Scalar })
    }

    /// Follows one step of a path as the cost estimator names it.
    pub(crate) fn step(&self, name: &str) -> Option<Arc<Decl>> {
        match (&self.shape, name) {
            (Shape::List(item), "@items" | "@values") | (Shape::Map(item), "@items" | "@values") => {
                Some(item.clone())
            }
            (Shape::Map(_), "@keys") => Some(Self::scalar(Type::String, 0, 2)),
            (Shape::Object(fields), name) => fields.get(name).cloned(),
            _ => None,
        }
    }

    /// How many values of this size fit into one request.
    pub fn max_cardinality(&self) -> u64 {
        u64::try_from(MAX_REQUEST_BYTES / (self.min_size + 1)).unwrap_or(0)
    }
}
