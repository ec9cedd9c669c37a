//! What is applied, deleted and referred to.

use crate::script::{Case, Script, object, resource, wanting};
use serde_json::{Value, json};
use transom_compose::{Cause, NamedBy, Reason};
use transom_function::{Ready, Resource, RunFunctionRequest, RunFunctionResponse};
use transom_object::GroupVersionKind;

fn wanting_object(object: &Value) -> Script {
    let resource = Resource::new(object.clone()).expect("an object");
    Script::new().then(move |request| {
        let mut response = request.copy_response();
        response.set_composed("db", resource.clone());
        response
    })
}

#[tokio::test]
async fn a_composed_resource_says_whose_it_is() {
    let plan = Case::steps(1).run(&Script::new().then(|r| wanting(r, "database", "Db"))).await.unwrap();
    let name = transom_compose::child_name("thing-", "uid-123", "database");
    assert_eq!(
        plan.apply[0].object,
        json!({
            "apiVersion": "example.org/v1", "kind": "Db",
            "metadata": {
                "name": name, "generateName": "thing-", "namespace": "team",
                "labels": {"crossplane.io/composite": "thing"},
                "annotations": {"crossplane.io/composition-resource-name": "database"},
                "ownerReferences": [{
                    "apiVersion": "example.org/v1", "kind": "XThing", "name": "thing", "uid": "uid-123",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
        })
    );
    assert_eq!((plan.apply[0].named_by, plan.apply[0].reason), (NamedBy::Engine, Reason::Missing));
    assert_eq!(
        plan.references.object,
        json!({
            "apiVersion": "example.org/v1", "kind": "XThing", "metadata": {"name": "thing", "namespace": "team"},
            "spec": {"crossplane": {"resourceRefs": [
                {"apiVersion": "example.org/v1", "kind": "Db", "name": plan.apply[0].object["metadata"]["name"]},
            ]}},
        })
    );
    assert!(plan.references.changed);
}

#[tokio::test]
async fn claims_are_named_only_when_there_is_one() {
    let script = || Script::new().then(|r| wanting(r, "db", "Db"));
    let mut case = Case::steps(1).legacy();
    case.xr["metadata"]["labels"]["crossplane.io/claim-name"] = "c".into();
    let labels = |plan: transom_compose::Decision| plan.apply[0].object["metadata"]["labels"].clone();
    assert_eq!(labels(case.run(&script()).await.unwrap()), json!({"crossplane.io/composite": "thing"}));
    case.xr["metadata"]["labels"]["crossplane.io/claim-namespace"] = "n".into();
    assert_eq!(
        labels(case.run(&script()).await.unwrap()),
        json!({"crossplane.io/composite": "thing", "crossplane.io/claim-name": "c", "crossplane.io/claim-namespace": "n"})
    );
}

#[tokio::test]
async fn what_functions_write_stays() {
    let script = wanting_object(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "mine", "labels": {"a": "b"}, "annotations": {"c": "d"},
                     "ownerReferences": [{"uid": "other", "kind": "Usage", "name": "u", "apiVersion": "v1"}]},
    }));
    let plan = Case::steps(1).run(&script).await.unwrap();
    let metadata = &plan.apply[0].object["metadata"];
    assert_eq!(
        (&metadata["name"], &metadata["labels"]["a"], &metadata["annotations"]["c"]),
        (&json!("mine"), &json!("b"), &json!("d"))
    );
    assert_eq!(metadata["ownerReferences"].as_array().unwrap().len(), 2);
    assert!(metadata.get("generateName").is_none());
    assert_eq!(plan.apply[0].named_by, NamedBy::Function);
}

#[tokio::test]
async fn an_existing_resource_is_neither_renamed_nor_moved() {
    let mut existing = object("Db", "old-name", true);
    existing["metadata"]["generateName"] = "old-".into();
    let case = Case::steps(1).observe("db", existing);
    let script = wanting_object(&json!({
        "apiVersion": "example.org/v1", "kind": "Db", "metadata": {"name": "new-name", "namespace": "elsewhere"},
    }));
    let plan = case.run(&script).await.unwrap();
    let metadata = &plan.apply[0].object["metadata"];
    assert_eq!(
        (&metadata["name"], &metadata["namespace"], &metadata["generateName"]),
        (&json!("old-name"), &json!("team"), &json!("old-"))
    );
    assert_eq!((plan.apply[0].named_by, plan.apply[0].reason), (NamedBy::Observed, Reason::Wanted));
    assert!(plan.delete.is_empty() && plan.events.is_empty());
}

