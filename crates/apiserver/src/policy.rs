//! The roles and bindings that a server starts with: made when they are missing, completed when they lack something.

use crate::bootstrap::ensure;
use crate::change::{Edit, Existing};
use crate::request::{DeleteOptions, Propagation, WriteOptions};
use crate::server::Inner;
use crate::upkeep::identity;
use crate::write::{self, DeleteRequest};
use futures_util::future::try_join_all;
use serde_json::Value;
use transom_object::{GroupVersion, Status};
use transom_rbac::GROUP;
use transom_rbac::bootstrap::{KINDS, PolicyObject, Reconciled, aggregated_rules, policy, reconcile};

/// Kubernetes' policy and `more`. All together, so that they share syncs of the disk.
pub(crate) async fn ensure_policy(server: &Inner, more: Vec<Value>) -> Result<(), Status> {
    let more = more.into_iter().filter_map(|value| {
        let (plural, _) = KINDS.into_iter().find(|(_, kind)| value["kind"] == *kind)?;
        Some(PolicyObject { plural, value })
    });
    let objects: Vec<PolicyObject> = policy().into_iter().chain(more).collect();
    let mut rules = aggregated_rules(&objects);
    let ensured = objects.into_iter().map(|object| {
        let collected = rules.remove(object.value["metadata"]["name"].as_str().unwrap_or_default());
        ensure_object(server, object, collected.filter(|rules| !rules.is_empty()))
    });
    try_join_all(ensured.collect::<Vec<_>>()).await.map(drop)
}

/// `collected`: the rules of an aggregated role that does not exist yet.
async fn ensure_object(
    server: &Inner,
    object: PolicyObject,
    collected: Option<Vec<Value>>,
) -> Result<(), Status> {
    let PolicyObject { plural, value } = object;
    let text = |key: &str| value["metadata"][key].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    let gvr = GroupVersion { group: GROUP.into(), version: "v1".into() }.with_resource(plural);
    let resource =
        server.registry.find(&gvr).ok_or_else(|| Status::internal(format!("{plural} are not served")))?;
    let Some(entry) = server.store.get(&resource.key(&namespace, &name)) else {
        let mut value = value;
        if let Some(rules) = collected {
            value["rules"] = rules.into();
        }
        return ensure(server, plural, &namespace, value).await;
    };
    match reconcile(&resource.decode(&entry)?, &value) {
        Reconciled::Unchanged => Ok(()),
        Reconciled::Replaced => {
            let options = DeleteOptions::with_propagation(Propagation::Background);
            let by = identity::server();
            let request = DeleteRequest { namespace: &namespace, name: &name, options: &options, by };
            write::delete(server, &resource, &request).await?;
            ensure(server, plural, &namespace, value).await
        }
        Reconciled::Updated(_) => {
            let request = write::Update {
                namespace: &namespace,
                name: &name,
                subresource: crate::subresource::Subresource::Main,
                options: &WriteOptions::of_manager("kube-apiserver"),
                owns_fields: true,
                create_missing: false,
                require_version: false,
                pins_version: false,
                by: identity::server(),
            };
            let mut edit = Edit(|existing: &Existing<'_>| {
                let stored = existing.value.cloned().unwrap_or_default();
                Ok(match reconcile(&stored, &value) {
                    Reconciled::Updated(new) => new,
                    _ => stored,
                })
            });
            write::update(server, &resource, &request, &mut edit).await.map(drop)
        }
    }
}
