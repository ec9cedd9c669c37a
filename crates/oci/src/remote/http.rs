//! Requests: sent with limits of time and redirects, sent again when a server is overloaded, answered with bodies that
//! are read with limits of size.
//!
//! `Authorization` goes to the origin (scheme, host and port) that a request was made for and to no other, whatever
//! redirects say.

use super::attempts::Attempts;
use super::connect::Connector;
use super::options::RemoteOptions;
use crate::failure::{chain, innermost, invalid, unauthorized, unavailable, untrusted};
use crate::source::Chunks;
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, DATE, HeaderName, LOCATION, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use transom_packages::RegistryError;

const REDIRECTS_MAX: u32 = 10;

/// A body that is sent.
pub(super) type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A request before it is sent, so that it can be sent more than once.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) authorization: Option<HeaderValue>,
    pub(super) body: Bytes,
}

impl Call {
    pub(super) fn new(method: Method, uri: Uri) -> Self {
        Self { method, uri, headers: HeaderMap::new(), authorization: None, body: Bytes::new() }
    }

    pub(super) fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.append(name, value);
        }
        self
    }
}

/// Sends requests.
pub(super) struct Http {
    client: Client<Connector, Body>,
    pub(super) options: RemoteOptions,
    user_agent: HeaderValue,
    sent: AtomicU64,
    pub(super) attempts: Attempts,
}

/// A response whose body was not read yet.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// Where the response came from, after redirects.
    pub(super) uri: Uri,
    body: Incoming,
    idle: Duration,
}

impl Http {
    pub(super) fn new(options: RemoteOptions) -> Result<Self, RegistryError> {
        let tls = super::tls::config(&options)?;
        let connector = Connector::new(tls, options.proxies.clone(), options.connect_timeout);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .build(connector);
        let user_agent = HeaderValue::from_str(&options.user_agent)
            .map_err(|_| invalid("User-Agent", "has characters that a header cannot have"))?;
        Ok(Self { client, options, user_agent, sent: AtomicU64::new(0), attempts: Attempts::default() })
    }

    /// How many requests were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Sends a request, again if the server is overloaded or the connection is lost. The subject begins messages.
    pub(super) async fn send(&self, subject: &str, call: &Call) -> Result<Answer, RegistryError> {
        let attempt = || async {
            let answer = self.send_once(subject, call).await?;
            if !is_overload(answer.status) {
                return Ok(answer);
            }
            Err(overloaded(subject, &host(&answer.uri), answer.status, retry_after(&answer.headers)))
        };
        self.attempts.run(&self.options, self.options.attempts, attempt).await
    }

    /// Sends a request once, following redirects.
    async fn send_once(&self, subject: &str, call: &Call) -> Result<Answer, RegistryError> {
        let mut uri = call.uri.clone();
        let mut authorization = call.authorization.clone();
        for _ in 0..=REDIRECTS_MAX {
            let body = Full::new(call.body.clone()).map_err(|never| match never {}).boxed_unsync();
            let request = self.request(call, &uri, authorization.as_ref(), body, subject)?;
            let response = self.answer(subject, &uri, request, self.options.response_timeout).await?;
            let follows =
                matches!(call.method, Method::GET | Method::HEAD) && response.status.is_redirection();
            let Some(location) = response.headers.get(LOCATION).filter(|_| follows) else {
                return Ok(response);
            };
            let next = location.to_str().ok().and_then(|location| join(&uri, location));
            let next =
                next.ok_or_else(|| invalid(subject, format_args!("{} redirects to no address", host(&uri))))?;
            if !same_origin(&uri, &next) {
                authorization = None;
            }
            uri = next;
        }
        Err(invalid(subject, format_args!("{} redirects more than {REDIRECTS_MAX} times", host(&call.uri))))
    }

    /// Sends a body of any length, once and without redirects.
    pub(super) async fn send_body(
        &self,
        subject: &str,
        call: &Call,
        body: Body,
    ) -> Result<Answer, RegistryError> {
        let request = self.request(call, &call.uri, call.authorization.as_ref(), body, subject)?;
        self.answer(subject, &call.uri, request, self.options.upload_deadline).await
    }

