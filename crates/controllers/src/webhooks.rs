//! The ValidatingWebhookConfigurations of the control plane, without the address. Pure.
//!
//! A check is decided in a module of this crate; its path and configuration are here. Its `Admission` is a file of
//! `transom/src/plane`, listed in `server.rs` there; its webhook is an arm in `webhooks.rs` there. `chart/src/installation.rs`
//! names each configuration, so that `transom uninstall` removes it.

use crate::usage::WEBHOOK;
use crate::validation::VALIDATED;
use serde_json::{Value, json};
use transom_xapi::constants::group;

/// The path of usage protection, as in Crossplane.
pub const USAGES_PATH: &str = "/validate-no-usages";
/// The path of validation.
pub const VALIDATION_PATH: &str = "/validate";

/// The path of the review of service accounts that definitions name.
pub const ACCOUNTS_PATH: &str = "/validate-service-accounts";

/// The configurations, with the paths that the API server is to call.
pub fn webhook_configurations() -> [(&'static str, Value); 3] {
    [usages(), validation(), accounts()]
}

fn configuration(name: &str, webhook: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name}, "webhooks": [webhook],
    })
}

/// The configuration of Crossplane, under its name. Deletions of used objects fail while no process answers.
fn usages() -> (&'static str, Value) {
    let rule =
        json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["*"]});
    let webhook = json!({
        "name": WEBHOOK, "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "sideEffects": "None",
        "objectSelector": {"matchLabels": {"crossplane.io/in-use": "true"}}, "rules": [rule],
    });
    (USAGES_PATH, configuration("crossplane-no-usages", &webhook))
}

/// Mistakes are refused at once. While no process answers they are stored, and reported as conditions.
fn validation() -> (&'static str, Value) {
    let rule = |(group, plurals): &(&str, &[&str])| json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": plurals});
    let rules: Vec<Value> = VALIDATED.iter().map(rule).collect();
    let webhook = json!({
        "name": "validation.transom.io", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "sideEffects": "None", "timeoutSeconds": 5, "rules": rules,
    });
    (VALIDATION_PATH, configuration("transom-validation", &webhook))
}

/// A definition that names a service account is not stored while no process answers: whether its author may use the account
/// cannot be found out later. All other definitions do not concern this webhook.
fn accounts() -> (&'static str, Value) {
    let rule = json!({
        "apiGroups": [group::APIEXTENSIONS], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
        "resources": ["compositeresourcedefinitions"],
    });
    let names_another = json!({
        "name": "names-another-account",
        "expression": "has(object.spec.serviceAccountRef) && (oldObject == null || \
                       !has(oldObject.spec.serviceAccountRef) || \
                       oldObject.spec.serviceAccountRef != object.spec.serviceAccountRef)",
    });
    let webhook = json!({
        "name": "service-accounts.transom.io", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
        "sideEffects": "None", "timeoutSeconds": 5, "rules": [rule], "matchConditions": [names_another],
    });
    (ACCOUNTS_PATH, configuration("transom-service-accounts", &webhook))
}
