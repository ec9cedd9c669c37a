//! Validation, with kube-apiserver's rules and messages. Metadata is validated elsewhere, in the same way for all kinds;
//! only the rule for names differs by kind ([`name_rule`]).

mod access;
mod certificate;
mod config;
mod event;
pub mod pod;
mod service;
mod stored;
mod webhook;
mod workload;

pub use certificate::{SigningRequestPart, signing_request};
pub use config::finalizer_problem;

use serde_json::Value;
use transom_object::GroupVersionKind;
use transom_object::field::{Error, Path};
use transom_object::names::{self, NameRule};

/// The errors of a new object, or of an update if `old` is given. Both are normalised and defaulted.
pub fn validate(new: &Value, old: Option<&Value>, gvk: &GroupVersionKind) -> Vec<Error> {
    let object = At::root(new);
    let mut errors = Vec::new();
    match (&*gvk.group, &*gvk.kind) {
        ("", "Namespace") if old.is_none() => config::namespace(&object, &mut errors),
        ("", "Secret") => config::secret(&object, old, &mut errors),
        ("", "ConfigMap") => config::config_map(&object, old, &mut errors),
        ("", "Event") => event::core(&object, &mut errors),
        ("events.k8s.io", "Event") => event::events(&object, old, &mut errors),
        ("", "Service") => service::service(&object, old, &mut errors),
        ("apps", "Deployment") => workload::deployment(&object, old, &mut errors),
        ("apps", "ReplicaSet") => workload::replica_set(&object, old, &mut errors),
        ("apps", "DaemonSet") => stored::daemon_set(&object, old, &mut errors),
        ("apps", "StatefulSet") => stored::stateful_set(&object, old, &mut errors),
        ("", "ReplicationController") => stored::replication_controller(&object, &mut errors),
        ("batch", "Job") => stored::job(&object, old, &mut errors),
        ("batch", "CronJob") => stored::cron_job(&object, &mut errors),
        ("networking.k8s.io", "Ingress") => stored::ingress(&object, &mut errors),
        ("networking.k8s.io", "NetworkPolicy") => stored::network_policy(&object, &mut errors),
        ("policy", "PodDisruptionBudget") => stored::disruption_budget(&object, &mut errors),
        ("autoscaling", "HorizontalPodAutoscaler") => stored::autoscaler(&object, &mut errors),
        ("", "PersistentVolumeClaim") => stored::volume_claim(&object, old, &mut errors),
        ("", "PersistentVolume") => stored::volume(&object, &mut errors),
        ("storage.k8s.io", "StorageClass") => stored::storage_class(&object, old, &mut errors),
        ("scheduling.k8s.io", "PriorityClass") => stored::priority_class(&object, old, &mut errors),
        ("", "ResourceQuota") => stored::resource_quota(&object, old, &mut errors),
        ("", "LimitRange") => stored::limit_range(&object, &mut errors),
        ("discovery.k8s.io", "EndpointSlice") => stored::endpoint_slice(&object, old, &mut errors),
        ("", "Pod") => workload::pod(&object, &mut errors),
        ("", "PodTemplate") => workload::pod_template(&object.get("template"), &mut errors),
        ("coordination.k8s.io", "Lease") => config::lease(&object.get("spec"), &mut errors),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            errors.extend(signing_request(new, old, SigningRequestPart::Main));
        }
        ("rbac.authorization.k8s.io", "Role") => access::rules(&object, true, &mut errors),
        ("rbac.authorization.k8s.io", "ClusterRole") => access::cluster_role(&object, &mut errors),
        ("rbac.authorization.k8s.io", "RoleBinding") => access::binding(&object, old, true, &mut errors),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => {
            access::binding(&object, old, false, &mut errors);
        }
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => {
            webhook::configuration(&object, old, &mut errors);
        }
        _ => {}
    }
    errors
}

/// The errors of an object's status, for kinds that validate it.
pub fn validate_status(new: &Value, gvk: &GroupVersionKind) -> Vec<Error> {
    let mut errors = Vec::new();
    match (&*gvk.group, &*gvk.kind) {
        ("", "Service") => service::status(&At::root(new), &mut errors),
        ("apps", "Deployment") => workload::deployment_status(&At::root(new).get("status"), &mut errors),
        _ => {}
    }
    errors
}

/// The errors of the URL of a webhook.
pub fn client_url(value: &Value, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    webhook::url(&At { value, path: path.clone() }, &mut errors);
    errors
}

/// The errors of the Service of a webhook.
pub fn client_service(value: &Value, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    webhook::service(&At { value, path: path.clone() }, &mut errors);
    errors
}

/// The rule for names of objects of this kind.
pub fn name_rule(gvk: &GroupVersionKind) -> NameRule {
    match (&*gvk.group, &*gvk.kind) {
        ("", "Namespace" | "Service") => names::name_is_dns_label,
        ("rbac.authorization.k8s.io" | "certificates.k8s.io", _) => names::name_is_path_segment,
        _ => names::name_is_dns_subdomain,
    }
}

/// A value and where it is. Missing values are null.
#[derive(Clone)]
struct At<'a> {
    value: &'a Value,
    path: Path,
}

impl<'a> At<'a> {
    fn root(value: &'a Value) -> Self {
        Self { value, path: Path::root() }
    }

    fn get(&self, name: &str) -> Self {
        Self { value: self.value.get(name).unwrap_or(&Value::Null), path: self.path.child(name) }
    }

    /// The text of a field, empty when it has none.
    fn text(&self, name: &str) -> &'a str {
        self.value.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn int(&self, name: &str) -> Option<i64> {
        self.value.get(name).and_then(Value::as_i64)
    }

    fn str(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    fn is_null(&self) -> bool {
        self.value.is_null()
    }

    fn items(&self) -> impl ExactSizeIterator<Item = At<'a>> + use<'a> {
        let path = self.path.clone();
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(move |(i, value)| At { value, path: path.index(i) })
    }

    fn entries(&self) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        self.value.as_object().into_iter().flatten()
    }

    fn invalid(&self, messages: Vec<String>, errors: &mut Vec<Error>) {
        errors.extend(messages.into_iter().map(|m| Error::invalid(&self.path, self.value.clone(), m)));
    }

    /// Refuses texts that are not in `supported`.
    fn one_of(&self, supported: &[&str], errors: &mut Vec<Error>) {
        if !supported.contains(&self.str()) {
            errors.push(Error::not_supported(&self.path, self.str(), supported));
        }
    }

    fn at_least(&self, min: i64, message: &str, errors: &mut Vec<Error>) {
        if self.value.as_i64().is_some_and(|n| n < min) {
            errors.push(Error::invalid(&self.path, self.value.clone(), message));
        }
    }

    fn not_negative(&self, errors: &mut Vec<Error>) {
        self.at_least(0, "must be greater than or equal to 0", errors);
    }

    /// Refuses a change of this field.
    fn immutable(&self, old: &Value, errors: &mut Vec<Error>) {
        if self.value != old {
            errors.push(Error::invalid(&self.path, self.value.clone(), "field is immutable"));
        }
    }
}
