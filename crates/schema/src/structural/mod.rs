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
mod kept;
mod keywords;
mod props;
mod shape;
pub mod shown;
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

impl Requirements {
    /// The rules that a stored document keeps, and with it its next version has to.
    pub fn kept_by(doc: &Value) -> Self {
        kept::requirements(doc)
    }

    /// The rules in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            structural: self.structural && other.structural,
            known_types: self.known_types && other.known_types,
            pruned_defaults: self.pruned_defaults && other.pruned_defaults,
            atomic_set_items: self.atomic_set_items && other.atomic_set_items,
            keyed_items: self.keyed_items && other.keyed_items,
            no_defaults: self.no_defaults.or(other.no_defaults),
        }
    }
}

/// What is wrong with a schema document, by what it keeps from being judged.
#[derive(Debug, Default)]
pub struct Findings {
    /// The document is not a structural schema, or its defaults are invalid: rules have no types.
    pub structural: Vec<field::Error>,
    /// Keywords are misused. Rules at or above such a place are not to be compiled.
    pub keywords: Vec<field::Error>,
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
    let Findings { mut structural, keywords } = judge(doc, path, required);
    structural.extend(keywords);
    structural
}

/// [`check_against`], telling apart what the errors are about.
pub fn judge(doc: &Value, path: &field::Path, required: &Requirements) -> Findings {
    let shape = shape::check(doc, path);
    let Some(props) = Props::read(doc).filter(|_| shape.is_empty()) else {
        return Findings { structural: shape, ..Findings::default() };
    };
    let mut structural = Vec::new();
    if props.flag("nullable") {
        structural
            .push(field::Error::forbidden(&path.child("nullable"), "nullable cannot be true at the root"));
    }
    let unsupported = compile::unsupported(props).filter(|_| required.structural);
    if required.structural && unsupported.is_none() {
        let broken = structure::check(props, path);
        if broken.is_empty() {
            structural.extend(default_values::check(doc, path, required.pruned_defaults));
        }
        structural.extend(broken);
    }
    let keywords = keywords::check(props, path, required);
    if let Some(keyword) = unsupported.filter(|_| structural.is_empty() && keywords.is_empty()) {
        // Mostly named by `keywords`, and better; only what it does not name is said here.
        let keyword = if keyword == "$schema" { "schema" } else { keyword };
        let detail = format!("OpenAPIV3Schema '{keyword}' is not supported");
        structural.push(field::Error::invalid(path, "", detail));
    }
    Findings { structural, keywords }
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

/// Whether one of the keywords says something anywhere in the document.
pub fn uses(doc: &Value, keywords: &[&str]) -> bool {
    Props::read(doc).is_some_and(|props| node_uses(props, keywords, 0))
}

fn node_uses(props: Props<'_>, keywords: &[&str], depth: usize) -> bool {
    let says = |keyword: &&str| match props.get(keyword) {
        None => false,
        Some(_) if matches!(*keyword, "default" | "x-kubernetes-preserve-unknown-fields") => true,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(value) => value != &Value::Bool(false),
    };
    let mut found = keywords.iter().any(says);
    if depth < shape::MAX_DEPTH {
        props.each_child(&mut |child| found = found || node_uses(child, keywords, depth + 1));
    }
    found
}

/// Formats in the document that a server of Kubernetes 1.`minor` checks no value against, each once.
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
    let is_known_to = |minor| Format::introduced(format).is_some_and(|introduced| introduced <= minor);
    let recognized = match props.ty() {
        "string" => is_known_to(minor),
        // Kubernetes 1.35 and older look at formats of strings alone.
        _ if minor < 36 => true,
        "" => is_known_to(minor),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    };
    if !format.is_empty() && !recognized && !found.iter().any(|f| f == format) {
        found.push(format.to_owned());
    }
    if depth < shape::MAX_DEPTH {
        props.each_child(&mut |child| collect_unrecognized(child, minor, depth + 1, found));
    }
}
