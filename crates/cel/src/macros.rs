//! Macros: `has`, the comprehensions with one and two variables, `optMap`, `sortBy`, `cel.bind`.

use super::ast::{Expr, Fold, Kind, Literal, number};
use super::source::Issue;

/// The accumulator of every comprehension. Not a name that a rule can declare.
pub(crate) const ACCU: &str = "__result__";
const UNUSED: &str = "#unused";
const SORT_INPUT: &str = "@__sortBy_input__";

pub(crate) enum Expansion {
    Macro(Expr),
    /// No macro: the call as it was.
    Call(Option<Expr>, Vec<Expr>),
}

/// Expands a macro. `copies` is how many more nodes may be copied: `optMap` doubles what it is applied to.
pub(crate) fn expand(
    pos: usize,
    target: Option<Expr>,
    function: &str,
    mut args: Vec<Expr>,
    copies: &mut usize,
) -> Result<Expansion, Issue> {
    let Some(target) = target else {
        if function == "has" && args.len() == 1 {
            return has(pos, args.remove(0)).map(Expansion::Macro);
        }
        return Ok(Expansion::Call(None, args));
    };
    if function == "bind" && args.len() == 3 && matches!(&target.kind, Kind::Ident(n) if n == "cel") {
        let [name, value, body] = take(args)?;
        let name = ident(&name)
            .ok_or_else(|| Issue::new(name.pos, "cel.bind() variable names must be simple identifiers"))?;
        return Ok(Expansion::Macro(bind(pos, &name, value, body)));
    }
    let expanded = match (function, args.len()) {
        ("all" | "exists" | "exists_one" | "existsOne" | "filter", 2) | ("map", 2 | 3) => {
            let iter = iteration_variable(args.first())?;
            args.remove(0);
            comprehension(pos, target, function, (iter, None), args)
        }
        ("all" | "exists" | "exists_one" | "existsOne", 3)
        | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
            let first = iteration_variable(args.first())?;
            let second = iteration_variable(args.get(1))?;
            if first == second {
                let pos = args.get(1).map_or(pos, |e| e.pos);
                return Err(Issue::new(pos, format!("duplicate variable name: {first}")));
            }
            args.drain(..2);
            comprehension(pos, target, function, (first, Some(second)), args)
        }
        ("optMap" | "optFlatMap", 2) => optional_map(pos, target, function, args, copies)?,
        ("sortBy", 2) => sort_by(pos, target, args)?,
        _ => return Ok(Expansion::Call(Some(target), args)),
    };
    Ok(Expansion::Macro(expanded))
}

fn take<const N: usize>(args: Vec<Expr>) -> Result<[Expr; N], Issue> {
    args.try_into().map_err(|_| Issue::new(0, "wrong number of macro arguments"))
}

fn ident(e: &Expr) -> Option<String> {
    match &e.kind {
        Kind::Ident(name) if !name.starts_with('.') => Some(name.clone()),
        _ => None,
    }
}

fn iteration_variable(arg: Option<&Expr>) -> Result<String, Issue> {
    let simple = "argument must be a simple name";
    let arg = arg.ok_or_else(|| Issue::new(0, simple))?;
    let name = ident(arg).ok_or_else(|| Issue::new(arg.pos, simple))?;
    if name == ACCU {
        return Err(Issue::new(arg.pos, "iteration variable overwrites accumulator variable"));
    }
    Ok(name)
}

fn has(pos: usize, arg: Expr) -> Result<Expr, Issue> {
    match arg.kind {
        Kind::Select { operand, field, test: false } => {
            Ok(Expr::new(pos, Kind::Select { operand, field, test: true }))
        }
        _ => Err(Issue::new(arg.pos, "invalid argument to has() macro")),
    }
}

fn accu(pos: usize) -> Expr {
    Expr::ident(pos, ACCU)
}

fn boolean(pos: usize, value: bool) -> Expr {
    Expr::literal(pos, Literal::Bool(value))
}

