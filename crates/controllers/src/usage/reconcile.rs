//! One reconcile of a usage: resolves its selectors once, marks what is used, and removes the mark when nothing uses it any
//! longer.

use super::Usages;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use transom_engine::{
    DeleteOptions, Dependency, Error, ErrorContext, Key, Next, Reconciler, ReportedError, Result, RunLog,
    existing,
};
use transom_object::{GroupVersion, GroupVersionKind, meta};
use transom_xapi::constants::{annotation, event, finalizer, label, owner};
use transom_xapi::usage::{self, Usage, Used};
use transom_xapi::{Condition, conditions, metadata};

type Step<T> = Result<T, ReportedError>;

impl Reconciler for Usages {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &self.gvk, &key.namespace, &key.name).await;
        let Some(mut object) = read.context("cannot get usage")? else {
            self.following.forget(key);
            return Ok(Next::Gone);
        };
        let before = object.get("status").cloned().unwrap_or_default();
        let outcome = if meta::is_deleting(&object) {
            self.release(key, log, &mut object).await
        } else {
            self.protect(key, log, &mut object).await
        };
        match outcome {
            Ok(next) => Ok(next),
            Err(failure) => Err(self.plane.fail(&self.name, log, &mut object, &before, failure).await),
        }
    }
}

impl Usages {
    async fn protect(&self, key: &Key, log: &RunLog, object: &mut Value) -> Step<Next> {
        let resolving = event::usage::RESOLVE_SELECTORS;
        let resolved = self.resolve(log, object).await.context("cannot resolve selectors");
        resolved.with_event_reason(resolving)?;
        let usage = parse(object).with_event_reason(resolving)?;
        self.follow(key, object, &usage).with_event_reason(resolving)?;
        let mut changed = metadata::add_finalizer(object, finalizer::USAGE);
        let details = usage.details();
        if meta::annotation(object, annotation::USAGE_DETAILS) != Some(details.as_str()) {
            meta::set_annotation(object, annotation::USAGE_DETAILS, &details);
            changed = true;
        }
        if changed {
            let updated = self.plane.update(log, object).await.context("cannot update usage");
            updated.with_event_reason(event::usage::ADD_DETAILS)?;
        }
        let used = self.used(log, object, &usage.spec.of).await.and_then(must_exist);
        let used = used.context("cannot get used resource").with_event_reason(event::usage::GET_USED)?;
        if meta::label(&used, label::IN_USE) != Some("true") {
            let patch = json!({"metadata": {"labels": {label::IN_USE: "true"}}});
            let marked = self.plane.cluster.merge_patch(&used, &patch, owner::DEFAULT).await;
            let marked = marked.context("cannot add in use label and owner reference");
            log.wrote(&marked.with_event_reason(event::usage::ADD_IN_USE_LABEL)?);
        }
        if let Some(by) = &usage.spec.by {
            self.own_by_user(log, object, by).await?;
        }
        let before = object.get("status").cloned();
        let fine = [Condition::reconcile_success(), Condition::available()];
        conditions::mark_observed(object, fine, self.plane.clock.now());
        if object.get("status") != before.as_ref() {
            let words = "Usage configured successfully.";
            self.plane.events.normal(&self.name, object, event::usage::CONFIGURED, words);
            let updated = self.plane.update_status(log, object).await.context("cannot update usage status");
            updated.with_event_reason(event::usage::CONFIGURED)?;
        }
        Ok(Next::Wait)
    }

    /// Makes changes of the objects that a usage refers to wake it: a label that was removed is added again, and a usage
    /// that waits for a deletion continues after it.
    fn follow(&self, key: &Key, object: &Value, usage: &Usage) -> Result<()> {
        let mut followed = BTreeSet::new();
        for used in [Some(&usage.spec.of), usage.spec.by.as_ref()].into_iter().flatten() {
            let (gvk, namespace) = (kind_of(used)?, namespace_of(object, used).to_owned());
            let name = used.name().unwrap_or_default().to_owned();
            followed.insert(Dependency::Named { gvk, namespace, name });
        }
        self.following.replace(key, &followed);
        Ok(())
    }

    /// Makes the object that uses another the owner of the usage, so that the usage is deleted with it.
    async fn own_by_user(&self, log: &RunLog, object: &mut Value, by: &Used) -> Step<()> {
        let using = self.used(log, object, by).await.and_then(must_exist);
        let using = using.context("cannot get using resource").with_event_reason(event::usage::GET_USING)?;
        let owners = meta::owner_references(object);
        if owners.iter().any(|o| o.uid == meta::uid(&using)) {
            return Ok(());
        }
        let reference = json!({
            "apiVersion": meta::api_version(&using), "kind": meta::kind(&using), "name": meta::name(&using),
            "uid": meta::uid(&using),
        });
        metadata::add_owner(object, reference);
        let updated = self.plane.update(log, object).await.context("cannot add owner reference to usage");
        updated.with_event_reason(event::usage::ADD_OWNER)
    }

