//! The other revisions of a package, whether a revision is its newest active one, and its entry in the Lock.

use super::revision::{Revisions, Step};
use serde_json::Value;
use std::collections::BTreeMap;
use transom_engine::{Error, ErrorContext, Result, RunLog};
use transom_object::meta;
use transom_packages::PackageKind;
use transom_packages::image_config::ImagePlan;
use transom_packages::lock::entry_for;
use transom_packages::lock::resolve::Resolution;
use transom_packages::stream::Package as Content;
use transom_xapi::PackageRevision;
use transom_xapi::constants::{event, label};
use transom_xapi::package::ACTIVE;

impl Revisions {
    /// The package's other revisions.
    pub(super) async fn siblings(&self, log: &RunLog, revision: &PackageRevision) -> Result<Vec<Value>> {
        let labels = BTreeMap::from([(label::PACKAGE.to_owned(), revision.package().to_owned())]);
        let listed = self.shared.plane.cluster.list(&self.kind.revision_gvk(), "", &labels).await;
        let mut listed = listed.context("cannot list revisions for package")?;
        listed.retain(|other| meta::name(other) != revision.metadata.name);
        listed.iter().for_each(|other| log.read(other));
        Ok(listed)
    }

    /// Whether no newer revision of the package is active. Of several active revisions of a Function the newest is in the Lock;
    /// of other packages only one is active.
    pub(super) async fn is_newest(&self, log: &RunLog, revision: &PackageRevision) -> Result<bool> {
        if self.kind != PackageKind::Function {
            return Ok(true);
        }
        Ok(self.is_newest_of(revision, &self.siblings(log, revision).await?))
    }

    /// The same, given the package's other revisions.
    pub(super) fn is_newest_of(&self, revision: &PackageRevision, siblings: &[Value]) -> bool {
        let is_newer = |other: &Value| {
            other["spec"]["desiredState"] == ACTIVE
                && !meta::is_deleting(other)
                && other["spec"]["revision"].as_i64() > Some(revision.spec.revision)
        };
        self.kind != PackageKind::Function || !siblings.iter().any(is_newer)
    }

    /// Fails with a conflict when the revision was deactivated since this run read it, which may be long ago if the registry
    /// is slow. It would take the Lock and the objects from the revision that is active now. A revision is activated after
    /// the one before was deactivated, so an active sibling means that this one was deactivated.
    pub(super) async fn must_be_current(&self, revision: &PackageRevision, siblings: &[Value]) -> Result<()> {
        if !siblings.iter().any(|sibling| sibling["spec"]["desiredState"] == ACTIVE) {
            return Ok(());
        }
        self.must_be_unchanged(revision).await
    }

    /// Fails with a conflict when the revision was activated, deactivated or deleted since this run read it.
    pub(super) async fn must_be_unchanged(&self, revision: &PackageRevision) -> Result<()> {
        let name = &revision.metadata.name;
        // Not recorded as read: its labels may have changed, and this run goes on with those that it read first.
        let read = self.shared.plane.cluster.get(&self.kind.revision_gvk(), "", name).await;
        let read = read.context("cannot get package revision")?;
        if read.is_some_and(|now| meta::generation(&now) == revision.metadata.generation) {
            return Ok(());
        }
        let message = format!("package revision {name:?} changed while its package was fetched");
        Err(Error::Refused { code: 409, reason: "Conflict".to_owned(), message })
    }

    /// The state of the dependencies of a revision that is in the Lock; `None` when it should be and is not.
    pub(super) async fn locked(
        &self,
        log: &RunLog,
        revision: &PackageRevision,
        is_newest: bool,
    ) -> Step<Option<Option<Resolution>>> {
        if !is_newest || !revision.spec.installation.resolves_dependencies() {
            return Ok(Some(None));
        }
        let read = self.shared.read_lock(log).await;
        let read = read.with_event_reason(event::package_revision::RESOLVE_DEPENDENCIES)?;
        let Some((_, lock)) = read else { return Ok(None) };
        Ok(self.shared.resolution(&lock.packages, &revision.metadata.name).map(Some))
    }

    /// Joins the Lock.
    pub(super) async fn join(
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
}