#[tokio::test]
async fn names_are_the_same_every_time() {
    let script = || Script::new().then(|r| wanting(r, "db", "Db"));
    let mut case = Case::steps(1);
    let first = case.run(&script()).await.unwrap().apply[0].object.clone();
    // Its reference exists, the object does not: it is made again under the same name.
    case.xr["spec"]["crossplane"] = json!({"resourceRefs": [
        {"apiVersion": "example.org/v1", "kind": "Db", "name": first["metadata"]["name"]},
    ]});
    let plan = case.run(&script()).await.unwrap();
    assert_eq!(plan.apply[0].object, first);
    assert!(!plan.references.changed);
}

#[tokio::test]
async fn bad_metadata_changes_nothing() {
    let cases = [
        (
            json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "No_Name"}}),
            "has an invalid name \"No_Name\"",
        ),
        (json!({"apiVersion": "v1", "metadata": {}}), "Object 'Kind' is missing"),
        (json!({"kind": "A"}), "Object 'apiVersion' is missing"),
        (json!({"apiVersion": "v1", "kind": "A", "metadata": "x"}), "metadata is not an object"),
        (
            json!({"apiVersion": "v1", "kind": "A", "metadata": {"ownerReferences": [{
                "apiVersion": "v1", "kind": "B", "name": "b", "uid": "else", "controller": true}]}}),
            "is already controlled by B b (UID else)",
        ),
    ];
    for (object, expected) in cases {
        let failure = Case::steps(1).run(&wanting_object(&object)).await.unwrap_err();
        assert!(failure.to_string().contains(expected), "{failure}");
    }
    let ours = json!({"apiVersion": "v1", "kind": "A", "metadata": {"ownerReferences": [{
        "apiVersion": "x/v1", "kind": "B", "name": "b", "uid": "uid-123", "controller": true}]}});
    let plan = Case::steps(1).run(&wanting_object(&ours)).await.unwrap();
    assert_eq!(
        plan.apply[0].object["metadata"]["ownerReferences"][0]["kind"], "XThing",
        "our own is replaced"
    );
}

#[tokio::test]
async fn without_its_label_a_composite_resource_composes_nothing() {
    let mut case = Case::steps(1);
    case.xr["metadata"]["labels"] = json!({});
    let failure = case.run(&Script::new().then(|r| wanting(r, "db", "Db"))).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        r#"cannot render metadata for composed resource "db": cannot find top-level composite resource name label "crossplane.io/composite" in composite resource metadata"#
    );
}

