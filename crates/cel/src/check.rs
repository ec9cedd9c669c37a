//! The type checker: infers every node's type, resolves names and overloads, and reports what does not fit.

use super::ast::{Entry, Expr, Fold, Kind, Literal};
use super::escaping::is_keyword;
use super::library::{self, Overload};
use super::source::Issue;
use super::types::{Substitution, Type, most_general, named_type};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A checked tree. `types` and `overloads` are indexed by node id.
pub(crate) struct Checked {
    pub root: Expr,
    pub types: Vec<Type>,
    /// The overloads a call may mean: one, unless dynamic types leave more open.
    pub overloads: Vec<Vec<&'static Overload>>,
}

impl Checked {
    pub(crate) fn result(&self) -> &Type {
        &self.types[self.root.id]
    }
}

pub(crate) fn check(
    mut root: Expr,
    nodes: usize,
    variables: &BTreeMap<String, Type>,
    messages: &[&str],
) -> Result<Checked, Vec<Issue>> {
    let mut checker = Checker {
        variables,
        messages,
        locals: Vec::new(),
        known: Substitution::default(),
        // Parameters of declarations are small numbers; free variables follow in blocks of two.
        fresh: 2,
        types: vec![Type::Dyn; nodes],
        overloads: vec![Vec::new(); nodes],
        issues: Vec::new(),
    };
    checker.check(&mut root);
    if !checker.issues.is_empty() {
        return Err(checker.issues);
    }
    let types = checker.types.iter().map(|t| checker.known.apply(t, true)).collect();
    Ok(Checked { root, types, overloads: checker.overloads })
}

struct Checker<'v> {
    variables: &'v BTreeMap<String, Type>,
    messages: &'v [&'v str],
    locals: Vec<(String, Type)>,
    known: Substitution,
    fresh: usize,
    types: Vec<Type>,
    overloads: Vec<Vec<&'static Overload>>,
    issues: Vec<Issue>,
}

