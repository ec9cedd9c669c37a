//! The plan: a checked tree arranged for evaluation. Names become slots, constants are folded, chains of
//! selections become attributes, and comprehensions that build a list or map append in place.

use super::ast::{Expr, Fold, Kind, Literal};
use super::check::Checked;
use super::library::{self, Args, Body, Overload, Work};
use super::types::{Type, named_type};
use super::value::{EvalError, Key, Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

type Const = Value<'static>;

pub(crate) enum Node {
    Const(Const),
    Attribute(Box<Attribute>),
    Call(Box<Call>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    NotStrictlyFalse(Box<Node>),
    /// `x in [constants]`, which costs nothing beyond `x`.
    InConstants {
        value: Box<Node>,
        list: Const,
    },
    OptionalOr {
        target: Box<Node>,
        other: Box<Node>,
        unwrap: bool,
    },
    List(Vec<(Node, bool)>),
    Map(Vec<(Node, Node, bool)>),
    Loop(Box<Loop>),
    Bind {
        value: Arc<Node>,
        body: Box<Node>,
    },
    /// `accu + [item]`, in place.
    Append {
        slot: usize,
        item: Box<Node>,
        folded: bool,
    },
    /// `cel.@mapInsert(accu, …)`, in place.
    Insert {
        slot: usize,
        args: Vec<Node>,
    },
}

pub(crate) struct Call {
    pub function: String,
    pub args: Vec<Node>,
    pub member: bool,
    /// Candidates; exactly one unless types are dynamic.
    pub overloads: Vec<&'static Overload>,
}

/// Where a chain of selections starts.
pub(crate) enum Base {
    Variable(usize),
    Local(usize),
    Value(Node),
    Choice { condition: Node, then: Box<Attribute>, otherwise: Box<Attribute> },
}

pub(crate) struct Attribute {
    pub base: Base,
    pub qualifiers: Vec<Qualifier>,
    /// Whether this tests the presence (`has`) of the last qualifier.
    pub test: bool,
}

pub(crate) struct Qualifier {
    pub by: By,
    pub optional: bool,
}

pub(crate) enum By {
    Field(String),
    Const(Const),
    Attribute(Attribute),
    Value(Node),
}

pub(crate) struct Loop {
    pub range: Node,
    pub two: bool,
    pub init: Node,
    pub cond: Node,
    pub step: Node,
    pub result: Node,
}

/// How to plan.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    /// Whether constant lists, maps and conversions are computed beforehand. Costs depend on it.
    pub fold: bool,
}

/// Plans a checked expression. `variables` are the names that bindings will have, in their order.
pub(crate) fn plan(checked: &Checked, variables: &[String], options: Options) -> Result<Node, String> {
    let mut planner = Planner { checked, variables, locals: Vec::new(), options };
    planner.plan(&checked.root)
}

struct Planner<'c> {
    checked: &'c Checked,
    variables: &'c [String],
    locals: Vec<String>,
    options: Options,
}

