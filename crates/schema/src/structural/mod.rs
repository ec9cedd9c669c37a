//! From an OpenAPI v3 schema document (`JSONSchemaProps`) to a [`Schema`], and the rules that make such a
//! document acceptable in a CustomResourceDefinition.
//!
//! Reading goes in three steps. [`shape`] makes sure every keyword holds the kind of JSON it must; after that
//! [`props::Props`] reads the document without further doubt; [`compile`] turns it into the tree that all other
//! modules use. [`check`] judges the document itself: [`structure`] (what makes a schema structural),
//! [`default_values`] (defaults are valid and pruned), [`keywords`] (what a CRD may say at all).

mod compile;
mod default_values;
pub mod field_path;
mod keywords;
pub mod pattern;
mod props;
mod shape;
mod structure;

use crate::model::Schema;
use crate::validate::formats::Format;
use props::Props;
use serde_json::Value;
use transom_object::field;

/// Compiles a schema document. The errors name the keyword of the wrong shape.
///
/// Compiling does not ask whether the schema is structural; [`check`] does. Defaults are pruned to what the
/// schema specifies, as a server does when it starts to serve a schema.
pub fn parse(doc: &Value) -> Result<Schema, Vec<field::Error>> {
    compile::schema(doc, compile::Defaults::Pruned)
}

/// Rules that came later than the first schemas. An update of a definition that broke one of them already
/// may go on breaking it; everything else must keep all.
#[derive(Clone, Debug)]
pub struct Requirements {
    /// The schema is structural, and its defaults are valid.
    pub structural: bool,
    /// Types are among those OpenAPI knows.
    pub known_types: bool,
    /// Defaults have no fields that pruning would remove.
    pub pruned_defaults: bool,
    /// Items of sets are atomic.
    pub atomic_set_items: bool,
    /// Items of sets and maps are not nullable, and keys of maps are never missing.
    pub keyed_items: bool,
    /// Why there may be no defaults at all.
    pub no_defaults: Option<String>,
}

impl Default for Requirements {
    fn default() -> Self {
        Self {
            structural: true,
            known_types: true,
            pruned_defaults: true,
            atomic_set_items: true,
            keyed_items: true,
            no_defaults: None,
        }
    }
}

/// Everything wrong with a schema document as the schema of a version of a CustomResourceDefinition.
///
/// `path` is where the document stands. Rules in `x-kubernetes-validations` are checked for their form, not
/// compiled.
pub fn check(doc: &Value, path: &field::Path) -> Vec<field::Error> {
    check_against(doc, path, &Requirements::default())
}

/// [`check`] with only some of the later rules.
pub fn check_against(doc: &Value, path: &field::Path, required: &Requirements) -> Vec<field::Error> {
    let shape = shape::check(doc, path);
    let Some(props) = Props::read(doc).filter(|_| shape.is_empty()) else { return shape };
    let mut errors = Vec::new();
    if props.flag("nullable") {
        errors.push(field::Error::forbidden(&path.child("nullable"), "nullable cannot be true at the root"));
    }
    // What no structural schema can express is named by `keywords`, and hides everything else.
    if required.structural && compile::unsupported(props).is_none() {
        let structural = structure::check(props, path);
        if structural.is_empty() {
            errors.extend(default_values::check(doc, path, required.pruned_defaults));
        }
        errors.extend(structural);
    }
    errors.extend(keywords::check(props, path, required));
    errors
}

/// The rule for a schema whose status is a subresource: the root may only say what survives when
/// `properties.status` is validated alone.
pub fn check_status_root(doc: &Value, path: &field::Path) -> Vec<field::Error> {
    Props::read(doc).map(|props| keywords::check_status_root(props, path)).unwrap_or_default()
}

/// Logic in the document that restricts fields or items which its spine does not specify; part of [`check`].
pub fn incomplete(doc: &Value, path: &field::Path) -> Vec<field::Error> {
    Props::read(doc).map(|props| structure::completeness(props, path)).unwrap_or_default()
}

/// Formats of strings in the document that a server of Kubernetes 1.`minor` checks no value against, each once.
/// They are allowed, but worth a warning.
pub fn unrecognized_formats(doc: &Value, minor: u32) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(props) = Props::read(doc) {
        collect_unrecognized(props, minor, 0, &mut found);
    }
    found
}

fn collect_unrecognized(props: Props<'_>, minor: u32, depth: usize, found: &mut Vec<String>) {
    let format = props.text("format");
    let recognized = Format::introduced(format).is_some_and(|introduced| introduced <= minor);
    if props.ty() == "string" && !format.is_empty() && !recognized && !found.iter().any(|f| f == format) {
        found.push(format.to_owned());
    }
    if depth < shape::MAX_DEPTH {
        props.each_child(&mut |child| collect_unrecognized(child, minor, depth + 1, found));
    }
}
