//! Events: what users see in `kubectl describe`.
//!
//! Recording never waits and never fails a run. The name of an Event is a hash of its object, type, reason and message,
//! so that a repetition (also after a restart) increases the count of one Event instead of creating another. A repeated
//! event is written at most once a minute.

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::error::{ReportedError, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use transom_object::shorten::shorten;
use transom_object::{EventType, GroupVersionKind, meta, time};

/// How many events may wait to be written; more are dropped, as events are best effort.
const MAX_WAITING_EVENTS: usize = 4096;
/// The shortest time between two writes of one Event.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60);
/// How many Events are remembered to recognise repetitions.
const MAX_REMEMBERED_EVENTS: usize = 4096;
/// The most bytes of a message, as in Kubernetes. The middle of a longer message is left out.
const MAX_MESSAGE_BYTES: usize = 1024;

struct Record {
    regarding: Value,
    namespace: String,
    name: String,
    kind: EventType,
    reason: String,
    message: String,
    controller: String,
}

/// Records events about objects. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    records: mpsc::Sender<Record>,
    /// How many records are not written yet.
    pending: Arc<AtomicUsize>,
}

impl Recorder {
    /// A recorder, and the task that writes its events with this field manager.
    pub fn start(cluster: Cluster, clock: Clock, manager: &'static str) -> (Self, AbortHandle) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_EVENTS);
        let pending: Arc<AtomicUsize> = Arc::default();
        let writer = Writer { cluster, clock, manager, pending: pending.clone() };
        let task = tokio::spawn(async move { writer.write(receiver).await }).abort_handle();
        (Self { records: sender, pending }, task)
    }

    /// Records that an error occurred, before the error is returned. A conflict is not recorded: the run is repeated.
    pub fn report<T>(&self, controller: &str, about: &Value, result: Result<T, ReportedError>) -> Result<T> {
        result.map_err(|ReportedError { reason, error }| {
            if !error.is_conflict() {
                self.warning(controller, about, reason, error.chain().to_string());
            }
            error
        })
    }

    /// Records information.
    pub fn normal(&self, controller: &str, about: &Value, reason: &str, message: impl Into<String>) {
        self.record(controller, about, EventType::Normal, reason, &message.into());
    }

    /// Records a problem.
    pub fn warning(&self, controller: &str, about: &Value, reason: &str, message: impl Into<String>) {
        self.record(controller, about, EventType::Warning, reason, &message.into());
    }

    /// Records an event about an object. `controller` is the component that reports it.
    pub fn record(&self, controller: &str, about: &Value, kind: EventType, reason: &str, message: &str) {
        let message = shorten(message, MAX_MESSAGE_BYTES).into_owned();
        let mut regarding = json!({
            "apiVersion": meta::api_version(about), "kind": meta::kind(about), "name": meta::name(about),
            "uid": meta::uid(about), "resourceVersion": meta::resource_version(about),
        });
        let namespace = meta::namespace(about);
        if !namespace.is_empty() {
            regarding["namespace"] = namespace.into();
        }
        let mut hash = Sha256::new();
        for part in [meta::uid(about), meta::name(about), kind.as_str(), reason, &message] {
            hash.update(part);
            hash.update([0]);
        }
        let digest: String = hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect();
        let record = Record {
            name: format!("{}.{digest}", meta::name(about)),
            namespace: if namespace.is_empty() { "default".to_owned() } else { namespace.to_owned() },
            regarding,
            kind,
            reason: reason.to_owned(),
            message,
            controller: controller.to_owned(),
        };
        self.pending.fetch_add(1, Ordering::Relaxed);
        if self.records.try_send(record).is_err() {
            self.pending.fetch_sub(1, Ordering::Relaxed);
            tracing::debug!("too many events: one was dropped");
        }
    }

    /// Whether everything that was recorded is written.
    pub fn is_idle(&self) -> bool {
        self.pending.load(Ordering::Relaxed) == 0
    }
}

/// When each Event was last written, and how often it was recorded since.
#[derive(Default)]
struct Repetitions(HashMap<String, (Instant, u64)>);

impl Repetitions {
    /// How often an Event was recorded since it was last written, this time included. None if it is not written again
    /// yet.
    fn count(&mut self, event: &str) -> Option<u64> {
        let now = Instant::now();
        if self.0.len() >= MAX_REMEMBERED_EVENTS {
            self.0.retain(|_, (at, _)| now.duration_since(*at) < REPEAT_INTERVAL);
        }
        let count = match self.0.get_mut(event) {
            Some((at, unwritten)) if now.duration_since(*at) < REPEAT_INTERVAL => {
                *unwritten += 1;
                return None;
            }
            Some((_, unwritten)) => 1 + *unwritten,
            None => 1,
        };
        self.0.insert(event.to_owned(), (now, 0));
        Some(count)
    }
}

fn event() -> GroupVersionKind {
    GroupVersionKind::new("", "v1", "Event")
}

/// Writes what was recorded.
struct Writer {
    cluster: Cluster,
    clock: Clock,
    manager: &'static str,
    pending: Arc<AtomicUsize>,
}

impl Writer {
    async fn write(&self, mut records: mpsc::Receiver<Record>) {
        let mut repetitions = Repetitions::default();
        while let Some(record) = records.recv().await {
            if let Some(count) = repetitions.count(&record.name)
                && let Err(e) = self.put(&record, count).await
            {
                tracing::debug!(error = %e.chain(), "an event could not be written");
            }
            self.pending.fetch_sub(1, Ordering::Relaxed);
        }
    }

    async fn put(&self, record: &Record, count: u64) -> Result<()> {
        let now = &time::format(self.clock.now());
        let object = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": record.name, "namespace": record.namespace,
                "annotations": {"controller": record.controller},
            },
            "involvedObject": record.regarding,
            "type": record.kind.as_str(),
            "reason": record.reason,
            "message": record.message,
            "source": {"component": record.controller},
            "reportingComponent": record.controller,
            "reportingInstance": "",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": count,
        });
        match self.cluster.create(&object, self.manager).await {
            Err(e) if e.is_already_exists() => {
                let live = self.cluster.get(&event(), &record.namespace, &record.name).await?;
                let before = live.as_ref().and_then(|e| e.get("count")?.as_u64()).unwrap_or_default();
                let patch = json!({"count": before + count, "lastTimestamp": now});
                self.cluster.merge_patch(&object, &patch, self.manager).await.map(drop)
            }
            outcome => outcome.map(drop),
        }
    }
}
