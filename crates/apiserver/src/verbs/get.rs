//! Reading one object.

use super::view;
use crate::call::Call;
use crate::respond::Answer;
use transom_object::Status;

pub(super) fn get(call: &Call) -> Result<Answer, Status> {
    let key = call.resource.key(&call.target.namespace, &call.target.name);
    let entry = call
        .server
        .store
        .get(&key)
        .ok_or_else(|| Status::not_found(&call.resource.group_resource(), &call.target.name))?;
    Ok(Answer::ok(view(call)?.entry(&entry)?))
}
