//! `authorizer`: what a user may do. Expressions put a question together, and the host answers it.
//!
//! The functions are declared for every expression, as in Kubernetes, but only a value that the host binds makes use of
//! them. A check costs so much that an expression can have two.

use super::{Args, Out, Table, string};
use crate::opaque::Opaque;
use crate::value::{EvalError, Value};
use std::fmt;
use std::sync::Arc;
use transom_object::names;

/// What is asked: a verb on a path, or on a resource of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessQuestion {
    /// The namespace and name of a service account; none for the user of the request.
    pub service_account: Option<(String, String)>,
    /// A path that is not a resource; none for a resource.
    pub path: Option<String>,
    /// The API group.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Empty for all namespaces, and for resources without one.
    pub namespace: String,
    /// Empty for all objects.
    pub name: String,
    /// The fields that a list would select, as written.
    pub field_selector: String,
    /// The labels that a list would select, as written.
    pub label_selector: String,
    /// The verb.
    pub verb: String,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessDecision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why; may be empty.
    pub reason: String,
    /// Why there is no decision. It is not allowed then.
    pub error: Option<String>,
}

/// Answers the questions of expressions. It must not wait.
pub trait AccessDecider: Send + Sync {
    /// The answer to one question.
    fn decide(&self, question: &AccessQuestion) -> AccessDecision;
}

/// A question that is not finished, with whom to ask it.
#[derive(Clone)]
pub struct AccessCheck {
    decider: Arc<dyn AccessDecider>,
    question: AccessQuestion,
}

impl fmt::Debug for AccessCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AccessCheck").field(&self.question).finish()
    }
}

impl Value<'_> {
    /// The variable `authorizer`: asks about the user of the request, or about service accounts.
    pub fn authorizer(decider: &Arc<dyn AccessDecider>) -> Self {
        let question = AccessQuestion::default();
        Self::opaque(Opaque::Authorizer(AccessCheck { decider: decider.clone(), question }))
    }

    /// The variable `authorizer.requestResource`: asks about the resource of a question, whose verb is not read.
    pub fn resource_check(decider: &Arc<dyn AccessDecider>, question: AccessQuestion) -> Self {
        Self::opaque(Opaque::ResourceCheck(AccessCheck { decider: decider.clone(), question }))
    }
}

/// The question of the target, changed.
fn changed<'a>(
    args: Args<'_, 'a>,
    of: fn(&Opaque) -> Option<&AccessCheck>,
    into: fn(AccessCheck) -> Opaque,
    change: impl FnOnce(&mut AccessQuestion) -> Result<(), EvalError>,
) -> Out<'a> {
    let Value::Opaque(target) = args.get(0)? else { return Err(EvalError::overload()) };
    let mut check = of(target).ok_or_else(EvalError::overload)?.clone();
    change(&mut check.question)?;
    Ok(Value::opaque(into(check)))
}

fn authorizer(value: &Opaque) -> Option<&AccessCheck> {
    if let Opaque::Authorizer(check) = value { Some(check) } else { None }
}

fn path_check(value: &Opaque) -> Option<&AccessCheck> {
    if let Opaque::PathCheck(check) = value { Some(check) } else { None }
}

fn group_check(value: &Opaque) -> Option<&AccessCheck> {
    if let Opaque::GroupCheck(check) = value { Some(check) } else { None }
}

fn resource_check(value: &Opaque) -> Option<&AccessCheck> {
    if let Opaque::ResourceCheck(check) = value { Some(check) } else { None }
}

/// A text that must not be blank.
fn filled(args: Args<'_, '_>, what: &str) -> Result<String, EvalError> {
    let text = string(args.get(1)?)?;
    if text.trim().is_empty() {
        return Err(EvalError::failed(format!("{what} must not be empty")));
    }
    Ok(text.to_owned())
}

fn service_account<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let (namespace, name) = (string(args.get(1)?)?.to_owned(), string(args.get(2)?)?.to_owned());
    if !names::name_is_dns_subdomain(&name, false).is_empty() {
        return Err(EvalError::failed("Invalid service account name"));
    }
    if !names::name_is_dns_label(&namespace, false).is_empty() {
        return Err(EvalError::failed("Invalid service account namespace"));
    }
    changed(args, authorizer, Opaque::Authorizer, |question| {
        question.service_account = Some((namespace, name));
        Ok(())
    })
}

