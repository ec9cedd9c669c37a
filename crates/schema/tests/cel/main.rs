//! Runs Kubernetes' own CEL tables, when they are at hand, against the implementation. Cases that differ are
//! named with a reason in `known_differences.txt`; one that starts to pass must leave that list.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a malformed table should fail loudly")]

mod lists;

use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use transom_object::field::Path;
use transom_schema::cel::{Bindings, Env, EvalError, Limits, Program, Rules, Value, escape, unescape};
use transom_schema::{Schema, structural};

fn folder() -> Option<PathBuf> {
    transom_testkit::tables::find("kubernetes/cel")
}

struct Case {
    id: String,
    inputs: Json,
    expected: Json,
    want: Json,
}

fn table(path: &str) -> Vec<Case> {
    let Some(folder) = folder() else { return Vec::new() };
    let text = std::fs::read_to_string(folder.join(path)).unwrap();
    let doc: Json = serde_json::from_str(&text).unwrap();
    let name = doc["table"].as_str().unwrap();
    let group = path.rsplit_once('/').unwrap().0;
    doc["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| Case {
            id: format!("{group}/{name}/{}", c["name"].as_str().unwrap()),
            inputs: c["inputs"].clone(),
            expected: c["expected"].clone(),
            want: c["wantErr"].clone(),
        })
        .collect()
}

fn known() -> BTreeMap<String, String> {
    include_str!("known_differences.txt")
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(|l| l.split_once('\t').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap())
        .collect()
}

/// Runs every case of a table; all must pass but those listed, and those must not.
fn run(path: &str, check: impl Fn(&Case) -> Result<(), String>) {
    let known = known();
    let mut wrong = Vec::new();
    let cases = table(path);
    let mut passed = 0;
    for case in &cases {
        match (check(case), known.contains_key(&case.id)) {
            (Ok(()), false) => passed += 1,
            (Ok(()), true) => wrong.push(format!("{}: passes, but is listed as different", case.id)),
            (Err(_), true) => {}
            (Err(why), false) => wrong.push(format!("{}: {why}", case.id)),
        }
    }
    eprintln!("{path}: {passed} of {}", cases.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
    for (rule, wanted) in case.want.as_object().into_iter().flatten() {
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
    let wanted = strings(&case.want);
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
                want: case.want.clone(),
            })
        });
    }
}

