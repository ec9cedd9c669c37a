//! The objects that run a revision on a cluster. Pure: values in, values out.
//!
//! The runtime config of a package is applied first, then defaults for fields that it does not set, then fields that it
//! cannot change.
//! This is the order of Crossplane, and the results are Crossplane's but for what there is once for each revision here: the
//! Service and the Secret with the server's certificate, so that several revisions can be called at a time. The Service with
//! the name of the package leads to the newest revision that is ready.

use serde_json::{Map, Value, json};
use transom_xapi::PackageRevision;
use transom_xapi::constants::label;
use transom_xapi::metadata::controller_reference;
use transom_xapi::runtime_config::{DeploymentRuntimeConfigSpec, ObjectTemplate, TemplateMetadata};

/// The container of a package's own program. Others in its pod are what the runtime config adds.
const CONTAINER: &str = "package-runtime";
/// The user and group that packages run as, as in Crossplane.
const USER_ID: u32 = 2000;
const METRICS_PORT: u16 = 8080;
/// The port of a function, and that of a provider's webhooks.
const SERVER_PORT: u16 = 9443;
/// An annotation of pods. Another value starts new pods: most programs read their certificates only when they start.
const CERTIFICATES_ANNOTATION: &str = "transom.io/certificates";

/// What a package with a runtime is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// Composes, and is called over gRPC.
    Function,
    /// Has controllers, and may serve webhooks.
    Provider,
}

impl WorkloadKind {
    fn revision_kind(self) -> &'static str {
        match self {
            Self::Function => "FunctionRevision",
            Self::Provider => "ProviderRevision",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Function => label::FUNCTION,
            Self::Provider => label::PROVIDER,
        }
    }

    /// The variable with the name of the package.
    fn name_variable(self) -> &'static str {
        match self {
            Self::Function => "FUNCTION_NAME",
            Self::Provider => "PROVIDER_NAME",
        }
    }

    /// What the port of its server is called.
    fn port_name(self) -> &'static str {
        match self {
            Self::Function => "grpc",
            Self::Provider => "webhook",
        }
    }
}

/// A revision that is to run, and all that its objects depend on.
#[derive(Clone, Debug)]
pub struct Workload<'a> {
    /// What it is.
    pub kind: WorkloadKind,
    /// The revision.
    pub revision: &'a PackageRevision,
    /// Its runtime config, which an ImageConfig may have chosen.
    pub config: &'a DeploymentRuntimeConfigSpec,
    /// The namespace of all its objects.
    pub namespace: &'a str,
    /// The image, after ImageConfigs rewrote it.
    pub image: &'a str,
    /// The pull secret that an ImageConfig names.
    pub image_pull_secret: Option<&'a str>,
    /// The pull secrets of the service account of the control plane.
    pub account_pull_secrets: &'a [String],
    /// The Secret with the certificate of its server.
    pub server_secret: Option<&'a str>,
    /// The Secret with the certificate that it calls others with.
    pub client_secret: Option<&'a str>,
    /// What changes with its certificates, if its pods have to be replaced then.
    pub certificates: Option<&'a str>,
    /// Whether it is not to run yet, because nothing needs it.
    pub is_idle: bool,
}

/// What the objects of a revision are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The Service of the revision.
    pub service: String,
    /// The Service of the package.
    pub alias: String,
    /// The ServiceAccount.
    pub account: String,
    /// The Deployment.
    pub deployment: String,
}

/// The names that a Service is reached by in a cluster, of which the second is the one in endpoints.
pub fn service_dns_names(service: &str, namespace: &str) -> [String; 3] {
    [service.to_owned(), format!("{service}.{namespace}"), format!("{service}.{namespace}.svc")]
}

