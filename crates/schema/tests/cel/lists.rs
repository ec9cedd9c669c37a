//! Lists by their list type, and what the environment has.

use crate::{Case, run, schema, strings};
use serde_json::{Value as Json, json};
use transom_schema::Schema;
use transom_schema::cel::{Bindings, Env, Program, Type, Value};

/// Evaluates a condition over documents and their schemas.
fn holds(source: &str, documents: &[(&str, &Json, &Schema)]) -> Result<bool, String> {
    let (mut env, mut bindings) = (Env::new(), Bindings::new());
    for (name, document, schema) in documents {
        env = env.with(name, Type::Dyn);
        bindings = bindings.with(name, Value::from_json_with(document, schema).map_err(|e| e.to_string())?);
    }
    let program = Program::compile(source, &env).map_err(|e| e.to_string())?;
    match program.eval_default(&bindings).map_err(|e| e.to_string())? {
        Value::Bool(answer) => Ok(answer),
        other => Err(format!("{source}: {other:?}")),
    }
}

/// The list's type is a Go type in these rows: keys tell maps, and the name of the case tells sets.
fn list(case: &Case, side: &Json) -> Schema {
    let item = side["itemsSchema"].get("Structural").unwrap_or(&side["itemsSchema"]["Schema"]);
    let mut doc = json!({"type": "array", "items": item});
    if side["escapedKeyProps"].is_array() {
        doc["x-kubernetes-list-type"] = json!("map");
        doc["x-kubernetes-list-map-keys"] = side["escapedKeyProps"].clone();
    } else if case.id.contains("/set lists") {
        doc["x-kubernetes-list-type"] = json!("set");
    }
    schema(&doc)
}

#[test]
fn equality_of_lists() {
    for group in ["crd-validation", "openapi"] {
        run(&format!("{group}/values/TestEquality.cases.json"), |case| {
            let (lhs, rhs) = (&case.inputs["lhs"], &case.inputs["rhs"]);
            let (left, right) = (list(case, lhs), list(case, rhs));
            let sides = [("lhs", &lhs["elements"], &left), ("rhs", &rhs["elements"], &right)];
            let equal = holds("lhs == rhs", &sides)?;
            if equal == (case.inputs["equal"] == json!(true)) {
                Ok(())
            } else {
                Err(format!("equal: {equal}"))
            }
        });
    }
}

#[test]
fn size_membership_and_addition_of_lists() {
    for group in ["crd-validation", "openapi"] {
        run(&format!("{group}/values/TestLister.cases.json"), |case| {
            let own = schema(&case.inputs["schema"]);
            let plain = schema(&json!({"type": "array", "items": case.inputs["itemSchema"]}));
            let documents = [
                ("list", &case.inputs["unstructured"], &own),
                ("more", &case.inputs["addition"], &own),
                ("others", &case.inputs["notContains"], &plain),
                ("sum", &case.expected["expectAdded"], &plain),
            ];
            let size = format!("size(list) == {}", case.inputs["size"]);
            let conditions = [size.as_str(), "others.all(o, !(o in list))", "(list + more).map(e, e) == sum"];
            for condition in conditions {
                if !holds(condition, &documents)? {
                    return Err(format!("not {condition}"));
                }
            }
            Ok(())
        });
    }
}

/// Only the environment of the newest version exists here.
#[test]
fn base_environment() {
    run("environment/environment/TestBaseEnvironment.cases.json", |case| {
        let newest = case.inputs["typeVersionCombinations"].as_array().into_iter().flatten();
        let old = newest.into_iter().all(|c| c["version"]["components"][1].as_u64() < Some(28));
        for source in strings(&case.inputs["validExpressions"]) {
            Program::compile(source, &Env::new()).map_err(|e| e.to_string())?;
        }
        for source in strings(&case.inputs["invalidExpressions"]) {
            if !old && Program::compile(source, &Env::new()).is_ok() {
                return Err(format!("{source} compiles"));
            }
        }
        Ok(())
    });
}

/// An expression for each library that only compiles when the library is there.
fn of_library(name: &str) -> Option<&'static str> {
    Some(match name {
        "cel.lib.ext.sets" => "sets.contains([1], [1])",
        "cel.lib.optional" => "optional.of(1).hasValue()",
        "cel.lib.ext.strings" => "'a'.charAt(0)",
        "cel.lib.ext.comprev2" => "[1].all(i, v, i < v)",
        "kubernetes.Semver" => "isSemver('1.0.0')",
        "kubernetes.format" => "format.named('dns1123Label').hasValue()",
        "kubernetes.lists" => "[1].isSorted()",
        "kubernetes.net.cidr" => "isCIDR('10.0.0.0/8')",
        "kubernetes.net.ip" => "isIP('10.0.0.1')",
        "kubernetes.quantity" => "isQuantity('1Gi')",
        "kubernetes.regex" => "'a1'.find('[0-9]')",
        "kubernetes.urls" => "isURL('https://example.org')",
        _ => return None,
    })
}

#[test]
fn libraries_of_the_environment() {
    run("environment/base/TestLibraryCoverage.tracked.json", |case| {
        let name = case.id.rsplit('/').next().unwrap_or_default();
        let source = of_library(name).ok_or_else(|| format!("no expression for {name}"))?;
        Program::compile(source, &Env::new()).map(drop).map_err(|e| format!("{source}: {e}"))
    });
}
