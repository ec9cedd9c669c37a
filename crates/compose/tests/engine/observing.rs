//! Which composed resources are observed.

use crate::script::object;
use serde_json::{Value, json};
use transom_compose::{Layout, Objects, Observation, ObserveError, Spare, observe};
use transom_xapi::CompositionSpec;

fn xr(references: &Value) -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "XThing",
        "metadata": {"name": "thing", "namespace": "team", "uid": "uid-123"},
        "spec": {"crossplane": {"resourceRefs": references}},
    })
}

fn reference(name: &str) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Db", "name": name, "namespace": "ignored"})
}

async fn run(xr: &Value, world: &Objects) -> Result<Observation, ObserveError> {
    observe(xr, Layout::Modern, &CompositionSpec::default(), world).await
}

#[tokio::test]
async fn only_references_say_what_exists() {
    let mut foreign = object("Db", "foreign", true);
    foreign["metadata"]["ownerReferences"][0]["uid"] = "somebody".into();
    let world: Objects =
        [object("Db", "a", true), object("Db", "free", false), object("Db", "unreferenced", true), foreign]
            .into_iter()
            .collect();
    let references = json!([
        reference("a"), reference("free"), reference("absent"), reference("foreign"),
        {"apiVersion": "example.org/v1", "kind": "Db"},
    ]);
    let Observation { observed, spare } = run(&xr(&references), &world).await.unwrap();
    assert_eq!(observed.keys().collect::<Vec<_>>(), ["a", "free"]);
    assert_eq!(*observed["a"].object, object("Db", "a", true));
    assert!(spare.is_empty());
    assert_eq!(run(&json!({}), &world).await.unwrap(), Observation::default());
}

#[tokio::test]
async fn the_last_of_two_with_the_same_name_counts() {
    let mut twin = object("Db", "b", true);
    twin["metadata"]["annotations"]["crossplane.io/composition-resource-name"] = "a".into();
    let world: Objects = [object("Db", "a", true), twin.clone()].into_iter().collect();
    let Observation { observed, spare } =
        run(&xr(&json!([reference("a"), reference("b")])), &world).await.unwrap();
    assert_eq!(observed.len(), 1);
    assert_eq!(*observed["a"].object, twin);
    assert_eq!(spare, [Spare { name: Some("a".to_owned()), object: object("Db", "a", true) }]);
}

#[tokio::test]
async fn a_resource_without_a_name_is_spare_and_hides_no_other() {
    let mut anonymous = object("Db", "a", true);
    anonymous["metadata"]["annotations"] = json!({});
    let mut empty = object("Db", "b", true);
    empty["metadata"]["annotations"]["crossplane.io/composition-resource-name"] = "".into();
    let world: Objects = [anonymous.clone(), empty.clone(), object("Db", "c", true)].into_iter().collect();
    let references = json!([reference("a"), reference("b"), reference("c")]);
    let Observation { observed, spare } = run(&xr(&references), &world).await.unwrap();
    assert_eq!(observed.keys().collect::<Vec<_>>(), ["c"]);
    let nameless = |object| Spare { name: None, object };
    assert_eq!(spare, [nameless(anonymous), nameless(empty)]);
    // Templates without names know what they composed by its place.
    let templates: CompositionSpec =
        serde_json::from_value(json!({"mode": "Resources", "resources": [{}, {"base": {}}]})).unwrap();
    let references = json!([{"apiVersion": "example.org/v1", "kind": "Db"}, reference("a")]);
    let observation = observe(&xr(&references), Layout::Modern, &templates, &world).await.unwrap();
    assert_eq!(observation.observed.keys().collect::<Vec<_>>(), ["1"]);
}

#[tokio::test]
async fn connection_details_come_along() {
    let mut a = object("Db", "a", true);
    a["spec"] = json!({"writeConnectionSecretToRef": {"name": "a-conn", "namespace": "ignored"}});
    let mut b = object("Db", "b", true);
    b["spec"] = json!({"writeConnectionSecretToRef": {"name": "absent"}});
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a-conn", "namespace": "team"},
        "data": {"password": "cGFzcw=="},
    });
    let mut world: Objects = [a, b, secret].into_iter().collect();
    let xr = xr(&json!([reference("a"), reference("b")]));
    let observed = run(&xr, &world).await.unwrap().observed;
    assert_eq!(observed["a"].connection_details["password"], b"pass");
    assert!(observed["b"].connection_details.is_empty());
    world.add(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a-conn", "namespace": "team"},
        "data": {"password": "not base64"},
    }));
    let error = run(&xr, &world).await.unwrap_err();
    assert!(matches!(error, ObserveError::Connection { .. }), "{error}");
}
