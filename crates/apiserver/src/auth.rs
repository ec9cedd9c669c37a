//! Authentication and authorization: the client of a request, and whether the request is allowed.
//!
//! The [`Authorizer`] is called for every request, those of controllers in the same process included: they arrive with an
//! [`Identity`] of their own. The writes of the server's upkeep are not requests; see `upkeep::identity`.

use crate::request::Target;
use crate::server::Inner;
use async_trait::async_trait;
use std::collections::BTreeMap;
use transom_object::{GroupResource, Status};
use transom_rbac::{MASTERS, Rule};

/// A user as an authenticator established it. Travels in the request's extensions, never in headers: the component
/// that hands a request to the server (the TLS listener, the in-process client) vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name, such as `system:serviceaccount:kube-system:default`.
    pub user: String,
    /// Identifies the user beyond its name; may be empty.
    pub uid: String,
    /// The groups, `system:authenticated` included.
    pub groups: Vec<String>,
    /// What else is known about the user, such as the credential that it used.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// An authenticated user.
    pub fn new(user: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|g| g == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { user: user.into(), uid: String::new(), groups, extra: BTreeMap::new() }
    }

    /// A service account, with the groups of every service account of its namespace.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        Self::new(format!("system:serviceaccount:{namespace}:{name}"), groups)
    }

    /// With the id of the credential that established it, as audit logs and reviews show it.
    #[must_use]
    pub fn with_credential(mut self, id: impl Into<String>) -> Self {
        self.extra.insert(CREDENTIAL_ID.to_owned(), vec![id.into()]);
        self
    }

    /// The id of the credential that established it; empty when it is not known.
    pub fn credential(&self) -> &str {
        self.extra.get(CREDENTIAL_ID).and_then(|ids| ids.first()).map_or("", String::as_str)
    }

    /// A member of `system:masters`: the admin certificate.
    pub fn admin(user: impl Into<String>) -> Self {
        Self::new(user, [MASTERS.to_owned()])
    }

    /// The user of a request without credentials.
    pub fn anonymous() -> Self {
        Self {
            user: "system:anonymous".into(),
            uid: String::new(),
            groups: vec![UNAUTHENTICATED.into()],
            extra: BTreeMap::new(),
        }
    }

    /// Whether the request came without credentials.
    pub fn is_anonymous(&self) -> bool {
        self.user == "system:anonymous"
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.groups.iter().any(|g| g == MASTERS)
    }
}

pub(crate) const AUTHENTICATED: &str = "system:authenticated";
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The action of a request, and its user.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// The client, before impersonation when the question is whether it may impersonate.
    pub user: &'a Identity,
    /// A verb of the API, such as `get` or `deletecollection`; `impersonate`; or, with a path, the HTTP method in
    /// lower case.
    pub verb: &'a str,
    /// The API group of the resource; empty for the core group.
    pub group: &'a str,
    /// The API version of the resource.
    pub version: &'a str,
    /// The plural name of the resource; empty for a path that is not a resource.
    pub resource: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// Empty for all namespaces, and for resources without one.
    pub namespace: &'a str,
    /// Empty for collections.
    pub name: &'a str,
    /// Whether the request is for a path that is not a resource, such as `/healthz` or discovery.
    pub is_path: bool,
    /// That path.
    pub path: &'a str,
}

impl<'a> Attributes<'a> {
    /// A verb without a resource or path yet.
    pub fn of(user: &'a Identity, verb: &'a str) -> Self {
        let none = "";
        Self {
            user,
            verb,
            group: none,
            version: none,
            resource: none,
            subresource: none,
            namespace: none,
            name: none,
            is_path: false,
            path: none,
        }
    }

    /// A method on a path that is not a resource.
    pub(crate) fn of_path(user: &'a Identity, verb: &'a str, path: &'a str) -> Self {
        Self { is_path: true, path, ..Self::of(user, verb) }
    }

