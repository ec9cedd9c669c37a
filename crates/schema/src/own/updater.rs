//! Who owns what after an apply or an update, across API versions.
//!
//! Managers own fields at the version they wrote with. Before their fields are compared with a change, old
//! and new object are converted to that version, once per version. A manager whose version is served no
//! more loses its fields.

use super::conflict::{ApplyError, Conflict};
use super::element::equal;
use super::managers::{ManagerId, Managers, Owned};
use super::set::Set;
use super::typed::{self, Comparison};
use super::types::Type;
use crate::model::Schema;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Converts an object from one API version to another.
pub type Convert<'a> = &'a dyn Fn(&Value, &str, &str) -> Option<Value>;

/// What ownership depends on.
#[derive(Clone, Copy)]
pub struct Updater<'a> {
    /// By API version; `None` when it is not served any more.
    pub schema: &'a dyn Fn(&str) -> Option<Arc<Schema>>,
    /// Converts objects between versions.
    pub convert: Convert<'a>,
    /// By API version: fields that no manager owns here.
    pub ignored: &'a dyn Fn(&str) -> Option<Arc<Set>>,
    /// How the schema's root is read.
    pub root: for<'s> fn(&'s Schema) -> Type<'s>,
}

/// The fields an update touched.
pub struct Touched {
    /// What is no longer there.
    pub removed: Set,
    /// Modified and added: what the updating manager owns now.
    pub taken: Set,
}

/// What a change did to an object at one version.
struct Change {
    removed: Set,
    changed: Set,
}

