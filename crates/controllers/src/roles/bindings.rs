//! ClusterRoleBindings of providers' revisions: they bind the role of a revision to the service accounts of its Deployments.

use super::{OWNER, cluster_role_kind, revision_kind};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transom_engine::{
    Controller, Dependency, Depth, Engine, Error, ErrorContext, Following, Key, Next, Pace, Reconciler,
    Result, RunLog,
};
use transom_object::{GroupVersionKind, meta};
use transom_xapi::{PackageRevision, metadata, roles};

const NAME: &str = "rbac-bindings/providerrevision.pkg.crossplane.io";

fn deployment() -> GroupVersionKind {
    GroupVersionKind::new("apps", "v1", "Deployment")
}

fn binding_kind() -> GroupVersionKind {
    cluster_role_kind("ClusterRoleBinding")
}

/// Starts the controller. Deployments of providers are in this namespace.
pub(super) fn start(engine: &Arc<Engine>, namespace: String) -> Controller {
    let mut controller = engine.controller(NAME, Pace::default());
    controller.watch_own(&revision_kind(), Depth::Header);
    let following = controller.follow(|_| true);
    controller.start(Bindings { engine: engine.clone(), namespace, following })
}

struct Bindings {
    engine: Arc<Engine>,
    namespace: String,
    following: Arc<Following>,
}

impl Bindings {
    /// Deployments are found by their owner, because those that Crossplane made have no label for it.
    fn dependencies(&self, binding: &str) -> BTreeSet<Dependency> {
        let named =
            Dependency::Named { gvk: binding_kind(), namespace: String::new(), name: binding.to_owned() };
        let namespace = Some(self.namespace.clone());
        let selected = Dependency::Selected { gvk: deployment(), namespace, labels: BTreeMap::new() };
        BTreeSet::from([named, selected])
    }

    /// The service accounts of the Deployments that a revision owns.
    async fn accounts(&self, log: &RunLog, uid: &str) -> Result<Vec<String>> {
        let listed = self.engine.cluster.list_at(&deployment(), &self.namespace, &BTreeMap::new()).await;
        let (deployments, version) = listed.context("cannot list Deployments")?;
        log.listed(&deployment(), version);
        let owned = deployments.iter().filter(|deployment| owners(deployment).any(|owner| owner == uid));
        let account = |deployment: &Value| {
            let name = deployment.pointer("/spec/template/spec/serviceAccountName");
            name.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Ok(owned.map(account).collect())
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().filter_map(|owner| owner["uid"].as_str())
}

impl Reconciler for Bindings {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.engine.read(log, &revision_kind(), "", &key.name).await;
        let Some(object) = read.context("cannot get ProviderRevision")? else {
            self.following.forget(key);
            // The binding is garbage: the revision owned it.
            return Ok(Next::Gone);
        };
        if meta::is_deleting(&object) || metadata::is_paused(&object) {
            return Ok(Next::Wait);
        }
        let revision = PackageRevision::deserialize(&object).map_err(Error::permanent)?;
        let name = roles::system_role(&revision);
        self.following.replace(key, &self.dependencies(&name));
        let accounts = self.accounts(log, meta::uid(&object)).await?;
        let stored = self.engine.read(log, &binding_kind(), "", &name).await?;
        let wanted = roles::binding_of_provider(&revision, &self.namespace, &accounts);
        let as_wanted = match &stored {
            Some(stored) => roles::binds_as_wanted(stored, &wanted),
            None => accounts.is_empty(),
        };
        if !as_wanted {
            let applied = self.engine.cluster.apply(&wanted, OWNER).await;
            log.wrote(&applied.context(format!("cannot apply ClusterRoleBinding {name}"))?);
        }
        Ok(Next::Wait)
    }
}