    /// A verb on a resource endpoint.
    pub(crate) fn of_target(user: &'a Identity, verb: &'a str, target: &'a Target) -> Self {
        Self {
            group: &target.gvr.group,
            version: &target.gvr.version,
            resource: &target.gvr.resource,
            subresource: &target.subresource,
            namespace: &target.namespace,
            name: &target.name,
            ..Self::of(user, verb)
        }
    }
}

/// Whether a request is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is allowed.
    Allowed,
    /// It is denied.
    Denied {
        /// Added to the message for the client; may be empty.
        reason: String,
    },
}

impl Decision {
    /// A decision without a reason.
    pub fn of(allowed: bool) -> Self {
        if allowed { Self::Allowed } else { Self::Denied { reason: String::new() } }
    }
}

/// Decides about requests. Called once for every request, whether it comes over the network or from the process
/// itself, and once more for what the request implies: impersonation, and creation by an update.
#[async_trait]
pub trait Authorizer: Send + Sync {
    /// Decides about one request. The client waits for it.
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision;

    /// The decision with why it was allowed or denied, for reviews and for the expressions of policies, which fail if it is
    /// not made at once.
    async fn explain(&self, attributes: &Attributes<'_>) -> (bool, String) {
        match self.authorize(attributes).await {
            Decision::Allowed => (true, String::new()),
            Decision::Denied { reason } => (false, reason),
        }
    }

    /// Everything that a user may do in a namespace; `None` when that cannot be listed.
    fn rules(&self, _user: &Identity, _namespace: &str) -> Option<Vec<Rule>> {
        None
    }
}

/// Knows tokens that this server did not sign.
#[async_trait]
pub trait TokenAuthenticator: Send + Sync {
    /// The user of a token; none if it is not valid, or of a kind that is not known. The client waits for it.
    async fn authenticate(&self, token: &str) -> Option<Identity>;
}

/// Members of `system:masters` may do everything, other authenticated users may read discovery and ask about
/// themselves, and anonymous ones may read health and version.
pub struct MastersOnly;

#[async_trait]
impl Authorizer for MastersOnly {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let user = attributes.user;
        if user.is_admin() {
            return Decision::Allowed;
        }
        Decision::of(if attributes.is_path {
            matches!(attributes.verb, "get" | "head")
                && (is_public(attributes.path) || (!user.is_anonymous() && is_discovery(attributes.path)))
        } else {
            attributes.verb == "create" && !user.is_anonymous() && is_about_self(attributes)
        })
    }
}

fn is_discovery(path: &str) -> bool {
    ["/api", "/apis", "/openapi"].iter().any(|root| under(path, root))
}

fn is_about_self(attributes: &Attributes<'_>) -> bool {
    matches!(
        attributes.resource,
        "selfsubjectaccessreviews" | "selfsubjectrulesreviews" | "selfsubjectreviews"
    ) && matches!(attributes.group, "authorization.k8s.io" | "authentication.k8s.io")
}

fn under(path: &str, root: &str) -> bool {
    path == root || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
}

/// Paths that reveal nothing about what is stored.
fn is_public(path: &str) -> bool {
    ["/healthz", "/livez", "/readyz", "/version"].iter().any(|root| under(path, root))
}

impl Inner {
    /// `Ok` when the authorizer allows it, or the 403 for the client.
    pub(crate) async fn authorize(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        match self.authorizer.authorize(attributes).await {
            Decision::Allowed => Ok(()),
            Decision::Denied { reason } => Err(refusal(attributes, &reason)),
        }
    }
}

fn refusal(attributes: &Attributes<'_>, reason: &str) -> Status {
    let Attributes { verb, group, resource, subresource, namespace, name, path, .. } = *attributes;
    let user = &attributes.user.user;
    let mut why = if attributes.is_path {
        format!("User {user:?} cannot {verb} path {path:?}")
    } else {
        let scope = match namespace {
            "" => " at the cluster scope".to_owned(),
            namespace => format!(" in the namespace {namespace:?}"),
        };
        let resource = match subresource {
            "" => resource.to_owned(),
            subresource => format!("{resource}/{subresource}"),
        };
        format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?}{scope}")
    };
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    Status::forbidden(&GroupResource::new(group, resource), name, why)
}
