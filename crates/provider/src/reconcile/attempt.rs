//! What a reconcile attempts with the external resource, and how events and conditions name it.

use tokio::time::{Instant, timeout_at};
use transom_engine::{Error, Result};

/// The external resource could not be reached, read or changed: the reason of the event, and what the condition says was attempted.
pub(super) struct Attempt {
    pub(super) reason: &'static str,
    pub(super) words: &'static str,
}

pub(super) const CONNECT: Attempt = Attempt { reason: "CannotConnectToProvider", words: "connect failed" };
pub(super) const OBSERVE: Attempt =
    Attempt { reason: "CannotObserveExternalResource", words: "observe failed" };
pub(super) const CREATE: Attempt = Attempt { reason: "CannotCreateExternalResource", words: "create failed" };
pub(super) const UPDATE: Attempt = Attempt { reason: "CannotUpdateExternalResource", words: "update failed" };
pub(super) const DELETE: Attempt = Attempt { reason: "CannotDeleteExternalResource", words: "delete failed" };
pub(super) const RESOLVE: Attempt =
    Attempt { reason: "CannotResolveResourceReferences", words: "cannot resolve references" };
pub(super) const INITIALIZE: Attempt = Attempt { reason: "CannotInitializeManagedResource", words: "" };
pub(super) const PUBLISH: Attempt = Attempt { reason: "CannotPublishConnectionDetails", words: "" };
pub(super) const WRITE: Attempt =
    Attempt { reason: "CannotUpdateManagedResource", words: "cannot update managed resource" };

/// What a provider answers, unless that takes too long.
pub(super) async fn within<T>(deadline: Instant, answer: impl Future<Output = Result<T>>) -> Result<T> {
    match timeout_at(deadline, answer).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Error::domain("no response within the time limit of a reconcile")),
    }
}

/// Whether a call of the external system changes something there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Read,
    Change,
}

/// The same, for a request that is sent to the external system. That may be a Kubernetes as well, and its conflicts are failures as
/// all others: they can last, unlike those of writes of the managed resource, which are retried and not reported.
#[cfg_attr(not(debug_assertions), expect(unused_variables, reason = "only tests tell calls apart"))]
pub(super) async fn from_outside<T>(
    call: Call,
    deadline: Instant,
    answer: impl Future<Output = Result<T>>,
) -> Result<T> {
    #[cfg(debug_assertions)]
    crate::crash_injection::reach(call == Call::Change);
    let answer = within(deadline, answer).await;
    #[cfg(debug_assertions)]
    crate::crash_injection::reach(call == Call::Change);
    answer.map_err(|e| match e.is_conflict() && !e.is_not_held() {
        true => Error::domain(e),
        false => e,
    })
}
