//! POST to a collection.

use super::{decode_body, written};
use crate::call::Call;
use crate::respond::Answer;
use crate::write;
use transom_object::Status;

pub(super) async fn create(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    let (value, options) = decode_body(call, body, "CreateOptions")?;
    let request = write::Create {
        value,
        namespace: &call.target.namespace,
        manager: Some(&options.field_manager),
        dry_run: options.dry_run,
    };
    let (outcome, warnings) = write::create(&call.server, &call.resource, request).await?;
    call.warn(warnings);
    written(call, &outcome)
}
