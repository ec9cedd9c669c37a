//! PUT of an object, its status, or a namespace's finalizers.

use super::written;
use crate::call::Call;
use crate::request::WriteOptions;
use crate::respond::Answer;
use crate::strategy::Face;
use crate::write::{self, Update};
use serde_json::Value;
use transom_object::Status;

pub(super) async fn update(call: &Call, body: &[u8], face: Face) -> Result<Answer, Status> {
    super::expect_name(call)?;
    let strategy = &call.resource.strategy;
    let (value, options) = decode_body(call, body)?;
    let request = Update {
        namespace: &call.target.namespace,
        name: &call.target.name,
        face,
        manager: Some(&options.field_manager),
        dry_run: options.dry_run,
        create_missing: strategy.allow_create_on_update(),
        require_version: !strategy.allow_unconditional_update(),
        pins_version: true,
    };
    let (outcome, warnings) =
        write::update(&call.server, &call.resource, &request, |_| Ok(value.clone())).await?;
    call.warn(warnings);
    written(call, &outcome)
}

/// `namespaces/x/finalize` replaces `spec.finalizers`, and nothing else can.
pub(super) async fn finalize(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    let (value, options) = decode_body(call, body)?;
    let request = Update {
        namespace: "",
        name: &call.target.name,
        face: Face::Finalize,
        manager: Some(&options.field_manager),
        dry_run: options.dry_run,
        create_missing: false,
        require_version: false,
        pins_version: true,
    };
    let (outcome, _) = write::update(&call.server, &call.resource, &request, |_| Ok(value.clone())).await?;
    written(call, &outcome)
}

fn decode_body(call: &Call, body: &[u8]) -> Result<(Value, WriteOptions), Status> {
    let (mut value, options) = super::decode_body(call, body, "UpdateOptions")?;
    write::settle_place(&mut value, &call.target.namespace, Some(&call.target.name))?;
    Ok((value, options))
}
