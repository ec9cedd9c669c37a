//! The world that functions may read: the API, as one composite resource sees it.
//!
//! Whatever is read is noted twice: in the [`Dependencies`], before the read, so that a change to it wakes the
//! composite resource; and in the [`Pass`], so that this very version does not.

use crate::catalog::kinds;
use crate::cluster::Cluster;
use crate::engine::{Dependency, Key, Pass};
use crate::error::Error;
use crate::openapi;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use transom_compose::{Kind, World, WorldError};
use transom_object::{GroupVersion, GroupVersionKind};
use transom_xapi::connection;
use transom_xapi::metadata::TypedReference;

/// Starts to watch what is about to be read.
pub(crate) trait Watching: Send + Sync {
    fn depend(&self, key: &Key, dependency: Dependency);
}

pub(crate) struct Reading<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) pass: &'a Pass,
    pub(crate) key: &'a Key,
    pub(crate) watching: &'a dyn Watching,
    read: Mutex<BTreeSet<Dependency>>,
    required: Mutex<BTreeSet<TypedReference>>,
    composed: BTreeSet<TypedReference>,
    /// Whether functions may read what is not composed.
    may_require: bool,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        pass: &'a Pass,
        key: &'a Key,
        watching: &'a dyn Watching,
    ) -> Self {
        let (read, required) = (Mutex::default(), Mutex::default());
        Self { cluster, pass, key, watching, read, required, composed: BTreeSet::new(), may_require: true }
    }

    /// What is read of these is composed, not required.
    pub(crate) fn composing(mut self, references: BTreeSet<TypedReference>) -> Self {
        self.composed = references;
        self
    }

    /// Functions may read nothing but what is composed.
    pub(crate) fn without_requirements(mut self, refuse: bool) -> Self {
        self.may_require = !refuse;
        self
    }

    fn check(&self, allowed: bool) -> Result<(), Error> {
        let refused =
            "functions may not read resources that are not composed: extra resources are turned off";
        if allowed || self.may_require { Ok(()) } else { Err(Error::unfit(refused)) }
    }

    /// Everything that was read because a function requires it.
    pub(crate) fn required(&self) -> BTreeSet<TypedReference> {
        self.required.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn saw(&self, object: &Value) {
        self.pass.read(object);
        let reference = TypedReference::to(object);
        if !self.composed.contains(&reference) {
            self.required.lock().unwrap_or_else(PoisonError::into_inner).insert(reference);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Dependency>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that was read.
    pub(crate) fn dependencies(&self) -> BTreeSet<Dependency> {
        self.lock().clone()
    }

    /// Notes that the composite resource depends on something.
    pub(crate) fn note(&self, dependency: Dependency) {
        if self.lock().insert(dependency.clone()) {
            self.watching.depend(self.key, dependency);
        }
    }
}

pub(crate) fn gvk(kind: Kind<'_>) -> Result<GroupVersionKind, Error> {
    let gv = GroupVersion::parse(kind.api_version).filter(|gv| !gv.version.is_empty());
    let gv = gv.ok_or_else(|| Error::unfit(format!("{:?} is no apiVersion", kind.api_version)))?;
    Ok(gv.with_kind(kind.kind))
}

#[async_trait]
impl World for Reading<'_> {
    async fn get(&self, kind: Kind<'_>, namespace: &str, name: &str) -> Result<Option<Value>, WorldError> {
        let gvk = gvk(kind)?;
        let (namespace_, name_) = (namespace.to_owned(), name.to_owned());
        let named = |r: &TypedReference| r.kind == gvk.kind && r.name == name && r.namespace == namespace;
        self.check(self.composed.iter().any(named))?;
        self.note(Dependency::Named { gvk: gvk.clone(), namespace: namespace_, name: name_ });
        let object = match self.cluster.get(&gvk, namespace, name).await {
            // Nothing exists of a kind that is not served.
            Err(e) if e.is_unknown_kind() => None,
            found => found?,
        };
        object.iter().for_each(|o| self.saw(o));
        Ok(object)
    }

    async fn list(
        &self,
        kind: Kind<'_>,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, WorldError> {
        let gvk = gvk(kind)?;
        self.check(false)?;
        let within = namespace.map(str::to_owned);
        self.note(Dependency::Selected { gvk: gvk.clone(), namespace: within, labels: labels.clone() });
        let objects = self.cluster.list(&gvk, namespace.unwrap_or_default(), labels).await?;
        objects.iter().for_each(|o| self.saw(o));
        Ok(objects)
    }

    async fn schema(&self, kind: Kind<'_>) -> Result<Option<Value>, WorldError> {
        Ok(openapi::schema(self.cluster, &gvk(kind)?).await?)
    }

    async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, Vec<u8>>>, WorldError> {
        let secret = kinds::secret();
        let (namespace_, name_) = (namespace.to_owned(), name.to_owned());
        self.note(Dependency::Named { gvk: secret.clone(), namespace: namespace_, name: name_ });
        let Some(secret) = self.cluster.get(&secret, namespace, name).await? else { return Ok(None) };
        self.pass.read(&secret);
        Ok(Some(connection::details(&secret)))
    }

    async fn is_namespaced(&self, kind: Kind<'_>) -> Result<bool, WorldError> {
        Ok(self.cluster.kind(&gvk(kind)?).await?.namespaced)
    }
}
