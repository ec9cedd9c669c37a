//! Definitions (XRDs): each defines a kind of composite resource and may offer a claim for it.
//!
//! Two controllers reconcile every definition, as in Crossplane: *defined* derives the CRD of the composite resource and
//! runs its controller, *offered* does the same for the claim. They share one reconciler; [`side::Side`] holds all
//! differences. A definition is deleted in this order: instances, controller, CRD, finalizer.

mod refusal;
mod side;

use crate::catalog::kinds;
use crate::conversion;
use crate::plane::Plane;
use refusal::Refusal;
use serde::Deserialize;
use serde_json::{Value, json};
use side::{Live, Side};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use transom_engine::{
    Change, Controller, DeleteOptions, Depth, Error, ErrorContext, Key, Mirror, Next, Observer, Pace, Queue,
    Reconciler, ReportedError, Result, RunLog, Subscription,
};
use transom_object::meta;
use transom_xapi::conditions::{self, Condition};
use transom_xapi::constants::owner;
use transom_xapi::definition::{Definition, is_established};
use transom_xapi::derive;
use transom_xapi::metadata::{self as notes, must_be_controllable_by};

/// Both controllers of definitions.
pub(crate) struct DefinitionControllers {
    controllers: Vec<Controller>,
    _crds: Subscription,
    conversions_moved: AbortHandle,
}

impl Drop for DefinitionControllers {
    fn drop(&mut self) {
        self.conversions_moved.abort();
    }
}

impl DefinitionControllers {
    pub(crate) fn start(plane: &Arc<Plane>) -> Self {
        let invalidating = invalidate_groups(plane);
        let mut followers = Vec::new();
        let mut start = |side: Side| {
            let mut controller = plane.controller(side.controller(), Pace::default());
            let queue = controller.queue().clone();
            let definitions = controller.watch_own(&kinds::definition(), Depth::Header);
            followers.push((queue.clone(), definitions));
            let crds = controller.watch(&kinds::crd(), CRD_CONTROLLERS, wake_definition(queue.clone()));
            let (live, leaving, checked) = Default::default();
            controller.start(Definitions { plane: plane.clone(), side, queue, crds, live, leaving, checked })
        };
        let mut controllers: Vec<Controller> = Side::BOTH.into_iter().map(&mut start).collect();
        controllers.push(conversion::migration::start(plane, CRD_CONTROLLERS));
        let conversions_moved = follow_conversions(plane, followers);
        Self { controllers, _crds: invalidating, conversions_moved }
    }

    pub(crate) fn queues(&self) -> impl Iterator<Item = Arc<Queue>> {
        self.controllers.iter().map(|controller| controller.queue().clone())
    }
}

/// The CRDs of all definitions that are converted by rules name what converts: another one wakes the definitions.
fn follow_conversions(plane: &Plane, followers: Vec<(Arc<Queue>, Arc<Mirror>)>) -> AbortHandle {
    let mut changes = plane.options.conversion.changes();
    let following = async move {
        while changes.changed().await.is_ok() {
            for (queue, definitions) in &followers {
                definitions.all().iter().for_each(|seen| queue.wake(&seen.key));
            }
        }
    };
    tokio::spawn(following).abort_handle()
}

/// A CRD invalidates what is cached about its group.
fn invalidate_groups(plane: &Arc<Plane>) -> Subscription {
    let (cluster, watches) = (plane.cluster.clone(), plane.watches.clone());
    let observer = move |change: &Change<'_>| {
        let Some((_, group)) = change.object().and_then(|crd| crd.key.name.split_once('.')) else { return };
        cluster.forget_group(group);
        // In a task, because this is called under the lock of a watch.
        let (watches, group) = (watches.clone(), group.to_owned());
        tokio::spawn(async move { watches.definitions_changed(&group) });
    };
    plane.watches.subscribe(&kinds::crd(), CRD_CONTROLLERS, Arc::new(observer))
}