fn check<'a>(args: Args<'_, 'a>, of: fn(&Opaque) -> Option<&AccessCheck>) -> Out<'a> {
    let Value::Opaque(target) = args.get(0)? else { return Err(EvalError::overload()) };
    let check = of(target).ok_or_else(EvalError::overload)?;
    let verb = string(args.get(1)?)?.to_owned();
    let question = AccessQuestion { verb, ..check.question.clone() };
    Ok(Value::opaque(Opaque::Decision(check.decider.decide(&question))))
}

fn decision<'a>(args: Args<'_, 'a>, read: impl FnOnce(&AccessDecision) -> Value<'a>) -> Out<'a> {
    match args.get(0)? {
        Value::Opaque(value) => match &**value {
            Opaque::Decision(decision) => Ok(read(decision)),
            _ => Err(EvalError::overload()),
        },
        _ => Err(EvalError::overload()),
    }
}

pub(super) fn declare(t: &mut Table) {
    const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
    const PATH: &str = "kubernetes.authorization.PathCheck";
    const GROUP: &str = "kubernetes.authorization.GroupCheck";
    const DECISION: &str = "kubernetes.authorization.Decision";
    let and_text = |ty: &str| format!("{ty}, string");
    t.member("path", "authorizer_path", &and_text(AUTHORIZER), PATH, |_, a| {
        let path = filled(a, "path")?;
        changed(a, authorizer, Opaque::PathCheck, |question| {
            question.path = Some(path);
            Ok(())
        })
    });
    t.member("group", "authorizer_group", &and_text(AUTHORIZER), GROUP, |_, a| {
        changed(a, authorizer, Opaque::GroupCheck, |question| {
            question.group = string(a.get(1)?)?.to_owned();
            Ok(())
        })
    });
    let account = format!("{AUTHORIZER}, string, string");
    t.member("serviceAccount", "authorizer_serviceaccount", &account, AUTHORIZER, |_, a| service_account(a));
    t.member("resource", "groupcheck_resource", &and_text(GROUP), RESOURCE, |_, a| {
        let resource = filled(a, "resource")?;
        changed(a, group_check, Opaque::ResourceCheck, |question| {
            question.resource = resource;
            Ok(())
        })
    });
    declare_refinements(t);
    t.member("check", "pathcheck_check", &and_text(PATH), DECISION, |_, a| check(a, path_check));
    t.member("check", "resourcecheck_check", &and_text(RESOURCE), DECISION, |_, a| check(a, resource_check));
    t.member("allowed", "decision_allowed", DECISION, "bool", |_, a| decision(a, |d| Value::Bool(d.allowed)));
    t.member("reason", "decision_reason", DECISION, "string", |_, a| {
        decision(a, |d| Value::text(d.reason.as_str()))
    });
    t.member("errored", "decision_errored", DECISION, "bool", |_, a| {
        decision(a, |d| Value::Bool(d.error.is_some()))
    });
    t.member("error", "decision_error", DECISION, "string", |_, a| {
        decision(a, |d| Value::text(d.error.as_deref().unwrap_or_default()))
    });
}

const RESOURCE: &str = "kubernetes.authorization.ResourceCheck";

/// What narrows a question about a resource.
fn declare_refinements(t: &mut Table) {
    macro_rules! refine {
        ($function:literal, $id:literal, $field:ident) => {
            t.member($function, $id, &format!("{RESOURCE}, string"), RESOURCE, |_, a| {
                changed(a, resource_check, Opaque::ResourceCheck, |question| {
                    question.$field = string(a.get(1)?)?.to_owned();
                    Ok(())
                })
            });
        };
    }
    refine!("subresource", "resourcecheck_subresource", subresource);
    refine!("namespace", "resourcecheck_namespace", namespace);
    refine!("name", "resourcecheck_name", name);
    refine!("fieldSelector", "authorizer_fieldselector", field_selector);
    refine!("labelSelector", "authorizer_labelselector", label_selector);
}
