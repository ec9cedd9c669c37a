//! What a reconcile writes to the managed resource, and how it reports what went wrong.

use super::Run;
use super::attempt::Attempt;
use crate::external::External;
use crate::secret;
use serde_json::{Map, Value};
use transom_engine::{Error, ErrorContext, Next, Result};
use transom_xapi::connection::Details;
use transom_xapi::constants::condition;
use transom_xapi::{Condition, conditions};

/// What the status will say, collected until it is written: writing the object in between does not lose it.
#[derive(Default)]
pub(super) struct Report {
    /// As the provider set them.
    pub(super) conditions: Vec<Condition>,
    pub(super) at_provider: Option<Value>,
    pub(super) changed_fields: Map<String, Value>,
    pub(super) handled_request: Option<String>,
}

impl<E: External> Run<'_, E> {
    /// Writes the object as a whole: a stale object is refused.
    pub(super) async fn update(&mut self) -> Result<()> {
        let mut object = std::mem::take(&mut self.object);
        let written = self.engine().update(self.log, &mut object).await;
        self.object = object;
        written
    }

    pub(super) async fn publish(&self, details: &Details) -> Result<()> {
        let layout = self.managed.kind.layout;
        secret::publish(self.engine(), self.log, &self.object, layout, details).await
    }

    pub(super) async fn fail(
        &mut self,
        attempt: &Attempt,
        error: Error,
        ready: Option<Condition>,
    ) -> Result<Next> {
        if error.is_conflict() {
            return Err(error);
        }
        self.warning(attempt.reason, error.chain().to_string());
        let error = match attempt.words {
            "" => error,
            words => Error::During { context: words.to_owned(), source: Box::new(error) },
        };
        self.fail_silently(error, ready).await
    }

    /// Without an event.
    pub(super) async fn fail_silently(&mut self, error: Error, ready: Option<Condition>) -> Result<Next> {
        if error.is_conflict() {
            return Err(error);
        }
        let words = error.chain().to_string();
        tracing::debug!(controller = &*self.managed.name, key = %self.key, error = words, "cannot reconcile");
        self.finish(ready.into_iter().chain([Condition::reconcile_error(words)])).await?;
        Ok(Next::Failed)
    }

    /// Writes the status: what the provider reported, then what the reconciler says.
    pub(super) async fn finish(&mut self, own: impl IntoIterator<Item = Condition>) -> Result<()> {
        let before = self.object.get("status").cloned().unwrap_or_default();
        let now = self.engine().clock.now();
        let report = std::mem::take(&mut self.report);
        if let Some(at_provider) = report.at_provider {
            self.object["status"]["atProvider"] = at_provider;
        }
        for (field, value) in report.changed_fields {
            self.object["status"]["atProvider"][field] = value;
        }
        if let Some(token) = report.handled_request {
            self.object["status"]["lastHandledReconcileAt"] = token.into();
        }
        let (up_to_date, others): (Vec<_>, Vec<_>) =
            report.conditions.into_iter().partition(|reported| reported.kind == condition::UP_TO_DATE);
        conditions::mark(&mut self.object, others, now);
        conditions::mark_observed(&mut self.object, own.into_iter().chain(up_to_date), now);
        let mut object = std::mem::take(&mut self.object);
        let written = self.engine().write_status(self.log, &mut object, &before).await;
        self.object = object;
        written.map(drop).context("cannot update managed resource status")
    }
}
