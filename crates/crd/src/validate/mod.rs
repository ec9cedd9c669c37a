//! Validation of definitions, with kube-apiserver's rules and messages.
//!
//! kube-apiserver validates definitions in a form of its own, and its errors name fields of that form: what all
//! versions have in common is at the spec, once ([`spec`]). A rule that was added after the first definitions applies to
//! an update only if the stored definition follows it ([`Options`]).
//!
//! | module | what it validates |
//! |---|---|
//! | [`spec`] | nothing: the form in which the others read a definition |
//! | [`names`] | group, scope, names, and the approval of protected groups |
//! | [`versions`] | the list of versions, and all of a version but its schema |
//! | [`schema`], [`rules`] | schemas, and the rules in them |
//! | [`conversion`] | how versions are converted into each other |

mod conversion;
mod names;
mod rules;
mod schema;
mod spec;
mod versions;

#[cfg(test)]
mod tests;

use crate::has_condition;
use schema::Unchanged;
use serde_json::Value;
use spec::Spec;
use std::collections::BTreeSet;
use transom_object::field::{Error, Path};
use transom_object::meta;
use transom_object::quote::quote;
use transom_schema::structural::{self, Requirements};

/// Rules that apply to an update, depending on the stored definition.
struct Options {
    requirements: Requirements,
    /// Every version has a schema.
    schemas: bool,
    /// One of the versions of ConversionReview is known.
    recognized_reviews: bool,
    ca_bundle: bool,
    /// Versions that keep a list of selectable fields that is too long; `""` for the list of all versions.
    many_selectable: BTreeSet<String>,
    /// Versions whose schemas are as they were.
    unchanged: BTreeSet<String>,
}

impl Options {
    fn create() -> Self {
        Self {
            requirements: Requirements::default(),
            schemas: true,
            recognized_reviews: true,
            // Nothing is converted before the definition is established.
            ca_bundle: false,
            many_selectable: BTreeSet::new(),
            unchanged: BTreeSet::new(),
        }
    }

    fn update(new: &Spec<'_>, old: &Spec<'_>, established: bool) -> Self {
        let kept = old.documents().map(Requirements::kept_by);
        Self {
            requirements: kept.fold(Requirements::default(), Requirements::and),
            schemas: old.shared.document().is_some()
                || old.versions.iter().all(|v| v.parts.document().is_some()),
            recognized_reviews: conversion::recognizes_a_review(old),
            ca_bundle: established && conversion::ca_bundle_is_good(old),
            many_selectable: versions::keeping_many_selectable(new, old),
            unchanged: new
                .versions
                .iter()
                .filter(
                    |v| matches!((new.schema_of(v.name), old.schema_of(v.name)), (Ok(a), Ok(b)) if a == b),
                )
                .map(|v| v.name.to_owned())
                .collect(),
        }
    }
}

/// The part of a definition's status that is validated with its spec.
struct Status<'a> {
    accepted_names: &'a Value,
    stored_versions: Value,
}

impl<'a> Status<'a> {
    /// The status as clients have read it. Valid names are accepted as part of this write, so the new ones are not
    /// validated twice.
    fn with(spec: &Spec<'_>, old: Option<&'a Value>) -> Self {
        let status = old.map_or(&Value::Null, |old| &old["status"]);
        let mut stored = status["storedVersions"].as_array().cloned().unwrap_or_default();
        if let Some(version) = spec.versions.iter().find(|v| v.storage)
            && !stored.iter().any(|v| v == version.name)
        {
            stored.push(version.name.into());
        }
        let stored_versions = if stored.is_empty() { Value::Null } else { stored.into() };
        Self { accepted_names: &status["acceptedNames"], stored_versions }
    }

    fn judge(&self, spec: &Spec<'_>) -> Vec<Error> {
        let path = Path::new("status");
        let mut errors = names::form(self.accepted_names, &path.child("acceptedNames"));
        errors.extend(versions::stored(&self.stored_versions, spec, &path.child("storedVersions")));
        errors
    }
}

