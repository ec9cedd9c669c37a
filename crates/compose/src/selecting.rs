//! Choosing the Composition and its revision, and what a composite resource is given before it is composed.
//!
//! The choice is made in memory. It is written together with the references to what is composed, or earlier if something
//! else has to be written: all of it is one write.

use crate::catalog::Catalog;
use crate::condition::Event;
use crate::json_equality::same;
use std::sync::Arc;
use transom_xapi::composite::Composite;
use transom_xapi::composition::{LabelMatch, NameReference};
use transom_xapi::constants::{event, finalizer};
use transom_xapi::metadata::add_finalizer;
use transom_xapi::selection::{self, CompositionChoice, RevisionChoice};
use transom_xapi::{Composition, CompositionRevision, CompositionSpec, Definition, revision};

/// How the Composition of a composite resource is chosen.
#[derive(Clone, Copy)]
pub enum Selection<'a> {
    /// From a catalog, as the composite resource and its definition say.
    Catalog {
        /// What is installed.
        catalog: &'a dyn Catalog,
        /// The definition of the composite resource.
        definition: &'a Definition,
    },
    /// This one. It is noted in memory, and written only if something else is.
    Given(&'a Composition),
}

/// How a composite resource is composed.
#[derive(Clone, Debug)]
pub(crate) enum Chosen<'a> {
    Revision(Arc<CompositionRevision>),
    Composition(&'a Composition),
}

impl Chosen<'_> {
    pub(crate) fn spec(&self) -> &CompositionSpec {
        match self {
            Self::Revision(revision) => &revision.spec.composition,
            Self::Composition(composition) => &composition.spec,
        }
    }
}

/// A choice that failed: the reason that its event carries, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Trouble {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// The selected Composition.
pub(crate) struct Selected<'a> {
    /// `None` while the first revision of the Composition is still being made.
    pub(crate) chosen: Result<Option<Chosen<'a>>, Trouble>,
    /// Whether the composite resource was changed in a way that is to be written.
    pub(crate) changed: bool,
    pub(crate) events: Vec<Event>,
}

/// Chooses, and gives the composite resource what composing needs. What was decided stays decided if a later step fails.
pub(crate) fn select<'a>(xr: &mut Composite, selection: &Selection<'a>, random: u32) -> Selected<'a> {
    let mut events = Vec::new();
    let (before, chosen) = match *selection {
        Selection::Catalog { catalog, definition } => {
            let before = xr.object.clone();
            add_finalizer(&mut xr.object, finalizer::COMPOSITE);
            let chosen = from_catalog(xr, catalog, definition, random, &mut events);
            (before, chosen.map(|revision| revision.map(Chosen::Revision)))
        }
        Selection::Given(composition) => {
            note(xr, composition, &mut events);
            let before = xr.object.clone();
            let configured = configure(xr, &composition.spec);
            (before, configured.map(|()| Some(Chosen::Composition(composition))))
        }
    };
    Selected { chosen, changed: !same(&xr.object, &before), events }
}

/// Notes which Composition is used.
fn note(xr: &mut Composite, composition: &Composition, events: &mut Vec<Event>) {
    let name = &composition.metadata.name;
    let noted = xr.composition_ref().is_some_and(|reference| reference.name == *name);
    xr.set_composition_ref(name);
    if !noted {
        events.push(selected_composition(name));
    }
}

fn selected_composition(name: &str) -> Event {
    let message = format!("Successfully selected composition: {name}");
    Event::normal(event::composite::SELECT_COMPOSITION, message)
}

fn configure(xr: &mut Composite, composition: &CompositionSpec) -> Result<(), Trouble> {
    let configuration = selection::configure(xr, composition).map_err(|e| {
        Trouble::new(event::composite::COMPOSE, format!("cannot configure composite resource: {e}"))
    })?;
    configuration.apply(xr);
    Ok(())
}

fn from_catalog(
    xr: &mut Composite,
    catalog: &dyn Catalog,
    definition: &Definition,
    random: u32,
    events: &mut Vec<Event>,
) -> Result<Option<Arc<CompositionRevision>>, Trouble> {
    select_composition(xr, catalog, definition, random, events)?;
    if let Some(selector) = selection::default_revision_selector(xr, definition) {
        xr.set_composition_revision_selector(&selector.clone());
        let message = selection::DEFAULT_REVISION_SELECTOR;
        events.push(Event::normal(event::composite::COMPOSITION_SELECTION, message));
    }
    let selected = select_revision(xr, catalog, definition, events)
        .map_err(|e| Trouble::new(event::composite::COMPOSE, format!("cannot fetch Composition: {e}")))?;
    let Some(revision) = selected else { return Ok(None) };
    configure(xr, &revision.spec.composition)?;
    revision::must_be_valid(&revision, || catalog.valid_pipeline(&revision))
        .map_err(|e| Trouble::new(event::composite::COMPOSE, e.to_string()))?;
    Ok(Some(revision))
}

