//! The versions of a definition: the list, and each version apart from its schema.

use super::Options;
use super::names::label;
use super::schema::{self, Unchanged};
use super::spec::{Parts, Spec, Version, given, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use transom_object::field::{Error, Path};
use transom_object::quote::is_print;
use transom_schema::structural;
use transom_schema::structural::field_path::{Brackets, resolve};
use transom_schema::structural::shown::{self, Field, Fields};
use transom_schema::{Schema, Type};

const MAX_SELECTABLE_FIELDS: usize = 8;
const MAX_WARNING_BYTES: usize = 256;
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

const VALIDATION: Fields = &[("OpenAPIV3Schema", "openAPIV3Schema", Field::Schema)];
const SCALE: Fields = &[
    ("SpecReplicasPath", "specReplicasPath", Field::Text),
    ("StatusReplicasPath", "statusReplicasPath", Field::Text),
    ("LabelSelectorPath", "labelSelectorPath", Field::Any),
];
const SUBRESOURCES: Fields = &[("Status", "status", Field::Any), ("Scale", "scale", Field::Struct(SCALE))];
const COLUMN: Fields = &[
    ("Name", "name", Field::Text),
    ("Type", "type", Field::Text),
    ("Format", "format", Field::Text),
    ("Description", "description", Field::Text),
    ("Priority", "priority", Field::Number),
    ("JSONPath", "jsonPath", Field::Text),
];
const SELECTABLE: Fields = &[("JSONPath", "jsonPath", Field::Text)];
const VERSION: Fields = &[
    ("Name", "name", Field::Text),
    ("Served", "served", Field::Flag),
    ("Storage", "storage", Field::Flag),
    ("Deprecated", "deprecated", Field::Flag),
    ("DeprecationWarning", "deprecationWarning", Field::Any),
    ("Schema", "schema", Field::Struct(VALIDATION)),
    ("Subresources", "subresources", Field::Struct(SUBRESOURCES)),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", Field::Structs(COLUMN)),
    ("SelectableFields", "selectableFields", Field::Structs(SELECTABLE)),
];

/// Schemas are there: for every version, or for those that are served and would otherwise lose all fields.
pub(super) fn schemas_given(spec: &Spec<'_>, all: bool, prunes: bool, path: &Path) -> Vec<Error> {
    if spec.shared.document().is_some() {
        return Vec::new();
    }
    let missing = spec.versions.iter().enumerate().filter(|(_, v)| v.parts.document().is_none());
    let at = |i: usize| path.child("versions").index(i).child("schema").child("openAPIV3Schema");
    if all {
        missing.map(|(i, _)| Error::required(&at(i), "")).collect()
    } else if prunes {
        let served = missing.filter(|(_, v)| v.served);
        served.map(|(i, _)| Error::required(&at(i), "because otherwise all fields are pruned")).collect()
    } else {
        Vec::new()
    }
}

/// Each version by itself, then all of them.
pub(super) fn all(spec: &Spec<'_>, options: &Options, path: &Path) -> Vec<Error> {
    let at = path.child("versions");
    let mut errors = Vec::new();
    for (i, version) in spec.versions.iter().enumerate() {
        let at = at.index(i);
        errors.extend(label(&at.child("name"), version.name));
        errors.extend(one(version, spec.has_status(version.name), options, &at));
    }
    errors.extend(placed_once(spec, path));
    errors.extend(list(spec, &at));
    if !spec.version.is_empty() {
        let at = path.child("version");
        errors.extend(label(&at, spec.version));
        if spec.versions.first().is_some_and(|first| first.name != spec.version) {
            errors.push(Error::invalid(&at, spec.version, "must match the first version in spec.versions"));
        }
    }
    errors
}

fn one(version: &Version<'_>, status: bool, options: &Options, path: &Path) -> Vec<Error> {
    let shown = version.warning.map_or(Value::Null, Value::from);
    let at = path.child("deprecationWarning");
    let wrong = deprecation(version.deprecated, version.warning);
    let mut errors: Vec<Error> = wrong.into_iter().map(|m| Error::invalid(&at, shown.clone(), m)).collect();
    let unchanged = Unchanged(options.unchanged.contains(version.name));
    let parts = &version.parts;
    errors.extend(schema::check(
        parts.validation,
        status,
        &options.requirements,
        unchanged,
        &path.child("schema"),
    ));
    errors.extend(subresources(parts.subresources, &path.child("subresources")));
    errors.extend(columns(parts.columns, &path.child("additionalPrinterColumns")));
    if !parts.selectable.is_empty() {
        match parts.document() {
            Some(document) => {
                let many = options.many_selectable.contains(version.name);
                errors.extend(selectable(
                    parts.selectable,
                    document,
                    many,
                    path,
                    &path.child("schema.openAPIV3Schema"),
                ));
            }
            None => {
                let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
                errors.push(Error::invalid(&path.child("selectableFields"), "", detail));
            }
        }
    }
    errors
}

/// What all versions have in common, except the schema.
pub(super) fn shared(spec: &Spec<'_>, options: &Options, path: &Path) -> Vec<Error> {
    let parts = &spec.shared;
    let mut errors = subresources(parts.subresources, &path.child("subresources"));
    errors.extend(columns(parts.columns, &path.child("additionalPrinterColumns")));
    if !parts.selectable.is_empty() {
        match (parts.validation, parts.document()) {
            (None, _) => {
                let detail = "may only be set when validations.schema is included";
                errors.push(Error::invalid(&path.child("selectableFields"), "", detail));
            }
            (Some(_), document) => {
                let document = document.unwrap_or(&Value::Null);
                let many = options.many_selectable.contains("");
                errors.extend(selectable(
                    parts.selectable,
                    document,
                    many,
                    path,
                    &path.child("schema.openAPIV3Schema"),
                ));
            }
        }
    }
    errors
}

/// A field stands either at the spec or at versions, and at versions only if they differ.
fn placed_once(spec: &Spec<'_>, path: &Path) -> Vec<Error> {
    let versions = &spec.versions;
    let any = |has: fn(&Parts<'_>) -> bool| versions.iter().any(|v| has(&v.parts));
    let mut errors = Vec::new();
    for (twice, field, what) in [
        (spec.shared.validation.is_some() && any(|p| p.validation.is_some()), "validation", "schemas"),
        (
            spec.shared.subresources.is_some() && any(|p| p.subresources.is_some()),
            "subresources",
            "subresources",
        ),
        (
            !spec.shared.columns.is_empty() && any(|p| !p.columns.is_empty()),
            "additionalPrinterColumns",
            "additionalPrinterColumns",
        ),
    ] {
        if twice {
            let detail = format!("top-level and per-version {what} are mutually exclusive");
            errors.push(Error::forbidden(&path.child(field), detail));
        }
    }
    let Some(first) = versions.first().map(|v| &v.parts) else { return errors };
    let all = |same: &dyn Fn(&Parts<'_>) -> bool| versions.iter().all(|v| same(&v.parts));
    for (identical, what, instead) in [
        (all(&|p| p.validation.is_some() && p.validation == first.validation), "schemas", "validation"),
        (
            all(&|p| p.subresources.is_some() && p.subresources == first.subresources),
            "subresources",
            "subresources",
        ),
        (
            all(&|p| !p.columns.is_empty() && p.columns == first.columns),
            "additionalPrinterColumns",
            "additionalPrinterColumns",
        ),
    ] {
        if identical {
            let detail = format!(
                "per-version {what} may not all be set to identical values (top-level {instead} should be used instead)"
            );
            errors.push(shown::invalid(&path.child("versions"), &shown_versions(spec), &detail));
        }
    }
    errors
}

fn list(spec: &Spec<'_>, path: &Path) -> Vec<Error> {
    let names: BTreeSet<&str> = spec.versions.iter().map(|v| v.name).collect();
    let storage = spec.versions.iter().filter(|v| v.storage).count();
    let mut errors = Vec::new();
    let mut refuse = |detail: &str| errors.push(shown::invalid(path, &shown_versions(spec), detail));
    if names.len() != spec.versions.len() {
        refuse("must contain unique version names");
    }
    if storage != 1 {
        refuse("must have exactly one version marked as storage version");
    }
    errors
}

fn shown_versions(spec: &Spec<'_>) -> String {
    if !spec.lists_versions {
        return "null".to_owned();
    }
    let or_null = |list: &[Value]| if list.is_empty() { Value::Null } else { list.to_vec().into() };
    let list: Vec<Value> = spec
        .versions
        .iter()
        .map(|v| {
            json!({
                "name": v.name, "served": v.served, "storage": v.storage, "deprecated": v.deprecated,
                "deprecationWarning": v.warning, "schema": v.parts.validation,
                "subresources": v.parts.subresources,
                "additionalPrinterColumns": or_null(v.parts.columns),
                "selectableFields": or_null(v.parts.selectable),
            })
        })
        .collect();
    shown::value(&list.into(), Field::Structs(VERSION))
}

/// What is wrong with a warning to users of a version.
pub(super) fn deprecation(deprecated: bool, warning: Option<&str>) -> Vec<String> {
    let Some(warning) = warning else { return Vec::new() };
    if !deprecated {
        return vec!["can only be set for deprecated versions".to_owned()];
    }
    let mut wrong = Vec::new();
    if warning.len() > MAX_WARNING_BYTES {
        wrong.push(format!("must be <= {MAX_WARNING_BYTES} characters long"));
    }
    if warning.is_empty() {
        wrong.push("must not be an empty string".to_owned());
    }
    if let Some((i, _)) = warning.char_indices().find(|(_, c)| !is_print(*c)) {
        wrong.push(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {i}"
        ));
    }
    wrong
}

fn subresources(subresources: Option<&Value>, path: &Path) -> Vec<Error> {
    let Some(scale) = subresources.and_then(|s| given(s, "scale")) else { return Vec::new() };
    let mut errors = Vec::new();
    for (field, required, under, detail) in [
        ("specReplicasPath", true, &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", true, &[".status."], "should be a json path under .status"),
        (
            "labelSelectorPath",
            false,
            &[".spec.", ".status."],
            "should be a json path under either .spec or .status",
        ),
    ] {
        let at = path.child(&format!("scale.{field}"));
        let value = text(scale, field);
        if value.is_empty() {
            errors.extend(required.then(|| Error::required(&at, "")));
        } else if let Some(error) = simple_path(&at, value) {
            errors.push(error);
        } else if !under.iter().any(|prefix| value.starts_with(prefix)) {
            errors.push(Error::invalid(&at, value, detail));
        }
    }
    errors
}

fn simple_path(path: &Path, value: &str) -> Option<Error> {
    (!value.starts_with('.'))
        .then(|| Error::invalid(path, value, "must be a simple json path starting with ."))
}

fn columns(columns: &[Value], path: &Path) -> Vec<Error> {
    columns.iter().enumerate().flat_map(|(i, c)| column(c, &path.index(i))).collect()
}

fn column(column: &Value, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    if text(column, "name").is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    let (ty, at) = (text(column, "type"), path.child("type"));
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    if ty.is_empty() {
        errors.push(Error::required(&at, types));
    } else if !COLUMN_TYPES.contains(&ty) {
        errors.push(Error::invalid(&at, ty, types));
    }
    let format = text(column, "format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(Error::invalid(&path.child("format"), format, detail));
    }
    let (json_path, at) = (text(column, "jsonPath"), path.child("JSONPath"));
    if json_path.is_empty() {
        errors.push(Error::required(&at, ""));
    } else {
        errors.extend(simple_path(&at, json_path));
    }
    errors
}

/// Fields that clients may select by are few, scalar, and part of the schema.
fn selectable(fields: &[Value], document: &Value, many: bool, path: &Path, schema_path: &Path) -> Vec<Error> {
    let path = path.child("selectableFields");
    let mut errors = Vec::new();
    let schema = structural::parse(document).unwrap_or_else(|wrong| {
        let detail = wrong.first().map(|e| e.detail.clone()).unwrap_or_default();
        errors.push(Error::invalid(schema_path, "", detail));
        Schema::default()
    });
    let mut seen = BTreeSet::new();
    for (i, field) in fields.iter().enumerate() {
        let at = path.index(i).child("jsonPath");
        let json_path = text(field, "jsonPath");
        if json_path.is_empty() {
            errors.push(Error::required(&at, ""));
            continue;
        }
        let (resolved, found) = match resolve(json_path, &schema, Brackets::Refused) {
            Ok(found) => found,
            Err(why) => {
                errors.push(Error::invalid(&at, json_path, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if resolved.as_str().split(['.', '[']).next() == Some("metadata") {
            errors.push(Error::invalid(&at, json_path, "must not point to fields in metadata"));
        }
        if !found.is_some_and(|found| matches!(found.ty, Type::String | Type::Boolean | Type::Integer)) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(Error::invalid(&at, json_path, detail));
        }
        if !seen.insert(resolved.as_str().to_owned()) {
            errors.push(Error::duplicate(&at, json_path));
        }
    }
    if seen.len() > MAX_SELECTABLE_FIELDS && !many {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        errors.push(Error::too_many(&path, count(seen.len()), count(MAX_SELECTABLE_FIELDS)));
    }
    errors
}

/// The lists of selectable fields that were too long and stay as they are.
pub(super) fn keeping_many_selectable(new: &Spec<'_>, old: &Spec<'_>) -> BTreeSet<String> {
    let keeps = |new: &Parts<'_>, old: &Parts<'_>| {
        old.selectable.len() > MAX_SELECTABLE_FIELDS && new.selectable == old.selectable
    };
    let before = |name: &str| old.versions.iter().rfind(|v| v.name == name);
    let versions = new.versions.iter().filter(|v| before(v.name).is_some_and(|o| keeps(&v.parts, &o.parts)));
    let shared = keeps(&new.shared, &old.shared).then(String::new);
    versions.map(|v| v.name.to_owned()).chain(shared).collect()
}

/// Versions that objects may be stored in stay in the spec, and the one they are stored in is among them.
pub(super) fn stored(stored: &Value, spec: &Spec<'_>, path: &Path) -> Vec<Error> {
    let list: Vec<&str> = stored.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if list.is_empty() {
        return vec![Error::invalid(path, stored.clone(), "must have at least one stored version")];
    }
    // Each stored version is accounted for once, so that the second of two versions of a name misses it.
    let repeated = |at: usize, name: &str| spec.versions[..at].iter().any(|v| v.name == name);
    let missing = spec
        .versions
        .iter()
        .enumerate()
        .filter(|(at, v)| v.storage && (!list.contains(&v.name) || repeated(*at, v.name)))
        .map(|(_, v)| v);
    let mut errors: Vec<Error> = missing
        .map(|v| Error::invalid(path, stored.clone(), format!("must have the storage version {}", v.name)))
        .collect();
    for (i, version) in list.iter().enumerate() {
        let last = list.iter().rposition(|v| v == version) == Some(i);
        if last && !spec.versions.iter().any(|v| v.name == *version) {
            let detail = format!(
                "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
            );
            errors.push(Error::invalid(&path.index(i), *version, detail));
        }
    }
    errors
}
