//! What a revision runs. The active revisions of a Function are called: the [`Installer`] has them run, and calls the one
//! that steps want, or that was called before until one is ready. For Providers see `providers` and `builtin_provider`.
//!
//! A Function that is built in or has an endpoint is not pulled. Its revisions are named as those of images are, by a
//! digest: of the text of the reference, followed by a line with the address if there is one. So another tag or another
//! address is another revision, and the same is the same revision again.

use super::providers::runtime_config;
use super::revision::Revisions;
use super::{Shared, mark_generation, set_status};
use crate::catalog::kinds;
use crate::plane::Plane;
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use transom_engine::{ErrorContext, Next, Result, RunLog};
use transom_object::meta;
use transom_packages::names::revision_name;
use transom_packages::stream::Package as Content;
use transom_packages::{Digest, PackageKind, Reference, image_config};
use transom_runner::{
    Installer, PackageImage, Problem, Reason, RevisionId, RevisionSpec, RuntimeState, SOURCE_ANNOTATIONS,
    Source,
};
use transom_xapi::constants::condition;
use transom_xapi::function::{Function, FunctionRevision, RevisionTraits};
use transom_xapi::package::ACTIVE;
use transom_xapi::{Condition, PackageRevision, conditions, metadata};

/// Of `RuntimeHealthy` of a revision that is not active.
const DOES_NOT_RUN: &str = "the revision is not active and does not run";

/// The digest that names the revision of a Function that is not pulled.
fn unpulled_digest(source: &Source, reference: &str) -> Option<Digest> {
    source.identity(reference).map(|text| Digest::of(text.as_bytes()))
}

/// Gives a revision the annotations of its Function that say where its implementation comes from.
pub(super) fn copy_source(revision: &mut Value, function: &Value) {
    for key in SOURCE_ANNOTATIONS {
        match meta::annotation(function, key) {
            Some(value) => meta::set_annotation(revision, key, value),
            None => {
                let annotations =
                    revision.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
                if let Some(annotations) = annotations {
                    annotations.remove(key);
                }
            }
        }
    }
}

/// Whether an annotation says where the implementation of a Function comes from. Only a user can: what is in a package
/// must not send calls elsewhere.
pub(super) fn is_of_source(annotation: &str) -> bool {
    SOURCE_ANNOTATIONS.contains(&annotation)
}

impl Shared {
    /// The digest that names the revision of a package that is not pulled; `None` for all others.
    pub(super) fn unpulled(&self, kind: PackageKind, package: &Function) -> Option<Digest> {
        match kind {
            PackageKind::Configuration => return None,
            PackageKind::Provider => {
                return self.builtin_provider_digest(&package.metadata, &package.spec.package);
            }
            PackageKind::Function => {}
        }
        unpulled_digest(&self.functions.source(package), &package.spec.package)
    }

    /// Ends what the revisions of a package run, which is deleted.
    pub(super) async fn uninstall(&self, kind: PackageKind, package: &str) {
        if kind == PackageKind::Function {
            self.functions.remove(package).await;
        }
    }
}

impl Revisions {
    /// Whether the content of a revision comes from its image.
    pub(super) fn is_pulled(&self, revision: &PackageRevision) -> bool {
        match self.kind {
            PackageKind::Configuration => true,
            PackageKind::Provider => self.builtin(revision).is_none(),
            PackageKind::Function => {
                matches!(self.shared.functions.revision(revision).source, Source::Package { .. })
            }
        }
    }

