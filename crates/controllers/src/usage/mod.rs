//! Usages: while something uses an object, the object cannot be deleted.
//!
//! The controller marks used objects with a label. Before an object with that label is deleted,
//! [`Protection`] is consulted, in process or as a webhook; it refuses while a usage of the object exists. Three kinds of usages share one controller.

mod protection;
mod reconcile;
mod webhook;

pub use protection::Protection;
pub use webhook::{DeletionDecision, DeletionRequest, IN_USE_REASON, WEBHOOK};

use crate::plane::Plane;
use std::sync::Arc;
use tokio::task::AbortHandle;
use transom_engine::{Controller, Depth, Error, Following, Pace};
use transom_object::GroupVersionKind;
use transom_xapi::constants::{group, kind};

/// The kinds of usages.
pub(crate) fn kinds() -> [GroupVersionKind; 3] {
    [
        GroupVersionKind::new(group::PROTECTION, "v1beta1", kind::USAGE),
        GroupVersionKind::new(group::PROTECTION, "v1beta1", kind::CLUSTER_USAGE),
        GroupVersionKind::new(group::APIEXTENSIONS, "v1beta1", kind::USAGE),
    ]
}

/// The controllers of usages.
pub(crate) struct UsageControllers {
    _controllers: Vec<Controller>,
    attempts: AbortHandle,
}

impl Drop for UsageControllers {
    fn drop(&mut self) {
        self.attempts.abort();
    }
}

struct Usages {
    plane: Arc<Plane>,
    protection: Arc<Protection>,
    name: String,
    gvk: GroupVersionKind,
    /// The used and the using objects.
    following: Arc<Following>,
}

impl UsageControllers {
    pub(crate) fn start(plane: &Arc<Plane>, protection: &Arc<Protection>) -> Self {
        let start = |gvk: GroupVersionKind| {
            let name = format!("usage/{}.{}", gvk.kind.to_lowercase(), gvk.group);
            let mut controller = plane.controller(&*name, Pace::default());
            controller.watch(&gvk, Depth::Whole, protection.cache());
            controller.watch_own(&gvk, Depth::Header);
            let following = controller.follow(|change| change.is_of_identity());
            let (plane, protection) = (plane.clone(), protection.clone());
            controller.start(Usages { plane, protection, name, gvk, following })
        };
        let controllers = kinds().into_iter().map(start).collect();
        let attempts = protection::record(plane.cluster.writing_always(), protection).abort_handle();
        Self { _controllers: controllers, attempts }
    }
}

/// Whether the server refused to delete an object because a usage protects it.
pub(crate) fn is_in_use(error: &Error) -> bool {
    error.refusal().is_some_and(|(code, reason)| code == 409 && reason.starts_with(IN_USE_REASON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_in_use_is_recognised_by_the_reason_of_the_refusal() {
        let refused = |code, reason: &str, message: &str| {
            let (reason, message) = (reason.to_owned(), message.to_owned());
            is_in_use(&Error::Refused { code, reason, message })
        };
        let crossplane = "This resource is in-use by 1 usage(s), including the *v1beta1.Usage \"u\".";
        assert!(refused(409, crossplane, "denied") && refused(409, IN_USE_REASON, "denied"));
        assert!(!refused(409, "Conflict", crossplane) && !refused(403, IN_USE_REASON, "denied"));
    }
}
