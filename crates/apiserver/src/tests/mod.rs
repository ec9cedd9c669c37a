//! The server as its clients see it, without a network.

mod health;
mod namespaces;
mod services;
mod warnings;

use crate::{Identity, Options, Server};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use transom_store::Store;

/// An admin's client.
#[derive(Clone)]
struct Client(Server);

struct Reply {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Reply {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect()
    }
}

impl Client {
    async fn over(store: &Store) -> Self {
        Self(Server::start(store.clone(), Options::default()).await.unwrap())
    }

    async fn in_memory() -> Self {
        Self::over(&Store::in_memory(transom_store::Options::default())).await
    }

    async fn send(&self, method: Method, path: &str, media: &str, body: &Value) -> Reply {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", media);
        let mut request = request.body(Full::<bytes::Bytes>::from(bytes)).unwrap();
        request.extensions_mut().insert(Identity::admin("admin"));
        let (parts, body) = self.0.handle(request).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Reply { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, "application/json", &Value::Null).await
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, "application/json", body).await
    }

    async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PUT, path, "application/json", body).await
    }

    async fn merge(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PATCH, path, "application/merge-patch+json", body).await
    }

    async fn delete(&self, path: &str) -> Reply {
        self.send(Method::DELETE, path, "application/json", &Value::Null).await
    }
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}
