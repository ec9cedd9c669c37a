//! PUT of an object, its status, or a namespace's finalizers.

use super::written;
use crate::call::Call;
use crate::change::Replace;
use crate::request::WriteOptions;
use crate::respond::Answer;
use crate::subresource::Subresource;
use crate::write::{self, Update};
use serde_json::Value;
use transom_object::Status;

pub(super) async fn update(call: &Call, body: &[u8], subresource: Subresource) -> Result<Answer, Status> {
    super::expect_name(call)?;
    let strategy = &call.resource.strategy;
    let (value, options) = decode_body(call, body)?;
    let request = Update {
        namespace: &call.target.namespace,
        name: &call.target.name,
        subresource,
        options: &options,
        owns_fields: true,
        create_missing: strategy.allow_create_on_update(),
        require_version: !strategy.allow_unconditional_update(),
        pins_version: true,
        by: call.requester(),
    };
    let (outcome, warnings) =
        write::update(&call.server, &call.resource, &request, &mut Replace(value)).await?;
    call.warn(warnings);
    written(call, &outcome).await
}

/// `namespaces/x/finalize` replaces `spec.finalizers`, and nothing else can.
pub(super) async fn finalize(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    let (value, options) = decode_body(call, body)?;
    let request = Update {
        namespace: "",
        name: &call.target.name,
        subresource: Subresource::Finalize,
        options: &options,
        owns_fields: true,
        create_missing: false,
        require_version: false,
        pins_version: true,
        by: call.requester(),
    };
    let (outcome, _) = write::update(&call.server, &call.resource, &request, &mut Replace(value)).await?;
    written(call, &outcome).await
}

fn decode_body(call: &Call, body: &[u8]) -> Result<(Value, WriteOptions), Status> {
    let (mut value, options) = super::decode_body(call, body, "UpdateOptions")?;
    write::match_path(&mut value, &call.target.namespace, Some(&call.target.name))?;
    Ok((value, options))
}
