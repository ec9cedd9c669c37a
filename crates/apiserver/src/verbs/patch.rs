//! PATCH: JSON patch, merge patch, strategic merge patch and server-side apply.

use super::written;
use crate::call::Call;
use crate::request::WriteOptions;
use crate::respond::Answer;
use crate::strategy::Face;
use crate::write::{self, Existing, Update};
use crate::{decode, ownership};
use serde_json::{Map, Value};
use transom_object::status::Details;
use transom_object::{GroupKind, GroupVersionKind, Status, field};
use transom_schema::{Schema, patch};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// How a patch is written, by its media type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Form {
    pub(super) fn of(call: &Call) -> Result<Self, Status> {
        match call.content_type() {
            JSON => Ok(Self::Json),
            MERGE => Ok(Self::Merge),
            STRATEGIC if call.resource.strategy.patch_schema().is_some() => Ok(Self::Strategic),
            APPLY => Ok(Self::Apply),
            _ => Err(unsupported(call)),
        }
    }
}

pub(super) enum Patch {
    Json(Value),
    Merge(Value),
    Strategic(Value),
    Apply { config: Value, duplicates: Vec<String> },
}

impl Patch {
    pub(super) fn parse(form: Form, body: &[u8]) -> Result<Self, Status> {
        let json = |prefix: &str| {
            let decoded = transom_object::json::decode(body)
                .map_err(|e| Status::bad_request(format!("{prefix}{e}")))?;
            Ok(decoded.value)
        };
        match form {
            Form::Json => Ok(Self::Json(json("error decoding patch: ")?)),
            Form::Merge => Ok(Self::Merge(json("error decoding patch: ")?)),
            Form::Strategic => Ok(Self::Strategic(json("")?)),
            Form::Apply => {
                let decoded = decode::yaml_value(body)?;
                Ok(Self::Apply { config: decoded.value, duplicates: decoded.duplicates })
            }
        }
    }

    /// What a patch that is no apply makes of an object; `schema` is what a strategic merge goes by.
    pub(super) fn change(&self, live: &Value, schema: Option<&Schema>) -> Result<Value, Status> {
        match (self, schema) {
            (Self::Json(p), _) => {
                expect(p, p.is_array(), "[]handlers.jsonPatchOp")?;
                patch::json_patch(live, p).map_err(|e| refused(&e))
            }
            (Self::Strategic(p), Some(schema)) => {
                patch::strategic_merge_patch(live, p, schema).map_err(|e| match e {
                    // Not one of the errors upstream foresees, so it answers without a reason.
                    patch::PatchError::Inapplicable(why) => Status::new(500, "", why),
                    other => refused(&other),
                })
            }
            (Self::Merge(p) | Self::Strategic(p) | Self::Apply { config: p, .. }, _) => {
                expect(p, p.is_object(), "map[string]interface {}")?;
                patch::merge_patch(live, p).map_err(|e| refused(&e))
            }
        }
    }
}

/// A result that does not decode is the patch's fault, and the error shows what came of it.
pub(super) fn undecodable(shown: String, why: &str) -> Status {
    let error = field::Error::invalid(&field::Path::new("patch"), shown, why);
    Status::invalid(&GroupKind::default(), "", &[error])
}

/// What a JSON or merge patch made of an object, as an error shows it.
pub(super) fn shown(patched: &Value) -> String {
    String::from_utf8_lossy(&transom_object::json::encode(patched)).trim_end().to_owned()
}

