//! `x-kubernetes-validations`: rules compiled once per schema, and evaluated against every object.
//!
//! The tree of [`Rules`] mirrors the schema but keeps only nodes at or above a rule, so that an object without
//! rules costs nothing. Errors on parts of an object that an update leaves as they were are only warnings
//! (ratcheting), except those of transition rules, which are about the change itself.

use super::cost::{PER_CALL_LIMIT, PER_OBJECT_LIMIT};
use super::decl::{self, Decl, Shape};
use super::escaping::escape;
use super::program::{self, Bindings, CompileError, Env, Program};
use super::types::Type;
use super::value::{EvalError, Value};
use crate::structural::field_path::{Brackets, resolve};
use crate::validate::correlate::{Correlated, KeyedList};
use crate::{Additional, ListType, Rule, Schema};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_object::field::{self, Kind, Path};

/// The longest message that a messageExpression may make, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// The rules of one schema. Cheap to share; empty for a schema without rules.
#[derive(Debug, Default)]
pub struct Rules {
    root: Option<Node>,
}

/// A rule that does not compile: where it stands below the schema, what it says, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Such as `properties[spec].x-kubernetes-validations[0].rule`.
    pub path: String,
    pub value: String,
    pub error: CompileError,
}

impl RuleError {
    /// As validation of a CustomResourceDefinition reports it; `schema` is the path of the schema.
    pub fn to_field_error(&self, schema: &Path) -> field::Error {
        field::Error::invalid(&schema.child(&self.path), self.value.clone(), self.error.to_string())
    }
}

/// The most a rule can cost: one evaluation times how often its place can occur in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCost {
    /// Such as `properties[spec].x-kubernetes-validations[0].rule`.
    pub path: String,
    pub per_evaluation: u64,
    pub total: u64,
}

/// What validating one object may cost, and whether unchanged parts may stay wrong.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub per_call: u64,
    pub per_object: u64,
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
    pub errors: Vec<field::Error>,
    /// Errors on unchanged parts, which an update may keep.
    pub warnings: Vec<field::Error>,
    /// What is left of the budget; `None` when it ran out and rules were not evaluated.
    pub budget: Option<u64>,
}

#[derive(Debug)]
struct Node {
    schema: Arc<Schema>,
    rules: Vec<Compiled>,
    items: Option<Box<Node>>,
    properties: BTreeMap<String, Node>,
    values: Option<Box<Node>>,
    all_of: Vec<Node>,
}

/// A rule with what compiling made of it.
#[derive(Debug)]
struct Compiled {
    rule: Rule,
    program: Option<Result<Program, CompileError>>,
    message: Option<Result<Program, CompileError>>,
    transition: bool,
    /// `fieldPath` below the node, normalised.
    field: Option<String>,
    /// The most one evaluation can cost, and how often the rule can be evaluated for one object.
    max_cost: u64,
    max_cardinality: u64,
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
        let seen = Arc::new(decl::as_seen_by_rules(schema, resource));
        let declared = decl::declare(&seen, "selfType");
        Self { root: build(&seen, &seen, declared.as_ref()) }
    }

    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The rules that do not compile.
    pub fn errors(&self) -> Vec<RuleError> {
        let mut errors = Vec::new();
        if let Some(root) = &self.root {
            collect_errors(root, &Path::root(), &mut errors);
        }
        errors
    }

    /// What each rule can cost at most, as far as the schema bounds it.
    pub fn estimates(&self) -> Vec<RuleCost> {
        let mut costs = Vec::new();
        if let Some(root) = &self.root {
            collect_costs(root, &Path::root(), Some(1), &mut costs);
        }
        costs
    }

    /// Evaluates all rules on an object, and on an update with what it replaces.
    pub fn validate(&self, new: &Json, old: Option<&Json>, path: &Path) -> Vec<field::Error> {
        self.report(new, old, path, Limits::default()).errors
    }

    /// The same under limits of choice, with warnings and what is left of the budget.
    pub fn report(&self, new: &Json, old: Option<&Json>, path: &Path, limits: Limits) -> Report {
        let report = Report { budget: Some(limits.per_object), ..Report::default() };
        let mut run = Run { report, per_call: limits.per_call };
        if let Some(root) = &self.root {
            let pair = old.filter(|_| limits.ratchet).map(|old| Correlated::new(new, old, &root.schema));
            run.node(root, new, old, path, Ratchet { current: pair, parent: None, root: true });
        }
        run.report
    }
}

fn has_rules(schema: &Schema) -> bool {
    !schema.rules.is_empty()
        || schema.properties.values().any(|s| has_rules(s))
        || schema.items.as_ref().is_some_and(|s| has_rules(s))
        || matches!(&schema.additional, Additional::Schema(s) if has_rules(s))
        || schema.checks.all_of.iter().any(|s| has_rules(s))
}

