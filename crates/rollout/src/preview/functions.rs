//! The functions of a pipeline, callable from the machine of the command: by the resolver, runtime and router of a control
//! plane, with the active FunctionRevisions of the one that is looked at.

use crate::writing::explain;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use transom_builtins::{Builtins, Settings};
use transom_console::Failure;
use transom_console::control_plane::within;
use transom_engine::Cluster;
use transom_object::GroupVersionKind;
use transom_runner::{
    FirstVersionFunctions, Installer, LocalRuntime, Options, Resolver, Router, RuntimeState,
};
use transom_xapi::constants::{group, kind};
use transom_xapi::{CompositionSpec, FunctionRevision};

/// How long a call waits for a function that cannot be reached.
const WAIT_FOR_START: Duration = Duration::from_secs(1);
/// Templates in files are files of the control plane: none of this machine may be read instead.
const NO_FILES: &str = "/dev/null/templates";

/// The functions of a pipeline.
pub(super) struct Functions {
    pub(super) router: Arc<Router>,
    /// Why some of them cannot be called from here.
    pub(super) problems: Vec<String>,
}

impl Functions {
    pub(super) async fn install(cluster: &Cluster, spec: &CompositionSpec) -> Result<Self, Failure> {
        let router = Router::new(Options { wait_for_start: WAIT_FOR_START, ..Options::default() });
        let router = Arc::new(router.with_first_version(FirstVersionFunctions {
            templates: transom_builtins::templates(),
            environment: transom_builtins::environment(),
        }));
        let settings = Settings {
            files_below: Some(Path::new(NO_FILES).to_owned()),
            explain_refusals: true,
            ..Settings::default()
        };
        let builtins = Builtins::new(&settings);
        let runtime = LocalRuntime::new(move |name| builtins.find(name), router.options());
        let resolver = Resolver::new(transom_builtins::names());
        let installer = Installer::new(resolver, Arc::new(runtime), router.clone());
        let mut problems = Vec::new();
        let mut missing: BTreeSet<&str> = spec.function_names().collect();
        for revision in active_revisions(cluster).await? {
            let function = revision.package();
            if !spec.function_names().any(|name| name == function) {
                continue;
            }
            missing.remove(function);
            // One that cannot be reached yet is found out by calling it.
            if let RuntimeState::Failed(problem) = installer.install(&installer.revision(&revision)).await {
                let name = &revision.metadata.name;
                problems
                    .push(format!("FunctionRevision {name} cannot be called from here: {}", problem.message));
            }
        }
        problems.extend(missing.iter().map(|name| format!("Function {name:?} has no active revision")));
        Ok(Self { router, problems })
    }
}

async fn active_revisions(cluster: &Cluster) -> Result<Vec<FunctionRevision>, Failure> {
    let of = GroupVersionKind::new(group::PKG, "v1", kind::FUNCTION_REVISION);
    let listed = within(&of.kind, cluster.list(&of, "", &BTreeMap::new())).await?;
    let listed = listed.map_err(|e| explain(&of.kind, &e))?;
    let revisions = listed.into_iter().filter_map(|object| serde_json::from_value(object).ok());
    Ok(revisions.filter(FunctionRevision::is_active).collect())
}
