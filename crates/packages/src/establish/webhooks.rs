//! Webhooks in packages: they lead to the package's own server.

use super::Owner;
use serde_json::{Value, json};
use transom_object::meta;

/// The port of a package's webhook server.
pub const WEBHOOK_PORT: u16 = 9443;

/// The server of a package's webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookServer {
    /// The certificate that it is verified by: PEM in base64, as `caBundle` has it.
    pub ca_bundle: String,
    /// The namespace of its Service.
    pub namespace: String,
}

/// A CRD whose versions a server of the package converts, while there is no such server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot deploy a CRD with webhook conversion strategy without having a TLS bundle: the versions of {} are converted \
     by the package's own server, which does not run",
    transom_object::quote::quote(crd)
)]
pub struct NoServer {
    /// The name of the CRD.
    pub crd: String,
}

/// Whether an object has the API server ask the server of its package about writes.
fn is_admission(object: &Value) -> bool {
    matches!(meta::kind(object), "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration")
}

/// Whether an object leads to the server of its package.
pub fn wants_server(object: &Value) -> bool {
    match meta::kind(object) {
        _ if is_admission(object) => true,
        "CustomResourceDefinition" | "ManagedResourceDefinition" => {
            object.pointer("/spec/conversion/strategy").and_then(Value::as_str) == Some("Webhook")
        }
        _ => false,
    }
}

/// Points the webhooks of objects to the server of their package. Its Service is named after the package. So are
/// configurations of admission webhooks, because generators give all of them the same name. Without a server these are left
/// out: the API server would refuse every write that it cannot ask about.
pub fn with_webhooks(
    objects: &mut Vec<Value>,
    package: &Owner,
    server: Option<&WebhookServer>,
) -> Result<(), NoServer> {
    objects.retain(|object| server.is_some() || !is_admission(object));
    for object in objects {
        match (meta::kind(object), server) {
            (_, Some(server)) if is_admission(object) => configure(object, package, server),
            ("CustomResourceDefinition" | "ManagedResourceDefinition", _) => {
                convert(object, package, server)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn configure(object: &mut Value, package: &Owner, server: &WebhookServer) {
    meta::set_name(object, &format!("crossplane-{}-{}", package.kind.to_lowercase(), package.name));
    let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten().filter(|webhook| webhook.is_object()) {
        point(&mut webhook["clientConfig"], package, server);
    }
}

fn convert(object: &mut Value, package: &Owner, server: Option<&WebhookServer>) -> Result<(), NoServer> {
    if object.pointer("/spec/conversion/strategy").and_then(Value::as_str) != Some("Webhook") {
        return Ok(());
    }
    let server = server.ok_or_else(|| NoServer { crd: meta::name(object).to_owned() })?;
    let conversion = &mut object["spec"]["conversion"];
    let webhook = child(conversion, "webhook");
    point(child(webhook, "clientConfig"), package, server);
    Ok(())
}

/// A field; any other value than an object is replaced by an empty object.
fn child<'v>(value: &'v mut Value, field: &str) -> &'v mut Value {
    if !value[field].is_object() {
        value[field] = json!({});
    }
    &mut value[field]
}

/// Fields of the Service beyond its name and port, such as the path, stay.
fn point(config: &mut Value, package: &Owner, server: &WebhookServer) {
    if !config.is_object() {
        *config = json!({});
    }
    config["caBundle"] = server.ca_bundle.clone().into();
    let service = child(config, "service");
    service["name"] = package.name.clone().into();
    service["namespace"] = server.namespace.clone().into();
    service["port"] = WEBHOOK_PORT.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> WebhookServer {
        WebhookServer { ca_bundle: "Q0E=".to_owned(), namespace: "crossplane-system".to_owned() }
    }

    fn package() -> Owner {
        Owner::of(
            &json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "provider-x"}}),
        )
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
        let webhooks =
            json!([{"name": "a", "clientConfig": {"service": {"name": "x", "path": "/p"}}}, {"name": "b"}]);
        let mut objects: Vec<Value> =
            ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "Other"]
                .map(|kind| json!({"kind": kind, "metadata": {"name": "webhook"}, "webhooks": webhooks}))
                .to_vec();
        let other = objects[2].clone();
        with_webhooks(&mut objects, &package(), Some(&server())).unwrap();
        for object in &objects[..2] {
            assert_eq!(meta::name(object), "crossplane-provider-provider-x");
            assert_eq!(object["webhooks"][0]["clientConfig"], client(Some("/p")));
            assert_eq!(object["webhooks"][1]["clientConfig"], client(None));
        }
        assert_eq!(objects[2], other);
        with_webhooks(&mut objects, &package(), None).unwrap();
        assert_eq!(objects, [other], "nothing is asked that does not run");
    }

    #[test]
    fn conversions_need_a_server() {
        let definition = |strategy: &str| {
            let spec = json!({"conversion": {"strategy": strategy}});
            vec![json!({"kind": "CustomResourceDefinition", "metadata": {"name": "c"}, "spec": spec})]
        };
        let mut plain = definition("None");
        with_webhooks(&mut plain, &package(), None).unwrap();
        assert_eq!(plain, definition("None"));
        let mut converted = definition("Webhook");
        let error = with_webhooks(&mut converted, &package(), None).unwrap_err().to_string();
        assert!(error.contains("the versions of \"c\" are converted"), "{error}");
        with_webhooks(&mut converted, &package(), Some(&server())).unwrap();
        assert_eq!(converted[0]["spec"]["conversion"]["webhook"]["clientConfig"], client(None));
    }
}
