//! Decodes request bodies: from JSON, YAML or protobuf to an object with what a strict decoder has to say about it, and from
//! there to a normalised object, with the field validation that the client asked for.
//!
//! Errors and warnings have kube-apiserver's texts, and come in the order in which the fields are written.

mod order;

use crate::negotiate::BodyType;
use crate::request::FieldValidation;
use crate::resource::Resource;
use serde_json::{Map, Value};
use transom_object::{GroupKind, GroupVersion, GroupVersionKind, Status, field, json, yaml};
use transom_schema::own;

/// A decoded body, and the complaints of a strict decoder about it.
#[derive(Default)]
pub(crate) struct Decoded {
    pub value: Value,
    pub duplicates: Vec<String>,
}

/// Bytes → an object, whatever the encoding. Where it is not decoded into a known type, it must name its kind.
pub(crate) fn object(
    resource: &Resource,
    body: &[u8],
    ty: BodyType,
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let kind = &resource.names.kind;
    let decoded = value(body, ty, kind)?;
    if !resource.strategy.is_typed() {
        expect_version(resource, &decoded.value, body)?;
    }
    let says_kind = decoded.value["kind"].as_str().is_some_and(|k| !k.is_empty());
    if resource.strategy.is_typed() || says_kind {
        return Ok(decoded);
    }
    let why = missing_kind(&String::from_utf8_lossy(body));
    // Upstream has two decoders with different messages.
    Err(match validation {
        FieldValidation::Ignore => Status::bad_request(handled_as(resource, &why)),
        _ => unrecognized(body, kind, &why),
    })
}

/// A malformed version is reported before anything else about the object.
fn expect_version(resource: &Resource, value: &Value, body: &[u8]) -> Result<(), Status> {
    let kind = &resource.names.kind;
    match value.get("apiVersion") {
        Some(Value::Null) => Err(Status::bad_request(format!(
            "{kind} in version \"\" cannot be handled as a {kind}: .apiVersion accessor error: <nil> is of the type <nil>, expected string"
        ))),
        Some(Value::String(version)) if GroupVersion::parse(version).is_none() => {
            Err(unrecognized(body, kind, &format!("unexpected GroupVersion string: {version}")))
        }
        _ => Ok(()),
    }
}

fn missing_kind(body: &str) -> String {
    format!("Object 'Kind' is missing in '{body}'")
}

/// Bytes → value, whatever the encoding. `kind` is the kind that the endpoint accepts, for errors.
pub(crate) fn value(body: &[u8], ty: BodyType, kind: &str) -> Result<Decoded, Status> {
    match ty {
        BodyType::Json => {
            let d = json::decode(body).map_err(|e| {
                unrecognized(body, kind, &format!("couldn't get version/kind; json parse error: {e}"))
            })?;
            envelope(d.value, d.duplicates, body, kind)
        }
        BodyType::Yaml => {
            let d = yaml_document(body).map_err(|e| unrecognized(body, kind, &format!("yaml: {e}")))?;
            envelope(d.value, d.duplicates, body, kind)
        }
        BodyType::Protobuf => {
            let value =
                transom_kinds::decode_protobuf(body).map_err(|e| unrecognized(body, kind, &e.to_string()))?;
            Ok(Decoded { value, ..Decoded::default() })
        }
    }
}

/// The apiVersion and kind of an object must be readable before anything else; an empty body is an empty object.
fn envelope(value: Value, duplicates: Vec<String>, body: &[u8], kind: &str) -> Result<Decoded, Status> {
    let value = if value.is_null() { Value::Object(Map::new()) } else { value };
    let wrong = match value.as_object() {
        None => Some(format!("{} into Go value of type struct {ENVELOPE}", json::kind_of(&value))),
        Some(map) => ["apiVersion", "kind"].into_iter().find_map(|key| {
            let found = map.get(key).filter(|v| !v.is_string() && !v.is_null())?;
            Some(format!("{} into Go struct field .{key} of type string", json::kind_of(found)))
        }),
    };
    match wrong {
        None => Ok(Decoded { value, duplicates }),
        Some(wrong) => {
            let why = format!("couldn't get version/kind; json parse error: json: cannot unmarshal {wrong}");
            Err(unrecognized(body, kind, &why))
        }
    }
}

