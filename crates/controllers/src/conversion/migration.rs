//! When the referenceable version of a definition changes, new objects are stored in it and others stay as they are. They are
//! written again here, unchanged, and the API server stores what it writes in the version of today. Then the other versions are
//! removed from `status.storedVersions` of the CRDs, so that the definition may lose them.
//!
//! Nothing records which objects were written: after a restart all of them are written once more, and a write of an object
//! that is stored in the right version already changes nothing.

use super::super::catalog::kinds;
use crate::plane::Plane;
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use transom_engine::{
    Change, Controller, Depth, Error, ErrorContext, Key, Next, Observer, Pace, Queue, Reconciler, Result,
    RunLog,
};
use transom_object::json::strings;
use transom_object::{GroupVersionKind, meta};
use transom_xapi::conditions::{self, Condition};
use transom_xapi::constants::owner;
use transom_xapi::definition::{Definition, is_established};

const NAME: &str = "migration/compositeresourcedefinition.apiextensions.crossplane.io";
/// How many objects are written at the same time: they share a sync of the disk.
const CONCURRENT_WRITES: usize = 16;
/// How often progress is reported.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);
/// How often something is written again that was changed meanwhile.
const WRITE_ATTEMPTS: usize = 5;

/// Starts the controller. CRDs wake the definition that controls them.
pub(crate) fn start(plane: &Arc<Plane>, crd_depth: Depth) -> Controller {
    let mut controller = plane.controller(NAME, Pace::default());
    let queue = controller.queue().clone();
    controller.watch_own(&kinds::definition(), Depth::Header);
    controller.watch(&kinds::crd(), crd_depth, wake_definition(queue));
    controller.start(Migrations { plane: plane.clone() })
}

fn wake_definition(queue: Arc<Queue>) -> Arc<dyn Observer> {
    Arc::new(move |change: &Change<'_>| {
        if let Some(definition) = change.object().and_then(|crd| crd.object.as_str()) {
            change.wake(&queue, &Key::new("", definition));
        }
    })
}

struct Migrations {
    plane: Arc<Plane>,
}

/// A kind of a definition, and what its CRD says of it.
struct Stored {
    crd: Value,
    gvk: GroupVersionKind,
}

impl Stored {
    fn versions(&self) -> Vec<String> {
        strings(&self.crd["status"]["storedVersions"])
    }

    /// Whether new objects are stored in the version of the definition, and some may be stored in another one.
    fn is_behind(&self) -> bool {
        self.versions() != [self.gvk.version.as_ref()]
    }
}

/// What one run decides on.
struct Run<'a> {
    xrd: &'a Value,
    log: &'a RunLog,
    /// The version to store in.
    version: &'a str,
    stored: &'a [Stored],
}

/// The progress that was reported last.
struct Reported<'a> {
    version: &'a str,
    objects: usize,
    at: Instant,
}

impl<'a> Reported<'a> {
    fn new(version: &'a str, objects: usize) -> Self {
        Self { version, objects, at: Instant::now() }
    }

    fn is_due(&self) -> bool {
        self.at.elapsed() >= REPORT_INTERVAL
    }
}

/// Whether a CRD stores new objects in a version.
fn stores_in(crd: &Value, version: &str) -> bool {
    let mut versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    is_established(crd) && versions.any(|v| v["storage"] == true && v["name"] == version)
}

impl Reconciler for Migrations {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &kinds::definition(), "", &key.name).await;
        let Some(xrd) = read.context("cannot get CompositeResourceDefinition")? else {
            return Ok(Next::Gone);
        };
        let definition = Definition::deserialize(&xrd).map_err(Error::permanent)?;
        if meta::is_deleting(&xrd) || definition.conversion_rules().is_none() {
            return Ok(Next::Wait);
        }
        let version = definition.referenceable_version().unwrap_or_default();
        while let Some(stored) = self.stored(log, &definition).await? {
            let run = Run { xrd: &xrd, log, version, stored: &stored };
            if stored.iter().any(Stored::is_behind) {
                self.migrate(&run).await?;
            } else {
                self.report(&run, Condition::storage_migrated(version), None).await?;
                break;
            }
        }
        Ok(Next::Wait)
    }
}

