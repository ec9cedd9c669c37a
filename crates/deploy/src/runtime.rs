//! Runs revisions by Deployments.
//!
//! Everything is applied by server-side apply, with Crossplane's field manager. A revision is ready when its Deployment is
//! available and its pods answer. The Service with the name of the package leads to the newest revision that is ready, and
//! until there is one, to the newest.

use crate::objects::{Workload, WorkloadKind, service_dns_names};
use crate::secrets::{CertificateStore, ServerCertificate, TlsFiles};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_engine::{Clock, Cluster, DeleteOptions, Error, ErrorContext, Result};
use transom_object::{GroupVersionKind, meta};
use transom_runner::{
    Endpoint, FunctionRuntime, Instance, LocalRuntime, Options, Problem, Reason, Remote, RevisionId,
    RevisionSpec, RuntimeState, Source, Tls,
};
use transom_xapi::PackageRevision;
use transom_xapi::constants::{label, owner};
use transom_xapi::function::{CAPABILITY_CERTIFICATE_RELOAD, is_capable};
use transom_xapi::metadata::controller_reference;

/// The service account whose image pull secrets are used for all packages.
const ACCOUNT: &str = "crossplane";
const FUNCTION_PORT: u16 = 9443;

/// How packages run on a cluster.
#[derive(Clone)]
pub struct ClusterRuntimeOptions {
    /// The namespace of everything that runs.
    pub namespace: String,
    /// The source of time, for certificates.
    pub clock: Clock,
    /// How functions are called.
    pub call: Options,
}

/// Runs packages by Deployments; what needs none as [`LocalRuntime`] does.
pub struct ClusterRuntime {
    cluster: Cluster,
    pub(crate) namespace: String,
    call: Options,
    local: LocalRuntime,
    pub(crate) certificates: CertificateStore,
    /// What is called, by revision, with the certificates that it is called with.
    instances: Mutex<Instances>,
    /// The revisions that run, by the Service of their package.
    running: Mutex<BTreeMap<String, Running>>,
}

/// What is called, with the certificates that it is called with.
type Instances = BTreeMap<RevisionId, (Tls, Arc<dyn Instance>)>;

/// The revisions of a package that run.
#[derive(Default)]
struct Running {
    /// Number, whether it is ready, and the Service of the package that leads to it, by name.
    revisions: BTreeMap<String, (i64, bool, Value)>,
    /// The Service of the package as it was applied.
    alias: Value,
}

impl Running {
    /// The Service to apply, if it is another one now.
    fn alias(&self) -> Option<Value> {
        let newest = self.revisions.values().max_by_key(|(number, is_ready, _)| (*is_ready, *number));
        let (_, _, service) = newest?;
        (*service != self.alias).then(|| service.clone())
    }
}

/// A Deployment that was applied.
struct Deployed {
    deployment: Value,
    client: TlsFiles,
    endpoint: String,
    /// Whether its program uses new certificates without a restart.
    reloads: bool,
}

impl ClusterRuntime {
    /// Runs packages in a namespace of a cluster.
    pub fn new(cluster: Cluster, options: ClusterRuntimeOptions, local: LocalRuntime) -> Self {
        let ClusterRuntimeOptions { namespace, clock, call } = options;
        Self {
            certificates: CertificateStore::new(cluster.clone(), &namespace, clock),
            cluster,
            namespace,
            call,
            local,
            instances: Mutex::default(),
            running: Mutex::default(),
        }
    }

    fn instances(&self) -> MutexGuard<'_, Instances> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A revision as the cluster has it.
    pub(crate) async fn revision(&self, kind: WorkloadKind, name: &str) -> Result<Option<PackageRevision>> {
        let found =
            self.cluster.get(&revision_gvk(kind), "", name).await.context("cannot get package revision")?;
        let parsed = found.map(serde_json::from_value).transpose();
        parsed.map_err(|error| Error::permanent(format!("package revision {name:?} is malformed: {error}")))
    }

    /// The pull secrets of the service account of the control plane.
    pub(crate) async fn account_pull_secrets(&self) -> Result<Vec<String>> {
        let account = self.cluster.get(&gvk("", "v1", "ServiceAccount"), &self.namespace, ACCOUNT).await?;
        let account = account.unwrap_or_default();
        let secrets = account["imagePullSecrets"].as_array().into_iter().flatten();
        Ok(secrets.filter_map(|secret| secret["name"].as_str()).map(str::to_owned).collect())
    }