fn collect_errors(node: &Node, path: &Path, errors: &mut Vec<RuleError>) {
    for (i, compiled) in node.rules.iter().enumerate() {
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
    for (name, child) in &node.properties {
        collect_errors(child, &path.child("properties").key(name), errors);
    }
    if let Some(child) = &node.items {
        collect_errors(child, &path.child("items"), errors);
    }
    if let Some(child) = &node.values {
        collect_errors(child, &path.child("additionalProperties"), errors);
    }
    for (i, child) in node.all_of.iter().enumerate() {
        collect_errors(child, &path.child("allOf").index(i), errors);
    }
}

/// `cardinality` is how often the node can occur, as far as the schema bounds it.
fn collect_costs(node: &Node, path: &Path, cardinality: Option<u64>, costs: &mut Vec<RuleCost>) {
    for (i, compiled) in node.rules.iter().enumerate() {
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
    for (name, child) in &node.properties {
        collect_costs(child, &path.child("properties").key(name), cardinality, costs);
    }
    if let Some(child) = &node.items {
        collect_costs(child, &path.child("items"), within(node.schema.checks.max_items), costs);
    }
    if let Some(child) = &node.values {
        let bound = within(node.schema.checks.max_properties);
        collect_costs(child, &path.child("additionalProperties"), bound, costs);
    }
    for (i, child) in node.all_of.iter().enumerate() {
        collect_costs(child, &path.child("allOf").index(i), cardinality, costs);
    }
}

/// Builds the node for the rules that `validation` holds about values of `schema`. The two are the same except
/// below an `allOf`, whose branches hold rules but no shape.
fn build(validation: &Schema, schema: &Arc<Schema>, declared: Option<&Arc<Decl>>) -> Option<Node> {
    let rules = match declared {
        Some(declared) => compile_rules(&validation.rules, schema, declared),
        None => Vec::new(),
    };
    let inner = |wanted: fn(&Shape) -> Option<&Arc<Decl>>| declared.and_then(|d| wanted(&d.shape)).cloned();
    let items = match (&validation.items, &schema.items) {
        (Some(v), Some(s)) => {
            build(v, s, inner(|d| if let Shape::List(i) = d { Some(i) } else { None }).as_ref())
        }
        _ => None,
    };
    let values = match (&validation.additional, &schema.additional) {
        (Additional::Schema(v), Additional::Schema(s)) => {
            build(v, s, inner(|d| if let Shape::Map(i) = d { Some(i) } else { None }).as_ref())
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
            (None, _) => decl::declare(s, "selfType"),
        };
        if declared.is_none() {
            continue;
        }
        if let Some(node) = build(v, s, declared.as_ref()) {
            properties.insert(name.clone(), node);
        }
    }
    let all_of: Vec<Node> =
        validation.checks.all_of.iter().filter_map(|branch| build(branch, schema, declared)).collect();
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
    let checked = program::analyze(source, env)?;
    if checked.result() != wanted {
        return Err(CompileError::new(otherwise));
    }
    let program = Program::from_checked(&checked, env)?;
    let cost = program.estimated_cost().max;
    Ok((program, cost))
}

/// What of the old object the current value comes from.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    /// The pair, where the schema correlates the two.
    current: Option<Correlated<'a>>,
    /// The nearest pair above.
    parent: Option<Correlated<'a>>,
    root: bool,
}

impl<'a> Ratchet<'a> {
    /// Whether errors here are about nothing that the update changed.
    fn unchanged(&self) -> bool {
        self.current.or(self.parent).is_some_and(|pair| pair.unchanged())
    }

    fn key(&self, name: &str) -> Self {
        let Some(current) = self.current else { return *self };
        if self.root && matches!(name, "apiVersion" | "kind") {
            // Both objects are converted to one version before, so that a change would not show.
            return Self { current: None, parent: None, root: false };
        }
        Self { current: current.key(name), parent: Some(current), root: false }
    }
}

struct Run {
    report: Report,
    per_call: u64,
}

impl Run {
    /// Whether rules may still be evaluated.
    fn alive(&self) -> bool {
        self.report.budget.is_some()
    }

    fn node<'a>(
        &mut self,
        node: &'a Node,
        new: &'a Json,
        old: Option<&'a Json>,
        path: &Path,
        ratchet: Ratchet<'a>,
    ) {
        if new.is_null() || !self.alive() {
            return;
        }
        self.rules(node, new, old.filter(|o| !o.is_null()), path, ratchet);
        for branch in &node.all_of {
            // Schema validation does not ratchet what stands below an allOf, so rules do not either.
            let ratchet = Ratchet { current: None, ..ratchet };
            self.node(branch, new, old, path, ratchet);
        }
        match new {
            Json::Array(items) => self.items(node, items, old, path, ratchet),
            Json::Object(members) => {
                let old = old.and_then(Json::as_object);
                for (name, value) in members {
                    let before = old.and_then(|o| o.get(name));
                    if let Some(child) = &node.values {
                        self.node(child, value, before, &path.key(name), ratchet.key(name));
                    }
                    if let Some(child) = node.properties.get(name) {
                        self.node(child, value, before, &path.child(name), ratchet.key(name));
                    }
                }
            }
            _ => {}
        }
    }

    fn items<'a>(
        &mut self,
        node: &'a Node,
        items: &'a [Json],
        old: Option<&'a Json>,
        path: &Path,
        ratchet: Ratchet<'a>,
    ) {
        let Some(child) = &node.items else { return };
        let before = match (&node.schema.list_type, old.and_then(Json::as_array)) {
            (Some(ListType::Map(keys)), Some(old)) => Some(KeyedList::new(keys, old)),
            _ => None,
        };
        let pairs = ratchet.current.and_then(|pair| pair.items());
        for (i, item) in items.iter().enumerate() {
            let below = match ratchet.current {
                Some(current) => Ratchet {
                    current: pairs.as_ref().and_then(|p| p.get(i)),
                    parent: Some(current),
                    root: false,
                },
                None => ratchet,
            };
            let old = before.as_ref().and_then(|b| b.find(item));
            self.node(child, item, old, &path.index(i), below);
        }
    }

    fn rules<'a>(
        &mut self,
        node: &'a Node,
        new: &'a Json,
        old: Option<&'a Json>,
        path: &Path,
        ratchet: Ratchet<'a>,
    ) {
        if node.rules.is_empty() || !self.alive() {
            return;
        }
        if self.report.budget == Some(0) {
            return self.out_of_budget(node, path);
        }
        let this = Value::from_json_with(new, &node.schema);
        let before = old.map(|old| Value::from_json_with(old, &node.schema));
        for compiled in &node.rules {
            if !self.alive() {
                return;
            }
            let scope = Scope { node, new, this: &this, old: before.as_ref(), path };
            self.rule(compiled, &scope, ratchet);
        }
    }

    fn out_of_budget(&mut self, node: &Node, path: &Path) {
        self.fail(node, path, OUT_OF_BUDGET.to_owned());
        self.report.budget = None;
    }

    /// An error about the rule rather than the value.
    fn fail(&mut self, node: &Node, path: &Path, detail: String) {
        self.report.errors.push(field::Error::invalid(path, type_name(&node.schema), detail));
    }

    fn rule<'a>(&mut self, compiled: &'a Compiled, scope: &Scope<'_, 'a>, ratchet: Ratchet<'a>) {
        let program = match &compiled.program {
            None => return,
            Some(Err(e)) => return self.fail(scope.node, scope.path, format!("rule compile error: {e}")),
            Some(Ok(program)) => program,
        };
        let optional = compiled.rule.optional_old_self == Some(true);
        if compiled.transition && scope.old.is_none() && !optional {
            return;
        }
        let bindings = match scope.bindings(optional) {
            Ok(bindings) => bindings,
            Err(e) => return self.failed(compiled, scope, &e),
        };
        let (result, cost) = program.eval_metered(&bindings, self.per_call);
        match self.report.budget.and_then(|b| b.checked_sub(cost)) {
            Some(left) => self.report.budget = Some(left),
            None => return self.out_of_budget(scope.node, scope.path),
        }
        match result {
            Ok(Value::Bool(true)) => {}
            Ok(_) => self.violated(compiled, scope, &bindings, ratchet),
            Err(e) => self.failed(compiled, scope, &e),
        }
    }

    /// The rule has no result.
    fn failed(&mut self, compiled: &Compiled, scope: &Scope<'_, '_>, e: &EvalError) {
        let rule = rule_text(&compiled.rule);
        let detail = match e {
            EvalError::NoSuchOverload(_) => format!(
                "'{e}': call arguments did not match a supported operator, function or macro signature for rule: {rule}"
            ),
            EvalError::CostExceeded => {
                format!(
                    "'{e}': no further validation rules will be run due to call cost exceeds limit for rule: {rule}"
                )
            }
            EvalError::Failed(_) => format!("{e} evaluating rule: {rule}"),
        };
        self.fail(scope.node, scope.path, detail);
        if matches!(e, EvalError::CostExceeded) {
            self.report.budget = None;
        }
    }

    /// The rule is not satisfied.
    fn violated<'a>(
        &mut self,
        compiled: &'a Compiled,
        scope: &Scope<'_, 'a>,
        bindings: &Bindings<'a>,
        ratchet: Ratchet<'a>,
    ) {
        let path = match &compiled.field {
            Some(field) if field.starts_with('[') => Path::new(&format!("{}{field}", scope.path.as_str())),
            Some(field) => scope.path.child(field),
            None => scope.path.clone(),
        };
        let ratcheted = !compiled.transition && ratchet.unchanged();
        let detail = match self.message(compiled, bindings) {
            Ok(Some(message)) => message,
            Ok(None) => default_message(&compiled.rule),
            Err(detail) => {
                let error = field::Error::invalid(&path, type_name(&scope.node.schema), detail);
                self.push(error, ratcheted);
                self.report.budget = None;
                return;
            }
        };
        self.push(scope.error(&path, detail, compiled.rule.reason.as_deref()), ratcheted);
    }

    fn push(&mut self, error: field::Error, ratcheted: bool) {
        let list = if ratcheted { &mut self.report.warnings } else { &mut self.report.errors };
        list.push(error);
    }

    /// The message that the rule computes; none when that is missing or no good. An error ends validation.
    fn message<'a>(
        &mut self,
        compiled: &'a Compiled,
        bindings: &Bindings<'a>,
    ) -> Result<Option<String>, String> {
        let Some(Ok(program)) = &compiled.message else { return Ok(None) };
        let source = compiled.rule.message_expression.as_deref().unwrap_or_default();
        let (result, cost) = program.eval_metered(bindings, self.per_call);
        let Some(left) = self.report.budget.and_then(|b| b.checked_sub(cost)) else {
            return Err("messageExpression evaluation failed due to running out of cost budget, no further validation \
                        rules will be run"
                .to_owned());
        };
        if matches!(result, Err(EvalError::CostExceeded)) {
            return Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {source:?}"
            ));
        }
        self.report.budget = Some(left);
        let Ok(Value::String(text)) = result else { return Ok(None) };
        let text = text.trim();
        let usable = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
        Ok(usable.then(|| text.to_owned()))
    }
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A value that rules are evaluated on.
struct Scope<'s, 'a> {
    node: &'a Node,
    new: &'a Json,
    this: &'s Result<Value<'a>, EvalError>,
    old: Option<&'s Result<Value<'a>, EvalError>>,
    path: &'s Path,
}

