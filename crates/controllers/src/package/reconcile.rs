//! One run of one package: its image becomes a revision, and the package gets the conditions of that revision.

use super::source::{Run, is_unchanged};
use super::{Pause, Shared, bounded, current_conditions, pause, runtime, set_status};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use transom_engine::{
    DeleteOptions, Error, ErrorContext, Following, Key, Mirror, Next, Reconciler, ReportedError, Result,
    RunLog, Seen, found,
};
use transom_object::meta;
use transom_packages::image_config::ImagePlan;
use transom_packages::names::revision_name;
use transom_packages::revisions::{self, CurrentRevision, DesiredState, ExistingRevision, RevisionedPackage};
use transom_packages::{Digest, PackageKind, Reference};
use transom_xapi::constants::{annotation, condition, event, finalizer, label, owner};
use transom_xapi::function::package_health;
use transom_xapi::metadata::{self, add_controller, controller_reference_to};
use transom_xapi::package::{ACTIVE, PackageRevisionSpec, PullPolicy};
use transom_xapi::{Condition, Package, PackageRevision, conditions};

/// How often the tag of a package that is always pulled is looked up.
const ALWAYS_PULL_INTERVAL: Duration = Duration::from_secs(60);

type Step<T> = Result<T, ReportedError>;

pub(super) struct Packages {
    pub(super) shared: Arc<Shared>,
    pub(super) kind: PackageKind,
    pub(super) name: String,
    /// The packages of the kind, with their images.
    pub(super) mirror: Arc<Mirror>,
    /// Notified when a package in the mirror gets another image or is deleted.
    pub(super) superseded: Arc<watch::Sender<()>>,
    /// The Secrets that registries are asked with, and those with keys that images are verified with.
    pub(super) secrets: Arc<Following>,
}

/// Which image a package has.
struct Image {
    plan: ImagePlan,
    /// Revisions are named after it: the digest of the image, or of the reference if no image is pulled.
    digest: Digest,
    /// By what it was verified, if it had to be.
    verified: Option<String>,
    /// Whether the image is pulled.
    is_pulled: bool,
}

impl Reconciler for Packages {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let plane = &self.shared.plane;
        let run = Run::begin(log, key, &self.secrets);
        // From before the package is read, so that no change of its image is missed.
        let superseded = self.superseded.subscribe();
        let read = plane.read(log, &self.kind.gvk(), "", &key.name).await;
        let Some(mut object) = read.context("cannot get package")? else {
            self.shared.uninstall(self.kind, &key.name).await;
            return Ok(Next::Gone);
        };
        let before = object.get("status").cloned().unwrap_or_default();
        let paused = pause(plane, &self.name, &mut object, event::package::PAUSED) == Pause::Paused;
        // What a package brought is deleted with it by the garbage collection of the server.
        if meta::is_deleting(&object) && !paused {
            self.shared.uninstall(self.kind, &key.name).await;
            return Ok(Next::Wait);
        }
        let outcome = if paused { Ok(Next::Wait) } else { self.install(run, superseded, &mut object).await };
        match outcome {
            Ok(next) => {
                let written = plane.write_status(log, &mut object, &before).await;
                written.context("cannot update package status")?;
                Ok(next)
            }
            Err(failure) => Err(self.fail(log, &mut object, &before, failure).await),
        }
    }
}

impl Packages {
    async fn install(&self, run: Run<'_>, superseded: watch::Receiver<()>, object: &mut Value) -> Step<Next> {
        let log = run.log;
        let package = Package::deserialize(&*object).map_err(Error::permanent);
        let package = package.with_event_reason(event::package::UNPACK)?;
        let revisions =
            self.revisions(log, &package).await.with_event_reason(event::package::LIST_REVISION)?;
        let image = tokio::select! {
            biased;
            image = self.image(run, &package, &revisions) => image,
            () = self.superseded(superseded, object, &package) => return Ok(Next::Again),
        };
        let image = image.context("cannot unpack package").with_event_reason(event::package::UNPACK)?;
        set_status(object, "resolvedPackage", image.plan.resolved.to_string().into());
        set_status(object, "appliedImageConfigRefs", json!(image.plan.applied));

        let name = revision_name(&package.metadata.name, &image.digest);
        let existing = self.existing(&revisions, &name);
        let plan = revisions::plan(&RevisionedPackage::of(&package, self.kind), &existing, &image.digest);
        for name in &plan.deactivate {
            self.set_state(log, object, &revisions, name, DesiredState::Inactive).await?;
        }
        for name in &plan.delete {
            self.collect(log, &revisions, name).await?;
        }
        let current = self.write(log, object, &package, &revisions, &plan.current, &image).await?;
        for name in &plan.activate {
            self.set_state(log, object, &revisions, name, DesiredState::Active).await?;
        }
        set_status(object, "currentRevision", plan.current.name.as_str().into());
        set_status(object, "currentIdentifier", package.spec.package.as_str().into());
        let stays_active = |revision: &&Value| {
            let name = meta::name(revision);
            let is_active = revision["spec"]["desiredState"] == ACTIVE && !meta::is_deleting(revision);
            is_active && name != plan.current.name && !plan.deactivate.iter().any(|other| other == name)
        };
        let others: Vec<&Value> = revisions.iter().filter(stays_active).collect();
        self.report(object, &current, &others);
        Ok(match package.spec.installation.pull_policy() {
            PullPolicy::Always => Next::After(ALWAYS_PULL_INTERVAL),
            PullPolicy::IfNotPresent | PullPolicy::Never => Next::Wait,
        })
    }

