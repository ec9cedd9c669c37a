//! ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings.
//!
//! Expressions are compiled when a policy is read, and evaluated within Kubernetes' budgets of cost. Objects have no declared
//! types: a field that does not exist is found when an expression is evaluated, not when the policy is written.

mod check;
mod mutation;

pub use check::{validate_binding, validate_policy};
pub use mutation::{Mutation, MutationError, Patch};

use crate::Request;
use crate::rules::{Rule, Target};
use crate::selection::{Conditions, LabelSelector, Matched, bindings, variables, variables_of_messages};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_cel::{
    AccessDecider, Bindings, Env, Key, Map, PER_OBJECT_LIMIT, Program, Type, Value as CelValue,
};

/// Which requests a policy or a binding is for.
#[derive(Clone, Debug)]
pub struct Match {
    /// None: all.
    rules: Option<Vec<Rule>>,
    exclude: Vec<Rule>,
    /// Whether requests in equivalent versions count.
    pub equivalent: bool,
    /// Namespaces of the objects.
    pub namespaces: LabelSelector,
    /// Objects by their labels.
    pub objects: LabelSelector,
}

impl Match {
    /// Reads `MatchResources`; none matches everything.
    pub fn parse(resources: &Value) -> Self {
        let rules = &resources["resourceRules"];
        Self {
            rules: rules.is_array().then(|| Rule::parse_all(rules)).filter(|rules| !rules.is_empty()),
            exclude: Rule::parse_all(&resources["excludeResourceRules"]),
            equivalent: resources["matchPolicy"] != "Exact",
            namespaces: LabelSelector::parse(&resources["namespaceSelector"]),
            objects: LabelSelector::parse(&resources["objectSelector"]),
        }
    }

    /// Whether the rules name the request.
    pub fn names(&self, target: &Target<'_>) -> bool {
        let named = self.rules.as_ref().is_none_or(|rules| rules.iter().any(|rule| rule.matches(target)));
        named && !self.exclude.iter().any(|rule| rule.matches(target))
    }
}

/// Where the parameters of a binding come from.
#[derive(Clone, Debug)]
pub struct ParamRef {
    /// The name of one object; empty with a selector.
    pub name: String,
    /// Its namespace; empty for the namespace of the request.
    pub namespace: String,
    /// The objects with these labels, if there is no name.
    pub selector: LabelSelector,
    /// Whether a request is allowed for which there are none.
    pub allows_missing: bool,
}

/// A binding of a policy.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Its name.
    pub name: String,
    /// The name of the policy.
    pub policy: String,
    /// The parameters, if the policy has any.
    pub params: Option<ParamRef>,
    /// Which of the requests that the policy is for.
    pub matches: Match,
    /// Whether a failed validation refuses the request.
    pub denies: bool,
    /// Whether a failed validation is a warning for the client.
    pub warns: bool,
    /// Whether a failed validation is in the audit log.
    pub audits: bool,
    /// What happens after a failed validation, as the binding has it.
    pub actions: Vec<String>,
}

impl Binding {
    /// Reads a binding of either kind.
    pub fn parse(binding: &Value) -> Self {
        let spec = &binding["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let actions = transom_object::json::strings(&spec["validationActions"]);
        let acts = |action: &str| actions.iter().any(|given| given == action);
        let reference = &spec["paramRef"];
        Self {
            name: text(&binding["metadata"]["name"]),
            policy: text(&spec["policyName"]),
            params: reference.is_object().then(|| ParamRef {
                name: text(&reference["name"]),
                namespace: text(&reference["namespace"]),
                selector: LabelSelector::parse(&reference["selector"]),
                allows_missing: reference["parameterNotFoundAction"] == "Allow",
            }),
            matches: Match::parse(&spec["matchResources"]),
            denies: acts("Deny"),
            warns: acts("Warn"),
            audits: acts("Audit"),
            actions,
        }
    }
}

/// How long the value of an audit annotation may be; the rest is left out.
const ANNOTATION_BYTES: usize = 10 * 1024;

/// An expression, or why it does not compile.
type Compiled = Result<Program, String>;

#[derive(Debug)]
struct Validation {
    expression: String,
    program: Compiled,
    message: String,
    message_program: Option<Compiled>,
    reason: String,
}

#[derive(Debug)]
struct AuditAnnotation {
    key: String,
    expression: String,
    program: Compiled,
}

/// A policy of either kind, compiled.
#[derive(Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Which requests it is for.
    pub matches: Match,
    /// `apiVersion` and `kind` of its parameters.
    pub param_kind: Option<(String, String)>,
    /// Whether an expression without a value allows the request.
    pub ignores_failure: bool,
    /// Whether a mutating policy is evaluated again when others changed the object after it.
    pub reinvoked: bool,
    conditions: Conditions,
    variables: Vec<(String, Compiled)>,
    validations: Vec<Validation>,
    audit: Vec<AuditAnnotation>,
    mutations: Vec<Mutation>,
}