impl Workload<'_> {
    /// What its objects are called.
    pub fn names(&self) -> Names {
        let named = |template: Option<&TemplateMetadata>, usual: &str| {
            let chosen =
                template.and_then(|metadata| metadata.name.as_deref()).filter(|name| !name.is_empty());
            chosen.unwrap_or(usual).to_owned()
        };
        let of = |template: &Option<ObjectTemplate>, usual: &str| {
            named(template.as_ref().and_then(|template| template.metadata.as_ref()), usual)
        };
        let revision = &self.revision.metadata.name;
        let deployment =
            self.config.deployment_template.as_ref().and_then(|template| template.metadata.as_ref());
        Names {
            service: revision.clone(),
            alias: of(&self.config.service_template, self.revision.package()),
            account: of(&self.config.service_account_template, revision),
            deployment: named(deployment, revision),
        }
    }

    /// What the pods of the revision are found by.
    fn selector(&self) -> Value {
        json!({label::REVISION: self.revision.metadata.name, self.kind.label(): self.revision.package()})
    }

    fn metadata(&self, name: &str, template: Option<&TemplateMetadata>) -> Value {
        let Self { revision, .. } = self;
        let owner = controller_reference(
            "pkg.crossplane.io/v1",
            self.kind.revision_kind(),
            &revision.metadata.name,
            &revision.metadata.uid,
        );
        let mut metadata = json!({"name": name, "namespace": self.namespace, "ownerReferences": [owner]});
        for (field, map) in
            template.into_iter().flat_map(|t| [("labels", &t.labels), ("annotations", &t.annotations)])
        {
            if !map.is_empty() {
                metadata[field] = json!(map);
            }
        }
        metadata
    }

    /// The Service that leads to the pods of this revision. That of a function has no address of its own, so that its name
    /// leads to all pods and calls can be spread over them.
    pub fn service(&self) -> Value {
        self.service_named(&self.names().service)
    }

    /// The Service with the name of the package, which leads to the pods of this revision.
    pub fn alias(&self) -> Value {
        self.service_named(&self.names().alias)
    }

    fn service_named(&self, name: &str) -> Value {
        let template = self.config.service_template.as_ref().and_then(|template| template.metadata.as_ref());
        let port_name = self.kind.port_name();
        let mut port =
            json!({"name": port_name, "protocol": "TCP", "port": SERVER_PORT, "targetPort": port_name});
        let mut spec = json!({"selector": self.selector()});
        if self.kind == WorkloadKind::Function {
            port["appProtocol"] = "tls".into();
            spec["clusterIP"] = "None".into();
        }
        spec["ports"] = json!([port]);
        json!({"apiVersion": "v1", "kind": "Service", "metadata": self.metadata(name, template), "spec": spec})
    }

    /// The ServiceAccount of the pods, unless the runtime config names another one. The pull secrets that others gave to the
    /// existing one stay, and so do its other owners: a runtime config can give one account to several packages.
    pub fn service_account(&self, existing: Option<&Value>) -> Option<Value> {
        let name = self.names().account;
        let used =
            self.pod_spec().get("serviceAccountName").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !used.is_empty() && used != name {
            return None;
        }
        let template =
            self.config.service_account_template.as_ref().and_then(|template| template.metadata.as_ref());
        let mut secrets = self.pull_secrets();
        secrets.extend(self.account_pull_secrets.iter().cloned());
        let kept = existing.and_then(|account| account["imagePullSecrets"].as_array());
        secrets.extend(
            kept.into_iter().flatten().filter_map(|secret| secret["name"].as_str()).map(str::to_owned),
        );
        let mut seen = std::collections::BTreeSet::new();
        secrets.retain(|secret| seen.insert(secret.clone()));
        let mut account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata(&name, template)});
        if !secrets.is_empty() {
            account["imagePullSecrets"] = references(&secrets);
        }
        self.join_owners(&mut account, existing);
        Some(account)
    }

    /// Makes the revision one of the owners of an object. The first is its controller.
    fn join_owners(&self, object: &mut Value, existing: Option<&Value>) {
        let owners = existing.and_then(|existing| existing["metadata"]["ownerReferences"].as_array());
        let is_other = |owner: &&Value| owner["uid"] != *self.revision.metadata.uid;
        let mut all: Vec<Value> = owners.into_iter().flatten().filter(is_other).cloned().collect();
        let mut own = object["metadata"]["ownerReferences"][0].take();
        if all.iter().any(|owner| owner["controller"] == true) {
            own["controller"] = false.into();
        }
        all.push(own);
        object["metadata"]["ownerReferences"] = all.into();
    }

    fn pull_secrets(&self) -> Vec<String> {
        self.revision
            .spec
            .installation
            .package_pull_secrets
            .iter()
            .map(|secret| secret.name.clone())
            .collect()
    }

    /// The spec of a pod in the runtime config.
    fn pod_spec(&self) -> Map<String, Value> {
        let spec = self.config.deployment_template.as_ref().and_then(|template| template.spec.as_ref());
        let pod = spec.and_then(|spec| spec.get("template")).and_then(|template| template.get("spec"));
        pod.and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// The Deployment.
    pub fn deployment(&self) -> Value {
        let template = self.config.deployment_template.as_ref();
        let names = self.names();
        let mut spec = template.and_then(|template| template.spec.clone()).unwrap_or_default();
        spec.entry("replicas").or_insert_with(|| 1.into());
        if self.is_idle {
            spec.insert("replicas".to_owned(), 0.into());
        }
        let mut selector = spec.get("selector").and_then(Value::as_object).cloned().unwrap_or_default();
        selector.insert("matchLabels".to_owned(), self.selector());
        spec.insert("selector".to_owned(), Value::Object(selector));
        let mut pod = spec.get("template").cloned().filter(Value::is_object).unwrap_or_else(|| json!({}));
        pod["spec"] = self.pod(&names.account);
        self.describe_pod(&mut pod);
        spec.insert("template".to_owned(), pod);
        let metadata =
            self.metadata(&names.deployment, template.and_then(|template| template.metadata.as_ref()));
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    }

    /// Gives a pod the labels that it is found by, and annotations.
    fn describe_pod(&self, pod: &mut Value) {
        let metadata = object_at(pod, "metadata");
        let labels = object_at(metadata, "labels");
        merge(labels, &self.selector());
        if self.kind == WorkloadKind::Provider {
            let port = port_of(&pod["spec"]["containers"][0], "metrics").unwrap_or(METRICS_PORT.into());
            let annotations = object_at(object_at(pod, "metadata"), "annotations");
            if annotations.get("prometheus.io/scrape").is_none() {
                annotations["prometheus.io/scrape"] = "true".into();
                annotations["prometheus.io/port"] = port.to_string().into();
                annotations["prometheus.io/path"] = "/metrics".into();
            }
        }
        if let Some(certificates) = self.certificates {
            object_at(object_at(pod, "metadata"), "annotations")[CERTIFICATES_ANNOTATION] =
                certificates.into();
        }
    }

    /// The spec of a pod.
    fn pod(&self, account: &str) -> Value {
        let mut pod = self.pod_spec();
        let unprivileged = json!({"runAsNonRoot": true, "runAsUser": USER_ID, "runAsGroup": USER_ID});
        pod.entry("securityContext").or_insert(unprivileged);
        if pod.get("serviceAccountName").and_then(Value::as_str).unwrap_or_default().is_empty() {
            pod.insert("serviceAccountName".to_owned(), account.into());
        }
        let mut secrets = self.pull_secrets();
        secrets.extend(self.image_pull_secret.map(str::to_owned));
        match secrets.is_empty() {
            true => drop(pod.remove("imagePullSecrets")),
            false => drop(pod.insert("imagePullSecrets".to_owned(), references(&secrets))),
        }
        let mut containers = pod.get("containers").and_then(Value::as_array).cloned().unwrap_or_default();
        let own = containers.iter().position(|container| container["name"] == CONTAINER);
        let own = own.map_or_else(|| json!({"name": CONTAINER}), |at| containers.remove(at));
        containers.insert(0, self.container(own));
        pod.insert("containers".to_owned(), containers.into());
        let mut volumes = pod.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
        volumes.extend(self.certificates_of().map(|(volume, _, _, secret)| {
            let items = ["tls.crt", "tls.key", "ca.crt"].map(|key| json!({"key": key, "path": key}));
            json!({"name": volume, "secret": {"secretName": secret, "items": items}})
        }));
        if !volumes.is_empty() {
            pod.insert("volumes".to_owned(), volumes.into());
        }
        Value::Object(pod)
    }

    /// Volume, directory, variable and Secret of the certificates, those to call others with first.
    fn certificates_of(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str, &str)> {
        let client =
            self.client_secret.map(|s| ("tls-client-certs", "/tls/client", "TLS_CLIENT_CERTS_DIR", s));
        let server =
            self.server_secret.map(|s| ("tls-server-certs", "/tls/server", "TLS_SERVER_CERTS_DIR", s));
        client.into_iter().chain(server)
    }

    /// The container of the package's program.
    fn container(&self, mut container: Value) -> Value {
        if container.get("securityContext").is_none_or(Value::is_null) {
            container["securityContext"] = json!({
                "runAsUser": USER_ID, "runAsGroup": USER_ID, "allowPrivilegeEscalation": false, "privileged": false,
                "runAsNonRoot": true,
            });
        }
        let installation = &self.revision.spec.installation;
        if let Some(policy) = &installation.package_pull_policy {
            container["imagePullPolicy"] = policy.clone().into();
        } else if container["imagePullPolicy"].as_str().unwrap_or_default().is_empty() {
            container["imagePullPolicy"] = "IfNotPresent".into();
        }
        let has_server = self.kind == WorkloadKind::Function || self.server_secret.is_some();
        let server = has_server.then(|| (self.kind.port_name(), SERVER_PORT));
        for (name, number) in [("metrics", METRICS_PORT)].into_iter().chain(server) {
            if port_of(&container, name).is_none() {
                push(&mut container, "ports", json!({"name": name, "containerPort": number}));
            }
        }
        for (volume, dir, variable, _) in self.certificates_of() {
            push(&mut container, "volumeMounts", json!({"name": volume, "readOnly": true, "mountPath": dir}));
            push(&mut container, "env", json!({"name": variable, "value": dir}));
        }
        for variable in self.environment() {
            push(&mut container, "env", variable);
        }
        if container["image"].as_str().unwrap_or_default().is_empty() {
            container["image"] = self.image.into();
        }
        container
    }

    fn environment(&self) -> Vec<Value> {
        let from =
            |name: &str, path: String| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        let labelled = |name: &str, label: &str| from(name, format!("metadata.labels['{label}']"));
        let mut all = Vec::new();
        if self.kind == WorkloadKind::Provider {
            all.push(from("POD_NAMESPACE", "metadata.namespace".to_owned()));
        }
        all.push(labelled(self.kind.name_variable(), self.kind.label()));
        all.push(labelled("REVISION_NAME", label::REVISION));
        all.push(json!({"name": "REVISION_UID", "value": self.revision.metadata.uid}));
        if self.kind == WorkloadKind::Provider && self.server_secret.is_some() {
            // For providers that do not know the other variable yet.
            all.push(json!({"name": "WEBHOOK_TLS_CERT_DIR", "value": "$(TLS_SERVER_CERTS_DIR)"}));
        }
        all
    }
}