    /// Ends when the package has another image than that of the run, or is gone: a pending
    /// request about the old image is then cancelled.
    async fn superseded(&self, mut superseded: watch::Receiver<()>, object: &Value, package: &Package) {
        let (key, read) = (Key::of(object), transom_engine::version(meta::resource_version(object)));
        let is_current = |seen: &Seen| {
            let same = *seen.uid == *package.metadata.uid && seen.object[0] == *package.spec.package;
            seen.version < read || same
        };
        while superseded.changed().await.is_ok() {
            if !self.mirror.get(&key).is_some_and(|seen| is_current(&seen)) {
                return;
            }
        }
    }

    async fn revisions(&self, log: &RunLog, package: &Package) -> Result<Vec<Value>> {
        let labels = BTreeMap::from([(label::PACKAGE.to_owned(), package.metadata.name.clone())]);
        let listed = self.shared.plane.cluster.list(&self.kind.revision_gvk(), "", &labels).await;
        let listed = listed.context("cannot list revisions for package")?;
        listed.iter().for_each(|revision| log.read(revision));
        Ok(listed)
    }

    /// The image of a package. The registry is asked only if the image, or what ImageConfigs say about it, is not what the
    /// current revision was made from. A new image is verified and its content checked before there is a revision of it: a
    /// package that cannot be used leaves the current one alone.
    async fn image(&self, run: Run<'_>, package: &Package, revisions: &[Value]) -> Result<Image> {
        if let Some(digest) = self.shared.unpulled(self.kind, package) {
            let reference = Reference::parse(&package.spec.package).map_err(Error::permanent)?;
            let plan = ImagePlan::as_written(reference);
            return Ok(Image { plan, digest, is_pulled: false, verified: None });
        }
        let plan = self.shared.plan_image(&package.spec.package)?;
        let installation = &package.spec.installation;
        let secrets = &installation.package_pull_secrets;
        let verified_by = |revision| meta::annotation(revision, annotation::VERIFIED_BY);
        let current = find(revisions, &package.status.current_revision);
        let known = current.and_then(|revision| meta::annotation(revision, annotation::IMAGE_DIGEST));
        let known = known.and_then(|digest| Digest::parse(digest).ok());
        if let Some(digest) = known
            && is_unchanged(package, &plan)
            && installation.pull_policy() != PullPolicy::Always
        {
            let recorded = current.and_then(verified_by);
            let verified = self.shared.verify(run, &plan, &digest, recorded, secrets).await?;
            return Ok(Image { plan, digest, is_pulled: true, verified });
        }
        let plan = self.shared.plan_new_image(&package.spec.package).await?;
        let digest = self.shared.resolve(run, &plan, secrets).await?;
        let existing = find(revisions, &revision_name(&package.metadata.name, &digest));
        let recorded = existing.and_then(verified_by);
        let verified = self.shared.verify(run, &plan, &digest, recorded, secrets).await?;
        if existing.is_none() {
            self.shared.content(run, self.kind, &plan, &digest, installation).await?;
        }
        Ok(Image { plan, digest, is_pulled: true, verified })
    }

    /// The facts about revisions that the plan depends on. The current one takes over from others only if it is healthy as it
    /// is now, so its conditions count only if they are about its generation. Of the others the last report counts: one that
    /// works and has not reported since its spec changed is needed until the current one is healthy.
    fn existing(&self, revisions: &[Value], current: &str) -> Vec<ExistingRevision> {
        let existing = |revision: &Value| {
            let is_current = meta::name(revision) == current;
            let reported = if is_current { current_conditions(revision) } else { conditions::of(revision) };
            let health = package_health(&reported, self.kind.has_runtime());
            let parsed = PackageRevision::deserialize(revision).ok()?;
            Some(ExistingRevision::of(&parsed, health.is_true()))
        };
        revisions.iter().filter_map(existing).collect()
    }

