//! CertificateSigningRequests: whose they are, who may decide about them, and what is signed.
//!
//! A request carries the user that created it, which no write changes. `approval` writes the decision, `status` the
//! certificate, and each needs a right on the signer of the request besides the one on the endpoint. The server signs approved
//! requests for [`CLIENT_SIGNER`] with a [`CertificateSigner`], if it has one, and removes old requests; `upkeep` does both.

mod rights;
mod signing;

pub(crate) use rights::review;
pub use signing::{CertificateOrder, CertificateSigner, CertificateSignerError};
pub(crate) use signing::{Next, is_outdated, next};
pub use transom_kinds::pkcs10::{AlternativeName, SigningRequest};

use crate::auth::Identity;
use crate::resource::Resource;
use crate::subresource::Subresource;
use serde_json::{Value, json};
use transom_kinds::validate::{SigningRequestPart, signing_request};
use transom_object::field;

/// The API group.
pub(crate) const GROUP: &str = "certificates.k8s.io";
/// The store's name of the requests.
pub(crate) const STORE_KEY: &str = "certificatesigningrequests.certificates.k8s.io";
/// The signer of certificates with which clients authenticate to this server.
pub(crate) const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Whether these are CertificateSigningRequests.
pub(crate) fn are(resource: &Resource) -> bool {
    resource.group == GROUP
}

/// Records who created a request, whatever its body says.
pub(crate) fn claim(resource: &Resource, request: &mut Value, user: &Identity) {
    if !are(resource) {
        return;
    }
    let spec = &mut request["spec"];
    for (key, value) in [
        ("username", json!(user.user)),
        ("uid", json!(user.uid)),
        ("groups", json!(user.groups)),
        ("extra", json!(user.extra)),
    ] {
        let is_empty = value == "" || value == json!([]) || value == json!({});
        if !is_empty {
            spec[key] = value;
        } else if let Some(spec) = spec.as_object_mut() {
            spec.remove(key);
        }
    }
}

pub(crate) fn validate(new: &Value, old: Option<&Value>, subresource: Subresource) -> Vec<field::Error> {
    let part = match subresource {
        Subresource::Status => SigningRequestPart::Status,
        Subresource::Approval => SigningRequestPart::Approval,
        _ => SigningRequestPart::Main,
    };
    signing_request(new, old, part)
}

/// What writes through an endpoint never own.
pub(crate) fn reset_fields(subresource: Subresource) -> &'static [&'static [&'static str]] {
    match subresource {
        Subresource::Status => &[&["spec"], &["status", "conditions"]],
        Subresource::Approval => &[&["spec"], &["status", "certificate"]],
        _ => &[&["spec"], &["status"]],
    }
}

/// Completes conditions that a client wrote: `status` keeps the decision as it is stored, and conditions get their times.
pub(crate) fn complete(
    resource: &Resource,
    new: &mut Value,
    old: &Value,
    subresource: Subresource,
    now: &str,
) {
    if !are(resource) || !matches!(subresource, Subresource::Status | Subresource::Approval) {
        return;
    }
    let before = old["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(conditions) = new["status"].get_mut("conditions").and_then(Value::as_array_mut) else { return };
    if subresource == Subresource::Status {
        for decision in ["Approved", "Denied"] {
            keep(conditions, before, decision);
        }
    }
    for condition in conditions {
        let is_zero = |time: &Value| time.as_str().is_none_or(str::is_empty);
        if is_zero(&condition["lastUpdateTime"]) {
            condition["lastUpdateTime"] = now.into();
        }
        if is_zero(&condition["lastTransitionTime"]) {
            let same = |c: &&Value| c["type"] == condition["type"] && c["status"] == condition["status"];
            let since = before.iter().filter(same).map(|c| &c["lastTransitionTime"]).find(|t| !is_zero(t));
            condition["lastTransitionTime"] = since.cloned().unwrap_or_else(|| now.into());
        }
    }
}

/// Restores the conditions of a type, unless some were added or removed, which validation refuses.
fn keep(conditions: &mut [Value], before: &[Value], kind: &str) {
    let stored: Vec<&Value> = before.iter().filter(|c| c["type"] == kind).collect();
    if conditions.iter().filter(|c| c["type"] == kind).count() == stored.len() {
        let written = conditions.iter_mut().filter(|c| c["type"] == kind);
        written.zip(stored).for_each(|(new, old)| new.clone_from(old));
    }
}
