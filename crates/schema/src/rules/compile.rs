//! From a schema to its tree of compiled rules.

use super::{RuleCost, RuleError, declare};
use crate::structural::field_path::{Brackets, resolve};
use crate::{Additional, Rule, Schema};
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_cel::{CompileError, Decl, Env, Program, Shape, Type, escape};
use transom_object::field::Path;

/// A place in the schema with rules at or below it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) schema: Arc<Schema>,
    pub(super) rules: Vec<Compiled>,
    pub(super) items: Option<Box<Node>>,
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) values: Option<Box<Node>>,
    pub(super) all_of: Vec<Node>,
}

/// A rule with what compiling made of it.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rule: Rule,
    pub(super) program: Option<Result<Program, CompileError>>,
    pub(super) message: Option<Result<Program, CompileError>>,
    pub(super) transition: bool,
    /// `fieldPath` below the node, normalised.
    pub(super) field: Option<String>,
    /// The most one evaluation can cost, and how often the rule can be evaluated for one object.
    max_cost: u64,
    max_cardinality: u64,
}

impl Node {
    pub(super) fn collect_errors(&self, path: &Path, errors: &mut Vec<RuleError>) {
        for (i, compiled) in self.rules.iter().enumerate() {
            let at = path.child("x-kubernetes-validations").index(i);
            if let Some(Err(error)) = &compiled.program {
                let path = at.child("rule").as_str().to_owned();
                errors.push(RuleError { path, value: compiled.rule.rule.clone(), error: error.clone() });
            }
            if let Some(Err(error)) = &compiled.message {
                let path = at.child("messageExpression").as_str().to_owned();
                let value = compiled.rule.message_expression.clone().unwrap_or_default();
                errors.push(RuleError { path, value, error: error.clone() });
            }
        }
        for (name, child) in &self.properties {
            child.collect_errors(&path.child("properties").key(name), errors);
        }
        if let Some(child) = &self.items {
            child.collect_errors(&path.child("items"), errors);
        }
        if let Some(child) = &self.values {
            child.collect_errors(&path.child("additionalProperties"), errors);
        }
        for (i, child) in self.all_of.iter().enumerate() {
            child.collect_errors(&path.child("allOf").index(i), errors);
        }
    }

    /// `cardinality` is how often the node can occur, as far as the schema bounds it.
    pub(super) fn collect_costs(&self, path: &Path, cardinality: Option<u64>, costs: &mut Vec<RuleCost>) {
        for (i, compiled) in self.rules.iter().enumerate() {
            if !matches!(compiled.program, Some(Ok(_))) {
                continue;
            }
            let times = cardinality.unwrap_or(compiled.max_cardinality);
            costs.push(RuleCost {
                path: path.child("x-kubernetes-validations").index(i).child("rule").as_str().to_owned(),
                per_evaluation: compiled.max_cost,
                total: compiled.max_cost.saturating_mul(times),
            });
        }
        let within = |bound: Option<i64>| match (cardinality, bound.map(|n| u64::try_from(n).unwrap_or(0))) {
            (Some(outer), Some(n)) => Some(outer.saturating_mul(n)),
            _ => None,
        };
        for (name, child) in &self.properties {
            child.collect_costs(&path.child("properties").key(name), cardinality, costs);
        }
        if let Some(child) = &self.items {
            child.collect_costs(&path.child("items"), within(self.schema.checks.max_items), costs);
        }
        if let Some(child) = &self.values {
            let bound = within(self.schema.checks.max_properties);
            child.collect_costs(&path.child("additionalProperties"), bound, costs);
        }
        for (i, child) in self.all_of.iter().enumerate() {
            child.collect_costs(&path.child("allOf").index(i), cardinality, costs);
        }
    }
}