    /// The certificate of a revision's server, for the Services of the revision and of its package.
    async fn server_certificate(&self, workload: &Workload<'_>, secret: &str) -> Result<ServerCertificate> {
        let names = workload.names();
        let mut dns: Vec<String> = service_dns_names(&names.service, &self.namespace).to_vec();
        dns.extend(
            service_dns_names(&names.alias, &self.namespace)
                .into_iter()
                .filter(|n| !dns.contains(n))
                .collect::<Vec<_>>(),
        );
        self.certificates.server(secret, Some(owner_of(workload)), dns).await
    }

    async fn deploy_function(&self, spec: &RevisionSpec) -> Result<Deployed> {
        let revision = self.revision(WorkloadKind::Function, &spec.id.revision).await?;
        let missing = || Error::domain(format!("there is no FunctionRevision {:?}", spec.id.revision));
        let revision = revision.ok_or_else(missing)?;
        let secret = format!("{}-tls-server", spec.id.revision);
        let accounts = self.account_pull_secrets().await?;
        let mut workload = Workload {
            kind: WorkloadKind::Function,
            revision: &revision,
            config: &spec.config,
            namespace: &self.namespace,
            image: &spec.image.reference,
            image_pull_secret: of_image_config(&revision, &spec.image.pull_secrets),
            account_pull_secrets: &accounts,
            server_secret: Some(&secret),
            client_secret: None,
            certificates: None,
            is_idle: false,
        };
        let names = workload.names();
        self.apply(&workload.service(), "cannot apply function package service").await?;
        let certificate = self.server_certificate(&workload, &secret).await?;
        let client = self.certificates.own_client().await?;
        let reloads = is_capable(&revision.status.capabilities, CAPABILITY_CERTIFICATE_RELOAD);
        workload.certificates = Some(certificate.fingerprint.as_str()).filter(|_| !reloads);
        let deployment = self.deploy(&workload, "function").await?;
        self.note(&workload, spec.number, is_available(&deployment).is_ok()).await?;
        let endpoint = format!("dns:///{}.{}:{FUNCTION_PORT}", names.service, self.namespace);
        Ok(Deployed { deployment, client, endpoint, reloads })
    }

    /// Applies the ServiceAccount and the Deployment.
    pub(crate) async fn deploy(&self, workload: &Workload<'_>, kind: &str) -> Result<Value> {
        let name = workload.names().account;
        let existing = self.cluster.get(&gvk("", "v1", "ServiceAccount"), &self.namespace, &name).await?;
        if let Some(account) = workload.service_account(existing.as_ref()) {
            self.apply(&account, &format!("cannot apply {kind} package service account")).await?;
        }
        self.apply(&workload.deployment(), &format!("cannot apply {kind} package deployment")).await
    }

    pub(crate) async fn apply(&self, object: &Value, attempted: &str) -> Result<Value> {
        self.cluster.apply(object, owner::RUNTIME).await.context(attempted.to_owned())
    }

    /// Records whether a revision is ready, and leads the Service of its package to the newest that is.
    async fn note(&self, workload: &Workload<'_>, number: i64, is_ready: bool) -> Result<()> {
        let (name, alias) = (&workload.revision.metadata.name, workload.names().alias);
        if !self.running().contains_key(&alias) {
            let recalled = self.recall(workload, &alias).await?;
            self.running().entry(alias.clone()).or_insert(recalled);
        }
        let changed = {
            let mut all = self.running();
            let running = all.entry(alias.clone()).or_default();
            running.revisions.insert(name.clone(), (number, is_ready, workload.alias()));
            running.alias()
        };
        self.lead(&alias, changed).await
    }

    /// What a process before this one left: the Service of the package leads to a revision that was ready, and that is
    /// reconciled later than this one.
    async fn recall(&self, workload: &Workload<'_>, alias: &str) -> Result<Running> {
        let mut running = Running::default();
        let Some(service) = self.cluster.get(&gvk("", "v1", "Service"), &self.namespace, alias).await? else {
            return Ok(running);
        };
        let name = service["spec"]["selector"][label::REVISION].as_str().unwrap_or_default().to_owned();
        if name.is_empty() || name == workload.revision.metadata.name {
            return Ok(running);
        }
        let led_to = self.revision(workload.kind, &name).await?;
        if let Some(other) = led_to.filter(|other| other.is_active() && !other.metadata.is_deleting()) {
            running.revisions.insert(name, (other.spec.revision, true, service.clone()));
            running.alias = service;
        }
        Ok(running)
    }

    async fn lead(&self, alias: &str, changed: Option<Value>) -> Result<()> {
        let Some(service) = changed else { return Ok(()) };
        self.apply(&service, "cannot apply the service of the package").await?;
        if let Some(running) = self.running().get_mut(alias) {
            running.alias = service;
        }
        Ok(())
    }

