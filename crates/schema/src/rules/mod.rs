//! `x-kubernetes-validations`: rules compiled once per schema, and evaluated against every object.
//!
//! The tree of [`Rules`] mirrors the schema but keeps only nodes at or above a rule, so that an object without
//! rules costs nothing. Errors on parts of an object that an update leaves as they were are only warnings
//! (ratcheting), except those of transition rules, which are about the change itself.
//!
//! [`compile`] makes the tree, with its errors and what it can cost; [`run`] evaluates it; [`declare`] and [`view`] bind
//! the expression language (`transom_cel`) to schemas: the types of values, and values seen through their schema.

mod compile;
mod declare;
mod run;
mod view;

pub use declare::declare;

use crate::{Additional, Schema};
use compile::Node;
use serde_json::Value as Json;
use std::sync::Arc;
use transom_cel::{CompileError, PER_CALL_LIMIT, PER_OBJECT_LIMIT};
use transom_object::field::{self, Path};

/// The rules of one schema. Cheap to share; empty for a schema without rules.
#[derive(Debug, Default)]
pub struct Rules {
    root: Option<Node>,
}

/// A rule that does not compile: its path below the schema, its text, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Such as `properties[spec].x-kubernetes-validations[0].rule`.
    pub path: String,
    /// The expression.
    pub value: String,
    /// Why it does not compile.
    pub error: CompileError,
}

/// The most a rule can cost: one evaluation times how often its place can occur in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCost {
    /// Such as `properties[spec].x-kubernetes-validations[0].rule`.
    pub path: String,
    /// The most one evaluation can cost.
    pub per_evaluation: u64,
    /// The most all evaluations in one object can cost.
    pub total: u64,
}

/// What validating one object may cost, and whether unchanged parts may stay wrong.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most one evaluation may cost.
    pub per_call: u64,
    /// The most all rules of the object may cost together.
    pub per_object: u64,
    /// Whether errors on unchanged parts are only warnings.
    pub ratchet: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { per_call: PER_CALL_LIMIT, per_object: PER_OBJECT_LIMIT, ratchet: true }
    }
}

/// The outcome of validating one object.
#[derive(Debug, Default)]
pub struct Report {
    /// Why the object is refused.
    pub errors: Vec<field::Error>,
    /// Errors on unchanged parts, which an update may keep.
    pub warnings: Vec<field::Error>,
    /// What is left of the budget; `None` when it ran out and rules were not evaluated.
    pub budget: Option<u64>,
}

impl Rules {
    /// Compiles the rules of a custom resource's schema, and reports all that do not compile.
    pub fn compile(schema: &Schema) -> Result<Self, Vec<RuleError>> {
        let rules = Self::build(schema, true);
        let errors = rules.errors();
        if errors.is_empty() { Ok(rules) } else { Err(errors) }
    }

    /// Compiles what compiles. A rule that does not will fail every object that it applies to. `resource` is
    /// whether the schema is that of a whole object, which has a name and a kind.
    pub fn build(schema: &Schema, resource: bool) -> Self {
        if !has_rules(schema) {
            return Self::default();
        }
        let seen = Arc::new(declare::as_seen_by_rules(schema, resource));
        let declared = declare(&seen, "selfType");
        Self { root: compile::node(&seen, &seen, declared.as_ref()) }
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The rules that do not compile.
    pub fn errors(&self) -> Vec<RuleError> {
        let mut errors = Vec::new();
        if let Some(root) = &self.root {
            root.collect_errors(&Path::root(), &mut errors);
        }
        errors
    }

    /// What each rule can cost at most, as far as the schema bounds it.
    pub fn estimates(&self) -> Vec<RuleCost> {
        let mut costs = Vec::new();
        if let Some(root) = &self.root {
            root.collect_costs(&Path::root(), Some(1), &mut costs);
        }
        costs
    }

    /// Evaluates all rules on an object, and on an update with what it replaces.
    pub fn validate(&self, new: &Json, old: Option<&Json>, path: &Path) -> Vec<field::Error> {
        self.report(new, old, path, Limits::default()).errors
    }

    /// The same under limits of choice, with warnings and what is left of the budget.
    pub fn report(&self, new: &Json, old: Option<&Json>, path: &Path, limits: Limits) -> Report {
        match &self.root {
            Some(root) => run::report(root, new, old, path, limits),
            None => Report { budget: Some(limits.per_object), ..Report::default() },
        }
    }
}

fn has_rules(schema: &Schema) -> bool {
    !schema.rules.is_empty()
        || schema.properties.values().any(|s| has_rules(s))
        || schema.items.as_ref().is_some_and(|s| has_rules(s))
        || matches!(&schema.additional, Additional::Schema(s) if has_rules(s))
        || schema.checks.all_of.iter().any(|s| has_rules(s))
}
