//! Coercion and validation of object metadata.

use super::Plan::{self, Run, Skip};
use super::{Case, Outcome, is, run, same};
use serde_json::{Map, Value, json};
use transom_object::field::{Error, Path};
use transom_object::labels::{self, Labels};
use transom_object::meta::{self, CoerceOptions, options};
use transom_object::names;

fn contains(errors: &[Error], want: &str) -> Outcome {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let good = if want.is_empty() { texts.is_empty() } else { texts.iter().any(|t| t.contains(want)) };
    is(good, (texts, want))
}

fn texts(errors: &[Error]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|v| v.as_str().unwrap().to_owned()).collect()
}

fn named(name: &str, _prefix: bool) -> Vec<String> {
    if name == "invalid" { vec!["name-gen".into(), "wrong value".into()].split_off(1) } else { Vec::new() }
}

fn custom_name(c: &Case<'_>) -> Outcome {
    let errors = meta::validate_object_meta(c.input("input"), false, named, &Path::new("field"));
    if let Some(count) = c.input("nErrs").as_u64() {
        same(errors.len() as u64, count)?;
    }
    contains(&errors, c.text("errStr"))
}

/// A null where Go had a pointer to the zero time stands for some time.
fn with_time(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    if metadata.get("deletionTimestamp").is_some_and(Value::is_null) {
        metadata["deletionTimestamp"] = json!("2024-01-01T00:00:00Z");
    }
    metadata
}

fn update(c: &Case<'_>) -> Vec<Error> {
    meta::validate_object_meta_update(
        &with_time(c.input("New")),
        &with_time(c.input("Old")),
        &Path::new("field"),
    )
}

fn object_meta() -> Vec<(&'static str, Plan)> {
    vec![
        ("TestValidateObjectMetaCustomName", Run(custom_name)),
        (
            "TestValidateObjectMetaWithOptsName",
            Run(|c| {
                let errors = meta::validate_object_meta(c.input("input"), false, named, &Path::new("field"));
                contains(&errors, c.text("errStr"))
            }),
        ),
        (
            "TestValidateObjectMetaOwnerReferences",
            Run(|c| {
                let list = c.input("ownerReferences").as_array().unwrap();
                let errors = meta::validate_owner_references(list, &Path::new("field"));
                contains(&errors, c.want_err().as_str().unwrap_or_default())
            }),
        ),
        (
            "TestValidateAnnotations.success",
            Run(|c| contains(&meta::validate_annotations(&c.row["inputs"], &Path::new("field")), "")),
        ),
        (
            "TestValidateAnnotations.nameError",
            Run(|c| {
                let errors = meta::validate_annotations(c.input("annotations"), &Path::new("field"));
                same(errors.len(), 1)?;
                contains(&errors, c.expected("expect").as_str().unwrap())
            }),
        ),
        (
            "TestValidateAnnotations.totalSize",
            Run(|c| same(meta::validate_annotations(&c.row["inputs"], &Path::new("field")).len(), 1)),
        ),
        (
            "TestValidateFinalizersUpdate",
            Run(|c| contains(&update(c), c.want_err().as_str().unwrap_or_default())),
        ),
        (
            "TestValidateFinalizersPreventConflictingFinalizers",
            Run(|c| {
                let errors = meta::validate_object_meta(
                    c.input("ObjectMeta"),
                    false,
                    names::name_is_dns_subdomain,
                    &Path::new("field"),
                );
                contains(&errors, c.want_err().as_str().unwrap_or_default())
            }),
        ),
        ("PreventsDeletionFieldMutation", Run(|c| same(texts(&update(c)), strings(c.want_err())))),
        ("TestObjectMetaGenerationUpdate", Run(|c| same(texts(&update(c)), strings(c.want_err())))),
        (
            "TestMaskTrailingDash",
            Run(|c| {
                let got = names::mask_trailing_dash(c.text("beforeMasking"));
                same(got.as_str(), c.expected("expectedAfterMasking").as_str().unwrap_or_default())
            }),
        ),
    ]
}

