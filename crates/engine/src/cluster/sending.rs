//! Sending requests: deadlines, `Retry-After`, and the check before each write that this process still holds its shard.

use super::Cluster;
use crate::error::{BoxError, Error, ErrorContext, Result};
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::client::Body;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use transom_object::GroupVersionKind;

/// How long the server may take to answer. It gives up itself after a minute.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(75);
/// How long a request waits altogether when the server asks to be asked later.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest single wait that the server can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(15);
/// The wait when the server does not say how long. It doubles with each further attempt.
const FIRST_RETRY_AFTER: Duration = Duration::from_millis(200);
/// The longest response that is accepted from a foreign cluster.
const MAX_FOREIGN_RESPONSE: usize = 64 << 20;
/// The most that all pages of a list of a foreign cluster may have.
const MAX_FOREIGN_LIST: usize = 256 << 20;
/// What a page counts for at least: the pages of a list must come to an end also if they are empty.
pub(super) const MIN_PAGE_BYTES: usize = 64 << 10;

impl Cluster {
    /// The response to a request. A write is a span of its own.
    pub(super) async fn send(
        &self,
        method: &str,
        path: String,
        content: &str,
        body: Vec<u8>,
    ) -> Result<Value> {
        if method == "GET" {
            return Ok(self.transmit(method, path, content, body).await?.0);
        }
        let attributes = || vec![("method", method.to_owned()), ("path", path.clone())];
        let sending = self.transmit(method, path.clone(), content, body);
        Ok(transom_telemetry::traced("write", attributes, sending).await?.0)
    }

    /// The response to a request, and how many bytes it had.
    pub(super) async fn transmit(
        &self,
        method: &str,
        path: String,
        content: &str,
        body: Vec<u8>,
    ) -> Result<(Value, usize)> {
        let response = self.attempt(method, &path, super::JSON, content, &body).await?;
        let bytes = self.collect(method, &path, response.into_body()).await?;
        let unreadable = |e| Error::unreadable(format!("cannot read the response to {method} {path}"), e);
        Ok((serde_json::from_slice(&bytes).map_err(unreadable)?, bytes.len()))
    }

    /// The whole body of a response.
    pub(super) async fn collect(&self, method: &str, path: &str, body: Body) -> Result<Bytes> {
        let limit = if self.foreign { MAX_FOREIGN_RESPONSE } else { usize::MAX };
        let collected = timeout(REQUEST_TIMEOUT, Limited::new(body, limit).collect()).await;
        let collected = collected.map_err(|_| slow(method, path))?;
        Ok(collected.map_err(|e| broken(method, path, e))?.to_bytes())
    }

    /// Whether so many bytes of a list are accepted.
    pub(super) fn check_list(&self, gvk: &GroupVersionKind, bytes: usize) -> Result<()> {
        if !self.foreign || bytes <= MAX_FOREIGN_LIST {
            return Ok(());
        }
        let (kind, mib) = (&gvk.kind, MAX_FOREIGN_LIST >> 20);
        Err(Error::domain(format!(
            "the list of kind {kind} is longer than the {mib} MiB that are accepted from this cluster: select fewer objects"
        )))
    }

    /// The response to a GET in a form, as it arrives.
    pub(super) async fn stream(&self, path: &str, accept: &str) -> Result<Body> {
        self.attempt("GET", path, accept, super::JSON, &[]).await.map(Response::into_body)
    }

    /// Sends a request until the server does not ask to be asked later.
    async fn attempt(
        &self,
        method: &str,
        path: &str,
        accept: &str,
        content: &str,
        body: &[u8],
    ) -> Result<Response<Body>> {
        let began = Instant::now();
        let mut wait = FIRST_RETRY_AFTER;
        loop {
            // Before every attempt: time has passed.
            let limit = if is_write(method, path) { self.ownership.may_write()? } else { None };
            let limit = limit.map_or(REQUEST_TIMEOUT, |left| left.min(REQUEST_TIMEOUT));
            let mut request = request(method, path, accept, content, body.to_vec())?;
            if let Some(user) = self.user.as_deref() {
                impersonate(&mut request, user)?;
            }
            let sending = self.client.send(request);
            let response =
                timeout(limit, sending).await.map_err(|_| slow(method, path))?.map_err(transport)?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            let after = retry_after(&response).map(|asked| asked.unwrap_or(wait).min(MAX_RETRY_AFTER));
            let bytes = self.collect(method, path, response.into_body()).await?;
            match after.filter(|after| began.elapsed() + *after < BUSY_TIMEOUT) {
                Some(after) => tokio::time::sleep(after).await,
                None => return Err(refusal(status.as_u16(), &bytes)),
            }
            wait *= 2;
        }
    }
}