    /// The name of the provider that comes with the binary and that a revision stands for.
    fn builtin<'a>(&self, revision: &'a PackageRevision) -> Option<&'a str> {
        let is_provider = self.kind == PackageKind::Provider;
        let builtin = || self.shared.builtin_provider(&revision.metadata, &revision.spec.image);
        is_provider.then(builtin).flatten()
    }

    /// The content of a revision that is not pulled.
    pub(super) fn unpulled_content(&self, revision: &PackageRevision) -> Result<Content> {
        match self.builtin(revision) {
            Some(name) => self.shared.builtin_provider_content(name),
            None => Ok(Content::empty(self.kind)),
        }
    }

    /// Ends what a revision of a Provider runs.
    async fn release_provider(&self, revision: &PackageRevision) {
        let name = &revision.metadata.name;
        match self.builtin(revision) {
            Some(provider) => self.shared.builtin_providers.stop(provider, name),
            None => self.shared.providers.release(name).await,
        }
    }

    /// Runs an active revision, and reports whether it does.
    pub(super) async fn start(&self, object: &mut Value, revision: &PackageRevision) -> Next {
        let plane = &self.shared.plane;
        if let Some(name) = self.builtin(revision) {
            self.shared.builtin_providers.start(name, &revision.metadata.name);
            let words = format!("{name} comes with Transom and runs in its process");
            mark_generation(plane, object, vec![Condition::runtime_healthy().with_message(words)]);
            return Next::Wait;
        }
        match self.kind {
            PackageKind::Configuration => return Next::Wait,
            PackageKind::Provider => return self.start_provider(object, revision).await,
            PackageKind::Function => {}
        }
        // Probed when it is installed, when calls become able or unable to reach it and when what it runs by changes, never
        // at intervals.
        let mut spec = self.shared.functions.revision(revision);
        let plan = self.shared.plan_image(&revision.spec.image).ok();
        spec.config = match runtime_config(plane, &revision.spec.installation, plan.as_ref()) {
            Ok(config) => config,
            Err(words) if matches!(spec.source, Source::Package { .. }) => {
                mark_generation(plane, object, vec![Condition::runtime_unhealthy(words)]);
                return Next::Wait;
            }
            Err(_) => Arc::default(),
        };
        if let Some(plan) = plan {
            spec.image.reference = plan.resolved.to_string();
            spec.image.pull_secrets.extend(plan.pull_secret);
        }
        let state = self.shared.functions.install(&spec).await;
        let instance = state.instance();
        set_status(object, "endpoint", instance.map_or(Value::Null, |instance| instance.target().into()));
        let health = match (state.problem(), instance) {
            (Some(problem), _) => Condition::runtime_unhealthy(problem.message.clone()),
            (None, instance) => {
                Condition::runtime_healthy().with_message(instance.map(|i| i.note()).unwrap_or_default())
            }
        };
        mark_generation(plane, object, vec![health]);
        let pending = state.problem().filter(|_| matches!(state, RuntimeState::Pending { .. }));
        next_attempt(pending, self.shared.functions.due_in(&spec.id))
    }

    /// Ends what a revision runs that is not active. A Function whose next revision is on its way keeps calling the one
    /// before until that is ready.
    pub(super) async fn stop(
        &self,
        log: &RunLog,
        object: &mut Value,
        revision: &PackageRevision,
    ) -> Result<()> {
        let plane = &self.shared.plane;
        match self.kind {
            PackageKind::Configuration => return Ok(()),
            PackageKind::Provider => {
                self.release_provider(revision).await;
                let remark = self.shared.providers.remark(&revision.metadata.name);
                let unknown = Condition::runtime_health_unknown().with_message(does_not_run(remark));
                mark_generation(plane, object, vec![unknown]);
                return Ok(());
            }
            PackageKind::Function => {}
        }
        set_status(object, "endpoint", Value::Null);
        let remark = self.shared.functions.remark(&RevisionId::of(revision));
        let unknown = Condition::runtime_health_unknown().with_message(does_not_run(remark));
        mark_generation(plane, object, vec![unknown]);
        let functions = &self.shared.functions;
        let function = self.function(log, revision).await?;
        let activates = |function: &Value| {
            let typed = Function::deserialize(function);
            !metadata::is_paused(function) && typed.is_ok_and(|typed| typed.activates_automatically())
        };
        let siblings = self.siblings(log, revision).await?;
        let is_active = |other: &Value| other["spec"]["desiredState"] == ACTIVE && !meta::is_deleting(other);
        match function {
            None => functions.remove(revision.package()).await,
            Some(function) if activates(&function) || siblings.iter().any(is_active) => {
                functions.retire(&RevisionId::of(revision)).await;
            }
            Some(_) => functions.deactivate(revision.package(), &without_active(revision.package())).await,
        }
        Ok(())
    }

    /// Ends what a revision runs that is deleted.
    pub(super) async fn end(&self, log: &RunLog, object: &Value) -> Result<()> {
        let Ok(revision) = PackageRevision::deserialize(object) else { return Ok(()) };
        match self.kind {
            PackageKind::Configuration => return Ok(()),
            PackageKind::Provider => {
                self.release_provider(&revision).await;
                return Ok(());
            }
            PackageKind::Function => {}
        }
        let id = RevisionId::of(&revision);
        match self.function(log, &revision).await? {
            Some(_) => self.shared.functions.retire(&id).await,
            None => self.shared.functions.discard(&id).await,
        }
        Ok(())
    }

    /// The Function of a revision, unless it is gone or on its way.
    async fn function(&self, log: &RunLog, revision: &PackageRevision) -> Result<Option<Value>> {
        let read = self.shared.plane.read(log, &kinds::function(), "", revision.package()).await;
        Ok(read.context("cannot get Function")?.filter(|function| !meta::is_deleting(function)))
    }
}

/// When a revision is run again that nothing wakes: one that is `pending` at growing intervals, unless the runtime reports when
/// that ends, any other when its runtime has to do something.
pub(super) fn next_attempt(pending: Option<&Problem>, due_in: Option<Duration>) -> Next {
    match pending {
        Some(problem) if problem.reason != Reason::Unavailable => Next::Backoff,
        _ => due_in.map_or(Next::Wait, Next::After),
    }
}

