//! Kubernetes' own tables of libraries, costs, escaping and environments. Cases that differ are named with a reason in
//! `known_differences.txt`; a case that starts to pass must leave that list.

use serde_json::{Value as Json, json};
use transom_cel::{Bindings, Env, EvalError, Program, Value, escape, unescape};
use transom_testkit::tables::{self, Case};

/// Runs a table of the folder `kubernetes/cel`.
fn run(path: &str, check: impl Fn(&Case) -> Result<(), String>) {
    tables::run(&format!("kubernetes/cel/{path}"), include_str!("known_differences.txt"), check);
}

fn strings(v: &Json) -> Vec<&str> {
    match v {
        Json::Array(items) => items.iter().filter_map(Json::as_str).collect(),
        Json::String(s) => vec![s],
        _ => Vec::new(),
    }
}

/// The value that a table writes down, as JSON; optionals and opaque values as their contents.
fn in_table_form(v: &Value<'_>) -> Json {
    match v {
        Value::Optional(None) => json!({"$optional": null}),
        Value::Optional(Some(v)) => json!({"$optional": in_table_form(v)}),
        v => v.to_json().unwrap(),
    }
}

fn library(case: &Case) -> Result<(), String> {
    let source = case.inputs["expr"].as_str().unwrap();
    let result = Program::compile(source, &Env::new())
        .map_err(|e| e.to_string())
        .and_then(|p| p.eval_default(&Bindings::new()).map_err(|e| e.to_string()));
    if !case.want_err.is_null() {
        let wanted = strings(&case.want_err)[0].trim_end_matches(".*").replace('\\', "");
        return match result {
            Err(e) if e.contains(&wanted) => Ok(()),
            other => Err(format!("{source}: wanted error {wanted}, got {other:?}")),
        };
    }
    let value = result.map_err(|e| format!("{source}: {e}"))?;
    let wanted = case.expected.get("expectResult").or_else(|| case.expected.get("expectValue")).unwrap();
    let inner = ["value", "Prefix", "Addr"].iter().find_map(|k| wanted.get(k));
    let wanted = inner.unwrap_or(wanted);
    let found = in_table_form(&value);
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
        let name = case.id.rsplit(' ').next().unwrap_or_default();
        let source = of_library(name).ok_or_else(|| format!("no expression for {name}"))?;
        Program::compile(source, &Env::new()).map(drop).map_err(|e| format!("{source}: {e}"))
    });
}
