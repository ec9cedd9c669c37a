//! The entry points of the API server: apply a configuration, or track who owns what after any other write.
//!
//! Around the [`Updater`] this adds what Kubernetes adds: objects without owners are attributed to
//! `before-first-apply` when first applied to, no manager owns system fields, updates are capped, entries
//! carry the time of their last change, and `kubectl`'s client-side annotation is honoured and kept up.

use super::conflict::{ApplyError, Conflict};
use super::element::Path;
use super::managers::{self, MAX_UPDATE_MANAGERS, ManagerId, Managers, Operation, Owned};
use super::set::Set;
use super::typed::{self, Duplicates};
use super::types::Type;
use super::updater::Updater;
use crate::model::Schema;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use transom_object::json::encode_escaped;

/// Where and how a write comes in.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Of the endpoint, such as `example.org/v1`.
    pub api_version: &'a str,
    /// `""`, `"status"` or `"scale"`.
    pub subresource: &'a str,
    /// By API version; `None` when the version is not served any more.
    pub schema: &'a dyn Fn(&str) -> Option<Arc<Schema>>,
    /// Converts an object to an API version.
    pub convert: &'a dyn Fn(&Value, &str) -> Option<Value>,
    /// Fields this endpoint never owns, by API version.
    pub reset_fields: &'a dyn Fn(&str) -> Option<Arc<Set>>,
    /// The object before any client sets a field, for types with fields that always exist. Fields that still have
    /// these values have no owner.
    pub blank: Option<&'a Value>,
    /// RFC 3339 in seconds.
    pub now: &'a str,
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager whose client-side annotation is honoured.
const KUBECTL: &str = "kubectl";
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// Fields the system owns.
static SYSTEM_FIELDS: LazyLock<Set> = LazyLock::new(|| {
    let metadata = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let top = [&["apiVersion"][..], &["kind"], &["metadata"]].map(Path::of);
    top.into_iter().chain(metadata.iter().map(|name| Path::of(&["metadata", name]))).collect()
});

/// Applies a configuration and returns the merged object with its new managedFields.
pub fn apply(
    ctx: &Context<'_>,
    live: Option<&Value>,
    config: &Value,
    manager: &str,
    force: bool,
) -> Result<Value, ApplyError> {
    match apply_change(ctx, live, config, manager, force)? {
        Some(object) => Ok(object),
        None => Ok(live.cloned().unwrap_or_default()),
    }
}

/// Applies a configuration. `None` when neither the object nor its owners change.
pub fn apply_change(
    ctx: &Context<'_>,
    live: Option<&Value>,
    config: &Value,
    manager: &str,
    force: bool,
) -> Result<Option<Value>, ApplyError> {
    check_configuration(ctx, live, config)?;
    check_type(ctx, config, Duplicates::Forbid, "failed to create typed patch object", "")?;
    if live.is_some_and(|live| is_applied(ctx, live, config, manager)) {
        return Ok(None);
    }
    let original = managers::decode(live.and_then(managed_fields))
        .map_err(|e| ApplyError::Failed(format!("failed to decode managed fields: {e}")))?;
    let base = at_endpoint(ctx, live, config)?;
    let mut managers = original.clone();
    if managers.is_empty() {
        attribute_existing(ctx, &base, &mut managers)
            .map_err(|e| ApplyError::Failed(format!("failed to create manager for existing fields: {e}")))?;
    }
    let merged = apply_ignoring_kubectl_conflicts(ctx, &base, config, &mut managers, manager, force)?;

    let sync_annotation = manager == KUBECTL && last_applied(merged.as_ref().unwrap_or(&base)).is_some();
    if merged.is_none() && managers == original && !sync_annotation {
        return Ok(None);
    }
    let mut object = merged.unwrap_or_else(|| without_managed_fields(&base));
    set_managed_fields(&mut object, managers::encode(&managers));
    if sync_annotation {
        sync_last_applied(&mut object, config);
    }
    Ok(Some(object))
}

