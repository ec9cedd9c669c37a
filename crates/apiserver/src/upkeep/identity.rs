//! The users that admission plugins see as authors of the server's own writes: the controllers of Kubernetes that do the same
//! work there. These writes are part of the server, so the authorizer is not called for them.

use crate::auth::Identity;
use crate::call::Requester;
use std::sync::LazyLock;

static SERVER: LazyLock<Identity> = LazyLock::new(|| Identity::admin("system:apiserver"));
static GARBAGE_COLLECTOR: LazyLock<Identity> = LazyLock::new(|| controller("generic-garbage-collector"));
static AGGREGATION: LazyLock<Identity> = LazyLock::new(|| controller("clusterrole-aggregation-controller"));
static CERTIFICATES: LazyLock<Identity> = LazyLock::new(|| controller("certificate-controller"));
static NAMESPACES: LazyLock<Identity> = LazyLock::new(|| controller("namespace-controller"));

fn controller(name: &str) -> Identity {
    Identity::service_account("kube-system", name)
}

/// The API server: bootstrap, definitions, expiry.
pub(crate) fn server() -> Requester<'static> {
    Requester::server(&SERVER)
}

/// Deletes and releases objects by their owner references.
pub(super) fn garbage_collector() -> Requester<'static> {
    Requester::server(&GARBAGE_COLLECTOR)
}

/// Collects the rules of aggregated ClusterRoles.
pub(super) fn aggregation() -> Requester<'static> {
    Requester::server(&AGGREGATION)
}

/// Signs approved certificate signing requests, and removes old ones.
pub(super) fn certificates() -> Requester<'static> {
    Requester::server(&CERTIFICATES)
}

/// Fills new namespaces and empties deleted ones.
pub(super) fn namespaces() -> Requester<'static> {
    Requester::server(&NAMESPACES)
}