#[test]
fn reasons_and_field_paths() {
    run("crd-validation/validation/TestReasonAndFldPath.tests.json", |case| {
        let rules = Rules::build(&schema(&case.inputs["schema"]), true);
        let found = rules.validate(&case.inputs["obj"], None, &path());
        let wanted = case.want.as_array().unwrap();
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
        expect(&found, &strings(&case.want))?;
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
        expect(&found, &strings(&case.want))?;
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

/// The value that a table writes down, as JSON; optionals and opaque values as their contents.
fn shown(v: &Value<'_>) -> Json {
    match v {
        Value::Optional(None) => json!({"$optional": null}),
        Value::Optional(Some(v)) => json!({"$optional": shown(v)}),
        v => v.to_json().unwrap(),
    }
}

fn library(case: &Case) -> Result<(), String> {
    let source = case.inputs["expr"].as_str().unwrap();
    let result = Program::compile(source, &Env::new())
        .map_err(|e| e.to_string())
        .and_then(|p| p.eval_default(&Bindings::new()).map_err(|e| e.to_string()));
    if !case.want.is_null() {
        let wanted = strings(&case.want)[0].trim_end_matches(".*").replace('\\', "");
        return match result {
            Err(e) if e.contains(&wanted) => Ok(()),
            other => Err(format!("{source}: wanted error {wanted}, got {other:?}")),
        };
    }
    let value = result.map_err(|e| format!("{source}: {e}"))?;
    let wanted = case.expected.get("expectResult").or_else(|| case.expected.get("expectValue")).unwrap();
    let inner = ["value", "Prefix", "Addr"].iter().find_map(|k| wanted.get(k));
    let wanted = inner.unwrap_or(wanted);
    let found = shown(&value);
    let same = found == *wanted || (found.is_number() && found.as_f64() == wanted.as_f64());
    if same { Ok(()) } else { Err(format!("{source}: wanted {wanted}, got {found}")) }
}

#[test]
fn libraries() {
    for table in [
        "cidr/TestCIDR.cases",
        "ip/TestIP.cases",
        "format/TestFormat.cases",
        "quantity/TestQuantity.cases",
        "semver/TestSemver.cases",
    ] {
        run(&format!("library/{table}.json"), library);
    }
}

fn costs(case: &Case) -> Result<(), String> {
    let sources: Vec<String> =
        match (case.inputs.get("expr").or(case.inputs.get("op")), case.inputs.get("ops")) {
            (Some(e), _) => vec![e.as_str().unwrap().to_owned()],
            (_, Some(ops)) => {
                strings(ops).iter().map(|op| format!("url('https:://kubernetes.io/'){op}")).collect()
            }
            _ => return Err("no expression".to_owned()),
        };
    for source in sources {
        let env = Env::new().outside_kubernetes();
        let program = Program::compile(&source, &env).map_err(|e| format!("{source}: {e}"))?;
        let (result, cost) = program.eval_metered(&Bindings::new(), 1_000_000);
        result.map_err(|e: EvalError| format!("{source}: {e}"))?;
        let wanted =
            case.expected.get("expectEstimatedCost").or(case.expected.get("expectEsimatedCost")).unwrap();
        let estimate = program.estimated_cost();
        let bound = |k: &str| wanted.get(k).and_then(Json::as_u64).unwrap_or(0);
        if (estimate.min, estimate.max) != (bound("Min"), bound("Max")) {
            return Err(format!("{source}: estimated {estimate:?}, wanted {wanted}"));
        }
        if Some(cost) != case.expected["expectRuntimeCost"].as_u64() {
            return Err(format!("{source}: costs {cost}, wanted {}", case.expected["expectRuntimeCost"]));
        }
    }
    Ok(())
}

#[test]
fn library_costs() {
    for table in [
        "TestAuthzLibrary.cases",
        "TestIPIsCanonicalCost.testCases",
        "TestNameFormatCost.cases",
        "TestQuantityCost.cases",
        "TestSemverCost.cases",
        "TestSetsCost.cases",
        "TestStringLibrary.cases",
        "TestTwoVariableComprehensionCost.cases",
        "TestURLsCost.cases",
    ] {
        run(&format!("library/cost/{table}.json"), costs);
    }
}

#[test]
fn escaping() {
    run("escaping-and-values/escaping/TestEscaping.cases.json", |case| {
        let name = case.inputs.get("unescaped").and_then(Json::as_str).unwrap_or_default();
        let escaped = case.inputs.get("escaped").and_then(Json::as_str);
        let found = escape(name);
        if case.inputs["unescapable"] == json!(true) {
            return if found.is_none() { Ok(()) } else { Err(format!("{name}: {found:?}")) };
        }
        let Some(escaped) = escaped else { return Err(format!("{name}: nothing expected")) };
        if found.as_deref() != Some(escaped) || unescape(escaped).as_deref() != Some(name) {
            return Err(format!("{name}: {found:?}, back {:?}", unescape(escaped)));
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
            env = env.with(name, transom_schema::cel::Type::Dyn);
            bindings = bindings
                .with(name, Value::from_json_with(value, schema).map_err(|e| format!("{name}: {e}"))?);
        }
        let result = Program::compile(source, &env)
            .map_err(|e| e.to_string())
            .and_then(|p| p.eval_default(&bindings).map_err(|e| e.to_string()));
        match (&case.want, result) {
            (Json::Null, Ok(Value::Bool(true))) => Ok(()),
            (w, Err(e))
                if !w.is_null() && (w["$error"] == "*" || strings(w).iter().any(|w| e.contains(w))) =>
            {
                Ok(())
            }
            (_, other) => Err(format!("{source}: {other:?}, wanted {}", case.want)),
        }
    });
}
