//! Packages: from an image in a registry to the objects that it brings.
//!
//! | module | what it holds |
//! |---|---|
//! | `reconcile` | packages: which image is current, and a revision for it |
//! | `revision` | revisions: one run of one revision |
//! | `lock_membership` | the other revisions of a package, whether a revision is its newest active one, and its entry in the Lock |
//! | `establish` | how the objects of a revision are written and released |
//! | `activation` | whether a provider is needed yet |
//! | `dependencies` | a revision's entry in the Lock, and whether all that it depends on is there |
//! | `runtime` | what a revision runs: which revision of a Function is called, and whether it can be |
//! | `providers` | what a revision of a Provider runs |
//! | `lock` | the Lock: installs packages that others depend on |
//! | `tags` | lists of tags that registries take long for |
//! | `source` | from a reference to content: ImageConfigs, pull secrets, the registry |
//! | `verification` | whether an image is signed as its ImageConfig wants it |
//!
//! All decisions are made by `transom_packages`; the controllers read, call it, and write. Requests are sent to the
//! registry because of the image of a package, its ImageConfigs or its pull policy, and not after other changes.

mod activation;
mod builtin_provider;
mod dependencies;
mod establish;
mod lock;
mod lock_membership;
mod providers;
mod reconcile;
mod revision;
mod runtime;
mod source;
mod tags;
mod verification;

pub(crate) use runtime::resume;

pub use builtin_provider::{BuiltinProviders, NoProviders};

use crate::catalog::kinds;
use crate::plane::Plane;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use transom_engine::{Change, Controller, Depth, Key, Mirror, Observer, Pace, Queue, Seen};
use transom_object::{GroupVersionKind, meta};
use transom_packages::lock::LockPackage;
use transom_packages::lock::affected::affected;
use transom_packages::trust::SignatureVerifier;
use transom_packages::{Credentials, PackageKind, Registry, image_config};
use transom_runner::{Installer, ProviderRuntime};
use transom_xapi::ImageConfig;
use transom_xapi::constants::{LOCK_NAME, condition, group, kind, label, reason};
use transom_xapi::{Condition, conditions, metadata};

/// Why the data of a pull secret cannot be used. The text contains nothing of it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct PullSecretError(#[from] pub Box<dyn std::error::Error + Send + Sync>);

/// Reads the credentials in the data of a pull secret.
pub type PullSecretReader =
    Arc<dyn Fn(&BTreeMap<String, Vec<u8>>) -> Result<Vec<Credentials>, PullSecretError> + Send + Sync>;

/// What the package controllers need beyond the plane.
pub struct PackageSources {
    /// Where packages come from.
    pub registry: Arc<dyn Registry>,
    /// Reads pull secrets.
    pub read_pull_secret: PullSecretReader,
    /// Verifies signatures.
    pub verifier: Arc<dyn SignatureVerifier>,
    /// The providers that need no registry.
    pub builtin_providers: Arc<dyn BuiltinProviders>,
}

impl PackageSources {
    /// Without built-in providers.
    pub fn new(
        registry: Arc<dyn Registry>,
        read_pull_secret: PullSecretReader,
        verifier: Arc<dyn SignatureVerifier>,
    ) -> Self {
        Self { registry, read_pull_secret, verifier, builtin_providers: Arc::new(NoProviders) }
    }
}

/// What the package controllers share.
struct Shared {
    plane: Arc<Plane>,
    registry: Arc<dyn Registry>,
    read_pull_secret: PullSecretReader,
    verifier: Arc<dyn SignatureVerifier>,
    verifications: verification::Verifications,
    functions: Installer,
    providers: Arc<dyn ProviderRuntime>,
    builtin_providers: Arc<dyn BuiltinProviders>,
    /// Held while the Lock is read and written: all active revisions write it, and would otherwise often conflict.
    lock: tokio::sync::Mutex<()>,
    /// The packages that are being fetched.
    fetches: source::Fetches,
    /// Held while a large package is read.
    large: tokio::sync::Mutex<()>,
}

/// The longest message of a condition.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// The running controllers of packages.
pub(crate) struct PackageControllers(Vec<Controller>);

impl PackageControllers {
    /// Starts the controllers of packages, of their revisions, and of the Lock.
    pub(crate) fn start(
        plane: &Arc<Plane>,
        sources: PackageSources,
        functions: Installer,
        providers: Arc<dyn ProviderRuntime>,
    ) -> Self {
        let PackageSources { registry, read_pull_secret, verifier, builtin_providers } = sources;
        let shared = Arc::new(Shared {
            plane: plane.clone(),
            registry,
            read_pull_secret,
            verifier,
            verifications: verification::Verifications::default(),
            functions,
            providers,
            builtin_providers,
            lock: tokio::sync::Mutex::default(),
            fetches: source::Fetches::default(),
            large: tokio::sync::Mutex::default(),
        });
        let mut controllers = Vec::new();
        for of in PackageKind::ALL {
            controllers.push(start_packages(&shared, of));
            controllers.push(start_revisions(&shared, of));
        }
        controllers.push(start_lock(&shared));
        Self(controllers)
    }