/// The errors of a new definition, or of an update if `old` is given. Both are normalised and defaulted.
pub fn validate(new: &Value, old: Option<&Value>) -> Vec<Error> {
    let spec = Spec::unified(&new["spec"]);
    let status = Status::with(&spec, old);
    match old {
        None => created(new, &spec, &status),
        Some(old) => updated(new, &spec, &status, old, &Spec::unified(&old["spec"])),
    }
}

/// The errors of a status that is written by itself.
pub fn validate_status(new: &Value) -> Vec<Error> {
    names::form(&new["status"]["acceptedNames"], &Path::new("status").child("acceptedNames"))
}

fn created(new: &Value, spec: &Spec<'_>, status: &Status<'_>) -> Vec<Error> {
    let mut errors = names::object_name(new, spec);
    errors.extend(judge(spec, Options::create()));
    errors.extend(status.judge(spec));
    errors.extend(names::approval(new, spec, None));
    errors.extend(preserve_unknown(spec, None));
    errors
}

fn updated(new: &Value, spec: &Spec<'_>, status: &Status<'_>, old: &Value, before: &Spec<'_>) -> Vec<Error> {
    let established = has_condition(old, "Established");
    let mut errors = judge(spec, Options::update(spec, before, established));
    errors.extend(names::unchanged(spec, before, established));
    errors.extend(status.judge(spec));
    errors.extend(names::approval(new, spec, Some(old)));
    errors.extend(preserve_unknown(spec, Some(before)));
    errors
}

/// Everything about a spec that does not depend on the one it replaces.
fn judge(spec: &Spec<'_>, mut options: Options) -> Vec<Error> {
    let path = Path::new("spec");
    let mut errors = names::group_and_scope(spec, &path);
    let prunes = spec.preserve_unknown != Some(true);
    options.requirements.structural |= prunes;
    errors.extend(versions::schemas_given(spec, options.schemas, prunes, &path));
    if spec.documents().any(|doc| schema::says(doc, &["default"])) {
        options.requirements.structural = true;
        if spec.preserve_unknown != Some(false) {
            let detail = "must be false in order to use defaults in the schema";
            errors.push(Error::invalid(&path.child("preserveUnknownFields"), true, detail));
        }
    }
    options.requirements.structural |= spec.documents().any(|doc| schema::says(doc, &schema::EXTENSIONS));
    errors.extend(versions::all(spec, &options, &path));
    errors.extend(names::given(spec, &path.child("names")));
    errors.extend(names::form(spec.names, &path.child("names")));
    let suppressed = Unchanged(options.unchanged.contains(spec.version));
    let status = spec.status_anywhere();
    errors.extend(schema::check(
        spec.shared.validation,
        status,
        &options.requirements,
        suppressed,
        &path.child("validation"),
    ));
    errors.extend(versions::shared(spec, &options, &path));
    errors.extend(conversion::check(spec, &options, &path.child("conversion")));
    errors
}

fn preserve_unknown(spec: &Spec<'_>, old: Option<&Spec<'_>>) -> Vec<Error> {
    if spec.preserve_unknown != Some(true) || old.is_some_and(|o| o.preserve_unknown == Some(true)) {
        return Vec::new();
    }
    let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
    vec![Error::invalid(&Path::new("spec").child("preserveUnknownFields"), true, detail)]
}

/// Advice about a definition: formats that no value is checked against, unless the stored one has them already.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let formats = |definition: &Value| {
        let spec = Spec::unified(&definition["spec"]);
        spec.documents()
            .flat_map(|doc| structural::unrecognized_formats(doc, transom_kinds::KUBERNETES_MINOR))
            .collect::<Vec<_>>()
    };
    let mut known = old.map(formats).unwrap_or_default();
    let mut warnings = Vec::new();
    for format in formats(new) {
        if !known.contains(&format) {
            warnings.push(format!("unrecognized format {}", quote(&format)));
            known.push(format);
        }
    }
    warnings
}

/// The annotation by which the community approves of an API in one of its groups.
fn annotation<'a>(definition: &'a Value, name: &str) -> &'a str {
    meta::annotation(definition, name).unwrap_or_default()
}