/// A CRD wakes the definition that controls it.
fn wake_definition(queue: Arc<Queue>) -> Arc<dyn Observer> {
    Arc::new(move |change: &Change<'_>| {
        if let Some(definition) = change.object().and_then(|crd| crd.object.as_str()) {
            change.wake(&queue, &Key::new("", definition));
        }
    })
}

/// How long a reconcile waits for the first list of CRDs.
const CRDS_LISTED_WITHIN: Duration = Duration::from_secs(10);

/// What is kept of CRDs, wherever they are watched: the name of the definition that controls them.
pub(crate) const CRD_CONTROLLERS: Depth = Depth::Part("definition", controlling_definition);

/// The name of the definition that controls a CRD.
fn controlling_definition(crd: &Value) -> Value {
    let controller = meta::controller_of(crd).filter(|c| c.kind == kinds::definition().kind);
    controller.map_or(Value::Null, |c| c.name.into())
}

/// The mistakes of a definition that can be found without the server.
pub(crate) fn problems(xrd: &Value) -> Vec<String> {
    let definition = match Definition::deserialize(xrd) {
        Ok(definition) => definition,
        Err(error) => return vec![format!("spec: {error}")],
    };
    if let Some(refusal) = Refusal::of_definition(&definition) {
        return vec![refusal.message];
    }
    let sides = Side::BOTH.into_iter().filter(|side| side.concerns(&definition));
    sides
        .filter_map(|side| side.derive(&definition).err())
        .map(|e| Refusal::of_derivation(&e).message)
        .collect()
}

/// A CRD of a definition, to be written for a trial.
pub(crate) struct DerivedCrd {
    pub(crate) object: Value,
    side: Side,
}

impl DerivedCrd {
    /// Why the server finds the CRD invalid, in terms of the definition. Other refusals may pass, or have another cause.
    pub(crate) fn problem(&self, error: &Error) -> Option<String> {
        let refusal = Refusal::of_write(self.side, error).filter(|_| error.is_invalid())?;
        Some(refusal.message)
    }
}

/// The CRDs of a definition that has no [`problems`].
pub(crate) fn crds(xrd: &Value) -> Vec<DerivedCrd> {
    let Ok(definition) = Definition::deserialize(xrd) else { return Vec::new() };
    let sides = Side::BOTH.into_iter().filter(|side| side.concerns(&definition));
    sides.filter_map(|side| Some(DerivedCrd { object: side.derive(&definition).ok()?, side })).collect()
}

fn status_of(xrd: &Value) -> Value {
    xrd.get("status").cloned().unwrap_or_default()
}

/// Reconciles one side of definitions.
struct Definitions {
    plane: Arc<Plane>,
    side: Side,
    queue: Arc<Queue>,
    /// The CRDs, by what controls them.
    crds: Arc<Mirror>,
    /// The running controllers, by definition.
    live: Mutex<HashMap<Key, Live>>,
    /// The watches of instances of definitions that are being deleted.
    leaving: Mutex<HashMap<Key, Subscription>>,
    /// What is wrong with the conversion rules of definitions, by generation: it takes a while to find out.
    checked: Mutex<HashMap<Key, (i64, Vec<String>)>>,
}

