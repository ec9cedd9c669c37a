//! Connection details: what composed resources tell the composite resource, and the secret that carries them when a
//! composite resource has no place for them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use transom_go::encoding::base64_encode;
use transom_object::field::Path;
use transom_object::fieldpath;
use transom_object::json::encode_escaped;

use super::document::{self, Document, Numbers};
use super::input::{ConnectionDetail, ConnectionDetailType, PatchType, SecretRef};
use super::patches::Patcher;
use super::validate;

pub(super) type Details = BTreeMap<String, Vec<u8>>;

/// The details a composed resource gives. What is not there yet is left out; it may come.
pub(super) fn extract(
    observed: &Document<'_>,
    secret: &Details,
    wanted: &[ConnectionDetail],
) -> Result<Details, String> {
    let mut details = Details::new();
    for detail in wanted {
        validate::connection_detail(detail, &Path::root()).map_err(|e| format!("invalid: {e}"))?;
        let found = match detail.kind {
            ConnectionDetailType::FromConnectionSecretKey => {
                secret.get(detail.from_connection_secret_key.as_deref().unwrap_or_default()).cloned()
            }
            ConnectionDetailType::FromFieldPath => {
                field(observed, detail.from_field_path.as_deref().unwrap_or_default())
            }
            _ => detail.value.as_ref().map(|value| value.clone().into_bytes()),
        };
        details.extend(found.map(|value| (detail.name.clone(), value)));
    }
    Ok(details)
}

/// A text as it is, anything else as JSON.
fn field(observed: &Document<'_>, path: &str) -> Option<Vec<u8>> {
    match fieldpath::get(observed.value(), path).ok()? {
        Value::String(text) => Some(text.clone().into_bytes()),
        value => {
            let mut value = value.clone();
            if observed.numbers() == Numbers::Floats {
                document::float(&mut value);
            }
            Some(encode_escaped(&value).into_bytes())
        }
    }
}

/// Whether a composite resource carries connection details itself. Those of the second generation, which have a field
/// `spec.crossplane`, do not.
pub(super) fn is_supported(composite: &Document<'_>) -> bool {
    fieldpath::get(composite.value(), "spec.crossplane").is_err()
}

/// The secret that carries the details.
pub(super) fn secret(
    composite: &Document<'_>,
    details: &Details,
    to: Option<&SecretRef>,
    patcher: &mut Patcher,
) -> Result<Document<'static>, String> {
    let place = place(composite, to, patcher)
        .map_err(|e| format!("cannot generate connection secret reference: {e}"))?;
    let data: Map<String, Value> =
        details.iter().map(|(key, value)| (key.clone(), base64_encode(value).into())).collect();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1", "data": data,
    });
    let mut secret = Document::new(secret, Numbers::Integers);
    secret.set_metadata("name", &place.0);
    secret.set_metadata("namespace", &place.1);
    Ok(secret)
}

/// The secret's name and namespace: from the composite resource, else from the input, else named after the composite resource;
/// then patched.
pub(super) fn place(
    composite: &Document<'_>,
    to: Option<&SecretRef>,
    patcher: &mut Patcher,
) -> Result<(String, String), String> {
    let (name, namespace) = match (own_place(composite), to) {
        (Some(place), _) => place,
        (None, Some(to)) if !to.name.is_empty() || !to.namespace.is_empty() => {
            (to.name.clone(), to.namespace.clone())
        }
        _ => {
            (format!("{}-connection", composite.metadata("name")), composite.metadata("namespace").to_owned())
        }
    };
    let Some(to) = to.filter(|to| !to.patches.is_empty()) else { return Ok((name, namespace)) };
    // The identity is of no consequence, but whatever is patched must have one.
    let place = json!({"apiVersion": "v1", "kind": "SecretReference", "name": name, "namespace": namespace});
    let mut place = Document::new(place, Numbers::Integers);
    patch(composite, &mut place, to, patcher)
        .map_err(|e| format!("cannot apply connection secret patches: {e}"))?;
    let patched = |field: &str, otherwise: String| match place.value().get(field) {
        Some(Value::String(text)) => text.clone(),
        _ => otherwise,
    };
    Ok((patched("name", name), patched("namespace", namespace)))
}

/// `spec.writeConnectionSecretToRef`, unless it is absent or malformed.
fn own_place(composite: &Document<'_>) -> Option<(String, String)> {
    let place = match fieldpath::get(composite.value(), "spec.writeConnectionSecretToRef").ok()? {
        Value::Null => return Some(Default::default()),
        Value::Object(place) => place,
        _ => return None,
    };
    let text = |field: &str| match place.get(field) {
        None | Some(Value::Null) => Some(String::new()),
        Some(value) => value.as_str().map(str::to_owned),
    };
    Some((text("name")?, text("namespace")?))
}

/// An optional patch that fails, for whatever reason, is left out.
fn patch(
    composite: &Document<'_>,
    place: &mut Document<'_>,
    to: &SecretRef,
    patcher: &mut Patcher,
) -> Result<(), String> {
    for (i, patch) in to.patches.iter().enumerate() {
        let kind = &patch.kind;
        let optional = match kind {
            PatchType::FromComposite => patch.is_optional(),
            PatchType::CombineFromComposite => false,
            _ => return Err(format!("unsupported patch type {kind} at index {i}")),
        };
        match patcher.apply(patch, composite, place) {
            Err(error) if !optional => {
                return Err(format!("cannot apply patch type {kind} at index {i}: {error}"));
            }
            _ => {}
        }
    }
    Ok(())
}