    /// The queues of the controllers.
    pub(crate) fn queues(&self) -> impl Iterator<Item = Arc<Queue>> {
        self.0.iter().map(|controller| controller.queue().clone())
    }
}

/// The name of the controller of a kind, as the original's.
fn controller_name(kind: &str) -> String {
    format!("packages/{}.{}", kind.to_lowercase(), group::PKG)
}

fn lock_gvk() -> GroupVersionKind {
    GroupVersionKind::new(group::PKG, "v1beta1", kind::LOCK)
}

fn start_packages(shared: &Arc<Shared>, of: PackageKind) -> Controller {
    let name = controller_name(of.kind());
    let mut controller = shared.plane.controller(name.clone(), Pace::default());
    let mirror = controller.watch_own(&of.gvk(), Depth::Part("image", package_image));
    let queue = controller.queue().clone();
    controller.watch(
        &of.revision_gvk(),
        Depth::Header,
        Arc::new(move |change: &Change<'_>| wake_package(&queue, change)),
    );
    let wake = WakeConcerned { mirror: mirror.clone(), queue: controller.queue().clone() };
    controller.watch(&kinds::image_config(), Depth::Whole, Arc::new(wake));
    let superseded = Arc::new(watch::Sender::new(()));
    let notified = superseded.clone();
    let notify = move |change: &Change<'_>| {
        if is_superseding(change) {
            notified.send_replace(());
        }
    };
    controller.watch(&of.gvk(), Depth::Part("image", package_image), Arc::new(notify));
    let secrets = controller.follow(|_| true);
    let shared = shared.clone();
    controller.start(reconcile::Packages { shared, kind: of, name, mirror, superseded, secrets })
}

fn start_revisions(shared: &Arc<Shared>, of: PackageKind) -> Controller {
    let name = controller_name(of.revision_kind());
    let mut controller = shared.plane.controller(name.clone(), Pace::default());
    let mirror = controller.watch_own(&of.revision_gvk(), Depth::Part("image", revision_image));
    let activation = activation::Activation::watch(&mut controller, of, mirror.clone());
    let wake = WakeConcerned { mirror: mirror.clone(), queue: controller.queue().clone() };
    controller.watch(&kinds::image_config(), Depth::Whole, Arc::new(wake));
    if of.has_runtime() {
        let wake = WakeAll { mirror: mirror.clone(), queue: controller.queue().clone() };
        controller.watch(&kinds::runtime_config(), Depth::Whole, Arc::new(wake));
    }
    if of == PackageKind::Provider {
        let queue = controller.queue().clone();
        shared.providers.on_change(Arc::new(move |revision: &str| queue.wake(&Key::new("", revision))));
    }
    let queue = controller.queue().clone();
    let locks = shared.clone();
    let wake = move |change: &Change<'_>| match change.gap {
        // A revision may have joined the Lock and been taken out of it again since the last change that was seen.
        true => mirror.all().iter().for_each(|revision| change.wake(&queue, &revision.key)),
        false => locks.wake_locked(&queue, of, change),
    };
    controller.watch(&lock_gvk(), Depth::Part("packages", locked_packages), Arc::new(wake));
    if of == PackageKind::Function {
        let queue = controller.queue().clone();
        shared.functions.on_change(move |id| queue.wake(&Key::new("", &*id.revision)));
        let plane = Arc::downgrade(&shared.plane);
        shared.functions.on_reroute(move |function| {
            plane.upgrade().iter().for_each(|plane| plane.callers.wake(function));
        });
        let wake = WakeSiblings { revisions: Mutex::default(), queue: controller.queue().clone() };
        controller.watch(&of.revision_gvk(), Depth::Part("image", revision_image), Arc::new(wake));
    }
    let established = controller.follow(|change| change.is_of_identity());
    let secrets = controller.follow(|_| true);
    let followed = revision::Followed { established, secrets };
    controller.start(revision::Revisions::new(shared.clone(), of, name, followed, activation))
}

