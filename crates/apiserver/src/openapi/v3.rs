//! One OpenAPI v3 document for each group and version.

use super::custom;
use super::operations::Subject;
use crate::health::MINOR;
use crate::kinds::{self, openapi::Dialect};
use crate::registry::Served;
use crate::resource::Resource;
use crate::server::Inner;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Referred to by operations and by every kind.
pub(super) const SHARED: [&str; 6] = [
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    "io.k8s.api.autoscaling.v1.Scale",
];

pub(super) fn document(server: &Inner, served: &Served, group: &str, version: &str) -> Value {
    let resources: Vec<&Resource> =
        served.in_version(group, version).into_iter().map(AsRef::as_ref).collect();
    let (paths, schemas) = describe(server, &resources, Dialect::V3);
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": format!("v1.{MINOR}.0")},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// The paths of some resources and every schema they refer to.
pub(super) fn describe(
    server: &Inner,
    resources: &[&Resource],
    dialect: Dialect,
) -> (Map<String, Value>, BTreeMap<String, Value>) {
    let mut paths = Map::new();
    let mut names: Vec<String> = SHARED.iter().map(|s| (*s).to_owned()).collect();
    let mut schemas = BTreeMap::new();
    for r in resources {
        let (schema, list_schema) = if r.definition.is_some() {
            let own = custom::schemas(server, r, dialect);
            let found = (own[0].0.clone(), own[1].0.clone());
            schemas.extend(own);
            found
        } else {
            let name = kinds::type_of(&r.gvk()).to_owned();
            let list = format!("{name}List");
            names.push(name.clone());
            if r.access == crate::resource::Access::Full {
                names.push(list.clone());
            }
            (name, list)
        };
        paths.extend(Subject { resource: r, schema, list_schema, dialect }.paths());
    }
    schemas.extend(kinds::openapi::schemas(names.iter().map(String::as_str), dialect));
    (paths, schemas)
}
