//! Runs Kubernetes' own tables of validation rules. Cases that differ are named with a reason in
//! `known_differences.txt`; a case that starts to pass must leave that list.

#![expect(clippy::unwrap_used, reason = "a malformed table should fail loudly")]

mod lists;
mod own;

use serde_json::{Value as Json, json};
use transom_cel::{Bindings, Env, Program, Type, Value};
use transom_object::field::Path;
use transom_schema::rules::{Limits, Rules};
use transom_schema::{Schema, structural};
use transom_testkit::tables::{self, Case};

/// Runs a table of the folder `kubernetes/cel`.
fn run(path: &str, check: impl Fn(&Case) -> Result<(), String>) {
    tables::run(&format!("kubernetes/cel/{path}"), include_str!("known_differences.txt"), check);
}

fn schema(doc: &Json) -> Schema {
    structural::parse(doc).unwrap()
}

fn with_rule(doc: &Json, rule: &str) -> Schema {
    let mut doc = doc.clone();
    doc["x-kubernetes-validations"] = json!([{"rule": rule}]);
    schema(&doc)
}

fn path() -> Path {
    Path::new("root")
}

fn limits() -> Limits {
    Limits { ratchet: false, ..Limits::default() }
}

fn old(inputs: &Json) -> Option<&Json> {
    inputs.get("oldObj").filter(|o| !o.is_null())
}