/// Records in `new` which manager owns what after a write that is not an apply. Never fails: when ownership
/// cannot be determined, none is recorded, because a wrong record would be worse.
pub fn update(ctx: &Context<'_>, live: Option<&Value>, new: &mut Value, manager: &str) {
    if !new.get("metadata").is_some_and(Value::is_object) {
        return;
    }
    let given = take_managed_fields(new);
    let of_live = || live.and_then(managed_fields);
    let kept =
        !ctx.subresource.is_empty() || given.as_ref().is_none_or(|g| g.is_null() || Some(g) == of_live());
    if kept && live.is_some_and(|live| equal_but_managed_fields(live, new)) {
        // Nothing changes, so nothing changes hands.
        set_managed_fields(new, of_live().cloned());
        return;
    }
    let mut managers = if !ctx.subresource.is_empty() {
        managers::decode(of_live()).unwrap_or_default()
    } else if managers::is_reset(given.as_ref()) {
        Managers::new()
    } else {
        // Clients that do not know managedFields must not delete them by leaving them out.
        match managers::decode(given.as_ref()) {
            Ok(managers) if !managers.is_empty() => managers,
            _ => managers::decode(of_live()).unwrap_or_default(),
        }
    };
    let exists = live.is_some_and(|o| o["metadata"]["uid"].as_str().is_some_and(|uid| !uid.is_empty()));
    if managers.is_empty() && exists {
        return;
    }
    let tracked =
        at_endpoint(ctx, live, new).and_then(|base| track_update(ctx, &base, new, &mut managers, manager));
    let encoded = match tracked {
        Ok(()) => managers::encode(&managers),
        Err(_) => None,
    };
    set_managed_fields(new, encoded);
}

/// Undoes changes of managedFields' timestamps when they are all that differs from `old`, so that a write
/// that changes nothing is not one. Returns whether anything was undone.
pub fn keep_timestamps(old: &Value, new: &mut Value) -> bool {
    let (Some(Value::Array(before)), Some(Value::Array(after))) = (managed_fields(old), managed_fields(new))
    else {
        return false;
    };
    let untimed_equal = |a: &Value, b: &Value| match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let untimed = |m: &Map<String, Value>| m.len() - usize::from(m.contains_key("time"));
            untimed(a) == untimed(b) && a.iter().all(|(k, v)| k == "time" || b.get(k) == Some(v))
        }
        _ => a == b,
    };
    let same_owners =
        before.len() == after.len() && before.iter().zip(after).all(|(a, b)| untimed_equal(a, b));
    if !same_owners || before == after || !equal_but_managed_fields(old, new) {
        return false;
    }
    set_managed_fields(new, Some(Value::Array(before.clone())));
    true
}

fn equal_but_managed_fields(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return false };
    let visible = |m: &Value| -> usize {
        m.as_object().map_or(0, |m| m.len() - usize::from(m.contains_key("managedFields")))
    };
    a.len() == b.len()
        && a.iter().all(|(key, v)| match (key.as_str(), b.get(key)) {
            ("metadata", Some(w)) => {
                visible(v) == visible(w)
                    && v.as_object()
                        .is_none_or(|m| m.iter().all(|(k, v)| k == "managedFields" || w.get(k) == Some(v)))
            }
            (_, w) => w == Some(v),
        })
}

/// Whether a configuration can be applied here at all.
fn check_configuration(ctx: &Context<'_>, live: Option<&Value>, config: &Value) -> Result<(), ApplyError> {
    let kind = live.and_then(|l| l["kind"].as_str());
    let fits = config["apiVersion"].as_str() == Some(ctx.api_version)
        && config["kind"].as_str().is_some_and(|k| !k.is_empty() && kind.is_none_or(|kind| kind == k));
    if !fits {
        return Err(ApplyError::Invalid(format!("invalid object type: {}", group_version_kind(config))));
    }
    if managed_fields(config).and_then(Value::as_array).is_some_and(|entries| !entries.is_empty()) {
        return Err(ApplyError::Invalid("metadata.managedFields must be nil".to_owned()));
    }
    Ok(())
}

