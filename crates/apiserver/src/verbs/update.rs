//! PUT of an object, its status, or a namespace's finalizers.

use super::written;
use crate::call::Call;
use crate::request::WriteOptions;
use crate::respond::Answer;
use crate::strategy::Face;
use crate::write::{self, Update};
use crate::{decode, negotiate};
use serde_json::Value;
use transom_object::Status;

pub(super) async fn update(call: &Call, body: &[u8], face: Face) -> Result<Answer, Status> {
    let strategy = &call.resource.strategy;
    let options = WriteOptions::parse(&call.query, "UpdateOptions", call.user_agent(), false)?;
    let (value, mut warnings) = decode_body(call, body, &options)?;
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
    let (outcome, more) =
        write::update(&call.server, &call.resource, &request, |_| Ok(value.clone())).await?;
    warnings.extend(more);
    written(call, &outcome, warnings)
}

/// `namespaces/x/finalize` replaces `spec.finalizers`, and nothing else can.
pub(super) async fn finalize(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    let options = WriteOptions::parse(&call.query, "UpdateOptions", call.user_agent(), false)?;
    let (value, warnings) = decode_body(call, body, &options)?;
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
    written(call, &outcome, warnings)
}

fn decode_body(call: &Call, body: &[u8], options: &WriteOptions) -> Result<(Value, Vec<String>), Status> {
    let body_type = negotiate::body_type(&call.headers, call.resource.strategy.is_typed())?;
    let mut decoded = decode::value(body, body_type)?;
    let warnings =
        decode::normalize(&call.resource, &mut decoded.value, &decoded.duplicates, options.field_validation)?;
    Ok((decoded.value, warnings))
}