    /// Activates or deactivates a revision that is not the current one.
    async fn set_state(
        &self,
        log: &RunLog,
        package: &Value,
        revisions: &[Value],
        name: &str,
        state: DesiredState,
    ) -> Step<()> {
        let Some(revision) = find(revisions, name) else { return Ok(()) };
        let mut revision = revision.clone();
        revision["spec"]["desiredState"] = state.as_str().into();
        let allowed =
            metadata::must_be_controllable_by(&revision, meta::uid(package)).map_err(Error::permanent);
        let updated = match allowed {
            Ok(()) => self.shared.plane.update(log, &mut revision).await,
            Err(refused) => Err(refused),
        };
        let updated = updated.context(match state {
            DesiredState::Active => "cannot activate package revision",
            DesiredState::Inactive => "cannot update inactive package revision",
        });
        updated.with_event_reason(event::package::TRANSITION_REVISION)
    }

    /// Writes the current revision, unless it is as it should be. Returns it.
    async fn write(
        &self,
        log: &RunLog,
        package: &Value,
        typed: &Package,
        revisions: &[Value],
        current: &CurrentRevision,
        image: &Image,
    ) -> Step<Value> {
        let existing = find(revisions, &current.name);
        let wanted = self.wanted(package, typed, existing, current, image);
        let wanted =
            wanted.context("cannot apply package revision").with_event_reason(event::package::INSTALL)?;
        let written = match existing {
            Some(existing) if *existing == wanted => Ok(wanted),
            Some(_) => {
                let mut wanted = wanted;
                self.shared.plane.update(log, &mut wanted).await.map(|()| wanted)
            }
            None => {
                let created = self.shared.plane.cluster.create(&wanted, owner::DEFAULT).await;
                created.inspect(|created| log.wrote(created))
            }
        };
        written.context("cannot apply package revision").with_event_reason(event::package::INSTALL)
    }

    /// The current revision as it should be.
    fn wanted(
        &self,
        package: &Value,
        typed: &Package,
        existing: Option<&Value>,
        current: &CurrentRevision,
        image: &Image,
    ) -> Result<Value> {
        let fresh = || {
            let mut revision = json!({
                "apiVersion": self.kind.api_version(), "kind": self.kind.revision_kind(),
                "metadata": {"name": current.name},
            });
            metadata::add_finalizer(&mut revision, finalizer::PACKAGE_REVISION);
            revision
        };
        let mut revision = existing.cloned().unwrap_or_else(fresh);
        copy_labels(&mut revision, typed);
        if image.is_pulled {
            meta::set_annotation(&mut revision, annotation::IMAGE_DIGEST, image.digest.as_str());
        }
        if self.kind != PackageKind::Configuration {
            runtime::copy_source(&mut revision, package);
        }
        match &image.verified {
            Some(record) => meta::set_annotation(&mut revision, annotation::VERIFIED_BY, record),
            None => {
                metadata::remove_annotations(&mut revision, &[annotation::VERIFIED_BY]);
            }
        }
        add_controller(&mut revision, controller_reference_to(package)).map_err(Error::permanent)?;
        let spec = self.spec(typed, current);
        let same =
            existing.and_then(|e| e.get("spec")).and_then(|s| PackageRevisionSpec::deserialize(s).ok());
        if same.as_ref() != Some(&spec) {
            revision["spec"] = json!(spec);
        }
        Ok(revision)
    }

    fn spec(&self, package: &Package, current: &CurrentRevision) -> PackageRevisionSpec {
        let name = &package.metadata.name;
        let server = self.kind.has_runtime().then(|| format!("{name}-tls-server"));
        let client = (self.kind == PackageKind::Provider).then(|| format!("{name}-tls-client"));
        PackageRevisionSpec {
            desired_state: current.desired_state.as_str().to_owned(),
            image: package.spec.package.clone(),
            revision: current.number,
            installation: package.spec.installation.clone(),
            tls_server_secret_name: server,
            tls_client_secret_name: client,
        }
    }

