//! The controllers in the embedded plane: clients of the server in the same process, like any other client.

use super::announce::Announcer;
use super::functions::Functions;
use crate::failure::Failure;
use http::Request;
use std::sync::Arc;
use tower::ServiceExt;
use transom_apiserver::{
    Admission, Endpoint, Identity, Operation, Phase, Review, Server, Verdict, async_trait,
};
use transom_controllers::{
    Context, Controllers, DeletionDecision, DeletionRequest, IN_USE_REASON, Options, Protection, WEBHOOK,
};
use transom_engine::Clock;
use transom_engine::Metrics;
use transom_object::Status;
use transom_object::time::Timestamp;

/// Who the controllers are to the server.
const USER: &str = "system:serviceaccount:crossplane-system:crossplane";

/// Usage protection in process: reviews deletions as Crossplane's webhook does, and refuses them as an API server words
/// the refusal of that webhook.
pub(super) struct UsageProtection(pub(super) Arc<Protection>);

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
        });
        let denied = |why: String| format!("admission webhook {WEBHOOK:?} denied the request: {why}");
        match answer {
            DeletionDecision::Allowed => Verdict::allow(),
            DeletionDecision::InUse(why) => Verdict::refuse(Status::new(409, IN_USE_REASON, denied(why))),
            DeletionDecision::Invalid(why) => Verdict::refuse(Status::bad_request(denied(why))),
        }
    }
}

/// Starts them on the runtime that this is run on: whatever they do stays there.
pub(super) async fn start(
    server: Server,
    functions: Functions,
    metrics: Arc<Metrics>,
    protection: Arc<Protection>,
    options: Options,
    announcer: Announcer,
) -> Result<Controllers, Failure> {
    let who = Identity::admin(USER);
    let transport = server.map_request(move |mut request: Request<kube::client::Body>| {
        request.extensions_mut().insert(who.clone());
        request
    });
    let now = Timestamp::now();
    let context = Context {
        client: kube::Client::new(transport, "default"),
        runner: functions.runner(),
        functions: functions.installer(),
        clock: Clock::starting_at(now),
        announce: Arc::new(move |notice| announcer.notice(notice)),
        metrics,
        protection,
        options: Options { seed: u64::try_from(now.as_microsecond()).unwrap_or_default(), ..options },
    };
    Controllers::start(context)
        .await
        .map_err(|e| Failure::new(format!("cannot start the controllers: {}", e.chain())))
}
