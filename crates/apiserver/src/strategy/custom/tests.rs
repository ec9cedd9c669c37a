//! Updates and columns of custom kinds: rows of our own, and upstream's tables where they are at hand.

use super::{Column, Custom, PrinterColumn, Strategy, Subresource, cell_value};
use serde_json::{Value, json};
use std::sync::Arc;
use transom_object::jsonpath::Template;
use transom_schema::rules::Rules;
use transom_schema::{Schema, own};

fn table(path: &str) -> Vec<Value> {
    transom_testkit::tables::cases(&format!("kubernetes/{path}"))
}

fn custom(has_status: bool) -> Custom {
    Custom {
        api_version: "example.org/v1".into(),
        group: "example.org".into(),
        storage_version: "v1".into(),
        schema: Arc::new(Schema::any()),
        schemas: Arc::default(),
        rules: Rules::default(),
        has_status,
        columns: Vec::new(),
        selectable: Vec::new(),
        scale: None,
        reset_main: None,
        reset_status: Arc::new(own::Set::default()),
    }
}

fn updated(kind: &Custom, case: &Value, subresource: Subresource) -> Value {
    let mut new = case["inputs"]["obj"].clone();
    kind.prepare_update(&mut new, &case["inputs"]["old"], subresource);
    new
}

#[test]
fn updates_of_the_status_take_the_status_only() {
    let own = json!({
        "inputs": {"obj": {"metadata": {"labels": {"a": "b"}, "managedFields": []}, "spec": 2, "status": 2},
                   "old": {"metadata": {"name": "x"}, "spec": 1, "status": 1}},
        "expected": {"expected": {"metadata": {"name": "x", "managedFields": []}, "spec": 1, "status": 2}},
    });
    let upstream = table("customresource-strategy/status_strategy/TestPrepareForUpdate.tcs.json");
    for case in std::iter::once(own).chain(upstream) {
        assert_eq!(
            updated(&custom(true), &case, Subresource::Status),
            case["expected"]["expected"],
            "{case}"
        );
    }
}

#[test]
fn what_changes_outside_of_metadata_is_a_generation() {
    let own = json!({
        "inputs": {"obj": {"metadata": {"generation": 4}, "spec": 2, "status": 2}, "statusEnabled": true,
                   "old": {"metadata": {"generation": 4}, "spec": 1, "status": 1}},
        "expected": {"expected": {"metadata": {"generation": 5}, "spec": 2, "status": 1}},
    });
    let upstream = table("customresource-strategy/strategy/TestStrategyPrepareForUpdate.tcs.json");
    for case in std::iter::once(own).chain(upstream) {
        let kind = custom(case["inputs"]["statusEnabled"] == true);
        assert_eq!(updated(&kind, &case, Subresource::Main), case["expected"]["expected"], "{case}");
    }
}

#[test]
fn selectable_fields_have_values() {
    for case in table("customresource-strategy/strategy/TestSelectableFields.tcs.json") {
        for field in case["inputs"]["selectableFields"].as_array().into_iter().flatten() {
            let label = field["jsonPath"].as_str().unwrap_or_default().trim_start_matches('.');
            let got = custom(false).selectable_value(&case["inputs"]["obj"], label);
            assert_eq!(got, case["expected"]["expectFields"][label], "{case}");
        }
    }
}

#[test]
fn cells_show_values_by_the_type_of_the_column() {
    let rows = [
        ("integer", json!(3.9), json!(3)),
        ("integer", json!("3"), json!(null)),
        ("date", json!(""), json!("<unknown>")),
        ("date", json!("soon"), json!("<invalid>")),
        ("date", json!("1970-01-01T00:00:10Z"), json!("50s")),
        ("boolean", json!(true), json!(true)),
    ];
    for (ty, value, wanted) in rows {
        assert_eq!(cell_value(ty, &value, 60), wanted, "{ty} {value}");
    }
    for case in table("table-printer/tableconvertor/Test_cellForJSONValue.tests.json") {
        let (ty, value) =
            (case["inputs"]["headerType"].as_str().unwrap_or_default(), &case["inputs"]["value"]);
        // Columns of strings do not come to this function upstream: they print what they find.
        if ty == "string" && !value.is_string() {
            continue;
        }
        // The recorded time stands for one in the future.
        assert_eq!(cell_value(ty, value, 0), case["expected"]["want"], "{case}");
    }
}

#[test]
fn upstream_tables_of_objects() {
    for case in table("table-printer/tableconvertor/Test_convertor_ConvertToTable.tests.json") {
        let fields = &case["inputs"]["fields"];
        let headers = fields["headers"].as_array().into_iter().flatten().skip(1);
        let mut kind = custom(false);
        let parsers = fields["additionalColumns"].as_array().into_iter().flatten();
        kind.columns = headers
            .zip(parsers)
            .map(|(header, column)| PrinterColumn {
                column: Column {
                    name: header["name"].as_str().unwrap_or_default().into(),
                    ty: header["type"].as_str().unwrap_or_default().into(),
                    format: String::new(),
                    description: String::new(),
                    priority: 0,
                },
                path: Template::parse(column["parser"]["input"].as_str().unwrap_or_default()).ok(),
            })
            .collect();
        let object = &case["inputs"]["obj"];
        let objects = object["items"].as_array().cloned().unwrap_or_else(|| vec![object.clone()]);
        let rows = case["expected"]["rows"].as_array().expect("rows");
        assert_eq!(objects.len(), rows.len(), "{case}");
        for (object, row) in objects.iter().zip(rows) {
            assert_eq!(Value::from(kind.cells(object, 0)), row["cells"], "{case}");
        }
    }
}

#[test]
fn finalizers_that_are_new_are_advised_about() {
    let kind = custom(true);
    let object = |finalizers: &[&str]| json!({"metadata": {"finalizers": finalizers}});
    let old = object(&["plain"]);
    let new = object(&["plain", "nodomain", "no.path", "example.org/good", "orphan"]);
    let told = kind.warnings(&new, Some(&old));
    assert_eq!(
        told,
        [
            r#"metadata.finalizers: "no.path": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers"#,
            r#"metadata.finalizers: "nodomain": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"#,
        ]
    );
    assert_eq!(kind.warnings(&object(&["plain"]), None).len(), 1);
}
