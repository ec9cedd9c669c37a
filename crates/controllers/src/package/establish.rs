//! Writing the objects of a revision. All or nothing: the server checks every write before the first is made.

use super::Shared;
use crate::catalog::kinds;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::Deserialize;
use serde_json::Value;
use transom_engine::{Error, ErrorContext, Result, RunLog, existing};
use transom_object::{GroupVersion, GroupVersionKind, meta};
use transom_packages::establish::{self, Owners};
use transom_xapi::constants::{kind, owner};
use transom_xapi::package::ObjectReference;
use transom_xapi::{ManagedResourceDefinition, managed};

/// How many objects are written at a time.
const MAX_PARALLEL_WRITES: usize = 10;

/// An object of a revision, and what is to be done about it.
pub(super) enum Write {
    Create(Value),
    Update(Value),
    /// It is as it should be.
    Keep(Value),
}

impl Write {
    /// Whether anything is written.
    pub(super) fn is_change(&self) -> bool {
        !matches!(self, Self::Keep(_))
    }
}

impl Shared {
    /// Decides what puts the objects of an active revision under its control. If one of them cannot be written, it fails.
    pub(super) async fn plan_writes(
        &self,
        log: &RunLog,
        objects: &[Value],
        owners: &Owners,
    ) -> Result<Vec<Write>> {
        let mut checks = Vec::new();
        for object in objects {
            checks.push(self.check(log, object, owners));
        }
        stream::iter(checks).buffered(MAX_PARALLEL_WRITES).try_collect().await
    }

    /// Writes the objects, and returns them as they are then. One that changed since it was read is not written.
    pub(super) async fn write_planned(&self, log: &RunLog, planned: Vec<Write>) -> Result<Vec<Value>> {
        let mut writes = Vec::new();
        for write in planned {
            writes.push(self.make(log, write));
        }
        stream::iter(writes).buffered(MAX_PARALLEL_WRITES).try_collect().await
    }

    /// Decides about one object, and has the server check the write.
    async fn check(&self, log: &RunLog, object: &Value, owners: &Owners) -> Result<Write> {
        let cluster = &self.plane.cluster;
        let attempted =
            || format!("cannot establish control of {} {:?}", meta::kind(object), meta::name(object));
        let gvk =
            meta::gvk(object).ok_or_else(|| Error::permanent("an object has no apiVersion and kind"))?;
        let current = self.plane.read(log, &gvk, "", meta::name(object)).await.context(attempted())?;
        let Some(current) = current else {
            let created = establish::created(object, owners);
            let checked = cluster.try_create(&created, owner::DEFAULT).await.context(attempted())?;
            self.check_definition(&checked).await.context(attempted())?;
            return Ok(Write::Create(created));
        };
        let updated =
            establish::updated(&current, object, owners).map_err(Error::permanent).context(attempted())?;
        let Some(updated) = updated else { return Ok(Write::Keep(current)) };
        let checked = cluster.try_update(&updated, owner::DEFAULT).await.context(attempted())?;
        self.check_definition(&checked).await.context(attempted())?;
        Ok(Write::Update(updated))
    }

    /// Has the server check the CRD that a definition of managed resources becomes, now or when it is activated: a package
    /// with a CRD that the server refuses is not installed.
    async fn check_definition(&self, object: &Value) -> Result<()> {
        if meta::kind(object) != kind::MRD {
            return Ok(());
        }
        let cluster = &self.plane.cluster;
        let definition = ManagedResourceDefinition::deserialize(object).map_err(Error::permanent)?;
        let mut wanted = managed::crd(&definition).map_err(Error::permanent)?;
        let checked = match cluster.get(&kinds::crd(), "", meta::name(object)).await? {
            Some(mut live) => {
                managed::adoption(&live, &definition).map_err(Error::permanent)?;
                live["spec"]["versions"] = wanted["spec"]["versions"].take();
                cluster.try_update(&live, owner::MANAGED).await
            }
            None => {
                // The definition has no uid yet.
                meta::set(&mut wanted, "ownerReferences", Value::Array(Vec::new()));
                cluster.try_create(&wanted, owner::MANAGED).await
            }
        };
        checked.map(drop)
    }

    async fn make(&self, log: &RunLog, write: Write) -> Result<Value> {
        match write {
            Write::Keep(object) => Ok(object),
            Write::Create(object) => {
                let created = self.plane.cluster.create(&object, owner::DEFAULT).await;
                created.inspect(|created| log.wrote(created)).context(described("create", &object))
            }
            Write::Update(mut object) => {
                let words = described("update", &object);
                self.plane.update(log, &mut object).await.context(words)?;
                Ok(object)
            }
        }
    }

    /// Gives up the control of a revision over its objects; it stays an owner, as its package does.
    pub(super) async fn release(
        &self,
        log: &RunLog,
        references: &[ObjectReference],
        owners: &Owners,
    ) -> Result<()> {
        for reference in references {
            let words = || format!("cannot release {} {:?}", reference.kind, reference.name);
            let Some(gvk) = gvk_of(reference) else { continue };
            let read = existing(self.plane.read(log, &gvk, "", &reference.name).await).context(words())?;
            let Some(current) = read else { continue };
            if let Some(mut released) = establish::released(&current, owners) {
                self.plane.update(log, &mut released).await.context(words())?;
            }
        }
        Ok(())
    }
}

/// The kind that a reference names.
pub(super) fn gvk_of(reference: &ObjectReference) -> Option<GroupVersionKind> {
    GroupVersion::parse(&reference.api_version).map(|version| version.with_kind(&reference.kind))
}

fn described(verb: &str, object: &Value) -> String {
    format!("cannot {verb} {} {:?}", meta::kind(object), meta::name(object))
}
