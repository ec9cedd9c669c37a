//! Namespaces, Secrets, ConfigMaps and Leases.

use super::At;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use transom_object::field::{Error, Path};
use transom_object::json::kind_of;
use transom_object::meta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use transom_object::names;

/// The most data in a Secret or ConfigMap.
const MAX_DATA_BYTES: usize = 1024 * 1024;

/// The problem of a finalizer by the rules of built-in kinds, beyond being a qualified name.
pub fn finalizer_problem(name: &str) -> Option<&'static str> {
    let standard = ["kubernetes", FINALIZER_ORPHAN, FINALIZER_FOREGROUND].contains(&name);
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    (!standard && !name.contains('/')).then_some(why)
}

pub(super) fn namespace(object: &At<'_>, errors: &mut Vec<Error>) {
    let finalizers = object.get("spec").get("finalizers");
    for name in finalizers.items() {
        let at = At { value: name.value, path: finalizers.path.clone() };
        at.invalid(names::is_qualified_name(name.str()), errors);
        at.invalid(finalizer_problem(name.str()).into_iter().map(str::to_owned).collect(), errors);
    }
}

pub(super) fn lease(spec: &At<'_>, errors: &mut Vec<Error>) {
    spec.get("leaseDurationSeconds").at_least(1, "must be greater than 0", errors);
    spec.get("leaseTransitions").not_negative(errors);
    let strategy = spec.text("strategy");
    let known = ["OldestEmulationVersion"];
    if !spec.get("strategy").is_null() && !known.contains(&strategy) {
        // Upstream names the field twice.
        let path = spec.path.child("strategy").child("strategy");
        if strategy.contains('/') {
            let messages = names::is_qualified_name(strategy);
            errors.extend(messages.into_iter().map(|m| Error::invalid(&path, strategy, m)));
        } else {
            errors.push(Error::not_supported(&path, strategy, &known));
        }
    }
    if !spec.text("preferredHolder").is_empty() && strategy.is_empty() {
        let why = "may only be specified if `strategy` is defined";
        errors.push(Error::forbidden(&spec.path.child("preferredHolder"), why));
    }
}

pub(super) fn secret(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    if let Some(old) = old {
        object.get("type").immutable(old.get("type").unwrap_or(&Value::Null), errors);
        immutable_content(object, old, &["data"], errors);
    }
    let data = object.get("data");
    keys(&data, errors);
    if data.entries().map(|(_, v)| decoded_len(v)).sum::<usize>() > MAX_DATA_BYTES {
        errors.push(too_big(&data.path));
    }
    let required: &[&str] = match object.text("type") {
        "kubernetes.io/service-account-token" => {
            let annotation = "kubernetes.io/service-account.name";
            let annotations = object.get("metadata").get("annotations");
            if annotations.text(annotation).is_empty() {
                errors.push(Error::required(&annotations.path.key(annotation), ""));
            }
            return;
        }
        "kubernetes.io/dockercfg" => return json_content(&data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => return json_content(&data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !data.get("username").is_null() || !data.get("password").is_null() => {
            &[]
        }
        "kubernetes.io/basic-auth" => &["username", "password"],
        "kubernetes.io/ssh-auth" if data.text("ssh-privatekey").is_empty() => {
            errors.push(Error::required(&data.path.key("ssh-privatekey"), ""));
            return;
        }
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        _ => &[],
    };
    for key in required.iter().filter(|key| data.get(key).is_null()) {
        errors.push(Error::required(&data.path.key(key), ""));
    }
}

/// A key whose content must be a JSON object.
fn json_content(data: &At<'_>, key: &str, errors: &mut Vec<Error>) {
    let path = data.path.key(key);
    let Some(encoded) = data.value.get(key).and_then(Value::as_str) else {
        errors.push(Error::required(&path, ""));
        return;
    };
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let why = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => {
            let kind = kind_of(&other);
            format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
        }
        Err(e) if e.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(e) => e.to_string(),
    };
    errors.push(Error::invalid(&path, "<secret contents redacted>", why));
}

pub(super) fn config_map(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    if let Some(old) = old {
        immutable_content(object, old, &["data", "binaryData"], errors);
    }
    let (data, binary) = (object.get("data"), object.get("binaryData"));
    keys(&data, errors);
    keys(&binary, errors);
    for (key, _) in data.entries().filter(|(key, _)| binary.value.get(key.as_str()).is_some()) {
        let why = "duplicate of key present in binaryData";
        errors.push(Error::invalid(&data.path.key(key), key.as_str(), why));
    }
    let texts: usize = data.entries().map(|(_, v)| v.as_str().map_or(0, str::len)).sum();
    let bytes: usize = binary.entries().map(|(_, v)| decoded_len(v)).sum();
    if texts + bytes > MAX_DATA_BYTES {
        errors.push(too_big(&Path::new("")));
    }
}

fn too_big(path: &Path) -> Error {
    let mut error = Error::too_long(path, i64::try_from(MAX_DATA_BYTES).unwrap_or(i64::MAX));
    path.as_str().clone_into(&mut error.field);
    error
}

fn keys(data: &At<'_>, errors: &mut Vec<Error>) {
    for (key, _) in data.entries() {
        let messages = names::is_config_map_key(key);
        errors.extend(messages.into_iter().map(|m| Error::invalid(&data.path.key(key), key.as_str(), m)));
    }
}

/// The number of bytes that a base64 text stands for.
fn decoded_len(value: &Value) -> usize {
    value.as_str().map_or(0, |s| s.len() / 4 * 3 - s.bytes().rev().take_while(|b| *b == b'=').count())
}

/// Once `immutable` is set it stays set, and so does the content.
fn immutable_content(object: &At<'_>, old: &Value, fields: &[&str], errors: &mut Vec<Error>) {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    if object.value.get("immutable") != Some(&Value::Bool(true)) {
        errors.push(Error::forbidden(&object.path.child("immutable"), why));
    }
    for field in fields {
        if object.value.get(*field) != old.get(*field) {
            errors.push(Error::forbidden(&object.path.child(field), why));
        }
    }
}
