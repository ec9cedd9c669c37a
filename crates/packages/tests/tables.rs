//! Tables of Crossplane's own tests.

use serde_json::Value;
use transom_packages::establish::managed_definition;
use transom_packages::lock::graph::{Graph, Mirrors};
use transom_packages::lock::{LockDependency, LockPackage};
use transom_packages::stream;
use transom_testkit::tables;

const CONVERTER: &str = "crossplane/core/internal_converter/custom_to_managed";

/// Without the fields that Go's types write although they are empty.
fn without_zeros(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), without_zeros(value)));
            let is_zero = |value: &Value| {
                value.is_null() || value == "" || value.as_object().is_some_and(serde_json::Map::is_empty)
            };
            Value::Object(fields.filter(|(_, value)| !is_zero(value)).collect())
        }
        Value::Array(items) => items.iter().map(without_zeros).collect(),
        other => other.clone(),
    }
}

#[test]
fn definitions_are_converted_as_upstream_does() {
    tables::run(&format!("{CONVERTER}/TestConvertCRDToMRD.json"), "", |case| {
        // Fields of other types are refused by the API server, and objects without a kind when a package is read.
        if !case.want_err.is_null() || case.inputs["in"].get("kind").is_none() {
            return Ok(());
        }
        let active = case.inputs["defaultActive"] == true;
        let definition = managed_definition(&case.inputs["in"], active).unwrap_or_default();
        same(&definition, &case.expected["out"])
    });
    tables::run(&format!("{CONVERTER}/TestCustomToManagedResourceDefinitions.json"), "", |case| {
        if !case.want_err.is_null() {
            return Ok(());
        }
        let active = case.inputs["defaultActive"] == true;
        let objects = case.inputs["objects"].as_array().cloned().unwrap_or_default();
        let convert = |object: &Value| managed_definition(object, active).unwrap_or_else(|| object.clone());
        let converted: Value = objects.iter().map(convert).collect();
        let expected = Some(&case.expected["objects"]).filter(|list| list.is_array()).cloned();
        same(&converted, &expected.unwrap_or_else(|| Value::Array(Vec::new())))
    });
}

fn same(ours: &Value, theirs: &Value) -> Result<(), String> {
    let (ours, theirs) = (without_zeros(ours), without_zeros(theirs));
    if ours == theirs { Ok(()) } else { Err(format!("{ours} instead of {theirs}")) }
}

#[test]
fn cycles_are_those_of_upstream() {
    tables::run("crossplane/core/internal_dag/dag/TestSort.json", "", |case| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entry = |node: &Value| {
            let neighbours = node["neighbors"].as_object().cloned().unwrap_or_default();
            let dependency = |package: String| LockDependency { package, ..LockDependency::default() };
            LockPackage {
                source: text(&node["identifier"]),
                dependencies: neighbours.into_iter().map(|(package, _)| dependency(package)).collect(),
                ..LockPackage::default()
            }
        };
        let lock: Vec<LockPackage> =
            case.inputs["nodes"].as_array().into_iter().flatten().map(entry).collect();
        let none = Mirrors::new();
        let graph = Graph::new(&lock, &none);
        let is_cyclic = (0..lock.len()).any(|i| graph.cycle(i).is_some());
        if is_cyclic == (case.expected["sortErr"] == true) { Ok(()) } else { Err(format!("{is_cyclic}")) }
    });
}

#[test]
fn documents_without_content_are_those_of_upstream() {
    tables::run("crossplane/runtime/xpkg_parser/parser/TestCleanYAML.json", "", |case| {
        let meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: a}\n";
        let text = format!("{meta}---\n{}", case.inputs["in"].as_str().unwrap_or_default());
        let parsed = stream::parse(text.as_bytes());
        // A document with content that is not an object of a package is an error.
        let is_skipped = parsed.as_ref().is_ok_and(|package| package.objects.is_empty());
        if is_skipped == (case.expected["out"] == true) { Ok(()) } else { Err(format!("{parsed:?}")) }
    });
}