impl<'a> Scope<'_, 'a> {
    fn bindings(&self, optional: bool) -> Result<Bindings<'a>, EvalError> {
        let bindings = Bindings::new().with("self", self.this.clone()?);
        let old = self.old.cloned().transpose()?;
        Ok(match (old, optional) {
            (old, true) => bindings.with("oldSelf", Value::Optional(old.map(Arc::new))),
            (Some(old), false) => bindings.with("oldSelf", old),
            (None, false) => bindings,
        })
    }

    fn error(&self, path: &Path, detail: String, reason: Option<&str>) -> field::Error {
        let whole = matches!(self.node.schema.ty, crate::Type::Object | crate::Type::Array);
        match reason {
            Some("FieldValueForbidden") => field::Error::forbidden(path, detail),
            Some("FieldValueRequired") => field::Error::required(path, detail),
            Some("FieldValueDuplicate") if whole => field::Error::new(Kind::Duplicate, path, omitted(), ""),
            Some("FieldValueDuplicate") => field::Error::duplicate(path, self.new.clone()),
            // Objects and lists are too large to be shown.
            _ if whole => field::Error::new(Kind::Invalid, path, omitted(), detail),
            _ => field::Error::invalid(path, self.new.clone(), detail),
        }
    }
}

/// A value that is not to be shown.
fn omitted() -> Json {
    Json::from("<unspecified>")
}

fn type_name(schema: &Schema) -> &'static str {
    match schema.ty {
        crate::Type::Any => "",
        crate::Type::Object => "object",
        crate::Type::Array => "array",
        crate::Type::String => "string",
        crate::Type::Integer => "integer",
        crate::Type::Number => "number",
        crate::Type::Boolean => "boolean",
    }
}

/// The rule as messages name it: by its message, or by itself.
fn rule_text(rule: &Rule) -> &str {
    match rule.message.as_deref() {
        Some(message) if !message.is_empty() => message.trim(),
        _ => rule.rule.trim(),
    }
}

fn default_message(rule: &Rule) -> String {
    match rule.message.as_deref() {
        Some(message) if !message.is_empty() => message.trim().to_owned(),
        _ => format!("failed rule: {}", rule.rule.trim()),
    }
}
