//! The world that functions may read: the API, as one composite resource sees it.
//!
//! Whatever is read is noted in the [`RunLog`](transom_engine::RunLog), so that this very version causes no reconcile. That
//! later ones do is what `depends_on` is for, which the state machine calls before each read that is to be watched.

use super::Run;
use crate::catalog::kinds;
use crate::openapi;
use async_trait::async_trait;
use futures_util::future::try_join_all;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use transom_compose::{ForbiddenRead, Lookup, World, WorldError};
use transom_engine::{Dependency, Error};
use transom_object::{GroupVersionKind, meta};
use transom_xapi::{AccountReference, connection};

/// How long to wait for a watch that should report what was just written, before the server is asked.
const WATCH_LAG_TIMEOUT: Duration = Duration::from_secs(1);
/// Objects that are read at the same time.
const MAX_PARALLEL_READS: usize = 16;

/// Reads for one run of a composite resource.
pub(super) struct LiveWorld<'a>(pub(super) &'a Run<'a>);

impl LiveWorld<'_> {
    /// The objects that a watch shows to have these labels, each as it is now. Costs nothing for objects that do not
    /// have them. The watch must have reported whatever was written here or read in this run before: a change between
    /// an older selection and those versions would be taken for known, and cause no reconcile. `None` when it has not.
    async fn select(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Option<Vec<Value>>, Error> {
        let Run { composites, log, account, .. } = self.0;
        // What the watch of the control plane shows is not what a service account may list.
        if account.is_some() {
            return Ok(None);
        }
        let cluster = &composites.plane.cluster;
        let Some(mirror) = composites.following.mirror(kind) else { return Ok(None) };
        let least = cluster.newest_written(kind).max(log.newest(kind));
        if !mirror.reaches(least, WATCH_LAG_TIMEOUT).await {
            return Ok(None);
        }
        let selected = mirror.select(namespace, labels);
        log.listed(kind, selected.version);
        let mut objects = Vec::with_capacity(selected.keys.len());
        for keys in selected.keys.chunks(MAX_PARALLEL_READS) {
            let reading = keys.iter().map(|key| cluster.get(kind, &key.namespace, &key.name));
            for object in try_join_all(reading).await?.into_iter().flatten() {
                let own = meta::labels(&object);
                if labels.iter().all(|(k, v)| own.get(k) == Some(v)) {
                    objects.push(object);
                }
            }
        }
        Ok(Some(objects))
    }
}

/// What a lookup depends on.
pub(super) fn dependency(lookup: &Lookup) -> Dependency {
    match lookup.clone() {
        Lookup::Named { kind, namespace, name } => Dependency::Named { gvk: kind, namespace, name },
        Lookup::Labelled { kind, namespace, labels } => Dependency::Selected { gvk: kind, namespace, labels },
    }
}

/// The error of a read that is not about objects.
fn failed(error: Error) -> WorldError {
    match error {
        e if e.is_unknown_kind() => WorldError::UnknownKind(e.into()),
        e => WorldError::Failed(e.into()),
    }
}

/// The error of a read of objects of a kind, in a namespace or, if that is empty, in all.
fn cannot_read(kind: &GroupVersionKind, namespace: &str) -> impl Fn(Error) -> WorldError {
    move |error| match error {
        e if e.is_forbidden() => {
            let (kind, namespace) = (kind.clone(), namespace.to_owned());
            WorldError::Forbidden(Box::new(ForbiddenRead { kind, namespace, error: e.into() }))
        }
        e => failed(e),
    }
}

#[async_trait]
impl World for LiveWorld<'_> {
    async fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, WorldError> {
        let Run { log, composed, .. } = self.0;
        let read = composed.get(kind, namespace, name).await;
        let object = read.map_err(cannot_read(kind, namespace))?;
        object.iter().for_each(|object| log.read(object));
        Ok(object)
    }

    async fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, WorldError> {
        let Run { log, composed, .. } = self.0;
        let cannot_read = cannot_read(kind, namespace.unwrap_or_default());
        let objects = match self.select(kind, namespace, labels).await.map_err(&cannot_read)? {
            Some(objects) => objects,
            None => {
                let listed = composed.list_at(kind, namespace.unwrap_or_default(), labels).await;
                let (objects, version) = listed.map_err(&cannot_read)?;
                log.listed(kind, version);
                objects
            }
        };
        objects.iter().for_each(|object| log.read(object));
        Ok(objects)
    }

    async fn schema(&self, kind: &GroupVersionKind) -> Result<Option<Value>, WorldError> {
        openapi::schema(&self.0.composites.plane.cluster, kind).await.map_err(failed)
    }

    async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, Vec<u8>>>, WorldError> {
        let secret = self.get(&kinds::secret(), namespace, name).await?;
        Ok(secret.as_ref().map(connection::details))
    }

    async fn is_namespaced(&self, kind: &GroupVersionKind) -> Result<bool, WorldError> {
        let kind = self.0.composites.plane.cluster.kind(kind).await.map_err(failed)?;
        Ok(kind.namespaced)
    }

    async fn owner(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, WorldError> {
        let read = self.0.composites.plane.cluster.get(kind, namespace, name).await;
        read.map_err(cannot_read(kind, namespace))
    }

    async fn account_exists(&self, account: &AccountReference) -> Result<bool, WorldError> {
        let Run { composites, log, .. } = self.0;
        let kind = kinds::service_account();
        let read = composites.plane.cluster.get(&kind, &account.namespace, &account.name).await;
        let object = read.map_err(cannot_read(&kind, &account.namespace))?;
        object.iter().for_each(|object| log.read(object));
        Ok(object.is_some())
    }

    fn depends_on(&self, lookup: &Lookup) {
        self.0.composites.following.add(self.0.key, dependency(lookup));
    }

    fn relies_on(&self, object: &Value) {
        self.0.log.read(object);
    }

    fn follow_function(&self, function: &str) {
        self.0.follow_function(function);
    }
}
