//! Tags: where they come from, and how they are merged, kept and removed.
//!
//! A list of tags may be missing altogether, which is not the same as empty: what merges nothing but missing lists
//! stays missing, and is written as null.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use transom_function::Resource;
use transom_object::fieldpath;

use crate::named::{OneOf, names};

names! {
    /// Where tags or their names are read.
    TagSource: "FromValue", "FromCompositeFieldPath", "FromEnvironmentFieldPath";
    /// Whether a tag replaces an existing one.
    TagPolicy: "Replace", "Retain";
}

/// Where a resource's tags are.
const PLACE: &str = "spec.forProvider.tags";

/// Texts by name, or nothing at all.
pub(super) type Tags = Option<BTreeMap<String, String>>;

/// Tags to add.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AddTags {
    r#type: OneOf<TagSource>,
    from_field_path: Option<String>,
    tags: Tags,
    policy: OneOf<TagPolicy>,
}

/// Names of tags whose values are managed outside of the composition.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct IgnoreTags {
    r#type: OneOf<TagSource>,
    from_field_path: Option<String>,
    keys: Vec<String>,
    policy: OneOf<TagPolicy>,
}

/// Names of tags to remove.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RemoveTags {
    r#type: OneOf<TagSource>,
    from_field_path: Option<String>,
    keys: Vec<String>,
}

/// The objects that paths lead into.
pub(super) struct Sources<'a> {
    pub composite: &'a Value,
    pub environment: &'a Value,
}

/// Where an entry's values come from, by its type.
enum From<'a> {
    Input,
    Composite(&'a str),
    Environment(&'a str),
    /// A type that does not exist gives nothing.
    Nowhere,
}

impl<'a> From<'a> {
    fn read(kind: &str, path: Option<&'a String>) -> Result<Self, String> {
        let path = || {
            let missing = || format!("fromFieldPath is required for tags of type {kind}");
            path.map(String::as_str).ok_or_else(missing)
        };
        Ok(match kind {
            "" | "FromValue" => Self::Input,
            "FromCompositeFieldPath" => Self::Composite(path()?),
            "FromEnvironmentFieldPath" => Self::Environment(path()?),
            _ => Self::Nowhere,
        })
    }
}

/// Tags to write: some only where there is no such tag yet, the others in any case.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Updates {
    pub retain: Tags,
    pub replace: Tags,
}

impl Updates {
    /// Adds tags under a policy; an entry without a type has none.
    fn add(&mut self, kind: &str, policy: &str, tags: Tags) {
        let into = if policy == "Retain" && !kind.is_empty() { &mut self.retain } else { &mut self.replace };
        fill(into, tags);
    }

