//! The CRD of a definition of managed resources, and whether a CRD that exists may become it.

use super::ManagedResourceDefinition;
use crate::constants::kind;
use crate::metadata::controller_reference;
use serde_json::{Map, Value, json};
use transom_object::{OwnerReference, meta};

/// A definition that no CRD can be made of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot parse OpenAPI v3 schema for version {}", transom_object::quote::quote(version))]
pub struct InvalidSchema {
    /// The name of the version.
    pub version: String,
}

/// A CRD of the definition's name that something else controls.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "CustomResourceDefinition {} exists, and is controlled by {kind} {}",
    transom_object::quote::quote(name),
    transom_object::quote::quote(owner)
)]
pub struct ControlledByAnother {
    /// The name of the CRD.
    pub name: String,
    /// The kind of its controller.
    pub kind: String,
    /// The name of its controller.
    pub owner: String,
}

/// The CRD that is applied for an active definition. It has only fields that the definition has: fields with default
/// values stay the API server's. The definition owns it, and what controls the definition controls it too.
pub fn crd(definition: &ManagedResourceDefinition) -> Result<Value, InvalidSchema> {
    let spec = &definition.spec.crd;
    let mut versions = Vec::new();
    for version in spec.get("versions").and_then(Value::as_array).into_iter().flatten() {
        versions.push(self::version(version)?);
    }
    versions.sort_by(|a, b| text(a, "name").cmp(text(b, "name")));
    let wanted = spec.get("names").cloned().unwrap_or_default();
    let mut names = json!({"kind": text(&wanted, "kind"), "plural": text(&wanted, "plural")});
    for field in ["singular", "listKind", "shortNames", "categories"] {
        copy(&wanted, &mut names, field);
    }
    let field = |name: &str| spec.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut made =
        json!({"group": field("group"), "names": names, "scope": field("scope"), "versions": versions});
    for field in ["conversion", "preserveUnknownFields"] {
        if let Some(value) = spec.get(field).filter(|value| !value.is_null() && **value != false) {
            made[field] = value.clone();
        }
    }
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": definition.metadata.name, "ownerReferences": owners(definition)},
        "spec": made,
    }))
}

fn owners(definition: &ManagedResourceDefinition) -> Vec<Value> {
    let metadata = &definition.metadata;
    let own = json!({
        "apiVersion": kind::APIEXTENSIONS_V1ALPHA1, "kind": kind::MRD, "name": metadata.name, "uid": metadata.uid,
    });
    let controller = |c: &OwnerReference| controller_reference(&c.api_version, &c.kind, &c.name, &c.uid);
    std::iter::once(own).chain(metadata.controller().map(controller)).collect()
}

fn version(of: &Value) -> Result<Value, InvalidSchema> {
    let name = text(of, "name");
    let mut version = json!({"name": name, "served": of["served"] == true, "storage": of["storage"] == true});
    if of["deprecated"] == true {
        version["deprecated"] = true.into();
    }
    if let Some(warning) = of.get("deprecationWarning").filter(|warning| warning.is_string()) {
        version["deprecationWarning"] = warning.clone();
    }
    if let Some(schema) = of.get("schema").filter(|schema| !schema.is_null()) {
        let schema = schema.get("openAPIV3Schema").filter(|schema| schema.is_object());
        let schema = schema.ok_or_else(|| InvalidSchema { version: name.to_owned() })?;
        version["schema"] = json!({"openAPIV3Schema": schema});
    }
    let mut subresources = Map::new();
    for field in ["status", "scale"] {
        if let Some(value) = of["subresources"].get(field).filter(|value| !value.is_null()) {
            subresources.insert(field.to_owned(), value.clone());
        }
    }
    if !subresources.is_empty() {
        version["subresources"] = Value::Object(subresources);
    }
    copy(of, &mut version, "additionalPrinterColumns");
    copy(of, &mut version, "selectableFields");
    Ok(version)
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Copies a text or list that is not empty.
fn copy(from: &Value, to: &mut Value, field: &str) {
    let is_empty = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    };
    if let Some(value) = from.get(field).filter(|value| !is_empty(value)) {
        to[field] = value.clone();
    }
}

