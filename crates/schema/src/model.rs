//! The compiled schema tree. One tree serves pruning, defaulting, validation, CEL declarations,
//! server-side apply, strategic merge patch and OpenAPI.

use crate::validate::formats::Format;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_go::regexp::{self, Limits};

/// The JSON type that a schema node requires. `Any` is a node without a `type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Type {
    /// No `type`.
    #[default]
    Any,
    /// `object`.
    Object,
    /// `array`.
    Array,
    /// `string`.
    String,
    /// `integer`.
    Integer,
    /// `number`.
    Number,
    /// `boolean`.
    Boolean,
}

/// `additionalProperties`: absent, `true`/`false`, or a schema for the values of a map.
#[derive(Clone, Debug, Default)]
pub enum Additional {
    /// Not given.
    #[default]
    Absent,
    /// Whether any other property is allowed.
    Bool(bool),
    /// The schema of the values.
    Schema(Arc<Schema>),
}

/// `x-kubernetes-list-type`. Absent means atomic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// `atomic`: replaced as a whole.
    Atomic,
    /// `set`: unique scalars.
    Set,
    /// `map`: objects that these fields identify.
    Map(Vec<String>),
}

/// `x-kubernetes-map-type`. Absent means granular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// `granular`: fields are owned one by one.
    Granular,
    /// `atomic`: replaced as a whole.
    Atomic,
}

/// One node. Children are shared, so that schemas of several versions can share subtrees.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "named as the keywords of a schema")]
pub struct Schema {
    pub ty: Type,
    pub format: Option<String>,
    pub title: Option<String>,
    pub description: Option<String>,
    pub nullable: bool,
    pub default: Option<Value>,
    /// Nothing at or below this node has a default. `false` is always safe; parsing computes it so that
    /// defaulting need not walk objects that no default can reach.
    pub defaults_free: bool,

    pub properties: BTreeMap<String, Arc<Schema>>,
    pub additional: Additional,
    pub items: Option<Arc<Schema>>,

    pub int_or_string: bool,
    pub preserve_unknown: bool,
    pub embedded: bool,
    pub list_type: Option<ListType>,
    pub map_type: Option<MapType>,

    pub checks: Checks,
    pub rules: Vec<Rule>,

    /// Built-in kinds only: how a strategic merge patch treats this node.
    pub patch: Option<PatchStrategy>,
}

/// Value validations of a node (everything that restricts without shaping).
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "named as the keywords of a schema")]
pub struct Checks {
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub multiple_of: Option<f64>,
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub pattern: Option<Pattern>,
    /// The format when it is one that values are checked against; other formats only document.
    pub format: Option<Format>,
    pub max_items: Option<i64>,
    pub min_items: Option<i64>,
    pub unique_items: bool,
    pub max_properties: Option<i64>,
    pub min_properties: Option<i64>,
    pub required: Vec<String>,
    pub enumeration: Option<Vec<Value>>,
    /// Branches are schemas of value validations only (no shaping), as structural schemas demand.
    pub all_of: Vec<Arc<Schema>>,
    pub any_of: Vec<Arc<Schema>>,
    pub one_of: Vec<Arc<Schema>>,
    pub not: Option<Arc<Schema>>,
}

/// A pattern with its compiled form. `compiled` is `None` when it is not a valid regular expression.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The pattern as written.
    pub source: String,
    /// Its compiled form.
    pub compiled: Option<Regex>,
}

impl Pattern {
    /// Compiles Go (RE2) syntax; see [`regexp`].
    pub fn new(source: &str) -> Self {
        Self { source: source.to_owned(), compiled: regexp::compile(source, Limits::default()).ok() }
    }
}

/// One entry of `x-kubernetes-validations`, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as the fields of a rule")]
pub struct Rule {
    pub rule: String,
    pub message: Option<String>,
    pub message_expression: Option<String>,
    pub reason: Option<String>,
    pub field_path: Option<String>,
    pub optional_old_self: Option<bool>,
}

/// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` of built-in kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// `merge`: lists are merged by key.
    pub merge: bool,
    /// `retainKeys`: a patch lists the keys to keep.
    pub retain_keys: bool,
    /// `replace`: a patch replaces it as a whole.
    pub replace: bool,
    /// The field that identifies items.
    pub merge_key: Option<String>,
}

impl Type {
    /// The name in a schema document; empty for [`Type::Any`].
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// The inverse of [`Type::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "" => Self::Any,
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }
}

impl Schema {
    /// A node that accepts anything and prunes nothing.
    pub fn any() -> Self {
        Self { preserve_unknown: true, ..Self::default() }
    }

    /// The schema of one property, or of a map's values.
    pub fn property(&self, name: &str) -> Option<&Arc<Schema>> {
        self.properties.get(name).or(match &self.additional {
            Additional::Schema(s) => Some(s),
            _ => None,
        })
    }
}
