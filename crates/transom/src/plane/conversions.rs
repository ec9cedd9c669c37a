//! Versions of composite resources in a plane of one process: reviews of conversion webhooks that lead to the plane itself are
//! answered without a connection, and definitions with wrong rules are refused.
//!
//! Both read the store: a conversion is a part of another request, which must not wait for a second one, and it must see
//! the rules of the newest definition.

use super::webhook_caller::HttpsCaller;
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;
use transom_apiserver::{
    Admission, Endpoint, Operation, Phase, Review, Verdict, WebhookCall, WebhookCallError, WebhookCaller,
    async_trait,
};
use transom_controllers::{
    CONVERSION_PATH, ConversionEndpoint, Conversions, definition_problems, removed_versions,
};
use transom_object::{GroupKind, Status, meta};
use transom_store::{Key, Store};

/// The host in the URL of conversions: it resolves nowhere, so that the URL leads to this process or fails.
const HOST: &str = "conversion.transom.invalid";
const GROUP: &str = "apiextensions.crossplane.io";
const DEFINITIONS: &str = "compositeresourcedefinitions";

/// Where the API server of an embedded plane sends objects to be converted.
pub(super) fn endpoint() -> ConversionEndpoint {
    ConversionEndpoint::at(&format!("https://{HOST}{CONVERSION_PATH}"))
}

/// Answers conversions by rules, and calls all other webhooks over HTTPS.
pub(super) struct PlaneCaller {
    store: Store,
    conversions: Arc<Conversions>,
}

impl PlaneCaller {
    pub(super) fn new(store: Store) -> Self {
        Self { store, conversions: Arc::default() }
    }
}

/// The name of the definition in the URL of a conversion.
fn definition_of(url: &str) -> Option<&str> {
    let path = url.strip_prefix("https://")?.strip_prefix(HOST)?.strip_prefix(CONVERSION_PATH)?;
    path.strip_prefix('/')?.split('?').next()
}

#[async_trait]
impl WebhookCaller for PlaneCaller {
    async fn call(&self, call: WebhookCall) -> Result<Bytes, WebhookCallError> {
        let Some(name) = definition_of(&call.url) else { return HttpsCaller.call(call).await };
        let entry = self.store.get(&Key::new(format!("{DEFINITIONS}.{GROUP}").as_str(), "", name));
        let conversions = self.conversions.clone();
        // A list of many objects takes a while: other requests go on meanwhile, and the timeout of this one holds.
        let answered = tokio::task::spawn_blocking(move || -> Result<Bytes, serde_json::Error> {
            let review: Value = serde_json::from_slice(&call.body)?;
            let definition: Option<Value> = entry.and_then(|entry| serde_json::from_slice(&entry.body).ok());
            Ok(conversions.answer(&review, definition.as_ref()).to_string().into())
        });
        let answered = answered.await.map_err(|e| WebhookCallError::Exchange(e.into()))?;
        answered.map_err(|e| WebhookCallError::Exchange(e.into()))
    }
}

/// Refuses definitions whose conversion rules lose something, or which lose a version that is in use.
pub(super) struct DefinitionAdmission(pub(super) Store);

impl DefinitionAdmission {
    fn compositions(&self) -> Vec<Value> {
        let snapshot = self.0.snapshot(&format!("compositions.{GROUP}"));
        let entries = snapshot.objects.iter();
        entries.filter_map(|(_, entry)| serde_json::from_slice(&entry.body).ok()).collect()
    }
}

#[async_trait]
impl Admission for DefinitionAdmission {
    fn name(&self) -> &str {
        "definitions.transom.io"
    }

    fn wants(&self, phase: Phase, operation: Operation, endpoint: &Endpoint<'_>) -> bool {
        phase == Phase::Validate
            && matches!(operation, Operation::Create | Operation::Update)
            && endpoint.group == GROUP
            && endpoint.resource == DEFINITIONS
            && endpoint.subresource.is_empty()
    }

    async fn review(&self, review: &Review<'_>) -> Verdict {
        let Some(object) = review.object.filter(|object| !meta::is_deleting(object)) else {
            return Verdict::allow();
        };
        let before = review.old_object;
        let removes = before.is_some_and(|before| !removed_versions(object, before).is_empty());
        let compositions = if removes { self.compositions() } else { Vec::new() };
        // A check of rules takes a while: other requests go on meanwhile.
        let (after, before) = (object.clone(), before.cloned());
        let checked =
            tokio::task::spawn_blocking(move || definition_problems(&after, before.as_ref(), &compositions));
        let problems = match checked.await {
            Ok(problems) if problems.is_empty() => return Verdict::allow(),
            Ok(problems) => problems,
            Err(error) => return Verdict::refuse(Status::internal(error)),
        };
        let kind = GroupKind { group: GROUP.to_owned(), kind: meta::kind(object).to_owned() };
        let mut refusal = Status::invalid(&kind, meta::name(object), &[]);
        refusal.message = format!("{}: {}", refusal.message, problems.join("; "));
        Verdict::refuse(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_conversions_stay_here() {
        let here = format!("https://{HOST}/convert/xs.example.org?timeout=30s");
        assert_eq!(definition_of(&here), Some("xs.example.org"));
        for other in [
            "https://example.org/convert/xs.example.org",
            "https://conversion.transom.invalid.example.org/convert/x",
            "https://conversion.transom.invalid/other",
            "http://conversion.transom.invalid/convert/x",
        ] {
            assert_eq!(definition_of(other), None, "{other}");
        }
    }
}