    /// What calls a revision: the kept instance, or a new one if it is called with other certificates now.
    fn instance(&self, id: &RevisionId, deployed: &Deployed) -> Result<Arc<dyn Instance>, Problem> {
        let tls = certificates(deployed);
        let mut instances = self.instances();
        if let Some((kept, instance)) = instances.get(id)
            && *kept == tls
        {
            return Ok(instance.clone());
        }
        let remote = Remote::new(Endpoint::mutual_tls(&deployed.endpoint, tls.clone()), &self.call);
        let remote = remote.map_err(|error| Problem::new(Reason::InvalidEndpoint, error.to_string()))?;
        let instance: Arc<dyn Instance> = Arc::new(remote);
        instances.insert(id.clone(), (tls, instance.clone()));
        Ok(instance)
    }

    /// Deletes what runs a revision. Its ServiceAccount stays, others may use it; all else is deleted with the revision.
    async fn undeploy(&self, kind: WorkloadKind, name: &str) -> Result<()> {
        let Some(revision) = self.revision(kind, name).await? else { return Ok(()) };
        let uid = revision.metadata.uid;
        let is_own = |object: &Value| meta::controller_of(object).is_some_and(|owner| owner.uid == uid);
        let deployments = gvk("apps", "v1", "Deployment");
        for found in self
            .cluster
            .list(&deployments, &self.namespace, &BTreeMap::new())
            .await?
            .iter()
            .filter(|d| is_own(d))
        {
            self.delete(&deployments, found).await?;
        }
        for (of, name) in [
            (gvk("", "v1", "Service"), name.to_owned()),
            (gvk("", "v1", "Secret"), format!("{name}-tls-server")),
        ] {
            let found = self.cluster.get(&of, &self.namespace, &name).await?;
            if let Some(found) = found.filter(is_own) {
                self.delete(&of, &found).await?;
            }
        }
        Ok(())
    }

    async fn delete(&self, of: &GroupVersionKind, object: &Value) -> Result<()> {
        let options = DeleteOptions { propagation: None, uid: Some(meta::uid(object)) };
        self.cluster.delete(of, &self.namespace, meta::name(object), options).await
    }

    /// Forgets a revision, and leads the Service of its package to another one.
    async fn forget(&self, revision: &str) -> Result<()> {
        let changed: Vec<(String, Option<Value>)> = {
            let mut all = self.running();
            let mut changed = Vec::new();
            for (alias, running) in all.iter_mut() {
                if running.revisions.remove(revision).is_some() {
                    changed.push((alias.clone(), running.alias()));
                }
            }
            all.retain(|_, running| !running.revisions.is_empty());
            changed
        };
        for (alias, changed) in changed {
            self.lead(&alias, changed).await?;
        }
        Ok(())
    }

    pub(crate) async fn stop(&self, kind: WorkloadKind, revision: &str) {
        let stopped = match self.forget(revision).await {
            Ok(()) => self.undeploy(kind, revision).await,
            failed => failed,
        };
        if let Err(error) = stopped {
            // What is left is deleted with its revision.
            tracing::warn!(revision, error = %error.chain(), "cannot delete what runs a package revision");
        }
    }
}

#[async_trait::async_trait]
impl FunctionRuntime for ClusterRuntime {
    async fn ensure(&self, spec: &RevisionSpec) -> RuntimeState {
        if !matches!(spec.source, Source::Package { .. }) {
            return self.local.ensure(spec).await;
        }
        let not_deployed = |error: &Error| Problem::new(Reason::NotDeployed, error.chain().to_string());
        let deployed = match self.deploy_function(spec).await {
            Ok(deployed) => deployed,
            Err(error) => return RuntimeState::Pending { problem: not_deployed(&error), instance: None },
        };
        let instance = match self.instance(&spec.id, &deployed) {
            Ok(instance) => instance,
            Err(problem) => return RuntimeState::Failed(problem),
        };
        if let Err(message) = is_available(&deployed.deployment) {
            let message = match message {
                Some(message) => {
                    format!("function package deployment is unavailable with message: {message}")
                }
                None => "function package deployment has no condition of type \"Available\" yet".to_owned(),
            };
            let problem = Problem::new(Reason::Unavailable, message);
            return RuntimeState::Pending { problem, instance: Some(instance) };
        }
        match instance.probe().await {
            Ok(()) => RuntimeState::Ready(instance),
            Err(problem) => RuntimeState::Pending { problem, instance: Some(instance) },
        }
    }

