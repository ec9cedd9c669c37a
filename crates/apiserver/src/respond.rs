//! From the result of a verb to an HTTP response.

use crate::body::ApiBody;
use crate::negotiate::{Accept, Format};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::Write;
use transom_object::{Status, json, yaml};

/// Lists and documents above this size are compressed for clients that accept it.
const GZIP_ABOVE_BYTES: u64 = 128 * 1024;

/// The result of a verb, before it is encoded in the format that the client accepts.
pub(crate) enum Payload {
    /// Encoded JSON, possibly in pieces.
    Json(VecDeque<Bytes>),
    Value(Value),
    /// A watch: frames already in their final form.
    Stream(crate::body::ByteStream),
}

impl From<Bytes> for Payload {
    fn from(b: Bytes) -> Self {
        Self::Json(VecDeque::from([b]))
    }
}

pub(crate) struct Answer {
    pub code: StatusCode,
    pub payload: Payload,
}

impl Answer {
    pub(crate) fn ok(payload: impl Into<Payload>) -> Self {
        Self { code: StatusCode::OK, payload: payload.into() }
    }

    pub(crate) fn value(value: Value) -> Self {
        Self::ok(Payload::Value(value))
    }

    #[must_use]
    pub(crate) fn with_code(mut self, code: StatusCode) -> Self {
        self.code = code;
        self
    }
}

pub(crate) fn render(answer: Answer, accept: &Accept) -> Response<ApiBody> {
    let (content_type, body) = match answer.payload {
        Payload::Stream(s) => ("application/json", ApiBody::Stream(s)),
        Payload::Json(parts) if accept.format == Format::Json && !accept.pretty => {
            ("application/json", ApiBody::Chain(parts))
        }
        Payload::Json(parts) => reencode(&join(&parts), accept),
        Payload::Value(v) => encode(&v, accept),
    };
    let mut response = Response::new(body);
    *response.status_mut() = answer.code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// `Warning: 299 - "…"` headers.
pub(crate) fn warn<'a>(response: &mut Response<ApiBody>, warnings: impl IntoIterator<Item = &'a String>) {
    for w in warnings {
        if let Ok(v) = HeaderValue::from_bytes(warning_header(w).as_bytes()) {
            response.headers_mut().append(header::WARNING, v);
        }
    }
}

pub(crate) fn render_error(status: &Status, accept: &Accept) -> Response<ApiBody> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = render(Answer::value(status.to_value()).with_code(code), accept);
    if let Some(seconds) = status.details.as_ref().map(|d| d.retry_after_seconds).filter(|s| *s > 0) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

pub(crate) fn text(code: StatusCode, body: impl Into<Bytes>) -> Response<ApiBody> {
    let mut response = Response::new(ApiBody::from(body.into()));
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Compresses a large finished body for a client that accepts gzip.
pub(crate) fn compress(mut response: Response<ApiBody>, accept_encoding: &str) -> Response<ApiBody> {
    let wanted = accept_encoding.split(',').any(|e| e.trim().starts_with("gzip"));
    let done = response.headers().contains_key(header::CONTENT_ENCODING);
    if done || !wanted || response.body().known_length().is_none_or(|n| n <= GZIP_ABOVE_BYTES) {
        return response;
    }
    let ApiBody::Chain(parts) = std::mem::replace(response.body_mut(), ApiBody::empty()) else {
        return response;
    };
    let mut gz = GzEncoder::new(Vec::new(), Compression::new(1));
    // Writing to memory does not fail.
    let zipped = parts.iter().try_for_each(|p| gz.write_all(p)).and_then(|()| gz.finish());
    match zipped {
        Ok(bytes) => {
            *response.body_mut() = bytes.into();
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        Err(_) => *response.body_mut() = ApiBody::Chain(parts),
    }
    response
}

fn encode(value: &Value, accept: &Accept) -> (&'static str, ApiBody) {
    match accept.format {
        Format::Yaml => ("application/yaml", yaml::write(value).into_bytes().into()),
        Format::Json if accept.pretty => {
            let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
            text.push(b'\n');
            ("application/json", text.into())
        }
        Format::Json => {
            let mut text = json::encode(value);
            text.push(b'\n');
            ("application/json", text.into())
        }
    }
}

fn reencode(bytes: &[u8], accept: &Accept) -> (&'static str, ApiBody) {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(v) => encode(&v, accept),
        Err(_) => ("application/json", bytes.to_vec().into()),
    }
}

fn join(parts: &VecDeque<Bytes>) -> Vec<u8> {
    parts.iter().flat_map(|p| p.iter().copied()).collect()
}

/// RFC 7234 quoting, without characters that cannot stand in a header.
fn warning_header(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 10);
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    format!("299 - \"{quoted}\"")
}
