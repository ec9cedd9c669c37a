//! Announces what users wait for: that a composite resource is ready, or that it has a new problem.

use crate::plane::{Announce, Notice};
use serde_json::Value;
use transom_object::meta;
use transom_xapi::conditions;
use transom_xapi::constants::condition;

/// The state of a composite resource before a reconcile.
pub(super) struct Announcement {
    ready: bool,
    problem: Option<String>,
}

fn is_ready(xr: &Value) -> bool {
    conditions::get(&conditions::of(xr), condition::READY).is_true()
}

fn problem(xr: &Value) -> Option<String> {
    let synced = conditions::get(&conditions::of(xr), condition::SYNCED);
    (synced.status == "False" && synced.reason == "ReconcileError").then_some(synced.message)
}

impl Announcement {
    pub(super) fn before(xr: &Value) -> Self {
        Self { ready: is_ready(xr), problem: problem(xr) }
    }

    /// Announces what is different after the reconcile.
    pub(super) fn after(self, announce: &Announce, xr: &Value) {
        let problem = problem(xr);
        let became_ready = !self.ready && is_ready(xr) && problem.is_none();
        let failed = problem.is_some() && problem != self.problem;
        if became_ready || failed {
            announce(&Notice {
                kind: meta::kind(xr).to_owned(),
                namespace: meta::namespace(xr).to_owned(),
                name: meta::name(xr).to_owned(),
                problem,
            });
        }
    }
}