/// Builds the node for the rules that `validation` holds about values of `schema`. The two are the same except
/// below an `allOf`, whose branches hold rules but no shape.
pub(super) fn node(validation: &Schema, schema: &Arc<Schema>, declared: Option<&Arc<Decl>>) -> Option<Node> {
    let rules = match declared {
        Some(declared) => compile_rules(&validation.rules, schema, declared),
        None => Vec::new(),
    };
    let inner = |wanted: fn(&Shape) -> Option<&Arc<Decl>>| declared.and_then(|d| wanted(&d.shape)).cloned();
    let items = match (&validation.items, &schema.items) {
        (Some(v), Some(s)) => {
            node(v, s, inner(|d| if let Shape::List(i) = d { Some(i) } else { None }).as_ref())
        }
        _ => None,
    };
    let values = match (&validation.additional, &schema.additional) {
        (Additional::Schema(v), Additional::Schema(s)) => {
            node(v, s, inner(|d| if let Shape::Map(i) = d { Some(i) } else { None }).as_ref())
        }
        _ => None,
    };
    let mut properties = BTreeMap::new();
    for (name, v) in &validation.properties {
        let Some(s) = schema.properties.get(name) else { continue };
        let declared = match (escape(name), declared.map(|d| &d.shape)) {
            (Some(escaped), Some(Shape::Object(fields))) => fields.get(&escaped).cloned(),
            (Some(_), _) => None,
            // A name without identifier cannot be selected, but its value has rules of its own.
            (None, _) => declare(s, "selfType"),
        };
        if declared.is_none() {
            continue;
        }
        if let Some(child) = node(v, s, declared.as_ref()) {
            properties.insert(name.clone(), child);
        }
    }
    let all_of: Vec<Node> =
        validation.checks.all_of.iter().filter_map(|branch| node(branch, schema, declared)).collect();
    let empty =
        rules.is_empty() && items.is_none() && values.is_none() && properties.is_empty() && all_of.is_empty();
    (!empty).then(|| Node {
        schema: schema.clone(),
        rules,
        items: items.map(Box::new),
        properties,
        values: values.map(Box::new),
        all_of,
    })
}

/// Compiles the rules of one node.
fn compile_rules(rules: &[Rule], schema: &Schema, declared: &Arc<Decl>) -> Vec<Compiled> {
    let plain = Env::new().with_decl("self", declared);
    let env = plain.clone().with_decl("oldSelf", declared);
    let optional = plain.with("oldSelf", Type::optional(declared.ty.clone()));
    rules
        .iter()
        .map(|rule| {
            let env = if rule.optional_old_self == Some(true) { &optional } else { &env };
            compile_rule(rule, schema, env, declared)
        })
        .collect()
}

fn compile_rule(rule: &Rule, schema: &Schema, env: &Env, declared: &Arc<Decl>) -> Compiled {
    let mut compiled = Compiled {
        rule: rule.clone(),
        program: None,
        message: None,
        transition: false,
        field: None,
        max_cost: 0,
        max_cardinality: declared.max_cardinality(),
    };
    if rule.rule.trim().is_empty() {
        return compiled;
    }
    let program = compile_as(&rule.rule, env, &Type::Bool, "cel expression must evaluate to a bool");
    let program = program.map(|(program, cost)| {
        compiled.max_cost = cost;
        compiled.transition = program.mentions("oldSelf");
        program
    });
    let failed = program.is_err();
    compiled.program = Some(program);
    if failed {
        return compiled;
    }
    if let Some(expression) = rule.message_expression.as_deref().filter(|e| !e.is_empty()) {
        let message =
            compile_as(expression, env, &Type::String, "messageExpression must evaluate to a string");
        compiled.message =
            Some(message.map(|(program, _)| program).map_err(|e| e.about("messageExpression")));
    }
    if let Some(path) = rule.field_path.as_deref().filter(|p| !p.is_empty())
        && let Ok((path, _)) = resolve(path, schema, Brackets::Allowed)
    {
        compiled.field = Some(path.as_str().to_owned());
    }
    compiled
}

fn compile_as(
    source: &str,
    env: &Env,
    wanted: &Type,
    otherwise: &str,
) -> Result<(Program, u64), CompileError> {
    let program = Program::compile_expecting(source, env, wanted, otherwise)?;
    let cost = program.estimated_cost().max;
    Ok((program, cost))
}