impl Reconciler for Definitions {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &kinds::definition(), "", &key.name).await;
        let Some(mut xrd) = read.context("cannot get CompositeResourceDefinition")? else {
            self.stop(key);
            return Ok(Next::Gone);
        };
        let definition = Definition::deserialize(&xrd).map_err(Error::permanent);
        let definition = self.report(&xrd, definition.with_event_reason(self.side.render_reason()))?;
        if !self.side.concerns(&definition) {
            return Ok(Next::Wait);
        }
        // The deletion of a CRD that is read here is reported only if the first list shows the CRD.
        if !self.crds.filled(CRDS_LISTED_WITHIN).await {
            return Err(Error::domain("cannot list CustomResourceDefinitions"));
        }
        if meta::is_deleting(&xrd) {
            return self.terminate(key, log, &mut xrd, &definition).await;
        }
        if let Some(refusal) = Refusal::of_definition(&definition) {
            return self.refuse(log, &mut xrd, self.side.render_reason(), "", refusal).await;
        }
        if let Some(refusal) = self.wrong_rules(key, &definition) {
            return self.refuse(log, &mut xrd, self.side.render_reason(), "", refusal).await;
        }
        match self.side.derive(&definition) {
            Ok(mut derived) if definition.conversion_rules().is_some() => {
                let Some(conversion) = self.plane.options.conversion.conversion(&key.name) else {
                    let refusal = Refusal::without_webhook();
                    return self.refuse(log, &mut xrd, self.side.establish_reason(), "", refusal).await;
                };
                derived["spec"]["conversion"] = conversion;
                self.establish(key, log, &mut xrd, definition, derived).await
            }
            Ok(derived) => self.establish(key, log, &mut xrd, definition, derived).await,
            Err(error) => {
                let refusal = Refusal::of_derivation(&error);
                self.refuse(log, &mut xrd, self.side.render_reason(), "", refusal).await
            }
        }
    }
}

impl Definitions {
    fn live(&self) -> MutexGuard<'_, HashMap<Key, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leaving(&self) -> MutexGuard<'_, HashMap<Key, Subscription>> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is wrong with the rules that convert versions.
    fn wrong_rules(&self, key: &Key, definition: &Definition) -> Option<Refusal> {
        definition.conversion_rules()?;
        let generation = definition.metadata.generation;
        let known = self.checked().get(key).filter(|(of, _)| *of == generation).cloned();
        // A check takes a while, and other definitions do not wait for it.
        let (_, problems) = known.unwrap_or_else(|| {
            let found = (generation, conversion::problems(definition));
            self.checked().insert(key.clone(), found.clone());
            found
        });
        (!problems.is_empty()).then(|| Refusal::of_rules(&problems))
    }

