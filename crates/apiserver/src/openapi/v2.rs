//! One OpenAPI v2 document for everything.

use super::v3::describe;
use crate::health::MINOR;
use crate::kinds::openapi::Dialect;
use crate::registry::Served;
use crate::resource::Resource;
use crate::server::Inner;
use serde_json::{Value, json};

pub(super) fn document(server: &Inner, served: &Served) -> Value {
    let resources: Vec<&Resource> = served.all().map(AsRef::as_ref).collect();
    let (paths, definitions) = describe(server, &resources, Dialect::V2);
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": format!("v1.{MINOR}.0")},
        "paths": paths,
        "definitions": definitions,
    })
}
