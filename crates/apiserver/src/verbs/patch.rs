//! PATCH of an object or its status, in all four forms.

use super::written;
use crate::call::Call;
use crate::change::{ApplyPatch, Form, Patch, check_config};
use crate::decode;
use crate::pods::only_part;
use crate::request::WriteOptions;
use crate::respond::Answer;
use crate::subresource::Subresource;
use crate::write::{self, Update};
use transom_object::Status;

pub(super) async fn patch(call: &Call, body: &[u8], subresource: Subresource) -> Result<Answer, Status> {
    let form = Form::of(call.content_type(), &call.resource)?;
    super::expect_name(call)?;
    let is_apply = form == Form::Apply;
    let options = WriteOptions::parse(&call.query, "PatchOptions", call.user_agent(), is_apply)?;
    if !is_apply {
        super::expect_live(call)?;
    }
    let mut patch = Patch::parse(form, body)?;
    if let Patch::Apply { config, .. } = &mut patch {
        only_part(config, subresource);
    }
    if let Patch::Apply { config, duplicates } = &patch {
        check_config(config, &call.resource.gvk())?;
        decode::judge(&call.resource, duplicates, &[], options.field_validation)?;
    }
    let request = Update {
        namespace: &call.target.namespace,
        name: &call.target.name,
        subresource,
        options: &options,
        owns_fields: !is_apply,
        create_missing: is_apply,
        require_version: false,
        pins_version: false,
        by: call.requester(),
    };
    let mut change = ApplyPatch {
        resource: &call.resource,
        subresource,
        name: &call.target.name,
        patch: &patch,
        options: &options,
        unknown: Vec::new(),
    };
    let done = write::update(&call.server, &call.resource, &request, &mut change).await;
    // Sent even when the request fails for another reason.
    call.warn(change.unknown);
    let (outcome, warnings) = done?;
    call.warn(warnings);
    written(call, &outcome).await
}