fn start_lock(shared: &Arc<Shared>) -> Controller {
    let name = controller_name(kind::LOCK);
    let mut controller = shared.plane.controller(name.clone(), Pace::default());
    controller.watch_own(&lock_gvk(), Depth::Part("packages", locked_packages));
    for of in PackageKind::ALL {
        let queue = controller.queue().clone();
        let wake = move |change: &Change<'_>| {
            if is_of_image(change) {
                change.wake(&queue, &Key::new("", LOCK_NAME));
            }
        };
        controller.watch(&of.gvk(), Depth::Part("image", package_image), Arc::new(wake));
    }
    let queue = controller.queue().clone();
    let wake = move |change: &Change<'_>| change.wake(&queue, &Key::new("", LOCK_NAME));
    controller.watch(&kinds::image_config(), Depth::Whole, Arc::new(wake));
    let lookups = tags::TagLookups::new(controller.queue().clone());
    let secrets = controller.follow(|_| true);
    controller.start(lock::Locks { shared: shared.clone(), name, lookups, secrets })
}

/// The image of a package, and where it is pulled from.
fn package_image(package: &Value) -> Value {
    json!([package.pointer("/spec/package"), package.pointer("/status/resolvedPackage")])
}

/// Whether a package that a run may be about has another image now, was replaced by another of its name, or is gone.
fn is_superseding(change: &Change<'_>) -> bool {
    let is_same =
        |before: &Seen, after: &Seen| before.uid == after.uid && before.object[0] == after.object[0];
    change.before.is_some_and(|before| !change.after.is_some_and(|after| is_same(before, after)))
}

/// Whether a package was installed or removed, or has another image.
fn is_of_image(change: &Change<'_>) -> bool {
    let image = |seen: &Seen| seen.object.clone();
    change.gap || change.before.map(image) != change.after.map(image)
}

/// The image of a revision, where it is pulled from, whether its runtime is active, and which of its siblings it is.
fn revision_image(revision: &Value) -> Value {
    let activity = conditions::get(&conditions::of(revision), condition::RUNTIME_ACTIVE);
    let spec = |field: &str| revision.pointer(&format!("/spec/{field}"));
    let resolved = revision.pointer("/status/resolvedImage");
    json!([spec("image"), resolved, activity.reason, spec("desiredState"), spec("revision")])
}

/// What a watch keeps of a revision.
struct KeptRevision<'r>(&'r Value);

impl KeptRevision<'_> {
    /// Whether its runtime is active.
    fn runs(&self) -> bool {
        self.0[2] == reason::ACTIVE_RUNTIME
    }

    /// Whether it is active, and its number.
    fn standing(&self) -> (&Value, &Value) {
        (&self.0[3], &self.0[4])
    }
}

/// A revision of a Function wakes the others when it is activated, deactivated or deleted: the newest active one is in the
/// Lock.
struct WakeSiblings {
    /// The revisions by the names of their packages.
    revisions: Mutex<BTreeMap<String, BTreeSet<Key>>>,
    queue: Arc<Queue>,
}

impl Observer for WakeSiblings {
    fn changed(&self, change: &Change<'_>) {
        let Some(seen) = change.object() else { return };
        let Some(package) = seen.labels.get(label::PACKAGE) else { return };
        let mut revisions = self.revisions.lock().unwrap_or_else(PoisonError::into_inner);
        let siblings = revisions.entry(package.clone()).or_default();
        siblings.remove(&seen.key);
        let is_same = match (change.before, change.after) {
            (Some(before), Some(after)) => {
                KeptRevision(&before.object).standing() == KeptRevision(&after.object).standing()
                    && before.deleting == after.deleting
            }
            _ => false,
        };
        if change.gap || !is_same {
            siblings.iter().for_each(|sibling| change.wake(&self.queue, sibling));
        }
        if change.after.is_some() {
            siblings.insert(seen.key.clone());
        } else if siblings.is_empty() {
            revisions.remove(package);
        }
    }
}

fn locked_packages(lock: &Value) -> Value {
    lock.get("packages").cloned().unwrap_or_default()
}

/// A revision wakes the package that its label names.
fn wake_package(queue: &Queue, change: &Change<'_>) {
    for revision in [change.before, change.after].into_iter().flatten() {
        if let Some(package) = revision.labels.get(label::PACKAGE) {
            change.wake(queue, &Key::new("", package.as_str()));
        }
    }
}

