//! Which groups, versions and resources there are: the legacy documents and the aggregated ones.
//!
//! The legacy documents are read by people too (`kubectl get --raw`), so their fields come in upstream's order.

use crate::body::ApiBody;
use crate::crd;
use crate::negotiate::{Accept, header_text};
use crate::registry::Served;
use crate::resource::{Access, Resource};
use crate::respond::{self, Answer};
use crate::server::Inner;
use crate::subresource::Subresource;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use transom_object::Status;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub(crate) fn answer(server: &Inner, segments: &[&str], parts: &Parts, accept: &Accept) -> Response<ApiBody> {
    let served = server.registry.served();
    let document = match segments {
        [] => encode(&json!({"paths": paths(&served)})),
        ["api"] | ["apis"] if wants_aggregated(parts) => {
            return aggregated(&served, segments[0] == "api", parts);
        }
        ["api"] => {
            let here =
                Address { client_cidr: "0.0.0.0/0", server_address: header_text(&parts.headers, "host") };
            encode(&Versions {
                kind: "APIVersions",
                versions: ["v1"],
                server_address_by_client_cidrs: [here],
            })
        }
        ["apis"] => {
            let groups = named_groups(&served).map(|(g, versions)| group(&g, &versions, false)).collect();
            encode(&GroupList { kind: "APIGroupList", api_version: "v1", groups })
        }
        ["apis", name] => named_groups(&served)
            .find(|(g, _)| g == name)
            .and_then(|(g, versions)| encode(&group(&g, &versions, true))),
        ["api", version] => resource_list(&served, "", version),
        ["apis", group, version] => resource_list(&served, group, version),
        _ => None,
    };
    match document {
        Some(document) => {
            let mut response = respond::render(Answer::ok(document), accept);
            if matches!(segments, ["api"] | ["apis"]) {
                response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
            }
            response
        }
        None if is_built_in(&served, segments) => respond::render_error(&Status::no_such_resource(), accept),
        None => respond::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// Groups of built-in kinds refuse an unknown version with a Status; other groups may be unknown themselves.
fn is_built_in(served: &Served, segments: &[&str]) -> bool {
    match segments {
        ["apis", group, ..] => served.all().any(|r| r.group == *group && r.definition.is_none()),
        segments => segments.first() == Some(&"api"),
    }
}

fn encode(document: &impl Serialize) -> Option<Bytes> {
    let mut bytes = serde_json::to_vec(document).ok()?;
    bytes.push(b'\n');
    Some(bytes.into())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions<'a> {
    kind: &'static str,
    versions: [&'static str; 1],
    #[serde(rename = "serverAddressByClientCIDRs")]
    server_address_by_client_cidrs: [Address<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Address<'a> {
    #[serde(rename = "clientCIDR")]
    client_cidr: &'static str,
    server_address: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupList {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<Group>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: String,
    versions: Vec<Version>,
    preferred_version: Option<Version>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    group_version: String,
    version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList<'a> {
    kind: &'static str,
    /// The core group's list is older than its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<Listed<'a>>,
}

/// A resource or subresource in a legacy list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    name: String,
    singular_name: &'a str,
    namespaced: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    kind: String,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version_hash: Option<String>,
}

fn named_groups(served: &Served) -> impl Iterator<Item = (String, Vec<String>)> {
    served.groups().into_iter().filter(|(g, _)| !g.is_empty())
}

fn paths(served: &Served) -> Vec<String> {
    let mut paths = vec!["/api".to_owned(), "/api/v1".into(), "/apis".into(), "/apis/".into()];
    for (group, versions) in named_groups(served) {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|v| format!("/apis/{group}/{v}")));
    }
    paths.extend(
        ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            .map(str::to_owned),
    );
    paths
}

fn group(name: &str, versions: &[String], standalone: bool) -> Group {
    let version = |v: &String| Version { group_version: format!("{name}/{v}"), version: v.clone() };
    Group {
        kind: standalone.then_some("APIGroup"),
        api_version: standalone.then_some("v1"),
        name: name.to_owned(),
        versions: versions.iter().map(version).collect(),
        preferred_version: versions.first().map(version),
    }
}

fn resource_list(served: &Served, group: &str, version: &str) -> Option<Bytes> {
    let listed = served.in_version(group, version);
    if listed.is_empty() {
        return None;
    }
    let mut resources = Vec::new();
    for r in listed {
        resources.push(legacy_resource(r));
        resources.extend(r.subresources.iter().map(|s| legacy_subresource(r, *s)));
    }
    encode(&ResourceList {
        kind: "APIResourceList",
        api_version: (!group.is_empty()).then_some("v1"),
        group_version: transom_object::GroupVersion::new(group, version).to_string(),
        resources,
    })
}

fn legacy_resource(r: &Resource) -> Listed<'_> {
    Listed {
        name: r.names.plural.clone(),
        singular_name: &r.names.singular,
        namespaced: r.namespaced,
        group: None,
        version: None,
        kind: r.names.kind.clone(),
        verbs: verbs(r),
        short_names: &r.names.short_names,
        categories: &r.names.categories,
        storage_version_hash: (r.access == Access::Full).then(|| storage_hash(r)),
    }
}

/// The verbs of a resource, in upstream's order, which differs for custom kinds.
pub(crate) fn verbs(r: &Resource) -> Vec<&'static str> {
    if r.definition.is_some() {
        return vec!["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    }
    // Namespaces are deleted one at a time.
    r.verbs().iter().copied().filter(|v| !r.is_namespace() || *v != "deletecollection").collect()
}

/// Eight bytes that change when the stored form changes, as upstream publishes them.
fn storage_hash(r: &Resource) -> String {
    // Definitions are of the one group whose storage version upstream never raised.
    let version = if crd::is_definition(r) { "v1beta1" } else { r.strategy.storage_version() };
    let hash = Sha256::digest(format!("{}/{version}/{}", r.group, r.names.kind));
    STANDARD.encode(&hash[..8])
}

/// A subresource in a legacy list. Its group and version are given where they differ from the resource's.
fn legacy_subresource(r: &Resource, subresource: Subresource) -> Listed<'static> {
    let kind = subresource.kind(r);
    let foreign = kind.group != r.group || kind.version != r.version;
    Listed {
        name: format!("{}/{}", r.names.plural, subresource.as_str()),
        singular_name: "",
        namespaced: r.namespaced,
        group: foreign.then_some(kind.group),
        version: foreign.then_some(kind.version),
        kind: kind.kind,
        verbs: subresource.verbs().to_vec(),
        short_names: &[],
        categories: &[],
        storage_version_hash: None,
    }
}

fn aggregated_subresource(r: &Resource, subresource: Subresource) -> Value {
    let kind = subresource.kind(r);
    json!({
        "subresource": subresource.as_str(),
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "verbs": subresource.verbs(),
    })
}

fn wants_aggregated(parts: &Parts) -> bool {
    let accept = header_text(&parts.headers, "accept");
    accept.split(',').map(|m| m.replace(' ', "")).any(|m| {
        m.starts_with("application/json")
            && m.contains("g=apidiscovery.k8s.io")
            && m.contains("v=v2")
            && !m.contains("v=v2beta1")
            && m.contains("as=APIGroupDiscoveryList")
    })
}

/// One document for all groups, with an ETag so that clients fetch it only when something changed.
fn aggregated(served: &Served, core: bool, parts: &Parts) -> Response<ApiBody> {
    let items: Vec<Value> = served
        .groups()
        .into_iter()
        .filter(|(g, _)| g.is_empty() == core)
        .map(|(g, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|v| {
                    let resources: Vec<Value> =
                        served.in_version(&g, v).into_iter().map(aggregated_resource).collect();
                    json!({"version": v, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if g.is_empty() { json!({}) } else { json!({"name": g}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let document = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    let body = document.to_string();
    cached(body.into(), AGGREGATED, parts)
}

fn aggregated_resource(r: &Arc<Resource>) -> Value {
    let mut v = json!({
        "resource": r.names.plural,
        "responseKind": {"group": r.group, "version": r.version, "kind": r.names.kind},
        "scope": if r.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": r.names.singular,
        "verbs": verbs(r),
    });
    if !r.names.short_names.is_empty() {
        v["shortNames"] = json!(r.names.short_names);
    }
    if !r.names.categories.is_empty() {
        v["categories"] = json!(r.names.categories);
    }
    let subresources: Vec<Value> = r.subresources.iter().map(|s| aggregated_subresource(r, *s)).collect();
    if !subresources.is_empty() {
        v["subresources"] = json!(subresources);
    }
    v
}

/// A document with its hash as ETag; 304 when the client has it.
pub(crate) fn cached(body: Bytes, content_type: &'static str, parts: &Parts) -> Response<ApiBody> {
    let hash = Sha256::digest(&body).iter().map(|b| format!("{b:02X}")).collect::<String>();
    let etag = format!("\"{hash}\"");
    let has_it = header_text(&parts.headers, "if-none-match").split(',').any(|t| t.trim() == etag);
    let mut response = if has_it {
        let mut not_modified = Response::new(ApiBody::empty());
        *not_modified.status_mut() = StatusCode::NOT_MODIFIED;
        not_modified
    } else {
        Response::new(ApiBody::from(body))
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}
