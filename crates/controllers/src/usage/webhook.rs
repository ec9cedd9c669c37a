//! Usage protection as an admission webhook: `AdmissionReview` of `admission.k8s.io/v1` in, the same with a response out.
//!
//! Pure but for what [`Protection`] remembers of the attempt. Serving it over HTTPS, and what the API server adds to the
//! refusal, are not decided here.

use super::Protection;
use serde_json::{Value, json};

/// The name of the webhook in its configuration, which the API server prints in refusals.
pub const WEBHOOK: &str = "nousages.protection.crossplane.io";

/// How the `reason` of the Status begins with which a deletion is refused. Crossplane's webhook puts the whole message
/// there; in process the reason is this text alone.
pub const IN_USE_REASON: &str = "This resource is in-use";

/// What is decided about an admission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeletionDecision {
    /// The object may be deleted.
    Allowed,
    /// The object is in use; the reason is for the user.
    InUse(String),
    /// The request cannot be decided, for example because it is not a deletion.
    Invalid(String),
}

/// The part of an `AdmissionRequest` that counts.
#[derive(Clone, Copy, Debug)]
pub struct DeletionRequest<'a> {
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'a str,
    /// The stored object.
    pub old_object: Option<&'a Value>,
    /// `DeleteOptions`.
    pub options: &'a Value,
    /// Nothing is deleted after either decision, and a refused attempt is not recorded.
    pub dry_run: bool,
}

impl Protection {
    /// Decides about one admission request, in process or from a webhook.
    pub fn decide(&self, request: &DeletionRequest<'_>) -> DeletionDecision {
        if request.operation != "DELETE" {
            let operation = request.operation;
            return DeletionDecision::Invalid(format!(
                "unexpected operation {operation:?}, expected \"DELETE\""
            ));
        }
        let Some(object) = request.old_object.filter(|object| object.is_object()) else {
            return DeletionDecision::Invalid("the request has no oldObject".to_owned());
        };
        let Some(reason) = self.refusal(object) else { return DeletionDecision::Allowed };
        if !request.dry_run {
            self.record_attempt(object, request.options["propagationPolicy"].as_str());
        }
        DeletionDecision::InUse(reason)
    }

    /// The response to an `AdmissionReview`, as Crossplane's webhook gives it.
    pub fn review(&self, review: &Value) -> Value {
        let request = &review["request"];
        let answer = self.decide(&DeletionRequest {
            operation: request["operation"].as_str().unwrap_or_default(),
            old_object: request.get("oldObject"),
            options: &request["options"],
            dry_run: request["dryRun"].as_bool().unwrap_or_default(),
        });
        let (allowed, status) = match answer {
            DeletionDecision::Allowed => (true, json!({"metadata": {}, "code": 200})),
            // Crossplane puts the whole message into the reason.
            DeletionDecision::InUse(reason) => {
                (false, json!({"metadata": {}, "reason": reason, "code": 409}))
            }
            DeletionDecision::Invalid(message) => {
                (false, json!({"metadata": {}, "message": message, "code": 400}))
            }
        };
        json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {"uid": request["uid"], "allowed": allowed, "status": status},
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::protection::tests::{complete, usage};
    use super::*;

    fn review(operation: &str, in_use: bool) -> Value {
        let labels = if in_use { json!({"crossplane.io/in-use": "true"}) } else { json!({}) };
        let metadata = json!({"name": "map", "namespace": "here", "uid": "m", "labels": labels});
        json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "r",
                "operation": operation,
                "oldObject": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata},
                "options": {"kind": "DeleteOptions", "propagationPolicy": "Foreground"},
            },
        })
    }

    #[test]
    fn reviews_of_deletions() {
        let protection = Protection::default();
        complete(&protection, [("1", usage("Usage", "here", "u", "map"))]);
        let free = protection.review(&review("DELETE", false));
        assert_eq!(
            free,
            json!({
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {"uid": "r", "allowed": true, "status": {"metadata": {}, "code": 200}},
            })
        );
        let used = protection.review(&review("DELETE", true));
        let reason = "This resource is in-use by 1 usage(s), including the *v1beta1.Usage \"u\" (in namespace \"here\").";
        let status = json!({"metadata": {}, "reason": reason, "code": 409});
        assert_eq!(used["response"], json!({"uid": "r", "allowed": false, "status": status}));
        let object = &review("DELETE", true)["request"]["oldObject"];
        assert_eq!(protection.take_attempt(object).as_deref(), Some("Foreground"), "for its replay");
    }

    #[test]
    fn a_dry_run_is_refused_and_not_recorded() {
        let protection = Protection::default();
        complete(&protection, [("1", usage("Usage", "here", "u", "map"))]);
        let mut dry = review("DELETE", true);
        dry["request"]["dryRun"] = json!(true);
        assert_eq!(protection.review(&dry)["response"]["allowed"], false);
        let object = dry["request"]["oldObject"].clone();
        assert_eq!(protection.take_attempt(&object), None, "nothing to replay");
        assert_eq!(protection.pending_attempts(), 0, "nothing is written to the object");
        dry["request"]["dryRun"] = json!(false);
        protection.review(&dry);
        assert_eq!(protection.pending_attempts(), 1);
        assert_eq!(protection.take_attempt(&object).as_deref(), Some("Foreground"));
    }

    #[test]
    fn a_marked_object_is_protected_until_all_usages_are_known() {
        let starting = Protection::default().review(&review("DELETE", true));
        let reason = starting["response"]["status"]["reason"].as_str().unwrap();
        assert!(reason.contains("the control plane is starting"), "{reason}");
    }

    #[test]
    fn other_requests_are_invalid() {
        let protection = Protection::default();
        for operation in ["CREATE", "UPDATE", "CONNECT", "unknown"] {
            let refused = protection.review(&review(operation, true));
            let message = format!("unexpected operation {operation:?}, expected \"DELETE\"");
            let status = json!({"metadata": {}, "message": message, "code": 400});
            assert_eq!(refused["response"], json!({"uid": "r", "allowed": false, "status": status}));
        }
        let mut without = review("DELETE", true);
        without["request"]["oldObject"] = Value::Null;
        assert_eq!(protection.review(&without)["response"]["status"]["code"], 400);
    }
}
