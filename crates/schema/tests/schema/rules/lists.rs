//! Lists by their list type.

use super::{run, schema};
use serde_json::{Value as Json, json};
use transom_cel::{Bindings, Env, Program, Type, Value};
use transom_schema::Schema;
use transom_testkit::tables::Case;

/// Evaluates a condition over documents and their schemas.
fn holds(source: &str, documents: &[(&str, &Json, &Schema)]) -> Result<bool, String> {
    let (mut env, mut bindings) = (Env::new(), Bindings::new());
    for (name, document, schema) in documents {
        env = env.with(name, Type::Dyn);
        bindings = bindings.with(name, Value::from_json_with(document, *schema).map_err(|e| e.to_string())?);
    }
    let program = Program::compile(source, &env).map_err(|e| e.to_string())?;
    match program.eval_default(&bindings).map_err(|e| e.to_string())? {
        Value::Bool(answer) => Ok(answer),
        other => Err(format!("{source}: {other:?}")),
    }
}

/// The list's type is a Go type in these rows: rows with keys are maps, and those with `set` in their name are sets.
fn list(case: &Case, side: &Json) -> Schema {
    let item = side["itemsSchema"].get("Structural").unwrap_or(&side["itemsSchema"]["Schema"]);
    let mut doc = json!({"type": "array", "items": item});
    if side["escapedKeyProps"].is_array() {
        doc["x-kubernetes-list-type"] = json!("map");
        doc["x-kubernetes-list-map-keys"] = side["escapedKeyProps"].clone();
    } else if case.id.contains(" set lists") {
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
