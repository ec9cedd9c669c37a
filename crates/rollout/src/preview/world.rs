//! What functions may read for a preview: the control plane, as the user of the command sees it.

use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use transom_compose::openapi::schema_of;
use transom_compose::{ForbiddenRead, World, WorldError};
use transom_engine::{Cluster, Error, existing, found};
use transom_object::GroupVersionKind;
use transom_xapi::connection;

/// The control plane, read only.
pub(super) struct ClusterWorld<'a>(pub(super) &'a Cluster);

fn failed(error: Error) -> WorldError {
    match error {
        e if e.is_unknown_kind() => WorldError::UnknownKind(e.into()),
        e => WorldError::Failed(e.into()),
    }
}

fn cannot_read(kind: &GroupVersionKind, namespace: &str) -> impl Fn(Error) -> WorldError {
    move |error| match error {
        e if e.is_forbidden() => {
            let (kind, namespace) = (kind.clone(), namespace.to_owned());
            WorldError::Forbidden(Box::new(ForbiddenRead { kind, namespace, error: e.into() }))
        }
        e => failed(e),
    }
}

#[async_trait]
impl World for ClusterWorld<'_> {
    async fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, WorldError> {
        let read = self.0.get(kind, namespace, name).await;
        read.map_err(cannot_read(kind, namespace))
    }

    async fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, WorldError> {
        let namespace = namespace.unwrap_or_default();
        self.0.list(kind, namespace, labels).await.map_err(cannot_read(kind, namespace))
    }

    async fn schema(&self, kind: &GroupVersionKind) -> Result<Option<Value>, WorldError> {
        let path = match kind.group.as_str() {
            "" => format!("/openapi/v3/api/{}", kind.version),
            group => format!("/openapi/v3/apis/{group}/{}", kind.version),
        };
        let Some(document) = found(self.0.get_path(&path).await).map_err(failed)? else { return Ok(None) };
        schema_of([&document], kind).map_err(|e| failed(Error::domain(e)))
    }

    async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, Vec<u8>>>, WorldError> {
        let kind = GroupVersionKind::new("", "v1", "Secret");
        let read = existing(self.0.get(&kind, namespace, name).await);
        Ok(read.map_err(cannot_read(&kind, namespace))?.as_ref().map(connection::details))
    }

    async fn is_namespaced(&self, kind: &GroupVersionKind) -> Result<bool, WorldError> {
        Ok(self.0.kind(kind).await.map_err(failed)?.namespaced)
    }
}
