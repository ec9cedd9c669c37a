//! Kinds that a CustomResourceDefinition describes: objects are pruned, defaulted and validated by the schema of their version,
//! with the CEL rules of the definition.
//!
//! The definition is compiled once, when it is stored. Which versions an object is converted between is decided elsewhere.

use super::{Column, Strategy, generation};
use crate::resource::ScalePaths;
use crate::subresource::Subresource;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transom_object::field::{self, Path};
use transom_object::json::{go_type, strings};
use transom_object::{jsonpath, meta, names};
use transom_schema::normalize::{self, MalformedFields};
use transom_schema::rules::Rules;
use transom_schema::{Schema, own, patch, validate};

/// An extra column, with its path compiled.
pub(crate) struct PrinterColumn {
    pub(crate) column: Column,
    pub(crate) path: Option<jsonpath::Template>,
}

/// One version of a custom kind.
pub(crate) struct Custom {
    pub(crate) api_version: String,
    pub(crate) group: String,
    pub(crate) storage_version: String,
    pub(crate) schema: Arc<Schema>,
    /// Of every version, by apiVersion: objects are read by the schema of the version they are stored in, and
    /// only then become this version.
    pub(crate) schemas: Arc<BTreeMap<String, Arc<Schema>>>,
    pub(crate) rules: Rules,
    pub(crate) has_status: bool,
    pub(crate) columns: Vec<PrinterColumn>,
    pub(crate) selectable: Vec<String>,
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) reset_main: Option<Arc<own::Set>>,
    pub(crate) reset_status: Arc<own::Set>,
}

impl Custom {
    /// Whether a write to this subresource leaves the status as it is. Without a status subresource, none does.
    fn keeps_status(&self, subresource: Subresource) -> bool {
        self.has_status && subresource != Subresource::Status
    }

    fn validate_value(
        &self,
        new: &Value,
        old: Option<&Value>,
        subresource: Subresource,
        found: &[field::Error],
    ) -> Vec<field::Error> {
        let root = Path::root();
        let mut errors = match subresource {
            Subresource::Status => validate::validate_status(new, old, &self.schema),
            _ => validate::validate(new, old, &self.schema, &root),
        };
        errors.extend(validate::embedded(new, &self.schema, false, &root));
        errors.extend(validate::list_types(new, old, &self.schema, &root));
        if let Some(scale) = &self.scale {
            errors.extend(check_replicas(new, &scale.spec_replicas));
            errors.extend(check_replicas(new, &scale.status_replicas));
        }
        if self.rules.is_empty() {
            return errors;
        }
        if validate::blocks_rules(found) || validate::blocks_rules(&errors) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            errors.push(field::Error {
                kind: field::Kind::Invalid,
                field: "<nil>".into(),
                value: Value::Null,
                detail: why.into(),
            });
            return errors;
        }
        errors.extend(self.rules.validate(new, old, &root));
        errors
    }
}

impl Strategy for Custom {
    fn normalize(&self, value: &mut Value) -> Result<Vec<String>, String> {
        normalize_by(value, &self.schema)
    }

    fn is_typed(&self) -> bool {
        false
    }

    fn read(&self, value: &mut Value) -> Result<(), String> {
        let stored = value["apiVersion"].as_str().and_then(|version| self.schemas.get(version));
        normalize_by(value, stored.unwrap_or(&self.schema))?;
        if value["apiVersion"] != *self.api_version {
            value["apiVersion"] = self.api_version.as_str().into();
            normalize::prune(value, &self.schema, true);
        }
        Ok(())
    }

    fn storage_version(&self) -> &str {
        &self.storage_version
    }

    fn convert_to_storage<'v>(&self, value: &'v Value) -> Cow<'v, Value> {
        let mut stored = Cow::Borrowed(value);
        let version = format!("{}/{}", self.group, self.storage_version);
        if version != self.api_version
            && let Some(schema) = self.schemas.get(&version)
        {
            // As reading it would: what is stored is what the storage version serves.
            let value = stored.to_mut();
            normalize::prune(value, schema, true);
            normalize::drop_nulls(value, schema);
            normalize::default(value, schema);
        }
        if value["apiVersion"] != version {
            stored.to_mut()["apiVersion"] = version.into();
        }
        stored
    }

    fn prepare_create(&self, new: &mut Value) {
        if self.has_status
            && let Some(map) = new.as_object_mut()
        {
            map.remove("status");
        }
        generation::begin(new);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: Subresource) {
        if subresource == Subresource::Status {
            keep_all_but_status(new, old);
            return;
        }
        if self.keeps_status(subresource) {
            copy_field(new, old, "status");
        }
        if generation::differs(new, old, &[]) {
            generation::advance(new, old);
        }
    }

    fn validate(
        &self,
        new: &Value,
        old: Option<&Value>,
        subresource: Subresource,
        found: &[field::Error],
    ) -> Vec<field::Error> {
        self.validate_value(new, old, subresource, found)
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        finalizer_warnings(new, old)
    }

    fn name_rule(&self) -> meta::NameRule {
        names::name_is_dns_subdomain
    }

    fn reset_fields(&self, subresource: Subresource) -> Option<Arc<own::Set>> {
        match subresource {
            Subresource::Status => Some(self.reset_status.clone()),
            _ => self.reset_main.clone(),
        }
    }

    fn patch_schema(&self) -> Option<Arc<Schema>> {
        None
    }

    fn selectable_fields(&self) -> &[String] {
        &self.selectable
    }

    fn selectable_value(&self, value: &Value, label: &str) -> String {
        let found = label.split('.').try_fold(value, |v, key| v.get(key));
        match found {
            Some(Value::String(s)) => s.clone(),
            Some(v @ (Value::Bool(_) | Value::Number(_))) => v.to_string(),
            _ => String::new(),
        }
    }

    fn columns(&self) -> Vec<Column> {
        let name = Column {
            name: "Name".into(),
            ty: "string".into(),
            format: "name".into(),
            description: NAME_DESCRIPTION.into(),
            priority: 0,
        };
        std::iter::once(name).chain(self.columns.iter().map(|c| c.column.clone())).collect()
    }

    fn cells(&self, value: &Value, now: i64) -> Vec<Value> {
        let mut cells = vec![value["metadata"]["name"].clone()];
        cells.extend(self.columns.iter().map(|c| cell(c, value, now)));
        cells
    }
}

