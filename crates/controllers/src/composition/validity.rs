//! Whether the functions of a revision's pipeline can run in it.

use crate::catalog::{Catalog, kinds};
use crate::plane::Plane;
use serde::Deserialize;
use std::sync::Arc;
use transom_engine::{Error, ErrorContext, Key, Next, Reconciler, Result, RunLog};
use transom_object::meta;
use transom_xapi::constants::{condition, event, message};
use transom_xapi::function::{self, FunctionRevision};
use transom_xapi::{CompositionRevision, Condition, conditions};

pub(super) const NAME: &str = "revision/compositionrevision.apiextensions.crossplane.io";

/// Whether the functions that are installed can run in a revision's pipeline.
pub(crate) fn verdict(catalog: &Catalog, revision: &CompositionRevision) -> Condition {
    let revisions = catalog.function_revisions.all();
    let installed: Vec<FunctionRevision> =
        revisions.iter().filter(|r| has_reported(r)).map(|r| (**r).clone()).collect();
    function::pipeline_condition(&revision.spec.composition.pipeline, &installed)
}

/// Whether the capabilities of a revision are known. A revision that was just created must not make a pipeline invalid.
fn has_reported(revision: &FunctionRevision) -> bool {
    let status = &revision.status;
    let is_judged = status.conditions.iter().any(|c| c.kind == condition::REVISION_HEALTHY);
    !status.capabilities.is_empty() || is_judged
}

pub(super) struct Revisions {
    pub(super) plane: Arc<Plane>,
}

impl Reconciler for Revisions {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &kinds::revision(), "", &key.name).await;
        let Some(mut object) = read.context("cannot get CompositionRevision")? else { return Ok(Next::Gone) };
        if meta::is_deleting(&object) {
            return Ok(Next::Wait);
        }
        let revision = CompositionRevision::deserialize(&object).map_err(Error::permanent)?;
        let valid = verdict(&self.plane.catalog, &revision);
        let before = object.get("status").cloned();
        let (is_valid, words) = (valid.is_true(), valid.message.clone());
        conditions::mark_observed(
            &mut object,
            [Condition::reconcile_success(), valid],
            self.plane.clock.now(),
        );
        if object.get("status") == before.as_ref() {
            return Ok(Next::Wait);
        }
        let reason = event::composition::CHECK_CAPABILITIES;
        if is_valid {
            self.plane.events.normal(NAME, &object, reason, message::CAPABLE);
        } else {
            self.plane.events.warning(NAME, &object, reason, words);
        }
        self.plane
            .update_status(log, &mut object)
            .await
            .context("cannot update CompositionRevision status")?;
        Ok(Next::Wait)
    }
}
