//! What a run read, and so depends on.
//!
//! [`Recorder`] stands between the engine and the world of the caller. It notes every lookup and what was found, from
//! which [`Reads`] derives what to watch from now on, and what the status lists as watched.

use crate::lookup::Lookup;
use crate::world::{World, WorldError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use transom_function::async_trait;
use transom_object::{GroupVersionKind, meta};
use transom_xapi::composite::Composite;
use transom_xapi::constants;
use transom_xapi::metadata::TypedReference;

/// What a composite resource depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    /// What was looked up, and what was there.
    looked_up: BTreeMap<Lookup, BTreeSet<TypedReference>>,
    /// What it depends on, whatever is looked up.
    otherwise: BTreeSet<Lookup>,
    /// The FunctionRevisions that steps chose.
    revisions: BTreeSet<TypedReference>,
    /// The names of all FunctionRevisions that were called.
    called: BTreeSet<String>,
    /// What it composes: an object of these is composed, not required.
    composed: BTreeSet<TypedReference>,
    /// The same by kind, namespace and name.
    composed_names: HashSet<(String, String, String)>,
}

impl Reads {
    /// Of a composite resource that refers to what it composes.
    pub(crate) fn of(xr: &Composite) -> Self {
        let mut composed = BTreeSet::new();
        for mut reference in xr.resource_refs() {
            if !meta::namespace(&xr.object).is_empty() {
                meta::namespace(&xr.object).clone_into(&mut reference.namespace);
            }
            composed.insert(reference);
        }
        let name = |r: &TypedReference| (r.kind.clone(), r.namespace.clone(), r.name.clone());
        let composed_names = composed.iter().map(name).collect();
        Self { composed, composed_names, ..Self::default() }
    }

    /// Everything that was read because a function is given it, and the revisions that steps chose.
    pub(crate) fn required(&self) -> BTreeSet<TypedReference> {
        let looked_up = self.looked_up.values().flatten().filter(|found| !self.composed.contains(found));
        looked_up.chain(&self.revisions).cloned().collect()
    }

    /// Everything to depend on.
    pub(crate) fn all(&self) -> BTreeSet<Lookup> {
        self.looked_up.keys().chain(&self.otherwise).cloned().collect()
    }

    /// The composite resource does not depend on what these lookups found, unless it composes it.
    pub(crate) fn forget(&mut self, lookups: &BTreeSet<Lookup>) {
        for lookup in lookups {
            let composed = match lookup {
                Lookup::Named { kind, namespace, name } => self.is_composed(kind, namespace, name),
                Lookup::Labelled { .. } => false,
            };
            if !composed {
                self.looked_up.remove(lookup);
            }
        }
    }

    /// The pipeline is about to run again.
    pub(crate) fn forget_revisions(&mut self) {
        self.revisions.clear();
        self.called.clear();
    }

    /// The names of all FunctionRevisions that were called.
    pub(crate) fn called(&self) -> &BTreeSet<String> {
        &self.called
    }

    /// Adds what is about to be written.
    pub(crate) fn depend_on(&mut self, lookups: &BTreeSet<Lookup>) {
        self.otherwise.extend(lookups.iter().cloned());
    }

    fn is_composed(&self, kind: &GroupVersionKind, namespace: &str, name: &str) -> bool {
        self.composed_names.contains(&(kind.kind.clone(), namespace.to_owned(), name.to_owned()))
    }

    fn found<'o>(&mut self, lookup: Lookup, objects: impl IntoIterator<Item = &'o Value>) {
        self.looked_up.entry(lookup).or_default().extend(objects.into_iter().map(TypedReference::to));
    }
}

/// A world that notes what is read of another.
pub(crate) struct Recorder<'a> {
    world: &'a dyn World,
    /// Whether the world watches what is read.
    watches: bool,
    /// Outside of the recorder, so that they are not lost if the engine is stopped.
    reads: &'a Mutex<Reads>,
}

impl<'a> Recorder<'a> {
    /// Adds to what was read before.
    pub(crate) fn new(world: &'a dyn World, watches: bool, reads: &'a Mutex<Reads>) -> Self {
        Self { world, watches, reads }
    }

    fn lock(&self) -> MutexGuard<'_, Reads> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl World for Recorder<'_> {
    async fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, WorldError> {
        let (within, named) = (namespace.to_owned(), name.to_owned());
        let lookup = Lookup::Named { kind: kind.clone(), namespace: within, name: named };
        self.lock().found(lookup.clone(), None);
        self.depends_on(&lookup);
        let object = match self.world.get(kind, namespace, name).await {
            // What was composed went with its kind; a kind that a function asks for is more likely misspelled.
            Err(WorldError::UnknownKind(_)) if self.lock().is_composed(kind, namespace, name) => None,
            read => read?,
        };
        self.lock().found(lookup, &object);
        Ok(object)
    }

    async fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, WorldError> {
        let within = namespace.map(str::to_owned);
        let lookup = Lookup::Labelled { kind: kind.clone(), namespace: within, labels: labels.clone() };
        self.lock().found(lookup.clone(), None);
        self.depends_on(&lookup);
        let objects = self.world.list(kind, namespace, labels).await?;
        self.lock().found(lookup, &objects);
        Ok(objects)
    }

    async fn schema(&self, kind: &GroupVersionKind) -> Result<Option<Value>, WorldError> {
        self.world.schema(kind).await
    }

    async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, Vec<u8>>>, WorldError> {
        let kind = GroupVersionKind::new("", "v1", "Secret");
        let (within, named) = (namespace.to_owned(), name.to_owned());
        let lookup = Lookup::Named { kind, namespace: within, name: named };
        self.depends_on(&lookup);
        self.lock().otherwise.insert(lookup);
        self.world.secret(namespace, name).await
    }

    async fn is_namespaced(&self, kind: &GroupVersionKind) -> Result<bool, WorldError> {
        self.world.is_namespaced(kind).await
    }

    async fn owner(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, WorldError> {
        self.world.owner(kind, namespace, name).await
    }

    fn depends_on(&self, lookup: &Lookup) {
        if self.watches {
            self.world.depends_on(lookup);
        }
    }

    fn relies_on(&self, object: &Value) {
        self.world.relies_on(object);
    }

    fn follow_function(&self, function: &str) {
        self.world.follow_function(function);
    }

    fn called(&self, revision: &str) {
        let called = &mut self.lock().called;
        if !called.contains(revision) {
            called.insert(revision.to_owned());
        }
    }

    fn answered_by(&self, revision: &str) {
        self.lock().revisions.insert(TypedReference {
            api_version: constants::kind::PKG_V1.to_owned(),
            kind: constants::kind::FUNCTION_REVISION.to_owned(),
            name: revision.to_owned(),
            ..TypedReference::default()
        });
    }
}
