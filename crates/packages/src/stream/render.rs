//! The stream that a build puts into a package, byte for byte as Crossplane's.
//!
//! The original writes its Go types: keys are sorted, some empty fields are added, and fields that the types do not name
//! are dropped. Here the empty fields are added too, and the meta object is reduced to its known fields. Other objects keep
//! unknown fields, and empty ones that the types would omit; objects that tools generate and that an API server accepts
//! without warnings have none.

use super::Package;
use serde_json::{Map, Value, json};
use transom_object::{meta, yaml};

/// The meta object and then all others, each preceded and followed by a line of dashes.
pub fn render(package: &Package) -> String {
    let mut stream = String::from("---\n");
    let objects = package.objects.iter().map(|object| normalised(&object.value));
    for value in std::iter::once(normalised_meta(&package.meta_object)).chain(objects) {
        stream.push_str(&yaml::write(&value));
        stream.push_str("---\n");
    }
    stream
}

fn normalised(object: &Value) -> Value {
    let mut object = object.clone();
    fill(&mut object, &json!({"metadata": {}}));
    let zeros = zeros(meta::kind(&object));
    fill(&mut object, &zeros);
    if let Some(metadata) = meta::metadata_mut(&mut object) {
        metadata.retain(|_, value| !value.is_null());
    }
    object
}

/// The fields that the types of a kind write although they are empty.
fn zeros(kind: &str) -> Value {
    match kind {
        "CompositeResourceDefinition" => {
            let none = json!({"apiVersion": "", "kind": ""});
            let controllers = json!({"compositeResourceClaimType": none, "compositeResourceType": none});
            json!({"status": {"controllers": controllers}})
        }
        "CustomResourceDefinition" => {
            let names = json!({"kind": "", "plural": ""});
            json!({"status": {"acceptedNames": names, "conditions": null, "storedVersions": null}})
        }
        "CronOperation" | "WatchOperation" => {
            json!({"spec": {"operationTemplate": {"metadata": {}}}, "status": {}})
        }
        "ManagedResourceDefinition" | "ManagedResourceActivationPolicy" | "Operation" => {
            json!({"status": {}})
        }
        _ => json!({}),
    }
}

/// Adds fields where there are none.
fn fill(value: &mut Value, zeros: &Value) {
    let (Value::Object(fields), Value::Object(zeros)) = (value, zeros) else { return };
    for (key, zero) in zeros {
        let field = fields.entry(key.clone()).or_insert(Value::Null);
        if field.is_null() {
            *field = zero.clone();
        } else {
            fill(field, zero);
        }
    }
}

/// A meta object with the fields that every version of it has.
fn normalised_meta(object: &Value) -> Value {
    const DEPENDENCY: [&str; 6] = ["apiVersion", "configuration", "function", "kind", "package", "provider"];
    let mut meta = normalised(object);
    let spec = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut known = Map::new();
    if let Some(crossplane) = spec.get("crossplane").filter(|crossplane| !crossplane.is_null()) {
        known.insert("crossplane".to_owned(), with_version(crossplane, &[]));
    }
    let list = |field: &str| spec.get(field).and_then(Value::as_array).filter(|list| !list.is_empty());
    if let Some(dependencies) = list("dependsOn") {
        let dependencies =
            dependencies.iter().map(|dependency| with_version(dependency, &DEPENDENCY)).collect();
        known.insert("dependsOn".to_owned(), dependencies);
    }
    if let Some(capabilities) = list("capabilities") {
        known.insert("capabilities".to_owned(), Value::Array(capabilities.clone()));
    }
    meta["spec"] = Value::Object(known);
    meta
}

/// The known fields of an object, and its version, which is never left out.
fn with_version(object: &Value, known: &[&str]) -> Value {
    let found = known.iter().filter_map(|field| Some(((*field).to_owned(), object.get(*field)?.clone())));
    let mut fields: Map<String, Value> = found.filter(|(_, value)| !value.is_null()).collect();
    let version = object.get("version").and_then(Value::as_str).unwrap_or_default();
    fields.insert("version".to_owned(), version.into());
    Value::Object(fields)
}
