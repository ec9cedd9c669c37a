//! One run of one revision: an active one is in the Lock and controls its objects, an inactive one does neither. Of several
//! active revisions of a Function, which control nothing, the newest is in the Lock.

use super::activation::Activation;
use super::establish::{Write, gvk_of};
use super::source::{Run, is_recorded};
use super::{Pause, Shared, bounded, mark_generation, pause, runtime, set_status};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_engine::{
    Dependency, Error, ErrorContext, Following, Key, Next, Reconciler, ReportedError, Result, RunLog,
};
use transom_object::meta;
use transom_packages::PackageKind;
use transom_packages::Reference;
use transom_packages::constraint::check_core;
use transom_packages::establish::{self, Owner, Owners};
use transom_packages::image_config::ImagePlan;
use transom_packages::lint::lint;
use transom_packages::lock::resolve::Resolution;
use transom_packages::stream::Package as Content;
use transom_xapi::constants::{CROSSPLANE_VERSION, annotation, condition, event, finalizer};
use transom_xapi::package::ObjectReference;
use transom_xapi::{Condition, PackageRevision, conditions, metadata};

/// Why a run ends without a healthy revision.
pub(super) enum Failure {
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

pub(super) type Step<T> = Result<T, Failure>;

/// The objects that revisions depend on.
pub(super) struct Followed {
    /// What the revisions established: an object that is deleted is made again.
    pub(super) established: Arc<Following>,
    /// The Secrets that registries are asked with, and those with keys that images are verified with.
    pub(super) secrets: Arc<Following>,
}

pub(super) struct Revisions {
    pub(super) shared: Arc<Shared>,
    pub(super) kind: PackageKind,
    name: String,
    followed: Followed,
    activation: Activation,
    /// What this process established already, by uid and generation of the revision. When only the Lock changes, the
    /// content of these is not read again.
    completed: Mutex<HashMap<Key, (String, i64)>>,
}

impl Reconciler for Revisions {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let plane = &self.shared.plane;
        let run = Run::begin(log, key, &self.followed.secrets);
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
                self.run(run, &mut object).await
            };
        match outcome {
            Ok(next) => {
                let written = plane.write_status(log, &mut object, &before).await;
                // What was found out is not in the status: the next run finds it out again.
                let written = written.inspect_err(|_| self.forget(key));
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
        followed: Followed,
        activation: Activation,
    ) -> Self {
        Self { shared, kind, name, followed, activation, completed: Mutex::default() }
    }

    fn completed(&self) -> MutexGuard<'_, HashMap<Key, (String, i64)>> {
        self.completed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, key: &Key) {
        self.completed().remove(key);
        self.followed.established.forget(key);
    }