    /// The tags that entries of the input add.
    pub(super) fn adding(entries: &[AddTags], sources: &Sources<'_>) -> Result<Self, String> {
        let mut updates = Self::default();
        for entry in entries {
            let tags = match From::read(&entry.r#type, entry.from_field_path.as_ref())? {
                From::Input => entry.tags.clone(),
                // An unreadable tag of the composite resource is read as empty; an unreadable tag of the
                // environment invalidates them all.
                From::Composite(path) => {
                    texts_at(sources.composite, path).map(|(tags, _)| tags).unwrap_or_default()
                }
                From::Environment(path) => match texts_at(sources.environment, path) {
                    Some((tags, true)) => tags,
                    _ => continue,
                },
                From::Nowhere => None,
            };
            updates.add(&entry.r#type, &entry.policy, tags);
        }
        Ok(updates)
    }

    /// The tags that an existing resource has and entries of the input leave alone; `None` when it has no tags that
    /// can be read.
    pub(super) fn keeping(
        entries: &[IgnoreTags],
        observed: &Resource,
        sources: &Sources<'_>,
    ) -> Result<Option<Self>, String> {
        let Some((observed, true)) = texts_at(observed.object(), "status.atProvider.tags") else {
            return Ok(None);
        };
        let observed = observed.unwrap_or_default();
        let mut updates = Self::default();
        for entry in entries {
            let mut keys = Vec::new();
            match From::read(&entry.r#type, entry.from_field_path.as_ref())? {
                From::Input => keys.clone_from(&entry.keys),
                From::Composite(path) => {
                    read_names(sources.composite, path, &mut keys);
                }
                From::Environment(path) => {
                    if !read_names(sources.environment, path, &mut keys) {
                        continue;
                    }
                }
                From::Nowhere => {}
            }
            let kept =
                keys.into_iter().filter_map(|key| observed.get(&key).map(|tag| (key.clone(), tag.clone())));
            updates.add(&entry.r#type, &entry.policy, Some(kept.collect()));
        }
        Ok(Some(updates))
    }

    /// Writes the tags to a resource. Where that cannot be done, it stays as it is.
    pub(super) fn apply(&self, resource: &mut Resource) {
        let mut tags = texts_at(resource.object(), PLACE).map(|(tags, _)| tags).unwrap_or_default();
        fill(&mut tags, self.retain.clone());
        if let Some(replace) = &self.replace {
            tags.get_or_insert_default().extend(replace.clone());
        }
        write(resource, tags);
    }
}

/// The names of the tags that entries of the input remove. Of the entries with a path only the last that leads
/// somewhere counts.
pub(super) fn removed(entries: &[RemoveTags], sources: &Sources<'_>) -> Result<Vec<String>, String> {
    let (mut names, mut read) = (Vec::new(), Vec::new());
    for entry in entries {
        match From::read(&entry.r#type, entry.from_field_path.as_ref())? {
            From::Input => names.extend_from_slice(&entry.keys),
            From::Composite(path) => drop(read_names(sources.composite, path, &mut read)),
            From::Environment(path) => drop(read_names(sources.environment, path, &mut read)),
            From::Nowhere => {}
        }
    }
    names.append(&mut read);
    Ok(names)
}

/// Removes tags from a resource.
pub(super) fn remove(resource: &mut Resource, names: &[String]) {
    let tags = texts_at(resource.object(), PLACE).map(|(tags, _)| tags).unwrap_or_default();
    if let Some(mut tags) = tags.filter(|tags| !tags.is_empty()) {
        for name in names {
            tags.remove(name);
        }
        write(resource, Some(tags));
    }
}

fn write(resource: &mut Resource, tags: Tags) {
    let value = tags.map_or(Value::Null, |tags| {
        Value::Object(tags.into_iter().map(|(name, tag)| (name, tag.into())).collect())
    });
    // A resource of any kind whose spec is not an object has no tags.
    let _ = resource.set(PLACE, value);
}

/// Adds tags where there is no tag of the name, or an empty one.
fn fill(into: &mut Tags, tags: Tags) {
    let Some(tags) = tags else { return };
    let into = into.get_or_insert_default();
    for (name, tag) in tags {
        let present = into.entry(name).or_default();
        if present.is_empty() {
            *present = tag;
        }
    }
}

/// The strings at a path, and whether all values there are strings: others are read as empty. `None` when the path
/// does not exist.
fn texts_at(object: &Value, path: &str) -> Option<(Tags, bool)> {
    Some(match fieldpath::get(object, path).ok()? {
        Value::Null => (None, true),
        Value::Object(fields) => {
            let text = |(name, value): (&String, &Value)| {
                (name.clone(), value.as_str().unwrap_or_default().to_owned())
            };
            let all = fields.values().all(|value| value.is_string() || value.is_null());
            (Some(fields.iter().map(text).collect()), all)
        }
        _ => (None, false),
    })
}

/// Reads the list of names at a path over the names read before; returns whether all could be read. A path that does
/// not exist or is not a list changes nothing, and an item that is not a name leaves the name that was there.
fn read_names(object: &Value, path: &str, names: &mut Vec<String>) -> bool {
    match fieldpath::get(object, path) {
        Ok(Value::Null) => {
            names.clear();
            true
        }
        Ok(Value::Array(items)) => {
            names.resize(items.len(), String::new());
            let mut all = true;
            for (name, item) in names.iter_mut().zip(items) {
                match item {
                    Value::String(text) => name.clone_from(text),
                    other => all &= other.is_null(),
                }
            }
            all
        }
        _ => false,
    }
}