    fn request(
        &self,
        call: &Call,
        uri: &Uri,
        authorization: Option<&HeaderValue>,
        body: Body,
        subject: &str,
    ) -> Result<Request<Body>, RegistryError> {
        self.check_address(subject, uri)?;
        let mut request = Request::new(body);
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = call.headers.clone();
        request.headers_mut().insert(USER_AGENT, self.user_agent.clone());
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        if uri.scheme_str() == Some("http") {
            // A proxy reads requests over plain HTTP itself; others are in a tunnel.
            let proxy = self.options.proxies.choose(uri).and_then(|proxy| proxy.authorization.clone());
            if let Some(proxy) = proxy {
                request.headers_mut().insert(http::header::PROXY_AUTHORIZATION, proxy);
            }
        }
        Ok(request)
    }

    /// Plain HTTP only where it is allowed; no user and password in an address.
    pub(super) fn check_address(&self, subject: &str, uri: &Uri) -> Result<(), RegistryError> {
        let refused = |problem: String| Err(invalid(subject, problem));
        let Some(authority) = uri.authority() else { return refused("an address without a host".to_owned()) };
        if authority.as_str().contains('@') {
            return refused(format!("an address at {} has a user, which is refused", authority.host()));
        }
        match uri.scheme_str() {
            Some("https") => Ok(()),
            Some("http") if self.options.allows_plain(authority) => Ok(()),
            _ => refused(format!(
                "{authority} would be reached without TLS, which is refused; use HTTPS, or allow plain HTTP for this host"
            )),
        }
    }

    async fn answer(
        &self,
        subject: &str,
        uri: &Uri,
        request: Request<Body>,
        timeout: Duration,
    ) -> Result<Answer, RegistryError> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let response = tokio::time::timeout(timeout, self.client.request(request)).await;
        let response: Response<Incoming> = match response {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.is_connect() => {
                return Err(unreachable(subject, uri, &innermost(&error)));
            }
            Ok(Err(error)) => {
                let problem = format!("{} did not send a whole response: {}", place(uri), innermost(&error));
                return Err(unavailable(subject, problem));
            }
            Err(_) => {
                let problem = format!("no response within {} s", timeout.as_secs_f32());
                return Err(unreachable(subject, uri, &problem));
            }
        };
        let (head, body) = response.into_parts();
        let (status, headers, idle) = (head.status, head.headers, self.options.idle_timeout);
        Ok(Answer { status, headers, uri: uri.clone(), body, idle })
    }
}

fn unreachable(subject: &str, uri: &Uri, problem: &str) -> RegistryError {
    if problem.contains("certificate") {
        let remedy = "add its certificate authority to the CA bundle if it is to be trusted";
        let problem = format_args!("{} is not trusted: {problem}; {remedy}", host(uri));
        return untrusted(subject, problem);
    }
    let remedy = if problem.contains("lookup address") {
        "check the name of the registry"
    } else {
        "check the name of the registry and its port, and that it runs"
    };
    unavailable(subject, format_args!("{} cannot be reached: {problem}; {remedy}", place(uri)))
}

/// Host and port of an address.
fn place(uri: &Uri) -> String {
    let tls = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
    format!("{}:{port}", uri.host().unwrap_or_default())
}

fn overloaded(subject: &str, host: &str, status: StatusCode, asked: Option<Duration>) -> RegistryError {
    let wait = asked.map(|asked| format!(" and Retry-After {} s", asked.as_secs())).unwrap_or_default();
    let problem = format!("{host} responds with status {}{wait}", status.as_u16());
    RegistryError { retry_after: asked, ..unavailable(subject, problem) }
}

/// Whether another attempt may succeed. That a server does not implement a method or a version of HTTP stays so.
fn is_overload(status: StatusCode) -> bool {
    let is_permanent = matches!(status, StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED);
    let asks_again = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    asks_again || (status.is_server_error() && !is_permanent)
}

/// `Retry-After` in seconds, or as a date: then relative to the server's own date, so that no clock is needed.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let asked = text(RETRY_AFTER)?.trim();
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let (until, now) = (httpdate::parse_http_date(asked).ok()?, httpdate::parse_http_date(text(DATE)?).ok()?);
    Some(until.duration_since(now).unwrap_or_default())
}

/// Scheme and host of an address: its path and query may be signed, which makes them credentials.
pub(super) fn host(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let without_user = authority.rsplit('@').next().unwrap_or_default();
    format!("{}://{without_user}", uri.scheme_str().unwrap_or_default())
}

pub(super) fn same_origin(a: &Uri, b: &Uri) -> bool {
    let port = |uri: &Uri| uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    a.scheme_str() == b.scheme_str() && host(a) == host(b) && port(a) == port(b)
}

