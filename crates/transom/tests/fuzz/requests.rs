//! Whole requests, through the server in this process: every decoder, every built-in kind's rules, definitions.

use crate::fuzz::{fuzz_bytes, fuzz_values};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use transom_apiserver::{Identity, Options, Server};
use transom_store::Store;

struct Plane {
    runtime: Runtime,
    server: Server,
}

impl Plane {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let store = Store::in_memory(transom_store::Options::default());
        let server = runtime.block_on(Server::start(store, Options::default())).expect("the server starts");
        Self { runtime, server }
    }

    /// A handler that panics is answered with InternalError, as is anything else that is the server's fault.
    fn ask(&self, method: &str, path: &str, ty: &str, body: Vec<u8>) -> (StatusCode, Vec<u8>) {
        let request = Request::builder().method(method).uri(path).header("content-type", ty);
        let Ok(mut request) = request.body(Full::new(Bytes::from(body))) else {
            return (StatusCode::BAD_REQUEST, Vec::new());
        };
        request.extensions_mut().insert(Identity::admin("fuzz"));
        self.runtime.block_on(async {
            let (head, body) = self.server.handle(request).await.into_parts();
            let body = body.collect().await.map(|b| b.to_bytes().to_vec()).unwrap_or_default();
            let text = String::from_utf8_lossy(&body);
            // Upstream answers some mistakes of clients with 500 and no reason, and so do we.
            let ours = head.status.is_server_error() && text.contains("\"reason\"");
            assert!(!ours, "{}: {text}", head.status);
            (head.status, body)
        })
    }
}

const POD: &str = "/api/v1/namespaces/default/pods";

#[test]
fn protobuf() {
    let plane = Plane::new();
    fuzz_bytes("protobuf", |input| {
        for path in [POD, "/apis/apps/v1/namespaces/default/deployments", "/api/v1/namespaces"] {
            let path = format!("{path}?dryRun=All");
            plane.ask("POST", &path, "application/vnd.kubernetes.protobuf", input.clone());
        }
    });
}

/// The collection of each kind in the corpus.
fn collection(object: &Value) -> &'static str {
    match object["kind"].as_str().unwrap_or_default() {
        "ConfigMap" => "/api/v1/namespaces/default/configmaps",
        "Service" => "/api/v1/namespaces/default/services",
        "Deployment" => "/apis/apps/v1/namespaces/default/deployments",
        "CustomResourceDefinition" => "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "Event" => "/api/v1/namespaces/default/events",
        "Role" => "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
        _ => POD,
    }
}

#[test]
fn objects() {
    let plane = Plane::new();
    fuzz_values("objects", |input| {
        let path = collection(input);
        let strict = format!("{path}?dryRun=All&fieldValidation=Strict");
        plane.ask("POST", &format!("{path}?dryRun=All"), "application/json", input.to_string().into_bytes());
        plane.ask("POST", &strict, "application/json", input.to_string().into_bytes());
        let name =
            input["metadata"]["name"].as_str().filter(|n| n.chars().all(|c| c.is_ascii_alphanumeric()));
        let name = name.filter(|n| !n.is_empty()).unwrap_or("a");
        let apply = format!("{path}/{name}?dryRun=All&fieldManager=fuzz&force=true");
        plane.ask("PATCH", &apply, "application/apply-patch+yaml", input.to_string().into_bytes());
    });
}

/// Updates and patches of an object that is there.
#[test]
fn changes() {
    let plane = Plane::new();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "there", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]},
    });
    let (status, body) = plane.ask("POST", POD, "application/json", pod.to_string().into_bytes());
    assert_eq!(status, StatusCode::CREATED, "{}", String::from_utf8_lossy(&body));
    fuzz_values("changes", |input| {
        let path = format!("{POD}/there?dryRun=All");
        let body = input.to_string().into_bytes();
        for ty in [
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
        ] {
            plane.ask("PATCH", &path, ty, body.clone());
        }
        plane.ask("PATCH", &format!("{path}&fieldManager=f"), "application/apply-patch+yaml", body.clone());
        plane.ask("PUT", &path, "application/json", body.clone());
        plane.ask("DELETE", &path, "application/json", body);
    });
}

#[test]
fn targets() {
    let plane = Plane::new();
    // Nothing here writes or waits for the world outside: time may pass as fast as the server waits for it.
    plane.runtime.block_on(async { tokio::time::pause() });
    fuzz_bytes("targets", |input| {
        let text: String =
            String::from_utf8_lossy(input).chars().filter(|c| c.is_ascii_graphic()).take(2_000).collect();
        let path = format!("/{}", text.trim_start_matches('/'));
        // A watch that is accepted continues until one side closes the connection.
        if !path.contains("watch") && path.parse::<http::Uri>().is_ok() {
            for method in ["GET", "HEAD", "DELETE"] {
                let joint = if path.contains('?') { '&' } else { '?' };
                let path = format!("{path}{joint}dryRun=All");
                plane.ask(method, &path, "application/json", Vec::new());
            }
        }
    });
}
