//! Runs Providers on a cluster: their Secrets, Service and Deployment. Unlike functions they are not called, so they are ready
//! when their Deployment is.

use crate::following::{Attempt, Subject};
use crate::objects::{Workload, WorkloadKind, service_dns_names};
use crate::runtime::{ClusterRuntime, is_available, of_image_config, owner_of};
use crate::secrets::ServerCertificate;
use serde_json::Value;
use std::time::Duration;
use transom_engine::{Error, Result};
use transom_runner::{Problem, ProviderChanged, ProviderRuntime, ProviderSpec, ProviderState, Reason};
use transom_xapi::PackageRevision;
use transom_xapi::runtime_config::DeploymentRuntimeConfigSpec;

impl ClusterRuntime {
    /// Makes the Secrets of a provider, and what its Deployment is made from.
    async fn certify_provider(
        &self,
        attempt: &Attempt,
        revision: &PackageRevision,
        config: &DeploymentRuntimeConfigSpec,
    ) -> Result<ServerCertificate> {
        let workload = provider_workload(revision, config, &self.namespace);
        self.apply(attempt, &workload.alias(), "cannot apply provider package service").await?;
        let (server, client) = secrets_of(revision);
        let names = vec![revision.metadata.name.clone()];
        self.certificates.client_of(attempt, &client, Some(owner_of(&workload)), names).await?;
        let dns = service_dns_names(&workload.names().alias, &self.namespace).to_vec();
        self.certificates.server_of(attempt, &server, Some(owner_of(&workload)), dns).await
    }

    async fn deploy_provider(&self, spec: &ProviderSpec) -> Result<Value> {
        let attempt = &self.following.begin(Subject::Provider(spec.revision.clone())).await?;
        let revision = self.revision(WorkloadKind::Provider, &spec.revision).await?;
        let missing = || Error::domain(format!("there is no ProviderRevision {:?}", spec.revision));
        let revision = revision.ok_or_else(missing)?;
        let certificate = self.certify_provider(attempt, &revision, &spec.config).await?;
        let accounts = self.account_pull_secrets(attempt).await?;
        let (server, client) = secrets_of(&revision);
        let workload = Workload {
            image: &spec.image.reference,
            image_pull_secret: of_image_config(&revision, &spec.image.pull_secrets),
            account_pull_secrets: &accounts,
            server_secret: Some(&server),
            client_secret: Some(&client),
            certificates: Some(&certificate.fingerprint),
            ..provider_workload(&revision, &spec.config, &self.namespace)
        };
        let deployment = self.deploy(attempt, &workload, "provider").await?;
        attempt.complete();
        Ok(deployment)
    }
}

#[async_trait::async_trait]
impl ProviderRuntime for ClusterRuntime {
    async fn certify(&self, provider: &ProviderSpec) -> Result<Option<String>, Problem> {
        let problem = |error: Error| Problem::new(Reason::NotDeployed, error.chain().to_string());
        let revision = self.revision(WorkloadKind::Provider, &provider.revision).await.map_err(problem)?;
        let Some(revision) = revision else { return Ok(None) };
        let subject = Subject::Provider(provider.revision.clone());
        let attempt = self.following.begin(subject).await.map_err(problem)?;
        let certificate = self.certify_provider(&attempt, &revision, &provider.config).await;
        let certificate = certificate.map_err(problem)?;
        Ok(Some(certificate.authorities))
    }

    async fn ensure(&self, provider: &ProviderSpec) -> ProviderState {
        let deployment = match self.deploy_provider(provider).await {
            Ok(deployment) => deployment,
            Err(error) => {
                return ProviderState::Pending(Problem::new(Reason::NotDeployed, error.chain().to_string()));
            }
        };
        match is_available(&deployment) {
            Ok(()) => ProviderState::Running(String::new()),
            Err(Some(message)) => {
                let message = format!("provider package deployment is unavailable with message: {message}");
                ProviderState::Pending(Problem::new(Reason::Unavailable, message))
            }
            Err(None) => {
                let message = "provider package deployment has no condition of type \"Available\" yet";
                ProviderState::Pending(Problem::new(Reason::Unavailable, message))
            }
        }
    }

    async fn release(&self, revision: &str) {
        self.following.forget(&Subject::Provider(revision.to_owned()));
        self.stop(WorkloadKind::Provider, revision).await;
    }

    fn on_change(&self, changed: ProviderChanged) {
        self.following.report_providers(changed);
    }

    fn due_in(&self, revision: &str) -> Option<Duration> {
        self.following.due_in(&Subject::Provider(revision.to_owned()))
    }
}

fn provider_workload<'a>(
    revision: &'a PackageRevision,
    config: &'a DeploymentRuntimeConfigSpec,
    namespace: &'a str,
) -> Workload<'a> {
    Workload {
        kind: WorkloadKind::Provider,
        revision,
        config,
        namespace,
        image: "",
        image_pull_secret: None,
        account_pull_secrets: &[],
        server_secret: None,
        client_secret: None,
        certificates: None,
        is_idle: false,
    }
}

/// The Secrets with the certificates of a provider: its server's, and that which it calls others with.
fn secrets_of(revision: &PackageRevision) -> (String, String) {
    let named = |name: &Option<String>, usual: &str| {
        name.clone().unwrap_or_else(|| format!("{}-tls-{usual}", revision.package()))
    };
    (
        named(&revision.spec.tls_server_secret_name, "server"),
        named(&revision.spec.tls_client_secret_name, "client"),
    )
}
