//! The input and the result of a plugin.

use crate::auth::Identity;
use async_trait::async_trait;
use serde_json::Value;
use transom_object::Status;

/// What happens to the reviewed object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object, or a body such as a TokenRequest that is answered and not stored.
    Create,
    /// A change of an object or of one of its subresources.
    Update,
    /// A deletion, of one object or of one among the selected.
    Delete,
    /// A connection to an object, such as `exec`. No endpoint of this server connects yet.
    Connect,
}

impl Operation {
    /// As `AdmissionReview` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The two times at which plugins are called during one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before validation. The object may be changed.
    Mutate,
    /// After validation. The object is what will be stored.
    Validate,
}

/// The endpoint a request goes to, as rules of webhook configurations name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The version of the request.
    pub version: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
}

/// One write under review.
#[derive(Clone, Copy, Debug)]
pub struct Review<'a> {
    /// Whether the object may still be changed.
    pub phase: Phase,
    /// What happens to the object.
    pub operation: Operation,
    /// Where the request went.
    pub endpoint: Endpoint<'a>,
    /// Empty for objects without a namespace.
    pub namespace: &'a str,
    /// Empty while a generated name is not chosen yet.
    pub name: &'a str,
    /// The object to be stored; `None` for a deletion.
    pub object: Option<&'a Value>,
    /// The stored object; `None` for a creation.
    pub old_object: Option<&'a Value>,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions` of `meta.k8s.io/v1`.
    pub options: &'a Value,
    /// The client, after impersonation.
    pub user: &'a Identity,
    /// Nothing will be stored; a plugin must not have side effects.
    pub dry_run: bool,
}

/// What a plugin decided.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The response to the client instead of the write.
    pub refusal: Option<Box<Status>>,
    /// The object to continue with, as the requested version serves it. Used in [`Phase::Mutate`] only.
    pub object: Option<Value>,
    /// Sent to the client as `Warning` headers, whether or not the request succeeds.
    pub warnings: Vec<String>,
}

impl Verdict {
    /// The write continues unchanged.
    pub fn allow() -> Self {
        Self::default()
    }

    /// The write fails with this response.
    pub fn refuse(status: Status) -> Self {
        Self { refusal: Some(Box::new(status)), ..Self::default() }
    }

    /// The write continues with another object.
    pub fn replace(object: Value) -> Self {
        Self { object: Some(object), ..Self::default() }
    }

    /// Adds a warning for the client.
    #[must_use]
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }
}

/// A plugin that reviews writes, whatever their kind.
#[async_trait]
pub trait Admission: Send + Sync {
    /// Names the plugin in logs and errors.
    fn name(&self) -> &str;

    /// Whether it reviews such writes at all. Called on every write: must neither block nor allocate.
    fn wants(&self, phase: Phase, operation: Operation, endpoint: &Endpoint<'_>) -> bool;

    /// Reviews one write. The client waits for it.
    async fn review(&self, review: &Review<'_>) -> Verdict;
}