impl Updater<'_> {
    /// Removes what an update changes from all managers, and returns it.
    pub fn update(
        &self,
        live: &Value,
        new: &Value,
        version: &str,
        managers: &mut Managers,
    ) -> Result<Touched, ApplyError> {
        self.reconcile(managers);
        let change = self.transfer_ownership(live, new, version, managers, None, true)?;
        let taken = self.without_ignored(change.changed, version);
        Ok(Touched { removed: change.removed, taken })
    }

    /// Merges a configuration and gives its fields to `id`. `None` when the object stays as it is.
    pub fn apply(
        &self,
        live: &Value,
        config: &Value,
        version: &str,
        managers: &mut Managers,
        id: &ManagerId,
        force: bool,
    ) -> Result<Option<Value>, ApplyError> {
        self.reconcile(managers);
        let schema = self.schema_of(version)?;
        let ty = (self.root)(&schema);
        let merged = typed::merge(ty, live, config)
            .map_err(|e| ApplyError::Failed(format!("failed to merge config: {e}")))?
            .unwrap_or(Value::Null);
        let set = typed::to_field_set(ty, config)
            .map_err(|e| ApplyError::Failed(format!("failed to get field set: {e}")))?;
        let last = managers.remove(id);
        let time = last.as_ref().and_then(|l| l.time.clone());
        let set = self.without_ignored(set, version);
        managers.insert(id.clone(), Owned { set, api_version: version.to_owned(), time });
        let new = match last {
            Some(last) if !last.set.is_empty() => self
                .prune(merged, version, managers, id, &last)
                .map_err(|e| ApplyError::Failed(format!("failed to prune fields: {e}")))?,
            _ => merged,
        };
        self.transfer_ownership(live, &new, version, managers, Some(id), force)?;
        Ok(if same(ty, live, &new) { None } else { Some(new) })
    }

    fn schema_of(&self, version: &str) -> Result<Arc<Schema>, ApplyError> {
        (self.schema)(version)
            .ok_or_else(|| ApplyError::Failed(format!("no corresponding type for {version}")))
    }

    pub(super) fn without_ignored(&self, set: Set, version: &str) -> Set {
        match (self.ignored)(version) {
            Some(ignored) if !ignored.is_empty() => set.recursive_difference(&ignored),
            _ => set,
        }
    }

    /// Brings field sets in line with today's schemas; forgets versions that are gone.
    fn reconcile(&self, managers: &mut Managers) {
        let mut schemas: BTreeMap<String, Option<Arc<Schema>>> = BTreeMap::new();
        managers.retain(|_, owned| {
            let schema =
                schemas.entry(owned.api_version.clone()).or_insert_with(|| (self.schema)(&owned.api_version));
            let Some(schema) = schema else { return false };
            if let Some(set) = typed::reconcile_with_schema(&owned.set, (self.root)(schema)) {
                owned.set = set;
            }
            true
        });
    }

    /// The object at another version; `None` when that is not served.
    fn at_version<'v>(
        &self,
        value: &'v Value,
        from: &str,
        to: &str,
    ) -> Result<Option<Cow<'v, Value>>, String> {
        if from == to {
            return Ok(Some(Cow::Borrowed(value)));
        }
        let Some(schema) = (self.schema)(to) else { return Ok(None) };
        let converted = (self.convert)(value, from, to)
            .ok_or_else(|| format!("failed to convert object from {from} to {to}"))?;
        typed::validate((self.root)(&schema), &converted, typed::Duplicates::Allow)
            .map_err(|e| e.to_string())?;
        Ok(Some(Cow::Owned(converted)))
    }

    /// Removes changed and removed fields from the sets of all managers except `id`. Without `force`, fields that other
    /// managers own may not change.
    fn transfer_ownership(
        &self,
        old: &Value,
        new: &Value,
        version: &str,
        managers: &mut Managers,
        id: Option<&ManagerId>,
        force: bool,
    ) -> Result<Change, ApplyError> {
        let mut changes = BTreeMap::new();
        changes.insert(version.to_owned(), self.change(old, new, version)?);
        let mut gone = Vec::new();
        let mut lost: Vec<(ManagerId, Set)> = Vec::new();
        for (other, owned) in managers.iter().filter(|(other, _)| Some(*other) != id) {
            if !changes.contains_key(&owned.api_version) {
                let at = |value, which: &str| {
                    self.at_version(value, version, &owned.api_version)
                        .map_err(|e| ApplyError::Failed(format!("failed to convert {which} object: {e}")))
                };
                let (before, after) = (at(old, "old")?, at(new, "new")?);
                let (Some(before), Some(after)) = (before, after) else {
                    gone.push(other.clone());
                    continue;
                };
                changes.insert(owned.api_version.clone(), self.change(&before, &after, &owned.api_version)?);
            }
            let change = &changes[&owned.api_version];
            let conflicts = owned.set.intersection(&change.changed);
            if !conflicts.is_empty() {
                lost.push((other.clone(), conflicts));
            }
        }
        if !force && !lost.is_empty() {
            return Err(ApplyError::Conflicts(conflicts(&lost)));
        }
        for other in gone {
            managers.remove(&other);
        }
        for (other, fields) in lost {
            if let Some(owned) = managers.get_mut(&other) {
                owned.set = owned.set.difference(&fields);
            }
        }
        managers.retain(|other, owned| {
            if Some(other) != id {
                let removed = changes.get(&owned.api_version).map(|c| &c.removed).filter(|r| !r.is_empty());
                if let Some(removed) = removed {
                    owned.set = owned.set.difference(removed);
                }
            }
            !owned.set.is_empty()
        });
        changes.remove(version).ok_or_else(|| ApplyError::Failed(format!("nothing compared at {version}")))
    }

    fn change(&self, old: &Value, new: &Value, version: &str) -> Result<Change, ApplyError> {
        let schema = self.schema_of(version)?;
        let mut comparison = typed::compare((self.root)(&schema), old, new)
            .map_err(|e| ApplyError::Failed(format!("failed to compare objects: {e}")))?;
        if let Some(ignored) = (self.ignored)(version) {
            comparison = comparison.without(&ignored);
        }
        let Comparison { removed, modified, added } = comparison;
        Ok(Change { removed, changed: modified.union(&added) })
    }

    /// Removes what `id` applied last time, does not apply now, and no other manager owns.
    fn prune(
        &self,
        merged: Value,
        version: &str,
        managers: &Managers,
        id: &ManagerId,
        last: &Owned,
    ) -> Result<Value, String> {
        let now = managers.get(id).map(|owned| &owned.set);
        if last.api_version == version && now.is_some_and(|now| last.set.difference(now).is_empty()) {
            return Ok(merged);
        }
        let Some(at_last) = self.at_version(&merged, version, &last.api_version)? else { return Ok(merged) };
        let schema = self.schema_of(&last.api_version).map_err(|e| e.to_string())?;
        let ty = (self.root)(&schema);
        let last_fields = last.set.ensure_named_fields_are_members(Some(ty));
        let mut pruned = at_last.clone().into_owned();
        typed::remove_items(ty, &mut pruned, &last_fields);
        let pruned = self.add_back_owned(&at_last, pruned, &last.api_version, managers)?;

        // Only what this manager owned may vanish, not what happens to have no owner.
        let before = named_fields(ty, &at_last)?;
        let after = named_fields(ty, &pruned)?;
        let vanished = before.difference(&after).intersection(&last_fields);
        let mut result = at_last.into_owned();
        typed::remove_items(ty, &mut result, &vanished);
        match self.at_version(&result, &last.api_version, version)? {
            Some(Cow::Owned(converted)) => Ok(converted),
            _ => Ok(result),
        }
    }

    /// Adds back what any manager owns, version by version, the pruned one first because other versions
    /// may need the fields of this one to convert.
    fn add_back_owned(
        &self,
        merged: &Value,
        pruned: Value,
        version: &str,
        managers: &Managers,
    ) -> Result<Value, String> {
        let mut owned_at: BTreeMap<&str, Set> = BTreeMap::new();
        for owned in managers.values() {
            let at = owned_at.entry(&owned.api_version).or_default();
            *at = at.union(&owned.set);
        }
        let (mut merged, mut pruned) = (Cow::Borrowed(merged), pruned);
        let mut current = version;
        let first = owned_at.remove_entry(version);
        for (next, owned) in first.into_iter().chain(owned_at) {
            let converted = match self.at_version(&merged, current, next)? {
                None => continue,
                Some(Cow::Borrowed(_)) => None,
                Some(Cow::Owned(converted)) => Some(converted),
            };
            if let Some(value) = converted {
                pruned = self.at_version(&pruned, current, next)?.unwrap_or_default().into_owned();
                merged = Cow::Owned(value);
            }
            current = next;
            let schema = self.schema_of(next).map_err(|e| e.to_string())?;
            let ty = (self.root)(&schema);
            let keep = named_fields(ty, &pruned)?.union(&owned.ensure_named_fields_are_members(Some(ty)));
            let drop = named_fields(ty, &merged)?.difference(&keep);
            pruned = merged.clone().into_owned();
            typed::remove_items(ty, &mut pruned, &drop);
        }
        Ok(self.at_version(&pruned, current, version)?.unwrap_or_default().into_owned())
    }
}