fn errors(schema: &Schema, inputs: &Json, limits: Limits) -> Vec<String> {
    let rules = Rules::build(schema, true);
    rules
        .report(&inputs["obj"], old(inputs), &path(), limits)
        .errors
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn strings(v: &Json) -> Vec<&str> {
    match v {
        Json::Array(items) => items.iter().filter_map(Json::as_str).collect(),
        Json::String(s) => vec![s],
        _ => Vec::new(),
    }
}

/// All of these substrings must occur, and as many errors as substrings.
fn expect(errors: &[String], wanted: &[&str]) -> Result<(), String> {
    if errors.len() != wanted.len() || wanted.iter().any(|w| !errors.iter().any(|e| e.contains(w))) {
        return Err(format!("wanted {wanted:?}, got {errors:?}"));
    }
    Ok(())
}

fn expressions(case: &Case) -> Result<(), String> {
    for rule in strings(&case.expected["valid"]) {
        let schema = with_rule(&case.inputs["schema"], rule);
        let report =
            Rules::build(&schema, true).report(&case.inputs["obj"], old(&case.inputs), &path(), limits());
        if !report.errors.is_empty() {
            return Err(format!("{rule}: {:?}", report.errors));
        }
        // A skipped rule costs nothing.
        let skipped = (case.expected["expectSkipped"] == json!(true)).then_some(0);
        let spent = report.budget.map(|b| limits().per_object - b);
        match case.expected["expectedCost"].as_u64().or(skipped) {
            Some(cost) if spent != Some(cost) => {
                return Err(format!("{rule}: costs {spent:?}, wanted {cost}"));
            }
            _ => {}
        }
    }
    for (rule, wanted) in case.want_err.as_object().into_iter().flatten() {
        let schema = with_rule(&case.inputs["schema"], rule);
        let found = errors(&schema, &case.inputs, limits());
        if !found.iter().any(|e| e.contains(wanted.as_str().unwrap())) {
            return Err(format!("{rule}: wanted {wanted}, got {found:?}"));
        }
    }
    Ok(())
}

#[test]
fn validation_expressions() {
    run("crd-validation/validation/TestValidationExpressions.tests.json", expressions);
    run("crd-validation/validation/TestCELMaxRecursionDepth.tests.json", expressions);
}

#[test]
fn a_limit_of_zero_stops_every_rule() {
    run("crd-validation/validation/TestCELValidationLimit.tests.json", |case| {
        for rule in strings(&case.expected["valid"]) {
            let schema = with_rule(&case.inputs["schema"], rule);
            let found = errors(&schema, &case.inputs, Limits { per_call: 0, ..limits() });
            expect(&found, &["call cost exceeds limit"])?;
        }
        Ok(())
    });
}

fn whole(case: &Case) -> Result<(), String> {
    let found = errors(&schema(&case.inputs["schema"]), &case.inputs, limits());
    let wanted = strings(&case.want_err);
    let missing = wanted.iter().find(|w| !found.iter().any(|e| e.contains(**w)));
    match missing {
        Some(w) => Err(format!("wanted {w:?}, got {found:?}")),
        None if wanted.is_empty() && !found.is_empty() => Err(format!("unexpected {found:?}")),
        None => Ok(()),
    }
}

#[test]
fn rules_at_all_levels() {
    run("crd-validation/validation/TestValidationExpressionsAtSchemaLevels.tests.json", whole);
}

#[test]
fn optional_old_values() {
    for table in [
        "TestOptionalOldSelf.tests",
        "TestOptionalOldSelfCheckForNull.tests",
        "TestOptionalOldSelfIsOptionalType.cases",
    ] {
        run(&format!("crd-validation/validation/{table}.json"), |case| {
            let mut inputs = case.inputs.clone();
            for rule in inputs["schema"]["x-kubernetes-validations"].as_array_mut().into_iter().flatten() {
                rule["optionalOldSelf"] = json!(true);
            }
            whole(&Case {
                inputs,
                id: case.id.clone(),
                expected: case.expected.clone(),
                want_err: case.want_err.clone(),
            })
        });
    }
}

#[test]
fn reasons_and_field_paths() {
    run("crd-validation/validation/TestReasonAndFldPath.tests.json", |case| {
        let rules = Rules::build(&schema(&case.inputs["schema"]), true);
        let found = rules.validate(&case.inputs["obj"], None, &path());
        let wanted = case.want_err.as_array().unwrap();
        for (e, w) in found.iter().zip(wanted) {
            if e.field != w["field"].as_str().unwrap()
                || format!("{:?}", e.kind) != w["type"].as_str().unwrap()
            {
                return Err(format!("wanted {w}, got {e:?}"));
            }
        }
        if found.len() == wanted.len() { Ok(()) } else { Err(format!("{found:?}")) }
    });
}

#[test]
fn message_expressions() {
    run("crd-validation/validation/TestMessageExpression.tests.json", |case| {
        let schema = schema(&json!({
            "type": "object", "properties": {"str": {"type": "string"}},
            "x-kubernetes-validations": [{"rule": "false", "messageExpression": case.inputs["messageExpression"],
                "message": case.inputs.get("message").unwrap_or(&json!(""))}],
        }));
        let mut limits = limits();
        limits.per_object = case.inputs["costBudget"].as_u64().unwrap();
        limits.per_call = case.inputs.get("perCallLimit").and_then(Json::as_u64).unwrap_or(limits.per_call);
        let report = Rules::build(&schema, false).report(&json!({"str": "a string"}), None, &path(), limits);
        let found: Vec<String> = report.errors.iter().map(ToString::to_string).collect();
        expect(&found, &strings(&case.want_err))?;
        match case.expected["expectedRemainingBudget"].as_i64() {
            Some(left) if u64::try_from(left).ok() != report.budget => {
                Err(format!("wanted {left} left, got {:?}", report.budget))
            }
            _ => Ok(()),
        }
    });
}

#[test]
fn ratcheting() {
    run("crd-validation/validation/TestRatcheting.cases.json", |case| {
        let rules = Rules::build(&schema(&case.inputs["schema"]), false);
        let mut limits = Limits::default();
        if let Some(budget) = case.inputs["runtimeCostBudget"].as_u64() {
            limits.per_object = budget;
        }
        let report = rules.report(&case.inputs["newObj"], case.inputs.get("oldObj"), &path(), limits);
        let found: Vec<String> = report.errors.iter().map(ToString::to_string).collect();
        let warnings: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
        expect(&found, &strings(&case.want_err))?;
        expect(&warnings, &strings(&case.inputs["warnings"]))
    });
}

#[test]
fn runtime_costs() {
    run("crd-validation/celcoststability/TestCelCostStability.cases.json", |case| {
        for (rule, cost) in case.expected["expectCost"].as_object().unwrap() {
            let rules = Rules::build(&with_rule(&case.inputs["schema"], rule), true);
            let report = rules.report(&case.inputs["obj"], None, &path(), limits());
            if !report.errors.is_empty() {
                return Err(format!("{rule}: {:?}", report.errors));
            }
            let spent = report.budget.map(|b| limits().per_object - b);
            if spent != cost.as_u64() {
                return Err(format!("{rule}: costs {spent:?}, wanted {cost}"));
            }
        }
        Ok(())
    });
}

#[test]
fn estimated_costs() {
    run("crd-validation/celcoststability/TestCelEstimatedCostStability.cases.json", |case| {
        for (rule, cost) in case.expected["expectCost"].as_object().unwrap() {
            let rules = Rules::build(&with_rule(&case.inputs["schema"], rule), true);
            let found: Vec<u64> = rules.estimates().iter().map(|e| e.per_evaluation).collect();
            if found.first().copied() != cost.as_u64() {
                return Err(format!("{rule}: estimated {found:?}, wanted {cost}; {:?}", rules.errors()));
            }
        }
        Ok(())
    });
}

#[test]
fn compilation() {
    run("crd-validation/compilation/TestCelCompilation.cases.json", |case| {
        let rules = Rules::build(&schema(&case.inputs["input"]), false);
        let errors = rules.errors();
        for (i, wanted) in case.expected["expectedResults"].as_array().unwrap().iter().enumerate() {
            let at = format!("x-kubernetes-validations[{i}].");
            let found: Vec<String> =
                errors.iter().filter(|e| e.path.starts_with(&at)).map(|e| e.error.to_string()).collect();
            let wanted = wanted.get(0).unwrap_or(wanted);
            match wanted["contains"].as_str() {
                Some(w) => expect(&found, &[w])?,
                None => expect(&found, &[])?,
            }
        }
        Ok(())
    });
}

#[test]
fn documents() {
    run("common/values/TestToValue.tests.json", |case| {
        let source = case.inputs["expression"].as_str().unwrap();
        let variables = case.inputs["activation"].as_object().unwrap();
        let parsed: Vec<(&String, Schema, &Json)> = variables
            .iter()
            .map(|(name, v)| (name, schema(&v["schema"]), v.get("value").unwrap_or(&Json::Null)))
            .collect();
        let mut env = Env::new();
        let mut bindings = Bindings::new();
        for (name, schema, value) in &parsed {
            env = env.with(name, Type::Dyn);
            bindings = bindings
                .with(name, Value::from_json_with(value, schema).map_err(|e| format!("{name}: {e}"))?);
        }
        let result = Program::compile(source, &env)
            .map_err(|e| e.to_string())
            .and_then(|p| p.eval_default(&bindings).map_err(|e| e.to_string()));
        match (&case.want_err, result) {
            (Json::Null, Ok(Value::Bool(true))) => Ok(()),
            (w, Err(e))
                if !w.is_null() && (w["$error"] == "*" || strings(w).iter().any(|w| e.contains(w))) =>
            {
                Ok(())
            }
            (_, other) => Err(format!("{source}: {other:?}, wanted {}", case.want_err)),
        }
    });
}
