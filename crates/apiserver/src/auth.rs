//! Who asks, and whether they may.

use crate::negotiate::header_text;
use crate::request::{Target, Verb};
use http::HeaderMap;
use transom_object::{GroupResource, Status};

/// A user as an authenticator established it. Travels in the request's extensions, never in headers: whoever
/// puts a request in front of the server (the TLS listener, the in-process client) vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
}

impl Identity {
    pub fn new(user: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|g| g == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { user: user.into(), uid: String::new(), groups }
    }

    /// The holder of all rights: the admin certificate and the server's own controllers.
    pub fn admin(user: impl Into<String>) -> Self {
        Self::new(user, [MASTERS.to_owned()])
    }

    pub fn anonymous() -> Self {
        Self {
            user: "system:anonymous".into(),
            uid: String::new(),
            groups: vec!["system:unauthenticated".into()],
        }
    }

    pub fn is_anonymous(&self) -> bool {
        self.user == "system:anonymous"
    }

    fn is_admin(&self) -> bool {
        self.groups.iter().any(|g| g == MASTERS)
    }
}

const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";

/// What a request wants to do.
#[derive(Clone, Copy, Debug)]
pub enum Action<'a> {
    Resource {
        verb: Verb,
        target: &'a Target,
    },
    /// Act as somebody else.
    Impersonate {
        user: &'a str,
    },
    /// A path that is no resource, with the HTTP method in lower case.
    Path {
        method: &'a str,
        path: &'a str,
    },
}

pub trait Authorizer: Send + Sync {
    fn allows(&self, who: &Identity, action: Action<'_>) -> bool;
}

/// Members of `system:masters` may do everything, whoever else is known may look around and ask about
/// themselves, and the anonymous may see health and version.
pub struct MastersOnly;

impl Authorizer for MastersOnly {
    fn allows(&self, who: &Identity, action: Action<'_>) -> bool {
        if who.is_admin() {
            return true;
        }
        match action {
            Action::Path { method: "get" | "head", path } => {
                is_public(path) || (!who.is_anonymous() && is_discovery(path))
            }
            Action::Resource { verb: Verb::Create, target } => !who.is_anonymous() && is_about_self(target),
            _ => false,
        }
    }
}

fn is_discovery(path: &str) -> bool {
    ["/api", "/apis", "/openapi"].iter().any(|root| under(path, root))
}

fn is_about_self(target: &Target) -> bool {
    matches!(
        target.gvr.resource.as_str(),
        "selfsubjectaccessreviews" | "selfsubjectrulesreviews" | "selfsubjectreviews"
    ) && matches!(target.gvr.group.as_str(), "authorization.k8s.io" | "authentication.k8s.io")
}

fn under(path: &str, root: &str) -> bool {
    path == root || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
}

/// Paths that tell nothing about what is stored.
pub fn is_public(path: &str) -> bool {
    ["/healthz", "/livez", "/readyz", "/version"].iter().any(|root| under(path, root))
}

/// The 401 or 403 for a request that may not go on.
pub fn refusal(who: &Identity, action: Action<'_>) -> Status {
    if who.is_anonymous() {
        return Status::unauthorized();
    }
    match action {
        Action::Impersonate { user } => Status::forbidden(
            &GroupResource::new("", "users"),
            user,
            format!(
                "User {:?} cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
                who.user
            ),
        ),
        Action::Path { method, path } => Status::forbidden(
            &GroupResource::default(),
            "",
            format!("User {:?} cannot {method} path {path:?}", who.user),
        ),
        Action::Resource { verb, target } => {
            let gr = target.gvr.group_resource();
            let place = if target.namespace.is_empty() {
                " at the cluster scope".to_owned()
            } else {
                format!(" in the namespace {:?}", target.namespace)
            };
            let resource = if target.subresource.is_empty() {
                gr.resource.clone()
            } else {
                format!("{}/{}", gr.resource, target.subresource)
            };
            let why = format!(
                "User {:?} cannot {} resource {resource:?} in API group {:?}{place}",
                who.user,
                verb.as_str(),
                gr.group
            );
            Status::forbidden(&gr, &target.name, why)
        }
    }
}

/// Who the request wants to act as, by its `Impersonate-*` headers; `None` without any.
pub fn impersonated(headers: &HeaderMap) -> Result<Option<Identity>, Status> {
    let user = header_text(headers, "impersonate-user");
    let groups: Vec<String> = headers
        .get_all("impersonate-group")
        .iter()
        .filter_map(|g| g.to_str().ok())
        .map(str::to_owned)
        .collect();
    let more = headers.keys().any(|k| k.as_str().starts_with("impersonate-extra-") || k == "impersonate-uid");
    if user.is_empty() {
        if groups.is_empty() && !more {
            return Ok(None);
        }
        return Err(Status::internal(
            "requested impersonation without impersonating a user; send Impersonate-User",
        ));
    }
    let mut who = match user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')) {
        Some((namespace, _)) if groups.is_empty() => Identity::new(
            user,
            ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
        ),
        _ if user == "system:anonymous" => Identity::anonymous(),
        _ => Identity::new(user, groups),
    };
    header_text(headers, "impersonate-uid").clone_into(&mut who.uid);
    Ok(Some(who))
}
