//! Path and method → [`RequestInfo`], as Kubernetes reads them.

use http::Method;
use percent_encoding::percent_decode_str;
use transom_object::{GroupVersionResource, Status};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// A method that is not a verb of the API, such as OPTIONS.
    Unknown,
}

impl Verb {
    /// The verb's name in authorization, events and messages.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Unknown => "",
        }
    }

    pub(crate) fn mutates(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch | Self::Unknown)
    }
}

/// A resource endpoint: which objects, and which subresource of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub gvr: GroupVersionResource,
    /// Empty for cluster-scoped requests and for requests across all namespaces.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    pub subresource: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestInfo {
    Resource {
        verb: Verb,
        target: Target,
    },
    /// Anything else, with its path segments: health, discovery, OpenAPI.
    Other(Vec<String>),
}

impl RequestInfo {
    /// `watch`: the query requests a watch; `Err` for a path that no resource can have.
    pub(crate) fn parse(method: &Method, path: &str, watch: bool) -> Result<Self, Status> {
        let segments = segments(path)?;
        let Some((group, version, rest)) = split_group_version(&segments) else {
            return Ok(Self::Other(segments));
        };
        let gv = (group.to_owned(), version.to_owned());
        let (legacy_watch, rest) = match rest {
            [first, more @ ..] if first == "watch" && !more.is_empty() => (true, more),
            _ => (false, rest),
        };
        let Some((namespace, resource, tail)) = split_namespace(rest) else {
            return Ok(Self::Other(segments));
        };
        if tail.len() > 2 {
            return Ok(Self::Other(segments));
        }
        let name = tail.first().cloned().unwrap_or_default();
        let subresource = tail.get(1).cloned().unwrap_or_default();
        let verb = verb_of(method, name.is_empty(), watch || legacy_watch);
        let gvr = GroupVersionResource { group: gv.0, version: gv.1, resource: resource.to_owned() };
        Ok(Self::Resource {
            verb,
            target: Target { gvr, namespace: namespace.to_owned(), name, subresource },
        })
    }
}

/// Splits and decodes. A name may not contain a slash or be a dot segment however it is spelled, so that no
/// spelling of a path reaches another object than the one it names.
fn segments(path: &str) -> Result<Vec<String>, Status> {
    let bad = || Status::bad_request(format!("invalid request path {path:?}"));
    path.split('/')
        .filter(|s| !s.is_empty())
        .map(|s| {
            let s = percent_decode_str(s).decode_utf8().map_err(|_| bad())?;
            if s == "." || s == ".." || s.contains(['/', '\0']) { Err(bad()) } else { Ok(s.into_owned()) }
        })
        .collect()
}

fn split_group_version(segments: &[String]) -> Option<(&str, &str, &[String])> {
    match segments {
        [api, version, rest @ ..] if api == "api" && !rest.is_empty() => Some(("", version, rest)),
        [apis, group, version, rest @ ..] if apis == "apis" && !rest.is_empty() => {
            Some((group, version, rest))
        }
        _ => None,
    }
}

/// `namespaces/x/pods/…` is about pods in x; `namespaces/x` and `namespaces/x/status` are about x itself.
fn split_namespace(rest: &[String]) -> Option<(&str, &str, &[String])> {
    match rest {
        [ns, name, sub] if ns == "namespaces" && (sub == "status" || sub == "finalize") => {
            Some((name, ns, &rest[1..]))
        }
        [ns, name, resource, tail @ ..] if ns == "namespaces" => Some((name, resource, tail)),
        [ns, name] if ns == "namespaces" => Some((name, ns, &rest[1..])),
        [resource, tail @ ..] => Some(("", resource, tail)),
        [] => None,
    }
}

fn verb_of(method: &Method, collection: bool, watch: bool) -> Verb {
    match *method {
        Method::GET | Method::HEAD if watch => Verb::Watch,
        Method::GET | Method::HEAD if collection => Verb::List,
        Method::GET | Method::HEAD => Verb::Get,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if collection => Verb::DeleteCollection,
        Method::DELETE => Verb::Delete,
        _ => Verb::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(method: &Method, path: &str) -> String {
        match RequestInfo::parse(method, path, false) {
            Ok(RequestInfo::Resource { verb, target: t }) => format!(
                "{} {}/{}/{} ns={} name={} sub={}",
                verb.as_str(),
                t.gvr.group,
                t.gvr.version,
                t.gvr.resource,
                t.namespace,
                t.name,
                t.subresource
            ),
            Ok(RequestInfo::Other(s)) => format!("other {}", s.join(",")),
            Err(e) => format!("{} {}", e.code, e.reason),
        }
    }

    #[test]
    fn paths() {
        for (method, path, want) in [
            (Method::GET, "/api/v1/namespaces", "list /v1/namespaces ns= name= sub="),
            (Method::GET, "/api/v1/namespaces/x", "get /v1/namespaces ns=x name=x sub="),
            (Method::PUT, "/api/v1/namespaces/x/finalize", "update /v1/namespaces ns=x name=x sub=finalize"),
            (Method::GET, "/api/v1/namespaces/x/pods", "list /v1/pods ns=x name= sub="),
            (Method::GET, "/api/v1/watch/pods", "watch /v1/pods ns= name= sub="),
            (Method::GET, "/apis/a.b/v1/widgets/w/status", "get a.b/v1/widgets ns= name=w sub=status"),
            (
                Method::DELETE,
                "/apis/a.b/v1/namespaces/n/widgets",
                "deletecollection a.b/v1/widgets ns=n name= sub=",
            ),
            (Method::GET, "/apis/a.b/v1", "other apis,a.b,v1"),
            (Method::GET, "/healthz", "other healthz"),
            (Method::GET, "/api/v1/namespaces/a%2Fb", "400 BadRequest"),
            (Method::GET, "/api/v1/namespaces/%2e%2e/secrets", "400 BadRequest"),
            (Method::TRACE, "/api/v1/namespaces", " /v1/namespaces ns= name= sub="),
        ] {
            assert_eq!(parse(&method, path), want, "{path}");
        }
    }
}
