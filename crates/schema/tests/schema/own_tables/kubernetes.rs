//! Tables of Kubernetes' managedfields package.

use super::literal::Outcome;
use super::smd_schema::Types;
use super::tables::{self, Tables};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use transom_schema::Schema;
use transom_schema::own::managers::{self, cap_update_managers};
use transom_schema::own::typed::{self, Duplicates};
use transom_schema::own::{
    self, ApplyError, Conflict, Context, Element, ManagerId, Managers, Operation, Set, Type, scale,
};

pub(crate) fn run_all(folder: &Path) -> Vec<(String, Outcome)> {
    let mut results = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(table) = tables::read(&path) else { continue };
            let file = table["table"].as_str().unwrap_or_default().to_owned();
            for case in table["cases"].as_array().into_iter().flatten() {
                let name = format!("{file} {}", case["name"].as_str().unwrap_or_default());
                results.push((name, run(&file, case)));
            }
        }
    }
    results
}

fn run(table: &str, case: &Value) -> Outcome {
    let inputs = &case["inputs"];
    let expected = &case["expected"]["expected"];
    match table {
        "TestExtractInto" => extract(inputs, &case["expected"]["expectedOut"]),
        "TestApplyDoesNotChangeManagedFields" => round_trip(&json!([inputs])),
        "TestApplyNewObject" => apply_new(inputs),
        "TestTransformManagedFieldsToSubresource" => {
            let got = scale::to_scale(Some(&inputs["input"]), &replica_paths(&Value::Null)?);
            let got = got.map_err(|e| e.to_string())?;
            same(&got.unwrap_or_default(), expected)
        }
        "TestTransformingManagedFieldsToParent" | "TestTransformingManagedFieldsToParentMultiVersion" => {
            let version = match (&inputs["groupVersion"]["Group"], &inputs["groupVersion"]["Version"]) {
                (Value::String(group), Value::String(version)) => format!("{group}/{version}"),
                _ => "apps/v1".to_owned(),
            };
            let paths = replica_paths(&inputs["mappings"])?;
            let got =
                scale::to_parent(Some(&inputs["parent"]), Some(&inputs["subresource"]), &version, &paths);
            same(&got.map_err(|e| e.to_string())?.unwrap_or_default(), expected)
        }
        "TestCapUpdateManagers" => {
            let mut owners = decoded(&inputs["input"])?;
            cap_update_managers(&mut owners, 3);
            same(&managers::encode(&owners).unwrap_or_default(), expected)
        }
        "TestNewConflictError" => conflict(inputs, expected),
        "TestFieldsRoundTrip" => {
            let set = Set::from_fields(inputs).map_err(|e| e.to_string())?;
            same(&set.to_value(), inputs)
        }
        "TestFieldsToSetError" => match Set::from_fields(&inputs["fields"]) {
            Ok(set) => Err(format!("{set} should fail")),
            Err(_) => Ok(()),
        },
        "TestLargeLastApplied" => large_annotation(inputs),
        "TestRoundTripManagedFields" => {
            let text = case["value"].as_str().ok_or("no text")?;
            round_trip(&transom_object::yaml::read(text).map_err(|e| e.to_string())?)
        }
        "TestBuildManagerIdentifier" => identifier(inputs, expected),
        "TestSortEncodedManagedFields" => sort(&inputs["managedFields"], expected),
        "TestPathElementRoundTrip" => {
            let text = case["value"].as_str().ok_or("no text")?;
            let element = Element::parse(text).map_err(|e| e.to_string())?.ok_or("unknown kind")?;
            same(&element.to_key().into(), &text.into())
        }
        "TestNewPathElementError" => match Element::parse(case["value"].as_str().ok_or("no text")?) {
            Ok(element) => Err(format!("{element:?} should fail")),
            Err(_) => Ok(()),
        },
        "TestTypeConverter" => fits_its_kind(inputs),
        other => Err(format!("no runner for {other}")),
    }
}

fn same(got: &Value, want: &Value) -> Outcome {
    if got == want { Ok(()) } else { Err(format!("got {got}, expected {want}")) }
}

