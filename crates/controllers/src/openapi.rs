//! The schemas that functions require, from the server's OpenAPI documents.

use serde_json::Value;
use transom_compose::openapi::schema_of;
use transom_engine::{Cluster, Error, Result, found};
use transom_object::GroupVersionKind;

/// The schema of a kind, without references; `None` if the server does not serve the kind.
pub(crate) async fn schema(cluster: &Cluster, gvk: &GroupVersionKind) -> Result<Option<Value>> {
    let path = if gvk.group.is_empty() {
        format!("/openapi/v3/api/{}", gvk.version)
    } else {
        format!("/openapi/v3/apis/{}/{}", gvk.group, gvk.version)
    };
    let Some(document) = found(cluster.get_path(&path).await)? else { return Ok(None) };
    schema_of([&document], gvk).map_err(Error::domain)
}
