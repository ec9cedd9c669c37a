//! Usage protection as an admission check of the server in this process. The tests of `controllers` compile this file as well,
//! so that they run with the check that a plane has.

use std::sync::Arc;
use transom_apiserver::{Admission, Endpoint, Operation, Phase, Review, Verdict, async_trait};
use transom_controllers::{DeletionDecision, DeletionRequest, IN_USE_REASON, Protection, WEBHOOK};
use transom_object::Status;

/// Usage protection in process: reviews deletions as Crossplane's webhook does, and refuses them as an API server words
/// the refusal of that webhook.
pub(crate) struct UsageProtection(pub(crate) Arc<Protection>);

#[async_trait]
impl Admission for UsageProtection {
    fn name(&self) -> &str {
        WEBHOOK
    }

    fn wants(&self, phase: Phase, operation: Operation, _endpoint: &Endpoint<'_>) -> bool {
        phase == Phase::Validate && operation == Operation::Delete
    }

    async fn review(&self, review: &Review<'_>) -> Verdict {
        let answer = self.0.decide(&DeletionRequest {
            operation: review.operation.as_str(),
            old_object: review.old_object,
            options: review.options,
            dry_run: review.dry_run,
        });
        let denied = |why: String| format!("admission webhook {WEBHOOK:?} denied the request: {why}");
        match answer {
            DeletionDecision::Allowed => Verdict::allow(),
            DeletionDecision::InUse(why) => Verdict::refuse(Status::new(409, IN_USE_REASON, denied(why))),
            DeletionDecision::Invalid(why) => Verdict::refuse(Status::bad_request(denied(why))),
        }
    }
}