fn patch_errors(c: &Case<'_>) -> Vec<Error> {
    let opts = c.input("opts");
    let apply = c.text("patchType").contains("apply-patch");
    let manager = opts.get("fieldManager").and_then(Value::as_str).unwrap_or_default();
    options::validate_patch_options(apply, opts.get("force").and_then(Value::as_bool), manager, &[], "")
}

fn dry_run(c: &Case<'_>) -> Vec<Error> {
    let values = strings(c.value());
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    options::validate_dry_run(&values, &Path::new("dryRun"))
}

fn managed_fields(c: &Case<'_>) -> bool {
    meta::validate_managed_fields(&[c.row["inputs"].clone()], &Path::new("field")).is_empty()
}

fn request_options() -> Vec<(&'static str, Plan)> {
    vec![
        ("TestInvalidPatchOptions", Run(|c| is(!patch_errors(c).is_empty(), c.row))),
        ("TestValidPatchOptions", Run(|c| contains(&patch_errors(c), ""))),
        ("TestValidDryRun", Run(|c| contains(&dry_run(c), ""))),
        ("TestInvalidDryRun", Run(|c| is(!dry_run(c).is_empty(), c.row))),
        (
            "TestValidateFieldManagerValid",
            Run(|c| {
                contains(&options::validate_field_manager(c.value().as_str().unwrap(), &Path::new("f")), "")
            }),
        ),
        (
            "TestValidateFieldManagerInvalid",
            Run(|c| {
                is(
                    !options::validate_field_manager(c.value().as_str().unwrap(), &Path::new("f")).is_empty(),
                    c.row,
                )
            }),
        ),
        ("TestValidateMangedFieldsValid", Run(|c| is(managed_fields(c), c.row))),
        ("TestValidateManagedFieldsInvalid", Run(|c| is(!managed_fields(c), c.row))),
        (
            "TestValidateDeleteOptionsWithIgnoreStoreReadError",
            Run(|c| {
                let got = options::validate_delete_options(c.input("opts"));
                let want: Vec<String> = c
                    .want_err()
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|e| e["$error"].as_str().unwrap().to_owned())
                    .collect();
                same(texts(&got), want)
            }),
        ),
        (
            "TestValidateLabels.success",
            Run(|c| contains(&meta::validate_labels(&c.row["inputs"], &Path::new("field")), "")),
        ),
        (
            "TestValidateLabels.label",
            Run(|c| {
                let errors = meta::validate_labels(c.input("labels"), &Path::new("field"));
                same(errors.len(), 1)?;
                contains(&errors, c.expected("expect").as_str().unwrap())
            }),
        ),
        (
            "TestLabelSelectorMatchExpression",
            Run(|c| {
                let got = labels::validate_label_selector(c.input("labelSelector"), &Path::new("field"));
                let count = c.input("wantErrorNumber").as_u64().unwrap_or_default();
                same(got.len() as u64, count)
            }),
        ),
    ]
}

#[test]
fn validation() {
    let plan: Vec<_> = object_meta().into_iter().chain(request_options()).collect();
    run("objectmeta-validation", &plan);
}

fn coerce(c: &Case<'_>) -> Outcome {
    let options = CoerceOptions { drop_malformed: c.input("dropMalformedFields") == true };
    match (meta::coerce_metadata(&c.input("obj")["metadata"], options), c.want_err().as_str()) {
        (Err(got), want) => same(Some(got.to_string().as_str()), want),
        (Ok(_), Some(want)) => Err(format!("no error, want {want}")),
        (Ok(got), None) => {
            same(&Value::Object(got.metadata), c.expected("expectedObject"))?;
            if c.input("returnUnknownFieldPaths") == true {
                let got: Vec<String> = got.unknown.iter().map(|p| format!("metadata.{p}")).collect();
                same(got, strings(c.expected("expectedUnknownPaths")))?;
            }
            Ok(())
        }
    }
}

