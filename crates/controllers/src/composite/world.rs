//! The world that functions may read: the API, as one composite resource sees it.
//!
//! Whatever is read is noted twice: in the [`Dependencies`], before the read, so that a change to it wakes the
//! composite resource; and in the [`RunLog`], so that this very version does not.

use crate::catalog::kinds;
use crate::openapi;
use async_trait::async_trait;
use futures_util::future::try_join_all;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use transom_compose::{Kind, Lookup, World, WorldError};
use transom_engine::{Cluster, Dependency, Error, Key, Mirror, RunLog, existing};
use transom_object::{GroupVersion, GroupVersionKind, meta};
use transom_xapi::connection;
use transom_xapi::metadata::TypedReference;

/// Starts to watch what is about to be read.
pub(crate) trait Watching: Send + Sync {
    fn depend(&self, key: &Key, dependency: Dependency);

    /// What a watch shows of a kind that is depended upon, if anything watches it.
    fn mirror(&self, gvk: &GroupVersionKind) -> Option<Arc<Mirror>>;
}

/// How long to wait for a watch that should show what was just written, before the server is asked.
const PATIENCE: Duration = Duration::from_secs(1);
/// Objects that are read at the same time.
const AT_ONCE: usize = 16;

pub(crate) struct Reading<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) log: &'a RunLog,
    pub(crate) key: &'a Key,
    pub(crate) watching: &'a dyn Watching,
    noted: Mutex<Noted>,
    composed: BTreeSet<TypedReference>,
    /// The same by kind, namespace and name.
    composed_names: HashSet<(String, String, String)>,
}