impl Migrations {
    /// The kinds of a definition. None while the CRDs are not what the definition wants: they wake it when they are.
    async fn stored(&self, log: &RunLog, definition: &Definition) -> Result<Option<Vec<Stored>>> {
        let composite = Some((definition.metadata.name.clone(), definition.composite_type()));
        let claim = definition.claim_crd_name().zip(definition.claim_type());
        let mut all = Vec::new();
        for (name, gvk) in composite.into_iter().chain(claim) {
            let crd = self.plane.read(log, &kinds::crd(), "", &name).await;
            match crd.context("cannot get CustomResourceDefinition")? {
                Some(crd) if stores_in(&crd, &gvk.version) => all.push(Stored { crd, gvk }),
                _ => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    async fn migrate(&self, run: &Run<'_>) -> Result<()> {
        let behind: Vec<&Stored> = run.stored.iter().filter(|kind| kind.is_behind()).collect();
        let listed = self.list(&behind).await?;
        let mut reported = Reported::new(run.version, listed.len());
        self.report_progress(run, &mut reported, 0).await?;
        let mut failed = None;
        for (batch, written) in listed.chunks(CONCURRENT_WRITES).zip(1..) {
            failed = failed.or(self.write_all(batch).await);
            let written = listed.len().min(written * CONCURRENT_WRITES);
            if failed.is_none() && (reported.is_due() || written == listed.len()) {
                self.report_progress(run, &mut reported, written).await?;
            }
        }
        // An object that was created while the CRD changed may be stored in the former version, too.
        let seen: HashSet<&str> = listed.iter().map(meta::uid).collect();
        let mut missed = self.list(&behind).await?;
        missed.retain(|object| !seen.contains(meta::uid(object)));
        for batch in missed.chunks(CONCURRENT_WRITES) {
            failed = failed.or(self.write_all(batch).await);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        for kind in behind {
            self.trim(kind).await?;
        }
        Ok(())
    }

    async fn list(&self, kinds: &[&Stored]) -> Result<Vec<Value>> {
        let mut objects = Vec::new();
        for kind in kinds {
            let listed = self.plane.cluster.list(&kind.gvk, "", &BTreeMap::new()).await;
            objects.extend(listed.context(format!("cannot list {}", kind.gvk.kind))?);
        }
        Ok(objects)
    }

    async fn report_progress(
        &self,
        run: &Run<'_>,
        reported: &mut Reported<'_>,
        written: usize,
    ) -> Result<()> {
        let (version, objects) = (reported.version, reported.objects);
        let migration = json!({"version": version, "objects": objects, "written": written});
        let condition = Condition::storage_migrating(version, written, objects);
        reported.at = Instant::now();
        self.report(run, condition, Some(migration)).await
    }

    /// Writes objects at the same time. One that cannot be written keeps the others from nothing; the first error is returned.
    async fn write_all(&self, objects: &[Value]) -> Option<Error> {
        let written = join_all(objects.iter().map(|object| self.write(object))).await;
        written.into_iter().find_map(Result::err)
    }

    /// Writes an object as it is.
    async fn write(&self, object: &Value) -> Result<()> {
        let attempted = || format!("cannot store {} {:?} anew", meta::kind(object), meta::name(object));
        let mut newer = None;
        for attempt in 1.. {
            match self.plane.cluster.update(newer.as_ref().unwrap_or(object), owner::DEFAULT).await {
                Err(error) if error.is_not_found() => return Ok(()),
                // Who wrote it meanwhile may have done so before the new version was stored.
                Err(error) if error.is_conflict() && attempt < WRITE_ATTEMPTS => {}
                written => return written.map(drop).context(attempted()),
            }
            let gvk = meta::gvk(object).ok_or_else(|| Error::domain("it has no kind")).context(attempted())?;
            let read = self.plane.cluster.get(&gvk, meta::namespace(object), meta::name(object)).await;
            match read.context(attempted())? {
                Some(read) if meta::uid(&read) == meta::uid(object) => newer = Some(read),
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Removes the versions that no object is stored in any more, unless the version to store in has changed since.
    async fn trim(&self, kind: &Stored) -> Result<()> {
        let name = meta::name(&kind.crd);
        let read = self.plane.cluster.get(&kinds::crd(), "", name).await;
        let Some(crd) = read.context("cannot get CustomResourceDefinition")? else { return Ok(()) };
        if !stores_in(&crd, &kind.gvk.version) {
            return Ok(());
        }
        let patch = json!({
            "metadata": {"resourceVersion": meta::resource_version(&crd)},
            "status": {"storedVersions": [kind.gvk.version]},
        });
        let patched = self.plane.cluster.merge_patch_status(&crd, &patch, owner::DEFAULT).await;
        patched.map(drop).context(format!("cannot update status of CustomResourceDefinition {name}"))
    }

    /// Writes condition, stored versions and progress into the status of the definition, unless they are there. Fails if
    /// the definition is no longer the one that the run decides on.
    async fn report(&self, run: &Run<'_>, condition: Condition, migration: Option<Value>) -> Result<()> {
        let mut versions: Vec<String> = run.stored.iter().flat_map(Stored::versions).collect();
        versions.sort();
        versions.dedup();
        for attempt in 1.. {
            let read = self.plane.cluster.get(&kinds::definition(), "", meta::name(run.xrd)).await;
            let Some(mut xrd) = read.context("cannot get CompositeResourceDefinition")? else {
                return Ok(());
            };
            if meta::generation(&xrd) != meta::generation(run.xrd) {
                return Err(Error::domain("the definition was changed meanwhile"));
            }
            let before = xrd.get("status").cloned().unwrap_or_default();
            conditions::mark_observed(&mut xrd, [condition.clone()], self.plane.clock.now());
            xrd["status"]["storedVersions"] = json!(versions);
            match &migration {
                Some(migration) => xrd["status"]["migration"] = migration.clone(),
                None => drop(xrd["status"].as_object_mut().and_then(|status| status.remove("migration"))),
            }
            match self.plane.write_status(run.log, &mut xrd, &before).await {
                Err(error) if error.is_conflict() && attempt < WRITE_ATTEMPTS => {}
                written => {
                    return written.map(drop).context("cannot update status of CompositeResourceDefinition");
                }
            }
        }
        Ok(())
    }
}
