//! `pods/x/binding`, and `bindings`, its older form: assigns a pod to a node.

use super::not_supported;
use crate::admission::{Operation, Options, Request};
use crate::call::Call;
use crate::change::{Edit, Existing};
use crate::decode;
use crate::negotiate;
use crate::pods;
use crate::request::{Verb, WriteOptions};
use crate::resource::Resource;
use crate::respond::Answer;
use crate::subresource::Subresource;
use crate::write::{self, Update};
use http::StatusCode;
use serde_json::{Value, json};
use transom_object::{GroupVersion, Status};

const TYPE: &str = "io.k8s.api.core.v1.Binding";

/// Under the name of the pod.
pub(super) async fn create(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    if call.verb != Verb::Create {
        return Err(not_supported(call));
    }
    let (binding, options) = read(call, body, "Binding", TYPE)?;
    if binding["metadata"]["name"] != *call.target.name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    assign(call, &call.resource, Subresource::Binding, binding, &options).await
}

/// In the collection, where the binding has the name of the pod.
pub(super) async fn create_by_name(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    let (binding, options) = read(call, body, "Binding", TYPE)?;
    let pods = pods_of(call)?;
    assign(call, &pods, Subresource::Main, binding, &options).await
}

fn pods_of(call: &Call) -> Result<std::sync::Arc<Resource>, Status> {
    let pods = GroupVersion::new("", "v1").with_resource("pods");
    call.server.registry.find(&pods).ok_or_else(|| Status::internal("pods are not served"))
}

/// A body of a kind that is answered and not stored.
pub(super) fn read(
    call: &Call,
    body: &[u8],
    kind: &str,
    type_name: &str,
) -> Result<(Value, WriteOptions), Status> {
    let options = WriteOptions::parse(&call.query, "CreateOptions", call.user_agent(), false)?;
    let mut value = decode::value(body, negotiate::body_type(&call.headers, true)?, kind)?.value;
    let unknown = transom_kinds::normalize(&mut value, type_name).map_err(|e| {
        Status::bad_request(format!("{kind} in version \"v1\" cannot be handled as a {kind}: {e}"))
    })?;
    decode::judge(&call.resource, &[], &unknown, options.field_validation)?;
    write::match_path(&mut value, &call.target.namespace, None)?;
    Ok((value, options))
}

/// The response to a request that has nothing to show.
pub(super) fn success() -> Answer {
    let code = StatusCode::CREATED;
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code.as_u16()});
    Answer::value(status).with_code(code)
}

async fn assign(
    call: &Call,
    pods: &Resource,
    reviewed: Subresource,
    mut binding: Value,
    options: &WriteOptions,
) -> Result<Answer, Status> {
    let name = binding["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let review = Request {
        operation: Operation::Create,
        resource: &call.resource,
        subresource: reviewed,
        namespace: &call.target.namespace,
        name: &name,
        options: Options::Write(options),
        by: call.requester(),
    };
    call.server.admit_mutating(&review, &mut binding, None).await?;
    pods::validate_binding(&binding)?;
    call.server.admit_validating(&review, Some(&binding), None).await?;
    let update = Update {
        namespace: &call.target.namespace,
        name: &name,
        subresource: Subresource::Binding,
        options,
        owns_fields: false,
        create_missing: false,
        require_version: false,
        pins_version: false,
        by: call.requester(),
    };
    let mut edit = Edit(|existing: &Existing<'_>| {
        let live = existing.value.ok_or_else(|| Status::not_found(&pods.group_resource(), &name))?;
        pods::bind(live, &binding, existing.now)
    });
    write::update(&call.server, pods, &update, &mut edit).await?;
    Ok(success())
}