    fn checked(&self) -> MutexGuard<'_, HashMap<Key, (i64, Vec<String>)>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self, key: &Key) {
        let stopped = self.live().remove(key);
        drop(stopped);
        let unwatched = self.leaving().remove(key);
        drop(unwatched);
    }

    fn normal(&self, xrd: &Value, reason: &str, words: impl Into<String>) {
        self.plane.events.normal(self.side.controller(), xrd, reason, words);
    }

    /// Records an error on the definition before it is returned.
    fn report<T>(&self, xrd: &Value, result: Result<T, ReportedError>) -> Result<T> {
        self.plane.events.report(self.side.controller(), xrd, result)
    }

    /// Reports in a condition and an event why the kind is not served as defined, and fails. A kind that is served
    /// already stays as it is. The event begins with what was attempted.
    async fn refuse(
        &self,
        log: &RunLog,
        xrd: &mut Value,
        event: &str,
        attempt: &str,
        Refusal { reason, message }: Refusal,
    ) -> Result<Next> {
        self.mark(log, xrd, self.side.refused(reason, &message)).await?;
        let words = if attempt.is_empty() { message } else { format!("{attempt}: {message}") };
        self.plane.events.warning(self.side.controller(), xrd, event, words.clone());
        Err(Error::permanent(words))
    }

    /// Sets a condition of the definition, unless it is set already.
    async fn mark(&self, log: &RunLog, xrd: &mut Value, condition: Condition) -> Result<()> {
        let before = status_of(xrd);
        conditions::mark_observed(xrd, [condition], self.plane.clock.now());
        self.write_status(log, xrd, &before).await
    }

    async fn establish(
        &self,
        key: &Key,
        log: &RunLog,
        xrd: &mut Value,
        definition: Definition,
        derived: Value,
    ) -> Result<Next> {
        let side = self.side;
        if notes::add_finalizer(xrd, side.finalizer()) {
            let updated = self.plane.update(log, xrd).await.context(side.cannot("add", "finalizer"));
            self.report(xrd, updated.with_event_reason(side.establish_reason()))?;
        }
        let applied = self.apply_crd(log, xrd, derived).await;
        if let Some(refusal) = applied.as_ref().err().and_then(|e| Refusal::of_write(side, e)) {
            return self.refuse(log, xrd, side.establish_reason(), &side.cannot_apply(), refusal).await;
        }
        let applied = applied.context(side.cannot_apply()).with_event_reason(side.establish_reason());
        let (crd, changed) = self.report(xrd, applied)?;
        if changed {
            let words = format!("Applied {} CustomResourceDefinition: {}", side.what(), meta::name(&crd));
            self.normal(xrd, side.establish_reason(), words);
        }
        if !is_established(&crd) {
            if let Some(refusal) = Refusal::of_names(side, &crd) {
                return self.refuse(log, xrd, side.establish_reason(), "", refusal).await;
            }
            let words = format!("waiting for {} CustomResourceDefinition to be established", side.what());
            self.normal(xrd, side.establish_reason(), words);
            return Ok(Next::Backoff);
        }
        self.keep_running(key, xrd, definition);
        self.mark_served(log, xrd).await?;
        Ok(Next::Wait)
    }

    /// Starts the controller; restarts it if the definition changed since it was started.
    fn keep_running(&self, key: &Key, xrd: &Value, definition: Definition) {
        let stale = self.live().get(key).is_some_and(|live| live.is_stale(&definition));
        if stale {
            if let Some((reason, words)) = self.side.restart_event() {
                self.normal(xrd, reason, words);
            }
            self.stop(key);
        }
        let mut live = self.live();
        if !live.contains_key(key) {
            live.insert(key.clone(), self.side.start(&self.plane, definition));
        }
    }

    /// Marks the definition as served, and names the type that is reconciled.
    async fn mark_served(&self, log: &RunLog, xrd: &mut Value) -> Result<()> {
        let definition = Definition::deserialize(&*xrd).map_err(Error::permanent)?;
        let before = status_of(xrd);
        conditions::mark_observed(xrd, [self.side.watching()], self.plane.clock.now());
        if let Some((field, gvk)) = self.side.reconciled_type(&definition) {
            xrd["status"]["controllers"][field] = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind});
        }
        self.write_status(log, xrd, &before).await
    }

    async fn write_status(&self, log: &RunLog, xrd: &mut Value, before: &Value) -> Result<()> {
        let written = self.plane.write_status(log, xrd, before).await;
        written.map(drop).context("cannot update status of CompositeResourceDefinition")
    }

    /// Writes the CRD unless it is up to date. Returns whether it was written.
    async fn apply_crd(&self, log: &RunLog, xrd: &Value, mut derived: Value) -> Result<(Value, bool)> {
        let live = self.plane.read(log, &kinds::crd(), "", meta::name(&derived)).await?;
        let written = match live {
            None => self.plane.cluster.create(&derived, owner::DEFAULT).await?,
            Some(live) => {
                must_be_controllable_by(&live, meta::uid(xrd))
                    .map_err(|_| refusal::belongs_to_another(&live))?;
                if !derive::needs_update(&live, &derived) {
                    return Ok((live, false));
                }
                meta::set_resource_version(&mut derived, meta::resource_version(&live));
                self.plane.cluster.update(&derived, owner::DEFAULT).await?
            }
        };
        log.wrote(&written);
        self.plane.cluster.forget_group(written["spec"]["group"].as_str().unwrap_or_default());
        Ok((written, true))
    }

    async fn terminate(
        &self,
        key: &Key,
        log: &RunLog,
        xrd: &mut Value,
        definition: &Definition,
    ) -> Result<Next> {
        let side = self.side;
        if !notes::has_finalizer(xrd, side.finalizer()) {
            self.stop(key);
            return Ok(Next::Wait);
        }
        self.mark(log, xrd, side.terminating()).await?;
        let name = side.crd_name(definition);
        let read = self.plane.read(log, &kinds::crd(), "", &name).await;
        let read = read.context(side.cannot("get", "CustomResourceDefinition"));
        let crd = self.report(xrd, read.with_event_reason(side.terminate_reason()))?;
        let ours = crd.filter(|crd| meta::controller_of(crd).is_some_and(|c| c.uid == meta::uid(xrd)));
        let Some(crd) = ours else {
            // Deleted, or controlled by another object: nothing is left to do.
            self.stop(key);
            notes::remove_finalizer(xrd, side.finalizer());
            let updated = self.plane.update(log, xrd).await.context(side.cannot("remove", "finalizer"));
            self.report(xrd, updated.with_event_reason(side.terminate_reason()))?;
            return Ok(Next::Wait);
        };
        self.watch_instances(key, definition).await;
        let left = self.delete_instances(log, definition).await;
        let left = left.context(side.cannot("delete", "instances"));
        let left = self.report(xrd, left.with_event_reason(side.terminate_reason()))?;
        if left > 0 {
            // Only their controller removes the finalizers of instances, and after a restart it does not run yet.
            let running = self.live().contains_key(key);
            if !running {
                let started = self.side.start(&self.plane, definition.clone());
                self.live().insert(key.clone(), started);
            }
            let words = format!("waiting for {} to be deleted", side.instances());
            self.normal(xrd, side.terminate_reason(), words);
            return Ok(Next::Wait);
        }
        // The controller stops before the kind that it watches is deleted.
        self.stop(key);
        if !meta::is_deleting(&crd) {
            let deleted = self.plane.cluster.delete(&kinds::crd(), "", &name, DeleteOptions::default()).await;
            log.changed();
            let deleted = deleted.context(side.cannot("delete", "CustomResourceDefinition"));
            self.report(xrd, deleted.with_event_reason(side.terminate_reason()))?;
            let words = format!("Deleted {} CustomResourceDefinition: {name}", side.what());
            self.normal(xrd, side.terminate_reason(), words);
        }
        Ok(Next::Wait)
    }

    /// Makes the creation and deletion of instances wake their definition.
    async fn watch_instances(&self, key: &Key, definition: &Definition) {
        let Some(gvk) = self.side.instance_type(definition) else { return };
        let observer = {
            let (queue, key) = (self.queue.clone(), key.clone());
            move |change: &Change<'_>| {
                if change.before.is_none() || change.after.is_none() {
                    change.wake(&queue, &key);
                }
            }
        };
        let mirror = {
            let mut leaving = self.leaving();
            let watched = leaving.entry(key.clone());
            let subscribe = || self.plane.watches.subscribe(&gvk, Depth::Header, Arc::new(observer));
            watched.or_insert_with(subscribe).mirror().clone()
        };
        // A deletion before the first list would be missed. If the kind is not served, no instance is left.
        let _ = mirror.ready().await;
    }

    /// Deletes every instance, in all namespaces. Returns how many still exist.
    async fn delete_instances(&self, log: &RunLog, definition: &Definition) -> Result<usize> {
        let Some(gvk) = self.side.instance_type(definition) else { return Ok(0) };
        let instances = match self.plane.cluster.list(&gvk, "", &BTreeMap::new()).await {
            Err(e) if e.is_unknown_kind() || e.is_not_found() => return Ok(0),
            listed => listed?,
        };
        for instance in instances.iter().filter(|i| !meta::is_deleting(i)) {
            log.changed();
            let (namespace, name) = (meta::namespace(instance), meta::name(instance));
            self.plane.cluster.delete(&gvk, namespace, name, DeleteOptions::default()).await?;
        }
        Ok(instances.len())
    }
}
