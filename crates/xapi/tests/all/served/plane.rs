//! The API server in memory, with Crossplane's CRDs.

use bytes::Bytes;
use http::Request;
use http::request::Builder;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use std::time::Duration;
use transom_apiserver::{Identity, Options, Server};
use transom_store::Store;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub struct Plane(Server);

pub struct Reply {
    pub status: u16,
    /// What clients print beside the answer.
    pub warnings: Vec<String>,
    pub body: Value,
}

impl Plane {
    pub async fn with_crossplane() -> Self {
        let store = Store::in_memory(transom_store::Options::default());
        let plane = Self(Server::start(store, Options::default()).await.unwrap());
        for crd in transom_xapi::crds() {
            plane.define(&crd).await;
        }
        plane
    }

    /// Creates a CRD and waits until its objects are served.
    pub async fn define(&self, crd: &Value) {
        let name = crd["metadata"]["name"].as_str().unwrap();
        let reply = self.post(DEFINITIONS, crd).await;
        assert_eq!(reply.status, 201, "{name}: {}", reply.body);
        for _ in 0..500 {
            if transom_xapi::definition::is_established(&self.get(&format!("{DEFINITIONS}/{name}")).await) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{name} is never established: {}", self.get(&format!("{DEFINITIONS}/{name}")).await);
    }

    async fn send(&self, request: Builder, body: Option<&Value>) -> Reply {
        let bytes = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let request = request.header("content-type", "application/json");
        let mut request = request.body(Full::<Bytes>::from(bytes)).unwrap();
        request.extensions_mut().insert(Identity::admin("admin"));
        let (parts, body) = self.0.handle(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let warnings = parts.headers.get_all(http::header::WARNING).iter();
        let warnings = warnings.map(|warning| warning.to_str().unwrap().to_owned()).collect();
        Reply { status: parts.status.as_u16(), warnings, body: serde_json::from_slice(&bytes).unwrap() }
    }

    pub async fn get(&self, path: &str) -> Value {
        self.send(Request::get(path), None).await.body
    }

    pub async fn post(&self, path: &str, object: &Value) -> Reply {
        self.send(Request::post(path), Some(object)).await
    }

    pub async fn put(&self, path: &str, object: &Value) -> Reply {
        self.send(Request::put(path), Some(object)).await
    }

    pub async fn delete(&self, path: &str) -> u16 {
        self.send(Request::delete(path), None).await.status
    }

    /// The object is invalid, and the answer says why.
    pub async fn refused(&self, path: &str, object: &Value, message: &str) {
        let reply = self.post(path, object).await;
        assert_eq!(reply.status, 422, "{object}: {}", reply.body);
        let said = reply.body["message"].as_str().unwrap();
        assert!(said.contains(message), "{said:?} does not say {message:?}");
    }
}