/// The variables of a policy's expressions.
fn environment(params: bool) -> Env {
    of_policy(variables(), params)
}

/// The variables of the expressions that make messages: they cannot ask what users may do.
fn environment_of_messages(params: bool) -> Env {
    of_policy(variables_of_messages(), params)
}

fn of_policy(variables: Env, params: bool) -> Env {
    let env = variables.with("variables", Type::Dyn);
    if params { env.with("params", Type::Dyn) } else { env }
}

impl Policy {
    /// Reads and compiles a policy of either kind.
    pub fn parse(policy: &Value) -> Self {
        let spec = &policy["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let params = &spec["paramKind"];
        let env = environment(params.is_object());
        let messages = environment_of_messages(params.is_object());
        let compile_in = |source: &Value, env: &Env| {
            Program::compile(source.as_str().unwrap_or_default(), env).map_err(|e| e.to_string())
        };
        let compile = |source: &Value| compile_in(source, &env);
        let each = |list: &'_ Value| list.as_array().cloned().unwrap_or_default();
        Self {
            name: text(&policy["metadata"]["name"]),
            matches: Match::parse(&spec["matchConstraints"]),
            param_kind: params.is_object().then(|| (text(&params["apiVersion"]), text(&params["kind"]))),
            ignores_failure: spec["failurePolicy"] == "Ignore",
            reinvoked: spec["reinvocationPolicy"] == "IfNeeded",
            conditions: Conditions::compile(&spec["matchConditions"], &env),
            variables: each(&spec["variables"])
                .iter()
                .map(|v| (text(&v["name"]), compile(&v["expression"])))
                .collect(),
            validations: each(&spec["validations"])
                .iter()
                .map(|v| Validation {
                    expression: text(&v["expression"]).trim().to_owned(),
                    program: compile(&v["expression"]),
                    message: text(&v["message"]).trim().to_owned(),
                    message_program: v["messageExpression"]
                        .is_string()
                        .then(|| compile_in(&v["messageExpression"], &messages)),
                    reason: text(&v["reason"]),
                })
                .collect(),
            audit: each(&spec["auditAnnotations"])
                .iter()
                .map(|a| AuditAnnotation {
                    key: text(&a["key"]),
                    expression: text(&a["valueExpression"]),
                    program: compile(&a["valueExpression"]),
                })
                .collect(),
            mutations: each(&spec["mutations"]).iter().map(|m| Mutation::compile(m, &env)).collect(),
        }
    }
}

/// A validation that did not hold, or could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong.
    pub message: String,
    /// The reason of the response; empty for the usual one.
    pub reason: String,
    /// The validation, by its place in the policy.
    pub index: usize,
    /// Whether the request is denied whatever the actions of the binding are.
    pub unconditional: bool,
}

impl Failure {
    /// The policy cannot be evaluated at all, or a result of it is not what it must be.
    pub fn unconditional(message: String) -> Self {
        Self { message, reason: String::new(), index: 0, unconditional: true }
    }
}

/// What a policy says of one request with one set of parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// Validations that did not hold. Those that could not be evaluated are here only if the policy fails then.
    pub failures: Vec<Failure>,
    /// For the audit log: keys without the name of the policy.
    pub audit_annotations: Vec<(String, String)>,
}

impl Policy {
    /// Evaluates the validations. `None` when match conditions exclude the request.
    pub fn validate(
        &self,
        request: &Request,
        namespace: &Value,
        params: &Value,
        authorizer: &Arc<dyn AccessDecider>,
    ) -> Option<Evaluation> {
        let mut scope = self.scope(request, namespace, params, authorizer);
        let mut evaluation = Evaluation::default();
        match self.conditions.evaluate(&scope.bindings) {
            Matched::Yes => {}
            Matched::No => return None,
            Matched::Failed(why) => {
                if !self.ignores_failure {
                    let reason = String::new();
                    evaluation.failures.push(Failure {
                        message: why,
                        reason,
                        index: 0,
                        unconditional: false,
                    });
                }
                return Some(evaluation);
            }
        }
        self.bind_variables(&mut scope);
        for index in 0..self.validations.len() {
            evaluation.failures.extend(self.check(index, &mut scope));
        }
        self.annotate(&mut scope, &mut evaluation);
        Some(evaluation)
    }

