//! Calls the plugins in their order, and contains those that fail.

use super::review::{Admission, Endpoint, Operation, Phase, Review, Verdict};
use crate::call::Requester;
use crate::request::{DeleteOptions, WriteOptions};
use crate::resource::Resource;
use crate::subresource::Subresource;
use futures_util::FutureExt;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use transom_object::Status;

/// How long one plugin may take for one review; the longest that Kubernetes allows a webhook.
pub(crate) const REVIEW_TIMEOUT: Duration = Duration::from_secs(30);

/// The plugins of a server, in the order in which they are called.
pub(crate) struct Chain(Vec<Box<dyn Admission>>);

/// The write under review, without its objects.
pub(crate) struct Request<'a> {
    pub(crate) operation: Operation,
    pub(crate) resource: &'a Resource,
    pub(crate) subresource: Subresource,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) options: Options<'a>,
    pub(crate) by: Requester<'a>,
}

/// The options of the write, as the client gave them.
#[derive(Clone, Copy)]
pub(crate) enum Options<'a> {
    Write(&'a WriteOptions),
    Delete(&'a DeleteOptions),
}

impl Request<'_> {
    fn endpoint(&self) -> Endpoint<'_> {
        Endpoint {
            group: &self.resource.group,
            version: &self.resource.version,
            resource: &self.resource.names.plural,
            subresource: self.subresource.as_str(),
        }
    }

    /// The options object of `AdmissionReview`.
    pub(super) fn options_value(&self) -> Value {
        match self.options {
            Options::Delete(options) => options.to_value(),
            Options::Write(options) => options.to_value(if self.operation == Operation::Create {
                "CreateOptions"
            } else {
                "UpdateOptions"
            }),
        }
    }

    /// Nothing will be stored.
    pub(super) fn is_dry_run(&self) -> bool {
        match self.options {
            Options::Write(options) => options.dry_run,
            Options::Delete(options) => options.dry_run,
        }
    }
}

impl Chain {
    pub(crate) fn new(plugins: Vec<Box<dyn Admission>>) -> Self {
        Self(plugins)
    }

    /// Whether any plugin reviews the write in this phase.
    pub(crate) fn wants(&self, phase: Phase, request: &Request<'_>) -> bool {
        self.interested(phase, request).next().is_some()
    }

    fn interested<'a>(
        &'a self,
        phase: Phase,
        request: &'a Request<'_>,
    ) -> impl Iterator<Item = &'a dyn Admission> {
        let endpoint = request.endpoint();
        let wants = move |p: &&dyn Admission| p.wants(phase, request.operation, &endpoint);
        self.0.iter().map(AsRef::as_ref).filter(wants)
    }

    /// The mutating phase: each plugin receives the object as the plugins before it changed it. Returns whether any of
    /// them replaced it.
    pub(crate) async fn mutate(
        &self,
        request: &Request<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<bool, Status> {
        let mut replaced = false;
        for plugin in self.interested(Phase::Mutate, request) {
            if let Some(new) = ask(plugin, Phase::Mutate, request, Some(object), old).await? {
                *object = new;
                replaced = true;
            }
        }
        Ok(replaced)
    }

    /// The validating phase, after which nothing changes the object but the server's own bookkeeping.
    pub(crate) async fn validate(
        &self,
        request: &Request<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        for plugin in self.interested(Phase::Validate, request) {
            ask(plugin, Phase::Validate, request, object, old).await?;
        }
        Ok(())
    }

    /// Both phases of a deletion, in which there is no object to change.
    pub(crate) async fn delete(&self, request: &Request<'_>, old: &Value) -> Result<(), Status> {
        for plugin in self.interested(Phase::Mutate, request) {
            ask(plugin, Phase::Mutate, request, None, Some(old)).await?;
        }
        self.validate(request, None, Some(old)).await
    }
}

/// One review by one plugin. Returns the object that replaces the reviewed one, if any.
async fn ask(
    plugin: &dyn Admission,
    phase: Phase,
    request: &Request<'_>,
    object: Option<&Value>,
    old_object: Option<&Value>,
) -> Result<Option<Value>, Status> {
    let options = request.options_value();
    // A generated name is chosen after the mutating phase.
    let named = object.and_then(|o| o["metadata"]["name"].as_str()).filter(|_| request.name.is_empty());
    let review = Review {
        phase,
        operation: request.operation,
        endpoint: request.endpoint(),
        namespace: request.namespace,
        name: named.unwrap_or(request.name),
        object,
        old_object,
        options: &options,
        user: request.by.user,
        dry_run: request.is_dry_run(),
    };
    let verdict = contained(plugin, &review).await;
    request.by.warn(verdict.warnings);
    match verdict.refusal {
        Some(refusal) => Err(*refusal),
        None => Ok(verdict.object),
    }
}

/// The verdict, or a refusal when the plugin panics or takes too long.
async fn contained(plugin: &dyn Admission, review: &Review<'_>) -> Verdict {
    let name = plugin.name();
    // The block also contains what a plugin does before it returns its future.
    let reviewed = AssertUnwindSafe(async { plugin.review(review).await }).catch_unwind();
    match tokio::time::timeout(REVIEW_TIMEOUT, reviewed).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(_)) => {
            tracing::error!(plugin = name, "an admission plugin panicked; the reviewed write is refused");
            Verdict::refuse(Status::internal(format!(
                "the admission plugin {name:?} failed unexpectedly; see the server's log"
            )))
        }
        Err(_) => {
            tracing::error!(
                plugin = name,
                "an admission plugin took too long; the reviewed write is refused"
            );
            let seconds = REVIEW_TIMEOUT.as_secs();
            Verdict::refuse(Status::internal(format!(
                "the admission plugin {name:?} did not respond within {seconds} seconds"
            )))
        }
    }
}
