//! The functions of a pipeline, callable from the machine of the command: by the resolver, runtimes and router of a control
//! plane, with the FunctionRevisions that the one that is looked at calls.

use crate::host::{FunctionHost, FunctionHostArgs};
use crate::writing::explain;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use transom_builtins::{Builtins, Settings};
use transom_console::Failure;
use transom_console::control_plane::within;
use transom_engine::Cluster;
use transom_object::GroupVersionKind;
use transom_runner::{Assembly, Installer, Options, Resolver, RevisionSpec, Router, RuntimeState, Source};
use transom_xapi::constants::{condition, group, kind};
use transom_xapi::function::{WantedRevision, may_answer};
use transom_xapi::runtime_config::DeploymentRuntimeConfig;
use transom_xapi::{CompositionSpec, FunctionRevision, PipelineStep, conditions};

/// How long a call waits for a function that cannot be reached.
const WAIT_FOR_START: Duration = Duration::from_secs(1);
/// How long a program may take to start once its image is here.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Templates in files are files of the control plane: none of this machine may be read instead.
const NO_FILES: &str = "/dev/null/templates";

/// The functions of a pipeline.
pub(super) struct Functions {
    pub(super) router: Arc<Router>,
    /// Why some of them cannot be called from here.
    pub(super) problems: Vec<String>,
    /// What runs packages and inline functions, if the pipeline has any.
    host: Option<Box<dyn FunctionHost>>,
}

impl Functions {
    pub(super) async fn install(
        cluster: &Cluster,
        spec: &CompositionSpec,
        args: &impl FunctionHostArgs,
    ) -> Result<Self, Failure> {
        let assembly = Arc::new(assembly());
        let resolver = assembly.resolver();
        let (revisions, mut problems) = called(cluster, spec, &resolver).await?;
        let is_package = |revision: &RevisionSpec| matches!(revision.source, Source::Package { .. });
        let (runtime, host) = if spec.has_inline_functions() || revisions.iter().any(is_package) {
            let host = args.host(assembly.clone())?;
            (host.runtime(), Some(host))
        } else {
            (Arc::new(assembly.runtime()) as _, None)
        };
        let router = assembly.router();
        let router = Arc::new(match host.as_ref().and_then(|host| host.inline()) {
            Some(inline) => router.with_inline(inline),
            None => router,
        });
        let installer = Installer::new(resolver, runtime, router.clone());
        for revision in revisions {
            let problem = match installer.install_and_wait(&revision, START_TIMEOUT).await {
                RuntimeState::Failed(problem) => problem,
                RuntimeState::Pending { problem, .. } if is_package(&revision) => problem,
                // One that cannot be reached yet is found out by calling it.
                RuntimeState::Pending { .. } | RuntimeState::Ready(_) => continue,
            };
            let name = &revision.id.revision;
            problems.push(format!("FunctionRevision {name} cannot be called from here: {problem}"));
        }
        Ok(Self { router, problems, host })
    }

    /// Stops what was started.
    pub(super) async fn stop(&self) {
        if let Some(host) = &self.host {
            host.stop().await;
        }
    }
}

fn assembly() -> Assembly {
    let settings = Settings {
        files_below: Some(Path::new(NO_FILES).to_owned()),
        explain_refusals: true,
        ..Settings::default()
    };
    let options = Options { wait_for_start: WAIT_FOR_START, ..Options::default() };
    Assembly::new(Builtins::new(&settings), options)
}

/// The revisions that the control plane calls for the steps of a pipeline, and why there is none for some.
async fn called(
    cluster: &Cluster,
    spec: &CompositionSpec,
    resolver: &Resolver,
) -> Result<(Vec<RevisionSpec>, Vec<String>), Failure> {
    let revisions: Vec<FunctionRevision> = all(cluster, kind::FUNCTION_REVISION, "v1").await?;
    let (mut wanted, mut problems) = (BTreeMap::new(), Vec::new());
    for step in spec.pipeline.iter().filter(|step| step.inline.is_none()) {
        match chosen(step, &revisions) {
            Some(revision) => drop(wanted.insert(&revision.metadata.name, revision)),
            None => problems.push(without_revision(step)),
        }
    }
    let mut specs: Vec<RevisionSpec> =
        wanted.into_values().map(|revision| RevisionSpec::of(revision, resolver)).collect();
    let is_package = |spec: &RevisionSpec| matches!(spec.source, Source::Package { .. });
    if specs.iter().any(is_package) {
        let configs: Vec<DeploymentRuntimeConfig> =
            all(cluster, kind::DEPLOYMENT_RUNTIME_CONFIG, "v1beta1").await?;
        for spec in specs.iter_mut().filter(|spec| is_package(spec)) {
            // The policy says when the control plane pulls.
            spec.image.never_pulled = false;
            let of_spec = |revision: &&FunctionRevision| revision.metadata.name == spec.id.revision;
            let reference = revisions.iter().find(of_spec).and_then(config_name);
            let config = configs.iter().find(|config| Some(&*config.metadata.name) == reference);
            spec.config = config.map(|config| Arc::new(config.spec.clone())).unwrap_or_default();
        }
    }
    Ok((specs, problems))
}