impl Shared {
    /// The Lock wakes the revisions in it that a change concerns, and those that are no longer in it: an active one joins
    /// again.
    fn wake_locked(&self, queue: &Queue, of: PackageKind, change: &Change<'_>) {
        let packages = |seen: Option<&Seen>| -> Vec<LockPackage> {
            seen.and_then(|seen| serde::Deserialize::deserialize(&*seen.object).ok()).unwrap_or_default()
        };
        let (before, after) = (packages(change.before), packages(change.after));
        let mirrors = self.mirrors(dependencies::sources(&before).chain(dependencies::sources(&after)));
        let affected = affected(&before, &after, &mirrors);
        let names: BTreeSet<&str> = after.iter().map(|entry| entry.name.as_str()).collect();
        let left = before.iter().filter(|entry| !names.contains(entry.name.as_str()));
        let concerned = after.iter().filter(|entry| affected.contains(entry.name.as_str()));
        for entry in left.chain(concerned).filter(|entry| entry.kind.as_deref() == Some(of.kind())) {
            change.wake(queue, &Key::new("", entry.name.as_str()));
        }
    }
}

/// A runtime config wakes all revisions that may run: which of them use it, ImageConfigs decide.
struct WakeAll {
    mirror: Arc<Mirror>,
    queue: Arc<Queue>,
}

impl Observer for WakeAll {
    fn changed(&self, change: &Change<'_>) {
        self.mirror.all().iter().for_each(|revision| change.wake(&self.queue, &revision.key));
    }
}

/// An ImageConfig wakes the packages or revisions whose image it says something about.
struct WakeConcerned {
    mirror: Arc<Mirror>,
    queue: Arc<Queue>,
}

impl Observer for WakeConcerned {
    fn changed(&self, change: &Change<'_>) {
        let parse = |seen: &Seen| -> Option<ImageConfig> { Deserialize::deserialize(&*seen.object).ok() };
        let configs: Vec<ImageConfig> =
            [change.before, change.after].into_iter().flatten().filter_map(parse).collect();
        for seen in self.mirror.all() {
            let (original, resolved) = (seen.object[0].as_str().unwrap_or_default(), seen.object[1].as_str());
            if configs.iter().any(|config| image_config::concerns(config, original, resolved)) {
                change.wake(&self.queue, &seen.key);
            }
        }
    }
}

/// What the pause annotation asks for.
#[derive(PartialEq, Eq)]
enum Pause {
    /// To do nothing. The condition says so.
    Paused,
    /// To go on.
    No,
}

/// Marks an object that is paused. An object that was paused loses all its conditions: they are found out again.
fn pause(plane: &Plane, controller: &str, object: &mut Value, event: &str) -> Pause {
    use transom_xapi::constants::message;
    let marked =
        conditions::get(&conditions::of(object), condition::SYNCED).reason == reason::RECONCILE_PAUSED;
    if metadata::is_paused(object) {
        if !marked {
            plane.events.normal(controller, object, event, message::PAUSED);
        }
        let paused = Condition::reconcile_paused().with_message(message::PAUSED);
        conditions::mark_observed(object, [paused], plane.clock.now());
        return Pause::Paused;
    }
    if marked {
        conditions::write(object, &[]);
    }
    Pause::No
}

/// Sets conditions of a revision. Unlike elsewhere, a generation alone is news: a package is as healthy as its revision is
/// in the state that it should be in now, not in the one before.
fn mark_generation(plane: &Plane, object: &mut Value, new: Vec<Condition>) -> bool {
    let generation = meta::generation(object);
    let types: Vec<String> = new.iter().map(|condition| condition.kind.clone()).collect();
    let changed = conditions::mark_observed(object, new, plane.clock.now());
    let list = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in list.into_iter().flatten() {
        if types.iter().any(|of| condition["type"] == of.as_str()) {
            condition["observedGeneration"] = generation.into();
        }
    }
    changed
}

/// The conditions of a revision that are about its current generation.
fn current_conditions(revision: &Value) -> Vec<Condition> {
    let mut current = revision.clone();
    let generation = meta::generation(revision);
    if let Some(list) = current.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        list.retain(|condition| condition["observedGeneration"].as_i64() == Some(generation));
    }
    conditions::of(&current)
}

/// A message as conditions and events have it. Packages and registries can put any text into one, and a condition that is
/// too long cannot be written.
fn bounded(message: String) -> String {
    if message.len() <= MESSAGE_BYTES_MAX {
        return message;
    }
    let end = (0..=MESSAGE_BYTES_MAX).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
    format!("{} … ({} more bytes)", &message[..end], message.len() - end)
}

/// Sets a field of the status; what is empty is removed.
fn set_status(object: &mut Value, field: &str, value: Value) {
    let empty = match &value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        _ => false,
    };
    let Some(object) = object.as_object_mut() else { return };
    let status = object.entry("status").or_insert_with(|| json!({}));
    let Some(status) = status.as_object_mut() else { return };
    if empty {
        status.remove(field);
    } else {
        status.insert(field.to_owned(), value);
    }
}