/// Whether a manager applied just this before and the object still has it all: most applies of controllers.
/// The fields of other managers need not be read to know that nothing changes hands.
fn is_applied(ctx: &Context<'_>, live: &Value, config: &Value, manager: &str) -> bool {
    if live["apiVersion"].as_str() != Some(ctx.api_version)
        || (manager == KUBECTL && last_applied(live).is_some())
    {
        return false;
    }
    let id = ManagerId::new(manager, Operation::Apply, ctx.api_version, ctx.subresource);
    let Some(schema) = (ctx.schema)(ctx.api_version) else { return false };
    let ty = Type::object(&schema);
    if !typed::absorbs(ty, live, config) {
        return false;
    }
    let Some(owned) = managers::find(managed_fields(live), &id) else { return false };
    let Ok(fields) = typed::to_field_set(ty, config) else { return false };
    let fields = with_updater(ctx, |updater| updater.without_ignored(fields, ctx.api_version));
    owned.api_version == ctx.api_version && owned.set == fields.difference(&SYSTEM_FIELDS)
}

/// The live object at the endpoint's version; for a new object one that has nothing but its type.
fn at_endpoint<'v>(
    ctx: &Context<'_>,
    live: Option<&'v Value>,
    new: &Value,
) -> Result<Cow<'v, Value>, ApplyError> {
    match live {
        None => Ok(Cow::Owned(json!({"apiVersion": ctx.api_version, "kind": new["kind"]}))),
        Some(live) if live["apiVersion"].as_str().is_none_or(|v| v == ctx.api_version) => {
            Ok(Cow::Borrowed(live))
        }
        Some(live) => (ctx.convert)(live, ctx.api_version).map(Cow::Owned).ok_or_else(|| {
            ApplyError::Failed(format!(
                "failed to convert live object ({}) to proper version",
                describe(live)
            ))
        }),
    }
}

/// Gives everything an object has to one manager, because it is not recorded who wrote it.
fn attribute_existing(ctx: &Context<'_>, base: &Value, managers: &mut Managers) -> Result<(), ApplyError> {
    let empty = json!({"apiVersion": ctx.api_version, "kind": base["kind"]});
    track_update(ctx, ctx.blank.unwrap_or(&empty), base, managers, BEFORE_FIRST_APPLY)
}

fn track_update(
    ctx: &Context<'_>,
    base: &Value,
    new: &Value,
    managers: &mut Managers,
    manager: &str,
) -> Result<(), ApplyError> {
    check_type(ctx, new, Duplicates::Allow, "failed to convert new object", "to smd typed")?;
    check_type(ctx, base, Duplicates::Allow, "failed to convert live object", "to smd typed")?;
    let taken = with_updater(ctx, |updater| updater.update(base, new, ctx.api_version, managers))?.taken;
    let taken = taken.difference(&SYSTEM_FIELDS);
    if !taken.is_empty() {
        let id = ManagerId::new(manager, Operation::Update, ctx.api_version, ctx.subresource);
        let set = match managers.get(&id) {
            Some(previous) => taken.union(&previous.set),
            None => taken,
        };
        let time = Some(ctx.now.to_owned());
        managers.insert(id, Owned { set, api_version: ctx.api_version.to_owned(), time });
    }
    managers::cap_update_managers(managers, MAX_UPDATE_MANAGERS);
    Ok(())
}

/// Applies. For the manager `kubectl`, conflicts on fields of its last client-side apply (the annotation
/// `last-applied-configuration`) are ignored.
fn apply_ignoring_kubectl_conflicts(
    ctx: &Context<'_>,
    base: &Value,
    config: &Value,
    managers: &mut Managers,
    manager: &str,
    force: bool,
) -> Result<Option<Value>, ApplyError> {
    check_type(ctx, base, Duplicates::Allow, "failed to create typed live object", "")?;
    if manager != KUBECTL || force {
        return apply_once(ctx, base, config, managers, manager, force);
    }
    let before = managers.clone();
    let conflicts = match apply_once(ctx, base, config, managers, manager, false) {
        Err(ApplyError::Conflicts(conflicts)) => conflicts,
        other => return other,
    };
    let Some(allowed) = fields_of_last_applied(ctx, base) else {
        return Err(ApplyError::Conflicts(conflicts));
    };
    let left: Vec<Conflict> = conflicts.into_iter().filter(|c| !allowed.has(&c.path.0)).collect();
    if !left.is_empty() {
        return Err(ApplyError::Conflicts(left));
    }
    *managers = before;
    apply_once(ctx, base, config, managers, manager, true)
}

