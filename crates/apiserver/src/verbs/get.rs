//! GET of one object, at the latest revision or at least at the one that is asked for.

use super::list::{invalid_version, parse_revision, reach};
use super::view;
use crate::call::Call;
use crate::respond::Answer;
use transom_object::Status;

pub(super) async fn get(call: &Call) -> Result<Answer, Status> {
    let revision = parse_revision(call.query.get("resourceVersion")).map_err(|why| invalid_version(&why))?;
    if let Some(revision) = revision {
        reach(call, revision).await?;
    }
    let key = call.resource.key(&call.target.namespace, &call.target.name);
    let entry = call
        .server
        .store
        .get(&key)
        .ok_or_else(|| Status::not_found(&call.resource.group_resource(), &call.target.name))?;
    let entry = call.server.one_in_version(&call.resource, &entry).await?;
    Ok(Answer::ok(view(call)?.entry(&entry)?))
}
