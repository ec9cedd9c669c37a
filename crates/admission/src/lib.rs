//! The meaning of objects of `admissionregistration.k8s.io`, conversion webhooks, ResourceQuotas and LimitRanges: which
//! requests they match, what is sent to a webhook and which parts of its response are used, what policies allow and
//! change, what is counted.
//!
//! Pure: no I/O, no clock, no randomness. The store, connections and the order in which a write is reviewed belong to
//! `transom_apiserver`.
//!
//! | module | what it decides |
//! |---|---|
//! | [`rules`] | whether a request is one that a rule names |
//! | [`selection`] | namespace and object selectors, match conditions |
//! | [`webhook`] | webhooks of a configuration, the AdmissionReview that they get, and their response |
//! | [`policy`] | admission policies and their bindings: compiled, evaluated |
//! | [`conversion`] | what is sent to a conversion webhook, and which parts of its response are used |
//! | [`quota`] | what an object uses of a ResourceQuota |
//! | [`limits`] | what a LimitRange fills in and refuses |

#![warn(missing_docs)]

pub mod conversion;
pub mod limits;
pub mod policy;
pub mod quota;
pub mod rules;
pub mod selection;
pub mod webhook;

pub use transom_cel::{AccessDecider, AccessDecision, AccessQuestion};

use serde_json::{Value, json};

/// The request under review, as expressions and webhooks see it.
#[derive(Clone, Debug)]
pub struct Request {
    /// `AdmissionRequest` without its objects.
    pub request: Value,
    /// The object to be stored; null for a deletion.
    pub object: Value,
    /// The stored object; null for a creation.
    pub old_object: Value,
}

impl Request {
    /// `AdmissionReview` of `admission.k8s.io/v1`, under a new uid.
    pub fn to_review(&self, uid: &str) -> Value {
        let mut request = self.request.clone();
        request["uid"] = uid.into();
        request["object"] = self.object.clone();
        request["oldObject"] = self.old_object.clone();
        json!({"kind": "AdmissionReview", "apiVersion": webhook::API_VERSION, "request": request})
    }
}

#[cfg(test)]
mod tests;