    fn check(&self, index: usize, scope: &mut Scope<'_>) -> Option<Failure> {
        let validation = self.validations.get(index)?;
        let failure = |message: String| {
            Some(Failure { message, reason: validation.reason.clone(), index, unconditional: false })
        };
        match scope.eval(&validation.program) {
            Ok(CelValue::Bool(true)) => None,
            Ok(CelValue::Bool(false)) => failure(validation.message(scope)),
            _ if self.ignores_failure => None,
            Ok(_) => failure(format!("expression '{}' is not a bool", validation.expression)),
            Err(why) => failure(format!("expression '{}' resulted in error: {why}", validation.expression)),
        }
    }

    /// Evaluates the audit annotations, which have a budget of their own.
    fn annotate(&self, scope: &mut Scope<'_>, evaluation: &mut Evaluation) {
        scope.budget = PER_OBJECT_LIMIT;
        for annotation in &self.audit {
            match scope.eval(&annotation.program) {
                Ok(CelValue::Null) => {}
                Ok(CelValue::String(text)) if text.trim().is_empty() => {}
                Ok(CelValue::String(text)) => {
                    let text = shortened(text.trim(), ANNOTATION_BYTES);
                    evaluation.audit_annotations.push((annotation.key.clone(), text.to_owned()));
                }
                Ok(_) => evaluation.failures.push(Failure::unconditional(format!(
                    "valueExpression '{}' resulted in unsupported return type. Return type must be either string or null.",
                    annotation.expression
                ))),
                Err(_) if self.ignores_failure => {}
                Err(why) => evaluation.failures.push(Failure::unconditional(format!(
                    "expression '{}' resulted in error: {why}",
                    annotation.expression
                ))),
            }
        }
    }

    fn scope<'a>(
        &'a self,
        request: &'a Request,
        namespace: &'a Value,
        params: &'a Value,
        authorizer: &Arc<dyn AccessDecider>,
    ) -> Scope<'a> {
        let bindings = bindings(request, namespace, authorizer).with("params", CelValue::from_json(params));
        Scope { bindings, failed: BTreeMap::new(), budget: PER_OBJECT_LIMIT }
    }

    /// Each variable can use those before it. One that fails is missing, and what uses it fails with its error.
    fn bind_variables(&self, scope: &mut Scope<'_>) {
        let mut values = BTreeMap::new();
        scope.set_variables(&values);
        for (name, program) in &self.variables {
            match scope.eval(program) {
                Ok(value) => {
                    values.insert(Key::String(Arc::from(name.as_str())), value);
                    scope.set_variables(&values);
                }
                Err(why) => {
                    scope.failed.insert(name.clone(), why);
                }
            }
        }
    }
}

/// The beginning of a text, at most so many bytes of it.
fn shortened(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

impl Validation {
    fn message(&self, scope: &mut Scope<'_>) -> String {
        let made = match &self.message_program {
            Some(program) => match scope.eval(program) {
                Ok(CelValue::String(text)) if !text.trim().is_empty() && !text.contains('\n') => {
                    Some(text.trim().to_owned())
                }
                _ => None,
            },
            None => None,
        };
        made.unwrap_or_else(|| match self.message.as_str() {
            "" => format!("failed expression: {}", self.expression),
            message => message.to_owned(),
        })
    }
}

/// The values that expressions of one policy see for one request, and the cost that is left for them.
struct Scope<'a> {
    bindings: Bindings<'a>,
    failed: BTreeMap<String, String>,
    budget: u64,
}

impl<'a> Scope<'a> {
    fn set_variables(&mut self, values: &BTreeMap<Key, CelValue<'a>>) {
        let map = CelValue::Map(Map::Owned(Arc::new(values.clone())));
        self.bindings = std::mem::take(&mut self.bindings).with("variables", map);
    }

    fn eval(&mut self, program: &Compiled) -> Result<CelValue<'a>, String> {
        let program = program.as_ref().map_err(Clone::clone)?;
        if self.budget == 0 {
            return Err("validation failed due to running out of cost budget, no further validation rules will be run".into());
        }
        let (result, cost) =
            program.eval_metered(&self.bindings, self.budget.min(transom_cel::PER_CALL_LIMIT));
        self.budget = self.budget.saturating_sub(cost);
        result.map_err(|e| {
            let missing =
                self.failed.iter().find(|(name, _)| e.to_string() == format!("no such key: {name}"));
            match missing {
                Some((name, why)) => format!("composited variable {name:?} fails to evaluate: {why}"),
                None => e.to_string(),
            }
        })
    }
}
