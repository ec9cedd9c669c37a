//! Upstream's tables. Their rows are definitions in the form that is judged, with Go's names.

use super::super::schema::{self, Unchanged};
use super::super::spec::Spec;
use super::super::{Status, created, rules, updated, versions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use transom_object::field::{Error, Path};
use transom_object::{meta, names};
use transom_schema::structural::Requirements;

const FOLDER: &str = "crd-validation/validation";

/// Runs `judge` on every row of a table. The rows that fail must be those in the list of known differences.
fn run(table: &str, judge: impl Fn(&Value) -> Result<(), String>) {
    let cases = transom_testkit::tables::cases(&format!("kubernetes/{table}"));
    let listed: Vec<&str> = include_str!("known_differences.txt")
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .filter_map(|(name, _)| name.strip_prefix(table)?.strip_prefix(' '))
        .collect();
    let mut wrong = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        match (judge(case), listed.contains(&name)) {
            (Err(problem), false) => wrong.push(format!("{name}\n    {problem}")),
            (Ok(()), true) => wrong.push(format!("{name}\n    is a known difference, but passes")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{table}: {} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// A definition in JSON's names, from Go's.
fn definition(go: &Value) -> Value {
    let mut spec = json_names(&go["Spec"]);
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        let client = conversion.remove("webhookClientConfig");
        let reviews = conversion.remove("conversionReviewVersions");
        if client.is_some() || reviews.is_some() {
            conversion.insert(
                "webhook".into(),
                json!({"clientConfig": client, "conversionReviewVersions": reviews}),
            );
        }
    }
    let mut metadata = go.clone();
    if let Some(fields) = metadata.as_object_mut() {
        fields.retain(|name, _| name != "Spec" && name != "Status");
    }
    json!({"metadata": metadata, "spec": spec, "status": json_names(&go["Status"])})
}

fn json_names(go: &Value) -> Value {
    match go {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match name.as_str() {
                "OpenAPIV3Schema" => ("openAPIV3Schema".to_owned(), document(value)),
                "CABundle" => ("caBundle".to_owned(), bundle(value)),
                "JSONPath" => ("jsonPath".to_owned(), value.clone()),
                "URL" => ("url".to_owned(), value.clone()),
                other => (other[..1].to_lowercase() + &other[1..], json_names(value)),
            })
            .collect(),
        Value::Array(items) => items.iter().map(json_names).collect(),
        scalar => scalar.clone(),
    }
}

/// Rows have bundles in base64 or as they are.
fn bundle(value: &Value) -> Value {
    let text = value.as_str().unwrap();
    if text.starts_with("-----") { STANDARD.encode(text).into() } else { value.clone() }
}

/// Some rows keep names of Go's fields inside schemas.
fn document(go: &Value) -> Value {
    match go {
        Value::Object(fields) => match fields.get("JSONSchemas") {
            Some(several) => document(several),
            None => fields.iter().map(|(name, value)| (keyword(name), document(value))).collect(),
        },
        Value::Array(items) => items.iter().map(document).collect(),
        scalar => scalar.clone(),
    }
}

fn keyword(go: &str) -> String {
    match go {
        "XMapType" => "x-kubernetes-map-type".to_owned(),
        "XListType" => "x-kubernetes-list-type".to_owned(),
        "XListMapKeys" => "x-kubernetes-list-map-keys".to_owned(),
        "Type" => "type".to_owned(),
        other => other.to_owned(),
    }
}

/// Field and reason of every error, and every text that must occur.
fn compare(errors: &[Error], case: &Value) -> Result<(), String> {
    let mut got: Vec<(String, &str)> = errors.iter().map(|e| (e.field.clone(), e.kind.reason())).collect();
    let wanted = case["wantErr"].as_array().map_or(&[][..], Vec::as_slice);
    let mut want: Vec<(String, &str)> =
        wanted.iter().map(|w| (path(&w["path"]), w["errorType"].as_str().unwrap())).collect();
    got.sort();
    want.sort();
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    if got != want {
        return Err(format!("got  {shown:#?}\n    want {want:?}"));
    }
    let texts = wanted.iter().filter_map(|w| w["containsString"].as_str());
    let missing: Vec<&str> = texts.filter(|text| !shown.iter().any(|s| s.contains(text))).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?} not in {shown:?}")) }
}

fn path(path: &Value) -> String {
    let step = path["name"]
        .as_str()
        .map_or_else(|| format!("[{}]", path["index"].as_str().unwrap_or_default()), str::to_owned);
    match path.get("parent").filter(|p| !p.is_null()) {
        Some(parent) if step.starts_with('[') => format!("{}{step}", self::path(parent)),
        Some(parent) => format!("{}.{step}", self::path(parent)),
        None => step,
    }
}

fn status(definition: &Value) -> Status<'_> {
    let status = &definition["status"];
    Status { accepted_names: &status["acceptedNames"], stored_versions: status["storedVersions"].clone() }
}

