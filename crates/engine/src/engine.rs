//! What controllers of all kinds use: the API, watches, time, events and metrics.

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::controller::ControllerBuilder;
use crate::error::{BoxError, Error, ErrorContext, Result, found};
use crate::events::Recorder;
use crate::following::SWEEP_INTERVAL;
use crate::metrics::Metrics;
use crate::noop::same;
use crate::ownership::Ownership;
use crate::pace::Pace;
use crate::run_log::RunLog;
use crate::watches::Watches;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;
use transom_object::{GroupVersionKind, meta};

/// The engine that controllers run on.
pub struct Engine {
    /// The API server.
    pub cluster: Cluster,
    /// The shared watches.
    pub watches: Watches,
    /// The time.
    pub clock: Clock,
    /// Where events are recorded.
    pub events: Recorder,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Which keys this process reconciles.
    pub ownership: Ownership,
    pub(crate) sweep_interval: Duration,
    manager: &'static str,
    event_writer: AbortHandle,
}

impl Engine {
    /// An engine for controllers that write with this field manager.
    pub fn start(cluster: Cluster, clock: Clock, metrics: Arc<Metrics>, manager: &'static str) -> Self {
        // Every process reports what it does.
        let (events, event_writer) = Recorder::start(cluster.writing_always(), clock, manager);
        let watches = Watches::new(cluster.clone());
        let (sweep_interval, ownership) = (SWEEP_INTERVAL, Ownership::whole());
        Self { cluster, watches, clock, events, metrics, ownership, sweep_interval, manager, event_writer }
    }

    /// Ends watches that no key depends on any longer in this interval, instead of every minute.
    pub fn sweeping_every(self, sweep_interval: Duration) -> Self {
        Self { sweep_interval, ..self }
    }

    /// Reconciles and writes only what this process holds.
    pub fn sharing(self, ownership: Ownership) -> Self {
        let cluster = self.cluster.writing_by(&ownership);
        Self { cluster, ownership, ..self }
    }

    /// Ends all watches and the writing of events. Controllers stop when they are dropped.
    pub fn stop(&self) {
        self.watches.stop();
        self.event_writer.abort();
    }

    /// Prepares a controller: it runs once it is given its reconciler.
    pub fn controller(&self, name: impl Into<String>, pace: Pace) -> ControllerBuilder<'_> {
        ControllerBuilder::new(self, name.into(), pace)
    }

    /// Reads an object for a run to decide on.
    pub async fn read(
        &self,
        log: &RunLog,
        gvk: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>> {
        let object = self.cluster.get(gvk, namespace, name).await?;
        object.iter().for_each(|o| log.read(o));
        Ok(object)
    }

    /// Replaces an object. `object` becomes what the server stored.
    pub async fn update(&self, log: &RunLog, object: &mut Value) -> Result<()> {
        *object = self.cluster.update(object, self.manager).await?;
        log.wrote(object);
        Ok(())
    }

    /// Replaces the status of an object. Does nothing if the object is gone.
    pub async fn update_status(&self, log: &RunLog, object: &mut Value) -> Result<()> {
        if let Some(updated) = found(self.cluster.update_status(object, self.manager).await)? {
            *object = updated;
            log.wrote(object);
        }
        Ok(())
    }

    /// Replaces the status of an object unless it equals `before`, the status that the server has. Returns whether it
    /// differed.
    pub async fn write_status(&self, log: &RunLog, object: &mut Value, before: &Value) -> Result<bool> {
        if object.get("status").is_none_or(|status| same(status, before)) {
            return Ok(false);
        }
        self.update_status(log, object).await?;
        Ok(true)
    }

    /// Publishes an object that another one owns, such as a connection secret: reads what is stored, decides how to write
    /// `wanted`, and writes it. Returns whether it was written. Errors say what was `attempted`, and that of the decision
    /// lasts until the objects change. Whether the run decides on the version that is stored is up to `decide`.
    pub async fn publish<E: Into<BoxError>>(
        &self,
        log: &RunLog,
        attempted: &str,
        wanted: &Value,
        decide: impl FnOnce(Option<&Value>) -> Result<Publication, E>,
    ) -> Result<bool> {
        let gvk = meta::gvk(wanted).unwrap_or_default();
        let live = self.cluster.get(&gvk, meta::namespace(wanted), meta::name(wanted)).await;
        let live = live.context(attempted)?;
        let written = match decide(live.as_ref()).map_err(Error::permanent).context(attempted)? {
            Publication::Create => self.cluster.create(wanted, self.manager).await,
            Publication::Patch(patch) => self.cluster.merge_patch(wanted, &patch, self.manager).await,
            Publication::Replace => {
                let mut replacing = wanted.clone();
                let version = live.as_ref().map(meta::resource_version).unwrap_or_default();
                meta::set_resource_version(&mut replacing, version);
                self.cluster.update(&replacing, self.manager).await
            }
            Publication::Unchanged => return Ok(false),
        };
        log.wrote(&written.context(attempted)?);
        Ok(true)
    }
}

/// How an object is published, given the one that is stored.
#[derive(Clone, Debug, PartialEq)]
pub enum Publication {
    /// It does not exist.
    Create,
    /// A merge patch adds what it lacks.
    Patch(Value),
    /// It becomes exactly what is wanted, unless it changed since it was read.
    Replace,
    /// It is what is wanted.
    Unchanged,
}