/// The type upstream reads the envelope into; its errors print it.
const ENVELOPE: &str = "{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// YAML holds JSON too, and the apply patch type is mostly sent as JSON: try that first, it is faster.
pub(crate) fn yaml_value(body: &[u8]) -> Result<Decoded, Status> {
    yaml_document(body).map_err(|e| {
        Status::bad_request(format!("error decoding YAML: error converting YAML to JSON: yaml: {e}"))
    })
}

fn yaml_document(body: &[u8]) -> Result<Decoded, String> {
    if body.trim_ascii_start().first() == Some(&b'{')
        && let Ok(d) = json::decode(body)
    {
        return Ok(Decoded { value: d.value, duplicates: d.duplicates });
    }
    let text = std::str::from_utf8(body).map_err(|e| e.to_string())?;
    let mut documents = yaml::read_documents(text).map_err(|e| e.to_string())?;
    if documents.len() > 1 {
        return Err("the body holds more than one document".into());
    }
    let Some(document) = documents.pop() else {
        return Ok(Decoded::default());
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

/// Brings a decoded body into served form, or fails when the client asked for strictness. Warnings are sent to
/// the client whether or not the request succeeds. `json` is the body where it was one: a strict decoder complains in its
/// order.
pub(crate) fn normalize(
    resource: &Resource,
    decoded: &mut Decoded,
    json: &[u8],
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    let typed = resource.strategy.is_typed();
    if typed {
        expect_kind(resource, &mut decoded.value)?;
    }
    let claim = if typed { Claim::Served } else { Claim::of(resource, &decoded.value) };
    let fields: Vec<String> =
        decoded.value.as_object().into_iter().flatten().map(|(k, _)| k.clone()).collect();
    let mut unknown =
        shape(resource, &mut decoded.value).map_err(|why| Status::bad_request(handled_as(resource, &why)))?;
    if claim != Claim::Served {
        // The fields of another kind have another schema; all kinds share metadata.
        unknown.retain(|path| path.starts_with("metadata."));
    }
    if claim == Claim::Unserved {
        let own = |key: &String| !["apiVersion", "kind", "metadata"].contains(&key.as_str());
        unknown.extend(fields.into_iter().filter(own));
    }
    let mut problems = complaints(&decoded.duplicates, &unknown, validation);
    if typed && problems.len() > 1 {
        order::as_written(json, &mut problems);
    }
    let version = match claim {
        Claim::Unserved => decoded.value["apiVersion"].as_str().and_then(GroupVersion::parse),
        _ => None,
    };
    let version = version.map_or_else(|| resource.version.clone(), |v| v.version);
    warnings.extend(report(resource, &version, &problems, validation)?);
    // Without a type to decode into, what the body claims to be is looked at last.
    if typed { Ok(()) } else { expect_kind(resource, &mut decoded.value) }
}

/// The strategy's normalisation, keeping a client's request to reset managedFields: a list with an empty entry, and
/// for types that distinguish it from an absent list, an empty one.
pub(crate) fn shape(resource: &Resource, value: &mut Value) -> Result<Vec<String>, String> {
    let given = value["metadata"].get("managedFields");
    let empty = given.and_then(Value::as_array).is_some_and(Vec::is_empty);
    let resets = own::managers::is_reset(given) && (resource.strategy.is_typed() || !empty);
    let unknown = resource.strategy.normalize(value)?;
    if resets && value["metadata"].is_object() {
        value["metadata"]["managedFields"] = Value::Array(Vec::new());
    }
    Ok(unknown)
}

/// A complaint of a strict decoder: what, and at which path.
struct Complaint {
    duplicate: bool,
    path: String,
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} field {:?}", if self.duplicate { "duplicate" } else { "unknown" }, self.path)
    }
}