    /// Allows the used object to be deleted if no other usage protects it, and deletes it if a client tried to before.
    async fn release(&self, key: &Key, log: &RunLog, object: &mut Value) -> Step<Next> {
        let failed = event::usage::REMOVE_FINALIZER;
        if !metadata::has_finalizer(object, finalizer::USAGE) {
            return Ok(Next::Wait);
        }
        let usage = parse(object).with_event_reason(failed)?;
        self.follow(key, object, &usage).with_event_reason(failed)?;
        if let (Some(by), Some(_)) = (&usage.spec.by, meta::label(object, label::COMPOSITE)) {
            let using = self.used(log, object, by).await.context("cannot get using resource");
            if using.with_event_reason(event::usage::GET_USING)?.is_some() {
                let words = "Waiting for the using resource to be deleted.";
                self.plane.events.normal(&self.name, object, event::usage::WAITING_USING_DELETED, words);
                return Ok(Next::Wait);
            }
        }
        let used = self.used(log, object, &usage.spec.of).await.context("cannot get used resource");
        if let Some(used) = used.with_event_reason(event::usage::GET_USED)? {
            let others = self.protection.usages_of(&used);
            if others.iter().all(|other| other.metadata.uid == meta::uid(object)) {
                self.free(log, &used, usage.spec.replay_deletion == Some(true)).await?;
            }
        }
        metadata::remove_finalizer(object, finalizer::USAGE);
        self.plane
            .update(log, object)
            .await
            .context("cannot remove usage finalizer")
            .with_event_reason(failed)?;
        Ok(Next::Wait)
    }

    async fn free(&self, log: &RunLog, used: &Value, replay: bool) -> Step<()> {
        let patch = json!({"metadata": {"labels": {label::IN_USE: null}}});
        let freed = self.plane.cluster.merge_patch(used, &patch, owner::DEFAULT).await;
        let freed = freed
            .context("cannot remove in use label")
            .with_event_reason(event::usage::REMOVE_IN_USE_LABEL)?;
        log.wrote(&freed);
        // Only now: no attempt is refused any longer, so none is missed.
        let tried = self.protection.take_attempt(used);
        let noted = meta::annotation(&freed, annotation::DELETION_ATTEMPT).map(str::to_owned);
        let (Some(policy), Some(gvk)) = (noted.or(tried), meta::gvk(used)) else { return Ok(()) };
        if replay {
            let options = DeleteOptions { propagation: Some(&policy), uid: Some(meta::uid(used)) };
            let deleted =
                self.plane.cluster.delete(&gvk, meta::namespace(used), meta::name(used), options).await;
            deleted.context("cannot replay deletion").with_event_reason(event::usage::REPLAY_DELETION)?;
        }
        Ok(())
    }

    /// Replaces selectors by references to what they select. That happens once.
    async fn resolve(&self, log: &RunLog, object: &mut Value) -> Result<()> {
        let usage = parse(object)?;
        let mut changed = false;
        for (field, used) in [("of", Some(&usage.spec.of)), ("by", usage.spec.by.as_ref())] {
            let Some(used) = used.filter(|u| u.name().is_none()) else { continue };
            let labels = used.resource_selector.as_ref().map(|s| s.match_labels.clone()).unwrap_or_default();
            let namespace = usage::selector_namespace(used, object).to_owned();
            let candidates = self.plane.cluster.list(&kind_of(used)?, &namespace, &labels).await?;
            let found = usage::resolve(used, object, &candidates).map_err(Error::domain)?;
            object["spec"][field]["resourceRef"] = json!(found);
            changed = true;
        }
        if changed { self.plane.update(log, object).await } else { Ok(()) }
    }

    /// An object that a usage refers to; `None` if it does not exist.
    async fn used(&self, log: &RunLog, usage: &Value, used: &Used) -> Result<Option<Value>> {
        let (namespace, name) = (namespace_of(usage, used), used.name().unwrap_or_default());
        existing(self.plane.read(log, &kind_of(used)?, namespace, name).await)
    }
}

fn must_exist(object: Option<Value>) -> Result<Value> {
    object.ok_or_else(|| Error::domain("not found"))
}

fn namespace_of<'a>(usage: &'a Value, used: &'a Used) -> &'a str {
    let own = used.resource_ref.as_ref().and_then(|r| r.namespace.as_deref());
    own.unwrap_or_else(|| meta::namespace(usage))
}

fn parse(object: &Value) -> Result<Usage> {
    Usage::deserialize(object).map_err(Error::permanent)
}

fn kind_of(used: &Used) -> Result<GroupVersionKind> {
    let gv = GroupVersion::parse(&used.api_version);
    let gv = gv.ok_or_else(|| Error::permanent(format!("{:?} is not an apiVersion", used.api_version)))?;
    Ok(gv.with_kind(&*used.kind))
}
