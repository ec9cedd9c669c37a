//! Where the API server sends objects to be converted: known at once in a plane of one process, and as soon as webhooks are
//! served on a cluster. Certificates renew themselves, so it changes.

use serde_json::{Value, json};
use tokio::sync::watch;

/// The `clientConfig` of conversion webhooks, shared by what serves them and what writes CRDs.
#[derive(Clone, Debug)]
pub struct ConversionEndpoint(watch::Sender<Option<Value>>);

impl Default for ConversionEndpoint {
    /// Nothing converts yet.
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl ConversionEndpoint {
    /// One that is known and does not change.
    pub fn at(url: &str) -> Self {
        Self(watch::Sender::new(Some(json!({"url": url}))))
    }

    /// Conversions are served by what this `clientConfig` leads to; the name of the definition is appended to its path.
    pub fn serve(&self, client_config: &Value) {
        self.0.send_if_modified(|current| {
            let is_new = current.as_ref() != Some(client_config);
            *current = Some(client_config.clone());
            is_new
        });
    }

    /// The `conversion` of the CRDs of a definition.
    pub(crate) fn conversion(&self, definition: &str) -> Option<Value> {
        let mut client = self.0.borrow().clone()?;
        let path = ["/url", "/service/path"].iter().find(|at| client.pointer(at).is_some())?;
        if let Some(Value::String(path)) = client.pointer_mut(path) {
            path.push('/');
            path.push_str(definition);
        }
        let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
        Some(json!({"strategy": "Webhook", "webhook": webhook}))
    }

    pub(crate) fn changes(&self) -> watch::Receiver<Option<Value>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_named_in_the_path() {
        let endpoint = ConversionEndpoint::default();
        assert_eq!(endpoint.conversion("a.b"), None);
        let service = json!({"service": {"name": "s", "namespace": "n", "path": "/convert", "port": 9443}, "caBundle": "eA=="});
        endpoint.serve(&service);
        let client = endpoint.conversion("a.b").unwrap()["webhook"]["clientConfig"].take();
        assert_eq!(
            (&client["service"]["path"], &client["caBundle"]),
            (&json!("/convert/a.b"), &json!("eA=="))
        );
        let fixed = ConversionEndpoint::at("https://x/convert").conversion("a.b").unwrap();
        assert_eq!(fixed["webhook"]["clientConfig"], json!({"url": "https://x/convert/a.b"}));
    }

    #[test]
    fn only_another_endpoint_is_a_change() {
        let endpoint = ConversionEndpoint::default();
        let mut changes = endpoint.changes();
        let client = json!({"url": "https://x", "caBundle": "YQ=="});
        for (bundle, is_change) in [("YQ==", true), ("YQ==", false), ("Yg==", true)] {
            let mut client = client.clone();
            client["caBundle"] = bundle.into();
            endpoint.serve(&client);
            assert_eq!(changes.has_changed().unwrap(), is_change, "{bundle}");
            changes.mark_unchanged();
        }
    }
}
