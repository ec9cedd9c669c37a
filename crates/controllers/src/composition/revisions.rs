//! A revision for every state that a Composition was in.

use crate::catalog::kinds;
use crate::engine::{Key, Next, Pass, Reconciler};
use crate::error::{Attempt, Error, Result};
use crate::plane::Plane;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
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
    async fn run(&self, key: &Key, pass: &Pass) -> Result<Next> {
        let read = self.plane.read(pass, &kinds::composition(), "", &key.name).await;
        let Some(object) = read.to("cannot get Composition")? else { return Ok(Next::Gone) };
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
            listed.to("cannot list CompositionRevisions"),
        )?;
        listed.iter().for_each(|r| pass.read(r));
        let revisions: Vec<CompositionRevision> =
            listed.iter().filter_map(|r| CompositionRevision::deserialize(r).ok()).collect();
        let steps = revision::plan(&composition, &revisions)
            .map_err(|e| Error::unfit(e.to_string()))
            .to("cannot own CompositionRevision");
        for step in self.tell(&object, event::composition::UPDATE_REVISION, steps)? {
            let is_new = matches!(step, Step::Create { .. });
            self.take(pass, &object, &listed, step).await?;
            for ignored in composition.spec.ignored().into_iter().filter(|_| is_new) {
                let reason = event::composition::CREATE_REVISION;
                self.plane.events.warning(NAME, &object, reason, ignored);
            }
        }
        Ok(Next::Wait)
    }

    async fn take(&self, pass: &Pass, composition: &Value, revisions: &[Value], step: Step) -> Result<()> {
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
                let updated = self.plane.update(pass, &mut revision).await;
                let updated = updated.to("cannot update CompositionRevision spec");
                self.tell(composition, event::composition::UPDATE_REVISION, updated)
            }
            Step::Create { revision, .. } => {
                let created = self.plane.cluster.create(&revision, owner::DEFAULT).await;
                let created = created.to("cannot create CompositionRevision");
                let created = self.tell(composition, event::composition::CREATE_REVISION, created)?;
                pass.wrote(&created);
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

    fn reconcile<'a>(&'a self, key: &'a Key, pass: &'a Pass) -> BoxFuture<'a, Result<Next>> {
        Box::pin(self.run(key, pass))
    }
}
