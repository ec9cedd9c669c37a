//! The API server in this process, on a store in memory, and clients for it that need no network.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use transom_apiserver::{ApiBody, Identity, Options, Server};
use transom_store::Store;

/// A server on an empty store.
pub async fn server() -> Server {
    server_with(&Store::in_memory(transom_store::Options::default()), Options::default()).await
}

/// A server on an empty store that evaluates RBAC.
pub async fn rbac_server() -> Server {
    let store = Store::in_memory(transom_store::Options::default());
    server_with(&store, Options { rbac: true, ..Options::default() }).await
}

/// A server on this store.
pub async fn server_with(store: &Store, options: Options) -> Server {
    Server::start(store.clone(), options).await.expect("the server starts")
}

/// A client for controllers, whose requests are authenticated as this identity.
#[cfg(feature = "kube")]
pub fn kube_client(server: &Server, identity: Identity) -> kube::Client {
    use tower::ServiceExt;
    let service = server.clone().map_request(move |mut request: Request<kube::client::Body>| {
        request.extensions_mut().insert(identity.clone());
        request
    });
    kube::Client::new(service, "default")
}

/// A client for controllers with the rights of an administrator.
#[cfg(feature = "kube")]
pub fn admin_kube_client(server: &Server) -> kube::Client {
    kube_client(server, Identity::admin("test"))
}

/// A client with the rights of an administrator, unless it is given another identity.
#[derive(Clone)]
pub struct Client {
    /// The server that it calls.
    pub server: Server,
    identity: Option<Identity>,
}

/// A response whose body was read to its end.
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; fails the test if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// Fails the test unless the response has this status code.
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// The warnings, as clients print them.
    pub fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect()
    }
}

impl Client {
    /// A client of a server on this store.
    pub async fn over(store: &Store) -> Self {
        Self::with(store, Options::default()).await
    }

    /// A client of a server on this store, with these options.
    pub async fn with(store: &Store, options: Options) -> Self {
        Self { server: server_with(store, options).await, identity: Some(Identity::admin("admin")) }
    }

    /// A client of a server on an empty store.
    pub async fn in_memory() -> Self {
        Self { server: server().await, identity: Some(Identity::admin("admin")) }
    }

    /// A client of the same server with another identity; without one, an anonymous client.
    pub fn seen_by(&self, identity: Option<Identity>) -> Self {
        Self { server: self.server.clone(), identity }
    }

    /// Sends a request and returns the response without reading its body.
    pub async fn open(&self, mut request: Request<Full<Bytes>>) -> Response<ApiBody> {
        if let Some(identity) = &self.identity {
            request.extensions_mut().insert(identity.clone());
        }
        self.server.handle(request).await
    }

    /// Sends a request with a body of a media type; `null` stands for no body.
    pub async fn send(&self, method: Method, path: &str, media: &str, body: &Value) -> Reply {
        self.send_with(method, path, &[("content-type", media.to_owned())], body).await
    }

    /// Sends a request with these headers; `null` stands for no body.
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

    /// GET.
    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, "application/json", &Value::Null).await
    }

    /// POST of a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, "application/json", body).await
    }

    /// PUT of a JSON body.
    pub async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PUT, path, "application/json", body).await
    }

    /// PATCH with a merge patch.
    pub async fn merge(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PATCH, path, "application/merge-patch+json", body).await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Reply {
        self.send(Method::DELETE, path, "application/json", &Value::Null).await
    }
}