fn round_trip(entries: &Value) -> Outcome {
    let owners = decoded(entries)?;
    same(&managers::encode(&owners).unwrap_or_default(), entries)
}

/// Go prints the names of its fields; the schema format has them in small letters.
fn lower(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(k, v)| match (k.as_str(), lower(v)) {
                ("Inlined", Value::Object(inner)) => inner.into_iter().collect(),
                (_, v) => vec![(format!("{}{}", k[..1].to_lowercase(), &k[1..]), v)],
            })
            .collect(),
        Value::Array(items) => items.iter().map(lower).collect(),
        other => other.clone(),
    }
}

fn decoded(entries: &Value) -> Outcome<Managers> {
    managers::decode(Some(entries)).map_err(|e| e.to_string())
}

fn extract(inputs: &Value, expected: &Value) -> Outcome {
    let types = Types::from_value(&lower(&inputs["objType"]["Schema"]))?;
    let root = inputs["objType"]["TypeRef"]["NamedType"].as_str().ok_or("no type")?;
    let schema = types.schema(root).ok_or("no root")?;
    let mut object = inputs["obj"].clone();
    object["metadata"]["managedFields"] = inputs["managedFields"].clone();
    let manager = inputs["fieldManager"].as_str().unwrap_or_default();
    let subresource = inputs["subresource"].as_str().unwrap_or_default();
    let got = own::extract(Type::object(&schema), &object, manager, subresource);
    let got = got.map_err(|e| e.to_string())?;
    same(&got.unwrap_or_else(|| json!({})), expected)
}

fn kubernetes_type(name: &str) -> Outcome<Arc<Schema>> {
    let tables = Tables::open().ok_or("no schemas")?;
    tables.kubernetes_types()?.schema(name).ok_or_else(|| format!("no type {name}"))
}

fn apply(
    schema: &Arc<Schema>,
    live: Option<&Value>,
    config: &Value,
    manager: &str,
) -> Result<Value, ApplyError> {
    let schema = |_: &str| Some(schema.clone());
    let convert = |_: &Value, _: &str| None;
    let reset_fields = |_: &str| None;
    let ctx = Context {
        api_version: config["apiVersion"].as_str().unwrap_or_default(),
        subresource: "",
        schema: &schema,
        convert: &convert,
        reset_fields: &reset_fields,
        blank: None,
        now: "2030-01-01T00:00:00Z",
    };
    own::apply(&ctx, live, config, manager, false)
}

/// A new object has what was applied, and applying it again changes nothing.
fn apply_new(inputs: &Value) -> Outcome {
    let kind = inputs["gvk"]["Kind"].as_str().ok_or("no kind")?;
    let schema = kubernetes_type(&format!("io.k8s.api.core.v1.{kind}"))?;
    let text = inputs["obj"].as_str().ok_or("no object")?;
    let config = transom_object::yaml::read(text).map_err(|e| e.to_string())?;
    let mut made = apply(&schema, None, &config, "test").map_err(|e| e.to_string())?;
    let again = apply(&schema, Some(&made), &config, "test").map_err(|e| e.to_string())?;
    same(&again, &made)?;
    let metadata = made["metadata"].as_object_mut().ok_or("no metadata")?;
    metadata.remove("managedFields").ok_or("the object has no managedFields")?;
    same(&made, &config)
}

fn replica_paths(mappings: &Value) -> Outcome<scale::ReplicaPaths> {
    let Some(mappings) = mappings.as_object() else {
        return Ok(BTreeMap::from([("apps/v1".to_owned(), Some(own::Path::of(&["spec", "replicas"])))]));
    };
    let path = |elements: &Value| {
        let names = elements.as_array()?.iter().map(|e| Some(Element::field(e["FieldName"].as_str()?)));
        Some(own::Path(names.collect::<Option<_>>()?))
    };
    Ok(mappings.iter().map(|(version, elements)| (version.clone(), path(elements))).collect())
}