pub(super) async fn patch(call: &Call, body: &[u8], face: Face) -> Result<Answer, Status> {
    let form = Form::of(call)?;
    super::expect_name(call)?;
    let is_apply = form == Form::Apply;
    let options = WriteOptions::parse(&call.query, "PatchOptions", call.user_agent(), is_apply)?;
    if !is_apply {
        super::expect_live(call)?;
    }
    let patch = Patch::parse(form, body)?;
    if let Patch::Apply { config, duplicates } = &patch {
        check_config(config, &call.resource.gvk())?;
        decode::judge(&call.resource, duplicates, &[], options.field_validation)?;
    }
    let request = Update {
        namespace: &call.target.namespace,
        name: &call.target.name,
        face,
        manager: (!is_apply).then_some(options.field_manager.as_str()),
        dry_run: options.dry_run,
        create_missing: is_apply,
        require_version: false,
        pins_version: false,
    };
    let mut unknown = Vec::new();
    let done = write::update(&call.server, &call.resource, &request, |existing| {
        let value = apply(call, &patch, existing, &options, face)?;
        if is_apply && existing.value.is_some_and(|live| same_but_managers(live, &value)) {
            // Nothing was merged, so nothing needs its defaults.
            return Ok(value);
        }
        let mut new = decode::Decoded { value, ..Default::default() };
        unknown.clear();
        let normalized =
            decode::normalize(&call.resource, &mut new, &[], options.field_validation, &mut unknown);
        normalized.map_err(|status| {
            let why = status.message.split_once(": ").map_or(status.message.as_str(), |(_, why)| why);
            match &patch {
                // Refused for what it is, not for how it reads.
                _ if status.reason == "Invalid" => status,
                Patch::Apply { .. } => status,
                Patch::Strategic(p) => undecodable(patch::go_text(p), why),
                // Normalising spoilt it: made again, it is as the patch left it.
                Patch::Json(_) | Patch::Merge(_) => match apply(call, &patch, existing, &options, face) {
                    Ok(patched) => undecodable(shown(&patched), why),
                    Err(status) => status,
                },
            }
        })?;
        Ok(new.value)
    })
    .await;
    // What is unknown is told even when something else is wrong.
    call.warn(unknown);
    let (outcome, warnings) = done?;
    call.warn(warnings);
    written(call, &outcome)
}

fn same_but_managers(live: &Value, new: &Value) -> bool {
    let (Some(live), Some(new)) = (live.as_object(), new.as_object()) else { return false };
    let metadata = |map: &Map<String, Value>| {
        let mut metadata = map.get("metadata").cloned().unwrap_or_default();
        metadata.as_object_mut().map(|m| m.remove("managedFields"));
        metadata
    };
    live.len() == new.len()
        && live.iter().all(|(key, value)| key == "metadata" || new.get(key) == Some(value))
        && metadata(live) == metadata(new)
}

fn apply(
    call: &Call,
    patch: &Patch,
    existing: &Existing<'_>,
    options: &WriteOptions,
    face: Face,
) -> Result<Value, Status> {
    let resource = &call.resource;
    if let Patch::Apply { config, .. } = patch {
        let (manager, force) = (&options.field_manager, options.force.unwrap_or(false));
        return ownership::apply(resource, face, existing.value, config, manager, force, existing.now);
    }
    let live = existing.value.ok_or_else(|| super::missing(call))?;
    patch.change(live, resource.strategy.patch_schema().as_deref())
}

/// A patch of another shape than its kind has, in the words of Go's decoder.
fn expect(patch: &Value, fits: bool, ty: &str) -> Result<(), Status> {
    if fits {
        return Ok(());
    }
    let found = transom_object::json::kind_of(patch);
    Err(Status::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {found} into Go value of type {ty}"
    )))
}

/// An applied configuration is an object of the kind that it is applied to, and says so.
pub(super) fn check_config(config: &Value, expected: &GroupVersionKind) -> Result<(), Status> {
    if !config.is_object() {
        return Err(Status::bad_request("error decoding YAML: the applied configuration is not an object"));
    }
    if config["metadata"].get("managedFields").is_some_and(|m| !m.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let (api_version, kind) =
        (config["apiVersion"].as_str().unwrap_or_default(), config["kind"].as_str().unwrap_or_default());
    if api_version != expected.api_version() || kind != expected.kind {
        // The core group's name is empty, and what parts it from its version is not.
        let slash = if api_version.contains('/') || api_version.is_empty() { "" } else { "/" };
        return Err(Status::bad_request(format!("invalid object type: {slash}{api_version}, Kind={kind}")));
    }
    Ok(())
}

fn refused(error: &patch::PatchError) -> Status {
    match error {
        patch::PatchError::Malformed(why) => Status::bad_request(why.clone()),
        patch::PatchError::TooLarge(why) => Status::too_large(why.clone()),
        patch::PatchError::Inapplicable(_) => {
            let why = "the server rejected our request due to an error in our request";
            Status::new(422, "Invalid", why).with_details(Details::default())
        }
    }
}

fn unsupported(call: &Call) -> Status {
    if call.resource.strategy.is_typed() {
        // Its route has no such patch: said by the router, in its words.
        return Status::unsupported_media_type("415: Unsupported Media Type")
            .with_details(Details::default());
    }
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        [JSON, MERGE, APPLY].join(", ")
    ))
}
