//! The records of rollouts on the control plane, and which command works on one.
//!
//! Every write of a record is a compare-and-swap, so of two commands one fails. A command holds the record while it works
//! on it and renews that again and again; another command waits whether the record is renewed before it takes it over.
//! No clocks are compared: what counts is how long the record did not change for the one that looks at it.

use crate::record::{LABEL, Record};
use crate::writing::{FIELD_MANAGER, WRITE_TIMEOUT, explain, write};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;
use tokio::time::Instant;
use transom_console::Failure;
use transom_console::control_plane::within;
use transom_engine::{Cluster, DeleteOptions};
use transom_object::{GroupVersionKind, meta};

/// How often the holder renews its hold.
pub(crate) const RENEW_INTERVAL: Duration = Duration::from_secs(4);
/// How long a record that is held must not change before another command takes it over.
const HOLD_TIMEOUT: Duration = Duration::from_secs(20);
const _: () = assert!(RENEW_INTERVAL.as_secs() + WRITE_TIMEOUT.as_secs() < HOLD_TIMEOUT.as_secs());
/// How often a command that waits looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How often a write is tried again after another command wrote the record.
const MAX_ATTEMPTS: usize = 5;

/// Where records are.
#[derive(Clone)]
pub(crate) struct Storage {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
}

