//! Conversion rules as users write them in a definition, before they are bound to schemas.

use crate::path::PathError;
use serde::Deserialize;
use serde_json::Value;
use transom_cel::CompileError;
use transom_object::field;

/// How the versions of a kind are converted into each other.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// One rule for each pair of neighbours.
    pub rules: Vec<Rule>,
    /// Objects that are converted there and back when the rules are checked, beside those that are generated.
    pub examples: Vec<Value>,
}

/// How two versions are converted into each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    /// One version, usually the older one.
    pub from: String,
    /// The other version.
    pub to: String,
    /// Fields that have another place in the other version. They move in both directions.
    pub moves: Vec<Move>,
    /// Fields of `to` that are computed from an object in `from`.
    pub forward: Vec<Expression>,
    /// Fields of `from` that are computed from an object in `to`.
    pub backward: Vec<Expression>,
}

/// A field that has another place in the other version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Move {
    /// The place in the version `from`.
    pub from: String,
    /// The place in the version `to`.
    pub to: String,
}

/// A field that is computed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Expression {
    /// The field.
    pub path: String,
    /// Its value in CEL; `self` is the object in the version that it is converted from. Without a value (null, or an empty
    /// optional) the field is removed.
    pub expression: String,
    /// Whether a value that the field already has, moved there or kept, is left as it is.
    pub only_if_missing: bool,
}

/// What is wrong with rules, and where.
#[derive(Debug, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct RuleError {
    /// Such as `rules[0].moves[1].to`.
    pub field: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a rule. The text of a cause is part of that of its problem, so no cause is a source as well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The rules do not have the form of rules.
    #[error(transparent)]
    Form(serde_json::Error),
    /// A version that does not exist.
    #[error("there is no version {name:?}; the versions are {}", known.join(", "))]
    UnknownVersion {
        /// The name.
        name: String,
        /// The versions that exist.
        known: Vec<String>,
    },
    /// A rule from a version to itself.
    #[error("a rule needs two different versions")]
    SameVersion,
    /// A second way between two versions.
    #[error(
        "{from} and {to} are connected by other rules already; there must be one way only between two versions"
    )]
    SecondWay {
        /// One of the versions.
        from: String,
        /// The other one.
        to: String,
    },
    /// A version without a rule.
    #[error("no rule leads to version {0}: add a rule between it and its neighbour")]
    Unreached(String),
    /// A path that cannot be read.
    #[error("{path:?}: {why}")]
    Path {
        /// The text.
        path: String,
        /// Why.
        why: PathError,
    },
    /// A field that the schema of the version does not have.
    #[error("version {version} has no field {path}")]
    NoField {
        /// The version.
        version: String,
        /// The path.
        path: String,
    },
    /// Two moves or expressions for one field.
    #[error("{path} and {other} are the same field, or one is within the other")]
    Overlap {
        /// A path.
        path: String,
        /// The other one.
        other: String,
    },
    /// An expression that does not compile.
    #[error(transparent)]
    Expression(CompileError),
    /// The schema of a version.
    #[error("the schema of version {version} cannot be read: {}", field::aggregate(errors))]
    Schema {
        /// The version.
        version: String,
        /// Why.
        errors: Vec<field::Error>,
    },
    /// An example that no rule is about.
    #[error("an example needs the apiVersion of one of the versions")]
    Example,
}

impl RuleError {
    pub(crate) fn new(field: impl Into<String>, problem: Problem) -> Self {
        Self { field: field.into(), problem }
    }
}

impl Rules {
    /// Reads `rules` and `examples` of a conversion; other fields are those of the caller.
    pub fn read(conversion: &Value) -> Result<Self, RuleError> {
        let part = |name: &str| conversion.get(name).filter(|value| !value.is_null());
        let fault = |name: &str, error: serde_json::Error| RuleError::new(name, Problem::Form(error));
        let rules = part("rules").map_or(Ok(Vec::new()), Vec::<Rule>::deserialize);
        let examples = part("examples").map_or(Ok(Vec::new()), Vec::<Value>::deserialize);
        Ok(Self {
            rules: rules.map_err(|error| fault("rules", error))?,
            examples: examples.map_err(|error| fault("examples", error))?,
        })
    }
}
