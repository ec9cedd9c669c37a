//! The entry of a revision in the Lock, and what follows from all entries for the revision.

use super::{Shared, lock_gvk};
use serde::Deserialize;
use serde_json::{Value, json};
use transom_engine::{Error, ErrorContext, Result, RunLog};
use transom_object::meta;
use transom_packages::lock::graph::Graph;
use transom_packages::lock::resolve::{Resolution, resolve_revision};
use transom_packages::lock::{self, LockPackage};
use transom_xapi::Lock;
use transom_xapi::constants::{LOCK_NAME, finalizer, kind, owner};

impl Shared {
    /// Reads the Lock; `None` when there is none.
    pub(super) async fn read_lock(&self, log: &RunLog) -> Result<Option<(Value, Lock)>> {
        let read =
            self.plane.read(log, &lock_gvk(), "", LOCK_NAME).await.context("cannot get package lock")?;
        let Some(object) = read else { return Ok(None) };
        let lock =
            Lock::deserialize(&object).map_err(Error::permanent).context("cannot read package lock")?;
        Ok(Some((object, lock)))
    }

    /// Puts a revision into the Lock, in the place of its package's other revisions, and says whether all that it depends
    /// on is there.
    pub(super) async fn resolve_dependencies(
        &self,
        log: &RunLog,
        entry: &LockPackage,
        siblings: &[&str],
    ) -> Result<Option<Resolution>> {
        let packages = {
            let _held = self.lock.lock().await;
            let read = self.read_lock(log).await?;
            let packages = read.as_ref().map(|(_, lock)| lock.packages.as_slice()).unwrap_or_default();
            match lock::with_entry(packages, entry, siblings) {
                None => packages.to_vec(),
                Some(packages) => {
                    self.write_lock(log, read.as_ref().map(|(object, _)| object), &packages).await?;
                    packages
                }
            }
        };
        Ok(self.resolution(&packages, &entry.name))
    }

    /// What the entries of the Lock mean for one of them.
    pub(super) fn resolution(&self, packages: &[LockPackage], revision: &str) -> Option<Resolution> {
        let mirrors = self.mirrors(sources(packages));
        resolve_revision(&Graph::new(packages, &mirrors), revision)
    }

    /// Takes a revision out of the Lock.
    pub(super) async fn unlock(&self, log: &RunLog, revision: &str) -> Result<()> {
        let _held = self.lock.lock().await;
        let Some((object, lock)) = self.read_lock(log).await? else { return Ok(()) };
        match lock::without(&lock.packages, revision) {
            Some(packages) => self.write_lock(log, Some(&object), &packages).await,
            None => Ok(()),
        }
    }

    /// Writes the entries of the Lock. Its finalizer keeps it while there are any.
    async fn write_lock(&self, log: &RunLog, object: Option<&Value>, packages: &[LockPackage]) -> Result<()> {
        let Some(object) = object else {
            let lock = json!({
                "apiVersion": kind::PKG_V1BETA1, "kind": kind::LOCK,
                "metadata": {"name": LOCK_NAME, "finalizers": [finalizer::LOCK]}, "packages": packages,
            });
            let created = self.plane.cluster.create(&lock, owner::DEFAULT).await;
            log.wrote(&created.context("cannot create package lock")?);
            return Ok(());
        };
        let mut object = object.clone();
        object["packages"] = json!(packages);
        if !packages.is_empty() && !meta::is_deleting(&object) {
            transom_xapi::metadata::add_finalizer(&mut object, finalizer::LOCK);
        }
        self.plane.update(log, &mut object).await.context("cannot update package lock")
    }
}

/// All sources that the Lock names.
pub(super) fn sources(packages: &[LockPackage]) -> impl Iterator<Item = &str> {
    packages.iter().flat_map(|package| {
        let dependencies = package.dependencies.iter().map(|dependency| dependency.package.as_str());
        std::iter::once(package.source.as_str()).chain(dependencies)
    })
}
