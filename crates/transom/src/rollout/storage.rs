//! The records of rollouts on the control plane, and which command works on one.
//!
//! Every write of a record is a compare-and-swap, so of two commands one fails. A command holds the record while it works
//! on it and renews that again and again; another command waits whether the record is renewed before it takes it over.
//! No clocks are compared: what counts is how long the record did not change for the one that looks at it.

use super::record::{LABEL, Record};
use super::writing::{FIELD_MANAGER, explain, write};
use crate::failure::Failure;
use crate::xpkg::control_plane::within;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;
use tokio::time::Instant;
use transom_engine::{Cluster, DeleteOptions};
use transom_object::{GroupVersionKind, meta};

/// How often the holder renews its hold.
pub(super) const RENEW_INTERVAL: Duration = Duration::from_secs(4);
/// How long a record that is held must not change before another command takes it over.
const HOLD_TIMEOUT: Duration = Duration::from_secs(15);
/// How often a command that waits looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How often a write is tried again after another command wrote the record.
const MAX_ATTEMPTS: usize = 5;

/// Where records are.
#[derive(Clone)]
pub(super) struct Storage {
    pub(super) cluster: Cluster,
    pub(super) namespace: String,
}

/// A record as it is stored.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) record: Record,
    /// What names the ConfigMap, and its version.
    identity: Value,
}

impl Stored {
    fn read(object: &Value) -> Result<Self, Failure> {
        let record = Record::read(object).map_err(|e| {
            Failure::new(e).remedy("if no rollout is under way, delete the ConfigMap with kubectl")
        })?;
        let identity = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": meta::name(object), "namespace": meta::namespace(object),
                "uid": meta::uid(object), "resourceVersion": meta::resource_version(object),
            },
        });
        Ok(Self { record, identity })
    }
}

fn kind() -> GroupVersionKind {
    GroupVersionKind::new("", "v1", "ConfigMap")
}

impl Storage {
    fn subject(&self, composition: &str) -> String {
        format!("ConfigMap {}/{}", self.namespace, Record::name(composition))
    }

    /// The record of the last rollout of a Composition.
    pub(super) async fn find(&self, composition: &str) -> Result<Option<Stored>, Failure> {
        let subject = self.subject(composition);
        let name = Record::name(composition);
        let read = within(&subject, self.cluster.get(&kind(), &self.namespace, &name)).await?;
        read.map_err(|e| explain(&subject, &e))?.as_ref().map(Stored::read).transpose()
    }

    /// The same; an error if there is none.
    pub(super) async fn get(&self, composition: &str) -> Result<Stored, Failure> {
        self.find(composition).await?.ok_or_else(|| {
            let what =
                format!("there is no rollout of Composition {composition:?} in namespace {}", self.namespace);
            Failure::new(what).remedy("`transom rollout list` shows all, `transom rollout start` starts one")
        })
    }

    /// All records.
    pub(super) async fn list(&self) -> Result<Vec<Record>, Failure> {
        let labels = BTreeMap::from([(LABEL.to_owned(), "true".to_owned())]);
        let subject = format!("ConfigMaps in namespace {}", self.namespace);
        let listed = within(&subject, self.cluster.list(&kind(), &self.namespace, &labels)).await?;
        let listed = listed.map_err(|e| explain(&subject, &e))?;
        listed.iter().map(|object| Stored::read(object).map(|stored| stored.record)).collect()
    }

    /// Creates a record, in place of the one of an earlier rollout that has ended.
    pub(super) async fn begin(&self, record: &Record, earlier: Option<&Stored>) -> Result<Stored, Failure> {
        let subject = self.subject(&record.composition);
        let mut object = record.object(&self.namespace).map_err(|e| {
            Failure::new(e).remedy("roll out a part of them at a time, with -l or --namespace")
        })?;
        let mut answer = match earlier {
            Some(earlier) => {
                meta::set_resource_version(&mut object, meta::resource_version(&earlier.identity));
                write(&subject, self.cluster.update(&object, FIELD_MANAGER)).await?
            }
            None => write(&subject, self.cluster.create(&object, FIELD_MANAGER)).await?,
        };
        if answer.as_ref().is_err_and(transom_engine::Error::is_not_found) {
            // An embedded plane does not have the namespace at first.
            self.create_namespace().await?;
            answer = write(&subject, self.cluster.create(&object, FIELD_MANAGER)).await?;
        }
        match answer {
            Ok(object) => Stored::read(&object),
            Err(e) if e.is_already_exists() || e.is_conflict() => Err(taken(&record.composition)),
            Err(e) => Err(explain(&subject, &e)),
        }
    }

    async fn create_namespace(&self) -> Result<(), Failure> {
        let subject = format!("Namespace {}", self.namespace);
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        match write(&subject, self.cluster.create(&namespace, FIELD_MANAGER)).await? {
            Err(e) if !e.is_already_exists() => Err(explain(&subject, &e)),
            _ => Ok(()),
        }
    }

