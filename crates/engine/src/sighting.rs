//! Objects as watches read them: only what a mirror keeps is decoded.

use super::queue::Key;
use super::seen_versions::version;
use crate::cluster::Extent;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_object::meta;

/// How much of each object a mirror keeps.
#[derive(Clone, Copy, Debug)]
pub enum Depth {
    /// Identity, version and labels.
    Header,
    /// That, and what a function returns. The name distinguishes different parts.
    Part(&'static str, fn(&Value) -> Value),
    /// That, and everything.
    Whole,
}

impl Depth {
    /// Mirrors of different depths are different mirrors.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Part(name, _) => name,
            Self::Whole => "whole",
        }
    }
}

impl Depth {
    /// What has to be read for it.
    pub(super) fn extent(self) -> Extent {
        match self {
            Self::Header => Extent::Metadata,
            Self::Part(..) | Self::Whole => Extent::Whole,
        }
    }
}

/// An object as a mirror keeps it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its namespace and name.
    pub key: Key,
    /// Its uid.
    pub uid: Box<str>,
    /// Its resourceVersion as a number.
    pub version: u64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// What the mirror's [`Depth`] keeps of the object; null for headers.
    pub object: Arc<Value>,
}

impl Seen {
    pub(super) fn read(text: &RawValue, depth: Depth) -> serde_json::Result<Self> {
        if matches!(depth, Depth::Header) {
            let Envelope { metadata: m } = serde_json::from_str(text.get())?;
            return Ok(Self {
                key: Key::new(&*m.namespace, &*m.name),
                uid: m.uid.into(),
                version: version(&m.resource_version),
                labels: m.labels.unwrap_or_default(),
                deleting: m.deletion_timestamp.is_some(),
                object: Arc::new(Value::Null),
            });
        }
        let object: Value = serde_json::from_str(text.get())?;
        let kept = if let Depth::Part(_, pick) = depth { pick(&object) } else { Value::Null };
        Ok(Self {
            key: Key::of(&object),
            uid: meta::uid(&object).into(),
            version: version(meta::resource_version(&object)),
            labels: meta::labels(&object),
            deleting: meta::is_deleting(&object),
            object: Arc::new(if matches!(depth, Depth::Whole) { object } else { kept }),
        })
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    metadata: Header<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(borrow, default)]
    deletion_timestamp: Option<Cow<'a, str>>,
}

/// One page of a list.
#[derive(Deserialize)]
pub(super) struct Page<'a> {
    #[serde(default)]
    pub(super) metadata: ListMetadata,
    #[serde(borrow, default)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListMetadata {
    pub(super) resource_version: String,
    #[serde(rename = "continue")]
    pub(super) token: String,
}

/// One line of a watch.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

/// What a bookmark or an error carries.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Notice {
    pub(super) metadata: ListMetadata,
    pub(super) code: u16,
    pub(super) message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &str = r#"{"spec":{"a":[1,2]},"metadata":{"name":"n","namespace":"s","uid":"u","resourceVersion":"12","labels":{"k":"v"},"deletionTimestamp":"2024-01-01T00:00:00Z"}}"#;

    #[test]
    fn every_depth_reads_the_same_header() {
        let raw: &RawValue = serde_json::from_str(OBJECT).unwrap();
        for depth in [Depth::Header, Depth::Part("a", |o| o["spec"]["a"].clone()), Depth::Whole] {
            let seen = Seen::read(raw, depth).unwrap();
            assert_eq!((seen.key, seen.version, seen.deleting), (Key::new("s", "n"), 12, true));
            assert_eq!((&*seen.uid, seen.labels["k"].as_str()), ("u", "v"));
        }
        let part = Seen::read(raw, Depth::Part("a", |o| o["spec"]["a"].clone())).unwrap();
        assert_eq!(*part.object, serde_json::json!([1, 2]));
    }
}
