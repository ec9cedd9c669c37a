//! One reconcile of a usage.

use super::Usages;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use transom_engine::{DeleteOptions, Dependency, Error, ErrorContext, Key, Next, Result, RunLog, existing};
use transom_object::{GroupVersion, GroupVersionKind, meta};
use transom_xapi::constants::{annotation, event, finalizer, label, owner};
use transom_xapi::usage::{self, Usage, Used};
use transom_xapi::{Condition, conditions, metadata};

type Step<T> = Result<T, (&'static str, Error)>;

impl Usages {
    pub(super) async fn run(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &self.gvk, &key.namespace, &key.name).await;
        let Some(mut object) = read.context("cannot get usage")? else {
            self.following.forget(key);
            return Ok(Next::Gone);
        };
        let before = object.get("status").cloned();
        let outcome = if meta::is_deleting(&object) {
            self.release(key, log, &mut object).await
        } else {
            self.protect(key, log, &mut object).await
        };
        match outcome {
            Ok(next) => Ok(next),
            Err((_, error)) if error.is_conflict() => Err(error),
            Err((reason, error)) => {
                self.plane.events.warning(&self.name, &object, reason, error.to_string());
                let now = self.plane.clock.now();
                conditions::mark_observed(&mut object, [Condition::reconcile_error(error.to_string())], now);
                if object.get("status") != before.as_ref() {
                    let _ = self.plane.update_status(log, &mut object).await;
                }
                Err(error)
            }
        }
    }

    async fn protect(&self, key: &Key, log: &RunLog, object: &mut Value) -> Step<Next> {
        let resolving = |e| (event::usage::RESOLVE_SELECTORS, e);
        self.resolve(log, object).await.context("cannot resolve selectors").map_err(resolving)?;
        let usage = parse(object).map_err(resolving)?;
        self.follow(key, object, &usage).map_err(resolving)?;
        let mut changed = metadata::add_finalizer(object, finalizer::USAGE);
        let details = usage.details();
        if meta::annotation(object, annotation::USAGE_DETAILS) != Some(details.as_str()) {
            meta::set_annotation(object, annotation::USAGE_DETAILS, &details);
            changed = true;
        }
        if changed {
            let updated = self.plane.update(log, object).await.context("cannot update usage");
            updated.map_err(|e| (event::usage::ADD_DETAILS, e))?;
        }
        let used = self.used(log, object, &usage.spec.of).await.context("cannot get used resource");
        let used = used
            .and_then(|u| u.ok_or_else(|| Error::Transport("cannot get used resource: not found".into())));
        let used = used.map_err(|e| (event::usage::GET_USED, e))?;
        if meta::label(&used, label::IN_USE) != Some("true") {
            let patch = json!({"metadata": {"labels": {label::IN_USE: "true"}}});
            let marked = self.plane.cluster.merge_patch(&used, &patch, owner::DEFAULT).await;
            let marked = marked.context("cannot add in use label and owner reference");
            log.wrote(&marked.map_err(|e| (event::usage::ADD_IN_USE_LABEL, e))?);
        }
        if let Some(by) = &usage.spec.by {
            self.go_with(log, object, by).await?;
        }
        let before = object.get("status").cloned();
        let fine = [Condition::reconcile_success(), Condition::available()];
        conditions::mark_observed(object, fine, self.plane.clock.now());
        if object.get("status") != before.as_ref() {
            let words = "Usage configured successfully.";
            self.plane.events.normal(&self.name, object, event::usage::CONFIGURED, words);
            let updated = self.plane.update_status(log, object).await.context("cannot update usage status");
            updated.map_err(|e| (event::usage::CONFIGURED, e))?;
        }
        Ok(Next::Wait)
    }

    /// From now on the usage is woken by what happens to what it refers to: a mark that is gone comes back, and who
    /// waits for something to go learns of it.
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

    /// The usage goes with what uses the object.
    async fn go_with(&self, log: &RunLog, object: &mut Value, by: &Used) -> Step<()> {
        let using = self.used(log, object, by).await.context("cannot get using resource");
        let using = using
            .and_then(|u| u.ok_or_else(|| Error::Transport("cannot get using resource: not found".into())));
        let using = using.map_err(|e| (event::usage::GET_USING, e))?;
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
        updated.map_err(|e| (event::usage::ADD_OWNER, e))
    }

    /// What is used may be deleted again, if nothing else uses it; and is, if that was tried before.
    async fn release(&self, key: &Key, log: &RunLog, object: &mut Value) -> Step<Next> {
        let failed = |e| (event::usage::REMOVE_FINALIZER, e);
        if !metadata::has_finalizer(object, finalizer::USAGE) {
            return Ok(Next::Wait);
        }
        let usage = parse(object).map_err(failed)?;
        self.follow(key, object, &usage).map_err(failed)?;
        if let (Some(by), Some(_)) = (&usage.spec.by, meta::label(object, label::COMPOSITE)) {
            let using = self.used(log, object, by).await.context("cannot get using resource");
            if using.map_err(|e| (event::usage::GET_USING, e))?.is_some() {
                let words = "Waiting for the using resource to be deleted.";
                self.plane.events.normal(&self.name, object, event::usage::WAITING_USING_DELETED, words);
                return Ok(Next::Wait);
            }
        }
        let used = self.used(log, object, &usage.spec.of).await.context("cannot get used resource");
        if let Some(used) = used.map_err(|e| (event::usage::GET_USED, e))? {
            let others = self.protection.usages_of(&used);
            if others.iter().all(|other| other.metadata.uid == meta::uid(object)) {
                self.free(log, &used, usage.spec.replay_deletion == Some(true)).await?;
            }
        }
        metadata::remove_finalizer(object, finalizer::USAGE);
        self.plane.update(log, object).await.context("cannot remove usage finalizer").map_err(failed)?;
        Ok(Next::Wait)
    }

    async fn free(&self, log: &RunLog, used: &Value, replay: bool) -> Step<()> {
        let patch = json!({"metadata": {"labels": {label::IN_USE: null}}});
        let freed = self.plane.cluster.merge_patch(used, &patch, owner::DEFAULT).await;
        let freed = freed
            .context("cannot remove in use label")
            .map_err(|e| (event::usage::REMOVE_IN_USE_LABEL, e))?;
        log.wrote(&freed);
        // Asked once it is free: nobody is refused any longer.
        let tried = self.protection.take_attempt(used);
        let noted = meta::annotation(&freed, annotation::DELETION_ATTEMPT).map(str::to_owned);
        let (Some(policy), Some(gvk)) = (noted.or(tried), meta::gvk(used)) else { return Ok(()) };
        if replay {
            let options = DeleteOptions { propagation: Some(&policy), uid: Some(meta::uid(used)) };
            let deleted =
                self.plane.cluster.delete(&gvk, meta::namespace(used), meta::name(used), options).await;
            deleted.context("cannot replay deletion").map_err(|e| (event::usage::REPLAY_DELETION, e))?;
        }
        Ok(())
    }

    /// Replaces selectors by what they stand for, once and for all.
    async fn resolve(&self, log: &RunLog, object: &mut Value) -> Result<()> {
        let usage = parse(object)?;
        let mut changed = false;
        for (field, used) in [("of", Some(&usage.spec.of)), ("by", usage.spec.by.as_ref())] {
            let Some(used) = used.filter(|u| u.name().is_none()) else { continue };
            let labels = used.resource_selector.as_ref().map(|s| s.match_labels.clone()).unwrap_or_default();
            let namespace = usage::selector_namespace(used, object).to_owned();
            let candidates = self.plane.cluster.list(&kind_of(used)?, &namespace, &labels).await?;
            let found =
                usage::resolve(used, object, &candidates).map_err(|e| Error::Transport(e.to_string()))?;
            object["spec"][field]["resourceRef"] = json!(found);
            changed = true;
        }
        if changed { self.plane.update(log, object).await } else { Ok(()) }
    }

    /// What a usage refers to; `None` when it is gone.
    async fn used(&self, log: &RunLog, usage: &Value, used: &Used) -> Result<Option<Value>> {
        let (namespace, name) = (namespace_of(usage, used), used.name().unwrap_or_default());
        existing(self.plane.read(log, &kind_of(used)?, namespace, name).await)
    }
}

fn namespace_of<'a>(usage: &'a Value, used: &'a Used) -> &'a str {
    let own = used.resource_ref.as_ref().and_then(|r| r.namespace.as_deref());
    own.unwrap_or_else(|| meta::namespace(usage))
}

fn parse(object: &Value) -> Result<Usage> {
    Usage::deserialize(object).map_err(|e| Error::unfit(e.to_string()))
}

fn kind_of(used: &Used) -> Result<GroupVersionKind> {
    let gv = GroupVersion::parse(&used.api_version);
    let gv = gv.ok_or_else(|| Error::unfit(format!("{:?} is no apiVersion", used.api_version)))?;
    Ok(gv.with_kind(&*used.kind))
}
