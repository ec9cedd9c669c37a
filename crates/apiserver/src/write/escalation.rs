//! Writes of roles and bindings give rights. A client may only give what it has itself, unless it may `escalate` the role
//! or `bind` it.

use crate::admission::Request;
use crate::auth::{Attributes, Decision, Identity};
use crate::rbac::user;
use crate::server::Inner;
use serde_json::Value;
use transom_object::{GroupResource, Status};
use transom_rbac::{GROUP, RoleRef, Rule, confirm, full_authority};

/// Refuses a role or binding by which the client would give more than it has. `url_name` is the name in the path of the
/// request, which a POST does not have.
pub(super) async fn confirm_no_escalation(
    server: &Inner,
    request: &Request<'_>,
    url_name: &str,
    new: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let resource = request.resource;
    if resource.group != GROUP || !request.by.is_client() || request.by.user.is_admin() {
        return Ok(());
    }
    if old.is_some_and(|old| only_collection_fields_differ(new, old)) {
        return Ok(());
    }
    match resource.names.plural.as_str() {
        "roles" | "clusterroles" => role(server, request, url_name, new, old).await,
        _ => binding(server, request, new).await,
    }
}

async fn role(
    server: &Inner,
    request: &Request<'_>,
    url_name: &str,
    new: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let escalate = Attributes {
        group: GROUP,
        version: "*",
        resource: &request.resource.names.plural,
        namespace: request.namespace,
        name: url_name,
        ..Attributes::of(request.by.user, "escalate")
    };
    if server.authorizer.authorize(&escalate).await == Decision::Allowed {
        return Ok(());
    }
    let refused = |why: String| Status::forbidden(&request.resource.group_resource(), name_of(new), why);
    holds(server, request.by.user, request.namespace, &Rule::all_of(new)).map_err(refused)?;
    if is_aggregated(new) || old.is_some_and(is_aggregated) {
        let why = || refused("must have cluster-admin privileges to use the aggregationRule".into());
        holds(server, request.by.user, request.namespace, &full_authority()).map_err(|_| why())?;
    }
    Ok(())
}

async fn binding(server: &Inner, request: &Request<'_>, new: &Value) -> Result<(), Status> {
    let role = RoleRef::of(new);
    let Some(resource) = role.resource() else {
        return Err(Status::new(500, "", format!("unsupported role reference kind: {:?}", role.kind)));
    };
    let bind = Attributes {
        group: &role.api_group,
        version: "*",
        resource,
        namespace: request.namespace,
        name: &role.name,
        ..Attributes::of(request.by.user, "bind")
    };
    if server.authorizer.authorize(&bind).await == Decision::Allowed {
        return Ok(());
    }
    let rules = server.rbac.current().rules_of(&role, request.namespace).map(<[Rule]>::to_vec);
    let Some(rules) = rules else {
        return Err(Status::not_found(&GroupResource::new(GROUP, resource), &role.name));
    };
    let refused = |why: String| Status::forbidden(&request.resource.group_resource(), name_of(new), why);
    holds(server, request.by.user, request.namespace, &rules).map_err(refused)
}

fn holds(server: &Inner, client: &Identity, namespace: &str, rules: &[Rule]) -> Result<(), String> {
    let index = server.rbac.current();
    let client = user(client);
    confirm(&client, &index.rules_for(&client, namespace), rules).map_err(|refusal| refusal.0)
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn is_aggregated(role: &Value) -> bool {
    role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|selectors| !selectors.is_empty())
}

/// Whether an update changes only what garbage collection needs to delete the object.
fn only_collection_fields_differ(new: &Value, old: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
                metadata.remove(field);
            }
        }
        object
    };
    without(new) == without(old)
}
