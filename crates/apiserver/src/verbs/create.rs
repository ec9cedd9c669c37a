//! POST to a collection: decodes the body, and creates one object under the name that it has or that is generated for it.

use super::{decode_body, written};
use crate::call::Call;
use crate::respond::Answer;
use crate::write;
use transom_object::Status;

pub(super) async fn create(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    let (mut value, options) = decode_body(call, body, "CreateOptions")?;
    write::match_path(&mut value, &call.target.namespace, None)?;
    let request = write::Create {
        value,
        namespace: &call.target.namespace,
        options: &options,
        owns_fields: true,
        from_update: false,
        by: call.requester(),
    };
    let (outcome, warnings) = write::create(&call.server, &call.resource, request).await?;
    call.warn(warnings);
    written(call, &outcome).await
}