    async fn release(&self, id: &RevisionId) {
        self.local.release(id).await;
        self.instances().remove(id);
        if !id.is_sole() {
            self.stop(WorkloadKind::Function, &id.revision).await;
        }
    }
}

fn gvk(group: &str, version: &str, kind: &str) -> GroupVersionKind {
    GroupVersionKind::new(group, version, kind)
}

fn revision_gvk(kind: WorkloadKind) -> GroupVersionKind {
    gvk(
        "pkg.crossplane.io",
        "v1",
        match kind {
            WorkloadKind::Function => "FunctionRevision",
            WorkloadKind::Provider => "ProviderRevision",
        },
    )
}

pub(crate) fn owner_of(workload: &Workload<'_>) -> Value {
    let (kind, metadata) = (revision_gvk(workload.kind), &workload.revision.metadata);
    controller_reference("pkg.crossplane.io/v1", &kind.kind, &metadata.name, &metadata.uid)
}

/// The pull secret that an ImageConfig added to those of the package.
pub(crate) fn of_image_config<'s>(revision: &PackageRevision, all: &'s [String]) -> Option<&'s str> {
    let own = &revision.spec.installation.package_pull_secrets;
    all.iter().map(String::as_str).find(|name| own.iter().all(|secret| secret.name != *name))
}

/// Whether a Deployment is available; if it is not, its message.
pub(crate) fn is_available(deployment: &Value) -> Result<(), Option<String>> {
    let conditions = deployment["status"]["conditions"].as_array().into_iter().flatten();
    let available = conditions.into_iter().find(|condition| condition["type"] == "Available").ok_or(None)?;
    match available["status"].as_str() {
        Some("True") => Ok(()),
        _ => Err(Some(available["message"].as_str().unwrap_or_default().to_owned())),
    }
}

/// Whether all pods of a Deployment are those of its current template.
fn is_rolled_out(deployment: &Value) -> bool {
    let status = |field: &str| deployment["status"][field].as_i64().unwrap_or_default();
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    status("observedGeneration") >= meta::generation(deployment)
        && status("updatedReplicas") >= wanted
        && status("replicas") <= status("updatedReplicas")
}

/// The certificates to call the pods of a Deployment with: the ones before, while some of its pods may know only these. Pods
/// that use new certificates without a restart accept both for as long as both are kept.
fn certificates(deployed: &Deployed) -> Tls {
    let files = &deployed.client;
    let leaf = match &files.previous {
        Some(previous) if deployed.reloads || !is_rolled_out(&deployed.deployment) => previous,
        _ => &files.current,
    };
    Tls {
        ca: files.authorities.clone().into_bytes(),
        certificate: leaf.certificate.clone().into_bytes(),
        key: leaf.key.clone().into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_service_of_the_package_leads_to_the_newest_that_is_ready() {
        let mut running = Running::default();
        let mut is_led_to = |name: &str, number: i64, is_ready: bool| {
            running.revisions.insert(name.to_owned(), (number, is_ready, json!(name)));
            if let Some(service) = running.alias() {
                running.alias = service;
            }
            running.alias.clone()
        };
        assert_eq!(is_led_to("a", 1, false), "a", "until there is one, the newest");
        assert_eq!(is_led_to("b", 2, false), "b");
        assert_eq!(is_led_to("a", 1, true), "a");
        assert_eq!(is_led_to("b", 2, true), "b", "a new one when it is ready");
        assert_eq!(is_led_to("b", 2, false), "a");
    }

    #[test]
    fn pods_that_are_not_replaced_yet_are_called_with_the_certificate_before() {
        let leaf = |name: &str| crate::Leaf { certificate: name.to_owned(), key: String::new() };
        let files = TlsFiles { authorities: "a".into(), current: leaf("new"), previous: Some(leaf("old")) };
        let deployment = |updated: i64, all: i64| {
            json!({
                "metadata": {"generation": 2}, "spec": {"replicas": 2},
                "status": {"observedGeneration": 2, "updatedReplicas": updated, "replicas": all},
            })
        };
        let used = |deployment: Value, reloads: bool| {
            let deployed = Deployed { deployment, client: files.clone(), endpoint: String::new(), reloads };
            String::from_utf8(certificates(&deployed).certificate).unwrap()
        };
        assert_eq!(used(deployment(1, 3), false), "old");
        assert_eq!(used(deployment(2, 3), false), "old", "one of the former is left");
        assert_eq!(used(deployment(2, 2), false), "new");
        assert_eq!(used(json!({"metadata": {"generation": 1}}), false), "old");
        assert_eq!(used(deployment(2, 2), true), "old", "they may not have read theirs again");
    }
}