/// What the composite resource turned out to depend on.
#[derive(Default)]
struct Noted {
    /// What was looked up, and what was there.
    looked_up: BTreeMap<Dependency, BTreeSet<TypedReference>>,
    /// What it depends on whatever is looked up.
    otherwise: BTreeSet<Dependency>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        log: &'a RunLog,
        key: &'a Key,
        watching: &'a dyn Watching,
    ) -> Self {
        Self {
            cluster,
            log,
            key,
            watching,
            noted: Mutex::default(),
            composed: BTreeSet::new(),
            composed_names: HashSet::new(),
        }
    }

    /// What is read of these is composed, not required.
    pub(crate) fn composing(mut self, references: BTreeSet<TypedReference>) -> Self {
        let name = |r: &TypedReference| (r.kind.clone(), r.namespace.clone(), r.name.clone());
        self.composed_names = references.iter().map(name).collect();
        self.composed = references;
        self
    }

    /// Everything that was read because a function is given it.
    pub(crate) fn required(&self) -> BTreeSet<TypedReference> {
        let noted = self.lock();
        noted.looked_up.values().flatten().filter(|found| !self.composed.contains(found)).cloned().collect()
    }

    /// The composite resource does not depend on what these lookups found, unless it composes it.
    pub(crate) fn forget(&self, lookups: &BTreeSet<Lookup>) {
        for dependency in lookups.iter().cloned().filter_map(dependency) {
            let composed = match &dependency {
                Dependency::Named { gvk, namespace, name } => self.is_composed(gvk, namespace, name),
                Dependency::Selected { .. } => false,
            };
            if !composed {
                self.lock().looked_up.remove(&dependency);
            }
        }
    }

    fn is_composed(&self, gvk: &GroupVersionKind, namespace: &str, name: &str) -> bool {
        self.composed_names.contains(&(gvk.kind.clone(), namespace.to_owned(), name.to_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that it depends on.
    pub(crate) fn dependencies(&self) -> BTreeSet<Dependency> {
        let noted = self.lock();
        noted.looked_up.keys().chain(&noted.otherwise).cloned().collect()
    }

    /// Depends on what is about to be looked up.
    fn look_up(&self, dependency: &Dependency) {
        let is_new = {
            let mut noted = self.lock();
            let is_new = !noted.looked_up.contains_key(dependency);
            noted.looked_up.entry(dependency.clone()).or_default();
            is_new
        };
        if is_new {
            self.watching.depend(self.key, dependency.clone());
        }
    }

    /// This is what a lookup found.
    fn saw<'o>(&self, dependency: &Dependency, objects: impl IntoIterator<Item = &'o Value>) {
        for object in objects {
            self.log.read(object);
            if let Some(found) = self.lock().looked_up.get_mut(dependency) {
                found.insert(TypedReference::to(object));
            }
        }
    }

    /// The objects that a watch shows to have these labels, each as it is now. Costs nothing for objects that do not
    /// have them. The watch must have shown whatever was written here or read in this run before: a selection that is
    /// older than that would go unnoticed, because nobody is woken by what they know. `None` when it has not.
    async fn select(
        &self,
        gvk: &GroupVersionKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Option<Vec<Value>>, Error> {
        let Some(mirror) = self.watching.mirror(gvk) else { return Ok(None) };
        let least = self.cluster.newest_written(gvk).max(self.log.newest(gvk));
        if !mirror.reaches(least, PATIENCE).await {
            return Ok(None);
        }
        let selected = mirror.select(namespace, labels);
        self.log.listed(gvk, selected.version);
        let mut objects = Vec::with_capacity(selected.keys.len());
        for keys in selected.keys.chunks(AT_ONCE) {
            let reading = keys.iter().map(|key| self.cluster.get(gvk, &key.namespace, &key.name));
            for object in try_join_all(reading).await?.into_iter().flatten() {
                let own = meta::labels(&object);
                if labels.iter().all(|(k, v)| own.get(k) == Some(v)) {
                    objects.push(object);
                }
            }
        }
        Ok(Some(objects))
    }

    /// Notes that the composite resource depends on something.
    pub(crate) fn note(&self, dependency: Dependency) {
        if self.lock().otherwise.insert(dependency.clone()) {
            self.watching.depend(self.key, dependency);
        }
    }
}

/// What a lookup depends on.
fn dependency(lookup: Lookup) -> Option<Dependency> {
    let of = |api_version: &str, kind: &str| gvk(Kind { api_version, kind }).ok();
    Some(match lookup {
        Lookup::Named { api_version, kind, namespace, name } => {
            Dependency::Named { gvk: of(&api_version, &kind)?, namespace, name }
        }
        Lookup::Labelled { api_version, kind, namespace, labels } => {
            Dependency::Selected { gvk: of(&api_version, &kind)?, namespace, labels }
        }
    })
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
        let composed = self.is_composed(&gvk, namespace, name);
        let dependency = Dependency::Named { gvk: gvk.clone(), namespace: namespace_, name: name_ };
        self.look_up(&dependency);
        let read = self.cluster.get(&gvk, namespace, name).await;
        // What was composed went with its kind; a kind that a function asks for is more likely misspelled.
        let object = if composed { existing(read)? } else { read? };
        self.saw(&dependency, &object);
        Ok(object)
    }

    async fn list(
        &self,
        kind: Kind<'_>,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, WorldError> {
        let gvk = gvk(kind)?;
        let within = namespace.map(str::to_owned);
        let dependency = Dependency::Selected { gvk: gvk.clone(), namespace: within, labels: labels.clone() };
        self.look_up(&dependency);
        let objects = match self.select(&gvk, namespace, labels).await? {
            Some(objects) => objects,
            None => {
                let listed = self.cluster.list_at(&gvk, namespace.unwrap_or_default(), labels).await;
                let (objects, version) = listed?;
                self.log.listed(&gvk, version);
                objects
            }
        };
        self.saw(&dependency, &objects);
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
        self.log.read(&secret);
        Ok(Some(connection::details(&secret)))
    }

    async fn is_namespaced(&self, kind: Kind<'_>) -> Result<bool, WorldError> {
        Ok(self.cluster.kind(&gvk(kind)?).await?.namespaced)
    }
}