/// The changes, as operations of a JSON patch, after which the CRD of a definition can be applied over one that was not
/// applied by the definition before: a revision that installed the CRD by itself gives up control, and stays an owner.
///
/// Fails if something controls the CRD that has nothing to do with the definition: the definition owns the CRD already, or
/// they have an owner in common, such as a package.
pub fn adoption(
    crd: &Value,
    definition: &ManagedResourceDefinition,
) -> Result<Vec<Value>, ControlledByAnother> {
    let owners = meta::owner_references(crd);
    let definition = &definition.metadata;
    let concerns = |owner: &OwnerReference| {
        owner.uid == definition.uid || definition.owner_references.iter().any(|other| other.uid == owner.uid)
    };
    let Some(index) = owners.iter().position(|owner| owner.controller == Some(true)) else {
        return Ok(Vec::new());
    };
    let Some(controller) = owners.get(index) else { return Ok(Vec::new()) };
    if definition.is_controlled_by(&controller.uid) {
        return Ok(Vec::new());
    }
    if !owners.iter().any(concerns) {
        return Err(ControlledByAnother {
            name: meta::name(crd).to_owned(),
            kind: controller.kind.clone(),
            owner: controller.name.clone(),
        });
    }
    let path = format!("/metadata/ownerReferences/{index}/controller");
    Ok(vec![json!({"op": "replace", "path": path, "value": false})])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    fn owner(uid: &str, controller: bool) -> Value {
        json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision", "name": uid, "uid": uid,
               "controller": controller, "blockOwnerDeletion": true})
    }

    fn definition(owners: &[Value]) -> ManagedResourceDefinition {
        let metadata = json!({"name": "ks.g", "uid": "m", "ownerReferences": owners});
        ManagedResourceDefinition::deserialize(json!({"metadata": metadata, "spec": {"state": "Active"}}))
            .unwrap()
    }

    fn existing(owners: &[Value]) -> Value {
        json!({"metadata": {"name": "ks.g", "ownerReferences": owners}})
    }

    #[test]
    fn a_crd_without_another_controller_can_be_adopted() {
        let one = definition(&[owner("one", true)]);
        assert_eq!(adoption(&existing(&[]), &one), Ok(Vec::new()));
        assert_eq!(adoption(&existing(&[owner("x", false)]), &one), Ok(Vec::new()));
        assert_eq!(adoption(&existing(&[owner("p", false), owner("one", true)]), &one), Ok(Vec::new()));
    }

    #[test]
    fn an_earlier_revision_gives_up_control() {
        let two = definition(&[owner("one", false), owner("two", true)]);
        let release =
            json!({"op": "replace", "path": "/metadata/ownerReferences/1/controller", "value": false});
        let crd = existing(&[owner("p", false), owner("one", true)]);
        assert_eq!(adoption(&crd, &two), Ok(vec![release.clone()]));
        let of_package = definition(&[owner("two", true), owner("p", false)]);
        assert_eq!(adoption(&crd, &of_package), Ok(vec![release]));
    }

    #[test]
    fn a_crd_of_something_else_is_left_alone() {
        for definition in [definition(&[]), definition(&[owner("one", true)])] {
            let error = adoption(&existing(&[owner("x", true)]), &definition).unwrap_err().to_string();
            assert_eq!(
                error,
                "CustomResourceDefinition \"ks.g\" exists, and is controlled by ProviderRevision \"x\""
            );
        }
    }

    #[test]
    fn a_version_needs_a_schema_that_is_an_object() {
        let made = |schema: Value| {
            let spec = json!({"versions": [{"name": "v1", "schema": schema}]});
            crd(&ManagedResourceDefinition::deserialize(json!({"spec": spec})).unwrap())
        };
        assert!(made(json!({"openAPIV3Schema": {}})).is_ok());
        for schema in [json!({}), json!({"openAPIV3Schema": "x"})] {
            let error = made(schema).unwrap_err().to_string();
            assert_eq!(error, "cannot parse OpenAPI v3 schema for version \"v1\"");
        }
    }
}
