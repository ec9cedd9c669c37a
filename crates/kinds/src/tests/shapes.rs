//! The table of types is sound, and schemas and documents derived from it are closed.

use crate::openapi::{Dialect, schemas};
use crate::{schema, types};
use serde_json::json;
use transom_schema::{Additional, ListType, MapType, Schema};

fn at<'a>(root: &'a Schema, path: &[&str]) -> &'a Schema {
    path.iter().fold(root, |node, step| match *step {
        "[]" => node.items.as_ref().unwrap(),
        "{}" => match &node.additional {
            Additional::Schema(s) => s,
            other => panic!("no map: {other:?}"),
        },
        name => node.properties.get(name).unwrap_or_else(|| panic!("no {name}")),
    })
}

#[test]
fn deployment_shape_serves_apply_and_patch() {
    let root = schema("io.k8s.api.apps.v1.Deployment").unwrap();
    let pod = ["spec", "template", "spec"];
    let containers = at(&root, &[&pod[..], &["containers"]].concat());
    assert_eq!(containers.list_type, Some(ListType::Map(vec!["name".into()])));
    let patch = containers.patch.as_ref().unwrap();
    assert!(patch.merge && patch.merge_key.as_deref() == Some("name"));
    let ports = at(containers, &["[]", "ports"]);
    assert_eq!(ports.list_type, Some(ListType::Map(vec!["containerPort".into(), "protocol".into()])));
    assert_eq!(at(ports, &["[]", "protocol"]).default, Some(json!("TCP")));
    assert_eq!(at(&root, &["spec", "selector"]).map_type, Some(MapType::Atomic));
    let volumes = at(&root, &[&pod[..], &["volumes"]].concat()).patch.clone().unwrap();
    assert!(volumes.merge && volumes.retain_keys);
    assert!(at(&root, &["spec", "strategy"]).patch.clone().unwrap().retain_keys);
    assert!(at(containers, &["[]", "resources", "limits", "{}"]).preserve_unknown);
}

#[test]
fn every_type_has_a_schema() {
    for ty in types().iter() {
        let node = schema(ty.name).unwrap();
        assert_eq!(node.properties.len(), ty.flat.len(), "{}", ty.name);
    }
    assert!(schema("io.k8s.api.core.v1.Nothing").is_none());
}

#[test]
fn openapi_documents_are_closed_and_described() {
    for (dialect, prefix) in [(Dialect::V3, "#/components/schemas/"), (Dialect::V2, "#/definitions/")] {
        let all = schemas(types().kinds().iter().map(|k| k.type_name), dialect);
        let text = serde_json::to_string(&all).unwrap();
        for target in text.split("\"$ref\":\"").skip(1).map(|t| t.split('"').next().unwrap()) {
            assert!(all.contains_key(target.strip_prefix(prefix).unwrap()), "{target}");
        }
    }
    let pod = &schemas(["io.k8s.api.core.v1.Pod"], Dialect::V3)["io.k8s.api.core.v1.Pod"];
    assert_eq!(
        pod["properties"]["spec"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.api.core.v1.PodSpec"
    );
    assert!(pod["properties"]["kind"]["description"].as_str().unwrap().starts_with("Kind is a string value"));
    assert_eq!(
        pod["x-kubernetes-group-version-kind"],
        json!([{"group": "", "version": "v1", "kind": "Pod"}])
    );
}
