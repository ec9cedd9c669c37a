//! A client of a server in the same process, over `tower::Service` and without a network.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower_service::Service;
use transom_apiserver::{ApiBody, Identity, Options, Server};
use transom_store::Store;

/// A client with the rights of an administrator, unless it is given another identity.
#[derive(Clone)]
pub struct Client {
    pub server: Server,
    identity: Option<Identity>,
}

/// A response whose body was read to its end.
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    pub fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect()
    }
}

impl Client {
    pub async fn over(store: &Store) -> Self {
        Self::with(store, Options::default()).await
    }

    pub async fn with(store: &Store, options: Options) -> Self {
        let server = Server::start(store.clone(), options).await.unwrap();
        Self { server, identity: Some(Identity::admin("admin")) }
    }

    /// The same server, seen by another user; without one, by an anonymous client.
    pub fn seen_by(&self, identity: Option<Identity>) -> Self {
        Self { server: self.server.clone(), identity }
    }

    pub async fn in_memory() -> Self {
        Self::over(&Store::in_memory(transom_store::Options::default())).await
    }

    /// Sends a request and returns the response without reading its body.
    pub async fn open(&self, mut request: Request<Full<Bytes>>) -> Response<ApiBody> {
        if let Some(identity) = &self.identity {
            request.extensions_mut().insert(identity.clone());
        }
        let response = self.server.clone().call(request).await;
        match response {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    pub async fn send(&self, method: Method, path: &str, media: &str, body: &Value) -> Reply {
        self.send_with(method, path, &[("content-type", media.to_owned())], body).await
    }

    pub async fn send_with(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, String)],
        body: &Value,
    ) -> Reply {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let response = self.open(request.body(Full::<Bytes>::from(bytes)).unwrap()).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Reply { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, "application/json", &Value::Null).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, "application/json", body).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PUT, path, "application/json", body).await
    }

    pub async fn merge(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PATCH, path, "application/merge-patch+json", body).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send(Method::DELETE, path, "application/json", &Value::Null).await
    }
}

pub fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

/// A definition of a namespaced kind of `example.org/v1` with a status and a scale.
pub fn definition(kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let count = json!({"type": "integer"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{singular}s.example.org")},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": format!("{singular}s"), "singular": singular},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "properties": {
                            "replicas": count,
                            "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
                            "tags": {"type": "array", "items": {"type": "string"}},
                        }},
                        "status": {"type": "object", "properties": {"replicas": count}},
                    },
                }},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "selectableFields": [{"jsonPath": ".spec.color"}],
            }],
        },
    })
}

/// Defines widgets. Returns where they are in the default namespace, and one of them.
pub async fn widgets(client: &Client) -> (String, Value) {
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    client.post(crds, &definition("Widget")).await.expect(201);
    let widget = json!({
        "apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"replicas": 2},
    });
    ("/apis/example.org/v1/namespaces/default/widgets".to_owned(), widget)
}