/// Whether a request changes objects. Reviews are created and change nothing.
fn is_write(method: &str, path: &str) -> bool {
    let is_review = ["/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"];
    method != "GET" && !is_review.iter().any(|group| path.starts_with(group))
}

/// Whether the server did nothing because it is busy; then, how long to wait if it says so.
fn retry_after(response: &Response<Body>) -> Option<Option<Duration>> {
    let header = response.headers().get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let asked = header.and_then(|text| text.parse().ok()).map(Duration::from_secs);
    match response.status() {
        StatusCode::TOO_MANY_REQUESTS => Some(asked),
        // A server that starts or stops. Without the header it may be anything between here and the server.
        StatusCode::SERVICE_UNAVAILABLE if asked.is_some() => Some(asked),
        _ => None,
    }
}

fn slow(method: &str, path: &str) -> Error {
    Error::transport(format!("no answer to {method} {path} in time"))
}

fn request(
    method: &str,
    path: &str,
    accept: &str,
    content: &str,
    body: Vec<u8>,
) -> Result<http::Request<Body>> {
    let request = http::Request::builder().method(method).uri(path).header("accept", accept);
    let request = if body.is_empty() { request } else { request.header("content-type", content) };
    request.body(Body::from(body)).map_err(Error::transport).context(format!("cannot send {method} {path}"))
}

/// Has the server decide by the rights of another user. The server knows the groups of a service account, so that the right
/// to impersonate groups is not needed.
fn impersonate(request: &mut http::Request<Body>, user: &str) -> Result<()> {
    let user = http::HeaderValue::from_str(user).map_err(Error::transport);
    let user = user.context("the name of a user cannot be sent")?;
    request.headers_mut().insert("impersonate-user", user);
    Ok(())
}

fn transport(error: kube::Error) -> Error {
    Error::transport(error)
}

/// The body of a response did not arrive.
fn broken(method: &str, path: &str, error: BoxError) -> Error {
    if !error.is::<LengthLimitError>() {
        return Error::transport(error);
    }
    let mib = MAX_FOREIGN_RESPONSE >> 20;
    let words = "that are accepted from this cluster";
    Error::domain(format!("the response to {method} {path} is longer than the {mib} MiB {words}"))
}

