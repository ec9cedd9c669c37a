//! ObservedObjectCollections: for each object that matches, an Object that only observes it.

use super::manifest::digest;
use super::target::{Surroundings, Target, Targets};
use super::watching::{Interest, Watching};
use super::{Generation, OBJECT, identity, is_own};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transom_engine::{
    Dependency, Error, ErrorContext, Key, Next, Reconciler, Result, RunLog, apply_is_noop, existing,
};
use transom_object::labels::{Operator, Selector};
use transom_object::{GroupVersionKind, meta};
use transom_provider::{Condition, Equipment, Layout, conditions};

pub(super) const KIND: &str = "ObservedObjectCollection";
const MANAGER: &str = "kubernetes.crossplane.io/observed-object-collection-controller";
/// The label of the Objects of a collection: its name.
const MEMBER_LABEL: &str = "kubernetes.crossplane.io/owned-by-collection";
/// How many digits of a hash the name of an Object ends with.
const HASH_LENGTH: usize = 7;

pub(super) struct Collections {
    pub(super) equipment: Equipment,
    pub(super) targets: Arc<Targets>,
    pub(super) watching: Arc<Watching>,
    pub(super) generation: Generation,
}

impl Reconciler for Collections {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let engine = self.equipment.engine();
        let gvk = self.generation.gvk(KIND);
        let read = engine.read(log, &gvk, &key.namespace, &key.name).await;
        let found = existing(read).context("cannot get ObservedObjectCollection")?;
        let Some(mut object) = found.filter(|object| !meta::is_deleting(object)) else {
            // Its Objects are deleted because it owns them.
            self.watching.forget(&self.equipment.waker(key));
            self.equipment.following().forget(key);
            return Ok(Next::Gone);
        };
        let before = object.get("status").cloned().unwrap_or_default();
        let paused = meta::annotation(&object, "crossplane.io/paused") == Some("true");
        let (marks, next) = if paused {
            (vec![Condition::reconcile_paused()], Next::Wait)
        } else {
            match self.collect_in_time(key, log, &object).await {
                Ok(()) => {
                    object["status"]["membershipLabel"] = json!({MEMBER_LABEL: meta::name(&object)});
                    let poll = self.equipment.poll_after(&object);
                    (
                        vec![Condition::reconcile_success(), Condition::available()],
                        poll.map_or(Next::Wait, Next::After),
                    )
                }
                Err(e) if e.is_conflict() => return Err(e),
                Err(e) => (vec![Condition::reconcile_error(e.chain().to_string())], Next::Failed),
            }
        };
        conditions::mark(&mut object, marks, engine.clock.now());
        engine.write_status(log, &mut object, &before).await.context("cannot update status")?;
        Ok(next)
    }
}

impl Collections {
    /// A cluster that does not answer, or not to the end, keeps no worker from others.
    async fn collect_in_time(&self, key: &Key, log: &RunLog, object: &Value) -> Result<()> {
        let limit = self.equipment.timeout();
        let collected = tokio::time::timeout(limit, self.collect(key, log, object)).await;
        let seconds = limit.as_secs();
        collected
            .unwrap_or_else(|_| Err(Error::domain(format!("the reconcile took longer than {seconds} s"))))
    }

    /// Makes the Objects of a collection those of the objects that match now.
    async fn collect(&self, key: &Key, log: &RunLog, object: &Value) -> Result<()> {
        let target = self.target(key, object).await?;
        let matching = self.matching(key, object, &target).await?;
        let (engine, kind) = (self.equipment.engine(), self.generation.gvk(OBJECT));
        let labels = BTreeMap::from([(MEMBER_LABEL.to_owned(), meta::name(object).to_owned())]);
        let members = engine.cluster.list(&kind, meta::namespace(object), &labels).await;
        let members = members.context("cannot list members")?;
        let mut wanted = BTreeSet::new();
        for found in &matching {
            let member = self.member(object, found);
            let live = members.iter().find(|live| meta::name(live) == meta::name(&member));
            if !live.is_some_and(|live| apply_is_noop(live, &member, MANAGER, "")) {
                let applied = engine.cluster.apply(&member, MANAGER).await;
                log.wrote(&applied.context("cannot create observed object")?);
            }
            wanted.insert(meta::name(&member).to_owned());
        }
        for member in members.iter().filter(|member| !wanted.contains(meta::name(member))) {
            let (namespace, name) = (meta::namespace(member), meta::name(member));
            let deleted = engine.cluster.delete(&kind, namespace, name, Default::default()).await;
            deleted.context("cannot delete observed object")?;
        }
        Ok(())
    }

    /// The cluster that its ProviderConfig leads to. Both are followed.
    async fn target(&self, key: &Key, object: &Value) -> Result<Arc<Target>> {
        let following = self.equipment.following();
        let reference = self.generation.configs().reference(object)?;
        let (gvk, namespace, name) = (reference.gvk, reference.namespace, reference.name);
        let named = Dependency::Named { gvk: gvk.clone(), namespace: namespace.clone(), name: name.clone() };
        following.replace(key, &BTreeSet::from([named]));
        let cluster = &self.equipment.engine().cluster;
        let attempted = "cannot get provider config";
        let config = existing(cluster.get(&gvk, &namespace, &name).await).context(attempted)?;
        let missing = || Error::domain(format!("{} {name:?} not found", gvk.kind));
        let config = config.ok_or_else(missing).context(attempted)?;
        let around = Surroundings { cluster, identity: self.equipment.identity() };
        let target = self.targets.of(&config, &around, |dependency| following.add(key, dependency)).await;
        target.context("cannot build kube client for provider config")
    }

