//! Calls admission webhooks and applies their verdicts: mutating ones in turn, validating ones all at once. A webhook that fails
//! refuses the request, unless its policy is to ignore that.

use super::annotations::{self, CallPosition};
use super::review::{Reviewed, Seen};
use crate::server::Inner;
use futures_util::future::join_all;
use transom_admission::rules::Target;
use transom_admission::selection::{Matched, bindings};
use transom_admission::webhook::{Answer, Webhook, apply_patch, read_answer};
use transom_object::Status;
use transom_object::error_chain::chain;

impl Inner {
    /// One mutating webhook. Returns whether it changed the object.
    pub(super) async fn mutate_by_webhook(
        &self,
        webhook: &Webhook,
        place: CallPosition,
        reviewed: &mut Reviewed<'_>,
    ) -> Result<bool, Status> {
        let by = reviewed.request.by;
        let Some(seen) = called(webhook, reviewed)? else { return Ok(false) };
        let answer = self.ask(webhook, place, reviewed, &seen).await;
        let outcome = match answer {
            Err(refusal) => Err(refusal),
            Ok(answer) => match answer.and_then(|a| a.patch).filter(|_| seen.content.object.is_object()) {
                None => Ok(false),
                Some(patch) => match apply_patch(&seen.content.object, &patch) {
                    Err(error) => Err(Status::internal(error)),
                    Ok(new) => {
                        place.patched(by, webhook, &patch);
                        let other = seen.into_version();
                        reviewed.replace(other.as_deref(), new)
                    }
                },
            },
        };
        place.mutated(by, webhook, matches!(outcome, Ok(true)));
        outcome
    }

    /// All validating webhooks at once: the first refusal by order of names is the response.
    pub(super) async fn validate_by_webhooks(
        &self,
        webhooks: &[Webhook],
        reviewed: &Reviewed<'_>,
    ) -> Result<(), Status> {
        let mut calls = Vec::new();
        for webhook in webhooks {
            if let Some(seen) = called(webhook, reviewed)? {
                let place = CallPosition { mutating: false, round: 0, index: calls.len() };
                calls.push(async move { self.ask(webhook, place, reviewed, &seen).await });
            }
        }
        for outcome in join_all(calls).await {
            outcome?;
        }
        Ok(())
    }

    /// The answer of a webhook; none if its failure is ignored.
    async fn ask(
        &self,
        webhook: &Webhook,
        place: CallPosition,
        reviewed: &Reviewed<'_>,
        seen: &Seen<'_>,
    ) -> Result<Option<Answer>, Status> {
        let name = &webhook.name;
        if reviewed.request.is_dry_run() && !webhook.supports_dry_run {
            return Err(Status::bad_request(format!("admission webhook {name:?} does not support dry run")));
        }
        let uid = self.new_uid();
        let review = seen.content.to_review(&uid);
        let answer = match self.call_webhook(&webhook.client, &review, webhook.timeout).await {
            Err(why) => Err(format!("failed to call webhook: {why}")),
            Ok(body) => read_answer(name, &uid, &body, place.mutating)
                .map_err(|error| format!("received invalid webhook response: {}", chain(&error))),
        };
        match answer {
            Ok(answer) => {
                annotations::answered(reviewed.request.by, webhook, &answer);
                reviewed.request.by.warn(answer.warnings.clone());
                match answer.refusal {
                    Some(refusal) => Err(*refusal),
                    None => Ok(Some(answer)),
                }
            }
            Err(why) if webhook.ignores_failure => {
                place.failed_open(reviewed.request.by, webhook);
                tracing::warn!(webhook = %name, error = %why, "a webhook failed; its failurePolicy is Ignore");
                Ok(None)
            }
            Err(why) => Err(Status::internal(format!("failed calling webhook {name:?}: {why}"))),
        }
    }
}

/// The request as the webhook sees it, if it is called at all.
fn called<'a>(webhook: &Webhook, reviewed: &'a Reviewed<'_>) -> Result<Option<Seen<'a>>, Status> {
    let named = |target: &Target<'_>| webhook.rules.iter().any(|rule| rule.matches(target));
    let Some(seen) = reviewed.seen_by(webhook.equivalent, named)? else { return Ok(None) };
    if !reviewed.is_selected(&webhook.namespaces, &webhook.objects) {
        return Ok(None);
    }
    let scope = bindings(&seen.content, reviewed.namespace(), reviewed.authorizer());
    match webhook.conditions.evaluate(&scope) {
        Matched::Yes => Ok(Some(seen)),
        Matched::No => Ok(None),
        Matched::Failed(_) if webhook.ignores_failure => Ok(None),
        Matched::Failed(why) => {
            let name = reviewed.content().request["name"].as_str().unwrap_or_default();
            Err(Status::forbidden(&reviewed.request.resource.group_resource(), name, why))
        }
    }
}
