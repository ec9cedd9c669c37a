//! Tests of how objects pass into and out of the control of a revision.

use super::*;

fn owner(kind: &str, name: &str) -> Owner {
    let text = |text: &str| text.to_owned();
    Owner {
        api_version: text("pkg.crossplane.io/v1"),
        kind: text(kind),
        name: text(name),
        uid: format!("u-{name}"),
    }
}

fn owners() -> Owners {
    Owners {
        revision: owner("ConfigurationRevision", "c-2"),
        package: owner("Configuration", "c"),
        siblings: vec!["u-c-1".to_owned()],
    }
}

fn composition(spec: &Value) -> Value {
    json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "x"},
           "spec": spec})
}

fn existing(references: &[Value]) -> Value {
    let mut object = composition(&json!({"mode": "Pipeline", "defaulted": 1}));
    object["metadata"]["uid"] = "u-x".into();
    object["metadata"]["resourceVersion"] = "7".into();
    object["metadata"]["ownerReferences"] = Value::Array(references.to_vec());
    object
}

fn flags(object: &Value) -> Vec<(String, Option<bool>)> {
    meta::owner_references(object).into_iter().map(|r| (r.uid, r.controller)).collect()
}

fn flag(uid: &str, controller: impl Into<Option<bool>>) -> (String, Option<bool>) {
    (uid.to_owned(), controller.into())
}

#[test]
fn a_created_object_has_two_owners() {
    let mut desired = composition(&json!({}));
    desired["metadata"]["ownerReferences"] = json!([{"uid": "author"}]);
    let object = created(&desired, &owners());
    assert_eq!(flags(&object), [flag("u-c-2", true), flag("u-c", false)]);
    let references = meta::owner_references(&object);
    assert!(references.iter().all(|r| r.block_owner_deletion == Some(true)));
    assert_eq!(references[0].kind, "ConfigurationRevision");
}

#[test]
fn control_passes_from_the_old_revision_in_one_write() {
    let old = owner("ConfigurationRevision", "c-1");
    let current = existing(&[old.as_controller(), owner("Configuration", "c").as_package()]);
    let object = updated(&current, &composition(&json!({"mode": "Pipeline"})), &owners()).unwrap().unwrap();
    assert_eq!(flags(&object), [flag("u-c-1", false), flag("u-c", false), flag("u-c-2", true)]);
    assert_eq!(meta::resource_version(&object), "7");
    // The second time there is nothing to do, although the API server filled in a default.
    let mut current = object;
    current["spec"]["defaulted"] = 1.into();
    assert_eq!(updated(&current, &composition(&json!({"mode": "Pipeline"})), &owners()), Ok(None));
    assert!(updated(&current, &composition(&json!({"mode": "Resources"})), &owners()).unwrap().is_some());
}

#[test]
fn what_others_control_is_left_alone() {
    let stranger = owner("ConfigurationRevision", "other-1");
    let current = existing(&[stranger.as_controller()]);
    let error = updated(&current, &composition(&json!({})), &owners()).unwrap_err().to_string();
    assert_eq!(error, "x is already controlled by ConfigurationRevision other-1 (UID u-other-1)");
    let plain = existing(&[stranger.as_plain()]);
    let object = updated(&plain, &composition(&json!({})), &owners()).unwrap().unwrap();
    assert_eq!(flags(&object), [flag("u-other-1", None), flag("u-c", false), flag("u-c-2", true)]);
    // A package that an older version made the controller.
    let package = existing(&[owner("Configuration", "c").as_controller()]);
    let object = updated(&package, &composition(&json!({})), &owners()).unwrap().unwrap();
    assert_eq!(flags(&object), [flag("u-c", false), flag("u-c-2", true)]);
}

