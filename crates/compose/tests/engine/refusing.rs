//! Desired state that is refused, and events about parts of it that have no effect.

use crate::script::{Case, Script, resource};
use serde_json::json;
use transom_compose::{Event, Options};
use transom_function::{Resource, RunFunctionRequest, RunFunctionResponse};
use transom_object::GroupVersionKind;

fn also_wanting(name: &str) -> Script {
    let name = name.to_owned();
    Script::new().then(|request| request.copy_response()).then(move |request| {
        let mut response = request.copy_response();
        response.set_composed("good", resource("A"));
        response.set_composed(name.clone(), resource("B"));
        response
    })
}

#[tokio::test]
async fn a_name_that_cannot_be_noted_is_refused_with_its_step_and_function() {
    let failure = Case::steps(2).run(&also_wanting("")).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        r#"pipeline step "b" (function "function") returned a composed resource without a name: every composed resource needs one"#
    );
    assert_eq!(failure.step(), Some("b"));
    let failure = Case::steps(2).run(&also_wanting(&"x".repeat(256 << 10))).await.unwrap_err();
    assert!(failure.to_string().contains("whose name has 262144 bytes"), "{failure}");
    // Whatever an annotation can hold is a name.
    for name in [" ", "a/b", "Ü\n", &"x".repeat(4096)] {
        Case::steps(2).run(&also_wanting(name)).await.unwrap();
    }
}

#[tokio::test]
async fn two_resources_must_not_be_one_object() {
    let named = |version: &str, name: Option<&str>| {
        let mut object =
            json!({"apiVersion": format!("example.org/{version}"), "kind": "Db", "metadata": {}});
        if let Some(name) = name {
            object["metadata"]["name"] = name.into();
        }
        Resource::new(object).expect("an object")
    };
    let script = |left: Resource, right: Resource| {
        Script::new().then(move |request| {
            let mut response = request.copy_response();
            response.set_composed("left", left.clone());
            response.set_composed("right", right.clone());
            response
        })
    };
    let twins = script(named("v1", Some("twin")), named("v2", Some("twin")));
    let failure = Case::steps(1).run(&twins).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        r#"composed resources "left" and "right" have the same name: both are Db "twin""#
    );
    Case::steps(1).run(&script(named("v1", Some("one")), named("v1", Some("two")))).await.unwrap();
    Case::steps(1).run(&script(named("v1", None), named("v1", None))).await.unwrap();
}

#[tokio::test]
async fn a_namespaced_resource_of_a_cluster_scoped_composite_resource_needs_a_namespace() {
    let wanting = |request: &RunFunctionRequest| {
        let mut response = request.copy_response();
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        response.set_composed("cm", Resource::new(map).expect("an object"));
        response
    };
    let mut case = Case::steps(1).cluster();
    case.run(&Script::new().then(wanting)).await.expect("files do not tell which kinds are namespaced");
    case.options = Options { scopes_known: true, ..Options::default() };
    let failure = case.run(&Script::new().then(wanting)).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        r#"cannot apply composed resource "cm": ConfigMap is namespaced: set metadata.namespace in the template of resource "cm""#
    );
    case.world.add_cluster_scoped(GroupVersionKind::new("", "v1", "ConfigMap"));
    case.run(&Script::new().then(wanting)).await.unwrap();
}

fn texts(remarks: &[Event]) -> Vec<String> {
    remarks.iter().map(Event::text).collect()
}

#[tokio::test]
async fn what_has_no_effect_is_reported_with_its_step() {
    let script = || {
        Script::new()
            .then(|request| {
                let mut response = request.copy_response();
                response.composite().set("spec.region", "north").unwrap();
                response.composite().set("status.fine", true).unwrap();
                response
            })
            .then(|request| {
                let mut response = request.copy_response();
                response.composite().set("metadata.labels", json!({"example.org/team": "a"})).unwrap();
                response.set_connection_detail("password", "secret");
                response
            })
    };
    let plan = Case::steps(2).run(&script()).await.unwrap();
    let only = "a function can set only the status of the composite resource";
    assert_eq!(
        texts(&plan.remarks),
        [
            format!(r#"Pipeline step "a": has no effect: spec.region; {only}"#),
            format!(r#"Pipeline step "b": has no effect: metadata.labels[example.org/team]; {only}"#),
            r#"Pipeline step "b": has no effect: connectionDetails.password; composite resources of this scope publish no connection details: compose a Secret instead"#.to_owned(),
        ]
    );
    assert!(plan.events.is_empty(), "render prints Crossplane's events alone");
    let legacy = Case::steps(2).legacy().run(&script()).await.unwrap();
    assert_eq!(legacy.remarks.len(), 2, "legacy ones publish connection details");
}

#[tokio::test]
async fn a_composite_resource_that_is_returned_unchanged_causes_no_warning() {
    let copying = |request: &RunFunctionRequest| -> RunFunctionResponse {
        let mut response = request.copy_response();
        let mut copy = request.observed_composite().clone();
        copy.set("status.size", 3).unwrap();
        *response.composite() = copy;
        response
    };
    let plan = Case::steps(1).run(&Script::new().then(copying)).await.unwrap();
    assert_eq!(texts(&plan.remarks), Vec::<String>::new());
    // A composed Secret with all of them is where the details go.
    let secretive = Script::new().then(|request| {
        let mut response = request.copy_response();
        response.set_connection_detail("password", "secret");
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": "c2VjcmV0"}});
        response.set_composed("secret", Resource::new(secret).expect("an object"));
        response
    });
    let plan = Case::steps(1).run(&secretive).await.unwrap();
    assert_eq!(texts(&plan.remarks), Vec::<String>::new());
}
