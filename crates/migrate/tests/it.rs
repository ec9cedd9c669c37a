//! Imports into a server in this process.
#![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use http::Request;
use kube::client::Body;
use serde_json::{Value, json};
use std::io;
use transom_engine::Cluster;
use transom_migrate::{Imported, import};
use transom_object::GroupVersionKind;
use transom_testkit::embedded;

/// A client whose requests for the status of objects are not sent: as if the process ended before each of them.
fn without_status(client: kube::Client) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            if request.uri().path().ends_with("/status") {
                return Err(io::Error::other("interrupted"));
            }
            client.send(request).await.map_err(io::Error::other)
        }
    });
    kube::Client::new(service, "default")
}

fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "apps.example.org", "uid": "uid-of-definition"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": "App", "plural": "apps", "singular": "app"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}},
            }],
        },
    })
}

/// A composite resource.
fn app() -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "App",
        "metadata": {"name": "shop", "namespace": "default", "uid": "uid-of-app"},
        "spec": {"crossplane": {"resourceRefs": []}},
        "status": {"address": "192.0.2.1"},
    })
}

#[tokio::test]
async fn an_import_that_was_interrupted_before_a_status_is_completed() {
    let server = embedded::server().await;
    let client = embedded::admin_kube_client(&server);
    let cluster = Cluster::new(client.clone());
    let objects = [definition(), app()];
    let stored = async || {
        let app = GroupVersionKind::new("example.org", "v1", "App");
        cluster.get(&app, "default", "shop").await.unwrap().unwrap()
    };

    let interrupted = import(&Cluster::new(without_status(client)), &objects).await;
    assert!(interrupted.is_err(), "{interrupted:?}");
    assert_eq!(stored().await["status"], Value::Null, "it was interrupted after the object was made");

    // What a controller writes about a paused object is not the status that it had.
    let paused = json!({"status": {"conditions": [{"type": "Synced", "status": "False", "reason": "ReconcilePaused"}]}});
    cluster.merge_patch_status(&stored().await, &paused, "crossplane").await.unwrap();

    let all_present = Imported { created: 0, present: 2 };
    assert_eq!(import(&cluster, &objects).await.unwrap(), all_present);
    assert_eq!(stored().await["status"]["address"], "192.0.2.1");

    // From now on it is what this server says.
    let changed = json!({"status": {"address": "192.0.2.2"}});
    cluster.merge_patch_status(&stored().await, &changed, "crossplane").await.unwrap();
    cluster
        .merge_patch(
            &stored().await,
            &json!({"metadata": {"annotations": {"crossplane.io/paused": null}}}),
            "user",
        )
        .await
        .unwrap();
    assert_eq!(import(&cluster, &objects).await.unwrap(), all_present);
    assert_eq!(stored().await["status"]["address"], "192.0.2.2");
}