#[tokio::test]
async fn a_namespaced_composite_resource_stays_in_its_namespace() {
    let elsewhere = json!({"apiVersion": "v1", "kind": "A", "metadata": {"namespace": "elsewhere"}});
    let plan = Case::steps(1).run(&wanting_object(&elsewhere)).await.unwrap();
    assert_eq!(plan.apply[0].object["metadata"]["namespace"], "team");
    assert_eq!(plan.events[0].reason, "NamespaceOverridden");
    assert_eq!(
        plan.events[0].text(),
        r#"cannot create composed resource "db" in namespace "elsewhere", using XR namespace "team" instead"#
    );
    let same = json!({"apiVersion": "v1", "kind": "A", "metadata": {"namespace": "team"}});
    assert!(Case::steps(1).run(&wanting_object(&same)).await.unwrap().events.is_empty());

    let mut case = Case::steps(1);
    case.world.add_cluster_scoped(GroupVersionKind::new("", "v1", "Node"));
    let node = json!({"apiVersion": "v1", "kind": "Node"});
    let failure = case.run(&wanting_object(&node)).await.unwrap_err();
    assert!(matches!(failure.cause, Cause::ClusterScoped { .. }), "{failure}");
    assert!(failure.to_string().contains(r#"composed resource "db" (a Node) for"#), "{failure}");
    let plan = case.cluster().run(&wanting_object(&elsewhere)).await.unwrap();
    assert_eq!(
        plan.apply[0].object["metadata"]["namespace"], "elsewhere",
        "a cluster-scoped one may compose anywhere"
    );
    assert_eq!(plan.references.object["spec"]["crossplane"]["resourceRefs"][0]["namespace"], "elsewhere");
}

#[tokio::test]
async fn what_is_no_longer_wanted_is_deleted() {
    let nothing = || Script::new().then(|_: &RunFunctionRequest| RunFunctionResponse::default());
    let case =
        Case::steps(1).observe("db", object("Db", "db", true)).observe("free", object("Db", "free", false));
    let plan = case.run(&nothing()).await.unwrap();
    assert_eq!(plan.delete.len(), 1, "an object without a controller is not deleted");
    assert_eq!((plan.delete[0].name.as_str(), plan.delete[0].reason), ("db", Reason::Unwanted));
    assert_eq!(plan.delete[0].object["metadata"]["labels"], json!({"own": "label"}));
    assert_eq!(plan.references.object["spec"]["crossplane"]["resourceRefs"], json!([]));

    let mut foreign = object("Db", "foreign", true);
    foreign["metadata"]["ownerReferences"][0]["uid"] = "somebody".into();
    let case = Case::steps(1).observe("db", object("Db", "db", true)).observe("foreign", foreign);
    let failure = case.run(&nothing()).await.unwrap_err();
    assert!(failure.to_string().contains("refusing to delete composed resource \"foreign\""), "{failure}");
}

#[tokio::test]
async fn the_status_is_what_functions_want_and_the_conditions_known() {
    let mut case = Case::steps(1);
    case.xr["status"] = json!({
        "old": true,
        "conditions": [{"type": "Responsive", "status": "True", "reason": "R", "lastTransitionTime": "2023-01-01T00:00:00Z"}],
    });
    let script = Script::new().then(|request| {
        let mut response = request.copy_response();
        response.composite().set("status.endpoint", "here").unwrap();
        response.composite().set("spec.ignored", 1).unwrap();
        response.set_connection_detail("key", "value");
        response
    });
    let plan = case.run(&script).await.unwrap();
    assert_eq!(
        plan.status,
        json!({
            "apiVersion": "example.org/v1", "kind": "XThing",
            "metadata": {"name": "thing", "namespace": "team", "uid": "uid-123"},
            "status": {"endpoint": "here", "conditions": case.xr["status"]["conditions"]},
        })
    );
    assert!(plan.connection_details.is_empty(), "modern composite resources publish nothing");
    let plan = Case::steps(1).legacy().run(&script).await.unwrap();
    assert_eq!(plan.connection_details["key"], b"value");
}

#[tokio::test]
async fn readiness_is_what_functions_say() {
    let script = Script::new().then(|request| {
        let mut response = request.copy_response();
        for (name, ready) in [("t", Ready::True), ("f", Ready::False), ("u", Ready::Unspecified)] {
            response.set_composed(name, resource("A").with_ready(ready));
        }
        response
    });
    let plan = Case::steps(1).run(&script).await.unwrap();
    let ready: Vec<(&str, bool)> = plan.apply.iter().map(|a| (a.name.as_str(), a.ready)).collect();
    assert_eq!(ready, [("f", false), ("t", true), ("u", false)]);
    assert_eq!(plan.ready, None);
}

#[tokio::test]
async fn templates_are_a_pipeline_of_one_step() {
    let case = Case::new(&json!({
        "mode": "Resources",
        "resources": [{"name": "db", "base": {"apiVersion": "v1", "kind": "Db"}}],
    }));
    let script = Script::new().then(|r| wanting(r, "db", "Db"));
    case.run(&script).await.unwrap();
    let call = &script.calls()[0];
    assert_eq!(call.function, transom_compose::resources_mode::FUNCTION);
    assert_eq!(call.request.input.as_ref().unwrap().fields()["resources"][0]["name"], "db");
}

/// A template whose resource could not be rendered leaves what exists alone; only what has no template goes.
#[tokio::test]
async fn what_has_a_template_stays() {
    let mut case = Case::new(&json!({
        "mode": "Resources",
        "resources": [
            {"name": "app", "base": {"apiVersion": "v1", "kind": "App"}},
            {"name": "db", "base": {"apiVersion": "v1", "kind": "Db"}},
            {"name": "new", "base": {"apiVersion": "v1", "kind": "New"}},
        ],
    }));
    for name in ["db", "gone"] {
        case = case.observe(name, object("Db", name, true));
    }
    let plan = case.run(&Script::new().then(|r| wanting(r, "app", "App"))).await.unwrap();
    let deleted: Vec<&str> = plan.delete.iter().map(|deletion| deletion.name.as_str()).collect();
    let applied: Vec<&str> = plan.apply.iter().map(|application| application.name.as_str()).collect();
    assert_eq!((deleted, applied), (vec!["gone"], vec!["app"]));
    let kinds: Vec<&Value> = plan.references.object["spec"]["crossplane"]["resourceRefs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reference| &reference["kind"])
        .collect();
    assert_eq!(kinds, ["App", "Db"]);
}

/// `spec.environment` of Crossplane v1 is a step of its own, before all others.
#[tokio::test]
async fn an_environment_is_made_before_anything_else() {
    let environment = json!({
        "defaultData": {"a": 1}, "environmentConfigs": [{"ref": {"name": "e"}}],
        "patches": [{"fromFieldPath": "spec.a"}], "policy": {"resolution": "Optional"},
    });
    let templates = json!({"mode": "Resources", "environment": environment,
        "resources": [{"name": "db", "base": {"apiVersion": "v1", "kind": "Db"}}]});
    let steps = json!({"mode": "Pipeline", "environment": environment,
        "pipeline": [{"step": "one", "functionRef": {"name": "f"}}]});
    for (spec, second) in [(templates, transom_compose::resources_mode::FUNCTION), (steps, "f")] {
        let script = Script::new()
            .then(|r| {
                let mut response = r.copy_response();
                response.set_context("made", true);
                response
            })
            .then(|r| wanting(r, "db", "Db"));
        let plan = Case::new(&spec).run(&script).await.unwrap();
        let calls = script.calls();
        let functions: Vec<&str> = calls.iter().map(|call| call.function.as_str()).collect();
        assert_eq!(functions, [transom_compose::environment::FUNCTION, second]);
        let input = calls[0].request.input.as_ref().unwrap().as_value();
        assert_eq!(
            input,
            &json!({"defaultData": {"a": 1}, "environmentConfigs": [{"ref": {"name": "e"}}],
                "policy": {"resolution": "Optional"}})
        );
        assert_eq!(calls[1].request.context.as_ref().unwrap().as_value()["made"], true);
        let patches = calls[1].request.input.as_ref().map(|i| i.as_value()["environment"]["patches"].clone());
        let ignored =
            plan.events.iter().any(|e| e.message.contains("spec.environment.patches has no effect"));
        match second {
            "f" => assert!(patches.is_none() && ignored),
            _ => assert!(patches == Some(json!([{"fromFieldPath": "spec.a"}])) && !ignored),
        }
        assert_eq!(plan.apply[0].undeclared.is_some(), second != "f");
    }
}

#[tokio::test]
async fn an_external_secret_store_is_refused() {
    let store = |name: &str| {
        let reference = json!({"name": name});
        Case::new(&json!({"pipeline": [{"step": "one", "functionRef": {"name": "f"}}],
            "publishConnectionDetailsWithStoreConfigRef": reference}))
    };
    let script = Script::new().then(|r| wanting(r, "db", "Db"));
    assert!(store("default").run(&script).await.is_ok());
    let failure = store("vault").run(&script).await.unwrap_err().to_string();
    assert!(
        failure.contains("\"vault\"") && failure.contains("writeConnectionSecretsToNamespace"),
        "{failure}"
    );
}
