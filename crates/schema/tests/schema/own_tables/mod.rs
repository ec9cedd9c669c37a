//! The tables of structured-merge-diff and of Kubernetes' managedfields package, where they are at hand.
//!
//! Cases that are known to differ are listed with a reason in `known_differences.txt`; a listed case that
//! passes fails the test as well.

mod kubernetes;
mod literal;
mod merging;
mod paths;
mod smd_schema;
mod tables;
mod values;

use literal::{Names, Outcome};
use merging::Converter;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tables::Tables;

const KNOWN: &str = include_str!("known_differences.txt");

fn run(tables: &Tables, file: &str, table: &Value, case: &Value) -> Outcome {
    let value = &case["value"];
    if file.starts_with("fieldpath-") {
        return paths::run(tables, file, value);
    }
    if file.starts_with("typed-") {
        return values::run(tables, file, value);
    }
    if file.starts_with("merge-real") {
        return real(tables, value);
    }
    let parser = tables.parser_of(table)?;
    let converter = Converter::of(file);
    // Versions are variables in some tables: every choice of them must do.
    let variables = ["v1", "v2", "v3"];
    let uses_variables = value.to_string().contains("\"$id\":\"v1\"");
    let choices: Vec<Names> = if uses_variables {
        let bind = |n: usize| {
            let version = |i: u32| variables[n / 3_usize.pow(i) % 3];
            (0..3).map(|i| (format!("v{}", i + 1), version(i).into())).collect()
        };
        (0..27).map(bind).collect()
    } else {
        vec![Names::new()]
    };
    let fails = file.starts_with("merge-default_keys.tests.L208");
    for names in choices {
        match (merging::run(tables, &parser, converter, value, &names), fails) {
            (Err(e), false) => return Err(format!("{names:?} {e}")),
            (Ok(()), true) => return Err("should fail".to_owned()),
            _ => {}
        }
    }
    Ok(())
}

/// Real objects under every sequence of operations: rows name an object or the operations.
fn real(tables: &Tables, case: &Value) -> Outcome {
    let types = tables.kubernetes_types()?;
    let kinds = [
        ("io.k8s.api.core.v1.Pod", "pod.yaml"),
        ("io.k8s.api.core.v1.Node", "node.yaml"),
        ("io.k8s.api.core.v1.Endpoints", "endpoints.yaml"),
    ];
    let field = |name: &str| literal::field(case, name);
    let (kinds, operations): (Vec<(String, String)>, Vec<Value>) = match field("parseType") {
        Some(ty) => {
            let name = ty["args"][0].as_str().unwrap_or_default().to_owned();
            let file = field("filename").and_then(Value::as_str).unwrap_or_default().to_owned();
            (vec![(name, file)], REAL_OPERATIONS.iter().map(|ops| operations(ops)).collect())
        }
        None => {
            let kinds = kinds.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            (kinds, vec![case.clone()])
        }
    };
    for (name, file) in &kinds {
        let schema = types.schema(name).ok_or_else(|| format!("no type {name}"))?;
        let parser = merging::Parser::Same(schema);
        let names: Names = BTreeMap::from([("obj".to_owned(), tables.data(file)?.into())]);
        for ops in &operations {
            merging::run(tables, &parser, Converter::Identity, ops, &names)
                .map_err(|e| format!("{file}: {e}"))?;
        }
    }
    Ok(())
}

const REAL_OPERATIONS: [&[&str]; 3] = [&["Update", "Update"], &["Apply", "Apply"], &["Apply", "Update"]];

fn operations(kinds: &[&str]) -> Value {
    let op = |(i, kind): (usize, &&str)| {
        serde_json::json!({"$type": kind, "fields":
            {"Manager": format!("m{i}"), "APIVersion": "v1", "Object": {"$id": "obj"}}})
    };
    serde_json::json!({"fields": {"Ops": {"items": kinds.iter().enumerate().map(op).collect::<Vec<_>>()}}})
}

fn judge(results: &[(String, Outcome)]) {
    let known: BTreeSet<&str> =
        KNOWN.lines().filter_map(|l| l.split('\t').next()).filter(|l| !l.is_empty()).collect();
    let mut wrong = Vec::new();
    for (name, result) in results {
        match (result, known.contains(name.as_str())) {
            (Err(e), false) => wrong.push(format!("{name}: {e}")),
            (Ok(()), true) => wrong.push(format!("{name} passes, but is listed as a known difference")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), results.len(), wrong.join("\n"));
}

#[test]
fn structured_merge_diff() {
    let Some(tables) = Tables::open() else { return };
    let mut results = Vec::new();
    for (file, table) in tables.all() {
        for case in table["cases"].as_array().into_iter().flatten() {
            let name = format!("{file} {}", case["name"].as_str().unwrap_or_default());
            results.push((name, run(&tables, &file, &table, case)));
        }
    }
    assert!(!results.is_empty(), "the folder has no tables");
    judge(&results);
}

#[test]
fn kubernetes_managed_fields() {
    let Some(folder) = Tables::kubernetes() else { return };
    let results = kubernetes::run_all(&folder);
    assert!(!results.is_empty(), "the folder has no tables");
    judge(&results);
}
