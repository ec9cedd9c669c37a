//! Runs revisions by Deployments.
//!
//! Everything is applied by server-side apply, with Crossplane's field manager. A revision is ready when its Deployment is
//! available and its pods answer. The Service with the name of the package leads to the newest revision that is ready, and
//! until there is one, to the newest. All of it is followed: a revision of which something changes is reported, to be ensured
//! again.

use crate::following::{Attempt, Following, Subject};
use crate::objects::{Workload, WorkloadKind, service_dns_names, with_field_versions};
use crate::package_service::Running;
use crate::secrets::{CertificateStore, ServerCertificate, TlsFiles};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use transom_engine::{Clock, Cluster, DeleteOptions, Error, ErrorContext, Result, apply_is_noop};
use transom_object::{GroupVersionKind, meta};
use transom_runner::{
    Changed, Endpoint, FunctionRuntime, Instance, LocalRuntime, Options, Problem, Reason, Remote, RevisionId,
    RevisionSpec, RuntimeState, Source, Tls,
};
use transom_xapi::PackageRevision;
use transom_xapi::constants::owner;
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
    pub(crate) following: Following,
}

/// What is called, with the certificates that it is called with.
type Instances = BTreeMap<RevisionId, (Tls, Arc<dyn Instance>)>;

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
            following: Following::new(&cluster, &namespace, clock),
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

    pub(crate) fn running(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
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
    pub(crate) async fn account_pull_secrets(&self, attempt: &Attempt) -> Result<Vec<String>> {
        let account = self.stored(attempt, &gvk("", "v1", "ServiceAccount"), ACCOUNT).await?;
        let account = account.unwrap_or_default();
        let secrets = account["imagePullSecrets"].as_array().into_iter().flatten();
        Ok(secrets.filter_map(|secret| secret["name"].as_str()).map(str::to_owned).collect())
    }

    /// The certificate of a revision's server, for the Services of the revision and of its package.
    async fn server_certificate(
        &self,
        attempt: &Attempt,
        workload: &Workload<'_>,
        secret: &str,
    ) -> Result<ServerCertificate> {
        let names = workload.names();
        let mut dns: Vec<String> = service_dns_names(&names.service, &self.namespace).to_vec();
        dns.extend(
            service_dns_names(&names.alias, &self.namespace)
                .into_iter()
                .filter(|n| !dns.contains(n))
                .collect::<Vec<_>>(),
        );
        self.certificates.server_of(attempt, secret, Some(owner_of(workload)), dns).await
    }

    async fn deploy_function(&self, spec: &RevisionSpec) -> Result<Deployed> {
        let attempt = &self.following.begin(Subject::Function(spec.id.clone())).await?;
        let revision = self.revision(WorkloadKind::Function, &spec.id.revision).await?;
        let missing = || Error::domain(format!("there is no FunctionRevision {:?}", spec.id.revision));
        let revision = revision.ok_or_else(missing)?;
        let secret = format!("{}-tls-server", spec.id.revision);
        let accounts = self.account_pull_secrets(attempt).await?;
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
        self.apply(attempt, &workload.service(), "cannot apply function package service").await?;
        let certificate = self.server_certificate(attempt, &workload, &secret).await?;
        let client = self.certificates.own_client_of(attempt).await?;
        let reloads = is_capable(&revision.status.capabilities, CAPABILITY_CERTIFICATE_RELOAD);
        workload.certificates = Some(certificate.fingerprint.as_str()).filter(|_| !reloads);
        let deployment = self.deploy(attempt, &workload, "function").await?;
        self.note(attempt, &workload, spec.number, is_available(&deployment).is_ok()).await?;
        attempt.complete();
        let endpoint = format!("dns:///{}.{}:{FUNCTION_PORT}", names.service, self.namespace);
        Ok(Deployed { deployment, client, endpoint, reloads })
    }

    /// Applies the ServiceAccount and the Deployment.
    pub(crate) async fn deploy(
        &self,
        attempt: &Attempt,
        workload: &Workload<'_>,
        kind: &str,
    ) -> Result<Value> {
        let name = workload.names().account;
        let existing = self.stored(attempt, &gvk("", "v1", "ServiceAccount"), &name).await?;
        if let Some(account) = workload.service_account(existing.as_ref()) {
            let attempted = format!("cannot apply {kind} package service account");
            self.apply_to(attempt, existing, &account, &attempted).await?;
        }
        self.apply(attempt, &workload.deployment(), &format!("cannot apply {kind} package deployment")).await
    }

    /// An object in the namespace of what runs, which is followed from now on.
    pub(crate) async fn stored(
        &self,
        attempt: &Attempt,
        gvk: &GroupVersionKind,
        name: &str,
    ) -> Result<Option<Value>> {
        attempt.get(&self.cluster, gvk, &self.namespace, name).await
    }

    /// Applies an object, unless it is as it should be. Returns it as it is stored.
    pub(crate) async fn apply(&self, attempt: &Attempt, object: &Value, attempted: &str) -> Result<Value> {
        let gvk = meta::gvk(object).unwrap_or_default();
        let stored = self.stored(attempt, &gvk, meta::name(object)).await.context(attempted.to_owned())?;
        self.apply_to(attempt, stored, object, attempted).await
    }

    async fn apply_to(
        &self,
        attempt: &Attempt,
        stored: Option<Value>,
        object: &Value,
        attempted: &str,
    ) -> Result<Value> {
        let is_noop =
            |stored: &Value| apply_is_noop(stored, &with_field_versions(object.clone()), owner::RUNTIME, "");
        if let Some(stored) = stored.filter(is_noop) {
            return Ok(stored);
        }
        let writing = attempt.writing(&meta::gvk(object).unwrap_or_default(), meta::name(object));
        let applied = self.cluster.apply(object, owner::RUNTIME).await.context(attempted.to_owned())?;
        writing.wrote(&applied);
        Ok(applied)
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

    pub(crate) async fn stop(&self, kind: WorkloadKind, revision: &str) {
        let stopped = match self.withdraw(revision).await {
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
        self.following.forget(&Subject::Function(id.clone()));
        if !id.is_sole() {
            self.stop(WorkloadKind::Function, &id.revision).await;
        }
    }

    fn on_change(&self, changed: Changed) {
        self.following.report_functions(changed);
    }

    fn due_in(&self, id: &RevisionId) -> Option<Duration> {
        self.following.due_in(&Subject::Function(id.clone()))
    }
}

pub(crate) fn gvk(group: &str, version: &str, kind: &str) -> GroupVersionKind {
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
