//! A revision for every state that a Composition was in.

use crate::catalog::kinds;
use crate::plane::Plane;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_engine::{Error, ErrorContext, Key, Next, Reconciler, Result, RunLog};
use transom_object::meta;
use transom_xapi::constants::{event, kind, label, message, owner};
use transom_xapi::metadata::{add_controller, controller_reference};
use transom_xapi::revision::{self, Step};
use transom_xapi::{Composition, CompositionRevision};

const NAME: &str = "revisions/composition.apiextensions.crossplane.io";

pub(super) struct Compositions {
    pub(super) plane: Arc<Plane>,
}

impl Compositions {
    async fn run(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &kinds::composition(), "", &key.name).await;
        let Some(object) = read.context("cannot get Composition")? else { return Ok(Next::Gone) };
        if meta::is_deleting(&object) {
            return Ok(Next::Wait);
        }
        let composition = Composition::deserialize(&object).map_err(|e| Error::unfit(e.to_string()))?;
        if let Some(fields) = composition.spec.without_effect() {
            self.plane.events.warning(NAME, &object, event::composition::NO_EFFECT, fields);
        }
        let labels = BTreeMap::from([(label::COMPOSITION_NAME.to_owned(), key.name.to_string())]);
        let listed = self.plane.cluster.list(&kinds::revision(), "", &labels).await;
        let listed = self.tell(
            &object,
            event::composition::CREATE_REVISION,
            listed.context("cannot list CompositionRevisions"),
        )?;
        listed.iter().for_each(|r| log.read(r));
        let revisions: Vec<CompositionRevision> =
            listed.iter().filter_map(|r| CompositionRevision::deserialize(r).ok()).collect();
        let steps = revision::plan(&composition, &revisions)
            .map_err(|e| Error::unfit(e.to_string()))
            .context("cannot own CompositionRevision");
        for step in self.tell(&object, event::composition::UPDATE_REVISION, steps)? {
            let is_new = matches!(step, Step::Create { .. });
            self.take(log, &object, &listed, step).await?;
            for ignored in composition.spec.ignored().into_iter().filter(|_| is_new) {
                let reason = event::composition::CREATE_REVISION;
                self.plane.events.warning(NAME, &object, reason, ignored);
            }
        }
        Ok(Next::Wait)
    }

    async fn take(&self, log: &RunLog, composition: &Value, revisions: &[Value], step: Step) -> Result<()> {
        match step {
            Step::Update { name, adopt, number } => {
                let Some(mut revision) = revisions.iter().find(|r| meta::name(r) == name).cloned() else {
                    return Ok(());
                };
                if adopt {
                    let (name, uid) = (meta::name(composition), meta::uid(composition));
                    let owner = controller_reference(kind::APIEXTENSIONS_V1, kind::COMPOSITION, name, uid);
                    add_controller(&mut revision, owner).map_err(|e| Error::unfit(e.to_string()))?;
                }
                revision["spec"]["revision"] = number.into();
                let updated = self.plane.update(log, &mut revision).await;
                let updated = updated.context("cannot update CompositionRevision spec");
                self.tell(composition, event::composition::UPDATE_REVISION, updated)
            }
            Step::Create { revision, .. } => {
                let created = self.plane.cluster.create(&revision, owner::DEFAULT).await;
                let created = created.context("cannot create CompositionRevision");
                let created = self.tell(composition, event::composition::CREATE_REVISION, created)?;
                log.wrote(&created);
                let reason = event::composition::CREATE_REVISION;
                self.plane.events.normal(NAME, composition, reason, message::CREATED_REVISION);
                Ok(())
            }
        }
    }

    fn tell<T>(&self, composition: &Value, reason: &str, result: Result<T>) -> Result<T> {
        if let Err(e) = &result
            && !e.is_conflict()
        {
            self.plane.events.warning(NAME, composition, reason, e.to_string());
        }
        result
    }
}

impl Reconciler for Compositions {
    fn name(&self) -> &str {
        NAME
    }

    fn reconcile<'a>(&'a self, key: &'a Key, log: &'a RunLog) -> BoxFuture<'a, Result<Next>> {
        Box::pin(self.run(key, log))
    }
}
