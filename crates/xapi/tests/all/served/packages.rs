//! Packages and what comes with them are held to their rules.

use super::APIEXTENSIONS;
use super::plane::Plane;
use serde_json::{Value, json};
use transom_xapi::{PackageKind, PackageRevision};

const PKG: &str = "/apis/pkg.crossplane.io";
const IMAGE: &str = "xpkg.example.org/a/b:v1";

fn object(api_version: &str, kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "o"}, "spec": spec})
}

#[tokio::test]
async fn packages_of_all_kinds_have_the_same_rules_and_defaults() {
    let plane = Plane::with_crossplane().await;
    for kind in PackageKind::ALL {
        let path = format!("{PKG}/v1/{}", kind.plural());
        let package = |spec: &Value| object(kind.api_version(), kind.kind(), spec);
        for image in ["a/b:v1", "xpkg.example.org/a/b", "localhost:5000/b:v1"] {
            let message = "must be a fully qualified image name";
            plane.refused(&path, &package(&json!({"package": image})), message).await;
        }
        let made = plane.post(&path, &package(&json!({"package": IMAGE}))).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let mut spec = json!({
            "package": IMAGE, "packagePullPolicy": "IfNotPresent", "revisionActivationPolicy": "Automatic",
            "revisionHistoryLimit": 1, "ignoreCrossplaneConstraints": false, "skipDependencyResolution": false,
        });
        if kind.has_runtime() {
            spec["runtimeConfigRef"] = json!({
                "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig", "name": "default",
            });
        }
        assert_eq!(made.body["spec"], spec);
    }
}

#[tokio::test]
async fn revisions_keep_what_their_type_writes() {
    let plane = Plane::with_crossplane().await;
    for kind in PackageKind::ALL {
        let path = format!("{PKG}/v1/{}", kind.revision_plural());
        let mut revision = PackageRevision::default();
        revision.spec.image = IMAGE.to_owned();
        let spec = &mut revision.spec;
        (spec.desired_state, spec.revision) = ("Active".to_owned(), 7);
        spec.installation.skip_dependency_resolution = Some(true);
        spec.tls_server_secret_name = kind.has_runtime().then(|| "t".to_owned());
        let made = plane.post(&path, &object(kind.api_version(), kind.revision_kind(), &json!(spec))).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let status = &mut revision.status;
        status.capabilities = vec!["safe-start".to_owned()];
        status.found_dependencies = 2;
        status.conditions = vec![transom_xapi::Condition::revision_healthy()];
        status.conditions[0].last_transition_time = "2024-01-01T00:00:00Z".to_owned();
        let mut observed = made.body.clone();
        observed["status"] = json!(status);
        let updated = plane.put(&format!("{path}/o/status"), &observed).await;
        assert_eq!(updated.status, 200, "{}", updated.body);
        let read: PackageRevision = serde_json::from_value(updated.body).unwrap();
        assert_eq!(read.status, revision.status);
        assert_eq!(read.spec.tls_server_secret_name, revision.spec.tls_server_secret_name);
        let incomplete = object(kind.api_version(), kind.revision_kind(), &json!({"image": IMAGE}));
        plane.refused(&path, &incomplete, "spec.desiredState: Required value").await;
    }
}

#[tokio::test]
async fn image_configs_and_the_lock_are_held_to_their_rules() {
    let plane = Plane::with_crossplane().await;
    let path = format!("{PKG}/v1beta1/imageconfigs");
    let config = |spec: &Value| object("pkg.crossplane.io/v1beta1", "ImageConfig", spec);
    let prefixed = json!([{"prefix": "r.io/"}]);
    for (spec, message) in [
        (json!({"matchImages": []}), "matchImages should have at least one element."),
        (json!({"matchImages": [{"type": "Regex", "prefix": "a"}]}), "Unsupported value"),
        (json!({"matchImages": prefixed, "verification": {"provider": "Notary"}}), "Unsupported value"),
        (json!({"matchImages": prefixed, "rewriteImage": {}}), "prefix: Required value"),
    ] {
        plane.refused(&path, &config(&spec), message).await;
    }
    let made = plane.post(&path, &config(&json!({"matchImages": prefixed}))).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.body["spec"]["matchImages"][0]["type"], "Prefix");

    let path = format!("{PKG}/v1beta1/locks");
    let lock = |package: &Value| {
        json!({
            "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "Lock", "metadata": {"name": "lock"},
            "packages": [package],
        })
    };
    let mut package =
        json!({"name": "p-1", "source": "r.io/p", "version": "v1", "type": "Other", "dependencies": []});
    plane.refused(&path, &lock(&package), "Unsupported value").await;
    package["type"] = json!("Provider");
    let made = plane.post(&path, &lock(&package)).await;
    assert_eq!((made.status, &made.body["packages"][0]), (201, &package));
}

#[tokio::test]
async fn runtime_configs_take_any_deployment() {
    let plane = Plane::with_crossplane().await;
    let pod = json!({"spec": {"containers": [{"name": "package-runtime", "args": ["--debug"]}]}});
    let spec = json!({
        "deploymentTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"selector": {}, "template": pod}},
        "serviceTemplate": {"metadata": {"name": "s"}},
    });
    let config = object("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig", &spec);
    let made = plane.post(&format!("{PKG}/v1beta1/deploymentruntimeconfigs"), &config).await;
    assert_eq!((made.status, &made.body["spec"]), (201, &spec), "nothing is pruned");
}

#[tokio::test]
async fn managed_resource_definitions_stay_active_and_what_they_are() {
    let plane = Plane::with_crossplane().await;
    let path = format!("{APIEXTENSIONS}/v1alpha1/managedresourcedefinitions");
    let api = "apiextensions.crossplane.io/v1alpha1";
    let spec = json!({
        "group": "example.org", "names": {"kind": "Thing", "plural": "things"}, "scope": "Cluster",
        "versions": [{
            "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
        }],
    });
    let made = plane.post(&path, &object(api, "ManagedResourceDefinition", &spec)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.body["spec"]["state"], "Inactive");
    assert_eq!(made.body["spec"]["versions"], spec["versions"], "nothing is pruned");
    let mut active = made.body.clone();
    active["spec"]["state"] = json!("Active");
    let path = format!("{path}/o");
    let active = plane.put(&path, &active).await;
    assert_eq!(active.status, 200, "{}", active.body);
    for (field, value, message) in [
        ("state", json!("Inactive"), "state cannot be changed once it becomes Active"),
        ("scope", json!("Namespaced"), "Value is immutable"),
        ("group", json!("other.org"), "Value is immutable"),
        ("names", json!({"kind": "Thing", "plural": "Things"}), "Plural name must be lowercase"),
    ] {
        let mut changed = active.body.clone();
        changed["spec"][field] = value;
        let reply = plane.put(&path, &changed).await;
        assert_eq!(reply.status, 422, "{}", reply.body);
        assert!(reply.body["message"].as_str().unwrap().contains(message), "{}", reply.body);
    }
    let policies = format!("{APIEXTENSIONS}/v1alpha1/managedresourceactivationpolicies");
    let empty = object(api, "ManagedResourceActivationPolicy", &json!({"activate": []}));
    plane.refused(&policies, &empty, "should have at least 1 items").await;
}
