//! From the client configuration of a webhook to a call of it: a Service becomes one of its endpoints.

use super::caller::WebhookCall;
use crate::server::Inner;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;
use std::ops::Bound;
use std::time::Duration;
use transom_admission::webhook::{Address, ClientConfig};
use transom_object::error_chain::chain;
use transom_object::meta;
use transom_store::{Key, ObjectKey};

const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

impl Inner {
    /// Posts a review to a webhook. `Err` is why there is no response.
    pub(crate) async fn call_webhook(
        &self,
        client: &ClientConfig,
        review: &Value,
        timeout: Duration,
    ) -> Result<Bytes, String> {
        let (url, connect_to) = self.locate(&client.address)?;
        let separator = if url.contains('?') { '&' } else { '?' };
        let url = format!("{url}{separator}timeout={}s", timeout.as_secs());
        let caller = self.dynamic.caller.as_ref();
        let caller = caller.ok_or_else(|| format!("Post {url:?}: this server makes no connections"))?;
        let authorities = STANDARD
            .decode(&client.ca_bundle)
            .ok()
            .ok_or_else(|| format!("Post {url:?}: the caBundle is not base64"))?;
        let body = review.to_string().into_bytes();
        let call = WebhookCall { url: url.clone(), connect_to, authorities, body, timeout };
        let failed = |why: String| format!("Post {url:?}: {why}");
        match tokio::time::timeout(timeout, caller.call(call)).await {
            Ok(result) => result.map_err(|error| failed(chain(&error))),
            Err(_) => Err(failed("context deadline exceeded".to_owned())),
        }
    }

    /// The URL, and the endpoint to connect to if it is that of a Service.
    fn locate(&self, address: &Address) -> Result<(String, Option<(String, u16)>), String> {
        match address {
            Address::Url(url) => Ok((url.clone(), None)),
            Address::Service { namespace, name, port, path } => {
                let endpoint = self.endpoint(namespace, name, *port)?;
                let path = path.trim_start_matches('/');
                Ok((format!("https://{name}.{namespace}.svc:{port}/{path}"), Some(endpoint)))
            }
        }
    }

    /// A ready endpoint of a Service: from its EndpointSlices, or its Endpoints, or the name of an external Service.
    fn endpoint(&self, namespace: &str, name: &str, port: i64) -> Result<(String, u16), String> {
        let read = |resource: &str| -> Option<Value> {
            let entry = self.store.get(&Key::new(resource, namespace, name))?;
            serde_json::from_slice(&entry.body).ok()
        };
        let service = read("services").ok_or_else(|| format!("service {name:?} not found"))?;
        let spec = &service["spec"];
        let number = |value: &Value| value.as_u64().and_then(|n| u16::try_from(n).ok());
        if spec["type"] == "ExternalName" {
            let host = spec["externalName"].as_str().unwrap_or_default().to_owned();
            return Ok((host, u16::try_from(port).unwrap_or(443)));
        }
        let ports = spec["ports"].as_array().into_iter().flatten();
        let wanted = ports.clone().find(|p| p["port"] == port);
        let wanted = wanted.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
        let port_name = wanted["name"].as_str().unwrap_or_default();
        let named = |list: &Value| {
            let ports = list.as_array().into_iter().flatten();
            let found = ports.filter(|p| p["name"].as_str().unwrap_or_default() == port_name);
            found.filter_map(|p| number(&p["port"])).next()
        };
        for slice in self.slices(namespace, name) {
            let ready = slice["endpoints"].as_array().into_iter().flatten();
            let ready = ready.filter(|e| e["conditions"]["ready"] != false);
            let address = ready.filter_map(|e| e["addresses"][0].as_str()).next();
            if let (Some(address), Some(port)) = (address, named(&slice["ports"])) {
                return Ok((address.to_owned(), port));
            }
        }
        let endpoints = read("endpoints").unwrap_or_default();
        for subset in endpoints["subsets"].as_array().into_iter().flatten() {
            if let (Some(address), Some(port)) =
                (subset["addresses"][0]["ip"].as_str(), named(&subset["ports"]))
            {
                return Ok((address.to_owned(), port));
            }
        }
        Err(format!(
            "no endpoints available for service {name:?}: nothing runs pods here; write an EndpointSlice with the label {SERVICE_NAME_LABEL}={name}, or give the webhook a url"
        ))
    }

    fn slices(&self, namespace: &str, service: &str) -> Vec<Value> {
        let snapshot = self.store.snapshot("endpointslices.discovery.k8s.io");
        let key = |ns: &str| ObjectKey { namespace: ns.into(), name: "".into() };
        let range = (Bound::Included(key(namespace)), Bound::Excluded(key(&format!("{namespace}\0"))));
        let all =
            snapshot.objects.range(range).filter_map(|(_, e)| serde_json::from_slice::<Value>(&e.body).ok());
        all.filter(|s| meta::labels(s).get(SERVICE_NAME_LABEL).is_some_and(|n| n == service)).collect()
    }
}
