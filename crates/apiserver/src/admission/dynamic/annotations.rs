//! What admission adds to the event of a request in the audit log, under the keys and in the forms of Kubernetes.
//!
//! An annotation stays as it was first added: of a request that is decided again, or whose validations fail for several
//! reasons, the first decision and the first failure are recorded.

use crate::call::Requester;
use serde_json::{Value, json};
use transom_admission::policy::{Binding, Failure};
use transom_admission::webhook::{Answer, Webhook};
use transom_audit::Level;
use transom_object::json::encode_escaped;

const VALIDATION_FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// A validation that did not hold, for a binding with the action `Audit`.
pub(super) fn failed(by: Requester<'_>, binding: &Binding, failure: &Failure) {
    let value = object(&[
        ("message", failure.message.as_str().into()),
        ("policy", binding.policy.as_str().into()),
        ("binding", binding.name.as_str().into()),
        ("expressionIndex", failure.index.into()),
        ("validationActions", json!(binding.actions)),
    ]);
    by.annotate(Level::Metadata, VALIDATION_FAILURE, || format!("[{value}]"));
}

/// The annotations of a policy, gathered from all its bindings and their parameters.
#[derive(Default)]
pub(super) struct OfPolicy(Vec<(String, Vec<String>)>);

impl OfPolicy {
    pub(super) fn add(&mut self, annotations: Vec<(String, String)>) {
        for (key, value) in annotations {
            match self.0.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) if values.contains(&value) => {}
                Some((_, values)) => values.push(value),
                None => self.0.push((key, vec![value])),
            }
        }
    }

    /// Different values of a key are one list.
    pub(super) fn publish(self, by: Requester<'_>, policy: &str) {
        for (key, values) in self.0 {
            by.annotate(Level::Metadata, &format!("{policy}/{key}"), || values.join(", "));
        }
    }
}

/// What a webhook answered for the audit log.
pub(super) fn answered(by: Requester<'_>, webhook: &Webhook, answer: &Answer) {
    for (key, value) in &answer.audit_annotations {
        by.annotate(Level::Metadata, &format!("{}/{key}", webhook.name), || value.clone());
    }
}

/// One call of a webhook: its round and its place among the webhooks of the phase.
#[derive(Clone, Copy)]
pub(super) struct CallPosition {
    pub(super) mutating: bool,
    pub(super) round: usize,
    pub(super) index: usize,
}

impl CallPosition {
    fn key(self, prefix: &str) -> String {
        format!("{prefix}/round_{}_index_{}", self.round, self.index)
    }

    /// The call failed, and the request continues.
    pub(super) fn failed_open(self, by: Requester<'_>, webhook: &Webhook) {
        let phase = if self.mutating { "mutation" } else { "validating" };
        let key = self.key(&format!("failed-open.{phase}.webhook.admission.k8s.io"));
        by.annotate(Level::Metadata, &key, || webhook.name.clone());
    }

    /// Whether a mutating webhook changed the object.
    pub(super) fn mutated(self, by: Requester<'_>, webhook: &Webhook, mutated: bool) {
        let key = self.key("mutation.webhook.admission.k8s.io");
        by.annotate(Level::Metadata, &key, || {
            object(&[
                ("configuration", webhook.configuration.as_str().into()),
                ("webhook", webhook.name.as_str().into()),
                ("mutated", mutated.into()),
            ])
        });
    }

    /// The patch that was applied. It has parts of the object, so it is recorded where the object is.
    pub(super) fn patched(self, by: Requester<'_>, webhook: &Webhook, patch: &Value) {
        by.annotate(Level::Request, &self.key("patch.webhook.admission.k8s.io"), || {
            object(&[
                ("configuration", webhook.configuration.as_str().into()),
                ("webhook", webhook.name.as_str().into()),
                ("patch", patch.clone()),
                ("patchType", "JSONPatch".into()),
            ])
        });
    }
}

/// An object with its fields in this order, as Go writes a struct.
fn object(fields: &[(&str, Value)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("\"{name}\":{}", encode_escaped(value))).collect();
    format!("{{{}}}", fields.join(","))
}