impl Planner<'_> {
    fn plan(&mut self, e: &Expr) -> Result<Node, String> {
        Ok(match &e.kind {
            Kind::Literal(literal) => Node::Const(constant(literal)),
            Kind::Ident(name) => self.ident(name)?,
            Kind::Select { operand, field, test } => {
                let mut attribute = self.attribute(operand)?;
                attribute.qualifiers.push(Qualifier { by: By::Field(field.clone()), optional: false });
                attribute.test = *test;
                Node::Attribute(Box::new(attribute))
            }
            Kind::Call { function, target, args } => self.call(e, function, target.as_deref(), args)?,
            Kind::List(items) => {
                let mut planned = Vec::with_capacity(items.len());
                for item in items {
                    planned.push((self.plan(&item.value)?, item.optional));
                }
                self.fold_list(planned)
            }
            Kind::Map(entries) => {
                let mut planned = Vec::with_capacity(entries.len());
                for entry in entries {
                    planned.push((self.plan(&entry.key)?, self.plan(&entry.value)?, entry.optional));
                }
                self.fold_map(planned)
            }
            Kind::Struct { name, .. } => return Err(format!("unknown type: {name}")),
            Kind::Fold(fold) => self.fold(fold)?,
        })
    }

    fn ident(&self, name: &str) -> Result<Node, String> {
        let base = if let Some(slot) = self.locals.iter().rposition(|n| n == name) {
            Base::Local(slot)
        } else {
            let name = name.strip_prefix('.').unwrap_or(name);
            match self.variables.iter().position(|n| n == name) {
                Some(index) => Base::Variable(index),
                None => {
                    let ty = named_type(name).ok_or_else(|| format!("undeclared reference to '{name}'"))?;
                    return Ok(Node::Const(Value::Type(type_name(&ty))));
                }
            }
        };
        Ok(Node::Attribute(Box::new(Attribute { base, qualifiers: Vec::new(), test: false })))
    }

    /// The operand of a selection as an attribute that can be qualified further.
    fn attribute(&mut self, operand: &Expr) -> Result<Attribute, String> {
        Ok(match self.plan(operand)? {
            Node::Attribute(attribute) if !attribute.test => *attribute,
            other => Attribute { base: Base::Value(other), qualifiers: Vec::new(), test: false },
        })
    }

    fn branch(&mut self, e: &Expr) -> Result<Box<Attribute>, String> {
        self.attribute(e).map(Box::new)
    }

    fn call(
        &mut self,
        e: &Expr,
        function: &str,
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Result<Node, String> {
        match (function, args) {
            ("_&&_", [a, b]) => return Ok(Node::And(Box::new([self.plan(a)?, self.plan(b)?]))),
            ("_||_", [a, b]) => return Ok(Node::Or(Box::new([self.plan(a)?, self.plan(b)?]))),
            ("@not_strictly_false", [a]) => return Ok(Node::NotStrictlyFalse(Box::new(self.plan(a)?))),
            ("_?_:_", [condition, then, otherwise]) => {
                let base = Base::Choice {
                    condition: self.plan(condition)?,
                    then: self.branch(then)?,
                    otherwise: self.branch(otherwise)?,
                };
                let attribute = Attribute { base, qualifiers: Vec::new(), test: false };
                return Ok(Node::Attribute(Box::new(attribute)));
            }
            ("_[_]" | "_[?_]" | "_?._", [operand, index]) => {
                let mut attribute = self.attribute(operand)?;
                let by = match self.plan(index)? {
                    Node::Const(c) => By::Const(c),
                    Node::Attribute(a) => By::Attribute(*a),
                    other => By::Value(other),
                };
                attribute.qualifiers.push(Qualifier { by, optional: function != "_[_]" });
                return Ok(Node::Attribute(Box::new(attribute)));
            }
            ("or" | "orValue", [other]) if target.is_some() => {
                let target = target.map(|t| self.plan(t)).transpose()?.unwrap_or(Node::Const(Value::Null));
                let other = Box::new(self.plan(other)?);
                return Ok(Node::OptionalOr {
                    target: Box::new(target),
                    other,
                    unwrap: function == "orValue",
                });
            }
            _ => {}
        }
        let mut planned = Vec::with_capacity(args.len() + 1);
        for arg in target.into_iter().chain(args) {
            planned.push(self.plan(arg)?);
        }
        let overloads = self.checked.overloads[e.id].clone();
        let call = Call { function: function.to_owned(), args: planned, member: target.is_some(), overloads };
        self.optimize(call)
    }

    /// Computes what can be computed now: conversions of constants, membership in constant lists, patterns.
    fn optimize(&self, mut call: Call) -> Result<Node, String> {
        const CONVERSIONS: [&str; 10] =
            ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];
        if let [overload] = call.overloads.as_slice()
            && let Body::Constant(f) = overload.body
        {
            let value = f(&overload.function).ok_or("unknown constant")?;
            // A function without arguments still costs a call.
            call.args.push(Node::Const(value));
            return Ok(Node::Call(Box::new(call)));
        }
        if matches!(call.function.as_str(), "find" | "findAll")
            && let Some(Node::Const(Value::String(pattern))) = call.args.get(1)
        {
            library::compile_pattern(pattern).map_err(|error| error.to_string())?;
        }
        if !self.options.fold {
            return Ok(Node::Call(Box::new(call)));
        }
        if CONVERSIONS.contains(&call.function.as_str())
            && let ([Node::Const(value)], Some(overload)) = (call.args.as_slice(), call.overloads.first())
            && let Body::Call(run) = overload.body
        {
            let value: Const = value.clone();
            let type_name = value.type_name();
            return run(&mut Work::default(), Args(&[value])).map(Node::Const).map_err(|e| match e {
                EvalError::NoSuchOverload(what) if what.is_empty() => {
                    format!("no such overload: {}({type_name})", call.function)
                }
                other => other.to_string(),
            });
        }
        if call.function == "@in"
            && call.overloads.len() == 1
            && call.overloads.first().is_some_and(|o| o.id == "in_list")
            && let Some(Node::Const(Value::List(list))) = call.args.get(1)
        {
            if list.len() == 0 {
                return Ok(Node::Const(Value::Bool(false)));
            }
            let primitive = list.iter().all(|v| {
                matches!(
                    v,
                    Ok(Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_))
                )
            });
            if primitive && let Some(Node::Const(list)) = call.args.pop() {
                let value = call.args.pop().unwrap_or(Node::Const(Value::Null));
                return Ok(Node::InConstants { value: Box::new(value), list });
            }
        }
        Ok(Node::Call(Box::new(call)))
    }

    fn fold_list(&self, items: Vec<(Node, bool)>) -> Node {
        let constants: Option<Vec<Const>> = items
            .iter()
            .map(|(node, optional)| match node {
                Node::Const(c) if !optional => Some(c.clone()),
                _ => None,
            })
            .collect();
        match constants {
            Some(constants) if self.options.fold => Node::Const(Value::list(constants)),
            _ => Node::List(items),
        }
    }

    fn fold_map(&self, entries: Vec<(Node, Node, bool)>) -> Node {
        let mut map = BTreeMap::new();
        for (key, value, optional) in &entries {
            let (Node::Const(key), Node::Const(value), false) = (key, value, optional) else {
                return Node::Map(entries);
            };
            match Key::from_value(key) {
                Some(entry) if !matches!(key, Value::Double(_)) && !map.contains_key(&entry) => {
                    map.insert(entry, value.clone());
                }
                // Left to fail at evaluation.
                _ => return Node::Map(entries),
            }
        }
        if self.options.fold {
            Node::Const(Value::Map(Map::Owned(Arc::new(map))))
        } else {
            Node::Map(entries)
        }
    }

    fn fold(&mut self, fold: &Fold) -> Result<Node, String> {
        let depth = self.locals.len();
        if fold.is_binding() {
            let value = Arc::new(self.plan(&fold.init)?);
            self.locals.push(fold.accu.clone());
            let body = Box::new(self.plan(&fold.result)?);
            self.locals.truncate(depth);
            return Ok(Node::Bind { value, body });
        }
        let range = self.plan(&fold.range)?;
        let init = self.plan(&fold.init)?;
        self.locals.push(fold.accu.clone());
        self.locals.push(fold.iter.clone());
        // The second slot exists always, so that slots do not depend on the kind of loop.
        self.locals.push(fold.iter2.clone().unwrap_or_default());
        let cond = self.plan(&fold.cond)?;
        let step = self.step(&fold.step, &fold.accu, depth)?;
        self.locals.truncate(depth + 1);
        let result = self.plan(&fold.result)?;
        self.locals.truncate(depth);
        Ok(Node::Loop(Box::new(Loop { range, two: fold.iter2.is_some(), init, cond, step, result })))
    }

    /// The step of a loop: what adds to the accumulator does so in place.
    fn step(&mut self, e: &Expr, accu: &str, slot: usize) -> Result<Node, String> {
        let Kind::Call { function, target: None, args } = &e.kind else { return self.plan(e) };
        let is_accu = |e: &Expr| matches!(&e.kind, Kind::Ident(name) if name == accu);
        match (function.as_str(), args.as_slice()) {
            ("_+_", [left, Expr { kind: Kind::List(items), .. }]) if is_accu(left) && items.len() == 1 => {
                if let Some(item) = items.first().filter(|i| !i.optional) {
                    let item = Box::new(self.plan(&item.value)?);
                    let folded = self.options.fold && matches!(*item, Node::Const(_));
                    return Ok(Node::Append { slot, item, folded });
                }
            }
            ("cel.@mapInsert", [left, rest @ ..]) if is_accu(left) => {
                let args = rest.iter().map(|a| self.plan(a)).collect::<Result<_, _>>()?;
                return Ok(Node::Insert { slot, args });
            }
            ("_?_:_", [condition, then, otherwise]) if is_accu(otherwise) => {
                let then = match self.step(then, accu, slot)? {
                    Node::Attribute(attribute) if !attribute.test => attribute,
                    other => {
                        Box::new(Attribute { base: Base::Value(other), qualifiers: Vec::new(), test: false })
                    }
                };
                let base = Base::Choice {
                    condition: self.plan(condition)?,
                    then,
                    otherwise: self.branch(otherwise)?,
                };
                return Ok(Node::Attribute(Box::new(Attribute {
                    base,
                    qualifiers: Vec::new(),
                    test: false,
                })));
            }
            _ => {}
        }
        self.plan(e)
    }
}

fn constant(literal: &Literal) -> Const {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(b) => Value::Bool(*b),
        Literal::Int(n) => Value::Int(*n),
        Literal::Uint(n) => Value::Uint(*n),
        Literal::Double(d) => Value::Double(*d),
        Literal::String(s) => Value::text(s.as_str()),
        Literal::Bytes(b) => Value::Bytes(Arc::from(b.as_slice())),
    }
}

/// The name by which values know their type.
fn type_name(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::Int => "int",
        Type::Uint => "uint",
        Type::Double => "double",
        Type::String => "string",
        Type::Bytes => "bytes",
        Type::List(_) => "list",
        Type::Map(..) => "map",
        Type::Null => "null_type",
        Type::Timestamp => "google.protobuf.Timestamp",
        Type::Duration => "google.protobuf.Duration",
        Type::Optional(_) => "optional_type",
        Type::Opaque(name) => name,
        _ => "type",
    }
}
