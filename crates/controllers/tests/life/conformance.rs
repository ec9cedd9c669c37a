//! Crossplane's own test tables, as far as they concern controllers and no other crate replays them. They lie beside the
//! repository, if at all.

use serde_json::{Value, json};
use transom_compose::upgrade;
use transom_engine::Key;

fn cases(table: &str) -> Vec<Value> {
    transom_testkit::tables::cases(&format!("crossplane/core/{table}.json"))
}

/// Whether an object that this manager applied counts as applied by us.
fn is_ours(manager: &str, ours: impl Fn(&str) -> bool) -> bool {
    let entry = json!({"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsV1": {}});
    let object = json!({"metadata": {"uid": "u", "resourceVersion": "1", "managedFields": [entry]}});
    upgrade(&object, ours).is_none()
}

#[test]
fn an_object_wakes_itself() {
    for case in cases("internal_controller_apiextensions_definition/handlers/TestSelfMapFunc") {
        let wanted = &case["expected"]["want"][0];
        let text = |field: &str| wanted[field].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            Key::of(&case["inputs"]["obj"]),
            Key::new(text("Namespace"), text("Name")),
            "{}",
            case["name"]
        );
    }
    assert_eq!(Key::of(&json!({"metadata": {"name": "n", "namespace": "ns"}})), Key::new("ns", "n"));
}

#[test]
fn managers_are_known_by_name_or_by_prefix() {
    for (table, by_prefix) in [("TestPrefixMatch", true), ("TestExactMatch", false)] {
        for case in cases(&format!("internal_ssa/managed_fields/{table}")) {
            let input = |field: &str| case["inputs"][field].as_str().unwrap_or_default().to_owned();
            let (prefix, name) = (input("prefix"), input("name"));
            let got = is_ours(&input("manager"), |manager| {
                if by_prefix { manager.starts_with(&prefix) } else { manager == name }
            });
            let wanted = case["expected"]["matches"].as_bool().unwrap_or_default();
            assert_eq!(got, wanted, "{table}: {case:#}");
        }
    }
    assert!(is_ours("a/b", |manager| manager.starts_with("a/")) && !is_ours("b", |manager| manager == "a"));
}
