//! From a definition to the resources it serves.

use crate::resource::{Access, Names, Resource, ScalePaths};
use crate::strategy::Column;
use crate::strategy::custom::{Custom, PrinterColumn};
use crate::subresource::Subresource;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_admission::webhook::ClientConfig;
use transom_object::json::strings;
use transom_object::jsonpath;
use transom_schema::rules::Rules;
use transom_schema::{Schema, own, structural};
use transom_store::Durability;

/// One resource for each served version. `before` is what was served of this definition so far: when the spec is
/// unchanged, objects stored under it stay readable without normalising them again.
pub(super) fn resources(definition: &Value, revision: u64, before: &[Arc<Resource>]) -> Vec<Arc<Resource>> {
    let spec = &definition["spec"];
    let group = spec["group"].as_str().unwrap_or_default();
    let fingerprint: [u8; 32] = Sha256::digest(spec.to_string()).into();
    let verbatim_after = match before.first() {
        Some(r) if r.definition == Some(fingerprint) => r.definition_since,
        // Writes under the old schema may still be on their way; see `serve_verbatim`.
        Some(_) => u64::MAX,
        None => revision,
    };
    let versions: Vec<&Value> = spec["versions"].as_array().into_iter().flatten().collect();
    let storage =
        versions.iter().find(|v| v["storage"] == true).and_then(|v| v["name"].as_str()).unwrap_or_default();
    let schemas: BTreeMap<String, Arc<Schema>> = versions
        .iter()
        .map(|v| (format!("{group}/{}", v["name"].as_str().unwrap_or_default()), schema_of(v)))
        .collect();
    let schemas = Arc::new(schemas);
    versions
        .iter()
        .filter(|v| v["served"] == true)
        .map(|version| {
            let name = version["name"].as_str().unwrap_or_default();
            let since = if name == storage { verbatim_after } else { u64::MAX };
            let strategy = strategy(group, storage, version, &schemas);
            Arc::new(Resource {
                group: group.to_owned(),
                version: name.to_owned(),
                names: names(&definition["status"]["acceptedNames"]),
                namespaced: spec["scope"] == "Namespaced",
                access: Access::Full,
                subresources: subresources(&version["subresources"]),
                scale: scale(&version["subresources"]["scale"]),
                store_key: definition["metadata"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .split_once('.')
                    .map_or_else(String::new, |(p, g)| format!("{p}.{g}"))
                    .into(),
                verbatim_after: since,
                definition: Some(fingerprint),
                definition_since: verbatim_after,
                schemas: schemas.clone(),
                strategy: Box::new(strategy),
                durability: Durability::Strict,
                terminating: transom_crd::has_condition(definition, "Terminating"),
                conversion: conversion(&spec["conversion"]),
                deprecation: deprecation(group, version, definition),
            })
        })
        .collect()
}

fn conversion(conversion: &Value) -> Option<ClientConfig> {
    (conversion["strategy"] == "Webhook").then(|| ClientConfig::parse(&conversion["webhook"]["clientConfig"]))
}

fn schema_of(version: &Value) -> Arc<Schema> {
    let document = &version["schema"]["openAPIV3Schema"];
    // Stored definitions were validated when they were written; a schema that no longer parses is served as empty
    // rather than not at all.
    Arc::new(structural::parse(document).unwrap_or_else(|_| Schema::any()))
}

fn strategy(
    group: &str,
    storage: &str,
    version: &Value,
    schemas: &Arc<BTreeMap<String, Arc<Schema>>>,
) -> Custom {
    let name = version["name"].as_str().unwrap_or_default();
    let api_version = format!("{group}/{name}");
    let schema = schemas.get(&api_version).cloned().unwrap_or_default();
    let has_status = version["subresources"]["status"].is_object();
    let field = |f: &str| own::Path::of(&[f]);
    let set = |fields: &[&str]| {
        let mut set = own::Set::new();
        for f in fields {
            set.insert(&field(f).0);
        }
        Arc::new(set)
    };
    Custom {
        rules: Rules::build(&schema, true),
        api_version,
        group: group.to_owned(),
        storage_version: storage.to_owned(),
        schemas: schemas.clone(),
        schema,
        has_status,
        columns: columns(&version["additionalPrinterColumns"]),
        selectable: selectable(&version["selectableFields"]),
        scale: scale(&version["subresources"]["scale"]),
        reset_main: has_status.then(|| set(&["status"])),
        reset_status: set(&["metadata", "spec"]),
    }
}

fn names(accepted: &Value) -> Names {
    let text = |key: &str| accepted[key].as_str().unwrap_or_default().to_owned();
    Names {
        plural: text("plural"),
        singular: text("singular"),
        kind: text("kind"),
        list_kind: text("listKind"),
        short_names: strings(&accepted["shortNames"]),
        categories: strings(&accepted["categories"]),
    }
}

fn subresources(given: &Value) -> Vec<Subresource> {
    let status = given["status"].is_object().then_some(Subresource::Status);
    let scale = scale(&given["scale"]).map(|_| Subresource::Scale);
    status.into_iter().chain(scale).collect()
}

fn scale(scale: &Value) -> Option<ScalePaths> {
    let path = |key: &str| {
        let text = scale[key].as_str()?;
        Some(text.trim_start_matches('.').split('.').map(str::to_owned).collect::<Vec<_>>())
    };
    Some(ScalePaths {
        spec_replicas: path("specReplicasPath")?,
        status_replicas: path("statusReplicasPath")?,
        label_selector: path("labelSelectorPath"),
    })
}

fn columns(columns: &Value) -> Vec<PrinterColumn> {
    let age = json!([{"name": "Age", "type": "date", "description": AGE, "jsonPath": ".metadata.creationTimestamp"}]);
    let columns = if columns.as_array().is_none_or(Vec::is_empty) { &age } else { columns };
    let text = |c: &Value, key: &str| c[key].as_str().unwrap_or_default().to_owned();
    columns
        .as_array()
        .into_iter()
        .flatten()
        .map(|c| {
            let path = text(c, "jsonPath");
            let description = match text(c, "description") {
                d if d.is_empty() => {
                    format!("Custom resource definition column (in JSONPath format): {path}")
                }
                d => d,
            };
            PrinterColumn {
                column: Column {
                    name: text(c, "name"),
                    ty: text(c, "type"),
                    format: text(c, "format"),
                    description,
                    priority: c["priority"].as_i64().unwrap_or(0),
                },
                path: jsonpath::Template::parse_path(&path).ok(),
            }
        })
        .collect()
}

const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

fn selectable(fields: &Value) -> Vec<String> {
    let fields = fields.as_array().into_iter().flatten();
    fields.filter_map(|f| f["jsonPath"].as_str()).map(|p| p.trim_start_matches('.').to_owned()).collect()
}

fn deprecation(group: &str, version: &Value, definition: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    let name = version["name"].as_str().unwrap_or_default();
    let kind = definition["spec"]["names"]["kind"].as_str().unwrap_or_default();
    Some(
        version["deprecationWarning"]
            .as_str()
            .map_or_else(|| format!("{group}/{name} {kind} is deprecated"), str::to_owned),
    )
}
