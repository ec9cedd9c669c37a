//! Reconciles recorded from the genuine engine with the genuine functions, on compositions found in the wild.
//!
//! A golden whose pipeline needs a function we do not have is left out by that rule. What differs otherwise is named,
//! with its reason, in `known_differences.txt`; a named case that passes fails the test, too.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use transom_compose::offline::{Error, Input, Reconciled, layout_for, reconcile};
use transom_compose::{Objects, Requirements};
use transom_object::error_chain::chain;
use transom_runner::{Options, Router};
use transom_xapi::Composition;

const KNOWN: &str = include_str!("known_differences.txt");

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The functions of a golden's pipeline, or the first one that is not built in.
fn functions(golden: &Value) -> Result<Router, String> {
    let functions = Router::new(Options::default());
    for (name, package) in golden["functions"].as_object().into_iter().flatten() {
        let package = package.as_str().unwrap_or_default();
        let built_in = transom_builtins::find(package).ok_or_else(|| package.to_owned())?;
        functions.run_in_process(name, built_in);
    }
    Ok(functions)
}

fn objects(list: &Value) -> Vec<Value> {
    list.as_array().cloned().unwrap_or_default()
}

async fn run(input: &Value, functions: &Router) -> Result<Reconciled, Error> {
    let composition: Composition =
        serde_json::from_value(input["composition"].clone()).expect("a composition");
    let observed = objects(&input["observedResources"]);
    let mut world: Objects = observed.iter().cloned().collect();
    world.extend(objects(&input["requiredResources"]));
    for mut secret in objects(&input["credentials"]) {
        secret["apiVersion"] = "v1".into();
        secret["kind"] = "Secret".into();
        world.add(secret);
    }
    let xr = &input["compositeResource"];
    let definition = input.get("compositeResourceDefinition");
    let files = Input {
        xr,
        layout: layout_for(xr, definition).expect("a definition for this kind"),
        composition: &composition,
        observed: &observed,
        context: Map::new(),
        now: transom_object::time::parse("2024-01-01T00:00:00Z").expect("a time"),
    };
    reconcile(&files, functions, &world).await
}

/// Objects and events in an order that does not matter.
fn sorted(mut values: Vec<Value>) -> Vec<Value> {
    values.sort_by_cached_key(Value::to_string);
    values
}

/// The selectors of all steps, each once.
fn required(requirements: &Requirements) -> Vec<Value> {
    let selectors = requirements.values().flat_map(|step| step.selectors().map(|(_, selector)| selector));
    once(selectors.map(|selector| serde_json::to_value(selector).expect("selectors are JSON")).collect())
}

fn once(values: Vec<Value>) -> Vec<Value> {
    let mut values = sorted(values);
    values.dedup();
    values
}

fn output(reconciled: &Reconciled, requirements: &Requirements) -> Value {
    let events = reconciled.events.iter();
    let events =
        events.map(|e| json!({"type": e.r#type.as_str(), "reason": e.reason, "message": e.text()})).collect();
    let composed = reconciled.decision.apply.iter().map(|a| a.object.clone()).collect();
    let deleted = reconciled.decision.delete.iter().map(|d| d.object.clone()).collect();
    json!({
        "compositeResource": reconciled.xr,
        "composedResources": sorted(composed),
        "deletedResources": sorted(deleted),
        "events": sorted(events),
        "requiredResources": required(requirements),
    })
}

/// The recorded output in the same form; times in it are all the same.
fn expected(golden: &Value) -> Value {
    let expected = &golden["expected"];
    json!({
        "compositeResource": expected["compositeResource"],
        "composedResources": sorted(objects(&expected["composedResources"])),
        "deletedResources": sorted(objects(&expected["deletedResources"])),
        "events": sorted(objects(&expected["events"])),
        "requiredResources": once(objects(&expected["requiredResources"])),
    })
}

/// Whether a message of ours says what theirs says, and then shows the place on lines of its own.
fn explains(ours: &Value, theirs: &Value) -> bool {
    let (Some(ours), Some(theirs)) = (ours.as_str(), theirs.as_str()) else { return false };
    theirs.contains("cannot execute template: ")
        && ours.strip_prefix(theirs).is_some_and(|more| more.starts_with('\n'))
}

/// The first difference, by path.
fn difference(path: &str, ours: &Value, theirs: &Value) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let at = |key: &&String| {
                let path = format!("{path}.{key}");
                match (a.get(*key), b.get(*key)) {
                    (Some(a), Some(b)) => difference(&path, a, b),
                    (a, b) => Some(format!("{path}: {a:?} instead of {b:?}")),
                }
            };
            keys.iter().find_map(at)
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let at = |(i, (a, b)): (usize, (&Value, &Value))| difference(&format!("{path}[{i}]"), a, b);
            a.iter().zip(b).enumerate().find_map(at)
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        (a, b) if a == b || explains(a, b) => None,
        (a, b) => Some(format!("{path}: {a} instead of {b}")),
    }
}

async fn check(golden: &Value, functions: &Router) -> Result<(), String> {
    let error = golden["error"].as_str();
    match (run(&golden["input"], functions).await, error) {
        (Ok(reconciled), None) => {
            let ours = output(&reconciled, &reconciled.decision.requirements);
            difference("", &ours, &expected(golden)).map_or(Ok(()), Err)
        }
        (Ok(_), Some(error)) => Err(format!("succeeds, but should fail: {error}")),
        (Err(ours), None) => Err(format!("fails: {}", chain(&ours))),
        (Err(ours), Some(theirs))
            if chain(&ours) != theirs && !explains(&chain(&ours).into(), &theirs.into()) =>
        {
            Err(format!("fails differently: {} instead of: {theirs}", chain(&ours)))
        }
        (Err(Error::Compose { so_far, failure }), Some(_)) if !golden["expected"].is_null() => {
            let ours = output(&so_far, &failure.requirements);
            difference("", &ours, &expected(golden)).map_or(Ok(()), Err)
        }
        (Err(_), Some(_)) => Ok(()),
    }
}

#[tokio::test]
async fn recorded_reconciles_are_reproduced() {
    let mut paths = Vec::new();
    let Some(folder) = transom_testkit::tables::find("render/golden") else { return };
    files(&folder, &mut paths);
    paths.sort();
    let known: BTreeMap<&str, &str> =
        KNOWN.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once('\t')).collect();
    let (mut passed, mut problems, mut lacking) = (0, Vec::new(), BTreeMap::<String, usize>::new());
    for path in &paths {
        let golden: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let functions = match functions(&golden) {
            Ok(functions) => functions,
            Err(function) => {
                *lacking.entry(function).or_default() += 1;
                continue;
            }
        };
        match (check(&golden, &functions).await, known.contains_key(name.as_str())) {
            (Ok(()), false) | (Err(_), true) => passed += 1,
            (Ok(()), true) => problems.push(format!("{name}: passes; remove it from known_differences.txt")),
            (Err(difference), false) => problems.push(format!("{name}: {difference}")),
        }
    }
    println!("{passed} of {} reproduced; not built in: {lacking:?}", paths.len());
    assert!(problems.is_empty(), "{} differences:\n{}", problems.len(), problems.join("\n"));
}