/// Coerced, pruned and defaulted by a schema; returns the fields that it does not have.
fn normalize_by(value: &mut Value, schema: &Schema) -> Result<Vec<String>, String> {
    let mut unknown = normalize::coerce_metadata(value, schema, true, MalformedFields::Refuse).map_err(
        // The decoder reports the object's own metadata; that of embedded objects is reported by its path.
        |e| if e.field == "metadata" { e.detail } else { e.to_string() },
    )?;
    unknown.extend(normalize::prune(value, schema, true));
    normalize::drop_nulls(value, schema);
    normalize::default(value, schema);
    Ok(unknown)
}

/// Warnings about the names of new finalizers.
fn finalizer_warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let of = |value: &Value| strings(&value["metadata"]["finalizers"]).into_iter().collect::<BTreeSet<_>>();
    let before = old.map(of).unwrap_or_default();
    of(new).difference(&before).flat_map(|name| finalizer_advice(name)).collect()
}

fn finalizer_advice(name: &str) -> Vec<String> {
    let mut advice = names::is_qualified_name(name);
    let standard = ["kubernetes", meta::FINALIZER_ORPHAN, meta::FINALIZER_FOREGROUND].contains(&name);
    if !standard && !name.contains('/') {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        advice.push(format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        ));
    }
    advice.into_iter().map(|advice| format!("metadata.finalizers: {name:?}: {advice}")).collect()
}

/// The field that the scale subresource reads must be a replica count.
fn check_replicas(value: &Value, path: &[String]) -> Option<field::Error> {
    let at = Path::new(&format!(".{}", path.join(".")));
    let unreadable = |found: &Value, expected: &str| {
        let (text, ty) = (patch::go_text(found), go_type(found));
        let why = format!("{at} accessor error: {text} is of the type {ty}, expected {expected}");
        Some(field::Error::invalid(&at, 0, why))
    };
    let mut found = value;
    for key in path {
        match found {
            Value::Object(map) => found = map.get(key)?,
            Value::Null => return None,
            other => return unreadable(other, "map[string]interface{}"),
        }
    }
    let Some(n) = found.as_i64() else { return unreadable(found, "int64") };
    match n {
        ..0 => Some(field::Error::invalid(&at, n, "should be a non-negative integer")),
        2_147_483_648.. => {
            Some(field::Error::invalid(&at, n, format!("should be less than or equal to {}", i32::MAX)))
        }
        _ => None,
    }
}

pub(crate) const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

fn cell(column: &PrinterColumn, value: &Value, now: i64) -> Value {
    let found = column.path.as_ref().and_then(|p| p.first(value));
    found.map_or(Value::Null, |found| cell_value(&column.column.ty, found, now))
}

/// The cell of a value in a column of a type.
fn cell_value(ty: &str, found: &Value, now: i64) -> Value {
    match (ty, found) {
        (_, Value::Null) => Value::Null,
        ("date", Value::String(s)) if s.is_empty() => "<unknown>".into(),
        ("date", Value::String(s)) => match transom_object::time::parse(s) {
            Ok(at) => transom_object::time::human_duration(now - at.as_second()).into(),
            Err(_) => "<invalid>".into(),
        },
        ("date", _) => Value::Null,
        ("integer", v) => whole(v).map_or(Value::Null, Value::from),
        ("number", v) => v.as_f64().map_or(Value::Null, |_| v.clone()),
        ("boolean", v) => v.as_bool().map_or(Value::Null, Value::from),
        (_, Value::String(s)) => s.as_str().into(),
        (_, v @ (Value::Bool(_) | Value::Number(_))) => v.to_string().into(),
        (_, v) => jsonpath::print_results(&[v]).into(),
    }
}

/// A number without its fraction.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|f| f as i64))
}

/// A status update changes only the status, and managedFields to record it.
fn keep_all_but_status(new: &mut Value, old: &Value) {
    let mut kept = old.clone();
    let (status, managed) = (new.get("status").cloned(), new["metadata"].get("managedFields").cloned());
    let set = |map: &mut Map<String, Value>, key: &str, value: Option<Value>| match value {
        Some(v) => drop(map.insert(key.into(), v)),
        None => drop(map.remove(key)),
    };
    if let Some(map) = kept.as_object_mut() {
        set(map, "status", status);
    }
    if let Some(map) = kept.get_mut("metadata").and_then(Value::as_object_mut) {
        set(map, "managedFields", managed);
    }
    *new = kept;
}

pub(crate) fn copy_field(new: &mut Value, old: &Value, key: &str) {
    if let Some(map) = new.as_object_mut() {
        match old.get(key) {
            Some(v) => map.insert(key.into(), v.clone()),
            None => map.remove(key),
        };
    }
}

#[cfg(test)]
mod tests;
