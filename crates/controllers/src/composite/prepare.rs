//! What must be settled before there is anything to compose: the finalizer, the Composition, its revision, the label
//! that prefixes names, the place for connection details. It is written together with the references to what is composed,
//! or at the latest when something else is about to be written: all of it is one write.

use super::Composites;
use serde_json::Value;
use std::sync::Arc;
use transom_engine::{Error, ErrorContext, ReportedError, Result, RunLog, same};
use transom_xapi::composite::Composite;
use transom_xapi::composition::NameReference;
use transom_xapi::constants::{event, finalizer};
use transom_xapi::metadata as notes;
use transom_xapi::selection::{self, CompositionChoice, RevisionChoice};
use transom_xapi::{CompositionRevision, revision};

/// How a composite resource is stored, as far as that differs from what the run has.
pub(super) struct Stored {
    pub(super) status: Value,
    /// Whether what was settled is not written yet.
    pub(super) unsaved: bool,
}

/// Settles it in memory. The caller saves it, also when a later step fails: what was decided stays decided. Returns the
/// revision to compose by; none while the first one of the Composition is still being made.
pub(super) fn prepare(
    composites: &Composites,
    xr: &mut Composite,
    stored: &mut Stored,
) -> Result<Option<Arc<CompositionRevision>>, ReportedError> {
    let before = xr.object.clone();
    notes::add_finalizer(&mut xr.object, finalizer::COMPOSITE);
    let decided = decide(composites, xr);
    stored.unsaved = !same(&xr.object, &before);
    decided
}

fn decide(
    composites: &Composites,
    xr: &mut Composite,
) -> Result<Option<Arc<CompositionRevision>>, ReportedError> {
    select_composition(composites, xr)
        .context("cannot select Composition")
        .with_event_reason(event::composite::SELECT_COMPOSITION)?;
    if let Some(selector) = selection::default_revision_selector(xr, &composites.definition) {
        let selector = selector.clone();
        xr.set_composition_revision_selector(&selector);
        composites.normal(xr, event::composite::COMPOSITION_SELECTION, selection::DEFAULT_REVISION_SELECTOR);
    }
    if let Some(ignored) = selection::ignored_revision_selector(xr, &composites.definition) {
        composites.warning(xr, event::composite::IGNORED, ignored);
    }
    let selected = select_revision(composites, xr)
        .context("cannot fetch Composition")
        .with_event_reason(event::composite::COMPOSE)?;
    let Some(revision) = selected else { return Ok(None) };
    let configuration = selection::configure(xr, &revision)
        .map_err(Error::unfit)
        .context("cannot configure composite resource")
        .with_event_reason(event::composite::COMPOSE)?;
    configuration.apply(xr);
    Ok(Some(revision))
}

fn select_composition(composites: &Composites, xr: &mut Composite) -> Result<()> {
    let name = match selection::composition(xr, &composites.definition) {
        CompositionChoice::Referenced => return Ok(()),
        CompositionChoice::Enforced(name) => {
            composites.normal(xr, event::composite::COMPOSITION_SELECTION, selection::ENFORCED);
            name
        }
        CompositionChoice::Default(name) => {
            composites.normal(xr, event::composite::COMPOSITION_SELECTION, selection::DEFAULT);
            name
        }
        CompositionChoice::Search(labels) => {
            let all = composites.plane.catalog.compositions.all();
            let random = composites.plane.rng.draw();
            let chosen = selection::choose(xr, &labels, all.iter().map(|c| &**c), random);
            chosen.map_err(Error::unfit)?.metadata.name.clone()
        }
    };
    xr.set_composition_ref(&name);
    let words = format!("Successfully selected composition: {name}");
    composites.normal(xr, event::composite::SELECT_COMPOSITION, words);
    Ok(())
}

fn select_revision(composites: &Composites, xr: &mut Composite) -> Result<Option<Arc<CompositionRevision>>> {
    let catalog = &composites.plane.catalog;
    let not_found = |kind: &str, name: &str| Error::Refused {
        code: 404,
        reason: "NotFound".to_owned(),
        message: format!("{kind}.apiextensions.crossplane.io {name:?} not found"),
    };
    let labels = match selection::revision(xr) {
        RevisionChoice::Pinned(name) => {
            let pinned = catalog.revisions.get(&name);
            return pinned
                .ok_or_else(|| not_found("compositionrevisions", &name))
                .context("cannot get CompositionRevision")
                .map(Some);
        }
        RevisionChoice::Latest(labels) => labels,
    };
    let NameReference { name } = xr.composition_ref().unwrap_or_default();
    let composition = catalog.compositions.get(&name);
    let composition =
        composition.ok_or_else(|| not_found("compositions", &name)).context("cannot get Composition")?;
    let revisions = catalog.revisions.of(&name);
    let latest = match selection::latest(&composition, &labels, revisions.iter().map(|r| &**r)) {
        Ok(latest) => latest,
        // A Composition is seen before its revision is: that is no failure.
        Err(_) if revision::is_awaited(&composition, &labels, revisions.iter().map(|r| &**r)) => {
            return Ok(None);
        }
        Err(e) => return Err(Error::unfit(e)),
    };
    let chosen = &latest.metadata.name;
    if xr.composition_revision_ref().is_none_or(|current| current.name != *chosen) {
        xr.set_composition_revision_ref(chosen);
        let words = format!("Selected composition revision: {chosen}");
        composites.normal(xr, event::composite::SELECT_COMPOSITION, words);
    }
    revisions
        .iter()
        .find(|r| r.metadata.name == *chosen)
        .cloned()
        .ok_or_else(|| not_found("compositionrevisions", chosen))
        .map(Some)
}

impl Composites {
    /// Writes what was settled, if that has not been done, with whatever else of the composite resource changed.
    pub(super) async fn save(&self, log: &RunLog, xr: &mut Composite, stored: &mut Stored) -> Result<()> {
        if !stored.unsaved {
            return Ok(());
        }
        // The answer has the status as it was; what is known by now is written later.
        let status = xr.object.get("status").cloned();
        let updated = self.plane.update(log, &mut xr.object).await;
        updated.context("cannot update composite resource")?;
        stored.unsaved = false;
        if let Some(status) = status {
            xr.object["status"] = status;
        }
        Ok(())
    }
}