/// Reads back the text of conflicts in the form that lists identifiers.
fn conflict(inputs: &Value, expected: &Value) -> Outcome {
    let mut conflicts = Vec::new();
    let mut manager = None;
    for line in inputs["conflict"]["$error"].as_str().ok_or("no text")?.lines() {
        if let Some(path) = line.strip_prefix("- ") {
            let (id, at): &(ManagerId, Option<String>) = manager.as_ref().ok_or("no manager")?;
            conflicts.push(Conflict { manager: id.clone(), at: at.clone(), path: dotted(path) });
            continue;
        }
        let rest = line.trim_start_matches("conflicts with ").trim_start_matches("conflict with ");
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let id = stream.next().ok_or("no identifier")?.map_err(|e| e.to_string())?;
        let path = rest[stream.byte_offset()..].trim_start_matches(':').trim();
        let parsed = parse_identifier(&id)?;
        if !path.is_empty() {
            conflicts.push(Conflict { manager: parsed.0.clone(), at: parsed.1.clone(), path: dotted(path) });
        }
        manager = Some(parsed);
    }
    same(&ApplyError::Conflicts(conflicts).to_string().into(), &expected["$error"])
}

fn parse_identifier(text: &str) -> Outcome<(ManagerId, Option<String>)> {
    let value: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let get = |name: &str| value[name].as_str().unwrap_or_default();
    let operation = if get("operation") == "Apply" { Operation::Apply } else { Operation::Update };
    let id = ManagerId::new(get("manager"), operation, get("apiVersion"), get("subresource"));
    Ok((id, value["time"].as_str().map(str::to_owned)))
}

fn dotted(path: &str) -> own::Path {
    own::Path::of(&path.split('.').skip(1).collect::<Vec<_>>())
}

fn large_annotation(inputs: &Value) -> Outcome {
    let schema = Arc::new(Schema::any());
    let made = apply(&schema, Some(&inputs["oldObject"]), &inputs["newObject"], "kubectl")
        .map_err(|e| e.to_string())?;
    let annotation = &made["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    if annotation.is_null() { Ok(()) } else { Err("the annotation is too large to be kept".to_owned()) }
}

fn identifier(inputs: &Value, expected: &Value) -> Outcome {
    let text = inputs["managedFieldsEntry"].as_str().ok_or("no text")?;
    let mut entry = transom_object::yaml::read(text).map_err(|e| e.to_string())?;
    entry["fieldsType"] = "FieldsV1".into();
    let owners = decoded(&json!([entry]))?;
    let id = owners.keys().next().ok_or("no manager")?;
    same(&id.identifier().into(), expected)
}

/// Entries of this table lack what every entry must have.
fn sort(entries: &Value, expected: &Value) -> Outcome {
    let complete = |entries: &Value| -> Value {
        let entries = entries.as_array().into_iter().flatten().map(|e| {
            let mut e = e.clone();
            e["fieldsType"] = "FieldsV1".into();
            e["fieldsV1"] = json!({});
            // Entries that differ in time only are one manager's; a subresource distinguishes them, which
            // counts last.
            let (subresource, time) =
                (e["subresource"].as_str().unwrap_or_default(), e["time"].as_str().unwrap_or_default());
            e["subresource"] = format!("{subresource} {time}").into();
            if e.get("apiVersion").is_none() {
                e["apiVersion"] = "0".into();
            }
            e
        });
        entries.collect()
    };
    let owners = decoded(&complete(entries))?;
    same(&managers::encode(&owners).unwrap_or_else(|| json!([])), &complete(expected))
}

fn fits_its_kind(inputs: &Value) -> Outcome {
    let text = inputs["yaml"].as_str().ok_or("no text")?;
    let object = transom_object::yaml::read(text).map_err(|e| e.to_string())?;
    let (group, version) =
        object["apiVersion"].as_str().and_then(|v| v.split_once('/')).ok_or("no version")?;
    let kind = object["kind"].as_str().ok_or("no kind")?;
    let schema = kubernetes_type(&format!("io.k8s.api.{group}.{version}.{kind}"))?;
    typed::validate(Type::object(&schema), &object, Duplicates::Forbid).map_err(|e| e.to_string())?;
    typed::to_field_set(Type::object(&schema), &object).map(drop).map_err(|e| e.to_string())
}
