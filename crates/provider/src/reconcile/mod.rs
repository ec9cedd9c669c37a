//! One reconcile of one managed resource: reads, calls [`decide`](crate::decide), executes the result, and reports. The order
//! of the steps is that of crossplane-runtime, and is what makes creations safe: see `creation`.

mod attempt;
mod creation;
mod writing;

use self::attempt::{
    CONNECT, Call, DELETE, INITIALIZE, OBSERVE, PUBLISH, RESOLVE, UPDATE, WRITE, from_outside, within,
};
use self::writing::Report;
use crate::decide::{
    Action, CREATION_UNKNOWN, Observed, Opening, Rules, after_observation, before_observation,
};
use crate::external::{External, Observation, Resource, Update};
use crate::kind::ManagedKind;
use crate::late::fill;
use crate::pace::{Limiter, Settings};
use crate::resolve::Resolver;
use crate::targets::Targets;
use crate::waking::{Followed, Waker};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use transom_engine::{
    Cluster, Dependency, Engine, Error, ErrorContext, Following, Key, Next, Queue, Reconciler, Result,
    RunLog, existing,
};
use transom_object::{GroupVersionKind, meta};
use transom_xapi::Condition;
use transom_xapi::constants::{annotation, condition};
use transom_xapi::metadata;

pub(crate) const FINALIZER: &str = "finalizer.managedresource.crossplane.io";
/// How long the requests to the API server may take in addition to those to the external system.
pub(crate) const API_TIMEOUT: Duration = Duration::from_secs(30);

/// What all controllers of a provider share.
pub(crate) struct Shared {
    pub(crate) engine: Arc<Engine>,
    /// The cluster with the rights that the provider has for managed resources.
    pub(crate) identity: Cluster,
    pub(crate) settings: Settings,
    pub(crate) limiter: Limiter,
    /// Of random choices.
    pub(crate) seed: u64,
    pub(crate) targets: Targets,
    pub(crate) manager: &'static str,
}

/// The reconciler of one kind.
pub(crate) struct Managed<E> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) external: E,
    pub(crate) kind: ManagedKind,
    pub(crate) gvk: GroupVersionKind,
    pub(crate) name: Arc<str>,
    pub(crate) following: Arc<Following>,
    pub(crate) queue: Arc<Queue>,
}

impl<E: External> Reconciler for Managed<E> {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        self.shared.limiter.turn().await;
        let engine = &self.shared.engine;
        let read = engine.read(log, &self.gvk, &key.namespace, &key.name).await;
        let Some(object) = existing(read).context("cannot get managed resource")? else {
            self.following.forget(key);
            self.external.forget(&Waker::new(&self.name, key, &self.queue));
            self.shared.targets.forget(&(self.name.clone(), key.clone()));
            return Ok(Next::Gone);
        };
        let rules = self.kind.rules(self.shared.settings.management_policies);
        let mut run = Run {
            managed: self,
            key,
            log,
            object,
            rules,
            report: Report::default(),
            created: Map::new(),
            waits: AtomicBool::default(),
        };
        let limit = self.shared.settings.timeout + API_TIMEOUT;
        match timeout(limit, run.go()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::domain(format!("the reconcile took longer than {} s", limit.as_secs()))),
        }
    }
}

/// One reconcile.
struct Run<'a, E> {
    managed: &'a Managed<E>,
    key: &'a Key,
    log: &'a RunLog,
    /// As it is stored.
    object: Value,
    rules: Rules,
    report: Report,
    /// Annotations that record a creation and are not stored yet.
    created: Map<String, Value>,
    /// Whether a failure is due to what it follows.
    waits: AtomicBool,
}

/// The connection to the external system.
struct Reach<E: External> {
    config: Option<Value>,
    session: E::Session,
    deadline: tokio::time::Instant,
}

impl<E: External> Reach<E> {
    fn config(&self) -> Option<&Value> {
        self.config.as_ref()
    }
}

