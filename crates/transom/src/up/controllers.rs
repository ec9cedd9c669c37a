//! The controllers in the embedded plane: clients of the server in the same process, like any other client.

use super::announce::Announcer;
use super::functions::Embedded;
use crate::failure::Failure;
use http::Request;
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt;
use transom_apiserver::{Admission, Identity, Server};
use transom_controllers::{Context, Controllers, Options, Protection};
use transom_engine::Clock;
use transom_engine::Metrics;
use transom_object::time::Timestamp;

/// Who the controllers are to the server.
const USER: &str = "system:serviceaccount:crossplane-system:crossplane";

/// Asks the usages before the server deletes anything.
pub(super) struct Guard(pub(super) Arc<Protection>);

impl Admission for Guard {
    fn delete(&self, object: &Value, propagation: Option<&str>) -> Result<(), String> {
        let refusal = self.0.refusal(object, propagation);
        refusal.map_or(Ok(()), |why| {
            Err(format!("admission webhook \"nousages.protection.crossplane.io\" denied the request: {why}"))
        })
    }
}

/// Starts them on the runtime that this is run on: whatever they do stays there.
pub(super) async fn start(
    server: Server,
    functions: Embedded,
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
        runtime: Arc::new(functions),
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