impl Checker<'_> {
    fn report(&mut self, e: &Expr, message: String) {
        self.issues.push(Issue::new(e.pos, message));
    }

    fn mismatch(&mut self, e: &Expr, expected: &Type, found: &Type) {
        let (expected, found) = (self.known.apply(expected, true), self.known.apply(found, true));
        self.report(e, format!("expected type '{expected}' but found '{found}'"));
    }

    fn undeclared(&mut self, e: &Expr, name: &str) -> Type {
        self.report(e, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn variable(&mut self) -> Type {
        self.fresh += 2;
        Type::Param(self.fresh - 2)
    }

    fn type_of(&self, e: &Expr) -> Type {
        self.types[e.id].clone()
    }

    fn check(&mut self, e: &mut Expr) -> Type {
        let ty = match &mut e.kind {
            Kind::Literal(literal) => literal_type(literal),
            Kind::Ident(_) => self.check_ident(e),
            Kind::Select { .. } => self.check_select(e),
            Kind::Call { .. } => self.check_call(e),
            Kind::List(_) => self.check_list(e),
            Kind::Map(_) => self.check_map(e),
            Kind::Struct { name, fields } => {
                let root = name.split('.').next().unwrap_or_default();
                if self.messages.contains(&root) {
                    // A message whose fields are not declared is a map of them.
                    e.kind = Kind::Map(std::mem::take(fields));
                    self.check_map(e)
                } else {
                    let name = name.clone();
                    self.undeclared(e, &name)
                }
            }
            Kind::Fold(_) => self.check_fold(e),
        };
        self.types[e.id] = ty.clone();
        ty
    }

    fn lookup(&self, name: &str) -> Option<Type> {
        let rooted = name.strip_prefix('.');
        let local = self.locals.iter().rev().find(|(n, _)| n == name && rooted.is_none());
        if let Some((_, ty)) = local {
            return Some(ty.clone());
        }
        let name = rooted.unwrap_or(name);
        if let Some(ty) = self.variables.get(name) {
            return Some(ty.clone());
        }
        named_type(name).map(|ty| Type::Type(Arc::new(ty)))
    }

    fn check_ident(&mut self, e: &mut Expr) -> Type {
        let Kind::Ident(name) = &e.kind else { return Type::Error };
        let name = name.clone();
        match self.lookup(&name) {
            Some(ty) => ty,
            None => self.undeclared(e, &name),
        }
    }

    fn check_select(&mut self, e: &mut Expr) -> Type {
        if let Some(name) = e.qualified_name()
            && !self.locals.iter().any(|(n, _)| name.split('.').next() == Some(n))
            && let Some(ty) = self.lookup(&name)
        {
            e.kind = Kind::Ident(name);
            return ty;
        }
        let pos = e.pos;
        let Kind::Select { operand, field, test } = &mut e.kind else { return Type::Error };
        let (field, test) = (field.clone(), *test);
        self.check(operand);
        let operand_type = self.type_of(operand);
        let ty = self.field_type(pos, &operand_type, &field, false);
        if test { Type::Bool } else { self.known.apply(&ty, false) }
    }

    fn field_type(&mut self, pos: usize, operand: &Type, field: &str, optional: bool) -> Type {
        let operand = self.known.apply(operand, false);
        let (target, was_optional) = operand.unwrap_optional();
        let result = match &target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => {
                let escaped = || is_keyword(field).then(|| format!("__{field}__"));
                let found = object.fields.get(field).or_else(|| object.fields.get(&escaped()?));
                found.cloned().unwrap_or_else(|| {
                    self.issues.push(Issue::new(pos, format!("undefined field '{field}'")));
                    Type::Error
                })
            }
            Type::Param(_) => {
                self.known.assign(&Type::Dyn, &target);
                Type::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    let message = format!("type '{other}' does not support field selection");
                    self.issues.push(Issue::new(pos, message));
                }
                Type::Dyn
            }
        };
        if was_optional || optional { Type::optional(result) } else { result }
    }

    fn check_call(&mut self, e: &mut Expr) -> Type {
        let pos = e.pos;
        let Kind::Call { function, target, args } = &mut e.kind else { return Type::Error };
        if function == "_?._"
            && let [operand, Expr { kind: Kind::Literal(Literal::String(field)), .. }] = args.as_mut_slice()
        {
            let field = field.clone();
            self.check(operand);
            let operand_type = self.type_of(operand);
            if let Some(name) = args.get_mut(1) {
                self.check(name);
            }
            let ty = self.field_type(pos, &operand_type, &field, true);
            return self.known.apply(&ty, false);
        }
        for arg in args.iter_mut() {
            self.check(arg);
        }
        // `a.b.f(x)` is the function `a.b.f` if that exists, else `f` of `a.b`.
        if let Some(prefix) = target.as_ref().and_then(|t| t.qualified_name()) {
            let name = format!("{prefix}.{function}");
            if library::function(&name).is_some() {
                *function = name;
                *target = None;
            }
        }
        if let Some(target) = target {
            self.check(target);
        }
        let name = function.strip_prefix('.').unwrap_or(function).to_owned();
        let Some(overloads) = library::function(&name) else {
            return self.undeclared(e, &name);
        };
        self.resolve(e, &name, overloads)
    }

    fn resolve(&mut self, e: &Expr, name: &str, overloads: &'static [Overload]) -> Type {
        let Kind::Call { target, args, .. } = &e.kind else { return Type::Error };
        let operands: Vec<&Expr> = target.as_deref().into_iter().chain(args).collect();
        let types: Vec<Type> = operands.iter().map(|a| self.type_of(a)).collect();
        if matches!(name, "_&&_" | "_||_") {
            for (operand, ty) in operands.iter().zip(&types) {
                if !self.known.assign(ty, &Type::Bool) {
                    self.mismatch(operand, &Type::Bool, ty);
                }
            }
            self.overloads[e.id] = overloads.iter().collect();
            return Type::Bool;
        }
        let mut result: Option<Type> = None;
        let mut found = Vec::new();
        for overload in overloads.iter().filter(|o| o.member == target.is_some()) {
            self.fresh += 2;
            let base = self.fresh - 2;
            let wanted: Vec<Type> = overload.args.iter().map(|t| t.instantiate(base)).collect();
            if !self.known.assign_all(&types, &wanted) {
                continue;
            }
            found.push(overload);
            let ty = self.known.apply(&overload.result.instantiate(base), false);
            result = Some(match result {
                None => ty,
                Some(first) if matches!(first, Type::Dyn) || first == ty => first,
                Some(_) => Type::Dyn,
            });
        }
        self.overloads[e.id] = found;
        result.unwrap_or_else(|| {
            let shown: Vec<String> = types.iter().map(|t| self.known.apply(t, true).to_string()).collect();
            let signature = match (target, shown.split_first()) {
                (Some(_), Some((target, args))) => format!("{target}.({})", args.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            self.report(e, format!("found no matching overload for '{name}' applied to '{signature}'"));
            Type::Error
        })
    }

    /// The type of elements of both types. Mixed ones are dynamic; `literals` checks whether they may mix.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.known.assign(&previous, &current) { most_general(&previous, &current) } else { Type::Dyn }
    }

    fn optional_part(&mut self, e: &Expr, ty: Type, optional: bool) -> Type {
        if !optional {
            return ty;
        }
        let (inner, is_optional) = self.known.apply(&ty, false).unwrap_optional();
        if !is_optional && !matches!(inner, Type::Dyn) {
            self.mismatch(e, &Type::optional(inner.clone()), &inner);
        }
        inner
    }

    fn check_list(&mut self, e: &mut Expr) -> Type {
        let Kind::List(items) = &mut e.kind else { return Type::Error };
        let mut joined = None;
        for item in items {
            let ty = self.check(&mut item.value);
            let ty = self.optional_part(&item.value, ty, item.optional);
            joined = Some(self.join(joined, ty));
        }
        Type::list(joined.unwrap_or_else(|| self.variable()))
    }

    fn check_map(&mut self, e: &mut Expr) -> Type {
        let Kind::Map(entries) = &mut e.kind else { return Type::Error };
        let (mut keys, mut values) = (None, None);
        for Entry { key, value, optional } in entries {
            let ty = self.check(key);
            keys = Some(self.join(keys, ty));
            let ty = self.check(value);
            let ty = self.optional_part(value, ty, *optional);
            values = Some(self.join(values, ty));
        }
        let key = keys.unwrap_or_else(|| self.variable());
        let value = values.unwrap_or_else(|| self.variable());
        Type::map(key, value)
    }

    fn check_fold(&mut self, e: &mut Expr) -> Type {
        let Kind::Fold(fold) = &mut e.kind else { return Type::Error };
        let Fold { range, iter, iter2, accu, init, cond, step, result } = &mut **fold;
        self.check(range);
        let range_type = self.known.apply(&self.type_of(range), false);
        let accu_type = self.check(init);
        let (first, second) = match &range_type {
            Type::List(item) if iter2.is_some() => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Dyn),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.known.assign(&Type::Dyn, &range_type);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(range, message);
                (Type::Error, Type::Error)
            }
        };
        let depth = self.locals.len();
        self.locals.push((accu.clone(), accu_type.clone()));
        self.locals.push((iter.clone(), first));
        if let Some(iter2) = iter2 {
            self.locals.push((iter2.clone(), second));
        }
        let ty = self.check(cond);
        if !self.known.assign(&Type::Bool, &ty) {
            self.mismatch(cond, &Type::Bool, &ty);
        }
        let ty = self.check(step);
        if !self.known.assign(&accu_type, &ty) {
            self.mismatch(step, &accu_type, &ty);
        }
        self.locals.truncate(depth + 1);
        let ty = self.check(result);
        self.locals.truncate(depth);
        self.known.apply(&ty, false)
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
