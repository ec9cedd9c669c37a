//! Expressions compiled once and evaluated often.

use super::ast::{Expr, Kind};
use super::check::{self, Checked};
use super::cost::{Meter, PER_CALL_LIMIT};
use super::decl::Decl;
use super::estimate::{self, Bounds};
use super::eval::Evaluation;
use super::literals;
use super::parser;
use super::plan::{self, Node, Options};
use super::source::{Issue, render};
use super::types::Type;
use super::value::{EvalError, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Why an expression does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// Problems with a place in the text. Empty when the failure has none.
    pub issues: Vec<Issue>,
    /// Whether the text is not an expression at all, rather than an expression that does not type-check.
    pub syntax: bool,
    message: String,
}

impl CompileError {
    fn from_issues(source: &str, issues: Vec<Issue>) -> Self {
        let message = format!("compilation failed: {}", render(source, &issues));
        Self { message, issues, syntax: false }
    }

    /// An error without a place in the text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { issues: Vec::new(), syntax: false, message: message.into() }
    }

    /// The same error, prefixed with the part of a rule that it concerns.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        if !self.message.starts_with(what) {
            self.message = format!("{what} {}", self.message);
        }
        self
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CompileError {}

/// What an expression can name: variables with their types. The functions are always Kubernetes' set.
#[derive(Clone, Debug, Default)]
pub struct Env {
    variables: BTreeMap<String, Type>,
    decls: BTreeMap<String, Arc<Decl>>,
    dialect: Dialect,
    messages: Vec<&'static str>,
}

/// Whose CEL it is. They differ in what is computed beforehand, in what `has` costs, in what it says of values
/// without fields, and in whether the elements of a list may be of several types.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Dialect {
    #[default]
    Kubernetes,
    /// Upstream's defaults.
    Plain,
}

impl Env {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a variable.
    #[must_use]
    pub fn with(mut self, name: &str, ty: Type) -> Self {
        self.variables.insert(name.to_owned(), ty);
        self
    }

    /// Declares a variable together with the bounds of its values, from which costs are estimated.
    #[must_use]
    pub fn with_decl(mut self, name: &str, decl: &Arc<Decl>) -> Self {
        self.decls.insert(name.to_owned(), decl.clone());
        self.with(name, decl.ty.clone())
    }

    /// Allows messages of this type and of types within it, as in `Object{spec: Object.spec{replicas: 1}}`. Their fields
    /// are not declared: a message is a map.
    #[must_use]
    pub fn with_message(mut self, name: &'static str) -> Self {
        self.messages.push(name);
        self
    }

    /// As upstream is outside of Kubernetes: constants are not computed beforehand, `has` has a price and is false of
    /// texts, numbers and null instead of failing, and lists and maps may be of mixed types.
    #[must_use]
    pub fn outside_kubernetes(mut self) -> Self {
        self.dialect = Dialect::Plain;
        self
    }

    pub(crate) fn decl(&self, name: &str) -> Option<&Arc<Decl>> {
        self.decls.get(name)
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }
}

/// Values for the variables of an environment.
#[derive(Clone, Debug, Default)]
pub struct Bindings<'a>(BTreeMap<String, Value<'a>>);

impl<'a> Bindings<'a> {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value<'a>) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }
}

/// A compiled expression.
pub struct Program {
    node: Node,
    names: Vec<String>,
    result: Type,
    mentioned: Vec<String>,
    dialect: Dialect,
    estimate: Bounds,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("result", &self.result).finish_non_exhaustive()
    }
}

impl Program {
    /// Parses, checks and plans an expression.
    pub fn compile(source: &str, env: &Env) -> Result<Self, CompileError> {
        let checked = analyze(source, env)?;
        Self::from_checked(&checked, env)
    }

    /// Compiles an expression whose result must be of a type; `otherwise` is the error when it is of another.
    pub fn compile_expecting(
        source: &str,
        env: &Env,
        wanted: &Type,
        otherwise: &str,
    ) -> Result<Self, CompileError> {
        let checked = analyze(source, env)?;
        if checked.result() != wanted {
            return Err(CompileError::new(otherwise));
        }
        Self::from_checked(&checked, env)
    }

    fn from_checked(checked: &Checked, env: &Env) -> Result<Self, CompileError> {
        let names: Vec<String> = env.variables.keys().cloned().collect();
        let node = plan::plan(checked, &names, Options { fold: env.dialect == Dialect::Kubernetes })
            .map_err(|why| CompileError::new(format!("program instantiation failed: {why}")))?;
        let estimate = estimate::estimate(checked, env);
        let mut mentioned = Vec::new();
        mentions(&mut checked.root.clone(), &mut mentioned);
        Ok(Self { node, names, result: checked.result().clone(), mentioned, dialect: env.dialect, estimate })
    }

    /// The static type of the result.
    pub fn result_type(&self) -> &Type {
        &self.result
    }

    /// What an evaluation can cost, as far as the declarations tell.
    pub fn estimated_cost(&self) -> Bounds {
        self.estimate
    }

    /// Whether the expression names a variable.
    pub fn mentions(&self, name: &str) -> bool {
        self.mentioned.iter().any(|n| n == name)
    }

    /// Evaluates under a budget of cost.
    pub fn eval<'a>(&self, bindings: &Bindings<'a>, budget: u64) -> Result<Value<'a>, EvalError> {
        self.eval_metered(bindings, budget).0
    }

    /// Evaluates under Kubernetes' budget for one expression.
    pub fn eval_default<'a>(&self, bindings: &Bindings<'a>) -> Result<Value<'a>, EvalError> {
        self.eval(bindings, PER_CALL_LIMIT)
    }

    /// Evaluates, and returns the cost too.
    pub fn eval_metered<'a>(
        &self,
        bindings: &Bindings<'a>,
        budget: u64,
    ) -> (Result<Value<'a>, EvalError>, u64) {
        let values: Vec<Option<Value<'a>>> = self.names.iter().map(|n| bindings.0.get(n).cloned()).collect();
        let mut meter = Meter::new(budget, self.dialect);
        let result = Evaluation::new(&values, &self.names, &mut meter).eval(&self.node);
        (result, meter.cost)
    }
}

/// Parses and checks.
fn analyze(source: &str, env: &Env) -> Result<Checked, CompileError> {
    let fail = |issues| CompileError::from_issues(source, issues);
    let parsed = parser::parse(source).map_err(|issues| CompileError { syntax: true, ..fail(issues) })?;
    let mut checked = check::check(parsed.root, parsed.nodes, &env.variables, &env.messages).map_err(fail)?;
    let issues = literals::check(&mut checked, env.dialect == Dialect::Kubernetes);
    if issues.is_empty() { Ok(checked) } else { Err(fail(issues)) }
}

fn mentions(e: &mut Expr, names: &mut Vec<String>) {
    if let Kind::Ident(name) = &e.kind {
        names.push(name.clone());
    }
    e.children_mut(&mut |child| mentions(child, names));
}