fn select_composition(
    xr: &mut Composite,
    catalog: &dyn Catalog,
    definition: &Definition,
    random: u32,
    events: &mut Vec<Event>,
) -> Result<(), Trouble> {
    let default = |message| Event::normal(event::composite::COMPOSITION_SELECTION, message);
    let name = match selection::composition(xr, definition) {
        CompositionChoice::Referenced => return Ok(()),
        CompositionChoice::Enforced(name) => {
            events.push(default(selection::ENFORCED));
            name
        }
        CompositionChoice::Default(name) => {
            events.push(default(selection::DEFAULT));
            name
        }
        CompositionChoice::Search(labels) => {
            let all = catalog.compositions();
            let chosen = selection::choose(xr, &labels, all.iter().map(|c| &**c), random).map_err(|e| {
                let message = format!("cannot select Composition: {e}");
                Trouble::new(event::composite::SELECT_COMPOSITION, message)
            })?;
            chosen.metadata.name.clone()
        }
    };
    xr.set_composition_ref(&name);
    events.push(selected_composition(&name));
    Ok(())
}

fn not_found(resource: &str, name: &str) -> String {
    format!("{resource}.apiextensions.crossplane.io {name:?} not found")
}

fn select_revision(
    xr: &mut Composite,
    catalog: &dyn Catalog,
    definition: &Definition,
    events: &mut Vec<Event>,
) -> Result<Option<Arc<CompositionRevision>>, String> {
    let (current, labels) = match selection::revision(xr) {
        RevisionChoice::Pinned(name) => return pinned(catalog, &name).map(Some),
        RevisionChoice::Latest(labels) => return latest(xr, catalog, &labels, events),
        RevisionChoice::Kept { current, labels } => (current, labels),
    };
    let has_labels = |r: &CompositionRevision| labels.matches(&r.metadata.label_map());
    if let Some(kept) = current.as_deref().and_then(|name| catalog.revision(name)).filter(|r| has_labels(r)) {
        return Ok(Some(kept));
    }
    let NameReference { name } = xr.composition_ref().unwrap_or_default();
    let is_awaited = |composition: Arc<Composition>| {
        revision::is_awaited(&composition, &labels, catalog.revisions_of(&name).iter().map(|r| &**r))
    };
    if catalog.revisions_of(&name).iter().any(|r| has_labels(r))
        || catalog.composition(&name).is_some_and(is_awaited)
    {
        return latest(xr, catalog, &labels, events);
    }
    if selection::is_own_revision_selector(&labels, definition) {
        events.push(Event::warning(event::composite::IGNORED, selection::IGNORED_REVISION_SELECTOR));
    }
    match current {
        Some(name) => pinned(catalog, &name).map(Some),
        None => latest(xr, catalog, &LabelMatch::default(), events),
    }
}

fn pinned(catalog: &dyn Catalog, name: &str) -> Result<Arc<CompositionRevision>, String> {
    let missing = || format!("cannot get CompositionRevision: {}", not_found("compositionrevisions", name));
    catalog.revision(name).ok_or_else(missing)
}

/// The latest revision with these labels, which the composite resource refers to from now on; `None` while it is being made.
fn latest(
    xr: &mut Composite,
    catalog: &dyn Catalog,
    labels: &LabelMatch,
    events: &mut Vec<Event>,
) -> Result<Option<Arc<CompositionRevision>>, String> {
    let NameReference { name } = xr.composition_ref().unwrap_or_default();
    let missing = || format!("cannot get Composition: {}", not_found("compositions", &name));
    let composition = catalog.composition(&name).ok_or_else(missing)?;
    let revisions = catalog.revisions_of(&name);
    let latest = match selection::latest(&composition, labels, revisions.iter().map(|r| &**r)) {
        Ok(latest) => latest,
        // A Composition exists before its first revision does: that is not a failure.
        Err(_) if revision::is_awaited(&composition, labels, revisions.iter().map(|r| &**r)) => {
            return Ok(None);
        }
        Err(e) => return Err(e.to_string()),
    };
    let chosen = &latest.metadata.name;
    if xr.composition_revision_ref().is_none_or(|current| current.name != *chosen) {
        xr.set_composition_revision_ref(chosen);
        let message = format!("Selected composition revision: {chosen}");
        events.push(Event::normal(event::composite::SELECT_COMPOSITION, message));
    }
    let found = revisions.iter().find(|r| r.metadata.name == *chosen).cloned();
    found.ok_or_else(|| not_found("compositionrevisions", chosen)).map(Some)
}
