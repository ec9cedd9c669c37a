//! A cache of Compositions, their revisions, those of Functions, ImageConfigs and runtime configs, parsed once: there are few of them, and
//! reconcilers look them up in every run.

use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_engine::{Change, Depth, Key, Observer, Subscription, Watches};
use transom_object::GroupVersionKind;
use transom_xapi::constants::{group, kind, label};
use transom_xapi::function::FunctionRevision;
use transom_xapi::runtime_config::DeploymentRuntimeConfig;
use transom_xapi::{Composition, CompositionRevision, ImageConfig};

/// Objects of one kind by name.
pub(crate) struct Cache<T>(Mutex<BTreeMap<Key, Arc<T>>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Cache<T> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<T>> {
        self.lock().get(&Key::new("", name)).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.lock().values().cloned().collect()
    }
}

impl<T: DeserializeOwned + Send + Sync> Observer for Cache<T> {
    fn changed(&self, change: &Change<'_>) {
        let Some(seen) = change.object() else { return };
        let parsed = change.after.and_then(|after| T::deserialize(&*after.object).ok());
        match parsed {
            Some(object) => drop(self.lock().insert(seen.key.clone(), Arc::new(object))),
            // An object that does not match its type is treated as absent.
            None => drop(self.lock().remove(&seen.key)),
        }
    }
}

/// Revisions by name, and by the Composition that their label names.
#[derive(Default)]
pub(crate) struct Revisions {
    by_name: Cache<CompositionRevision>,
    of: Mutex<HashMap<String, BTreeMap<Key, Arc<CompositionRevision>>>>,
}

impl Revisions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, BTreeMap<Key, Arc<CompositionRevision>>>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<CompositionRevision>> {
        self.by_name.get(name)
    }

    pub(crate) fn all(&self) -> Vec<Arc<CompositionRevision>> {
        self.by_name.all()
    }

    pub(crate) fn of(&self, composition: &str) -> Vec<Arc<CompositionRevision>> {
        self.lock().get(composition).map(|r| r.values().cloned().collect()).unwrap_or_default()
    }
}

impl Observer for Revisions {
    fn changed(&self, change: &Change<'_>) {
        self.by_name.changed(change);
        let Some(seen) = change.object() else { return };
        let mut of = self.lock();
        let before = change.before.and_then(|b| b.labels.get(label::COMPOSITION_NAME));
        if let Some((name, revisions)) = before.and_then(|name| Some((name, of.get_mut(name)?))) {
            revisions.remove(&seen.key);
            if revisions.is_empty() {
                of.remove(name);
            }
        }
        let composition = change.after.and_then(|a| a.labels.get(label::COMPOSITION_NAME));
        if let (Some(composition), Some(revision)) = (composition, self.by_name.get(&seen.key.name)) {
            of.entry(composition.clone()).or_default().insert(seen.key.clone(), revision);
        }
    }
}

/// All caches.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) compositions: Arc<Cache<Composition>>,
    pub(crate) revisions: Arc<Revisions>,
    pub(crate) function_revisions: Arc<Cache<FunctionRevision>>,
    pub(crate) image_configs: Arc<Cache<ImageConfig>>,
    pub(crate) runtime_configs: Arc<Cache<DeploymentRuntimeConfig>>,
}

/// The kinds that several controllers use.
pub(crate) mod kinds {
    use super::{GroupVersionKind, group, kind};

    pub(crate) fn definition() -> GroupVersionKind {
        GroupVersionKind::new(group::APIEXTENSIONS, "v1", kind::XRD)
    }

    pub(crate) fn composition() -> GroupVersionKind {
        GroupVersionKind::new(group::APIEXTENSIONS, "v1", kind::COMPOSITION)
    }

    pub(crate) fn revision() -> GroupVersionKind {
        GroupVersionKind::new(group::APIEXTENSIONS, "v1", kind::COMPOSITION_REVISION)
    }

    pub(crate) fn function() -> GroupVersionKind {
        GroupVersionKind::new(group::PKG, "v1", kind::FUNCTION)
    }

    pub(crate) fn function_revision() -> GroupVersionKind {
        GroupVersionKind::new(group::PKG, "v1", kind::FUNCTION_REVISION)
    }

    pub(crate) fn image_config() -> GroupVersionKind {
        GroupVersionKind::new(group::PKG, "v1beta1", kind::IMAGE_CONFIG)
    }

    pub(crate) fn runtime_config() -> GroupVersionKind {
        GroupVersionKind::new(group::PKG, "v1beta1", kind::DEPLOYMENT_RUNTIME_CONFIG)
    }

    pub(crate) fn managed_definition() -> GroupVersionKind {
        GroupVersionKind::new(group::APIEXTENSIONS, "v1alpha1", kind::MRD)
    }

    pub(crate) fn activation_policy() -> GroupVersionKind {
        GroupVersionKind::new(group::APIEXTENSIONS, "v1alpha1", kind::MRAP)
    }

    pub(crate) fn crd() -> GroupVersionKind {
        GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    }

    pub(crate) fn service_account() -> GroupVersionKind {
        GroupVersionKind::new("", "v1", "ServiceAccount")
    }

    pub(crate) fn secret() -> GroupVersionKind {
        GroupVersionKind::new("", "v1", "Secret")
    }
}

impl Catalog {
    /// Keeps the catalogue up to date for as long as the subscriptions are kept.
    pub(crate) fn follow(&self, watches: &Watches) -> Vec<Subscription> {
        vec![
            watches.subscribe(&kinds::composition(), Depth::Whole, self.compositions.clone()),
            watches.subscribe(&kinds::revision(), Depth::Whole, self.revisions.clone()),
            watches.subscribe(&kinds::function_revision(), Depth::Whole, self.function_revisions.clone()),
            watches.subscribe(&kinds::image_config(), Depth::Whole, self.image_configs.clone()),
            watches.subscribe(&kinds::runtime_config(), Depth::Whole, self.runtime_configs.clone()),
        ]
    }
}
