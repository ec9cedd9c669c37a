//! Request bodies → normalised objects, with the strictness the client asked for.

use crate::kinds;
use crate::negotiate::BodyType;
use crate::request::FieldValidation;
use crate::resource::Resource;
use serde_json::Value;
use transom_object::{Status, json, yaml};
use transom_schema::own;

/// A decoded body with what a strict decoder would object to.
pub struct Decoded {
    pub value: Value,
    pub duplicates: Vec<String>,
}

/// Bytes → value, whatever the encoding. `kind` is what the endpoint takes, for the error's sake.
pub fn value(body: &[u8], ty: BodyType, kind: &str) -> Result<Decoded, Status> {
    match ty {
        BodyType::Json => {
            let d = json::decode(body).map_err(|e| {
                unrecognized(body, kind, &format!("couldn't get version/kind; json parse error: {e}"))
            })?;
            Ok(Decoded { value: d.value, duplicates: d.duplicates })
        }
        BodyType::Yaml => yaml_value(body),
        BodyType::Protobuf => {
            let value = kinds::decode_protobuf(body).map_err(|e| unrecognized(body, kind, &e.to_string()))?;
            Ok(Decoded { value, duplicates: Vec::new() })
        }
    }
}

/// YAML holds JSON too, and the apply patch type is mostly sent as JSON: try that first, it is faster.
pub fn yaml_value(body: &[u8]) -> Result<Decoded, Status> {
    if body.trim_ascii_start().first() == Some(&b'{')
        && let Ok(d) = json::decode(body)
    {
        return Ok(Decoded { value: d.value, duplicates: d.duplicates });
    }
    let text =
        std::str::from_utf8(body).map_err(|e| Status::bad_request(format!("error decoding YAML: {e}")))?;
    let mut documents =
        yaml::read_documents(text).map_err(|e| Status::bad_request(format!("error decoding YAML: {e}")))?;
    if documents.len() > 1 {
        return Err(Status::bad_request("error decoding YAML: the body holds more than one document"));
    }
    let Some(document) = documents.pop() else {
        return Ok(Decoded { value: Value::Null, duplicates: Vec::new() });
    };
    Ok(Decoded { value: document.value, duplicates: document.duplicates })
}

fn unrecognized(body: &[u8], kind: &str, why: &str) -> Status {
    let head = &body[..body.len().min(30)];
    let more = if body.len() > head.len() { " ..." } else { "" };
    let shown = match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(head).into_owned(),
        Some(_) => head.iter().map(|b| format!("{b:02x}")).collect(),
    };
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({shown}{more})"
    ))
}

/// Brings a decoded body into served form. Returns the warnings for the client, or fails when it asked for
/// strictness.
pub fn normalize(
    resource: &Resource,
    value: &mut Value,
    duplicates: &[String],
    validation: FieldValidation,
) -> Result<Vec<String>, Status> {
    expect_kind(resource, value)?;
    let unknown = shape(resource, value).map_err(|why| Status::bad_request(handled_as(resource, &why)))?;
    judge(resource, duplicates, &unknown, validation)
}

/// The strategy's normalisation, keeping a client's wish to reset managedFields, which an empty list says.
pub fn shape(resource: &Resource, value: &mut Value) -> Result<Vec<String>, String> {
    let resets = own::managers::is_reset(value["metadata"].get("managedFields"));
    let unknown = resource.strategy.normalize(value)?;
    if resets && value["metadata"].is_object() {
        value["metadata"]["managedFields"] = Value::Array(Vec::new());
    }
    Ok(unknown)
}

/// What to do about unknown and duplicate fields.
pub fn judge(
    resource: &Resource,
    duplicates: &[String],
    unknown: &[String],
    validation: FieldValidation,
) -> Result<Vec<String>, Status> {
    if validation == FieldValidation::Ignore || (duplicates.is_empty() && unknown.is_empty()) {
        return Ok(Vec::new());
    }
    let duplicate = duplicates.iter().map(|p| format!("duplicate field {p:?}"));
    let problems: Vec<String> =
        duplicate.chain(unknown.iter().map(|p| format!("unknown field {p:?}"))).collect();
    match validation {
        FieldValidation::Strict => Err(Status::bad_request(handled_as(
            resource,
            &format!("strict decoding error: {}", problems.join(", ")),
        ))),
        _ => Ok(problems),
    }
}

/// `Widget in version "v1" cannot be handled as a Widget: …`
pub fn handled_as(resource: &Resource, why: &str) -> String {
    let kind = &resource.names.kind;
    format!("{kind} in version {:?} cannot be handled as a {kind}: {why}", resource.version)
}

/// A body may leave out apiVersion and kind only where they are typed; given, they must be the endpoint's.
fn expect_kind(resource: &Resource, value: &mut Value) -> Result<(), Status> {
    let api_version = resource.api_version();
    let kind = &resource.names.kind;
    let Some(map) = value.as_object_mut() else {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): not an object"
        )));
    };
    let given_kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
    let given_version = map.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if given_kind.is_empty() && !resource.strategy.is_typed() {
        return Err(Status::bad_request(
            "Object 'Kind' is missing in the request body; set apiVersion and kind",
        ));
    }
    if !given_version.is_empty() && given_version != api_version {
        if resource.strategy.is_typed() {
            let version = given_version.rsplit('/').next().unwrap_or_default();
            return Err(Status::bad_request(format!(
                "{given_kind} in version {version:?} cannot be handled as a {kind}: no kind {given_kind:?} is registered for version {given_version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
        return Err(Status::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version ({api_version})"
        )));
    }
    if !given_kind.is_empty() && given_kind != kind {
        return Err(Status::bad_request(format!(
            "{given_kind} in version {:?} cannot be handled as a {kind}: converting ({given_kind}) to ({kind}): unknown conversion",
            resource.version
        )));
    }
    map.insert("apiVersion".into(), api_version.into());
    map.insert("kind".into(), kind.clone().into());
    Ok(())
}
