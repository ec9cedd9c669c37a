//! How the registry for tests responds: as the distribution specification wants it, unless a fault is set.

use super::{Access, Body, Fault, REPOSITORY, Seen, State};
use base64::Engine as _;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, LINK, LOCATION, USER_AGENT, WWW_AUTHENTICATE,
};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use transom_packages::Digest;

const TOKEN: &str = "token-of-the-realm";

pub(super) async fn respond(state: &Mutex<State>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let path = head.uri.path().to_owned();
    let query = head.uri.query().unwrap_or_default().to_owned();
    let line = format!("{} {path}", head.method);
    let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let authorization = header(AUTHORIZATION);
    // The client asks once whether a server on this machine speaks TLS.
    if path == "/v2/" {
        return full(200, Bytes::new());
    }
    let (request, user_agent) = (line.clone(), header(USER_AGENT));
    let seen = Seen {
        request,
        query: query.clone(),
        authorization: authorization.clone(),
        user_agent,
        body: body.clone(),
    };
    state.lock().unwrap().seen.push(seen);
    let ordinary = if path == "/token" {
        token(authorization.as_deref(), &body)
    } else if let Some(refusal) = refuse(state, authorization.as_deref()) {
        return refusal;
    } else {
        ordinary(state, &head.method, &path, &query, &body, header(CONTENT_TYPE))
    };
    match take_fault(state, &line) {
        None => ordinary,
        Some(fault) => faulty(state, fault, ordinary, &path).await,
    }
}

fn take_fault(state: &Mutex<State>, line: &str) -> Option<Fault> {
    let mut state = state.lock().unwrap();
    let rule = state.rules.iter_mut().find(|rule| line.contains(rule.matches) && rule.times != Some(0))?;
    rule.times = rule.times.map(|times| times - 1);
    Some(rule.fault.clone())
}

fn refuse(state: &Mutex<State>, authorization: Option<&str>) -> Option<Response<Body>> {
    let access = state.lock().unwrap().access.clone();
    let (expected, challenge) = match access {
        Access::Anyone => return None,
        Access::Basic => {
            (format!("Basic {}", base64("user:password")), "Basic realm=\"registry\"".to_owned())
        }
        Access::Bearer { realm } => (
            format!("Bearer {TOKEN}"),
            format!("Bearer realm=\"{realm}\",service=\"registry\",scope=\"evil\""),
        ),
    };
    if authorization == Some(&expected) {
        return None;
    }
    // A hostile registry repeats what it was sent.
    let echo = authorization.unwrap_or_default();
    let body = format!(r#"{{"errors":[{{"code":"{echo}","message":"{echo}"}}]}}"#);
    let mut response = full(401, body.into());
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge.parse().unwrap());
    Some(response)
}

