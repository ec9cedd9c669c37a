//! ClusterRoles of definitions and of providers' revisions, and the bindings of the latter, as Crossplane's RBAC manager keeps them. Optional: where there
//! is no RBAC, or Crossplane's manager runs, they are not made.
//!
//! It is apart from the other controllers, because it grants what it does not have: `transom up` runs it as an account of its
//! own. A role that is as it should be is not written, by any client.

mod bindings;

use crate::catalog::kinds;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use transom_engine::{
    Clock, Cluster, Controller, Depth, Engine, Error, ErrorContext, Key, Metrics, Mirror, Next, Ownership,
    Pace, Reconciler, Result, RunLog,
};
use transom_object::{GroupVersionKind, meta};
use transom_packages::PackageKind;
use transom_xapi::{Definition, PackageRevision, metadata, roles};

const OF_DEFINITIONS: &str = "rbac/compositeresourcedefinition.apiextensions.crossplane.io";
const OF_PROVIDERS: &str = "rbac/providerrevision.pkg.crossplane.io";
/// The field manager of the roles.
const OWNER: &str = "rbac.crossplane.io";

fn cluster_role_kind(kind: &str) -> GroupVersionKind {
    GroupVersionKind::new("rbac.authorization.k8s.io", "v1", kind)
}

fn revision_kind() -> GroupVersionKind {
    GroupVersionKind::new("pkg.crossplane.io", "v1", PackageKind::Provider.revision_kind())
}

/// What has roles.
enum Source {
    Definitions,
    Providers,
}

/// The running controllers. They stop when dropped.
pub struct RoleManager {
    engine: Arc<Engine>,
    _controllers: Vec<Controller>,
}

impl RoleManager {
    /// Starts them with a client of their own. The kinds must exist. Providers that run as Deployments run in the namespace
    /// `deployed_in`; their service accounts get the roles of their revisions.
    pub fn start(
        client: kube::Client,
        clock: Clock,
        metrics: Arc<Metrics>,
        ownership: Ownership,
        deployed_in: Option<String>,
    ) -> Self {
        let engine = Engine::start(Cluster::new(client), clock, metrics, OWNER).sharing(ownership);
        let engine = Arc::new(engine);
        let start = |name: &str, source: Source| {
            let mut controller = engine.controller(name, Pace::default());
            let roles = Roles { engine: engine.clone(), source };
            controller.watch_own(&roles.gvk(), Depth::Header);
            controller.start(roles)
        };
        let mut controllers =
            vec![start(OF_DEFINITIONS, Source::Definitions), start(OF_PROVIDERS, Source::Providers)];
        controllers.extend(deployed_in.map(|namespace| bindings::start(&engine, namespace)));
        Self { engine, _controllers: controllers }
    }

    /// What its watches have reported.
    pub fn mirrors(&self) -> Vec<Arc<Mirror>> {
        self.engine.watches.mirrors()
    }
}

impl Drop for RoleManager {
    fn drop(&mut self) {
        self.engine.stop();
    }
}

struct Roles {
    engine: Arc<Engine>,
    source: Source,
}

impl Roles {
    fn gvk(&self) -> GroupVersionKind {
        match self.source {
            Source::Definitions => kinds::definition(),
            Source::Providers => revision_kind(),
        }
    }

    fn wanted(&self, object: &Value) -> Result<Vec<Value>> {
        match self.source {
            Source::Definitions => Definition::deserialize(object)
                .map(|definition| roles::of_definition(&definition))
                .map_err(Error::permanent),
            Source::Providers => {
                let revision = PackageRevision::deserialize(object).map_err(Error::permanent)?;
                Ok(roles::of_provider(&revision, &installed(object)))
            }
        }
    }
}

/// The kinds that a revision installed, by plural and group: names of definitions are `plural.group`.
fn installed(revision: &Value) -> Vec<(String, String)> {
    let references = revision.pointer("/status/objectRefs").and_then(Value::as_array);
    let defines = |reference: &&Value| {
        let kind = reference["kind"].as_str().unwrap_or_default();
        kind == "CustomResourceDefinition" || kind == "ManagedResourceDefinition"
    };
    let names =
        references.into_iter().flatten().filter(defines).filter_map(|reference| reference["name"].as_str());
    names
        .filter_map(|name| name.split_once('.'))
        .map(|(plural, group)| (plural.to_owned(), group.to_owned()))
        .collect()
}

impl Reconciler for Roles {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let gvk = self.gvk();
        let read = self.engine.read(log, &gvk, "", &key.name).await;
        // The roles of what is gone are garbage: it owned them.
        let Some(object) = read.context(format!("cannot get {}", gvk.kind))? else { return Ok(Next::Gone) };
        let is_paused = matches!(self.source, Source::Providers) && metadata::is_paused(&object);
        if meta::is_deleting(&object) || is_paused {
            return Ok(Next::Wait);
        }
        for role in self.wanted(&object)? {
            let name = meta::name(&role);
            let stored = self.engine.read(log, &cluster_role_kind("ClusterRole"), "", name).await?;
            if stored.is_some_and(|stored| roles::is_as_wanted(&stored, &role)) {
                continue;
            }
            let applied = self.engine.cluster.apply(&role, OWNER).await;
            log.wrote(&applied.context(format!("cannot apply ClusterRole {name}"))?);
        }
        Ok(Next::Wait)
    }
}
