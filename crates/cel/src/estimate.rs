//! What an expression can cost at least and at most, derived from the sizes that its schema allows.
//!
//! The estimate walks the checked tree once. Every node gets a size where one is known: from a literal, from the
//! schema along the path of names that leads to it, or from the function that computes it.

mod libraries;

use super::ast::{Expr, Fold, Kind, Literal};
use super::check::Checked;
use super::cost;
use super::program::{Dialect, Env};
use super::types::Type;
use std::collections::HashMap;

/// Bounds of a size or a cost. All arithmetic saturates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The least an evaluation costs.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl Bounds {
    const UNKNOWN: Self = Self { min: 0, max: u64::MAX };
    const NONE: Self = Self { min: u64::MAX, max: 0 };

    const fn exactly(n: u64) -> Self {
        Self { min: n, max: n }
    }

    fn map(self, f: impl Fn(u64) -> u64) -> Self {
        Self { min: f(self.min), max: f(self.max) }
    }

    fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// A share of the size, rounded up.
    fn share(self, factor: f64) -> Self {
        self.map(|n| cost::scaled(n, factor))
    }

    /// What reading strings of this size costs.
    fn traversal(self) -> Self {
        self.share(0.1)
    }
}

/// Sizes of a container's keys and values.
#[derive(Clone, Copy)]
struct Entries {
    list: bool,
    key: Bounds,
    value: Bounds,
}

impl Entries {
    fn union(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        let (a, b) = (a?, b?);
        Some(Self { list: a.list, key: a.key.union(b.key), value: a.value.union(b.value) })
    }
}

struct Local {
    name: String,
    path: Vec<String>,
    size: Option<Bounds>,
    entries: Option<Entries>,
}

/// The bounds of an expression's cost.
pub(crate) fn estimate(checked: &Checked, env: &Env) -> Bounds {
    let mut estimator = Estimator {
        checked,
        env,
        paths: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
        locals: Vec::new(),
    };
    estimator.cost(&checked.root)
}

struct Estimator<'c> {
    checked: &'c Checked,
    env: &'c Env,
    paths: HashMap<usize, Vec<String>>,
    sizes: HashMap<usize, Bounds>,
    entries: HashMap<usize, Entries>,
    locals: Vec<Local>,
}

