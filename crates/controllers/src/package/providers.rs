//! What a revision of a Provider runs: its program, which is a client of the control plane.

use super::revision::Revisions;
use super::runtime::next_attempt;
use super::{activation, bounded, mark_generation};
use crate::plane::Plane;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::sync::Arc;
use transom_engine::{Error, Next, Result};
use transom_packages::PackageKind;
use transom_packages::establish::{WebhookServer, wants_server};
use transom_packages::image_config::ImagePlan;
use transom_runner::{PackageImage, ProviderSpec, ProviderState};
use transom_xapi::constants::annotation;
use transom_xapi::package::{DEFAULT_RUNTIME_CONFIG, Installation, PullPolicy};
use transom_xapi::runtime_config::DeploymentRuntimeConfigSpec;
use transom_xapi::{Condition, PackageRevision};

/// The runtime config of a revision: the one that an ImageConfig chooses, else the one that its package names. An error says
/// that there is none of this name; the one called `default` need not exist.
pub(super) fn runtime_config(
    plane: &Plane,
    installation: &Installation,
    plan: Option<&ImagePlan>,
) -> Result<Arc<DeploymentRuntimeConfigSpec>, String> {
    let chosen =
        plan.and_then(|plan| plan.runtime_config.as_ref()).or(installation.runtime_config_ref.as_ref());
    let name = chosen.map_or(DEFAULT_RUNTIME_CONFIG, |reference| reference.name.as_str());
    match plane.catalog.runtime_configs.get(name) {
        Some(config) => Ok(Arc::new(config.spec.clone())),
        None if name == DEFAULT_RUNTIME_CONFIG => Ok(Arc::default()),
        None => Err(format!(
            "there is no DeploymentRuntimeConfig {name:?}; make it, or name another one in spec.runtimeConfigRef"
        )),
    }
}

impl Revisions {
    /// What is to be run for a revision; and what is wrong with its runtime config, without which it is not to be run.
    fn provider(&self, revision: &PackageRevision) -> Result<(ProviderSpec, Option<String>), String> {
        let plan = self.shared.plan_image(&revision.spec.image).map_err(|error| error.chain().to_string())?;
        let installation = &revision.spec.installation;
        let (config, problem) = match runtime_config(&self.shared.plane, installation, Some(&plan)) {
            Ok(config) => (config, None),
            Err(words) => (Arc::default(), Some(words)),
        };
        let mut pull_secrets: Vec<String> =
            installation.package_pull_secrets.iter().map(|s| s.name.clone()).collect();
        pull_secrets.extend(plan.pull_secret);
        let never_pulled = installation.pull_policy() == PullPolicy::Never;
        let digest = revision.metadata.annotation(annotation::IMAGE_DIGEST).map(str::to_owned);
        let spec = ProviderSpec {
            provider: revision.package().to_owned(),
            revision: revision.metadata.name.clone(),
            uid: revision.metadata.uid.clone(),
            image: PackageImage { reference: plan.resolved.to_string(), digest, pull_secrets, never_pulled },
            config,
        };
        Ok((spec, problem))
    }

    /// Runs an active revision that is needed, and reports whether it runs.
    pub(super) async fn start_provider(&self, object: &mut Value, revision: &PackageRevision) -> Next {
        let plane = &self.shared.plane;
        if activation::is_awaited(object) {
            mark_generation(plane, object, vec![Condition::runtime_healthy()]);
            return Next::Wait;
        }
        let (health, next) = match self.provider(revision) {
            Err(words) | Ok((_, Some(words))) => (Condition::runtime_unhealthy(words), Next::Wait),
            Ok((spec, None)) => {
                let state = self.shared.providers.ensure(&spec).await;
                let due_in = self.shared.providers.due_in(&spec.revision);
                match state {
                    ProviderState::Running(note) => {
                        (Condition::runtime_healthy().with_message(note), next_attempt(None, due_in))
                    }
                    ProviderState::Failed(problem) => {
                        (Condition::runtime_unhealthy(problem.message), Next::Wait)
                    }
                    // What changes by itself wakes the revision; what it cannot see is looked at again.
                    ProviderState::Pending(problem) => {
                        let next = next_attempt(Some(&problem), due_in);
                        (Condition::runtime_unhealthy(problem.message), next)
                    }
                }
            }
        };
        let message = bounded(health.message.clone());
        mark_generation(plane, object, vec![health.with_message(message)]);
        next
    }

    /// The server of a revision's webhooks, if it has any: its certificate is in the objects that lead to it.
    pub(super) async fn webhook_server(
        &self,
        revision: &PackageRevision,
        objects: &[Value],
    ) -> Result<Option<WebhookServer>> {
        if self.kind != PackageKind::Provider || !objects.iter().any(wants_server) {
            return Ok(None);
        }
        let (spec, _) = self.provider(revision).map_err(Error::domain)?;
        let authority = self.shared.providers.certify(&spec).await.map_err(Error::domain)?;
        let namespace = self.shared.plane.options.namespace.clone();
        Ok(authority.map(|authority| WebhookServer { ca_bundle: STANDARD.encode(authority), namespace }))
    }
}