    /// Deletes a revision that history has no place for. Its objects stay: the package owns them too.
    async fn collect(&self, log: &RunLog, revisions: &[Value], name: &str) -> Step<()> {
        let Some(revision) = find(revisions, name).filter(|revision| !meta::is_deleting(revision)) else {
            return Ok(());
        };
        log.changed();
        let options = DeleteOptions { propagation: None, uid: Some(meta::uid(revision)) };
        let deleted = self.shared.plane.cluster.delete(&self.kind.revision_gvk(), "", name, options).await;
        let deleted = found(deleted).map(drop).context("cannot garbage collect old package revision");
        deleted.with_event_reason(event::package::GARBAGE_COLLECT)
    }

    /// What the current revision, as it was just written, says about the package, and others that are active beside it.
    fn report(&self, package: &mut Value, current: &Value, others: &[&Value]) {
        let plane = &self.shared.plane;
        let is_active = |revision: &Value| revision["spec"]["desiredState"] == ACTIVE;
        let newest = others.iter().max_by_key(|revision| revision["spec"]["revision"].as_i64());
        let installed = match newest {
            _ if is_active(current) => Condition::package_active(),
            Some(newest) => Condition::package_active().with_message(format!(
                "package revision {:?} is inactive; {:?} is active",
                meta::name(current),
                meta::name(newest)
            )),
            None => Condition::package_inactive().with_message("Package is inactive"),
        };
        let judged = newest.filter(|_| !is_active(current)).copied().unwrap_or(current);
        let health = self.health(judged, others);
        let was = conditions::get(&conditions::of(package), condition::HEALTHY);
        if health.is_true() && !was.is_true() {
            let words = "Successfully installed package revision";
            plane.events.normal(&self.name, package, event::package::INSTALL, words);
        }
        conditions::mark_observed(package, [health, installed], plane.clock.now());
    }

    /// The health of a package by that of one of its revisions.
    fn health(&self, judged: &Value, others: &[&Value]) -> Condition {
        let of_revision = current_conditions(judged);
        let health = package_health(&of_revision, self.kind.has_runtime());
        if self.kind != PackageKind::Function {
            return health;
        }
        if health.is_true() {
            // What is to be known of the runtime, such as which version a built-in equals.
            return health.with_message(conditions::get(&of_revision, condition::RUNTIME_HEALTHY).message);
        }
        let is_healthy = |revision: &&&Value| package_health(&current_conditions(revision), true).is_true();
        let serving = others.iter().filter(is_healthy).max_by_key(|r| r["spec"]["revision"].as_i64());
        let Some(serving) = serving else { return health };
        let message =
            format!("{}; package revision {:?} is called instead", health.message, meta::name(serving));
        health.with_message(message)
    }

    /// Reports a run that failed. A package whose image cannot be used is not installed.
    async fn fail(&self, log: &RunLog, object: &mut Value, before: &Value, failure: ReportedError) -> Error {
        let (plane, ReportedError { reason, error }) = (&self.shared.plane, failure);
        if error.is_conflict() {
            return error;
        }
        let words = bounded(error.chain().to_string());
        plane.events.warning(&self.name, object, reason, words.clone());
        if reason == event::package::UNPACK {
            let unpacking = Condition::package_unpacking().with_message(words.clone());
            if self.kind == PackageKind::Function {
                self.shared.functions.explain(meta::name(object), &words);
            }
            let unhealthy = Condition::package_unhealthy(words);
            conditions::mark_observed(object, [unpacking, unhealthy], plane.clock.now());
        }
        if let Err(e) = plane.write_status(log, object, before).await {
            tracing::debug!(controller = self.name, key = %Key::of(object), error = %e.chain(), "cannot update status");
        }
        error
    }
}

fn find<'r>(revisions: &'r [Value], name: &str) -> Option<&'r Value> {
    revisions.iter().find(|revision| meta::name(revision) == name)
}

/// Gives the current revision the labels of its package, and takes those away that the package had before: steps choose
/// revisions by the labels of their Function. Revisions that are not current keep the labels that they had.
fn copy_labels(revision: &mut Value, package: &Package) {
    let labels = package.metadata.label_map();
    let copied = meta::annotation(revision, annotation::COPIED_LABELS).unwrap_or_default().to_owned();
    let lost = copied.split(',').filter(|key| !labels.contains_key(*key));
    if let Some(all) = revision.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        lost.for_each(|key| drop(all.remove(key)));
    }
    for (key, value) in &labels {
        meta::set_label(revision, key, value);
    }
    meta::set_label(revision, label::PACKAGE, &package.metadata.name);
    if labels.is_empty() {
        metadata::remove_annotations(revision, &[annotation::COPIED_LABELS]);
    } else {
        let keys: Vec<&str> = labels.keys().map(String::as_str).collect();
        meta::set_annotation(revision, annotation::COPIED_LABELS, &keys.join(","));
    }
}
