//! A revision for every state that a Composition was in.

use crate::catalog::kinds;
use crate::plane::Plane;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_engine::{Error, ErrorContext, Key, Next, Reconciler, ReportedError, Result, RunLog};
use transom_object::meta;
use transom_xapi::constants::{event, kind, label, message, owner};
use transom_xapi::metadata::{add_controller, controller_reference};
use transom_xapi::revision::{self, Step};
use transom_xapi::{Composition, CompositionRevision};

pub(super) const NAME: &str = "revisions/composition.apiextensions.crossplane.io";

pub(super) struct Compositions {
    pub(super) plane: Arc<Plane>,
}

impl Reconciler for Compositions {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &kinds::composition(), "", &key.name).await;
        let Some(object) = read.context("cannot get Composition")? else { return Ok(Next::Gone) };
        if meta::is_deleting(&object) {
            return Ok(Next::Wait);
        }
        let composition = Composition::deserialize(&object).map_err(Error::permanent)?;
        let labels = BTreeMap::from([(label::COMPOSITION_NAME.to_owned(), key.name.to_string())]);
        let listed = self.plane.cluster.list(&kinds::revision(), "", &labels).await;
        let listed = listed.context("cannot list CompositionRevisions");
        let listed = self.report(&object, listed.with_event_reason(event::composition::CREATE_REVISION))?;
        listed.iter().for_each(|r| log.read(r));
        let revisions: Vec<CompositionRevision> =
            listed.iter().filter_map(|r| CompositionRevision::deserialize(r).ok()).collect();
        let steps = revision::plan(&composition, &revisions)
            .map_err(Error::permanent)
            .context("cannot own CompositionRevision")
            .with_event_reason(event::composition::UPDATE_REVISION);
        for step in self.report(&object, steps)? {
            let is_new = matches!(step, Step::Create { .. });
            self.take(log, &object, &listed, step).await?;
            for ignored in composition.spec.ignored().into_iter().filter(|_| is_new) {
                let reason = event::composition::CREATE_REVISION;
                self.plane.events.warning(NAME, &object, reason, ignored);
            }
        }
        Ok(Next::Wait)
    }
}

impl Compositions {
    async fn take(&self, log: &RunLog, composition: &Value, revisions: &[Value], step: Step) -> Result<()> {
        match step {
            Step::Update { name, adopt, number } => {
                let Some(mut revision) = revisions.iter().find(|r| meta::name(r) == name).cloned() else {
                    return Ok(());
                };
                if adopt {
                    let (name, uid) = (meta::name(composition), meta::uid(composition));
                    let owner = controller_reference(kind::APIEXTENSIONS_V1, kind::COMPOSITION, name, uid);
                    add_controller(&mut revision, owner).map_err(Error::permanent)?;
                }
                revision["spec"]["revision"] = number.into();
                let updated = self.plane.update(log, &mut revision).await;
                let updated = updated.context("cannot update CompositionRevision spec");
                self.report(composition, updated.with_event_reason(event::composition::UPDATE_REVISION))
            }
            Step::Create { revision, .. } => {
                let created = self.plane.cluster.create(&revision, owner::DEFAULT).await;
                let created = created.context("cannot create CompositionRevision");
                let reason = event::composition::CREATE_REVISION;
                let created = self.report(composition, created.with_event_reason(reason))?;
                log.wrote(&created);
                self.plane.events.normal(NAME, composition, reason, message::CREATED_REVISION);
                Ok(())
            }
        }
    }

    /// Records an error on the Composition before it is returned.
    fn report<T>(&self, composition: &Value, result: Result<T, ReportedError>) -> Result<T> {
        self.plane.events.report(NAME, composition, result)
    }
}
