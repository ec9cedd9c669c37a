//! Serves the OpenAPI v2 and v3 documents of everything served.
//!
//! | module | what it holds |
//! |---|---|
//! | `documents` | documents as bytes, built on request and kept while they are current |
//! | `describe` | what `transom_openapi`, which makes the documents, needs of a resource |

mod describe;
mod documents;
#[cfg(test)]
mod tests;

pub(crate) use documents::Cache;

use crate::body::ApiBody;
use crate::discovery::cached;
use crate::negotiate::header_text;
use crate::registry::Served;
use crate::request::Query;
use crate::respond;
use crate::server::Inner;
use documents::{Finished, Name};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, json};
use std::sync::Arc;

const JSON: &str = "application/json";
/// Asked for with `@`, answered without: the grammar of media types has no `@`.
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const V2_PROTOBUF_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

pub(crate) async fn answer(
    server: &Arc<Inner>,
    segments: &[&str],
    parts: &Parts,
    query: &Query,
) -> Response<ApiBody> {
    let served = server.registry.served();
    match segments {
        ["v2"] => second(server, &served, parts).await,
        // JSON that upstream does not call so, and clients do not ask.
        ["v3"] => cached(index(server, &served).await.into(), "text/plain; charset=utf-8", parts),
        ["v3", "api", version] => third(server, &served, "", version, parts, query).await,
        ["v3", "apis", group, version] => third(server, &served, group, version, parts, query).await,
        _ => respond::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

async fn index(server: &Arc<Inner>, served: &Served) -> String {
    let mut paths = Map::new();
    for (name, finished) in documents::every_version(server, served).await {
        if let Name::V3 { group, version } = name {
            let url = json!({"serverRelativeURL": address(&group, &version, &finished.hash)});
            paths.insert(path(&group, &version), url);
        }
    }
    json!({"paths": paths}).to_string()
}

fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn address(group: &str, version: &str, hash: &str) -> String {
    format!("/openapi/v3/{}?hash={hash}", path(group, version))
}

async fn third(
    server: &Arc<Inner>,
    served: &Served,
    group: &str,
    version: &str,
    parts: &Parts,
    query: &Query,
) -> Response<ApiBody> {
    if served.in_version(group, version).is_empty() {
        let mut nothing = Response::new(ApiBody::empty());
        *nothing.status_mut() = StatusCode::NOT_FOUND;
        return nothing;
    }
    if accepted(parts, &[(JSON, JSON)]).is_none() {
        return respond::text(StatusCode::NOT_ACCEPTABLE, "");
    }
    let name = Name::V3 { group: group.to_owned(), version: version.to_owned() };
    let Some(finished) = documents::get(server, served, name).await else {
        return unavailable();
    };
    let asked = query.get("hash");
    if !asked.is_empty() && asked != &*finished.hash {
        return moved(&address(group, version, &finished.hash));
    }
    let mut response = send(finished, JSON, parts).await;
    if !asked.is_empty() {
        // The address names the content: it never changes.
        let forever = HeaderValue::from_static("public, immutable, max-age=31536000");
        response.headers_mut().insert(header::CACHE_CONTROL, forever);
    }
    response
}

async fn second(server: &Arc<Inner>, served: &Served, parts: &Parts) -> Response<ApiBody> {
    let offered = [(JSON, JSON), (V2_PROTOBUF_ASKED, V2_PROTOBUF), (V2_PROTOBUF, V2_PROTOBUF)];
    let Some(media) = accepted(parts, &offered) else {
        return respond::text(StatusCode::NOT_ACCEPTABLE, "");
    };
    let name = if media == JSON { Name::V2Json } else { Name::V2Protobuf };
    match documents::get(server, served, name).await {
        Some(finished) => send(finished, media, parts).await,
        None => unavailable(),
    }
}

/// A builder that failed unexpectedly took no other request with it.
fn unavailable() -> Response<ApiBody> {
    respond::text(StatusCode::SERVICE_UNAVAILABLE, "the document could not be built; see the server's log\n")
}

/// The client's hash is stale: the current document is elsewhere.
fn moved(to: &str) -> Response<ApiBody> {
    let mut response = respond::text(StatusCode::MOVED_PERMANENTLY, "");
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

async fn send(finished: Finished, media: &'static str, parts: &Parts) -> Response<ApiBody> {
    let etag = format!("\"{}\"", finished.hash);
    let known = header_text(&parts.headers, "if-none-match").split(',').any(|t| t.trim() == etag);
    let takes_gzip =
        header_text(&parts.headers, "accept-encoding").split(',').any(|e| e.trim().starts_with("gzip"));
    let mut response = Response::new(ApiBody::empty());
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else if takes_gzip {
        *response.body_mut() = finished.zipped().into();
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    } else {
        *response.body_mut() = finished.plain().await.into();
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// The media type of the response: of the offered ones, which are pairs of the type in the request and the type in the
/// response, the one that the client prefers.
fn accepted(parts: &Parts, offered: &[(&str, &'static str)]) -> Option<&'static str> {
    let text = header_text(&parts.headers, "accept");
    let text = if text.is_empty() { "*/*" } else { text };
    let mut clauses: Vec<(f32, &str)> = text
        .split(',')
        .map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let weight = parts.find_map(|p| p.strip_prefix("q=")).and_then(|q| q.parse().ok());
            (weight.unwrap_or(1.0), media)
        })
        .filter(|(weight, _)| *weight > 0.0)
        .collect();
    clauses.sort_by(|a, b| b.0.total_cmp(&a.0));
    clauses.iter().find_map(|(_, media)| {
        let any = matches!(*media, "*/*" | "application/*");
        offered.iter().find(|(asked, _)| any || asked == media).map(|(_, answered)| *answered)
    })
}
