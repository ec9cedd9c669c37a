//! For tests: the protection of objects in use as an admission check of the embedded server. It decides nothing itself: the
//! verdict is that of [`Protection`], as in the plane and in the webhook.

use std::sync::Arc;
use transom_apiserver::{Admission, Endpoint, Operation, Phase, Review, Verdict, async_trait};
use transom_controllers::{DeletionDecision, DeletionRequest, IN_USE_REASON, Protection};
use transom_object::Status;

/// Refuses to delete objects that are in use.
pub(crate) struct UsageAdmission(pub Arc<Protection>);

#[async_trait]
impl Admission for UsageAdmission {
    fn name(&self) -> &str {
        "usages"
    }

    fn wants(&self, phase: Phase, operation: Operation, _: &Endpoint<'_>) -> bool {
        phase == Phase::Validate && operation == Operation::Delete
    }

    async fn review(&self, review: &Review<'_>) -> Verdict {
        let operation = review.operation.as_str();
        let (old_object, options, dry_run) = (review.old_object, review.options, review.dry_run);
        match self.0.decide(&DeletionRequest { operation, old_object, options, dry_run }) {
            DeletionDecision::Allowed => Verdict::allow(),
            DeletionDecision::InUse(why) | DeletionDecision::Invalid(why) => {
                Verdict::refuse(Status::new(409, IN_USE_REASON, why))
            }
        }
    }
}
