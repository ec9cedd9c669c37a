//! Values against their schema.
//!
//! [`validate`] first calls [`accept`], which decides without allocating; only a refused value is
//! walked again by [`explain`], which reports every violation as Kubernetes does and, on an update, ignores
//! those on parts that have not changed (ratcheting).
//!
//! | function | what it judges |
//! |---|---|
//! | [`validate`] | value validations: types, bounds, patterns, formats, logic |
//! | [`validate_status`] | the same for an update of the status alone |
//! | [`list_types`] | uniqueness in lists of type `set` and `map` |
//! | [`embedded`] | type and object metadata of embedded resources |
//! | [`blocks_rules`] | whether these violations make CEL rules pointless |

mod accept;
pub mod correlate;
mod explain;
pub mod formats;
mod lists;
mod numbers;
mod resource;

pub use correlate::Correlated;
pub use lists::list_types;
pub use resource::embedded;

use crate::model::Schema;
use serde_json::Value;
use transom_object::field::{self, Kind, Path};

/// What is wrong with a value. With `old`, the value it replaces, violations on unchanged correlatable parts
/// are tolerated.
///
/// `path` is the path of the value: the field of every error begins with it, while the sentences name fields
/// relative to the value, as upstream does.
pub fn validate(new: &Value, old: Option<&Value>, schema: &Schema, path: &Path) -> Vec<field::Error> {
    if accept::accepts(new, schema) {
        return Vec::new();
    }
    let correlated = old.map(|old| Correlated::new(new, old, schema));
    let errors = explain::explain(new, correlated, schema, path);
    debug_assert!(old.is_some() || !errors.is_empty(), "a refused value must have a reason");
    errors
}

/// Validates an update of the status subresource: only `status`, by its own part of the schema.
pub fn validate_status(new: &Value, old: Option<&Value>, schema: &Schema) -> Vec<field::Error> {
    let (Some(status), Some(schema)) = (new.get("status"), schema.properties.get("status")) else {
        return Vec::new();
    };
    let old = old.map(|old| old.get("status").unwrap_or(&Value::Null));
    validate(status, old, schema, &Path::new("status"))
}

/// Whether CEL rules must be skipped: they could only repeat these errors.
pub fn blocks_rules(errors: &[field::Error]) -> bool {
    let blocking = [Kind::NotSupported, Kind::Required, Kind::TooLong, Kind::TooMany, Kind::TypeInvalid];
    errors.iter().any(|e| blocking.contains(&e.kind))
}
