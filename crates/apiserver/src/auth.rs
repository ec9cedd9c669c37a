//! Who asks, and whether they may.

use crate::request::{Target, Verb};
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
    /// A path that is no resource, with the HTTP method in lower case.
    Path {
        method: &'a str,
        path: &'a str,
    },
}

pub trait Authorizer: Send + Sync {
    fn allows(&self, who: &Identity, action: Action<'_>) -> bool;
}

/// Members of `system:masters` may do everything; the anonymous may look at health and version.
pub struct MastersOnly;

impl Authorizer for MastersOnly {
    fn allows(&self, who: &Identity, action: Action<'_>) -> bool {
        if who.is_admin() {
            return true;
        }
        matches!(action, Action::Path { method: "get" | "head", path } if is_public(path))
    }
}

/// Paths that tell nothing about what is stored.
pub fn is_public(path: &str) -> bool {
    let public =
        |root: &str| path == root || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
    public("/healthz") || public("/livez") || public("/readyz") || path == "/version" || path == "/version/"
}

/// The 401 or 403 for a request that may not go on.
pub fn refusal(who: &Identity, action: Action<'_>) -> Status {
    if who.is_anonymous() {
        return Status::unauthorized();
    }
    match action {
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
