//! What the engine may read. A Kubernetes client, files and a map in memory are worlds.

use crate::lookup::Lookup;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use transom_function::async_trait;
use transom_object::quote::quote;
use transom_object::{GroupVersion, GroupVersionKind};
use transom_xapi::AccountReference;

/// An error of a client of the API, as its own crate defines it.
pub type ClientError = Box<dyn std::error::Error + Send + Sync>;

/// Why a world could not answer. Nothing found is an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The text is not the `apiVersion` of any kind.
    #[error("{0:?} is not an apiVersion")]
    ApiVersion(String),
    /// The reader has no right to read this.
    #[error(transparent)]
    Forbidden(Box<ForbiddenRead>),
    /// The API server does not serve the kind.
    #[error(transparent)]
    UnknownKind(ClientError),
    /// An object that must exist does not.
    #[error("it does not exist")]
    Missing,
    /// A Secret that must exist does not.
    #[error("Secret {} not found", quote(.0))]
    NoSecret(String),
    /// A value of a Secret cannot be decoded.
    #[error("{value} is not base64")]
    NotBase64 {
        /// Which one.
        value: String,
        /// Why.
        source: Box<base64::DecodeError>,
    },
    /// A schema cannot be written without references.
    #[error("the schema refers to too many others")]
    TooManyReferences,
    /// A schema refers to one that does not exist.
    #[error("cannot resolve {0}")]
    Unresolved(String),
    /// What was read is not an object.
    #[error(transparent)]
    NotAnObject(#[from] transom_function::NotAnObject),
    /// The request failed in any other way.
    #[error(transparent)]
    Failed(ClientError),
}

/// A read that the reader has no right to. As an error it is the error of the client.
#[derive(Debug)]
pub struct ForbiddenRead {
    /// The kind of the objects.
    pub kind: GroupVersionKind,
    /// Their namespace; empty for all namespaces, and for cluster-scoped objects.
    pub namespace: String,
    /// The error of the client.
    pub error: ClientError,
}

impl fmt::Display for ForbiddenRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for ForbiddenRead {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// The kind that an `apiVersion` and a `kind` name together.
pub fn kind(api_version: &str, kind: &str) -> Result<GroupVersionKind, WorldError> {
    let group_version = GroupVersion::parse(api_version).filter(|gv| !gv.version.is_empty());
    let group_version = group_version.ok_or_else(|| WorldError::ApiVersion(api_version.to_owned()))?;
    Ok(group_version.with_kind(kind))
}

/// The world outside: read only.
#[async_trait]
pub trait World: Send + Sync {
    /// One object; `None` when it certainly does not exist, which a cache alone cannot tell. The namespace is empty
    /// for cluster-scoped objects.
    async fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, WorldError>;

    /// The objects of a kind that have all the labels, in one namespace or in all. In any order.
    async fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, WorldError>;

    /// The OpenAPI v3 schema of a kind, without references; `None` when the kind is unknown.
    async fn schema(&self, kind: &GroupVersionKind) -> Result<Option<Value>, WorldError>;

    /// A Secret's data. Secrets are read afresh each time.
    async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, Vec<u8>>>, WorldError>;

    /// Whether objects of a kind live in namespaces; an unknown kind is an error.
    async fn is_namespaced(&self, kind: &GroupVersionKind) -> Result<bool, WorldError>;

    /// An object that the composite resource exists for, directly or through others. Such objects do not change, so no
    /// decision depends on a later version of one.
    async fn owner(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, WorldError> {
        self.get(kind, namespace, name).await
    }

    /// Whether a service account exists that composite resources are to be composed under. This is known without the rights
    /// of that account.
    async fn account_exists(&self, account: &AccountReference) -> Result<bool, WorldError> {
        let kind = GroupVersionKind::new("", "v1", "ServiceAccount");
        Ok(self.get(&kind, &account.namespace, &account.name).await?.is_some())
    }

    /// The outcome depends on what this lookup finds, so a change of that is a reason to reconcile again. It is looked up
    /// after this returns. Without watches the outcome depends on nothing: everything is looked up again at intervals.
    fn depends_on(&self, _lookup: &Lookup) {}

    /// A decision is about to be based on this version of an object, which a write returned.
    fn relies_on(&self, _object: &Value) {}

    /// The outcome depends on which revisions of a function can be called; of all functions if the name is empty.
    fn follow_function(&self, _function: &str) {}

    /// A FunctionRevision was called, whether a step chose it or not.
    fn called(&self, _revision: &str) {}

    /// A FunctionRevision that a step chose was called.
    fn answered_by(&self, _revision: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_api_version_has_a_kind() {
        assert_eq!(kind("e/v1", "A").unwrap(), GroupVersionKind::new("e", "v1", "A"));
        assert_eq!(kind("v1", "A").unwrap(), GroupVersionKind::new("", "v1", "A"));
        for text in ["", "e/", "a/b/c"] {
            assert!(matches!(kind(text, "A"), Err(WorldError::ApiVersion(_))), "{text}");
        }
    }
}
