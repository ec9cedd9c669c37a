//! By which FunctionRevisions a composite resource is composed, and when an event says so.
//!
//! A new composite resource has no event more because of it: as long as resources are not ready, the event that says so has the
//! names. A caller that starts does not know what composed before, and writes nothing about what stays as it is; what it found
//! then is kept as not reported, so that the first change that follows is not taken for one that was reported.

use super::{Applied, Reconcile};
use crate::condition::Event;
use crate::report::Report;
use crate::status::functions_see_the_same;
use serde_json::Value;
use std::collections::BTreeSet;
use transom_xapi::constants::event;

/// The FunctionRevisions that composed a composite resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComposedBy {
    revisions: BTreeSet<String>,
    /// Whether an event named them.
    reported: bool,
}

/// Whether the FunctionRevisions are to be reported, and what is known of them.
#[derive(Default)]
pub(super) struct Revisions {
    wanted: bool,
    before: Option<ComposedBy>,
    reported: bool,
}

impl Reconcile<'_> {
    /// Has the FunctionRevisions that compose it reported when they are others than before.
    pub fn report_revisions(&mut self, before: Option<ComposedBy>) {
        self.revisions = Revisions { wanted: true, before, reported: false };
    }

    /// The FunctionRevisions that composed it, once it is.
    pub fn composed_by(&self) -> Option<ComposedBy> {
        let is_composed = matches!(self.result, Some(Ok(_)));
        let reported = self.revisions.reported;
        is_composed.then(|| ComposedBy { revisions: self.reads().called().clone(), reported })
    }

    /// Adds the FunctionRevisions that composed it to the events of a report: to the one about resources that are not valid or
    /// not ready, which is the last; without one, as an event of their own when they are news.
    pub(super) fn add_revisions(&mut self, applied: &Applied, report: &mut Report) {
        let Revisions { wanted: true, before, .. } = &self.revisions else { return };
        let called = self.reads().called().clone();
        let is_other = before.as_ref().is_some_and(|before| before.revisions != called);
        let was_reported = before.as_ref().is_some_and(|before| before.reported && !is_other);
        let is_unfinished = !report.unsynced.is_empty() || !report.unready.is_empty();
        let words = format!("FunctionRevisions {}", Vec::from_iter(called.iter().cloned()).join(", "));
        let reported = if called.is_empty() {
            true
        } else if let Some(unfinished) = report.events.last_mut().filter(|_| is_unfinished) {
            unfinished.message.push_str(&format!(" (composed by {words})"));
            true
        } else if is_other || (!was_reported && self.has_changed(applied)) {
            report.events.push(Event::normal(event::composite::COMPOSE, format!("Composed by {words}")));
            true
        } else {
            was_reported
        };
        self.revisions.reported = reported;
    }

    /// Whether this run changed anything that functions can see.
    fn has_changed(&self, applied: &Applied) -> bool {
        let after = self.xr.object.get("status").unwrap_or(&Value::Null);
        applied.changed || self.first.is_some() || !functions_see_the_same(&self.stored_status, after)
    }
}