fn base64(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn token(authorization: Option<&str>, body: &[u8]) -> Response<Body> {
    let by_password = authorization == Some(&format!("Basic {}", base64("user:password")));
    let by_identity = String::from_utf8_lossy(body).contains("refresh_token=identity");
    if by_password || by_identity {
        return full(200, format!(r#"{{"token":"{TOKEN}","expires_in":300}}"#).into());
    }
    full(401, Bytes::new())
}

fn ordinary(
    state: &Mutex<State>,
    method: &Method,
    path: &str,
    query: &str,
    body: &Bytes,
    content_type: Option<String>,
) -> Response<Body> {
    let Some((repository, area, rest)) = split(path) else { return full(404, Bytes::new()) };
    let mut state = state.lock().unwrap();
    match (method, Some((area, rest))) {
        (&Method::PUT, Some(("manifests", name))) => {
            let (stored, digest) =
                ((content_type.unwrap_or_default(), body.clone()), Digest::of(body).to_string());
            state.manifests.insert(key(repository, &digest), stored.clone());
            state.manifests.insert(key(repository, name), stored);
            full(201, Bytes::new())
        }
        (_, Some(("manifests", name))) => match state.manifests.get(&key(repository, name)) {
            None => full(404, r#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#.into()),
            Some((media_type, bytes)) => {
                let mut response = full(200, bytes.clone());
                response.headers_mut().insert(CONTENT_TYPE, media_type.parse().unwrap());
                let digest = Digest::of(bytes).to_string();
                response.headers_mut().insert("docker-content-digest", digest.parse().unwrap());
                response
            }
        },
        (&Method::POST, Some(("blobs", "uploads/"))) => {
            let location = format!("/v2/{repository}/blobs/uploads/1?state=x");
            let mut response = full(202, Bytes::new());
            response.headers_mut().insert(LOCATION, location.parse().unwrap());
            response
        }
        (&Method::PUT, Some(("blobs", "uploads/1"))) => {
            let digest = Digest::of(body).to_string();
            let status = if query.ends_with(&format!("digest={digest}")) { 201 } else { 400 };
            state.blobs.insert(digest, body.clone());
            full(status, Bytes::new())
        }
        (_, Some(("blobs", digest))) => match state.blobs.get(digest) {
            None => full(404, Bytes::new()),
            Some(bytes) => full(200, bytes.clone()),
        },
        (_, Some(("tags", "list"))) if repository == REPOSITORY => tags(&state, query),
        (_, Some(("tags", "list"))) => pushed_tags(&state, repository),
        _ => full(404, Bytes::new()),
    }
}

/// Repository, area (`manifests`, `blobs`, `tags`) and the rest of a path.
fn split(path: &str) -> Option<(&str, &str, &str)> {
    let path = path.strip_prefix("/v2/")?;
    ["manifests", "blobs", "tags"].into_iter().find_map(|area| {
        let (repository, rest) = path.split_once(&format!("/{area}/"))?;
        Some((repository, area, rest))
    })
}

/// The key of a manifest.
pub(super) fn key(repository: &str, name: &str) -> String {
    if repository == REPOSITORY { name.to_owned() } else { format!("{repository}:{name}") }
}

/// All tags of a repository, on one page. A repository without tags is not known.
fn pushed_tags(state: &State, repository: &str) -> Response<Body> {
    let tag = |key: &String| key.strip_prefix(repository)?.strip_prefix(':').map(str::to_owned);
    let tags: Vec<String> =
        state.manifests.keys().filter_map(tag).filter(|tag| !tag.starts_with("sha256:")).collect();
    if tags.is_empty() {
        return full(404, r#"{"errors":[{"code":"NAME_UNKNOWN"}]}"#.into());
    }
    full(200, serde_json::json!({"name": repository, "tags": tags}).to_string().into())
}

fn tags(state: &State, query: &str) -> Response<Body> {
    let last = query.split('&').find_map(|pair| pair.strip_prefix("last="));
    let start = last.and_then(|last| state.tags.iter().position(|tag| tag == last)).map_or(0, |at| at + 1);
    let size = if state.page == 0 { usize::MAX } else { state.page };
    let page: Vec<&String> = state.tags.iter().skip(start).take(size).collect();
    let body = serde_json::json!({"name": "acme/package", "tags": page}).to_string();
    let mut response = full(200, body.into());
    if start + page.len() < state.tags.len() {
        let next = format!("</v2/acme/package/tags/list?n=1000&last={}>; rel=\"next\"", page.last().unwrap());
        response.headers_mut().insert(LINK, next.parse().unwrap());
    }
    response
}

async fn faulty(state: &Mutex<State>, fault: Fault, ordinary: Response<Body>, path: &str) -> Response<Body> {
    match fault {
        Fault::Status(status, headers) => {
            let mut response = full(status, Bytes::new());
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        Fault::Redirect(to) => redirect(&to),
        Fault::RedirectToItself => redirect(path),
        Fault::HangBeforeHeaders => std::future::pending().await,
        Fault::HangAfterHeaders => partial(state, ordinary, false, 0).await,
        Fault::HangWithinBody => partial(state, ordinary, false, 1).await,
        Fault::Truncate => partial(state, ordinary, true, 1).await,
        Fault::Replace(bytes) => full(200, bytes),
        Fault::Endless(bytes) => endless(bytes),
        Fault::WithoutDigest => {
            let mut response = ordinary;
            response.headers_mut().remove("docker-content-digest");
            response
        }
        Fault::NamesDigest(digest) => {
            let mut response = ordinary;
            response.headers_mut().insert("docker-content-digest", digest.parse().unwrap());
            response
        }
    }
}

fn redirect(to: &str) -> Response<Body> {
    let mut response = full(307, Bytes::new());
    response.headers_mut().insert(LOCATION, to.parse().unwrap());
    response
}

fn full(status: u16, body: Bytes) -> Response<Body> {
    let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(status).body(body).unwrap()
}

/// The ordinary headers with none or half of the body; then the connection ends, or nothing happens.
async fn partial(state: &Mutex<State>, ordinary: Response<Body>, end: bool, halves: usize) -> Response<Body> {
    let (mut head, body) = ordinary.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let (sender, receiver) = mpsc::channel(4);
    if halves > 0 {
        sender.try_send(Ok(bytes.slice(..bytes.len() / 2))).unwrap();
    }
    if end {
        sender.try_send(Err(std::io::Error::other("truncated"))).unwrap();
    }
    state.lock().unwrap().open.push(sender);
    head.headers.insert(CONTENT_LENGTH, bytes.len().into());
    Response::from_parts(head, StreamBody::new(Receiver(receiver)).boxed_unsync())
}

fn endless(bytes: u64) -> Response<Body> {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        let piece = Bytes::from(vec![b' '; 64 << 10]);
        for _ in 0..bytes.div_ceil(64 << 10) {
            if sender.send(Ok(piece.clone())).await.is_err() {
                return;
            }
        }
    });
    Response::new(StreamBody::new(Receiver(receiver)).boxed_unsync())
}

struct Receiver(mpsc::Receiver<std::io::Result<Bytes>>);

impl futures_util::Stream for Receiver {
    type Item = std::io::Result<Frame<Bytes>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|next| next.map(|next| next.map(Frame::data)))
    }
}
