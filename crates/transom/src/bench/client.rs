//! The cheapest honest client: one HTTP/1.1 connection over TLS, kept open, one request at a time.

use super::target::Target;
use crate::failure::Failure;
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

pub(super) const JSON: &str = "application/json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";

pub(super) struct Client<'a> {
    target: &'a Target,
    requests: SendRequest<Full<Bytes>>,
    connection: JoinHandle<()>,
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl<'a> Client<'a> {
    pub(super) async fn connect(target: &'a Target) -> Result<Self, Failure> {
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
        Ok(Self { target, requests, connection })
    }

    /// Any answer, read to its end.
    pub(super) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), Failure> {
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
        let response = self.requests.send_request(request).await.map_err(|e| failed(&e))?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|e| failed(&e))?.to_bytes();
        Ok((status, body))
    }

    /// An answer of success; anything else ends the run, because it would measure something else.
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
}
