//! One run of one revision: an active one is in the Lock and controls its objects, an inactive one does neither.

use super::establish::gvk_of;
use super::source::is_recorded;
use super::{Pause, Shared, mark_generation, pause, set_status};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_engine::{
    Dependency, Error, ErrorContext, Following, Key, Next, Reconciler, ReportedError, Result, RunLog,
};
use transom_object::meta;
use transom_packages::constraint::check_core;
use transom_packages::establish::{self, Owner, Owners};
use transom_packages::image_config::ImagePlan;
use transom_packages::lint::lint;
use transom_packages::lock::entry_for;
use transom_packages::lock::resolve::Resolution;
use transom_packages::names::revision_name;
use transom_packages::stream::Package as Content;
use transom_packages::{Digest, PackageKind};
use transom_xapi::constants::{CROSSPLANE_VERSION, annotation, condition, event, finalizer, label};
use transom_xapi::package::{ACTIVE, ObjectReference};
use transom_xapi::{Condition, PackageRevision, conditions, metadata};

/// Whether the CRDs of managed resources are installed by way of ManagedResourceDefinitions: not while nothing makes CRDs
/// of these.
const MANAGED_DEFINITIONS: bool = false;

/// Why a run ends without a healthy revision.
enum Failure {
    /// Another attempt may succeed.
    Retry(ReportedError),
    /// Nothing can succeed before something changes that wakes the revision: reason and message of the event.
    Wait(&'static str, String),
}

impl From<ReportedError> for Failure {
    fn from(error: ReportedError) -> Self {
        Self::Retry(error)
    }
}

type Step<T> = Result<T, Failure>;

pub(super) struct Revisions {
    shared: Arc<Shared>,
    kind: PackageKind,
    name: String,
    /// The objects of the revisions: one that is deleted is made again.
    established: Arc<Following>,
    /// What this process established already, by uid and generation of the revision. When only the Lock changes, the
    /// content of these is not read again.
    settled: Mutex<HashMap<Key, (String, i64)>>,
}

impl Reconciler for Revisions {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let plane = &self.shared.plane;
        let read = plane.read(log, &self.kind.revision_gvk(), "", &key.name).await;
        let Some(mut object) = read.context("cannot get package revision")? else {
            self.forget(key);
            return Ok(Next::Gone);
        };
        let before = object.get("status").cloned().unwrap_or_default();
        let outcome =
            if pause(plane, &self.name, &mut object, event::package_revision::PAUSED) == Pause::Paused {
                Ok(Next::Wait)
            } else if meta::is_deleting(&object) {
                return self.remove(key, log, object).await;
            } else {
                self.run(key, log, &mut object).await
            };
        match outcome {
            Ok(next) => {
                let written = plane.write_status(log, &mut object, &before).await;
                written.context("cannot update package revision status")?;
                Ok(next)
            }
            Err(failure) => self.fail(key, log, &mut object, &before, failure).await,
        }
    }
}

impl Revisions {
    pub(super) fn new(
        shared: Arc<Shared>,
        kind: PackageKind,
        name: String,
        established: Arc<Following>,
    ) -> Self {
        Self { shared, kind, name, established, settled: Mutex::default() }
    }

