//! Inline functions: functions in a Composition that need no Function object, the program of an image or a web server. They
//! are Crossplane's alpha composition functions (v1.11 to v1.13), with the types that their design foresaw.

#![expect(missing_docs, reason = "names and fields are Crossplane's, which its CRDs describe")]

use crate::composition::{nullable, omit};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// `type: Container`.
pub const TYPE_CONTAINER: &str = "Container";
/// `type: Chroot`.
pub const TYPE_CHROOT: &str = "Chroot";
/// `type: Webhook`.
pub const TYPE_WEBHOOK: &str = "Webhook";
/// `io: FunctionIO`.
pub const IO_FUNCTION_IO: &str = "FunctionIO";
/// `io: ResourceList`.
pub const IO_RESOURCE_LIST: &str = "ResourceList";
/// The endpoint of the runner that Crossplane had beside it. Here it means the runner in the control plane itself.
pub const DEFAULT_RUNNER: &str = "unix-abstract:crossplane/fn/default.sock";
/// How long a call may take, unless the function sets a timeout.
pub const DEFAULT_TIMEOUT: &str = "20s";
/// The limits of a function that does not set them.
pub const DEFAULT_CPU: &str = "100m";
pub const DEFAULT_MEMORY: &str = "128Mi";

/// An entry of `spec.functions`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FunctionEntry {
    pub name: String,
    #[serde(flatten)]
    pub inline: InlineFunction,
    /// The configuration of the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
}

/// An inline function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InlineFunction {
    /// `Container`, `Chroot` or `Webhook`; `Container` if it is empty.
    #[serde(rename = "type", skip_serializing_if = "omit::text")]
    pub kind: String,
    /// The document that the function reads and writes: `FunctionIO`, or `ResourceList`; `FunctionIO` if it is empty.
    #[serde(skip_serializing_if = "omit::text")]
    pub io: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerFunction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookFunction>,
}

impl InlineFunction {
    /// What is called, for messages: an image or a URL.
    pub fn target(&self) -> &str {
        match (self.is_webhook(), &self.webhook, &self.container) {
            (true, Some(webhook), _) => &webhook.url,
            (false, _, Some(container)) => &container.image,
            _ => "",
        }
    }

    pub fn is_webhook(&self) -> bool {
        self.kind == TYPE_WEBHOOK
    }

    pub fn is_chroot(&self) -> bool {
        self.kind == TYPE_CHROOT
    }

    pub fn wants_resource_list(&self) -> bool {
        self.io == IO_RESOURCE_LIST
    }
}

/// The program of an image, run once for every call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerFunction {
    pub image: String,
    /// `Always`, `Never` or `IfNotPresent`, which is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// Secrets in the namespace of the control plane.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub image_pull_secrets: Vec<SecretName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,
}

impl ContainerFunction {
    /// The endpoint of another runner than the one in the control plane.
    pub fn other_runner(&self) -> Option<&str> {
        let endpoint = self.runner.as_ref()?.endpoint.as_deref()?;
        (!endpoint.is_empty() && endpoint != DEFAULT_RUNNER).then_some(endpoint)
    }

    /// Whether the function uses the network of its runner.
    pub fn uses_runner_network(&self) -> bool {
        self.network.as_ref().is_some_and(|network| network.policy.as_deref() == Some("Runner"))
    }

    /// A limit by its name, as a quantity.
    pub fn limit(&self, name: &str) -> Option<&str> {
        self.resources.as_ref()?.limits.get(name).map(String::as_str)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SecretName {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Network {
    /// `Isolated`, which is the default, or `Runner`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Resources {
    /// Quantities, which YAML may have read as numbers.
    #[serde(deserialize_with = "quantities", skip_serializing_if = "omit::map")]
    pub limits: BTreeMap<String, String>,
}

fn quantities<'de, D: serde::Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let read: BTreeMap<String, Value> = nullable(from)?;
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok(read.into_iter().map(|(name, value)| (name, text(value))).collect())
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Runner {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}

/// A web server that is sent the function's document and responds with one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookFunction {
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// The authorities that the server's certificate is verified with: PEM, in Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
    /// A Secret in the namespace of the control plane with the client's certificate: `tls.crt`, `tls.key`, and `ca.crt` for the
    /// server's authorities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_secret_ref: Option<SecretName>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_is_read_and_written_as_it_was() {
        let written = json!({
            "name": "label",
            "type": "Container",
            "container": {
                "image": "r.io/label:v1",
                "imagePullSecrets": [{"name": "pull"}],
                "network": {"policy": "Runner"},
                "resources": {"limits": {"cpu": "1", "memory": "64Mi"}},
                "runner": {"endpoint": "unix-abstract:crossplane/fn/default.sock"},
            },
            "config": {"apiVersion": "v1", "kind": "C"},
        });
        let entry: FunctionEntry = serde_json::from_value(written.clone()).unwrap();
        let container = entry.inline.container.as_ref().unwrap();
        assert_eq!((entry.inline.target(), container.limit("cpu")), ("r.io/label:v1", Some("1")));
        assert!(container.uses_runner_network());
        assert_eq!(container.other_runner(), None, "the default is this process");
        assert_eq!(json!(entry), written);
    }

    #[test]
    fn limits_may_be_numbers() {
        let read: Resources = serde_json::from_value(json!({"limits": {"cpu": 2}})).unwrap();
        assert_eq!(read.limits["cpu"], "2");
    }
}