/// A refusal with the fields of the server's Status; without a Status, with the body as message.
fn refusal(code: u16, body: &[u8]) -> Error {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |field: &str| status.get(field).and_then(Value::as_str).map(str::to_owned);
    let message = text("message").unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned());
    Error::Refused { code, reason: text("reason").unwrap_or_default(), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tower::service_fn;

    /// A server that answers the first requests with these, and all others with an empty object.
    fn server(answers: &'static [(u16, Option<&'static str>)]) -> (Cluster, Arc<AtomicUsize>) {
        let asked: Arc<AtomicUsize> = Arc::default();
        let count = asked.clone();
        let service = service_fn(move |_: http::Request<Body>| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            let (code, after) = answers.get(n).copied().unwrap_or((200, None));
            let mut response = Response::builder().status(code);
            if let Some(after) = after {
                response = response.header("retry-after", after);
            }
            std::future::ready(Ok::<_, std::convert::Infallible>(
                response.body(Body::from(b"{}".to_vec())).unwrap(),
            ))
        });
        (Cluster::new(kube::Client::new(service, "default")), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_server_is_asked_later() {
        let (cluster, asked) = server(&[(429, Some("3")), (429, None), (503, Some("1"))]);
        let began = Instant::now();
        assert!(cluster.get_path("/x").await.is_ok());
        assert_eq!(asked.load(Ordering::SeqCst), 4);
        assert!(began.elapsed() >= Duration::from_secs(4) && began.elapsed() < Duration::from_secs(6));
        let (cluster, asked) = server(&[(503, None)]);
        assert!(cluster.get_path("/x").await.is_err());
        assert_eq!(asked.load(Ordering::SeqCst), 1, "it may have done what was asked");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stays_busy_is_given_up() {
        static BUSY: [(u16, Option<&str>); 64] = [(429, Some("30")); 64];
        let (cluster, _) = server(&BUSY);
        let began = Instant::now();
        assert_eq!(cluster.get_path("/x").await.unwrap_err().refusal(), Some((429, "")));
        assert!(began.elapsed() <= BUSY_TIMEOUT);
    }

    /// A server whose every response is a page with these bytes in one object, and is followed by another page.
    fn endless(bytes: usize, status: u16) -> Cluster {
        let service = service_fn(move |request: http::Request<Body>| {
            let kinds = r#"{"resources": [{"name": "maps", "kind": "Map", "namespaced": true}]}"#.to_owned();
            let page = || {
                let text = "x".repeat(bytes);
                format!(r#"{{"metadata": {{"continue": "more"}}, "items": [{{"data": {{"x": "{text}"}}}}]}}"#)
            };
            let (code, body) = match request.uri().path() {
                "/apis/e/v1" => (200, kinds),
                _ => (status, page()),
            };
            let response = Response::builder().status(code).body(Body::from(body.into_bytes())).unwrap();
            std::future::ready(Ok::<_, std::convert::Infallible>(response))
        });
        Cluster::new(kube::Client::new(service, "default"))
    }

    #[tokio::test]
    async fn a_foreign_cluster_cannot_send_more_than_fits_into_memory() {
        let gvk = GroupVersionKind::new("e", "v1", "Map");
        for status in [200, 409] {
            let cluster = endless(MAX_FOREIGN_RESPONSE, status);
            let refused = cluster.clone().foreign().get(&gvk, "n", "x").await.unwrap_err();
            let words = "the response to GET /apis/e/v1/namespaces/n/maps/x is longer than the 64 MiB that are accepted";
            assert!(refused.chain().to_string().starts_with(words), "{}", refused.chain());
            // The plane's own server is trusted.
            let read = cluster.get(&gvk, "n", "x").await;
            assert!(read.is_ok() || read.unwrap_err().is_conflict());
        }
        // Big pages, and pages with nothing in them.
        for bytes in [32 << 20, 0] {
            let cluster = endless(bytes, 200).foreign();
            let refused = cluster.list(&gvk, "", &Default::default()).await.unwrap_err();
            let words = "the list of kind Map is longer than the 256 MiB";
            assert!(refused.chain().to_string().starts_with(words), "{}", refused.chain());
            let (kind, mut length) = (cluster.kind(&gvk).await.unwrap(), 0);
            let refused = loop {
                if let Err(e) = cluster.page(&kind, "", super::super::Extent::Whole, &mut length).await {
                    break e;
                }
            };
            assert!(refused.chain().to_string().starts_with(words), "{}", refused.chain());
        }
    }

    #[tokio::test]
    async fn another_user_is_impersonated_for_objects_and_not_for_discovery() {
        let seen: Arc<std::sync::Mutex<Vec<(String, String)>>> = Arc::default();
        let log = seen.clone();
        let service = service_fn(move |request: http::Request<Body>| {
            let user =
                request.headers().get("impersonate-user").map(|user| user.to_str().unwrap().to_owned());
            log.lock().unwrap().push((request.uri().path().to_owned(), user.unwrap_or_default()));
            let kinds = br#"{"resources": [{"name": "maps", "kind": "Map", "namespaced": true}]}"#.to_vec();
            std::future::ready(Ok::<_, std::convert::Infallible>(Response::new(Body::from(kinds))))
        });
        let cluster = Cluster::new(kube::Client::new(service, "default"));
        let gvk = transom_object::GroupVersionKind::new("e", "v1", "Map");
        let account = "system:serviceaccount:a:b";
        cluster.acting_as(account).get(&gvk, "n", "x").await.unwrap();
        cluster.get(&gvk, "n", "x").await.unwrap();
        let of = |path: &str, user: &str| (path.to_owned(), user.to_owned());
        let object = "/apis/e/v1/namespaces/n/maps/x";
        assert_eq!(*seen.lock().unwrap(), [of("/apis/e/v1", ""), of(object, account), of(object, "")]);
        assert!(cluster.acting_as("a\nb").get(&gvk, "n", "x").await.is_err(), "no header can be smuggled in");
    }

    #[tokio::test(start_paused = true)]
    async fn the_right_to_write_is_checked_before_every_attempt() {
        let ownership = crate::Ownership::shared(1);
        let (cluster, asked) = server(&[(429, Some("12"))]);
        let cluster = cluster.writing_by(&ownership);
        ownership.begin(crate::LEADER_SHARD, Instant::now() + Duration::from_secs(10));
        let written = cluster.send("PUT", "/x".to_owned(), super::super::JSON, b"{}".to_vec()).await;
        assert!(written.unwrap_err().is_not_held());
        assert_eq!(asked.load(Ordering::SeqCst), 1, "the term was over before the second attempt");
        assert!(cluster.get_path("/x").await.is_ok(), "reading is always allowed");
        let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned();
        assert!(cluster.send("POST", review, super::super::JSON, b"{}".to_vec()).await.is_ok());
    }
}