/// `args` are the macro's arguments after its variables: a predicate, or a transform with an optional filter.
fn comprehension(
    pos: usize,
    range: Expr,
    function: &str,
    (iter, iter2): (String, Option<String>),
    mut args: Vec<Expr>,
) -> Expr {
    let last = args.pop().unwrap_or_else(|| boolean(pos, true));
    let filter = args.pop();
    let int = |n| Expr::literal(pos, Literal::Int(n));
    let (init, cond, step, result) = match function {
        "all" => (
            boolean(pos, true),
            Expr::call(pos, "@not_strictly_false", vec![accu(pos)]),
            Expr::call(pos, "_&&_", vec![accu(pos), last]),
            accu(pos),
        ),
        "exists" => (
            boolean(pos, false),
            Expr::call(pos, "@not_strictly_false", vec![Expr::call(pos, "!_", vec![accu(pos)])]),
            Expr::call(pos, "_||_", vec![accu(pos), last]),
            accu(pos),
        ),
        "exists_one" | "existsOne" => {
            let plus_one = Expr::call(pos, "_+_", vec![accu(pos), int(1)]);
            let step = Expr::call(pos, "_?_:_", vec![last, plus_one, accu(pos)]);
            (int(0), boolean(pos, true), step, Expr::call(pos, "_==_", vec![accu(pos), int(1)]))
        }
        "filter" => {
            let item = Expr::list(pos, vec![Expr::ident(pos, &iter)]);
            let added = Expr::call(pos, "_+_", vec![accu(pos), item]);
            let step = Expr::call(pos, "_?_:_", vec![last, added, accu(pos)]);
            (Expr::list(pos, Vec::new()), boolean(pos, true), step, accu(pos))
        }
        "transformMap" | "transformMapEntry" => {
            let mut insert = vec![accu(pos)];
            if function == "transformMap" {
                insert.push(Expr::ident(pos, &iter));
            }
            insert.push(last);
            let step = filtered(pos, filter, Expr::call(pos, "cel.@mapInsert", insert));
            (Expr::new(pos, Kind::Map(Vec::new())), boolean(pos, true), step, accu(pos))
        }
        _ => {
            let added = Expr::call(pos, "_+_", vec![accu(pos), Expr::list(pos, vec![last])]);
            (Expr::list(pos, Vec::new()), boolean(pos, true), filtered(pos, filter, added), accu(pos))
        }
    };
    let fold = Fold { range, iter, iter2, accu: ACCU.to_owned(), init, cond, step, result };
    Expr::new(pos, Kind::Fold(Box::new(fold)))
}

fn filtered(pos: usize, filter: Option<Expr>, step: Expr) -> Expr {
    match filter {
        Some(filter) => Expr::call(pos, "_?_:_", vec![filter, step, accu(pos)]),
        None => step,
    }
}

fn bind(pos: usize, name: &str, value: Expr, body: Expr) -> Expr {
    let fold = Fold {
        range: Expr::list(pos, Vec::new()),
        iter: UNUSED.to_owned(),
        iter2: None,
        accu: name.to_owned(),
        init: value,
        cond: boolean(pos, false),
        step: Expr::ident(pos, name),
        result: body,
    };
    Expr::new(pos, Kind::Fold(Box::new(fold)))
}

/// `t.optMap(v, f)` is `t.hasValue() ? optional.of(cel.bind(v, t.value(), f)) : optional.none()`, with the target twice:
/// it costs twice, too, as it does upstream.
fn optional_map(
    pos: usize,
    mut target: Expr,
    function: &str,
    args: Vec<Expr>,
    copies: &mut usize,
) -> Result<Expr, Issue> {
    let [name, body] = take(args)?;
    let variable = ident(&name).ok_or_else(|| {
        Issue::new(name.pos, format!("{function}() variable name must be a simple identifier"))
    })?;
    *copies = copies.checked_sub(number(&mut target)).ok_or_else(|| {
        Issue::new(pos, format!("{function}() is applied to an expression that is too large"))
    })?;
    let optional = |name| Expr::member(pos, Expr::ident(pos, "optional"), name, Vec::new());
    let bound = bind(pos, &variable, Expr::member(pos, target.clone(), "value", Vec::new()), body);
    let then = if function == "optMap" {
        Expr::member(pos, Expr::ident(pos, "optional"), "of", vec![bound])
    } else {
        bound
    };
    let has_value = Expr::member(pos, target, "hasValue", Vec::new());
    Ok(Expr::call(pos, "_?_:_", vec![has_value, then, optional("none")]))
}

/// `l.sortBy(v, key)` computes the keys once and sorts by them.
fn sort_by(pos: usize, target: Expr, args: Vec<Expr>) -> Result<Expr, Issue> {
    if !matches!(
        target.kind,
        Kind::List(_) | Kind::Select { .. } | Kind::Ident(_) | Kind::Fold(_) | Kind::Call { .. }
    ) {
        let message =
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
        return Err(Issue::new(target.pos, message));
    }
    let iter = iteration_variable(args.first())?;
    let keys = comprehension(
        pos,
        Expr::ident(pos, SORT_INPUT),
        "map",
        (iter, None),
        vec![take::<2>(args)?[1].clone()],
    );
    let sorted = Expr::member(pos, Expr::ident(pos, SORT_INPUT), "@sortByAssociatedKeys", vec![keys]);
    Ok(bind(pos, SORT_INPUT, target, sorted))
}
