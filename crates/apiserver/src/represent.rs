//! Representations of objects that clients request: whole, as metadata only, or as rows of a table.

use crate::negotiate::Representation;
use crate::resource::Resource;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use transom_object::{Status, json};
use transom_store::Entry;

/// How much of an object a table row carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}

impl Include {
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(Status::bad_request(format!("unrecognized includeObject value: {other:?}"))),
        }
    }
}

pub(crate) struct View<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) representation: &'a Representation,
    pub(crate) include: Include,
}

impl View<'_> {
    /// One entry, as responses to `get` and writes and watch events contain it.
    pub(crate) fn entry(&self, entry: &Entry) -> Result<Bytes, Status> {
        match self.representation {
            Representation::Object => self.resource.serve(entry),
            _ => self.value(self.resource.decode(entry)?, true),
        }
    }

    /// One object, stored or not. `columns` is whether a table describes its columns.
    pub(crate) fn value(&self, value: Value, columns: bool) -> Result<Bytes, Status> {
        let shown = match self.representation {
            Representation::Object => value,
            Representation::PartialMetadata { version } => partial(&value, version),
            Representation::Table { version } => {
                let rv = value["metadata"]["resourceVersion"].clone();
                let mut metadata = Map::new();
                if rv.is_string() {
                    metadata.insert("resourceVersion".into(), rv);
                }
                let rows = vec![self.row(value, version, now())];
                self.table(&rows, version, &Value::Object(metadata), columns)
            }
        };
        Ok(json::encode(&shown).into())
    }

    /// A page of a list, with its list metadata.
    pub(crate) fn list(&self, entries: &[&Entry], metadata: &Value) -> Result<Vec<Bytes>, Status> {
        match self.representation {
            Representation::Object => {
                let api_version = self.resource.api_version();
                self.chain(entries, &api_version, &self.resource.names.list_kind, metadata, |e| {
                    self.resource.serve(e)
                })
            }
            Representation::PartialMetadata { version } => {
                let (api_version, kind) = (format!("meta.k8s.io/{version}"), "PartialObjectMetadataList");
                if entries.is_empty() {
                    // The original collects them into a list that it never makes when there are none.
                    let none =
                        json!({"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": null});
                    return Ok(vec![json::encode(&none).into(), Bytes::from_static(b"\n")]);
                }
                self.chain(entries, &api_version, kind, metadata, |e| {
                    Ok(json::encode(&partial(&self.resource.decode(e)?, version)).into())
                })
            }
            Representation::Table { version } => {
                let now = now();
                let rows: Result<Vec<Value>, Status> =
                    entries.iter().map(|e| Ok(self.row(self.resource.decode(e)?, version, now))).collect();
                Ok(vec![json::encode(&self.table(&rows?, version, metadata, true)).into()])
            }
        }
    }

    fn chain(
        &self,
        entries: &[&Entry],
        api_version: &str,
        kind: &str,
        metadata: &Value,
        item: impl Fn(&Entry) -> Result<Bytes, Status>,
    ) -> Result<Vec<Bytes>, Status> {
        let mut parts = Vec::with_capacity(entries.len() * 2 + 2);
        parts.push(
            format!(
                "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},\"items\":[",
                json!(kind),
                json!(api_version)
            )
            .into(),
        );
        for (i, entry) in entries.iter().enumerate() {
            if i > 0 {
                parts.push(Bytes::from_static(b","));
            }
            parts.push(item(entry)?);
        }
        parts.push(Bytes::from_static(b"]}\n"));
        Ok(parts)
    }

    fn table(&self, rows: &[Value], version: &str, metadata: &Value, columns: bool) -> Value {
        let definitions: Value = if columns {
            self.resource
                .strategy
                .columns()
                .into_iter()
                .map(|c| json!({"name": c.name, "type": c.ty, "format": c.format, "description": c.description, "priority": c.priority}))
                .collect()
        } else {
            Value::Null
        };
        json!({
            "kind": "Table",
            "apiVersion": format!("meta.k8s.io/{version}"),
            "metadata": metadata,
            "columnDefinitions": definitions,
            "rows": rows,
        })
    }

    fn row(&self, value: Value, version: &str, now: i64) -> Value {
        let cells = self.resource.strategy.cells(&value, now);
        let object = match self.include {
            Include::None => Value::Null,
            Include::Metadata => partial(&value, version),
            Include::Object => value,
        };
        json!({"cells": cells, "object": object})
    }
}

fn partial(value: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": value["metadata"],
    })
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}
