//! One OpenAPI v3 document for each group and version.

use super::custom;
use super::documents::Built;
use super::operations::{DELETE_OPTIONS, PATCH, STATUS, Subject, schema_of};
use crate::health::KUBERNETES_MINOR;
use crate::resource::{Access, Resource};
use crate::server::Inner;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
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

pub(super) fn document(server: &Inner, resources: &[Arc<Resource>]) -> Built {
    let mut described = describe(server, resources, Dialect::V3);
    let custom = resources.iter().any(|r| r.definition.is_some());
    let info = if custom {
        for watched in [WATCH_EVENT, RAW] {
            described.schemas.remove(watched);
        }
        json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"})
    } else {
        if let Some(r) = resources.first() {
            keep_version(&mut described.schemas, &r.group, &r.version);
        }
        json!({"title": "Kubernetes", "version": format!("v1.{KUBERNETES_MINOR}.0")})
    };
    let document = json!({
        "openapi": "3.0.0",
        "info": info,
        "paths": described.paths,
        "components": {"schemas": described.schemas},
    });
    Built { document, current: described.current }
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
    pub(super) current: bool,
}

pub(super) fn describe(server: &Inner, resources: &[Arc<Resource>], dialect: Dialect) -> Described {
    let mut out = Described { paths: Map::new(), schemas: BTreeMap::new(), current: true };
    let mut names: BTreeSet<String> = SHARED.iter().map(|s| (*s).to_owned()).collect();
    for r in resources {
        let (schema, list_schema) = if r.definition.is_some() {
            let own = custom::schemas(server, r, dialect);
            out.current &= own.current;
            let found = (own.kind.0.clone(), own.list.0.clone());
            out.schemas.extend([own.kind, own.list]);
            found
        } else {
            let name = transom_kinds::type_of(&r.gvk()).to_owned();
            let list = format!("{name}List");
            names.insert(name.clone());
            if r.access == Access::Full {
                names.insert(list.clone());
            }
            (name, list)
        };
        names.extend(r.subresources.iter().filter_map(|s| schema_of(*s)).map(str::to_owned));
        out.paths.extend(Subject { resource: r, schema, list_schema, dialect }.paths());
    }
    out.schemas.extend(transom_kinds::openapi::schemas(names.iter().map(String::as_str), dialect));
    out
}