    fn settled(&self) -> MutexGuard<'_, HashMap<Key, (String, i64)>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, key: &Key) {
        self.settled().remove(key);
        self.established.forget(key);
    }

    /// Ends a revision. Its objects are deleted with their last owner, by the garbage collection of the server.
    async fn remove(&self, key: &Key, log: &RunLog, mut object: Value) -> Result<Next> {
        self.forget(key);
        let plane = &self.shared.plane;
        let reason = event::package_revision::SYNC;
        let removed =
            self.shared.unlock(log, &key.name).await.context("cannot remove package revision from Lock");
        plane.events.report(&self.name, &object, removed.with_event_reason(reason))?;
        if metadata::remove_finalizer(&mut object, finalizer::PACKAGE_REVISION) {
            let about = object.clone();
            let updated =
                plane.update(log, &mut object).await.context("cannot remove package revision finalizer");
            plane.events.report(&self.name, &about, updated.with_event_reason(reason))?;
        }
        Ok(Next::Wait)
    }

    async fn run(&self, key: &Key, log: &RunLog, object: &mut Value) -> Step<Next> {
        let revision = PackageRevision::deserialize(&*object).map_err(Error::unfit);
        let revision = revision.with_event_reason(event::package_revision::SYNC)?;
        if revision.is_active() {
            self.activate(key, log, object, &revision).await?;
        } else {
            self.deactivate(key, log, object, &revision).await?;
        }
        self.healthy(object);
        Ok(Next::Wait)
    }

    /// An inactive revision lets go of what it controls. It has no use for its content, and does not ask for it.
    async fn deactivate(
        &self,
        key: &Key,
        log: &RunLog,
        object: &mut Value,
        revision: &PackageRevision,
    ) -> Step<()> {
        self.forget(key);
        let attempted = "cannot deactivate package revision";
        let reason = event::package_revision::DEACTIVATE;
        self.update_metadata(log, object, &BTreeMap::new(), &BTreeMap::new()).await?;
        let removed =
            self.shared.unlock(log, &key.name).await.context("cannot remove package revision from Lock");
        removed.context(attempted).with_event_reason(reason)?;
        let owners = owners(object, &[]).context(attempted).with_event_reason(reason)?;
        let released = self.shared.release(log, &revision.status.object_refs, &owners).await;
        Ok(released.context(attempted).with_event_reason(reason)?)
    }

    async fn activate(
        &self,
        key: &Key,
        log: &RunLog,
        object: &mut Value,
        revision: &PackageRevision,
    ) -> Step<()> {
        let plan = self.shared.plan_image(&revision.spec.image).context("cannot get package");
        let plan = plan.with_event_reason(event::package_revision::PARSE)?;
        if self.is_settled(key, revision, &plan)
            && let Some(resolution) = self.locked(log, revision).await?
        {
            return dependencies(object, resolution.as_ref());
        }
        self.forget(key);
        set_source(object, &plan);
        let content = self.content(log, object, revision, &plan).await.context("cannot get package");
        let content = content.with_event_reason(event::package_revision::PARSE)?;
        self.lint(object, &content);
        let meta = &content.meta;
        self.update_metadata(log, object, &meta.labels, &meta.annotations).await?;
        set_source(object, &plan);
        set_status(object, "capabilities", json!(meta.capabilities));
        if !revision.spec.installation.ignores_crossplane_constraints() {
            let checked = check_core(meta.crossplane.as_deref(), CROSSPLANE_VERSION);
            let incompatible = |e| {
                Failure::Wait(event::package_revision::LINT, format!("incompatible Crossplane version: {e}"))
            };
            checked.map_err(incompatible)?;
        }
        let siblings = self.siblings(log, revision).await.with_event_reason(event::package_revision::SYNC)?;
        let current = self.must_be_current(log, revision, &siblings).await;
        current.with_event_reason(event::package_revision::SYNC)?;
        if revision.spec.installation.resolves_dependencies() {
            let resolution = self.join(log, revision, &plan, &content, &siblings).await;
            dependencies(
                object,
                resolution.with_event_reason(event::package_revision::RESOLVE_DEPENDENCIES)?.as_ref(),
            )?;
        }
        let references = self.establish(key, log, object, revision, &content, &siblings).await;
        let references = references.context("cannot establish control of object");
        let references = references.with_event_reason(event::package_revision::SYNC)?;
        set_status(object, "objectRefs", json!(references));
        self.settled().insert(key.clone(), (revision.metadata.uid.clone(), revision.metadata.generation));
        Ok(())
    }

    /// Whether this process established all objects of the revision as it is, and all of them still exist.
    fn is_settled(&self, key: &Key, revision: &PackageRevision, plan: &ImagePlan) -> bool {
        let now = (revision.metadata.uid.clone(), revision.metadata.generation);
        let exists = |reference: &ObjectReference| {
            let mirror = gvk_of(reference).and_then(|gvk| self.established.mirror(&gvk));
            let seen = mirror.and_then(|mirror| mirror.get(&Key::new("", reference.name.as_str())));
            seen.is_some_and(|seen| *seen.uid == *reference.uid && !seen.deleting)
        };
        self.settled().get(key) == Some(&now)
            && is_recorded(revision, plan)
            && revision.status.object_refs.iter().all(exists)
    }

    /// The state of the dependencies of a revision that is in the Lock; `None` when it should be and is not.
    async fn locked(&self, log: &RunLog, revision: &PackageRevision) -> Step<Option<Option<Resolution>>> {
        if !revision.spec.installation.resolves_dependencies() {
            return Ok(Some(None));
        }
        let read = self.shared.read_lock(log).await;
        let read = read.with_event_reason(event::package_revision::RESOLVE_DEPENDENCIES)?;
        let Some((_, lock)) = read else { return Ok(None) };
        Ok(self.shared.resolution(&lock.packages, &revision.metadata.name).map(Some))
    }

    async fn content(
        &self,
        log: &RunLog,
        object: &Value,
        revision: &PackageRevision,
        plan: &ImagePlan,
    ) -> Result<Content> {
        let secrets = &revision.spec.installation.package_pull_secrets;
        let digest = match meta::annotation(object, annotation::IMAGE_DIGEST) {
            Some(digest) => Digest::parse(digest).map_err(Error::unfit)?,
            // A revision that another program made: its name has the beginning of the digest.
            None => {
                let digest = self.shared.resolve(log, plan, secrets).await?;
                let name = revision_name(revision.package(), &digest);
                if name != revision.metadata.name {
                    return Err(Error::domain(format!(
                        "{} is now at {digest}, which is the image of revision {name:?}; this revision has no annotation \
                         {} with the digest that it was made for",
                        plan.resolved,
                        annotation::IMAGE_DIGEST
                    )));
                }
                digest
            }
        };
        self.shared.content(log, self.kind, plan, &digest, secrets).await
    }

    /// What should not be in the package is reported once, and does not stop the installation.
    fn lint(&self, object: &Value, content: &Content) {
        let violations = lint(content);
        let healthy = conditions::get(&conditions::of(object), condition::REVISION_HEALTHY);
        if violations.is_empty() || healthy.is_true() {
            return;
        }
        let listed: Vec<String> = violations.iter().map(ToString::to_string).collect();
        let words = format!("linting package contents failed: {}", listed.join("; "));
        self.shared.plane.events.warning(&self.name, object, event::package_revision::LINT, words);
    }

    /// Writes the finalizer, and the labels and annotations that the package wants on its revisions. What the package
    /// object gave to the revision stays.
    async fn update_metadata(
        &self,
        log: &RunLog,
        object: &mut Value,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> Step<()> {
        let mut changed = metadata::add_finalizer(object, finalizer::PACKAGE_REVISION);
        for (key, value) in labels {
            if meta::label(object, key).is_none() {
                meta::set_label(object, key, value);
                changed = true;
            }
        }
        for (key, value) in annotations {
            if meta::annotation(object, key).is_none() {
                meta::set_annotation(object, key, value);
                changed = true;
            }
        }
        if !changed {
            return Ok(());
        }
        let status = object.get("status").cloned();
        let updated = self.shared.plane.update(log, object).await;
        updated
            .context("cannot update package revision object metadata")
            .with_event_reason(event::package_revision::SYNC)?;
        if let Some(status) = status {
            object["status"] = status;
        }
        Ok(())
    }

    /// The package's other revisions.
    async fn siblings(&self, log: &RunLog, revision: &PackageRevision) -> Result<Vec<Value>> {
        let labels = BTreeMap::from([(label::PACKAGE.to_owned(), revision.package().to_owned())]);
        let listed = self.shared.plane.cluster.list(&self.kind.revision_gvk(), "", &labels).await;
        let mut listed = listed.context("cannot list revisions for package")?;
        listed.retain(|other| meta::name(other) != revision.metadata.name);
        listed.iter().for_each(|other| log.read(other));
        Ok(listed)
    }

    /// Fails with a conflict when the revision was deactivated since this run read it, which may be long ago if the registry
    /// is slow. It would take the Lock and the objects from the revision that is active now. A revision is activated after
    /// the one before was deactivated, so that a sibling that is active tells.
    async fn must_be_current(
        &self,
        log: &RunLog,
        revision: &PackageRevision,
        siblings: &[Value],
    ) -> Result<()> {
        if !siblings.iter().any(|sibling| sibling["spec"]["desiredState"] == ACTIVE) {
            return Ok(());
        }
        let name = &revision.metadata.name;
        let read = self.shared.plane.read(log, &self.kind.revision_gvk(), "", name).await;
        let read = read.context("cannot get package revision")?;
        if read.is_some_and(|now| meta::generation(&now) == revision.metadata.generation) {
            return Ok(());
        }
        let message = format!("package revision {name:?} changed while its package was fetched");
        Err(Error::Refused { code: 409, reason: "Conflict".to_owned(), message })
    }

    /// Joins the Lock.
    async fn join(
        &self,
        log: &RunLog,
        revision: &PackageRevision,
        plan: &ImagePlan,
        content: &Content,
        siblings: &[Value],
    ) -> Result<Option<Resolution>> {
        let entry = entry_for(&revision.metadata.name, self.kind, &plan.original, &content.meta);
        let siblings: Vec<&str> = siblings.iter().map(meta::name).collect();
        self.shared.resolve_dependencies(log, &entry, &siblings).await
    }

    async fn establish(
        &self,
        key: &Key,
        log: &RunLog,
        object: &Value,
        revision: &PackageRevision,
        content: &Content,
        siblings: &[Value],
    ) -> Result<Vec<ObjectReference>> {
        let owners = owners(object, siblings)?;
        let installation = &revision.spec.installation;
        let mut objects = establish::objects(content, MANAGED_DEFINITIONS);
        for object in &mut objects {
            establish::add_common(object, &installation.common_labels, &installation.common_annotations);
            establish::with_webhooks(object, None).map_err(Error::unfit)?;
        }
        // Followed before they are read, so that no deletion is missed.
        let followed = objects.iter().filter_map(|object| {
            let (gvk, name) = (meta::gvk(object)?, meta::name(object).to_owned());
            Some(Dependency::Named { gvk, namespace: String::new(), name })
        });
        self.established.replace(key, &followed.collect::<BTreeSet<_>>());
        self.shared.establish(log, &objects, &owners).await
    }

    /// Marks a revision that has all that it should have.
    fn healthy(&self, object: &mut Value) {
        let plane = &self.shared.plane;
        let was = conditions::get(&conditions::of(object), condition::REVISION_HEALTHY);
        if !was.is_true() {
            let words = "Successfully reconciled package revision";
            plane.events.normal(&self.name, object, event::package_revision::SYNC, words);
        }
        let mut all = vec![Condition::revision_healthy()];
        if self.kind == PackageKind::Provider {
            let words = "the controllers of a Provider are not run yet: its managed resources can be created, and nothing \
                         acts on them";
            all.push(Condition::runtime_unhealthy(words));
        }
        mark_generation(plane, object, all);
    }

    async fn fail(
        &self,
        key: &Key,
        log: &RunLog,
        object: &mut Value,
        before: &Value,
        failure: Failure,
    ) -> Result<Next> {
        let plane = &self.shared.plane;
        let (reason, words, outcome) = match failure {
            Failure::Retry(ReportedError { error, .. }) if error.is_conflict() => return Err(error),
            Failure::Retry(ReportedError { reason, error }) => {
                (reason, error.chain().to_string(), Err(error))
            }
            Failure::Wait(reason, words) => (reason, words, Ok(Next::Wait)),
        };
        let unhealthy = Condition::revision_unhealthy(words.clone());
        if mark_generation(plane, object, vec![unhealthy]) || outcome.is_err() {
            plane.events.warning(&self.name, object, reason, words);
        }
        let written = plane.write_status(log, object, before).await;
        match (outcome, written) {
            (Ok(next), written) => written.context("cannot update package revision status").map(|_| next),
            // The error is what matters; a status that cannot be written is written next time.
            (Err(error), written) => {
                if let Err(e) = written {
                    tracing::debug!(controller = self.name, %key, error = %e.chain(), "cannot update status");
                }
                Err(error)
            }
        }
    }
}

