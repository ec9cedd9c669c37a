//! Versions of composite resources in a plane of one process: reviews of conversion webhooks that lead to the plane itself are
//! answered without a connection.
//!
//! The store is read: a conversion is a part of another request, which must not wait for a second one, and it must see the rules of
//! the newest definition.

use super::webhook_caller::HttpsCaller;
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;
use transom_apiserver::{WebhookCall, WebhookCallError, WebhookCaller, async_trait};
use transom_controllers::{CONVERSION_PATH, ConversionEndpoint, Conversions};
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