/// An object with the version in each `fieldRef`, where API servers fill it in. `managedFields` does not show that it is a default,
/// because a `fieldRef` is owned as a whole.
pub(crate) fn with_field_versions(mut object: Value) -> Value {
    fill_in_field_versions(&mut object);
    object
}

fn fill_in_field_versions(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(fill_in_field_versions),
        Value::Object(fields) => {
            if let Some(Value::Object(field)) = fields.get_mut("fieldRef") {
                field.entry("apiVersion").or_insert_with(|| "v1".into());
            }
            fields.values_mut().for_each(fill_in_field_versions);
        }
        _ => {}
    }
}

fn references(names: &[String]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

fn port_of(container: &Value, name: &str) -> Option<u64> {
    let ports = container["ports"].as_array()?;
    ports.iter().find(|port| port["name"] == name)?["containerPort"].as_u64()
}

fn push(object: &mut Value, field: &str, item: Value) {
    match object.get_mut(field).and_then(Value::as_array_mut) {
        Some(list) => list.push(item),
        None => object[field] = json!([item]),
    }
}

/// A field of an object; any other value of it is replaced by an empty object.
fn object_at<'v>(value: &'v mut Value, field: &str) -> &'v mut Value {
    if !value[field].is_object() {
        value[field] = json!({});
    }
    &mut value[field]
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}
