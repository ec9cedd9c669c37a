//! One OpenAPI v3 document for each group and version.

use crate::operations::{DELETE_OPTIONS, PATCH, STATUS, Subject};
use crate::resource::{Resource, Subresource};
use crate::{custom, kubernetes_version};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use transom_kinds::openapi::Dialect;

/// Referred to by every kind, or looked for by clients in every document.
const SHARED: [&str; 6] = [
    DELETE_OPTIONS,
    PATCH,
    STATUS,
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    WATCH_EVENT,
];
const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// The OpenAPI v3 document of these resources, which are all of one group and version.
pub fn document(resources: &[Resource]) -> Value {
    let mut described = describe(resources, Dialect::V3);
    let info = if resources.iter().any(Resource::is_custom) {
        for watched in [WATCH_EVENT, RAW] {
            described.schemas.remove(watched);
        }
        json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"})
    } else {
        if let Some(r) = resources.first() {
            keep_version(&mut described.schemas, &r.group, &r.version);
        }
        json!({"title": "Kubernetes", "version": kubernetes_version()})
    };
    json!({
        "openapi": "3.0.0",
        "info": info,
        "paths": described.paths,
        "components": {"schemas": described.schemas},
    })
}

/// Of a kind that every version has, such as DeleteOptions, a document names its own and that of the core.
fn keep_version(schemas: &mut BTreeMap<String, Value>, group: &str, version: &str) {
    for schema in schemas.values_mut() {
        let Some(Value::Array(kinds)) = schema.get_mut("x-kubernetes-group-version-kind") else { continue };
        if kinds.len() > 1 {
            let is_own = |kind: &Value| kind["group"] == *group && kind["version"] == *version;
            kinds.retain(|kind| kind["group"] == "" || is_own(kind));
        }
    }
}

/// The paths of some resources and every schema they refer to.
pub(super) struct Described {
    pub(super) paths: Map<String, Value>,
    pub(super) schemas: BTreeMap<String, Value>,
}

pub(super) fn describe(resources: &[Resource], dialect: Dialect) -> Described {
    let mut out = Described { paths: Map::new(), schemas: BTreeMap::new() };
    let mut names: BTreeSet<String> = SHARED.iter().map(|s| (*s).to_owned()).collect();
    for r in resources {
        let (schema, list_schema) = if let Some(definition) = &r.definition {
            let own = custom::schemas(r, definition, dialect);
            let found = (own.kind.0.clone(), own.list.0.clone());
            out.schemas.extend([own.kind, own.list]);
            found
        } else {
            let name = transom_kinds::type_of(&r.gvk()).to_owned();
            let list = format!("{name}List");
            names.insert(name.clone());
            if r.is_stored() {
                names.insert(list.clone());
            }
            (name, list)
        };
        names.extend(r.subresources.iter().filter_map(Subresource::schema).map(str::to_owned));
        out.paths.extend(Subject { resource: r, schema, list_schema, dialect }.paths());
    }
    out.schemas.extend(transom_kinds::openapi::schemas(names.iter().map(String::as_str), dialect));
    out
}
