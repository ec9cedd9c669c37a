//! JSON patch, merge patch, strategic merge patch and server-side apply.

use super::{Change, Existing};
use crate::request::{FieldValidation, WriteOptions};
use crate::resource::Resource;
use crate::subresource::Subresource;
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
pub(crate) enum Form {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Form {
    /// The form of a content type, if the resource takes such patches.
    pub(crate) fn of(content_type: &str, resource: &Resource) -> Result<Self, Status> {
        match content_type {
            JSON => Ok(Self::Json),
            MERGE => Ok(Self::Merge),
            STRATEGIC if resource.strategy.patch_schema().is_some() => Ok(Self::Strategic),
            APPLY => Ok(Self::Apply),
            _ => Err(unsupported(resource)),
        }
    }
}

pub(crate) enum Patch {
    Json(Value),
    Merge(Value),
    Strategic(Value),
    Apply { config: Value, duplicates: Vec<String> },
}

impl Patch {
    pub(crate) fn parse(form: Form, body: &[u8]) -> Result<Self, Status> {
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

    /// What a patch other than an apply makes of an object; a strategic merge needs the schema.
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

/// A patch of an object or its status.
pub(crate) struct ApplyPatch<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) subresource: Subresource,
    pub(crate) name: &'a str,
    pub(crate) patch: &'a Patch,
    pub(crate) options: &'a WriteOptions,
    /// Fields that the schema does not have, after the change ran: warnings for the client.
    pub(crate) unknown: Vec<String>,
}

impl Change for ApplyPatch<'_> {
    fn apply(&mut self, existing: &Existing<'_>) -> Result<Value, Status> {
        let value = self.patched(existing)?;
        let is_apply = matches!(self.patch, Patch::Apply { .. });
        if is_apply && existing.value.is_some_and(|live| same_but_managers(live, &value)) {
            // Nothing was merged, so nothing needs its defaults.
            return Ok(value);
        }
        let mut new = decode::Decoded { value, ..Default::default() };
        self.unknown.clear();
        let validation: FieldValidation = self.options.field_validation;
        decode::normalize(self.resource, &mut new, &[], validation, &mut self.unknown)
            .map_err(|status| self.undecodable(status, existing))?;
        Ok(new.value)
    }
}

impl ApplyPatch<'_> {
    fn patched(&self, existing: &Existing<'_>) -> Result<Value, Status> {
        if let Patch::Apply { config, .. } = self.patch {
            let (manager, force) = (&self.options.field_manager, self.options.force.unwrap_or(false));
            let (resource, live, now) = (self.resource, existing.value, existing.now);
            return ownership::apply(resource, self.subresource, live, config, manager, force, now);
        }
        let missing = || Status::not_found(&self.resource.group_resource(), self.name);
        let live = existing.value.ok_or_else(missing)?;
        self.patch.change(live, self.resource.strategy.patch_schema().as_deref())
    }

    /// The refusal of a patch whose result cannot be decoded.
    fn undecodable(&self, status: Status, existing: &Existing<'_>) -> Status {
        let why = status.message.split_once(": ").map_or(status.message.as_str(), |(_, why)| why);
        match self.patch {
            // Refused for its content, not because it cannot be decoded.
            _ if status.reason == "Invalid" => status,
            Patch::Apply { .. } => status,
            Patch::Strategic(p) => undecodable(patch::go_text(p), why),
            // Normalising changed the result; patching again, only on this path, gives it as the error prints it.
            Patch::Json(_) | Patch::Merge(_) => match self.patched(existing) {
                Ok(patched) => undecodable(printed(&patched), why),
                Err(status) => status,
            },
        }
    }
}

/// A result that does not decode is the patch's fault; the error prints the result.
pub(super) fn undecodable(printed: String, why: &str) -> Status {
    let error = field::Error::invalid(&field::Path::new("patch"), printed, why);
    Status::invalid(&GroupKind::default(), "", &[error])
}

/// The result of a JSON or merge patch as an error prints it.
pub(super) fn printed(patched: &Value) -> String {
    String::from_utf8_lossy(&transom_object::json::encode(patched)).trim_end().to_owned()
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

/// A patch of another shape than its form has, with the wording of Go's decoder.
fn expect(patch: &Value, fits: bool, ty: &str) -> Result<(), Status> {
    if fits {
        return Ok(());
    }
    let found = transom_object::json::kind_of(patch);
    Err(Status::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {found} into Go value of type {ty}"
    )))
}

/// An applied configuration must name the kind of the endpoint it is applied to.
pub(crate) fn check_config(config: &Value, expected: &GroupVersionKind) -> Result<(), Status> {
    if !config.is_object() {
        return Err(Status::bad_request("error decoding YAML: the applied configuration is not an object"));
    }
    if config["metadata"].get("managedFields").is_some_and(|m| !m.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let (api_version, kind) =
        (config["apiVersion"].as_str().unwrap_or_default(), config["kind"].as_str().unwrap_or_default());
    if api_version != expected.api_version() || kind != expected.kind {
        // Upstream prints the empty name of the core group followed by the slash.
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

fn unsupported(resource: &Resource) -> Status {
    if resource.strategy.is_typed() {
        // The route of a built-in kind has no such patch; the router refuses it with its own wording.
        return Status::unsupported_media_type("415: Unsupported Media Type")
            .with_details(Details::default());
    }
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        [JSON, MERGE, APPLY].join(", ")
    ))
}
