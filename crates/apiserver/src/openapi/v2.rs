//! One OpenAPI v2 document for everything.

use super::documents::Built;
use super::v3::describe;
use crate::health::KUBERNETES_MINOR;
use crate::resource::Resource;
use crate::server::Inner;
use serde_json::json;
use std::sync::Arc;
use transom_kinds::openapi::Dialect;

pub(super) fn document(server: &Inner, resources: &[Arc<Resource>]) -> Built {
    let described = describe(server, resources, Dialect::V2);
    let document = json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": format!("v1.{KUBERNETES_MINOR}.0")},
        "paths": described.paths,
        "definitions": described.schemas,
    });
    Built { document, current: described.current }
}