impl Estimator<'_> {
    fn ty(&self, e: &Expr) -> &Type {
        &self.checked.types[e.id]
    }

    fn local(&self, e: &Expr) -> Option<&Local> {
        match &e.kind {
            Kind::Ident(name) => self.locals.iter().rev().find(|l| l.name == *name),
            _ => None,
        }
    }

    fn path(&self, e: &Expr) -> Vec<String> {
        match self.local(e) {
            Some(local) => local.path.clone(),
            None => self.paths.get(&e.id).cloned().unwrap_or_default(),
        }
    }

    /// The size that the schema allows at a path.
    fn declared(&self, path: &[String]) -> Option<Bounds> {
        let (first, rest) = path.split_first()?;
        let mut decl = self.env.decl(first).or_else(|| self.env.decl("self"))?.clone();
        for name in rest {
            decl = decl.step(name)?;
        }
        Some(Bounds { min: 0, max: u64::try_from(decl.max_elements).unwrap_or(0) })
    }

    fn size(&self, e: &Expr) -> Option<Bounds> {
        if let Some(size) = self.sizes.get(&e.id) {
            return Some(*size);
        }
        let count = |n: usize| Some(Bounds::exactly(u64::try_from(n).unwrap_or(u64::MAX)));
        let literal = match &e.kind {
            Kind::Literal(Literal::String(s)) => count(s.chars().count()),
            Kind::Literal(Literal::Bytes(b)) => count(b.len()),
            Kind::Literal(_) => count(1),
            Kind::List(items) => count(items.len()),
            Kind::Map(entries) => count(entries.len()),
            _ => None,
        };
        literal
            .or_else(|| self.declared(&self.path(e)))
            .or_else(|| is_scalar(self.ty(e)).then_some(Bounds::exactly(1)))
            .or_else(|| self.local(e).and_then(|l| l.size))
    }

    fn size_or_unknown(&self, e: &Expr) -> Bounds {
        self.size(e).unwrap_or(Bounds::UNKNOWN)
    }

    fn entries_of(&self, e: &Expr) -> Option<Entries> {
        self.entries.get(&e.id).copied().or_else(|| self.local(e).and_then(|l| l.entries))
    }

    fn cost(&mut self, e: &Expr) -> Bounds {
        match &e.kind {
            Kind::Literal(_) | Kind::Struct { .. } => Bounds::exactly(0),
            Kind::Ident(name) => {
                let path = self.local(e).map_or_else(|| vec![name.clone()], |l| l.path.clone());
                self.paths.insert(e.id, path);
                Bounds::exactly(1)
            }
            Kind::Select { operand, field, test } => self.select(e, operand, field, *test),
            Kind::Call { function, target, args } => self.call(e, function, target.as_deref(), args),
            Kind::List(items) => {
                let mut sum = Bounds::exactly(10);
                let mut value = if items.is_empty() { Bounds::exactly(0) } else { Bounds::NONE };
                for item in items {
                    sum = sum.plus(self.cost(&item.value));
                    value = value.union(self.size_or_unknown(&item.value));
                }
                self.entries.insert(e.id, Entries { list: true, key: Bounds::exactly(1), value });
                sum
            }
            Kind::Map(entries) => {
                let mut sum = Bounds::exactly(30);
                let start = if entries.is_empty() { Bounds::exactly(0) } else { Bounds::NONE };
                let (mut key, mut value) = (start, start);
                for entry in entries {
                    sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    key = key.union(self.size_or_unknown(&entry.key));
                    value = value.union(self.size_or_unknown(&entry.value));
                }
                self.entries.insert(e.id, Entries { list: false, key, value });
                sum
            }
            Kind::Fold(fold) if fold.is_binding() => self.binding(e, fold),
            Kind::Fold(fold) => self.fold(e, fold),
        }
    }

    fn select(&mut self, e: &Expr, operand: &Expr, field: &str, test: bool) -> Bounds {
        let cost = self.cost(operand);
        if test {
            return cost.plus(Bounds::exactly(u64::from(self.env.dialect() == Dialect::Plain)));
        }
        let mut path = self.path(operand);
        path.push(field.to_owned());
        self.paths.insert(e.id, path);
        let named = matches!(self.ty(operand), Type::Map(..) | Type::Object(_));
        cost.plus(Bounds::exactly(u64::from(named)))
    }

    fn binding(&mut self, e: &Expr, fold: &Fold) -> Bounds {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_accumulator(fold);
        sum = sum.plus(self.cost(&fold.result));
        if let Some(size) = self.size(&fold.result) {
            self.sizes.insert(e.id, size);
        }
        if let Some(entries) = self.entries_of(&fold.result) {
            self.entries.insert(e.id, entries);
        }
        self.locals.pop();
        sum
    }

    fn push_accumulator(&mut self, fold: &Fold) {
        let (size, entries) = (self.size(&fold.init), self.entries_of(&fold.init));
        let path = self.path(&fold.init);
        self.locals.push(Local { name: fold.accu.clone(), path, size, entries });
    }

    /// A loop variable: one step below the range.
    fn push_variable(&mut self, name: &str, range: &Expr, key: bool) {
        let entries = self.entries_of(range);
        let size = entries.map(|e| if key { e.key } else { e.value });
        let list = entries.map_or(matches!(self.ty(range), Type::List(_)), |e| e.list);
        let step = match (key, list) {
            (true, true) => "@indices",
            (true, false) => "@keys",
            (false, true) => "@items",
            (false, false) => "@values",
        };
        let mut path = self.path(range);
        path.push(step.to_owned());
        self.locals.push(Local { name: name.to_owned(), path, size, entries: None });
    }

    fn fold(&mut self, e: &Expr, fold: &Fold) -> Bounds {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        let depth = self.locals.len();
        self.push_accumulator(fold);
        if let Some(second) = &fold.iter2 {
            self.push_variable(&fold.iter, &fold.range, true);
            self.push_variable(second, &fold.range, false);
        } else {
            let list = self
                .entries_of(&fold.range)
                .map_or(matches!(self.ty(&fold.range), Type::List(_)), |e| e.list);
            self.push_variable(&fold.iter, &fold.range, !list);
        }
        let round = self.cost(&fold.cond).plus(self.cost(&fold.step));
        let step_entries = self.entries_of(&fold.step);
        self.locals.truncate(depth + 1);
        sum = sum.plus(self.cost(&fold.result));
        self.locals.truncate(depth);
        let count = self.size_or_unknown(&fold.range);
        match &fold.init.kind {
            Kind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(e.id, size);
                }
            }
            Kind::List(_) | Kind::Map(_) => {
                self.sizes.insert(e.id, count);
                if let Some(entries) = step_entries {
                    self.entries.insert(e.id, entries);
                }
            }
            _ => {}
        }
        sum.plus(count.times(round))
    }

    fn call(&mut self, e: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) -> Bounds {
        if let ("dyn", [arg]) = (function, args) {
            let cost = self.cost(arg).plus(Bounds::exactly(1));
            if let Some(size) = self.size(arg) {
                self.sizes.insert(e.id, size);
            }
            if let Some(entries) = self.entries_of(arg) {
                self.entries.insert(e.id, entries);
            }
            return cost;
        }
        let costs: Vec<Bounds> = args.iter().map(|a| self.cost(a)).collect();
        let overloads = self.checked.overloads[e.id].clone();
        let mut ids: Vec<&str> = overloads.iter().map(|o| o.id.as_str()).collect();
        if function == "_?._" {
            ids.push("select_optional_field");
        }
        if ids.is_empty() {
            return Bounds::exactly(0);
        }
        let target_cost = target.map_or(Bounds::exactly(0), |t| self.cost(t));
        let mut cost = Bounds::NONE;
        let mut size: Option<Bounds> = None;
        for id in ids {
            let (call, result) = self.function(e, function, id, target, args, &costs);
            cost = cost.union(call);
            if let Some(result) = result {
                size = Some(size.map_or(result, |s| s.union(result)));
            }
            if let ("index_list" | "index_map", Some(operand)) = (id, args.first()) {
                size = self.entries_of(operand).map(|e| e.value);
                let mut path = self.path(operand);
                path.push(if id == "index_list" { "@items" } else { "@values" }.to_owned());
                self.paths.insert(e.id, path);
            }
            if size.is_none() {
                size = self.size(e);
            }
        }
        if let Some(size) = size {
            self.sizes.insert(e.id, size);
        }
        target_cost.plus(cost)
    }

    /// The cost of a call with its arguments (but not its target), and the size of its result.
    fn function(
        &mut self,
        e: &Expr,
        function: &str,
        id: &str,
        target: Option<&Expr>,
        args: &[Expr],
        costs: &[Bounds],
    ) -> (Bounds, Option<Bounds>) {
        let sum = costs.iter().fold(Bounds::exactly(0), |a, b| a.plus(*b));
        if let Some((cost, size)) =
            self.extension(id, target, args).or_else(|| self.library(function, id, target, args))
        {
            return (cost.plus(sum), size);
        }
        let size = |i: usize| args.get(i).map_or(Bounds::UNKNOWN, |a| self.size_or_unknown(a));
        let of_target = || target.map_or(Bounds::UNKNOWN, |t| self.size_or_unknown(t));
        let matching = |text: Bounds, pattern: Bounds| {
            text.plus(Bounds::exactly(1)).traversal().times(pattern.share(0.25))
        };
        let (cost, result) = match id {
            "logical_or" | "logical_and" => {
                let (left, right) = (costs.first().copied(), costs.get(1).copied());
                let left = left.unwrap_or(Bounds::exactly(0));
                let max = left.plus(right.unwrap_or(Bounds::exactly(0))).max;
                return (Bounds { min: left.min, max }, None);
            }
            "conditional" => return self.conditional(e, args, costs),
            "string_format" => (of_target().traversal(), None),
            "string_to_bytes" => {
                (size(0).traversal(), Some(Bounds { min: size(0).min, max: size(0).max.saturating_mul(4) }))
            }
            "bytes_to_string" => {
                (size(0).traversal(), Some(Bounds { min: size(0).min / 4, max: size(0).max }))
            }
            "strings_quote" => {
                let grown = size(0).map(|n| n.saturating_add(2));
                (
                    size(0).traversal(),
                    Some(Bounds { min: grown.min, max: size(0).max.saturating_mul(2).saturating_add(2) }),
                )
            }
            "starts_with_string" | "ends_with_string" => (size(0).traversal(), None),
            "in_list" => (size(1), None),
            "matches_string" => (matching(of_target(), size(0)), None),
            "matches" => (matching(size(0), size(1)), None),
            "contains_string" => (of_target().traversal().times(size(0).traversal()), None),
            "add_string" | "add_bytes" | "add_list" => {
                let total = size(0).plus(size(1));
                let both = args.first().zip(args.get(1));
                if let Some(entries) =
                    both.and_then(|(a, b)| Entries::union(self.entries_of(a), self.entries_of(b)))
                {
                    self.entries.insert(e.id, entries);
                }
                (if id == "add_list" { Bounds::exactly(1) } else { total.traversal() }, Some(total))
            }
            _ if id == "equals" || id == "not_equals" || is_text_order(id) => {
                let max = size(0).max.min(size(1).max);
                (Bounds { min: u64::from(max > 0), max }.traversal(), None)
            }
            _ => (Bounds::exactly(1), None),
        };
        (cost.plus(sum), result)
    }

    fn conditional(&mut self, e: &Expr, args: &[Expr], costs: &[Bounds]) -> (Bounds, Option<Bounds>) {
        let ([_, then, otherwise], [condition, a, b]) = (args, costs) else { return (Bounds::UNKNOWN, None) };
        if let Some(entries) = Entries::union(self.entries_of(then), self.entries_of(otherwise)) {
            self.entries.insert(e.id, entries);
        }
        let size = self.size_or_unknown(then).union(self.size_or_unknown(otherwise));
        (condition.plus(a.union(*b)), Some(size))
    }
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

fn is_text_order(id: &str) -> bool {
    let order = ["less_equals_", "less_", "greater_equals_", "greater_"];
    order.iter().filter_map(|p| id.strip_prefix(p)).any(|ty| matches!(ty, "string" | "bytes"))
}
