//! OpenAPI documents as clients get them from a server over an empty store: `documents` is about what they contain, `serving`
//! about their encodings, hashes and caching.

mod documents;
mod serving;

use crate::{Identity, Options, Server};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use transom_store::Store;

pub(super) struct Client(Server);

struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
}

impl Client {
    pub(super) async fn start() -> Self {
        let store = Store::in_memory(transom_store::Options::default());
        Self(Server::start(store, Options::default()).await.unwrap())
    }

    fn server(&self) -> &Server {
        &self.0
    }

    async fn send(&self, request: http::request::Builder, body: Option<&Value>) -> Reply {
        let mut request = request
            .body(Full::<bytes::Bytes>::from(body.map_or_else(Vec::new, |b| b.to_string().into_bytes())))
            .unwrap();
        request.extensions_mut().insert(Identity::admin("admin"));
        let response = self.0.handle(request).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Reply { status: parts.status, headers: parts.headers, body }
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request, None).await
    }

    pub(super) async fn document(&self, path: &str) -> Value {
        let reply = self.get(path, &[]).await;
        assert_eq!(reply.status, 200, "{path}");
        reply.json()
    }

    /// The index: path → address with hash.
    async fn index(&self) -> std::collections::BTreeMap<String, String> {
        let index = self.document("/openapi/v3").await;
        let paths = index["paths"].as_object().unwrap();
        paths
            .iter()
            .map(|(p, at)| (p.clone(), at["serverRelativeURL"].as_str().unwrap().to_owned()))
            .collect()
    }

    pub(super) async fn define(&self, definition: &Value) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let request = Request::post(path).header("content-type", "application/json");
        let reply = self.send(request, Some(definition)).await;
        assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    }

    async fn patch_definition(&self, name: &str, patch: &Value) {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let request = Request::patch(path).header("content-type", "application/json-patch+json");
        let reply = self.send(request, Some(patch)).await;
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    }
}

/// A kind with one version; `spec` is the schema of its spec.
pub(super) fn definition(plural: &str, kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.org")},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "schema": {"openAPIV3Schema": {"type": "object", "description": "Described.", "properties": {"spec": spec}}},
            }],
        },
    })
}
