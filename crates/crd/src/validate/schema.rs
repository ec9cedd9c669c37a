//! The schema of a version, or of all versions.

use super::rules;
use super::spec::given;
use serde_json::Value;
use transom_object::field::{Error, Path};
use transom_schema::structural::{self, Findings, Requirements};

/// Keywords that mean nothing unless the schema is structural.
pub(super) const EXTENSIONS: [&str; 6] = [
    "x-kubernetes-embedded-resource",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-validations",
];

/// Whether the schema is the stored one. The cost of its rules is not limited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Unchanged(pub(super) bool);

/// Whether one of the keywords is used anywhere in a document.
pub(super) fn says(document: &Value, keywords: &[&str]) -> bool {
    structural::uses(document, keywords)
}

/// `validation` holds the document; `status` is whether the status of its objects is a subresource.
pub(super) fn check(
    validation: Option<&Value>,
    status: bool,
    required: &Requirements,
    unchanged: Unchanged,
    path: &Path,
) -> Vec<Error> {
    let Some(document) = validation.and_then(|v| given(v, "openAPIV3Schema")) else { return Vec::new() };
    let path = path.child("openAPIV3Schema");
    let mut errors = if status { structural::check_status_root(document, &path) } else { Vec::new() };
    let Findings { structural, keywords } = structural::judge(document, &path, required);
    // Rules have types only in a structural schema.
    let schema = Some(document).filter(|_| required.structural && structural.is_empty());
    let broken = match schema.and_then(|document| structural::parse(document).ok()) {
        Some(schema) => rules::check(document, &schema, &keywords, unchanged, &path),
        None => Vec::new(),
    };
    errors.extend(structural);
    errors.extend(keywords);
    errors.extend(broken);
    errors
}
