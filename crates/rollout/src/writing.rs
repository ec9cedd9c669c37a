//! Writes to the control plane: each within its time, and each a place at which tests kill the command.

use std::time::Duration;
use transom_console::Failure;
use transom_console::control_plane;
use transom_engine::Error;

/// The owner of the fields that a rollout writes.
pub(crate) const FIELD_MANAGER: &str = "transom-rollout";

/// How long a write may take. Together with the interval in which a hold is renewed it is less than the time after which
/// another command takes over: whatever this one sent is answered by then.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(15);

/// The answer of the control plane to a write of a subject.
pub(crate) async fn write<T>(
    subject: &str,
    request: impl Future<Output = Result<T, Error>>,
) -> Result<Result<T, Error>, Failure> {
    #[cfg(debug_assertions)]
    crate::crash_injection::before_write();
    let answer = tokio::time::timeout(WRITE_TIMEOUT, request).await;
    #[cfg(debug_assertions)]
    crate::crash_injection::after_write();
    answer.map_err(|_| {
        Failure::new(format!("{subject}: no answer from the control plane"))
            .remedy("check that the server of the kubeconfig runs, and repeat the command")
    })
}

/// What an error of the control plane about a subject means to the user.
pub(crate) fn explain(subject: &str, error: &Error) -> Failure {
    match error.refusal() {
        Some((401 | 403, _)) => Failure::new(format!("{subject}: {}", error.chain())).remedy(
            "the user of the kubeconfig has too few rights; docs/rollout.md lists what a rollout needs",
        ),
        _ => control_plane::explain(subject, error),
    }
}
