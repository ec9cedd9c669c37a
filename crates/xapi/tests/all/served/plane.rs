//! The API server in memory, with Crossplane's CRDs.

use serde_json::Value;
use std::time::Duration;
use transom_testkit::embedded::{self, Client};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(super) struct Plane(Client);

pub(super) struct Reply {
    pub status: u16,
    /// What clients print beside the answer.
    pub warnings: Vec<String>,
    pub body: Value,
}

impl From<embedded::Reply> for Reply {
    fn from(reply: embedded::Reply) -> Self {
        let warnings = reply.warnings().into_iter().map(str::to_owned).collect();
        Self { status: reply.status, warnings, body: reply.json() }
    }
}

impl Plane {
    pub(super) async fn with_crossplane() -> Self {
        let plane = Self(Client::in_memory().await);
        for crd in transom_xapi::crds() {
            plane.define(&crd).await;
        }
        plane
    }

    /// Creates a CRD and waits until its objects are served.
    pub(super) async fn define(&self, crd: &Value) {
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

    pub(super) async fn get(&self, path: &str) -> Value {
        self.0.get(path).await.json()
    }

    pub(super) async fn post(&self, path: &str, object: &Value) -> Reply {
        self.0.post(path, object).await.into()
    }

    pub(super) async fn put(&self, path: &str, object: &Value) -> Reply {
        self.0.put(path, object).await.into()
    }

    pub(super) async fn delete(&self, path: &str) -> u16 {
        self.0.delete(path).await.status
    }

    /// The object is invalid, and the answer says why.
    pub(super) async fn refused(&self, path: &str, object: &Value, message: &str) {
        let reply = self.post(path, object).await;
        assert_eq!(reply.status, 422, "{object}: {}", reply.body);
        let said = reply.body["message"].as_str().unwrap();
        assert!(said.contains(message), "{said:?} does not say {message:?}");
    }
}
