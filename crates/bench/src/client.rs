//! The cheapest realistic client: one HTTP/1.1 connection over TLS, kept open, one request at a time.

use super::target::Target;
use crate::failure::Failure;
use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

pub(super) const JSON: &str = "application/json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";
pub(super) const MERGE: &str = "application/merge-patch+json";

pub(super) struct Client {
    target: Arc<Target>,
    requests: SendRequest<Full<Bytes>>,
    connection: JoinHandle<()>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Client {
    pub(super) async fn connect(target: &Arc<Target>) -> Result<Self, Failure> {
        let failed = |e: &dyn std::fmt::Display| {
            Failure::new(format!("cannot connect to {}: {e}", target.authority))
                .remedy("start the server the kubeconfig names")
        };
        let stream = TcpStream::connect(&target.authority).await.map_err(|e| failed(&e))?;
        stream.set_nodelay(true).map_err(|e| failed(&e))?;
        let tls = TlsConnector::from(target.tls.clone())
            .connect(target.name.clone(), stream)
            .await
            .map_err(|e| failed(&e))?;
        let (requests, connection) = handshake(TokioIo::new(tls)).await.map_err(|e| failed(&e))?;
        let connection = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { target: target.clone(), requests, connection })
    }

    /// Sends a request and reads the response to its end, with any status.
    pub(super) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let response = self.send(method, path, content_type, body).await?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|e| Failure::new(format!("{path}: {e}")))?;
        Ok((status, body.to_bytes()))
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let failed = |e: &dyn std::fmt::Display| Failure::new(format!("{path}: {e}"));
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.target.authority)
            .header(header::ACCEPT, JSON);
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        if let Some(credential) = &self.target.credential {
            request = request.header(header::AUTHORIZATION, credential);
        }
        let request = request.body(Full::new(body)).map_err(|e| failed(&e))?;
        self.requests.ready().await.map_err(|e| failed(&e))?;
        self.requests.send_request(request).await.map_err(|e| failed(&e))
    }

    /// Like `ask`, but a response other than success ends the run, because it would measure something else.
    pub(super) async fn must(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<Bytes, Failure> {
        let (status, answer) = self.ask(method.clone(), path, content_type, body).await?;
        if status.is_success() {
            return Ok(answer);
        }
        let text = String::from_utf8_lossy(&answer[..answer.len().min(500)]).into_owned();
        Err(Failure::new(format!("{method} {path} was answered with {status}: {text}")))
    }

    pub(super) async fn get(&mut self, path: &str) -> Result<Bytes, Failure> {
        self.must(Method::GET, path, JSON, Bytes::new()).await
    }

    pub(super) async fn create(&mut self, path: &str, body: Bytes) -> Result<Bytes, Failure> {
        self.must(Method::POST, path, JSON, body).await
    }

    pub(super) async fn apply(&mut self, path: &str, body: Bytes) -> Result<Bytes, Failure> {
        let path = format!("{path}?fieldManager=bench&force=true");
        self.must(Method::PATCH, &path, APPLY, body).await
    }

    /// Changes one object by a merge patch.
    pub(super) async fn merge(&mut self, path: &str, patch: &Value) -> Result<Bytes, Failure> {
        self.must(Method::PATCH, path, MERGE, transom_object::json::encode(patch).into()).await
    }

    /// Watches all existing objects and their changes. The connection is used for nothing else.
    pub(super) async fn watch(mut self, path: &str) -> Result<Watch, Failure> {
        let path = format!("{path}{}watch=true", if path.contains('?') { '&' } else { '?' });
        let body = self.stream(&path).await?;
        Ok(Watch { body, read: BytesMut::new(), path, client: self })
    }

    async fn stream(&mut self, path: &str) -> Result<Incoming, Failure> {
        let response = self.send(Method::GET, path, JSON, Bytes::new()).await?;
        match response.status().is_success() {
            true => Ok(response.into_body()),
            false => Err(Failure::new(format!("watching {path} was answered with {}", response.status()))),
        }
    }
}

/// A stream of changes.
pub(super) struct Watch {
    body: Incoming,
    /// Received and not yet returned, from the beginning of an event.
    read: BytesMut,
    path: String,
    client: Client,
}

impl Watch {
    /// The type of the next event, and its object. A watch that the server ends is started again, and shows all objects
    /// first: kube-apiserver ends those that are read more slowly than objects change.
    pub(super) async fn next(&mut self) -> Result<(String, Value), Failure> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line = self.read.split_to(end + 1);
                let mut event: Value = serde_json::from_slice(&line).map_err(|e| {
                    Failure::new(format!("{} sent something that is not an event: {e}", self.path))
                })?;
                let word = event["type"].as_str().unwrap_or_default().to_owned();
                return Ok((word, event["object"].take()));
            }
            match self.body.frame().await {
                None => self.restart().await?,
                Some(frame) => {
                    let frame = frame.map_err(|e| Failure::new(format!("{}: {e}", self.path)))?;
                    frame.data_ref().into_iter().for_each(|data| self.read.extend_from_slice(data));
                }
            }
        }
    }
    async fn restart(&mut self) -> Result<(), Failure> {
        self.client = Client::connect(&self.client.target).await?;
        self.body = self.client.stream(&self.path).await?;
        self.read.clear();
        Ok(())
    }
}