fn complaints(duplicates: &[String], unknown: &[String], validation: FieldValidation) -> Vec<Complaint> {
    if validation == FieldValidation::Ignore {
        return Vec::new();
    }
    let complain = |duplicate| move |path: &String| Complaint { duplicate, path: path.clone() };
    duplicates.iter().map(complain(true)).chain(unknown.iter().map(complain(false))).collect()
}

/// What to do about duplicate and unknown fields: warnings, or an error when the client asked for strictness.
pub(crate) fn judge(
    resource: &Resource,
    duplicates: &[String],
    unknown: &[String],
    validation: FieldValidation,
) -> Result<Vec<String>, Status> {
    report(resource, &resource.version, &complaints(duplicates, unknown, validation), validation)
}

fn report(
    resource: &Resource,
    version: &str,
    problems: &[Complaint],
    validation: FieldValidation,
) -> Result<Vec<String>, Status> {
    let problems: Vec<String> = problems.iter().map(Complaint::to_string).collect();
    if problems.is_empty() || validation != FieldValidation::Strict {
        return Ok(problems);
    }
    let (kind, problems) = (&resource.names.kind, problems.join(", "));
    Err(Status::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {problems}"
    )))
}

/// `Widget in version "v1" cannot be handled as a Widget: …`
pub(crate) fn handled_as(resource: &Resource, why: &str) -> String {
    let kind = &resource.names.kind;
    format!("{kind} in version {:?} cannot be handled as a {kind}: {why}", resource.version)
}

/// The kind that a body claims to be of, where it is another than the endpoint's and none of the built-in ones.
fn unregistered(version: &str, kind: &str, expected: &GroupVersionKind) -> Option<GroupVersionKind> {
    let expected_version = expected.api_version();
    let version = if version.is_empty() { &expected_version } else { version };
    let kind = if kind.is_empty() { &*expected.kind } else { kind };
    let claimed = GroupVersion::parse(version).unwrap_or_default().with_kind(kind);
    (version != expected_version || transom_kinds::type_of(&claimed).is_empty()).then_some(claimed)
}

/// The kind that a body claims to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// The endpoint's kind in a version that has a schema.
    Served,
    /// The endpoint's kind in a version that is not defined, and so without any field.
    Unserved,
    /// Another kind.
    Other,
}

impl Claim {
    fn of(resource: &Resource, value: &Value) -> Self {
        let version = value["apiVersion"].as_str().unwrap_or_default();
        let group = GroupVersion::parse(version).map(|v| v.group);
        if group.is_none_or(|g| g != resource.group) || value["kind"] != *resource.names.kind {
            return Self::Other;
        }
        if resource.schemas.contains_key(version) { Self::Served } else { Self::Unserved }
    }
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
    if !resource.strategy.is_typed() {
        if given_kind.is_empty() {
            let shown = String::from_utf8_lossy(&json::encode(&Value::Object(map.clone()))).into_owned();
            return Err(Status::bad_request(missing_kind(&shown)));
        }
        if given_version != api_version {
            return Err(Status::bad_request(format!(
                "the API version in the data ({given_version}) does not match the expected API version ({api_version})"
            )));
        }
    } else if let Some(unknown) = unregistered(given_version, given_kind, &resource.gvk()) {
        let version = unknown.version.as_str();
        return Err(Status::bad_request(format!(
            "{given_kind} in version {version:?} cannot be handled as a {kind}: no kind {given_kind:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
            unknown.api_version()
        )));
    }
    if !given_kind.is_empty() && given_kind != kind {
        return Err(if resource.strategy.is_typed() {
            Status::bad_request(format!(
                "{given_kind} in version {:?} cannot be handled as a {kind}: converting ({given_kind}) to ({kind}): unknown conversion",
                resource.version
            ))
        } else {
            let error =
                field::Error::invalid(&field::Path::new("kind"), given_kind, format!("must be {kind}"));
            let name = map.get("metadata").and_then(|m| m["name"].as_str()).unwrap_or_default();
            Status::invalid(&GroupKind::new(&*resource.group, given_kind), name, &[error])
        });
    }
    map.insert("apiVersion".into(), api_version.into());
    map.insert("kind".into(), kind.clone().into());
    Ok(())
}