/// The message of `RuntimeHealthy` of a revision that is not active, with what is remarkable about its end.
fn does_not_run(remark: Option<String>) -> String {
    match remark {
        Some(remark) => format!("{DOES_NOT_RUN}; {remark}"),
        None => DOES_NOT_RUN.to_owned(),
    }
}

/// Why a Function without an active revision cannot be called.
fn without_active(function: &str) -> String {
    format!(
        "Function {function:?} has no active revision; set spec.desiredState: Active on the FunctionRevision that \
         status.currentRevision of the Function names"
    )
}

/// Makes the functions callable that were before the controllers stopped. To be called before composite resources are
/// reconciled. What cannot be run is reported by the controllers later.
pub(crate) async fn resume(plane: &Arc<Plane>, installer: &Installer) -> Result<()> {
    let listed = plane.cluster.list(&kinds::function(), "", &BTreeMap::new()).await;
    let listed = listed.context("cannot list Functions")?;
    let mut all: BTreeMap<String, Callable> = BTreeMap::new();
    for function in listed.iter().filter_map(|object| Function::deserialize(object).ok()) {
        if !function.metadata.is_deleting() {
            let name = function.metadata.name.clone();
            all.entry(name).or_default().function = Some(function);
        }
    }
    for revision in plane.catalog.function_revisions.all() {
        all.entry(revision.package().to_owned()).or_default().revisions.push(revision);
    }
    join_all(all.iter().map(|(name, callable)| callable.resume(plane, name, installer))).await;
    Ok(())
}

/// What is to be installed for a revision, with its runtime config.
fn configured(plane: &Plane, revision: &FunctionRevision, installer: &Installer) -> RevisionSpec {
    let mut spec = installer.revision(revision);
    let configs: Vec<_> = plane.catalog.image_configs.all().iter().map(|config| (**config).clone()).collect();
    let plan = Reference::parse(&revision.spec.image)
        .ok()
        .and_then(|image| image_config::plan(&configs, &image).ok());
    spec.config = runtime_config(plane, &revision.spec.installation, plan.as_ref()).unwrap_or_default();
    spec
}

/// A function, and what can be called for it.
#[derive(Default)]
struct Callable {
    function: Option<Function>,
    revisions: Vec<Arc<FunctionRevision>>,
}

impl Callable {
    async fn resume(&self, plane: &Plane, name: &str, installer: &Installer) {
        let activates = self.function.as_ref().is_some_and(Function::activates_automatically);
        if !activates && !self.revisions.iter().any(|revision| revision.is_active()) {
            if self.function.is_some() {
                installer.deactivate(name, &without_active(name)).await;
            }
            return;
        }
        let (active, others) = self.candidates();
        let mut is_ready = false;
        for revision in &active {
            is_ready |= installer.install(&configured(plane, revision, installer)).await.is_ready();
        }
        // Until an active one is ready, one that was called before is.
        for revision in others.iter().filter(|_| !is_ready) {
            let spec = configured(plane, revision, installer);
            if installer.install(&spec).await.is_ready() {
                return installer.retire(&spec.id).await;
            }
            installer.discard(&spec.id).await;
        }
        if active.is_empty()
            && let Some(first) = self.first(name, installer).filter(|_| activates)
        {
            installer.install(&first).await;
        }
    }

    /// The revisions that were run before, the newest first: the active ones, and those that may be called until one of
    /// these is ready.
    fn candidates(&self) -> (Vec<&FunctionRevision>, Vec<&FunctionRevision>) {
        let was_run = |revision: &&FunctionRevision| {
            let healthy = conditions::get(&revision.status.conditions, condition::REVISION_HEALTHY);
            !revision.metadata.is_deleting() && (healthy.is_true() || !revision.status.endpoint.is_empty())
        };
        let mut all: Vec<&FunctionRevision> = self.revisions.iter().map(|r| &**r).filter(was_run).collect();
        all.sort_by_key(|revision| std::cmp::Reverse(revision.spec.revision));
        all.into_iter().partition(|revision| revision.is_active())
    }

    /// The revision that a Function which is not pulled is about to get.
    fn first(&self, name: &str, installer: &Installer) -> Option<RevisionSpec> {
        let function = self.function.as_ref()?;
        let (source, package) = (installer.source(function), function.spec.package.clone());
        let revision = revision_name(name, &unpulled_digest(&source, &package)?);
        let id = RevisionId { function: name.to_owned(), revision };
        let traits = RevisionTraits::of_function(function);
        Some(RevisionSpec {
            id,
            number: 0,
            package,
            source,
            traits,
            image: PackageImage::default(),
            config: Arc::default(),
        })
    }
}
