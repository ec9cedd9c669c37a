//! Where writes meet admission: what a mutated object must pass again, and the objects that plugins see of a Scale.

use super::meta::{dedup_owners, match_path, metadata_mut};
use crate::admission::{Phase, Request};
use crate::auth::Attributes;
use crate::certificates;
use crate::decode;
use crate::scale;
use crate::server::Inner;
use crate::subresource::Subresource;
use serde_json::Value;
use transom_object::Status;

/// The mutating phase of a create or an update. What plugins replace is defaulted and pruned again, keeps its
/// managedFields, and stays in its namespace. Returns warnings about it.
pub(super) async fn mutate(
    server: &Inner,
    request: &Request<'_>,
    new: &mut Value,
    old: Option<&Value>,
) -> Result<Option<String>, Status> {
    if !server.is_reviewed(Phase::Mutate, request) {
        return Ok(None);
    }
    if let (Subresource::Scale, Some(paths), Some(old)) = (request.subresource, &request.resource.scale, old)
    {
        let mut changed = scale::of(new, paths);
        if server.admit_mutating(request, &mut changed, Some(&scale::of(old, paths))).await? {
            scale::set_replicas(new, paths, changed["spec"]["replicas"].as_i64().unwrap_or(0));
        }
        return Ok(None);
    }
    let managers = new["metadata"].get("managedFields").cloned();
    if !server.admit_mutating(request, new, old).await? {
        return Ok(None);
    }
    let resource = request.resource;
    let normalized = resource.strategy.normalize(new);
    normalized.map_err(|why| Status::internal(decode::handled_as(resource, &why)))?;
    match managers {
        Some(managers) => metadata_mut(new).insert("managedFields".into(), managers),
        None => metadata_mut(new).remove("managedFields"),
    };
    match_path(new, request.namespace, None)?;
    Ok(dedup_owners(new, true))
}

/// The validating phase of an update.
pub(super) async fn validate_update(
    server: &Inner,
    request: &Request<'_>,
    new: &Value,
    old: &Value,
) -> Result<(), Status> {
    certificates::review(server, request, new, Some(old)).await?;
    if !server.is_reviewed(Phase::Validate, request) {
        return Ok(());
    }
    if let (Subresource::Scale, Some(paths)) = (request.subresource, &request.resource.scale) {
        let (new, old) = (scale::of(new, paths), scale::of(old, paths));
        return server.admit_validating(request, Some(&new), Some(&old)).await;
    }
    server.admit_validating(request, Some(new), Some(old)).await
}

/// An update or apply that creates needs the right to create, too.
pub(super) async fn authorize_create(server: &Inner, request: &Request<'_>) -> Result<(), Status> {
    if !request.by.is_client() {
        return Ok(());
    }
    let resource = request.resource;
    let attributes = Attributes {
        group: &resource.group,
        version: &resource.version,
        resource: &resource.names.plural,
        subresource: request.subresource.as_str(),
        namespace: request.namespace,
        name: request.name,
        ..Attributes::of(request.by.user, "create")
    };
    server.authorize(&attributes).await
}