/// `errorType` and path of each expected error.
fn kinds(errors: &Value) -> Vec<(String, String)> {
    fn path(v: &Value) -> Path {
        let parent = v.get("parent").map_or_else(Path::root, path);
        match v.get("name").and_then(Value::as_str) {
            Some(name) => parent.child(name),
            None => parent.key(v["index"].as_str().unwrap()),
        }
    }
    let one = |e: &Value| (e["errorType"].as_str().unwrap().to_owned(), path(&e["path"]).to_string());
    let mut all: Vec<_> = errors.as_array().into_iter().flatten().map(one).collect();
    all.sort();
    all
}

#[test]
fn embedded() {
    let plan = [
        ("TestGetObjectMetaWithOptions", Run(coerce)),
        (
            "TestValidateEmbeddedResource",
            Run(|c: &Case<'_>| {
                let empty = Map::new();
                let object = c.input("object").as_object().unwrap_or(&empty);
                let got = meta::validate_embedded_resource(object, &Path::root());
                let mut got: Vec<_> =
                    got.iter().map(|e| (e.kind.reason().to_owned(), e.field.clone())).collect();
                got.sort();
                same(got, kinds(c.want_err()))
            }),
        ),
        ("TestValidate.tests", Skip("walks a structural schema: runs where the schema is")),
        ("TestCoerce", Skip("walks a structural schema: runs where the schema is")),
    ];
    run("embedded-objectmeta", &plan);
}

fn labels_of(v: &Value) -> Labels {
    v.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned())).collect()
}

fn add_label(c: &Case<'_>) -> Outcome {
    let mut object = json!({"metadata": {"labels": c.input("labels")}});
    if !c.text("labelKey").is_empty() {
        meta::set_label(&mut object, c.text("labelKey"), c.text("labelValue"));
    }
    same(meta::labels(&object), labels_of(&c.row["expected"]))
}

#[test]
fn helpers() {
    let plan = [
        (
            "TestLabelSelectorAsMap",
            Run(|c: &Case<'_>| {
                match (labels::label_selector_as_labels(c.input("in")), c.text("errString").is_empty()) {
                    (Ok(got), true) => same(got, labels_of(c.expected("out"))),
                    (got, expect_ok) => same(got.is_ok(), expect_ok),
                }
            }),
        ),
        (
            "TestSetMetaDataLabel",
            Run(|c| {
                let mut object = json!({"metadata": c.input("obj")});
                meta::set_label(&mut object, c.text("label"), c.text("value"));
                same(meta::labels(&object), labels_of(&c.row["expected"]))
            }),
        ),
        ("FieldsV1", Skip("FieldsV1 is kept as JSON; CBOR is not served")),
    ];
    run("meta-v1/helpers", &plan);
    run("meta-v1/labels", &[("", Run(add_label))]);
    let plan = [
        (
            "TestConvertSliceStringToPointerTime",
            Run(|c: &Case<'_>| {
                let first = c.input("Input").get(0).and_then(Value::as_str);
                let got = first.map(transom_object::time::parse).transpose().map_err(|e| e.to_string())?;
                let got = got.map(transom_object::time::format);
                same(got.as_deref(), c.expected("Output").as_str())
            }),
        ),
        ("TestConvertSliceStringToDeletionPropagation", Skip("takes the first of a query's values")),
        (
            "TestMapToLabelSelectorRoundTrip",
            Run(|c| {
                let labels = labels_of(c.row.get("inputs").unwrap_or(&Value::Null));
                let selector = json!({"matchLabels": labels});
                same(labels::label_selector_as_labels(&selector).map_err(|e| e.to_string())?, labels)
            }),
        ),
    ];
    run("meta-v1/conversion", &plan);
}