fn created_as_given(new: &Value) -> Vec<Error> {
    let spec = Spec::read(&new["spec"]);
    let rule = names::name_is_dns_subdomain;
    let mut errors = meta::validate_object_meta(&new["metadata"], false, rule, &Path::new("metadata"));
    errors.extend(created(new, &spec, &status(new)));
    errors
}

#[test]
fn new_definitions() {
    for table in ["TestValidateCustomResourceDefinition", "TestSelectableFields"] {
        run(&format!("{FOLDER}/{table}.tests.json"), |case| {
            let mut new = definition(&case["inputs"]["resource"]);
            let conversion = &mut new["spec"]["conversion"];
            // The tests default what v1 does not.
            if conversion["strategy"] == "Webhook"
                && conversion["webhook"]["conversionReviewVersions"].is_null()
            {
                conversion["webhook"]["conversionReviewVersions"] = json!(["v1beta1"]);
            }
            compare(&created_as_given(&new), case)
        });
    }
}

#[test]
fn updated_definitions() {
    run(&format!("{FOLDER}/TestValidateCustomResourceDefinitionUpdate.tests.json"), |case| {
        let new = definition(&case["inputs"]["resource"]);
        let old = definition(&case["inputs"]["old"]);
        let (spec, before) = (Spec::read(&new["spec"]), Spec::read(&old["spec"]));
        let metadata = Path::new("metadata");
        let mut errors = meta::validate_object_meta_update(&new["metadata"], &old["metadata"], &metadata);
        errors.extend(updated(&new, &spec, &status(&new), &old, &before));
        compare(&errors, case)
    });
}

#[test]
fn schemas() {
    run(&format!("{FOLDER}/TestValidateCustomResourceDefinitionValidation.tests.json"), |case| {
        let validation = json_names(&case["inputs"]["input"]);
        let says = |name: &str| case["inputs"]["opts"][name] == true;
        let required = Requirements {
            structural: says("requireStructuralSchema"),
            known_types: says("requireValidPropertyType"),
            pruned_defaults: says("requirePrunedDefaults"),
            atomic_set_items: says("requireAtomicSetType"),
            keyed_items: says("requireMapListKeysMapSetValidation"),
            no_defaults: (!says("allowDefaults")).then(String::new),
        };
        let status = case["inputs"]["statusEnabled"] == true;
        let at = Path::new("spec").child("validation");
        compare(&schema::check(Some(&validation), status, &required, Unchanged(false), &at), case)
    });
}

#[test]
fn rules_of_defaults() {
    run("defaulting/validation/TestDefaultValidationWithOptionalOldSelf.tests.json", |case| {
        let validation = json_names(&case["inputs"]["input"]);
        let required = Requirements::default();
        let errors = schema::check(Some(&validation), false, &required, Unchanged(false), &Path::root());
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let wanted: Vec<&str> =
            case["wantErr"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let all = wanted.iter().all(|w| shown.iter().any(|s| s.contains(w)));
        if all && shown.len() == wanted.len() {
            Ok(())
        } else {
            Err(format!("got {shown:?}, want {wanted:?}"))
        }
    });
}

#[test]
fn deprecation_warnings() {
    run(&format!("{FOLDER}/Test_validateDeprecationWarning.tests.json"), |case| {
        let inputs = &case["inputs"];
        let got = versions::deprecation(inputs["deprecated"] == true, inputs["warning"].as_str());
        let want = case["expected"].get("want").cloned().unwrap_or(json!([]));
        if json!(got) == want { Ok(()) } else { Err(format!("got {got:?}, want {want}")) }
    });
}

#[test]
fn stored_versions() {
    run(&format!("{FOLDER}/TestValidateCustomResourceDefinitionStoredVersions.tests.json"), |case| {
        let inputs = &case["inputs"];
        let list = inputs["versions"].as_array().unwrap().iter();
        let list: Vec<Value> =
            list.map(|name| json!({"name": name, "storage": *name == inputs["storageVersion"]})).collect();
        let spec = json!({"versions": list});
        let path = Path::new("status").child("storedVersions");
        compare(&versions::stored(&inputs["storedVersions"], &Spec::read(&spec), &path), case)
    });
}

#[test]
fn total_costs() {
    run(&format!("{FOLDER}/TestPerCRDEstimatedCost.tests.json"), |case| {
        let mut total = rules::Total::default();
        for cost in case["inputs"]["costs"].as_array().unwrap() {
            total.observe(&Path::root(), cost.as_u64().unwrap());
        }
        let expensive: Vec<u64> = total.most_expensive.iter().map(|(_, cost)| *cost).collect();
        let expected = &case["expected"];
        let same = json!(expensive) == expected["expectedExpensive"]
            && total.cost == expected["expectedTotal"].as_u64().unwrap_or_default();
        if same { Ok(()) } else { Err(format!("got {} of {expensive:?}, want {expected}", total.cost)) }
    });
}
