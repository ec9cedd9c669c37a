//! OpenAPI v2 and v3 of everything served.
//!
//! Documents are built when they are asked for and kept as bytes until something they describe changes. Hashes
//! come from what is served, not from the documents, so that the index costs nothing to make.

mod custom;
mod operations;
mod protobuf;
mod v2;
mod v3;

use crate::body::ApiBody;
use crate::discovery::cached;
use crate::negotiate::header_text;
use crate::registry::Served;
use crate::request::Query;
use crate::respond;
use crate::server::Inner;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const V2_PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Finished documents by path and hash.
#[derive(Default)]
pub(crate) struct Cache(Mutex<BTreeMap<String, (String, Bytes)>>);

impl Cache {
    fn get_or_build(&self, path: &str, hash: &str, build: impl FnOnce() -> Vec<u8>) -> Bytes {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((kept, bytes)) = cache.get(path)
            && kept == hash
        {
            return bytes.clone();
        }
        let bytes = Bytes::from(build());
        cache.insert(path.to_owned(), (hash.to_owned(), bytes.clone()));
        bytes
    }
}

pub(crate) fn answer(server: &Inner, segments: &[&str], parts: &Parts, query: &Query) -> Response<ApiBody> {
    let served = server.registry.served();
    match segments {
        ["v2"] => second(server, &served, parts),
        ["v3"] => cached(index(&served).into(), "application/json", parts),
        ["v3", "api", version] => third(server, &served, "", version, parts, query),
        ["v3", "apis", group, version] => third(server, &served, group, version, parts, query),
        _ => respond::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

fn index(served: &Served) -> String {
    let mut paths = Map::new();
    for (group, versions) in served.groups() {
        for version in versions {
            let path = document_path(&group, &version);
            let hash = hash_of(served, &group, &version);
            paths.insert(
                path.clone(),
                json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")}),
            );
        }
    }
    json!({"paths": paths}).to_string()
}

fn document_path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// Changes when a document of this group and version would.
fn hash_of(served: &Served, group: &str, version: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(env!("CARGO_PKG_VERSION"));
    for r in served.in_version(group, version) {
        hash.update(&r.names.plural);
        hash.update(r.definition.unwrap_or_default());
    }
    hash.finalize().iter().map(|b| format!("{b:02X}")).collect()
}

fn third(
    server: &Inner,
    served: &Served,
    group: &str,
    version: &str,
    parts: &Parts,
    query: &Query,
) -> Response<ApiBody> {
    if served.in_version(group, version).is_empty() {
        return respond::text(StatusCode::NOT_FOUND, "404 page not found\n");
    }
    let path = document_path(group, version);
    let hash = hash_of(served, group, version);
    let asked = query.get("hash");
    if !asked.is_empty() && asked != hash {
        return moved(&format!("/openapi/v3/{path}?hash={hash}"));
    }
    let bytes = server.documents.get_or_build(&path, &hash, || {
        transom_object::json::encode(&v3::document(server, served, group, version))
    });
    let mut response = cached(bytes, "application/json", parts);
    if !asked.is_empty() {
        let forever = HeaderValue::from_static("public, immutable");
        response.headers_mut().insert(header::CACHE_CONTROL, forever);
    }
    response
}

/// The client's hash is stale: the current document is elsewhere.
fn moved(to: &str) -> Response<ApiBody> {
    let mut response = respond::text(StatusCode::MOVED_PERMANENTLY, "");
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

fn second(server: &Inner, served: &Served, parts: &Parts) -> Response<ApiBody> {
    let hash = served.generation.to_string();
    let accept = header_text(&parts.headers, "accept");
    let document = || -> Value { v2::document(server, served) };
    if accept.contains(V2_PROTOBUF) || accept.contains(V2_PROTOBUF_ALIAS) {
        let bytes = server.documents.get_or_build("v2+protobuf", &hash, || protobuf::encode(&document()));
        return cached(bytes, V2_PROTOBUF_ALIAS, parts);
    }
    let bytes = server.documents.get_or_build("v2", &hash, || transom_object::json::encode(&document()));
    cached(bytes, "application/json", parts)
}
