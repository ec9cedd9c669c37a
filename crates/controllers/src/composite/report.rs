//! What others are told about a composite resource: events, and the operator's one line.

use super::Composites;
use super::reconcile::{READY, is_true};
use crate::plane::Notice;
use serde_json::Value;
use transom_compose::{Event, Target};
use transom_object::{GroupVersion, meta};
use transom_xapi::composite::Composite;
use transom_xapi::conditions;
use transom_xapi::constants::condition;

/// How a composite resource was before a reconcile.
pub(super) struct Report<'a> {
    composites: &'a Composites,
    ready: bool,
    problem: Option<String>,
}

fn problem(xr: &Value) -> Option<String> {
    let synced = conditions::get(&conditions::of(xr), condition::SYNCED);
    (synced.status == "False" && synced.reason == "ReconcileError").then_some(synced.message)
}

impl<'a> Report<'a> {
    pub(super) fn before(composites: &'a Composites, xr: &Value) -> Self {
        Self { composites, ready: is_true(xr, READY), problem: problem(xr) }
    }

    /// Announces what users wait for: that it is ready now, or has a new problem.
    pub(super) fn after(self, xr: &Value) {
        let new = problem(xr);
        let became_ready = !self.ready && is_true(xr, READY) && new.is_none();
        let failed = new.is_some() && new != self.problem;
        if became_ready || failed {
            (self.composites.plane.announce)(&Notice {
                kind: meta::kind(xr).to_owned(),
                namespace: meta::namespace(xr).to_owned(),
                name: meta::name(xr).to_owned(),
                problem: new,
            });
        }
    }
}

impl Composites {
    pub(super) fn normal(&self, xr: &Composite, reason: &str, words: impl Into<String>) {
        self.plane.events.normal(&self.name, &xr.object, reason, words);
    }

    pub(super) fn warning(&self, xr: &Composite, reason: &str, words: impl Into<String>) {
        self.plane.events.warning(&self.name, &xr.object, reason, words);
    }

    /// Records what functions say, on the composite resource and, if they say so, on its claim.
    pub(super) async fn tell(&self, xr: &Composite, events: &[Event]) {
        let for_claim = events.iter().any(|e| e.target == Target::CompositeAndClaim);
        let claim = if for_claim { self.claim_of(xr).await } else { None };
        for event in events {
            self.plane.events.record(&self.name, &xr.object, event.r#type, &event.reason, &event.text());
            if let (Target::CompositeAndClaim, Some(claim)) = (event.target, &claim) {
                self.plane.events.record(&self.name, claim, event.r#type, &event.reason, &event.message);
            }
        }
    }

    /// The claim of a composite resource. Not finding it fails nothing.
    async fn claim_of(&self, xr: &Composite) -> Option<Value> {
        let reference = xr.claim_ref()?;
        let gvk = GroupVersion::parse(&reference.api_version)?.with_kind(&*reference.kind);
        self.plane.cluster.get(&gvk, &reference.namespace, &reference.name).await.ok().flatten()
    }
}