fn named_fields(ty: Type<'_>, value: &Value) -> Result<Set, String> {
    let set = typed::to_field_set(ty, value).map_err(|e| format!("failed to create field set: {e}"))?;
    Ok(set.ensure_named_fields_are_members(Some(ty)))
}

fn conflicts(lost: &[(ManagerId, Set)]) -> Vec<Conflict> {
    lost.iter()
        .flat_map(|(manager, set)| {
            set.paths().into_iter().map(|path| Conflict { manager: manager.clone(), at: None, path })
        })
        .collect()
}

/// Equality that does not look at hidden fields.
fn same(ty: Type<'_>, a: &Value, b: &Value) -> bool {
    let (Value::Object(x), Value::Object(y), Some(map), true) = (a, b, ty.map(), ty.hides()) else {
        return ty.hidden() || equal(a, b);
    };
    let visible = |key: &String| !map.value(key).is_some_and(Type::hidden);
    let mut x = x.iter().filter(|(k, _)| visible(k));
    let mut y = y.iter().filter(|(k, _)| visible(k));
    loop {
        match (x.next(), y.next()) {
            (None, None) => return true,
            (Some((k, v)), Some((l, w))) if k == l && map.value(k).is_none_or(|ty| same(ty, v, w)) => {}
            _ => return false,
        }
    }
}
