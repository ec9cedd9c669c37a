//! Evaluating compiled rules on one object: the walk, the budget, ratcheting, and error messages.

use super::compile::{Compiled, Node};
use super::{Limits, Report};
use crate::validate::correlate::{Correlated, KeyedList};
use crate::{ListType, Rule};
use serde_json::Value as Json;
use std::sync::Arc;
use transom_cel::{Bindings, EvalError, Value};
use transom_object::field::{self, Kind, Path};

/// The longest message that a messageExpression may make, in bytes.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Evaluates the rules of a tree on an object.
pub(super) fn report(root: &Node, new: &Json, old: Option<&Json>, path: &Path, limits: Limits) -> Report {
    let report = Report { budget: Some(limits.per_object), ..Report::default() };
    let mut run = Run { report, per_call: limits.per_call };
    let pair = old.filter(|_| limits.ratchet).map(|old| Correlated::new(new, old, &root.schema));
    run.node(root, new, old, path, Ratchet { current: pair, parent: None, root: true });
    run.report
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
            // Schema validation does not ratchet below an allOf, so rules do not either.
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
        let this = Value::from_json_with(new, &*node.schema);
        let before = old.map(|old| Value::from_json_with(old, &*node.schema));
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
        self.report.errors.push(field::Error::invalid(path, node.schema.ty.name(), detail));
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
                let error = field::Error::invalid(&path, scope.node.schema.ty.name(), detail);
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
        let usable = !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n');
        Ok(usable.then(|| text.to_owned()))
    }
}

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
