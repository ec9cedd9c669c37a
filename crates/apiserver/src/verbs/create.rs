//! POST to a collection.

use super::written;
use crate::call::Call;
use crate::respond::Answer;
use crate::{decode, negotiate, request::WriteOptions, write};
use transom_object::Status;

pub(super) async fn create(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    let body_type = negotiate::body_type(&call.headers, call.resource.strategy.is_typed())?;
    let options = WriteOptions::parse(&call.query, "CreateOptions", call.user_agent(), false)?;
    let mut decoded = decode::object(&call.resource, body, body_type, options.field_validation)?;
    call.warn(decode::normalize(
        &call.resource,
        &mut decoded.value,
        &decoded.duplicates,
        options.field_validation,
    )?);
    let request = write::Create {
        value: decoded.value,
        namespace: &call.target.namespace,
        manager: Some(&options.field_manager),
        dry_run: options.dry_run,
    };
    let (outcome, warnings) = write::create(&call.server, &call.resource, request).await?;
    call.warn(warnings);
    written(call, &outcome)
}