/// The address of a `Location` or `Link`, which may be relative.
pub(super) fn join(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next().unwrap_or_default();
    let (scheme, authority) = (base.scheme_str()?, base.authority()?);
    let address = if location.contains("://") {
        location.to_owned()
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else if location.starts_with('?') {
        format!("{scheme}://{authority}{}{location}", base.path())
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    };
    address.parse().ok()
}

impl Answer {
    /// The whole body, if it is not larger than allowed.
    pub(super) async fn bytes(mut self, subject: &str, bytes_max: u64) -> Result<Bytes, RegistryError> {
        let too_large = || {
            invalid(subject, format_args!("the response has more than {bytes_max} bytes, which is refused"))
        };
        if self.content_length().is_some_and(|length| length > bytes_max) {
            return Err(too_large());
        }
        let mut all = BytesMut::new();
        while let Some(piece) = self.piece(subject).await? {
            if all.len() as u64 + piece.len() as u64 > bytes_max {
                return Err(too_large());
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    pub(super) fn content_length(&self) -> Option<u64> {
        self.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// The next piece of the body.
    async fn piece(&mut self, subject: &str) -> Result<Option<Bytes>, RegistryError> {
        loop {
            let frame = match tokio::time::timeout(self.idle, self.body.frame()).await {
                Err(_) => {
                    let problem = format!("{} paused for {} s", host(&self.uri), self.idle.as_secs_f32());
                    return Err(unavailable(subject, problem));
                }
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    let problem = format!("{} ended its response early: {}", host(&self.uri), chain(&error));
                    return Err(unavailable(subject, problem));
                }
                Ok(Some(Ok(frame))) => frame,
            };
            match frame.into_data() {
                Ok(data) if !data.is_empty() => return Ok(Some(data)),
                _ => {}
            }
        }
    }

    /// The body, piece by piece.
    pub(super) fn chunks(self, subject: String) -> Box<dyn Chunks> {
        Box::new(AnswerChunks { answer: self, subject })
    }

    /// The error of a response that is neither success nor overload. `missing` says what there is none of.
    pub(super) async fn failure(self, subject: &str, missing: &str) -> RegistryError {
        let (status, host, asked) = (self.status, host(&self.uri), retry_after(&self.headers));
        let code = self.error_code().await.map(|code| format!(" ({code})")).unwrap_or_default();
        match status {
            StatusCode::NOT_FOUND => {
                crate::failure::not_found(subject, format_args!("{host} has no such {missing}{code}"))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => unauthorized(
                subject,
                format_args!("{host} refuses access with status {}{code}", status.as_u16()),
            ),
            status if is_overload(status) => overloaded(subject, &host, status, asked),
            status => invalid(subject, format_args!("{host} responds with status {}{code}", status.as_u16())),
        }
    }

    /// The code of a registry's error. Its message is not repeated: it could contain what was sent.
    async fn error_code(self) -> Option<&'static str> {
        #[derive(serde::Deserialize)]
        struct Errors {
            errors: Vec<Error>,
        }
        #[derive(serde::Deserialize)]
        struct Error {
            code: String,
        }
        const CODES: [&str; 14] = [
            "BLOB_UNKNOWN",
            "BLOB_UPLOAD_INVALID",
            "BLOB_UPLOAD_UNKNOWN",
            "DIGEST_INVALID",
            "MANIFEST_BLOB_UNKNOWN",
            "MANIFEST_INVALID",
            "MANIFEST_UNKNOWN",
            "NAME_INVALID",
            "NAME_UNKNOWN",
            "SIZE_INVALID",
            "UNAUTHORIZED",
            "DENIED",
            "UNSUPPORTED",
            "TOOMANYREQUESTS",
        ];
        let body = self.bytes("", 16 << 10).await.ok()?;
        let errors: Errors = serde_json::from_slice(&body).ok()?;
        let code = &errors.errors.first()?.code;
        CODES.into_iter().find(|known| known == code)
    }
}

struct AnswerChunks {
    answer: Answer,
    subject: String,
}

#[async_trait]
impl Chunks for AnswerChunks {
    async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        self.answer.piece(&self.subject).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_repeated_after_failures_of_the_server_that_may_pass() {
        for (status, repeated) in [
            (200, false),
            (404, false),
            (408, true),
            (429, true),
            (500, true),
            (501, false),
            (502, true),
            (505, false),
            (507, true),
            (520, true),
            (599, true),
        ] {
            assert_eq!(is_overload(StatusCode::from_u16(status).unwrap()), repeated, "{status}");
        }
    }
}