fn config_name(revision: &FunctionRevision) -> Option<&str> {
    revision.spec.installation.runtime_config_ref.as_ref().map(|reference| reference.name.as_str())
}

/// The revision that the control plane calls for a step: of the active ones that the step wants a healthy one before all
/// others, and of these the one with the highest number.
fn chosen<'a>(step: &PipelineStep, revisions: &'a [FunctionRevision]) -> Option<&'a FunctionRevision> {
    let is_healthy = |revision: &FunctionRevision| {
        conditions::get(&revision.status.conditions, condition::RUNTIME_HEALTHY).is_true()
    };
    let possible = revisions.iter().filter(|revision| may_answer(step, revision));
    possible.max_by_key(|revision| (is_healthy(revision), revision.spec.revision))
}

fn without_revision(step: &PipelineStep) -> String {
    let function = step.function_name();
    if step.wanted_revision() != WantedRevision::Newest {
        return format!(
            "step {:?} chooses a revision of function {function:?}, and no active revision is the one that it chooses",
            step.step
        );
    }
    format!("Function {function:?} has no active revision")
}

async fn all<T: DeserializeOwned>(cluster: &Cluster, kind: &str, version: &str) -> Result<Vec<T>, Failure> {
    let of = GroupVersionKind::new(group::PKG, version, kind);
    let listed = within(&of.kind, cluster.list(&of, "", &BTreeMap::new())).await?;
    let listed = listed.map_err(|e| explain(&of.kind, &e))?;
    Ok(listed.into_iter().filter_map(|object| T::deserialize(object).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn revision(name: &str, number: i64, state: &str, healthy: &str) -> FunctionRevision {
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"pkg.crossplane.io/package": "f", "channel": name},
                "annotations": {"transom.io/image-digest": format!("sha256:{number}")}},
            "spec": {"desiredState": state, "revision": number, "image": format!("r.io/f@sha256:{number}")},
            "status": {"conditions": [{"type": "RuntimeHealthy", "status": healthy}]},
        }))
        .unwrap()
    }

    fn step(value: Value) -> PipelineStep {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_revision_is_that_which_the_control_plane_calls() {
        let all = [
            revision("f-1", 1, "Active", "True"),
            revision("f-2", 2, "Active", "True"),
            revision("f-3", 3, "Active", "False"),
            revision("f-4", 4, "Inactive", "True"),
        ];
        let name = |more: Value| {
            let mut value = json!({"step": "s", "functionRef": {"name": "f"}});
            value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            chosen(&step(value), &all).map(|revision| revision.metadata.name.clone())
        };
        assert_eq!(name(json!({})).as_deref(), Some("f-2"), "the newest that is healthy");
        let labelled = |label: &str| json!({"functionRevisionSelector": {"matchLabels": {"channel": label}}});
        assert_eq!(name(labelled("f-1")).as_deref(), Some("f-1"));
        assert_eq!(name(labelled("f-3")).as_deref(), Some("f-3"), "never another one");
        assert_eq!(name(labelled("f-4")), None, "it is not active");
        assert_eq!(name(json!({"functionRevisionRef": {"name": "f-3"}})).as_deref(), Some("f-3"));
        let pinned = step(json!({"step": "s", "function": "r.io/f@sha256:1"}));
        assert_eq!(chosen(&pinned, &all).map(|r| r.metadata.name.as_str()), Some("f-1"));
        assert!(without_revision(&pinned).contains("chooses a revision of function \"r.io/f@sha256:1\""));
    }
}