    /// Writes the state of a record, unless another command wrote it since: then nothing.
    async fn save(&self, stored: &Stored) -> Result<Option<Stored>, Failure> {
        let subject = self.subject(&stored.record.composition);
        let metadata = &stored.identity["metadata"];
        let patch = json!({
            "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "data": {"state": stored.record.state().to_string()},
        });
        let request = self.cluster.merge_patch(&stored.identity, &patch, FIELD_MANAGER);
        match write(&subject, request).await? {
            Ok(object) => Stored::read(&object).map(Some),
            Err(e) if e.is_conflict() => Ok(None),
            Err(e) => Err(explain(&subject, &e)),
        }
    }

    /// Changes a record, whoever else changes it.
    pub(super) async fn change(
        &self,
        composition: &str,
        change: impl Fn(&mut Record),
    ) -> Result<Record, Failure> {
        for _ in 0..MAX_ATTEMPTS {
            let mut stored = self.get(composition).await?;
            change(&mut stored.record);
            if let Some(saved) = self.save(&stored).await? {
                return Ok(saved.record);
            }
        }
        Err(Failure::new(format!("{} changes all the time", self.subject(composition)))
            .remedy("try it again"))
    }

    /// Deletes a record. What was moved stays where it is.
    pub(super) async fn delete(&self, stored: &Stored) -> Result<(), Failure> {
        let subject = self.subject(&stored.record.composition);
        let name = Record::name(&stored.record.composition);
        let options = DeleteOptions { uid: Some(meta::uid(&stored.identity)), ..DeleteOptions::default() };
        let deleted = write(&subject, self.cluster.delete(&kind(), &self.namespace, &name, options)).await?;
        deleted.map_err(|e| explain(&subject, &e))
    }
}

fn taken(composition: &str) -> Failure {
    Failure::new(format!("another command works on the rollout of Composition {composition:?}"))
        .remedy("`transom rollout status` shows how far it is")
}

/// A record that this command holds.
pub(super) struct Held {
    storage: Storage,
    stored: Stored,
    holder: String,
    renewed: Instant,
}

impl Held {
    /// Creates a record that is held.
    pub(super) async fn begin(
        storage: Storage,
        mut record: Record,
        earlier: Option<&Stored>,
    ) -> Result<Self, Failure> {
        let holder = holder();
        record.holder = Some(holder.clone());
        let stored = storage.begin(&record, earlier).await?;
        Ok(Self { storage, stored, holder, renewed: Instant::now() })
    }

    /// Takes the record of a Composition. If another command holds it, waits whether that still works, unless it is known
    /// not to.
    pub(super) async fn take(
        storage: Storage,
        composition: &str,
        take_over: bool,
        mut waiting: impl FnMut(&str),
    ) -> Result<Self, Failure> {
        let mut stored = storage.get(composition).await?;
        if let Some(other) = stored.record.holder.clone().filter(|_| !take_over) {
            waiting(&other);
            stored = abandoned(&storage, stored).await?;
        }
        let holder = holder();
        stored.record.holder = Some(holder.clone());
        stored.record.renewals += 1;
        let saved = storage.save(&stored).await?;
        let stored = saved.ok_or_else(|| taken(composition))?;
        Ok(Self { storage, stored, holder, renewed: Instant::now() })
    }

    pub(super) fn record(&self) -> &Record {
        &self.stored.record
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.storage.cluster
    }

    /// Changes the record. An error if another command took it over.
    pub(super) async fn change(&mut self, change: impl Fn(&mut Record)) -> Result<(), Failure> {
        for _ in 0..MAX_ATTEMPTS {
            let mut next = self.stored.clone();
            change(&mut next.record);
            next.record.renewals += 1;
            let sent = Instant::now();
            if let Some(saved) = self.storage.save(&next).await? {
                (self.stored, self.renewed) = (saved, sent);
                return Ok(());
            }
            self.stored = self.storage.get(&self.stored.record.composition).await?;
            if self.stored.record.holder.as_deref() != Some(&self.holder) {
                return Err(taken(&self.stored.record.composition));
            }
        }
        Err(taken(&self.stored.record.composition))
    }

    /// Renews the hold if that is due.
    pub(super) async fn renew(&mut self) -> Result<(), Failure> {
        match self.renewed.elapsed() < RENEW_INTERVAL {
            true => Ok(()),
            false => self.change(|_| {}).await,
        }
    }

    /// Lets other commands work on the record.
    pub(super) async fn release(mut self) -> Result<Record, Failure> {
        self.change(|record| record.holder = None).await?;
        Ok(self.stored.record)
    }
}

/// Waits until a record is no longer held, or its holder does not renew its hold.
async fn abandoned(storage: &Storage, mut stored: Stored) -> Result<Stored, Failure> {
    let composition = stored.record.composition.clone();
    let renewals = stored.record.renewals;
    let started = Instant::now();
    while started.elapsed() < HOLD_TIMEOUT {
        tokio::time::sleep(LOOK_INTERVAL).await;
        stored = storage.get(&composition).await?;
        match &stored.record.holder {
            None => break,
            Some(_) if stored.record.renewals != renewals => return Err(taken(&composition)),
            Some(_) => {}
        }
    }
    Ok(stored)
}

/// A name for this command that no other has.
fn holder() -> String {
    let random = RandomState::new().hash_one(0);
    format!("{}-{random:016x}", std::process::id())
}
