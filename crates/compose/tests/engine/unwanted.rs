//! Referenced objects that belong to no desired resource: which are deleted and which are kept.

use crate::script::{Case, Script, object, wanting};
use serde_json::{Value, json};
use transom_compose::{Decision, Reason, child_name};
use transom_function::{RunFunctionRequest, RunFunctionResponse};

const NAME: &str = "crossplane.io/composition-resource-name";

fn wanting_db(kind: &'static str) -> Script {
    Script::new().then(move |request| wanting(request, "db", kind))
}

fn wanting_nothing() -> Script {
    Script::new().then(|_: &RunFunctionRequest| RunFunctionResponse::default())
}

fn deleted(plan: &Decision) -> Vec<(&str, Reason)> {
    plan.delete
        .iter()
        .map(|d| (d.object["metadata"]["name"].as_str().unwrap_or_default(), d.reason))
        .collect()
}

/// Kind and name of every reference.
fn references(plan: &Decision) -> Vec<String> {
    let list = plan.references.object["spec"]["crossplane"]["resourceRefs"].as_array().expect("a list");
    let text = |r: &Value, field: &str| r[field].as_str().unwrap_or_default().to_owned();
    list.iter().map(|r| format!("{} {}", text(r, "kind"), text(r, "name"))).collect()
}

/// An object without a resource name, because it has no annotation or a faulty function gave an empty one.
fn nameless(kind: &str, name: &str, annotation: Option<&str>) -> Value {
    let mut object = object(kind, name, true);
    object["metadata"]["annotations"] = match annotation {
        Some(text) => json!({NAME: text}),
        None => json!({}),
    };
    object
}

#[tokio::test]
async fn another_kind_under_the_same_name_replaces_the_object() {
    let case = Case::steps(1).observe("db", object("Db", "db", true));
    let plan = case.run(&wanting_db("OtherDb")).await.unwrap();
    assert_eq!(deleted(&plan), [("db", Reason::Replaced)]);
    assert_eq!((&plan.apply[0].object["kind"], plan.apply[0].reason), (&json!("OtherDb"), Reason::Missing));
    assert_eq!(references(&plan), ["OtherDb db"]);
    let mut newer = object("Db", "db", true);
    newer["apiVersion"] = "example.org/v2".into();
    let plan = Case::steps(1).observe("db", newer).run(&wanting_db("Db")).await.unwrap();
    assert!(plan.delete.is_empty(), "another version is the same object");
    let free = Case::steps(1).observe("db", object("Db", "db", false));
    assert!(free.run(&wanting_db("OtherDb")).await.unwrap().delete.is_empty(), "it has no controller");
}

#[tokio::test]
async fn what_was_to_be_replaced_and_is_still_there_goes() {
    let case = Case::steps(1)
        .observe("db", object("OtherDb", "db", true))
        .spare(Some("db"), object("Db", "db", true));
    assert_eq!(deleted(&case.run(&wanting_db("OtherDb")).await.unwrap()), [("db", Reason::Replaced)]);
    // Of two of the wanted kind the other one counts.
    let case =
        Case::steps(1).observe("db", object("Db", "new", true)).spare(Some("db"), object("Db", "old", true));
    let plan = case.run(&wanting_db("Db")).await.unwrap();
    assert!(plan.delete.is_empty());
    assert_eq!(references(&plan), ["Db new"]);
}

#[tokio::test]
async fn what_was_composed_without_a_name_goes() {
    let mut leftover = nameless("Db", &child_name("thing-", "uid-123", ""), Some(""));
    leftover["metadata"]["generateName"] = "thing-".into();
    let case = Case::steps(1).spare(None, leftover.clone()).observe("old", object("Db", "old", true));
    let plan = case.run(&wanting_db("Db")).await.unwrap();
    assert_eq!(plan.delete.len(), 2, "and it keeps nothing else from going");
    assert!(plan.remarks.is_empty());
    leftover["metadata"]["ownerReferences"] = json!([]);
    let plan = Case::steps(1).spare(None, leftover).run(&wanting_db("Db")).await.unwrap();
    assert!(plan.delete.is_empty(), "an object without a controller is not touched");
}

/// A composed resource whose template gives its name, and whose name in the composition was empty.
#[tokio::test]
async fn what_was_composed_under_a_given_name_without_a_resource_name_goes() {
    let manager = Case::steps(1).run(&wanting_db("Db")).await.unwrap().apply[0].field_owner.clone();
    let mut leftover = nameless("Db", "given", Some(""));
    let annotations = json!({"f:annotations": {format!("f:{NAME}"): {}}});
    leftover["metadata"]["managedFields"] =
        json!([{"manager": manager, "operation": "Apply", "fieldsV1": {"f:metadata": annotations}}]);
    let case = |leftover: &Value| Case::steps(1).spare(None, leftover.clone());
    let plan = case(&leftover).run(&wanting_db("Db")).await.unwrap();
    assert_eq!(plan.delete.len(), 1, "{:?}", plan.remarks);
    leftover["metadata"]["managedFields"][0]["manager"] = "kubectl-edit".into();
    let plan = case(&leftover).run(&wanting_db("Db")).await.unwrap();
    assert!(plan.delete.is_empty(), "another client emptied the annotation");
}

#[tokio::test]
async fn a_resource_that_lost_its_annotation_gets_it_back() {
    let own = child_name("thing-", "uid-123", "db");
    for annotation in [None, Some("")] {
        let case = Case::steps(1)
            .spare(None, nameless("Db", &own, annotation))
            .observe("old", object("Db", "old", true));
        let plan = case.run(&wanting_db("Db")).await.unwrap();
        assert_eq!(plan.apply[0].object["metadata"]["name"], own.as_str());
        assert_eq!(plan.apply[0].object["metadata"]["annotations"][NAME], "db");
        assert!(plan.delete.is_empty(), "functions did not see everything");
        assert!(plan.remarks.is_empty());
        let mut expected = [format!("Db {own}"), "Db old".to_owned()];
        expected.sort();
        assert_eq!(references(&plan), expected);
    }
}

#[tokio::test]
async fn indistinguishable_resources_are_kept_and_nothing_is_deleted() {
    for annotation in [None, Some("")] {
        let case = Case::steps(1)
            .spare(None, nameless("Db", "whose", annotation))
            .observe("old", object("Db", "old", true));
        let plan = case.run(&wanting_nothing()).await.unwrap();
        assert!(plan.delete.is_empty());
        assert_eq!(references(&plan), ["Db old", "Db whose"]);
        let [remark] = &plan.remarks[..] else { panic!("one remark: {:?}", plan.remarks) };
        assert!(
            remark.message.contains(r#"cannot tell which composed resource Db "whose" is"#),
            "{remark:?}"
        );
    }
}
