//! Which groups, versions and resources there are: the legacy documents and the aggregated ones.

use crate::body::ApiBody;
use crate::negotiate::{Accept, header_text};
use crate::registry::Served;
use crate::resource::{Access, Resource};
use crate::respond::{self, Answer};
use crate::server::Inner;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use transom_object::Status;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub(crate) fn answer(server: &Inner, segments: &[&str], parts: &Parts, accept: &Accept) -> Response<ApiBody> {
    let served = server.registry.served();
    let document = match segments {
        [] => Some(json!({"paths": paths(&served)})),
        ["api"] | ["apis"] if wants_aggregated(parts) => {
            return aggregated(&served, segments[0] == "api", parts);
        }
        ["api"] => Some(json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": header_text(&parts.headers, "host")}],
        })),
        ["apis"] => {
            let groups: Vec<Value> =
                named_groups(&served).map(|(g, versions)| group(&g, &versions, false)).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => {
            named_groups(&served).find(|(g, _)| g == name).map(|(g, versions)| group(&g, &versions, true))
        }
        ["api", version] => resource_list(&served, "", version),
        ["apis", group, version] => resource_list(&served, group, version),
        _ => None,
    };
    match document {
        Some(value) => {
            let mut response = respond::render(Answer::value(value), accept);
            if matches!(segments, ["api"] | ["apis"]) {
                response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
            }
            response
        }
        None if segments[0] == "api" => respond::render_error(&Status::no_such_resource(), accept),
        None => respond::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
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

fn group(name: &str, versions: &[String], standalone: bool) -> Value {
    let version = |v: &String| json!({"groupVersion": format!("{name}/{v}"), "version": v});
    let mut doc = json!({
        "name": name,
        "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(version),
    });
    if standalone {
        doc["kind"] = "APIGroup".into();
        doc["apiVersion"] = "v1".into();
    }
    doc
}

fn resource_list(served: &Served, group: &str, version: &str) -> Option<Value> {
    let resources = served.in_version(group, version);
    if resources.is_empty() {
        return None;
    }
    let gv = transom_object::GroupVersion::new(group, version).to_string();
    let mut listed = Vec::new();
    for r in resources {
        listed.push(legacy_resource(r));
        listed.extend(subresources(r).into_iter().map(|s| s.legacy(r)));
    }
    let mut list = json!({"kind": "APIResourceList", "groupVersion": gv, "resources": listed});
    // The core group's list is older than its version.
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

fn legacy_resource(r: &Resource) -> Value {
    let mut v = json!({
        "name": r.names.plural,
        "singularName": r.names.singular,
        "namespaced": r.namespaced,
        "kind": r.names.kind,
        "verbs": verbs(r),
    });
    if !r.names.short_names.is_empty() {
        v["shortNames"] = json!(r.names.short_names);
    }
    if !r.names.categories.is_empty() {
        v["categories"] = json!(r.names.categories);
    }
    if r.access == Access::Full {
        v["storageVersionHash"] = storage_hash(r).into();
    }
    v
}

/// The verbs of a resource, in upstream's order, which differs for custom kinds.
pub(crate) fn verbs(r: &Resource) -> Vec<&'static str> {
    if r.definition.is_some() {
        return vec!["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    }
    // Namespaces are deleted one at a time.
    let all_at_once = !(r.group.is_empty() && r.names.plural == "namespaces");
    r.verbs().iter().copied().filter(|v| all_at_once || *v != "deletecollection").collect()
}

/// Eight bytes that change when the stored form changes, as upstream publishes them.
fn storage_hash(r: &Resource) -> String {
    let hash = Sha256::digest(format!("{}/{}/{}", r.group, r.strategy.storage_version(), r.names.kind));
    STANDARD.encode(&hash[..8])
}

/// One subresource as discovery shows it.
struct Subresource {
    name: &'static str,
    group: String,
    version: String,
    kind: String,
    verbs: &'static [&'static str],
}

fn subresources(r: &Resource) -> Vec<Subresource> {
    let mut all = Vec::new();
    let own = |name, verbs| Subresource {
        name,
        group: r.group.clone(),
        version: r.version.clone(),
        kind: r.names.kind.clone(),
        verbs,
    };
    for name in r.extra {
        all.push(match *name {
            "token" => Subresource {
                name,
                group: "authentication.k8s.io".into(),
                version: "v1".into(),
                kind: "TokenRequest".into(),
                verbs: &["create"],
            },
            _ => own(name, &["update"]),
        });
    }
    if r.scale.is_some() {
        all.push(Subresource {
            name: "scale",
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs: &["get", "patch", "update"],
        });
    }
    if r.status {
        all.push(own("status", &["get", "patch", "update"]));
    }
    all
}

impl Subresource {
    fn is_foreign(&self, r: &Resource) -> bool {
        self.group != r.group || self.version != r.version
    }

    fn legacy(&self, r: &Resource) -> Value {
        let mut v = json!({
            "name": format!("{}/{}", r.names.plural, self.name),
            "singularName": "",
            "namespaced": r.namespaced,
            "kind": self.kind,
            "verbs": self.verbs,
        });
        if self.is_foreign(r) {
            v["group"] = self.group.as_str().into();
            v["version"] = self.version.as_str().into();
        }
        v
    }

    fn aggregated(&self) -> Value {
        json!({
            "subresource": self.name,
            "responseKind": {"group": self.group, "version": self.version, "kind": self.kind},
            "verbs": self.verbs,
        })
    }
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
    let subresources: Vec<Value> = subresources(r).iter().map(Subresource::aggregated).collect();
    if !subresources.is_empty() {
        v["subresources"] = json!(subresources);
    }
    v
}

/// A document with its hash as ETag; 304 when the client has it.
pub(crate) fn cached(body: bytes::Bytes, content_type: &'static str, parts: &Parts) -> Response<ApiBody> {
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