/// A record as it is stored.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) record: Record,
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
    pub(crate) async fn find(&self, composition: &str) -> Result<Option<Stored>, Failure> {
        let subject = self.subject(composition);
        let name = Record::name(composition);
        let read = within(&subject, self.cluster.get(&kind(), &self.namespace, &name)).await?;
        read.map_err(|e| explain(&subject, &e))?.as_ref().map(Stored::read).transpose()
    }

    /// The same; an error if there is none.
    pub(crate) async fn get(&self, composition: &str) -> Result<Stored, Failure> {
        self.find(composition).await?.ok_or_else(|| {
            let what =
                format!("there is no rollout of Composition {composition:?} in namespace {}", self.namespace);
            Failure::new(what).remedy("`transom rollout list` shows all, `transom rollout start` starts one")
        })
    }

    /// All records.
    pub(crate) async fn list(&self) -> Result<Vec<Record>, Failure> {
        let labels = BTreeMap::from([(LABEL.to_owned(), "true".to_owned())]);
        let subject = format!("ConfigMaps in namespace {}", self.namespace);
        let listed = within(&subject, self.cluster.list(&kind(), &self.namespace, &labels)).await?;
        let listed = listed.map_err(|e| explain(&subject, &e))?;
        listed.iter().map(|object| Stored::read(object).map(|stored| stored.record)).collect()
    }

    /// Creates a record, in place of the one of an earlier rollout that has ended.
    pub(crate) async fn begin(&self, record: &Record, earlier: Option<&Stored>) -> Result<Stored, Failure> {
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
            // Also if it was deleted.
            Err(e) if e.is_conflict() || e.is_not_found() => Ok(None),
            Err(e) => Err(explain(&subject, &e)),
        }
    }

    /// Changes a record, again if another client changed it in the meantime.
    pub(crate) async fn change(
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
    pub(crate) async fn delete(&self, stored: &Stored) -> Result<(), Failure> {
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
pub(crate) struct Held {
    storage: Storage,
    stored: Stored,
    holder: String,
    renewed: Instant,
}

impl Held {
    /// Creates a record that is held.
    pub(crate) async fn begin(
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
    pub(crate) async fn take(
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

    pub(crate) fn record(&self) -> &Record {
        &self.stored.record
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.storage.cluster
    }

    /// Changes the record. An error if another command took it over.
    pub(crate) async fn change(&mut self, change: impl Fn(&mut Record)) -> Result<(), Failure> {
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
    pub(crate) async fn renew(&mut self) -> Result<(), Failure> {
        match self.renewed.elapsed() < RENEW_INTERVAL {
            true => Ok(()),
            false => self.change(|_| {}).await,
        }
    }

    /// Lets other commands work on the record.
    pub(crate) async fn release(mut self) -> Result<Record, Failure> {
        self.change(|record| record.holder = None).await?;
        Ok(self.stored.record)
    }
}

/// Whether the holder of a record works, as far as another command can see.
#[derive(Debug, PartialEq, Eq)]
enum Holder {
    /// It released its hold, or the hold has expired.
    Gone,
    Working,
    /// It has not renewed its hold yet, and still may.
    Unknown,
}

/// What is known of the holder of a record that was looked at first some time ago.
fn holder_of(first: &Record, now: &Record, since: Duration) -> Holder {
    match (&now.holder, now.renewals == first.renewals && now.holder == first.holder) {
        (None, _) => Holder::Gone,
        (Some(_), false) => Holder::Working,
        (Some(_), true) if since >= HOLD_TIMEOUT => Holder::Gone,
        (Some(_), true) => Holder::Unknown,
    }
}

/// Waits until a record is no longer held, or its holder does not renew its hold.
async fn abandoned(storage: &Storage, first: Stored) -> Result<Stored, Failure> {
    let started = Instant::now();
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let now = storage.get(&first.record.composition).await?;
        match holder_of(&first.record, &now.record, started.elapsed()) {
            Holder::Gone => return Ok(now),
            Holder::Working => return Err(taken(&first.record.composition)),
            Holder::Unknown => {}
        }
    }
}

/// A name for this command that no other has.
fn holder() -> String {
    let random = RandomState::new().hash_one(0);
    format!("{}-{random:016x}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;
    use transom_apiserver::Identity;
    use transom_store::Store;
    use transom_testkit::embedded;

    async fn storage() -> Storage {
        let store = Store::in_memory(transom_store::Options::default());
        let server = embedded::server_with(&store, transom_apiserver::Options::default()).await;
        let client = embedded::kube_client(&server, Identity::admin("user"));
        Storage { cluster: Cluster::new(client), namespace: "crossplane-system".to_owned() }
    }

    async fn begin(storage: &Storage, earlier: Option<&Stored>) -> Result<Held, Failure> {
        Held::begin(storage.clone(), record(Vec::new()), earlier).await
    }

    async fn take(storage: &Storage, take_over: bool) -> Result<Held, Failure> {
        Held::take(storage.clone(), "apps", take_over, |_| {}).await
    }

    fn is_taken<T>(result: Result<T, Failure>) -> bool {
        result.is_err_and(|failure| failure.to_string().contains("another command works on the rollout"))
    }

    #[tokio::test]
    async fn of_two_commands_one_begins() {
        let storage = storage().await;
        let (one, two) = tokio::join!(begin(&storage, None), begin(&storage, None));
        assert!(one.is_ok() != two.is_ok());
        assert!(is_taken(begin(&storage, None).await));
        // In place of one that is over, as well.
        let earlier = storage.get("apps").await.unwrap();
        let (one, two) = tokio::join!(begin(&storage, Some(&earlier)), begin(&storage, Some(&earlier)));
        assert!(one.is_ok() != two.is_ok());
    }

    #[tokio::test]
    async fn a_command_that_lost_its_record_writes_nothing() {
        let storage = storage().await;
        let mut first = begin(&storage, None).await.unwrap();
        let second = take(&storage, true).await.unwrap();
        assert!(is_taken(first.change(|record| record.wave = 7).await));
        assert_eq!(second.record().wave, 0);
        // A record without a holder is free.
        second.release().await.unwrap();
        assert!(take(&storage, false).await.is_ok());
    }

    #[test]
    fn a_record_is_taken_from_a_command_that_is_dead_and_from_no_other() {
        let held = |holder: Option<&str>, renewals: u64| Record {
            holder: holder.map(str::to_owned),
            renewals,
            ..record(Vec::new())
        };
        let first = held(Some("one"), 3);
        let soon = HOLD_TIMEOUT - Duration::from_millis(1);
        for (now, since, expected) in [
            (held(Some("one"), 3), soon, Holder::Unknown),
            (held(Some("one"), 3), HOLD_TIMEOUT, Holder::Gone),
            (held(Some("one"), 4), soon, Holder::Working),
            (held(Some("one"), 4), HOLD_TIMEOUT * 2, Holder::Working),
            (held(Some("two"), 3), soon, Holder::Working),
            (held(None, 4), Duration::ZERO, Holder::Gone),
        ] {
            assert_eq!(holder_of(&first, &now, since), expected, "{now:?}");
        }
    }

    #[tokio::test]
    async fn a_holder_sees_what_others_ask_for() {
        let storage = storage().await;
        let mut held = begin(&storage, None).await.unwrap();
        storage.change("apps", |record| record.paused = true).await.unwrap();
        held.change(|record| record.wave = 1).await.unwrap();
        assert_eq!((held.record().paused, held.record().wave), (true, 1));
        let stored = storage.get("apps").await.unwrap();
        assert_eq!(stored.record, *held.record());
        assert_eq!(storage.list().await.unwrap().len(), 1);
        storage.delete(&stored).await.unwrap();
        let gone = held.change(|_| {}).await.unwrap_err().to_string();
        assert!(gone.contains("there is no rollout"), "{gone}");
    }
}