impl<E: External> Run<'_, E> {
    fn engine(&self) -> &Engine {
        &self.managed.shared.engine
    }

    fn normal(&self, reason: &str, message: &str) {
        self.engine().events.normal(&self.managed.name, &self.object, reason, message);
    }

    fn warning(&self, reason: &str, message: String) {
        self.engine().events.warning(&self.managed.name, &self.object, reason, message);
    }

    async fn go(&mut self) -> Result<Next> {
        let opening = before_observation(&self.object, &self.rules);
        if opening != Opening::Paused {
            self.note_request();
        }
        match opening {
            Opening::Paused => return self.pause().await,
            Opening::InvalidPolicies(why) => {
                self.warning("CannotUseInvalidManagementPolicy", why.clone());
                self.finish([Condition::reconcile_error(why)]).await?;
                return Ok(Next::Wait);
            }
            Opening::Orphan => return self.release().await,
            Opening::Name(name) => {
                meta::set_annotation(&mut self.object, annotation::EXTERNAL_NAME, &name);
                if let Err(e) = self.update().await.context("cannot update managed resource") {
                    return self.fail(&INITIALIZE, e, None).await;
                }
                if before_observation(&self.object, &self.rules) == Opening::Blocked {
                    return self.blocked().await;
                }
            }
            Opening::Blocked => return self.blocked().await,
            Opening::Observe => {}
        }
        if !meta::is_deleting(&self.object)
            && let Some(next) = self.resolve().await?
        {
            return Ok(next);
        }
        Box::pin(self.reconcile_external()).await
    }

    /// A request to reconcile now is recorded with the next write of the status, also after a failure.
    fn note_request(&mut self) {
        let Some(token) = metadata::reconcile_request(&self.object).map(str::to_owned) else { return };
        let handled = self.object.pointer("/status/lastHandledReconcileAt").and_then(Value::as_str);
        if handled != Some(&token) {
            self.normal("ReconcileRequestHandled", "Handling reconcile request");
            self.report.handled_request = Some(token);
        }
    }

    async fn pause(&mut self) -> Result<Next> {
        let mut paused = Condition::reconcile_paused();
        if !metadata::is_paused(&self.object) {
            "Reconciliation (including deletion) is paused: spec.managementPolicies is empty"
                .clone_into(&mut paused.message);
        }
        self.normal(
            "ReconciliationPaused",
            "Reconciliation is paused either through the pause annotation or the management policies",
        );
        self.finish([paused]).await?;
        Ok(Next::Wait)
    }

    async fn blocked(&mut self) -> Result<Next> {
        self.warning("CannotInitializeManagedResource", CREATION_UNKNOWN.to_owned());
        self.finish([Condition::creating(), Condition::reconcile_error(CREATION_UNKNOWN)]).await?;
        Ok(Next::Wait)
    }

    /// Lets the managed resource go.
    async fn release(&mut self) -> Result<Next> {
        let released = match self.resource(None) {
            Ok(resource) => self.managed.external.release(&resource).await,
            // What its provider cannot read, it has protected nothing for.
            Err(_) => Ok(()),
        };
        if let Err(e) = released.context("cannot remove managed resource finalizer") {
            return self.fail_silently(e, Some(Condition::deleting())).await;
        }
        if metadata::remove_finalizer(&mut self.object, FINALIZER) {
            let removed = self.update().await.context("cannot remove managed resource finalizer");
            if let Err(e) = removed {
                return self.fail_silently(e, Some(Condition::deleting())).await;
            }
        }
        Ok(Next::Wait)
    }

    async fn resolve(&mut self) -> Result<Option<Next>> {
        let Managed { shared, kind, following, queue, name, .. } = self.managed;
        let resolver = Resolver {
            engine: &shared.engine,
            targets: &shared.targets,
            following,
            queue,
            waiting: (name.clone(), self.key.clone()),
            log: self.log,
        };
        let outcome = resolver.resolve(&self.object, &kind.references).await;
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(e) => return self.fail(&RESOLVE, e, None).await.map(Some),
        };
        match outcome.write(&shared.engine, &self.object, &kind.references).await {
            Ok(None) => {}
            Ok(Some(written)) => {
                self.log.wrote(&written);
                self.object = written;
            }
            Err(e) => return self.fail(&RESOLVE, e, None).await.map(Some),
        }
        for choice in &outcome.choices {
            self.normal("SelectedReference", choice);
        }
        let Some(waits) = outcome.waits else { return Ok(None) };
        // The watches are in place: what it waits for wakes it.
        let next = self.fail(&RESOLVE, waits, None).await?;
        Ok(Some(if next == Next::Failed { Next::Wait } else { next }))
    }

    /// The part of the reconcile that needs the external resource.
    async fn reconcile_external(&mut self) -> Result<Next> {
        let deadline = tokio::time::Instant::now() + self.managed.shared.settings.timeout;
        let config = match self.config().await {
            Ok(config) => config,
            Err(e) => return self.fail(&CONNECT, e, None).await,
        };
        let managed = self.managed;
        let external = &managed.external;
        let connected = match self.resource(config.as_ref()) {
            Ok(resource) => from_outside(Call::Read, deadline, external.connect(&resource)).await,
            Err(e) => Err(e),
        };
        let session = match connected {
            Ok(session) => session,
            Err(e) => return self.fail(&CONNECT, e, None).await,
        };
        let reach = Reach { config, session, deadline };
        let answer = {
            let resource = self.resource(reach.config())?;
            from_outside(Call::Read, deadline, external.observe(&reach.session, &resource)).await
        };
        let observed = match answer {
            Ok(observed) => observed,
            Err(e) => {
                let next = self.fail(&OBSERVE, e, None).await?;
                // The watches are in place: what it waits for wakes it, if they are allowed.
                let waits = next == Next::Failed && self.waits.load(Ordering::Relaxed);
                return Ok(if waits { self.poll(None) } else { next });
            }
        };
        let seen = Observed { exists: observed.exists, up_to_date: observed.up_to_date };
        let action = after_observation(&self.object, seen, &self.rules, self.engine().clock.now());
        self.report.conditions.clone_from(&observed.conditions);
        self.report.at_provider.clone_from(&observed.at_provider);
        match action {
            Action::Create | Action::Update | Action::Restricted | Action::Keep => {
                self.maintain(&reach, action, observed).await
            }
            _ => self.conclude(&reach, action, observed.again_after).await,
        }
    }

    /// Does what remains to be done about something that is missing, awaited or deleted.
    async fn conclude(&mut self, reach: &Reach<E>, action: Action, again: Option<Duration>) -> Result<Next> {
        match action {
            Action::Missing => {
                let missing = Error::domain("external resource does not exist");
                self.fail(&OBSERVE, missing, None).await?;
                Ok(self.poll(None))
            }
            Action::AwaitExistence => {
                let words = "Waiting for external resource existence to be confirmed";
                self.normal("PendingExternalResource", words);
                Ok(Next::Backoff)
            }
            Action::Delete => {
                let answer = {
                    let resource = self.resource(reach.config())?;
                    let deleting = self.managed.external.delete(&reach.session, &resource);
                    from_outside(Call::Change, reach.deadline, deleting).await
                };
                if let Err(e) = answer {
                    return self.fail(&DELETE, e, Some(Condition::deleting())).await;
                }
                let words = "Successfully requested deletion of external resource";
                self.normal("DeletedExternalResource", words);
                self.finish([Condition::deleting(), Condition::reconcile_success()]).await?;
                Ok(again.map_or(Next::Backoff, Next::After))
            }
            Action::Release => self.release().await,
            _ => Ok(Next::Backoff),
        }
    }

    /// Creates or changes the external resource, if necessary.
    async fn maintain(
        &mut self,
        reach: &Reach<E>,
        action: Action,
        observed: Observation<E::Parameters>,
    ) -> Result<Next> {
        if let Some(next) = self.prepare(reach, &observed).await? {
            return Ok(next);
        }
        let managed = self.managed;
        let external = &managed.external;
        match action {
            Action::Create => {
                if let Some(next) = self.begin_creation().await? {
                    return Ok(next);
                }
                let answer = {
                    let resource = self.resource(reach.config())?;
                    let call = external.create(&reach.session, &resource);
                    from_outside(Call::Change, reach.deadline, call).await
                };
                match answer {
                    Err(e) => self.creation_failed(e).await,
                    Ok(creation) => self.created(creation.connection, creation.external_name).await,
                }
            }
            Action::Update => {
                let answer = {
                    let resource = self.resource(reach.config())?;
                    let call = external.update(&reach.session, &resource);
                    from_outside(Call::Change, reach.deadline, call).await
                };
                match answer {
                    Err(e) => {
                        let failed = up_to_date("False", "UpdateFailed", &observed.difference);
                        self.report.conditions.push(failed);
                        self.fail(&UPDATE, e, None).await
                    }
                    Ok(update) => self.updated(update, observed).await,
                }
            }
            _ => self.carry_out(action, observed).await,
        }
    }

    /// The managed resource as its provider sees it.
    fn resource<'a>(&'a self, config: Option<&'a Value>) -> Result<Resource<'a, E::Parameters>> {
        let parameters = self.object.pointer("/spec/forProvider").cloned().unwrap_or_else(|| json!({}));
        let parameters = E::Parameters::deserialize(parameters);
        let parameters = parameters.map_err(|e| Error::unreadable("cannot read spec.forProvider", e))?;
        let engine = self.engine();
        Ok(Resource {
            parameters,
            object: &self.object,
            config,
            cluster: &engine.cluster,
            identity: &self.managed.shared.identity,
            now: engine.clock.now(),
            layout: self.managed.kind.layout,
            followed: Followed {
                controller: &self.managed.name,
                key: self.key,
                queue: &self.managed.queue,
                following: &self.managed.following,
                waits: &self.waits,
            },
        })
    }

    /// The ProviderConfig, after it was recorded that it is used.
    async fn config(&mut self) -> Result<Option<Value>> {
        let Some(kinds) = &self.managed.kind.configs else { return Ok(None) };
        let reference = kinds.reference(&self.object)?;
        let shared = &self.managed.shared;
        // A namespace that is being deleted takes no new objects.
        if !meta::is_deleting(&self.object) {
            let tracked =
                kinds.track(&shared.engine, self.log, &self.object, &reference, shared.manager).await;
            tracked.context("cannot track ProviderConfig usage")?;
        }
        let kind = &reference.gvk.kind;
        let read = shared.engine.cluster.get(&reference.gvk, &reference.namespace, &reference.name).await;
        let attempted = format!("cannot get {kind}");
        match existing(read).context(&attempted)? {
            Some(config) => Ok(Some(config)),
            None => {
                // Its creation wakes the managed resource.
                let (gvk, namespace, name) = (reference.gvk.clone(), reference.namespace, reference.name);
                let words = format!("{kind} {name:?} not found");
                self.managed.following.add(self.key, Dependency::Named { gvk, namespace, name });
                Err(Error::domain(words)).context(attempted)
            }
        }
    }

    /// What every managed resource gets that is not being deleted: connection details, a finalizer, and unset fields filled.
    async fn prepare(
        &mut self,
        reach: &Reach<E>,
        observed: &Observation<E::Parameters>,
    ) -> Result<Option<Next>> {
        if let Err(e) = self.publish(&observed.connection).await {
            return self.fail(&PUBLISH, e, None).await.map(Some);
        }
        if metadata::add_finalizer(&mut self.object, FINALIZER)
            && let Err(e) = self.update().await.context("cannot add managed resource finalizer")
        {
            return self.fail_silently(e, None).await.map(Some);
        }
        let protected = {
            let resource = self.resource(reach.config())?;
            within(reach.deadline, self.managed.external.protect(&reach.session, &resource)).await
        };
        if let Err(e) = protected.context("cannot add managed resource finalizer") {
            return self.fail_silently(e, None).await.map(Some);
        }
        if let Some(filled) = &observed.late_initialized
            && observed.exists
            && self.rules.policies_of(&self.object).may_late_initialize()
        {
            let filled =
                serde_json::to_value(filled).map_err(|e| Error::unreadable("cannot write parameters", e))?;
            if fill(&mut self.object["spec"]["forProvider"], &filled)
                && let Err(e) = self.update().await
            {
                return self.fail(&WRITE, e, None).await.map(Some);
            }
        }
        Ok(None)
    }

    async fn updated(&mut self, update: Update, observed: Observation<E::Parameters>) -> Result<Next> {
        self.report.changed_fields = update.at_provider;
        self.report.conditions.extend(update.conditions);
        if let Err(e) = self.publish(&update.connection).await {
            return self.fail(&PUBLISH, e, None).await;
        }
        self.normal("UpdatedExternalResource", "Successfully requested update of external resource");
        self.report.conditions.push(up_to_date("False", "UpdateRequested", &observed.difference));
        self.finish([Condition::reconcile_success()]).await?;
        Ok(self.poll(observed.again_after))
    }

    async fn carry_out(&mut self, action: Action, observed: Observation<E::Parameters>) -> Result<Next> {
        let condition = match action {
            // What differs cannot be changed, or may not.
            Action::Keep if !observed.difference.is_empty() => {
                Some(up_to_date("False", "UpdateRestricted", &observed.difference))
            }
            Action::Restricted => Some(up_to_date("False", "UpdateRestricted", &observed.difference)),
            _ if observed.exists => Some(up_to_date("True", "ObserveMatched", "")),
            _ => None,
        };
        self.report.conditions.extend(condition);
        self.finish([Condition::reconcile_success()]).await?;
        Ok(self.poll(observed.again_after))
    }

    fn poll(&self, sooner: Option<Duration>) -> Next {
        let shared = &self.managed.shared;
        let poll = shared.settings.poll_after(&self.object, shared.engine.clock.now(), shared.seed);
        match (poll, sooner.filter(|_| shared.settings.sooner_polls)) {
            (Some(poll), Some(sooner)) => Next::After(poll.min(sooner)),
            (poll, sooner) => poll.or(sooner).map_or(Next::Wait, Next::After),
        }
    }
}

fn up_to_date(status: &str, reason: &str, difference: &str) -> Condition {
    Condition::new(condition::UP_TO_DATE, status, reason).with_message(difference)
}
