//! Creations, and the record of them that keeps anything from being created twice.

use super::Run;
use super::attempt::{CREATE, PUBLISH, WRITE};
use crate::external::External;
use serde_json::json;
use std::time::Duration;
use transom_engine::{Error, ErrorContext, Next, Result};
use transom_object::time::{self, Timestamp};
use transom_xapi::Condition;
use transom_xapi::connection::Details;
use transom_xapi::constants::annotation;
use transom_xapi::metadata::{self, CREATE_FAILED, CREATE_PENDING, CREATE_SUCCEEDED};

/// How often the annotations that record a creation are written until it is given up.
const RECORD_ATTEMPTS: u32 = 8;
/// The wait before the second attempt. It doubles with each further one.
const RECORD_INTERVAL: Duration = Duration::from_millis(10);

impl<E: External> Run<'_, E> {
    /// Records that a creation begins, before it does. The write fails if the object is out of date, so that of two
    /// processes at most one creates; and whichever process reads the object next knows that something may exist.
    pub(super) async fn begin_creation(&mut self) -> Result<Option<Next>> {
        let begins = self.after_former_creation(self.engine().clock.now());
        metadata::set_noted_time(&mut self.object, CREATE_PENDING, begins);
        match self.update().await {
            Ok(()) => Ok(None),
            Err(e) => self.fail(&WRITE, e, Some(Condition::creating())).await.map(Some),
        }
    }

    /// Times have whole seconds. A creation that begins in the second in which the one before ended gets the next second:
    /// otherwise the end of the one before would pass for its own.
    fn after_former_creation(&self, now: Timestamp) -> Timestamp {
        let ends = [CREATE_SUCCEEDED, CREATE_FAILED].map(|key| metadata::noted_time(&self.object, key));
        let former = ends.into_iter().flatten().max();
        let next = former.and_then(|end| end.checked_add(Duration::from_secs(1)).ok());
        next.map_or(now, |next| next.max(now))
    }

    pub(super) async fn creation_failed(&mut self, error: Error) -> Result<Next> {
        self.note_creation(CREATE_FAILED);
        if let Err(e) = self.record_creation().await {
            self.warning(WRITE.reason, e.chain().to_string());
        }
        if error.is_conflict() {
            return Err(error);
        }
        self.fail(&CREATE, error, Some(Condition::creating())).await
    }

    pub(super) async fn created(
        &mut self,
        connection: Details,
        external_name: Option<String>,
    ) -> Result<Next> {
        if let Some(name) = external_name {
            self.created.insert(annotation::EXTERNAL_NAME.to_owned(), name.into());
        }
        self.note_creation(CREATE_SUCCEEDED);
        if let Err(e) = self.record_creation().await {
            return self.fail(&WRITE, e, Some(Condition::creating())).await;
        }
        if let Err(e) = self.publish(&connection).await {
            return self.fail(&PUBLISH, e, Some(Condition::creating())).await;
        }
        self.normal("CreatedExternalResource", "Successfully requested creation of external resource");
        self.finish([Condition::creating(), Condition::reconcile_success()]).await?;
        // What was created is observed at once; if it is not visible yet, after longer and longer waits.
        Ok(Next::Again)
    }

    fn note_creation(&mut self, outcome: &str) {
        let (now, begun) = (self.engine().clock.now(), metadata::noted_time(&self.object, CREATE_PENDING));
        let ended = time::format(begun.map_or(now, |begun| begun.max(now)));
        self.created.insert(outcome.to_owned(), ended.into());
    }

    /// Writes what is known of a creation, whatever else changed meanwhile: only annotations are added.
    async fn record_creation(&mut self) -> Result<()> {
        let patch = json!({"metadata": {"annotations": self.created}});
        let (mut attempt, mut wait) = (1, RECORD_INTERVAL);
        loop {
            let shared = &self.managed.shared;
            match shared.engine.cluster.merge_patch(&self.object, &patch, shared.manager).await {
                Ok(object) => {
                    self.log.wrote(&object);
                    self.object = object;
                    self.created.clear();
                    return Ok(());
                }
                Err(e) if attempt == RECORD_ATTEMPTS || e.is_not_found() => {
                    return Err(e).context("cannot update managed resource annotations");
                }
                Err(_) => tokio::time::sleep(wait).await,
            }
            attempt += 1;
            wait *= 2;
        }
    }
}