/// Records where the image was pulled from.
fn set_source(object: &mut Value, plan: &ImagePlan) {
    set_status(object, "resolvedImage", plan.resolved.to_string().into());
    set_status(object, "appliedImageConfigRefs", json!(plan.applied));
}

/// Records the state of the dependencies. A change of the Lock wakes a revision that misses one.
fn dependencies(object: &mut Value, resolution: Option<&Resolution>) -> Step<()> {
    let Some(resolution) = resolution else { return Ok(()) };
    set_status(object, "foundDependencies", json!(resolution.found));
    set_status(object, "installedDependencies", json!(resolution.installed));
    set_status(object, "invalidDependencies", json!(resolution.invalid));
    match &resolution.problem {
        None => Ok(()),
        Some(problem) => {
            let words = format!("cannot resolve package dependencies: {problem}");
            Err(Failure::Wait(event::package_revision::RESOLVE_DEPENDENCIES, words))
        }
    }
}

/// The owners of a revision's objects.
fn owners(object: &Value, siblings: &[Value]) -> Result<Owners> {
    let package = meta::controller_of(object).ok_or_else(|| {
        Error::unfit(format!("package revision {:?} has no package that controls it", meta::name(object)))
    })?;
    Ok(Owners {
        revision: Owner::of(object),
        package: Owner {
            api_version: package.api_version,
            kind: package.kind,
            name: package.name,
            uid: package.uid,
        },
        siblings: siblings.iter().map(|sibling| meta::uid(sibling).to_owned()).collect(),
    })
}