#[test]
fn metadata_of_others_stays() {
    let mut current = existing(&[]);
    current["metadata"]["labels"] = json!({"theirs": "1", "both": "old"});
    current["metadata"]["finalizers"] = json!(["f"]);
    current["metadata"]["managedFields"] = json!([{}]);
    current["status"] = json!({"s": 1});
    let mut desired = composition(&json!({}));
    let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    add_common(&mut desired, &map("both", "new"), &map("note", "n"));
    let object = updated(&current, &desired, &owners()).unwrap().unwrap();
    assert_eq!(object["metadata"]["labels"], json!({"theirs": "1", "both": "new"}));
    assert_eq!(object["metadata"]["annotations"], json!({"note": "n"}));
    assert_eq!(object["metadata"]["finalizers"], json!(["f"]));
    assert_eq!(object["status"], json!({"s": 1}));
    assert!(object["metadata"].get("managedFields").is_none());
}

#[test]
fn labels_of_an_earlier_version_go_with_it() {
    let mut current = created(&existing(&[]), &owners());
    current["metadata"]["labels"] =
        json!({"old": "1", "theirs": "1", "shared": "1", "crossplane.io/in-use": "true", "unknown": "1"});
    current["metadata"]["annotations"] = json!({"old": "1"});
    let fields = |labels: Value| json!({"f:metadata": {"f:labels": labels, "f:annotations": {"f:old": {}}}});
    let (old, shared) = (
        json!({"f:old": {}, "f:shared": {}, "f:crossplane.io/in-use": {}}),
        json!({"f:theirs": {}, "f:shared": {}}),
    );
    current["metadata"]["managedFields"] = json!([
        {"manager": "crossplane", "operation": "Update", "fieldsV1": fields(old)},
        {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": shared}}},
    ]);
    let desired = composition(&json!({"mode": "Pipeline"}));
    let object = updated(&current, &desired, &owners()).unwrap().unwrap();
    let kept = json!({"theirs": "1", "shared": "1", "crossplane.io/in-use": "true", "unknown": "1"});
    assert_eq!(object["metadata"]["labels"], kept);
    assert!(object["metadata"].get("annotations").is_none());
    let mut current = object;
    current["metadata"]["managedFields"] = json!([]);
    assert_eq!(updated(&current, &desired, &owners()), Ok(None), "once is enough");
}

#[test]
fn a_definition_stays_active() {
    let definition = |state: &str| json!({"kind": "ManagedResourceDefinition", "metadata": {"name": "m"}, "spec": {"state": state}});
    let state = |was: &str, wanted: &str| {
        let object = updated(&definition(was), &definition(wanted), &owners()).unwrap().unwrap();
        object["spec"]["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state("Active", "Inactive"), "Active");
    assert_eq!(state("Inactive", "Inactive"), "Inactive");
    assert_eq!(state("Inactive", "Active"), "Active");
}

#[test]
fn an_inactive_revision_owns_and_releases() {
    let current = existing(&[owner("ConfigurationRevision", "c-3").as_controller()]);
    let object = owned(&current, &owners()).unwrap();
    assert_eq!(flags(&object), [flag("u-c-3", true), flag("u-c-2", None), flag("u-c", false)]);
    assert_eq!(owned(&object, &owners()), None);
    let controlled = created(&current, &owners());
    let object = released(&controlled, &owners()).unwrap();
    assert_eq!(flags(&object), [flag("u-c-2", false), flag("u-c", false)]);
    assert_eq!(released(&object, &owners()), None);
    assert_eq!(flags(&released(&existing(&[]), &owners()).unwrap()), [flag("u-c-2", None)]);
}

#[test]
fn references_are_listed_in_descending_order() {
    let object =
        |kind: &str, name: &str| json!({"apiVersion": "g/v1", "kind": kind, "metadata": {"name": name}});
    let objects = [object("A", "x"), object("B", "a"), object("B", "b")];
    let listed: Vec<String> =
        object_references(&objects).into_iter().map(|r| r.kind + "/" + &r.name).collect();
    assert_eq!(listed, ["B/b", "B/a", "A/x"]);
    let written = serde_json::to_value(&object_references(&objects[..1])[0]).unwrap();
    assert_eq!(written, json!({"apiVersion": "g/v1", "kind": "A", "name": "x"}));
}