fn apply_once(
    ctx: &Context<'_>,
    base: &Value,
    config: &Value,
    managers: &mut Managers,
    manager: &str,
    force: bool,
) -> Result<Option<Value>, ApplyError> {
    let id = ManagerId::new(manager, Operation::Apply, ctx.api_version, ctx.subresource);
    let merged =
        with_updater(ctx, |updater| updater.apply(base, config, ctx.api_version, managers, &id, force))?;
    if let Some(owned) = managers.get_mut(&id) {
        owned.set = owned.set.difference(&SYSTEM_FIELDS);
        if merged.is_some() {
            owned.time = Some(ctx.now.to_owned());
        }
        if owned.set.is_empty() {
            managers.remove(&id);
        }
    }
    Ok(merged)
}

fn with_updater<T>(ctx: &Context<'_>, work: impl FnOnce(&Updater<'_>) -> T) -> T {
    let convert = |value: &Value, _: &str, to: &str| (ctx.convert)(value, to);
    let updater = Updater {
        schema: ctx.schema,
        convert: &convert,
        ignored: ctx.reset_fields,
        root: |schema| Type::object(schema),
    };
    work(&updater)
}

fn check_type(
    ctx: &Context<'_>,
    value: &Value,
    duplicates: Duplicates,
    what: &str,
    suffix: &str,
) -> Result<(), ApplyError> {
    let schema = (ctx.schema)(ctx.api_version).ok_or_else(|| {
        ApplyError::Failed(format!("no corresponding type for {}", group_version_kind(value)))
    })?;
    typed::validate(Type::object(&schema), value, duplicates).map_err(|e| {
        let space = if suffix.is_empty() { "" } else { " " };
        ApplyError::Failed(format!("{what} ({}){space}{suffix}: {e}", describe(value)))
    })
}

/// The fields of the last client-side apply that still have the values it gave them.
fn fields_of_last_applied(ctx: &Context<'_>, base: &Value) -> Option<Set> {
    let config: Value = serde_json::from_str(last_applied(base)?).ok()?;
    if config["apiVersion"].as_str() != Some(ctx.api_version) {
        return None;
    }
    let schema = (ctx.schema)(ctx.api_version)?;
    let ty = Type::object(&schema);
    typed::validate(ty, base, Duplicates::Forbid).ok()?;
    typed::validate(ty, &config, Duplicates::Forbid).ok()?;
    let fields = typed::to_field_set(ty, &config).ok()?;
    let change = typed::compare(ty, &config, base).ok()?;
    Some(fields.difference(&change.modified).difference(&change.added).difference(&change.removed))
}

fn last_applied(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][LAST_APPLIED].as_str().filter(|text| !text.is_empty())
}

/// Writes the applied configuration into the client-side annotation, or drops that if it gets too large.
fn sync_last_applied(object: &mut Value, config: &Value) {
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.insert(LAST_APPLIED.to_owned(), format!("{}\n", encode_escaped(&config)).into());
    let size: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATION_BYTES {
        annotations.remove(LAST_APPLIED);
    }
}

fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

fn set_managed_fields(object: &mut Value, entries: Option<Value>) {
    let Some(object) = object.as_object_mut() else { return };
    match entries {
        None => {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
        }
        Some(entries) => {
            let metadata = object.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("managedFields".to_owned(), entries);
            }
        }
    }
}

/// A copy without managedFields, which are often the larger part of an object.
fn without_managed_fields(object: &Value) -> Value {
    let Some(fields) = object.as_object() else { return object.clone() };
    let copy = |key: &String, value: &Value| match value {
        Value::Object(metadata) if key == "metadata" => {
            let kept = metadata.iter().filter(|(k, _)| *k != "managedFields");
            Value::Object(kept.map(|(k, v)| (k.clone(), v.clone())).collect())
        }
        _ => value.clone(),
    };
    Value::Object(fields.iter().map(|(k, v)| (k.clone(), copy(k, v))).collect())
}

/// `namespace/name; group/version, Kind=kind`.
fn describe(object: &Value) -> String {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    format!("{}/{}; {}", text("namespace"), text("name"), group_version_kind(object))
}

/// `group/version, Kind=kind`, with an empty group for the core one.
fn group_version_kind(object: &Value) -> String {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={}", object["kind"].as_str().unwrap_or_default())
}
