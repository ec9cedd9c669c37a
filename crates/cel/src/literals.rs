//! Literals that type-check and yet can only be mistakes: texts that are not a duration, timestamp or pattern, and
//! lists and maps of mixed types.

use super::ast::{Expr, Kind, Literal};
use super::check::Checked;
use super::library;
use super::source::Issue;
use super::time::Instant;
use super::types::Type;
use transom_go::time::duration;

/// All problems of a checked expression. `homogeneous` requires lists and maps of one type.
pub(crate) fn check(checked: &mut Checked, homogeneous: bool) -> Vec<Issue> {
    let mut pass = Pass { types: &checked.types, homogeneous, issues: Vec::new() };
    pass.walk(&mut checked.root, false);
    pass.issues
}

struct Pass<'c> {
    types: &'c [Type],
    homogeneous: bool,
    issues: Vec<Issue>,
}

impl Pass<'_> {
    /// `exempt` is whether this is in the arguments of `format`, which takes a list of anything.
    fn walk(&mut self, e: &mut Expr, exempt: bool) {
        let mut exempt = exempt;
        match &e.kind {
            Kind::Call { function, args, .. } => {
                exempt |= function == "format";
                self.argument(function, args.first());
            }
            Kind::List(items) if self.homogeneous && !exempt => {
                self.same(items.iter().map(|i| (&i.value, i.optional)));
            }
            Kind::Map(entries) if self.homogeneous && !exempt => {
                self.same(entries.iter().map(|e| (&e.key, false)));
                self.same(entries.iter().map(|e| (&e.value, e.optional)));
            }
            _ => {}
        }
        e.children_mut(&mut |child| self.walk(child, exempt));
    }

    fn argument(&mut self, function: &str, arg: Option<&Expr>) {
        let Some(Expr { kind: Kind::Literal(literal), pos, .. }) = arg else { return };
        let valid = match (function, literal) {
            ("duration", Literal::String(s)) => duration::parse(s).is_ok(),
            // Declared, but not implemented upstream.
            ("duration", Literal::Int(_)) => false,
            ("timestamp", Literal::String(s)) => Instant::parse(s).and_then(Instant::in_range).is_some(),
            ("timestamp", Literal::Int(n)) => Instant::from_seconds(*n).is_some(),
            ("matches", Literal::String(s)) => library::compile_pattern(s).is_ok(),
            _ => true,
        };
        if !valid {
            self.issues.push(Issue::new(*pos, format!("invalid {function} argument")));
        }
    }

    fn same<'e>(&mut self, parts: impl Iterator<Item = (&'e Expr, bool)>) {
        let mut first: Option<Type> = None;
        for (part, optional) in parts {
            let ty = &self.types[part.id];
            let ty = if optional { ty.unwrap_optional().0 } else { ty.clone() };
            match &first {
                None => first = Some(ty),
                Some(first) if *first != ty => {
                    let message = format!("expected type '{first}' but found '{ty}'");
                    self.issues.push(Issue::new(part.pos, message));
                    break;
                }
                Some(_) => {}
            }
        }
    }
}
