//! Webhooks in packages: they lead to the package's own server.

use serde_json::{Value, json};
use transom_object::meta;

/// The port of a package's webhook server.
const PORT: u16 = 9443;

/// The server of a package's webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookServer {
    /// The certificate that it is verified by: PEM in base64, as `caBundle` has it.
    pub ca_bundle: String,
    /// The namespace of its Service.
    pub namespace: String,
    /// The name of the package and of its Service.
    pub package: String,
    /// The kind of the package.
    pub package_kind: String,
}

/// A definition whose versions are converted by a server that has no certificate yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot deploy a CRD with webhook conversion strategy without having a TLS bundle: {kind} {name}")]
pub struct NoCertificate {
    /// The kind of the definition.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// Points the webhooks of an object to a package's server. Configurations of webhooks are named after the package, because
/// generators give all of them the same name; without a server they stay as they are.
pub fn with_webhooks(object: &mut Value, server: Option<&WebhookServer>) -> Result<(), NoCertificate> {
    match meta::kind(object) {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            if let Some(server) = server {
                configure(object, server);
            }
            Ok(())
        }
        "CustomResourceDefinition" | "ManagedResourceDefinition" => convert(object, server),
        _ => Ok(()),
    }
}

fn configure(object: &mut Value, server: &WebhookServer) {
    let name = format!("crossplane-{}-{}", server.package_kind.to_lowercase(), server.package);
    meta::set_name(object, &name);
    let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten().filter(|webhook| webhook.is_object()) {
        point(&mut webhook["clientConfig"], server);
    }
}

fn convert(object: &mut Value, server: Option<&WebhookServer>) -> Result<(), NoCertificate> {
    if object.pointer("/spec/conversion/strategy").and_then(Value::as_str) != Some("Webhook") {
        return Ok(());
    }
    let Some(server) = server else {
        let (kind, name) = (meta::kind(object).to_owned(), meta::name(object).to_owned());
        return Err(NoCertificate { kind, name });
    };
    let conversion = &mut object["spec"]["conversion"];
    let webhook = child(conversion, "webhook");
    point(child(webhook, "clientConfig"), server);
    Ok(())
}

/// A field that is made an object if it is none.
fn child<'v>(value: &'v mut Value, field: &str) -> &'v mut Value {
    if !value[field].is_object() {
        value[field] = json!({});
    }
    &mut value[field]
}

/// Fields of the Service beyond its name and port, such as the path, stay.
fn point(config: &mut Value, server: &WebhookServer) {
    if !config.is_object() {
        *config = json!({});
    }
    config["caBundle"] = server.ca_bundle.clone().into();
    let service = child(config, "service");
    service["name"] = server.package.clone().into();
    service["namespace"] = server.namespace.clone().into();
    service["port"] = PORT.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> WebhookServer {
        WebhookServer {
            ca_bundle: "Q0E=".to_owned(),
            namespace: "crossplane-system".to_owned(),
            package: "provider-x".to_owned(),
            package_kind: "Provider".to_owned(),
        }
    }

    fn client(path: Option<&str>) -> Value {
        let mut service = json!({"name": "provider-x", "namespace": "crossplane-system", "port": 9443});
        if let Some(path) = path {
            service["path"] = path.into();
        }
        json!({"caBundle": "Q0E=", "service": service})
    }

    #[test]
    fn webhooks_lead_to_the_package() {
        let mut object = json!({
            "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "webhook"},
            "webhooks": [{"name": "a", "clientConfig": {"service": {"name": "x", "path": "/p"}}}, {"name": "b"}],
        });
        let untouched = object.clone();
        with_webhooks(&mut object, None).unwrap();
        assert_eq!(object, untouched);
        with_webhooks(&mut object, Some(&server())).unwrap();
        assert_eq!(meta::name(&object), "crossplane-provider-provider-x");
        assert_eq!(object["webhooks"][0]["clientConfig"], client(Some("/p")));
        assert_eq!(object["webhooks"][1]["clientConfig"], client(None));
    }

    #[test]
    fn conversions_need_a_certificate() {
        let definition = |strategy: &str| {
            let spec = json!({"conversion": {"strategy": strategy}});
            json!({"kind": "CustomResourceDefinition", "metadata": {"name": "c"}, "spec": spec})
        };
        let mut plain = definition("None");
        with_webhooks(&mut plain, None).unwrap();
        assert_eq!(plain, definition("None"));
        let mut converted = definition("Webhook");
        let error = with_webhooks(&mut converted, None).unwrap_err().to_string();
        assert!(error.ends_with("CustomResourceDefinition c"), "{error}");
        with_webhooks(&mut converted, Some(&server())).unwrap();
        assert_eq!(converted["spec"]["conversion"]["webhook"]["clientConfig"], client(None));
    }
}