    /// The objects that match, which are watched from now on.
    async fn matching(&self, key: &Key, object: &Value, target: &Target) -> Result<Vec<Value>> {
        let observed = object.pointer("/spec/observeObjects").cloned().unwrap_or_default();
        let text = |field: &str| observed.get(field).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
        let gvk = GroupVersionKind::new(group, version, text("kind"));
        let selector = observed.get("selector").cloned().unwrap_or_else(|| json!({}));
        let selector = Selector::from_label_selector(&selector).map_err(Error::permanent);
        let selector = selector.context("error creating selector")?;
        let namespace = Some(text("namespace").to_owned()).filter(|namespace| !namespace.is_empty());
        let interest = Interest { gvk: gvk.clone(), namespace, name: None };
        self.watching.watch(&self.equipment.waker(key), target, interest);
        let listed = target.cluster.list(&gvk, text("namespace"), &equalities(&selector)).await;
        let listed = listed.context(format!("error fetching objects of kind {}", gvk.kind))?;
        let matches = |found: &Value| !is_member(found) && selector.matches(&meta::labels(found));
        Ok(listed.into_iter().filter(matches).collect())
    }

    /// The Object for an object.
    fn member(&self, collection: &Value, found: &Value) -> Value {
        let mut member = identity(
            &self.generation.gvk(OBJECT),
            meta::namespace(collection),
            &member_name(collection, found),
        );
        let texts = |field: &str| -> Map<String, Value> {
            let metadata = collection.pointer(&format!("/spec/objectTemplate/metadata/{field}"));
            metadata.and_then(Value::as_object).cloned().unwrap_or_default()
        };
        let mut labels = texts("labels");
        // Whatever the template says: what has another label is not found again.
        labels.insert(MEMBER_LABEL.to_owned(), meta::name(collection).into());
        member["metadata"]["labels"] = labels.into();
        let annotations = texts("annotations");
        if !annotations.is_empty() {
            member["metadata"]["annotations"] = annotations.into();
        }
        member["metadata"]["ownerReferences"] = json!([{
            "apiVersion": meta::api_version(collection), "kind": meta::kind(collection),
            "name": meta::name(collection), "uid": meta::uid(collection),
        }]);
        let gvk = meta::gvk(found).unwrap_or_else(|| GroupVersionKind::new("", "", ""));
        let config = collection.pointer("/spec/providerConfigRef").cloned();
        member["spec"] = json!({
            "forProvider": {"manifest": identity(&gvk, meta::namespace(found), meta::name(found))},
            "managementPolicies": ["Observe"],
            "providerConfigRef": config.unwrap_or_else(|| self.default_config()),
        });
        member
    }

    fn default_config(&self) -> Value {
        match self.generation.layout {
            Layout::Legacy => json!({"name": "default"}),
            Layout::Modern => json!({"kind": "ClusterProviderConfig", "name": "default"}),
        }
    }
}

/// Whether an object is the Object of a collection. These are never observed by a collection: one of Objects would observe its own,
/// and those that it made for them, without end.
fn is_member(found: &Value) -> bool {
    let is_object = meta::gvk(found).is_some_and(|gvk| gvk.kind == OBJECT && is_own(&gvk));
    is_object && meta::labels(found).contains_key(MEMBER_LABEL)
}

/// The labels that a selector wants exactly, which the server can select by.
fn equalities(selector: &Selector) -> BTreeMap<String, String> {
    let one = |values: &[String]| (values.len() == 1).then(|| values[0].clone());
    let equals =
        selector.requirements().iter().filter(|r| matches!(r.operator(), Operator::In | Operator::Equals));
    equals.filter_map(|r| Some((r.key().to_owned(), one(r.values())?))).collect()
}

/// The name of the Object for an object: as that of the original, so that each recognises those of the other.
fn member_name(collection: &Value, found: &Value) -> String {
    let (version, kind) = (meta::api_version(found), meta::kind(found));
    // A version of the core group has no slash of its own.
    let slash = if version.contains('/') { "" } else { "/" };
    let (namespace, name) = (meta::namespace(found), meta::name(found));
    let identity = format!("{slash}{version}, Kind={kind}/{namespace}/{name}");
    format!("{}-{}", meta::name(collection), &digest(identity.as_bytes())[..HASH_LENGTH])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_members_are_those_of_the_original() {
        let collection = json!({"metadata": {"name": "all"}});
        let found = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "a"}});
        let expected = &digest(b"/v1, Kind=ConfigMap/default/a")[..7];
        assert_eq!(member_name(&collection, &found), format!("all-{expected}"));
        let found = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "n", "name": "d"}});
        let expected = &digest(b"apps/v1, Kind=Deployment/n/d")[..7];
        assert_eq!(member_name(&collection, &found), format!("all-{expected}"));
    }
}
