//! Events: what users see in `kubectl describe`.
//!
//! Recording never waits and never fails a reconcile. An event's name follows from what it says about which object, so
//! that saying the same again (after a restart, too) counts up one Event instead of making another; and what is said
//! all the time is written once a minute.

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::error::{ReportedError, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use transom_object::shorten::shorten;
use transom_object::{EventType, GroupVersionKind, meta, time};

/// Records that may wait to be written; more are dropped, as events are best effort.
const BACKLOG: usize = 4096;
/// How often a repeated event is written.
const REPEAT: Duration = Duration::from_secs(60);
/// Repetitions that are remembered.
const REMEMBERED: usize = 4096;
/// The most bytes of a message, as in Kubernetes; of a longer one the middle is left out.
const LONGEST_MESSAGE: usize = 1024;

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
pub struct Recorder(mpsc::Sender<Record>);

impl Recorder {
    /// A recorder, and the task that writes its events with this field manager.
    pub fn start(cluster: Cluster, clock: Clock, manager: &'static str) -> (Self, AbortHandle) {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        let writer = Writer { cluster, clock, manager };
        let task = tokio::spawn(async move { writer.write(receiver).await }).abort_handle();
        (Self(sender), task)
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

    pub fn normal(&self, controller: &str, about: &Value, reason: &str, message: impl Into<String>) {
        self.record(controller, about, EventType::Normal, reason, &message.into());
    }

    pub fn warning(&self, controller: &str, about: &Value, reason: &str, message: impl Into<String>) {
        self.record(controller, about, EventType::Warning, reason, &message.into());
    }

    pub fn record(&self, controller: &str, about: &Value, kind: EventType, reason: &str, message: &str) {
        let message = shorten(message, LONGEST_MESSAGE).into_owned();
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
        if self.0.try_send(record).is_err() {
            tracing::debug!("too many events: one was dropped");
        }
    }
}

fn event() -> GroupVersionKind {
    GroupVersionKind::new("", "v1", "Event")
}

struct Writer {
    cluster: Cluster,
    clock: Clock,
    manager: &'static str,
}

impl Writer {
    async fn write(&self, mut records: mpsc::Receiver<Record>) {
        let mut written: HashMap<String, (Instant, u64)> = HashMap::new();
        while let Some(record) = records.recv().await {
            let now = Instant::now();
            if written.len() >= REMEMBERED {
                written.retain(|_, (at, _)| now.duration_since(*at) < REPEAT);
            }
            let repeated = match written.get_mut(&record.name) {
                Some((at, unwritten)) if now.duration_since(*at) < REPEAT => {
                    *unwritten += 1;
                    continue;
                }
                Some((_, unwritten)) => 1 + *unwritten,
                None => 1,
            };
            written.insert(record.name.clone(), (now, 0));
            if let Err(e) = self.put(&record, repeated).await {
                tracing::debug!(error = %e.chain(), "an event could not be written");
            }
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
