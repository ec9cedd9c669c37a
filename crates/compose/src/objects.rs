//! A world in memory: objects from files, or made up by a test.

use crate::openapi;
use crate::world::{World, WorldError};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use transom_function::async_trait;
use transom_object::{GroupVersionKind, meta};

/// Kind, namespace and name.
type Key = (GroupVersionKind, String, String);

/// Objects and schemas that do not change.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    objects: BTreeMap<Key, Value>,
    documents: Vec<Value>,
    cluster_scoped: BTreeSet<GroupVersionKind>,
}

impl Objects {
    /// A world in which nothing exists.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object, in place of the one of the same kind, namespace and name. An object without a kind cannot be
    /// looked up, and is left out.
    pub fn add(&mut self, object: Value) {
        let Some(kind) = meta::gvk(&object) else { return };
        let key = (kind, meta::namespace(&object).to_owned(), meta::name(&object).to_owned());
        self.objects.insert(key, object);
    }

    /// Adds an OpenAPI v3 document with schemas.
    pub fn add_schemas(&mut self, document: Value) {
        self.documents.push(document);
    }

    /// Declares a kind to be cluster-scoped. All others are namespaced.
    pub fn add_cluster_scoped(&mut self, kind: GroupVersionKind) {
        self.cluster_scoped.insert(kind);
    }
}

impl Extend<Value> for Objects {
    fn extend<I: IntoIterator<Item = Value>>(&mut self, objects: I) {
        objects.into_iter().for_each(|object| self.add(object));
    }
}

impl FromIterator<Value> for Objects {
    fn from_iter<I: IntoIterator<Item = Value>>(objects: I) -> Self {
        let mut all = Self::new();
        all.extend(objects);
        all
    }
}

#[async_trait]
impl World for Objects {
    async fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, WorldError> {
        let key = (kind.clone(), namespace.to_owned(), name.to_owned());
        Ok(self.objects.get(&key).cloned())
    }

    async fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, WorldError> {
        let first = (kind.clone(), String::new(), String::new());
        let of_kind = self.objects.range(first..).take_while(|(key, _)| key.0 == *kind);
        let has = |object: &Value, key: &str, value: &str| meta::label(object, key) == Some(value);
        let selected = of_kind.filter(|((_, found, _), object)| {
            namespace.is_none_or(|wanted| wanted == found) && labels.iter().all(|(k, v)| has(object, k, v))
        });
        Ok(selected.map(|(_, object)| object.clone()).collect())
    }

    async fn schema(&self, kind: &GroupVersionKind) -> Result<Option<Value>, WorldError> {
        openapi::schema_of(&self.documents, kind)
    }

    async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, Vec<u8>>>, WorldError> {
        self.get(&GroupVersionKind::new("", "v1", "Secret"), namespace, name)
            .await?
            .map(|secret| secret_data(&secret))
            .transpose()
    }

    async fn is_namespaced(&self, kind: &GroupVersionKind) -> Result<bool, WorldError> {
        Ok(!self.cluster_scoped.contains(kind))
    }
}

/// A Secret's data. Files may have what an API server would have encoded: `stringData`.
fn secret_data(secret: &Value) -> Result<BTreeMap<String, Vec<u8>>, WorldError> {
    let mut data = BTreeMap::new();
    let entries = |field: &str| secret.get(field).and_then(Value::as_object).into_iter().flatten();
    for (key, value) in entries("data") {
        let text = value.as_str().unwrap_or_default();
        let bytes = BASE64_STANDARD.decode(text);
        let bytes = bytes.map_err(|source| {
            let value = format!("the value of {key:?} in Secret {:?}", meta::name(secret));
            WorldError::NotBase64 { value, source: source.into() }
        })?;
        data.insert(key.clone(), bytes);
    }
    for (key, value) in entries("stringData") {
        data.insert(key.clone(), value.as_str().unwrap_or_default().as_bytes().to_vec());
    }
    Ok(data)
}
