//! One OpenAPI v2 document for everything.

use crate::kubernetes_version;
use crate::resource::Resource;
use crate::v3::describe;
use serde_json::{Value, json};
use transom_kinds::openapi::Dialect;

/// The OpenAPI v2 document of all these resources.
pub fn document(resources: &[Resource]) -> Value {
    let described = describe(resources, Dialect::V2);
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": kubernetes_version()},
        "paths": described.paths,
        "definitions": described.schemas,
    })
}