    /// Ends a revision. Its objects are deleted with their last owner, by the garbage collection of the server.
    async fn remove(&self, key: &Key, log: &RunLog, mut object: Value) -> Result<Next> {
        self.forget(key);
        let plane = &self.shared.plane;
        let reason = event::package_revision::SYNC;
        let ended = self.end(log, &object).await;
        plane.events.report(&self.name, &object, ended.with_event_reason(reason))?;
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

    async fn run(&self, run: Run<'_>, object: &mut Value) -> Step<Next> {
        let (key, log) = (run.key, run.log);
        let revision = PackageRevision::deserialize(&*object).map_err(Error::permanent);
        let revision = revision.with_event_reason(event::package_revision::SYNC)?;
        if !revision.is_active() {
            self.deactivate(key, log, object, &revision).await?;
            self.healthy(object);
            self.stop(log, object, &revision).await.with_event_reason(event::package_revision::DEACTIVATE)?;
            return Ok(Next::Wait);
        }
        if self.is_pulled(&revision) {
            self.activate(run, object, &revision).await?;
            self.healthy(object);
            return Ok(self.start(object, &revision).await);
        }
        // What needs no content runs at once: who applied it may call it already.
        let next = self.start(object, &revision).await;
        self.activate(run, object, &revision).await?;
        self.healthy(object);
        Ok(next)
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
        if revision.status.object_refs.is_empty() {
            return Ok(());
        }
        let owners = owners(object, &[]).context(attempted).with_event_reason(reason)?;
        let released = self.shared.release(log, &revision.status.object_refs, &owners).await;
        Ok(released.context(attempted).with_event_reason(reason)?)
    }

    async fn activate(&self, run: Run<'_>, object: &mut Value, revision: &PackageRevision) -> Step<()> {
        let (key, log) = (run.key, run.log);
        let plan = self.plan(revision).context("cannot get package");
        let plan = plan.with_event_reason(event::package_revision::PARSE)?;
        let is_up_to_date = self.is_up_to_date(key, revision, &plan);
        if is_up_to_date && plan.verification.is_some() {
            let verified = self.shared.verified_digest(run, object, revision, &plan).await;
            verified.context("cannot get package").with_event_reason(event::package_revision::PARSE)?;
        }
        let is_newest =
            self.is_newest(log, revision).await.with_event_reason(event::package_revision::SYNC)?;
        if is_up_to_date && let Some(resolution) = self.locked(log, revision, is_newest).await? {
            self.activation.mark(
                &self.shared.plane,
                object,
                self.activation.seen(&revision.status.object_refs),
            );
            return dependencies(object, resolution.as_ref());
        }
        self.forget(key);
        set_source(object, &plan);
        let content = self.content(run, object, revision, &plan).await.context("cannot get package");
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
        let current = self.must_be_current(revision, &siblings).await;
        current.with_event_reason(event::package_revision::SYNC)?;
        // Fetching the content may have taken long.
        if self.is_newest_of(revision, &siblings) && revision.spec.installation.resolves_dependencies() {
            let resolution = self.join(log, revision, &plan, &content, &siblings).await;
            dependencies(
                object,
                resolution.with_event_reason(event::package_revision::RESOLVE_DEPENDENCIES)?.as_ref(),
            )?;
        }
        let established = self.establish(key, log, object, revision, &content, &siblings).await;
        let established = established.context("cannot establish control of object");
        let established = established.with_event_reason(event::package_revision::SYNC)?;
        set_status(object, "objectRefs", json!(establish::object_references(&established)));
        self.activation.mark(&self.shared.plane, object, establish::active_definitions(&established));
        self.completed().insert(key.clone(), (revision.metadata.uid.clone(), revision.metadata.generation));
        Ok(())
    }

    /// Whether this process established all objects of the revision as it is, and all of them still exist.
    fn is_up_to_date(&self, key: &Key, revision: &PackageRevision, plan: &ImagePlan) -> bool {
        let now = (revision.metadata.uid.clone(), revision.metadata.generation);
        let exists = |reference: &ObjectReference| {
            let mirror = gvk_of(reference).and_then(|gvk| self.followed.established.mirror(&gvk));
            let seen = mirror.and_then(|mirror| mirror.get(&Key::new("", reference.name.as_str())));
            seen.is_some_and(|seen| *seen.uid == *reference.uid && !seen.deleting)
        };
        self.completed().get(key) == Some(&now)
            && is_recorded(revision, plan)
            && revision.status.object_refs.iter().all(exists)
    }

    async fn content(
        &self,
        run: Run<'_>,
        object: &Value,
        revision: &PackageRevision,
        plan: &ImagePlan,
    ) -> Result<Content> {
        if !self.is_pulled(revision) {
            return self.unpulled_content(revision);
        }
        let digest = self.shared.verified_digest(run, object, revision, plan).await?;
        self.shared.content(run, self.kind, plan, &digest, &revision.spec.installation).await
    }

    /// What ImageConfigs say about the image of a revision, if it is pulled.
    fn plan(&self, revision: &PackageRevision) -> Result<ImagePlan> {
        if self.is_pulled(revision) {
            return self.shared.plan_image(&revision.spec.image);
        }
        Ok(ImagePlan::as_written(Reference::parse(&revision.spec.image).map_err(Error::permanent)?))
    }

    /// What should not be in the package is reported once, and does not stop the installation.
    fn lint(&self, object: &Value, content: &Content) {
        let violations = lint(content);
        let healthy = conditions::get(&conditions::of(object), condition::REVISION_HEALTHY);
        if violations.is_empty() || healthy.is_true() {
            return;
        }
        let listed: Vec<String> = violations.iter().map(ToString::to_string).collect();
        let words = bounded(format!("linting package contents failed: {}", listed.join("; ")));
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
        // What a package says about itself does not say that it was verified, where it runs, or what its Function has.
        let own = [annotation::VERIFIED_BY, annotation::COPIED_LABELS];
        let is_free = |key: &str| !own.contains(&key) && !runtime::is_of_source(key);
        for (key, value) in annotations.iter().filter(|(key, _)| is_free(key)) {
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

    async fn establish(
        &self,
        key: &Key,
        log: &RunLog,
        object: &Value,
        revision: &PackageRevision,
        content: &Content,
        siblings: &[Value],
    ) -> Result<Vec<Value>> {
        let installation = &revision.spec.installation;
        let mut objects = establish::objects(content);
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let owners = owners(object, siblings)?;
        let server = self.webhook_server(revision, &objects).await?;
        for object in &mut objects {
            establish::add_common(object, &installation.common_labels, &installation.common_annotations);
        }
        establish::with_webhooks(&mut objects, &owners.package, server.as_ref()).map_err(Error::permanent)?;
        // Followed before they are read, so that no deletion is missed.
        let followed = objects.iter().filter_map(|object| {
            let (gvk, name) = (meta::gvk(object)?, meta::name(object).to_owned());
            Some(Dependency::Named { gvk, namespace: String::new(), name })
        });
        self.followed.established.replace(key, &followed.collect::<BTreeSet<_>>());
        let planned = self.shared.plan_writes(log, &objects, &owners).await?;
        // A revision takes objects from its siblings. One that was replaced before the objects were read must not take
        // them back; if it is replaced after that, the server refuses the writes because the objects have changed.
        if planned.iter().any(Write::is_change) {
            self.must_be_unchanged(revision).await?;
        }
        self.shared.write_planned(log, planned).await
    }

    /// Marks a revision that has all that it should have.
    fn healthy(&self, object: &mut Value) {
        let plane = &self.shared.plane;
        let was = conditions::get(&conditions::of(object), condition::REVISION_HEALTHY);
        if !was.is_true() {
            let words = "Successfully reconciled package revision";
            plane.events.normal(&self.name, object, event::package_revision::SYNC, words);
        }
        mark_generation(plane, object, vec![Condition::revision_healthy()]);
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
        let words = bounded(words);
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
        Error::permanent(format!("package revision {:?} has no package that controls it", meta::name(object)))
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
