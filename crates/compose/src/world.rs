//! What the engine may read. A kube client, files and a map in memory are worlds.

use serde_json::Value;
use std::collections::BTreeMap;
use transom_function::async_trait;

/// Why a world could not answer. Nothing found is an answer.
pub type WorldError = Box<dyn std::error::Error + Send + Sync>;

/// A kind, as objects name theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
}

/// The world outside: read only.
#[async_trait]
pub trait World: Send + Sync {
    /// One object; `None` when it certainly does not exist, which a cache alone cannot tell. The namespace is empty
    /// for cluster-scoped objects.
    async fn get(&self, kind: Kind<'_>, namespace: &str, name: &str) -> Result<Option<Value>, WorldError>;

    /// The objects of a kind that have all the labels, in one namespace or in all. In any order.
    async fn list(
        &self,
        kind: Kind<'_>,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, WorldError>;

    /// The OpenAPI v3 schema of a kind, without references; `None` when the kind is unknown.
    async fn schema(&self, kind: Kind<'_>) -> Result<Option<Value>, WorldError>;

    /// A Secret's data. Secrets are read afresh each time.
    async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, Vec<u8>>>, WorldError>;

    /// Whether objects of a kind live in namespaces; an unknown kind is an error.
    async fn is_namespaced(&self, kind: Kind<'_>) -> Result<bool, WorldError>;
}
