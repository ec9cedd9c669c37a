//! The interpreter: evaluates a plan against bindings, under a meter.

use super::compare;
use super::cost::{self, Meter};
use super::library::{self, Args, Body, Out, Overload};
use super::plan::{Attribute, Base, By, Call, Loop, Node, Qualifier};
use super::program::Dialect;
use super::value::{EvalError, Key, List, Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One evaluation. Slots hold results, not values: a failed accumulator may yet be overruled by `||`.
pub(crate) struct Evaluation<'e, 'a> {
    pub variables: &'e [Option<Value<'a>>],
    pub names: &'e [String],
    pub meter: &'e mut Meter,
    locals: Vec<Local<'a>>,
}

/// What a slot holds: a result, or what computes it when it is first needed.
#[derive(Clone)]
enum Local<'a> {
    Known(Out<'a>),
    Pending(Arc<Node>),
}

impl<'e, 'a> Evaluation<'e, 'a> {
    pub(crate) fn new(variables: &'e [Option<Value<'a>>], names: &'e [String], meter: &'e mut Meter) -> Self {
        Self { variables, names, meter, locals: Vec::new() }
    }

    pub(crate) fn eval(&mut self, node: &Node) -> Out<'a> {
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Attribute(attribute) => self.attribute(attribute, true),
            Node::Call(call) => self.call(call),
            Node::And(terms) => self.logic(terms, false),
            Node::Or(terms) => self.logic(terms, true),
            Node::NotStrictlyFalse(inner) => {
                let value = unless_exceeded(self.eval(inner))?;
                self.meter.charge(1)?;
                Ok(Value::Bool(!matches!(value, Ok(Value::Bool(false)))))
            }
            Node::InConstants { value, list } => {
                let value = self.eval(value)?;
                let Value::List(list) = list else { return Err(EvalError::overload()) };
                compare::contains(list, &value, &mut self.meter.work).map(Value::Bool)
            }
            Node::OptionalOr { target, other, unwrap } => match self.eval(target)? {
                Value::Optional(Some(value)) => {
                    Ok(if *unwrap { (*value).clone() } else { Value::Optional(Some(value)) })
                }
                Value::Optional(None) => self.eval(other),
                _ => Err(EvalError::overload()),
            },
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Loop(fold) => self.run_loop(fold),
            Node::Bind { value, body } => {
                // What the body does not use is not evaluated: it neither fails nor costs.
                self.locals.push(Local::Pending(value.clone()));
                let result = self.eval(body);
                self.locals.pop();
                result
            }
            Node::Append { slot, item, folded } => self.append(*slot, item, *folded),
            Node::Insert { slot, args } => self.insert(*slot, args),
        }
    }

    /// `&&` and `||`: an operand that decides the result overrules the failure of the other.
    fn logic(&mut self, terms: &[Node; 2], decisive: bool) -> Out<'a> {
        let mut failure = None;
        for term in terms {
            match unless_exceeded(self.eval(term))? {
                Ok(Value::Bool(b)) if b == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failure = failure.or(Some(EvalError::overload())),
                Err(e) => failure = failure.or(Some(e)),
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    /// `charged` is whether naming the base costs one. It does not for a branch of `?:` or an index.
    fn attribute(&mut self, attribute: &Attribute, charged: bool) -> Out<'a> {
        let (base, costs) = match &attribute.base {
            Base::Variable(index) => (self.variable(*index), charged),
            Base::Local(slot) => (self.local(*slot), charged),
            Base::Value(node) => (self.eval(node), charged && !attribute.qualifiers.is_empty()),
            Base::Choice { condition, then, otherwise } => {
                let branch = match self.eval(condition)? {
                    Value::Bool(true) => then,
                    Value::Bool(false) => otherwise,
                    _ => return Err(EvalError::overload()),
                };
                (self.attribute(branch, false), false)
            }
        };
        if matches!(base, Err(EvalError::CostExceeded)) {
            return base;
        }
        // In Kubernetes a presence test costs nothing itself: one for the attribute less one for the test.
        if costs && (!attribute.test || self.meter.dialect == Dialect::Plain) {
            self.meter.charge(1)?;
        }
        if attribute.qualifiers.is_empty() { base } else { self.qualify(base?, attribute) }
    }

    fn local(&mut self, slot: usize) -> Out<'a> {
        match self.locals.get(slot).cloned() {
            Some(Local::Known(value)) => value,
            Some(Local::Pending(node)) => {
                // It was planned where only the slots before its own existed.
                let after = self.locals.split_off(slot);
                let value = self.eval(&node);
                self.locals.push(Local::Known(value.clone()));
                self.locals.extend(after.into_iter().skip(1));
                value
            }
            None => Err(EvalError::overload()),
        }
    }

    fn variable(&self, index: usize) -> Out<'a> {
        match self.variables.get(index) {
            Some(Some(value)) => Ok(value.clone()),
            _ => {
                let name = self.names.get(index).map_or("", String::as_str);
                Err(EvalError::failed(format!("no such attribute(s): {name}")))
            }
        }
    }

    fn qualify(&mut self, base: Value<'a>, attribute: &Attribute) -> Out<'a> {
        let mut value = base;
        let mut optional = false;
        let last = attribute.qualifiers.len() - 1;
        for (i, qualifier) in attribute.qualifiers.iter().enumerate() {
            let test = attribute.test && i == last;
            if let Value::Optional(inner) = value {
                optional = true;
                match inner {
                    Some(inner) => value = (*inner).clone(),
                    None => {
                        return Ok(if attribute.test { Value::Bool(false) } else { Value::Optional(None) });
                    }
                }
            }
            let found = self.step(&value, qualifier, test)?;
            if test {
                self.meter.charge(1)?;
                return Ok(Value::Bool(found.is_some()));
            }
            optional = optional || qualifier.optional;
            match found {
                Some(next) => {
                    self.meter.charge(1)?;
                    value = next;
                }
                None if optional => return Ok(Value::Optional(None)),
                None => {
                    self.meter.charge(1)?;
                    return Err(self.missing(&value, qualifier));
                }
            }
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    /// One selection or index: `None` when nothing is there.
    fn step(
        &mut self,
        value: &Value<'a>,
        qualifier: &Qualifier,
        test: bool,
    ) -> Result<Option<Value<'a>>, EvalError> {
        match &qualifier.by {
            By::Field(name) => match value {
                Value::Map(map) if test || qualifier.optional => map.find_present(name),
                Value::Map(map) => map.find_name(name),
                // Outside of Kubernetes, what has no fields does not have this one either.
                _ if test && self.meter.dialect == Dialect::Plain && !matches!(value, Value::List(_)) => {
                    Ok(None)
                }
                _ if test => Err(EvalError::failed(format!("no such key: {name}"))),
                _ => Err(EvalError::overload()),
            },
            By::Const(key) => index(value, key),
            By::Attribute(attribute) => {
                let key = self.attribute(attribute, false)?;
                index(value, &key)
            }
            By::Value(node) => {
                let key = self.eval(node)?;
                index(value, &key)
            }
        }
    }

    fn missing(&mut self, value: &Value<'a>, qualifier: &Qualifier) -> EvalError {
        let key = match &qualifier.by {
            By::Field(name) => name.clone(),
            By::Const(key) => library::convert::to_text(key).unwrap_or_default(),
            By::Attribute(_) | By::Value(_) => {
                // The key was computed without failing: computing it once more for the message is safe.
                let key = match &qualifier.by {
                    By::Attribute(a) => self.attribute(a, false),
                    By::Value(node) => self.eval(node),
                    _ => Err(EvalError::overload()),
                };
                match key {
                    Ok(key) => library::convert::to_text(&key).unwrap_or_default(),
                    Err(e) => return e,
                }
            }
        };
        EvalError::failed(match value {
            Value::List(_) => format!("index out of bounds: {key}"),
            _ => format!("no such key: {key}"),
        })
    }

    fn call(&mut self, call: &Call) -> Out<'a> {
        let mut args = Vec::with_capacity(call.args.len());
        let mut failure = None;
        for arg in &call.args {
            match unless_exceeded(self.eval(arg))? {
                Ok(value) => args.push(value),
                Err(e) => {
                    failure = failure.or(Some(e));
                    args.push(Value::Null);
                }
            }
        }
        let known = match call.overloads.as_slice() {
            [one] => Some(*one),
            _ => None,
        };
        if let Some(failure) = failure {
            // A call that fails for its arguments is charged all the same.
            let overload = known.map_or("", |o| o.id.as_str());
            self.meter.charge(cost::call(&call.function, overload, &args, None))?;
            return Err(failure);
        }
        let result = match known {
            Some(Overload { body: Body::Constant(_), .. }) => args.pop().ok_or_else(EvalError::overload),
            Some(overload) => self.run(overload, &args, call),
            None => match library::dispatch(&call.function, call.member, &args) {
                Some(overload) => self.run(overload, &args, call),
                None => Err(no_such_overload(call, &args)),
            },
        };
        if matches!(result, Err(EvalError::CostExceeded)) {
            return result;
        }
        let overload = known.map_or("", |o| o.id.as_str());
        self.meter.charge(cost::call(&call.function, overload, &args, result.as_ref().ok()))?;
        result
    }

    fn run(&mut self, overload: &Overload, args: &[Value<'a>], call: &Call) -> Out<'a> {
        let fits = overload.args.len() == args.len()
            && overload.args.iter().zip(args).all(|(ty, v)| library::accepts(ty, v));
        match overload.body {
            Body::Call(run) if fits => run(&mut self.meter.work, Args(args)),
            _ => Err(no_such_overload(call, args)),
        }
    }

    fn list(&mut self, items: &[(Node, bool)]) -> Out<'a> {
        let mut list = Vec::with_capacity(items.len());
        for (node, optional) in items {
            match (self.eval(node)?, optional) {
                (value, false) => list.push(value),
                (Value::Optional(Some(value)), true) => list.push((*value).clone()),
                (Value::Optional(None), true) => {}
                _ => {
                    return Err(EvalError::failed(
                        "cannot initialize optional list element from non-optional value",
                    ));
                }
            }
        }
        self.meter.charge(cost::LIST_COST)?;
        Ok(Value::list(list))
    }

    fn map(&mut self, entries: &[(Node, Node, bool)]) -> Out<'a> {
        let mut map = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            let value = match (self.eval(value)?, optional) {
                (value, false) => value,
                (Value::Optional(Some(value)), true) => (*value).clone(),
                (Value::Optional(None), true) => continue,
                _ => {
                    return Err(EvalError::failed(
                        "cannot initialize optional entry from non-optional value",
                    ));
                }
            };
            let shown = library::convert::to_text(&key);
            let entry = match key {
                Value::Double(_) => None,
                key => Key::from_value(&key),
            };
            let entry = entry.ok_or_else(|| EvalError::failed("unsupported key type"))?;
            if map.insert(entry, value).is_some() {
                return Err(EvalError::failed(format!(
                    "Failed with repeated key: {}",
                    shown.unwrap_or_default()
                )));
            }
        }
        self.meter.charge(cost::MAP_COST)?;
        Ok(Value::Map(Map::Owned(Arc::new(map))))
    }

    fn run_loop(&mut self, fold: &Loop) -> Out<'a> {
        let depth = self.locals.len();
        let range = self.eval(&fold.range)?;
        let init = unless_exceeded(self.eval(&fold.init))?;
        self.locals.push(Local::Known(init));
        let outcome = self.iterate(fold, &range, depth);
        self.locals.truncate(depth + 1);
        let result = outcome.and_then(|()| self.eval(&fold.result));
        self.locals.truncate(depth);
        result
    }

    fn iterate(&mut self, fold: &Loop, range: &Value<'a>, slot: usize) -> Result<(), EvalError> {
        match range {
            Value::List(list) => {
                for i in 0..list.len() {
                    let item = list.get(i).unwrap_or_else(|| Err(EvalError::overload()));
                    let number = Ok(Value::Int(i64::try_from(i).unwrap_or(i64::MAX)));
                    let (first, second) = if fold.two { (number, item) } else { (item, Ok(Value::Null)) };
                    if !self.round(fold, slot, first, second)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for key in map.keys() {
                    let value = if fold.two {
                        map.find(&key).map(|v| v.unwrap_or(Value::Null))
                    } else {
                        Ok(Value::Null)
                    };
                    if !self.round(fold, slot, Ok(key), value)? {
                        break;
                    }
                }
            }
            _ => return Err(EvalError::overload()),
        }
        Ok(())
    }

    /// One iteration: whether to go on.
    fn round(
        &mut self,
        fold: &Loop,
        slot: usize,
        first: Out<'a>,
        second: Out<'a>,
    ) -> Result<bool, EvalError> {
        self.meter.work.spend(1)?;
        self.locals.truncate(slot + 1);
        self.locals.push(Local::Known(first));
        self.locals.push(Local::Known(second));
        if matches!(unless_exceeded(self.eval(&fold.cond))?, Ok(Value::Bool(false))) {
            return Ok(false);
        }
        let next = unless_exceeded(self.eval(&fold.step))?;
        if let Some(accu) = self.locals.get_mut(slot) {
            *accu = Local::Known(next);
        }
        Ok(true)
    }

    /// Takes the accumulator out of its slot, so that it can be changed in place.
    fn take(&mut self, slot: usize) -> Out<'a> {
        match self.locals.get_mut(slot) {
            Some(Local::Known(accu)) => std::mem::replace(accu, Ok(Value::Null)),
            _ => Err(EvalError::overload()),
        }
    }

    fn append(&mut self, slot: usize, item: &Node, folded: bool) -> Out<'a> {
        self.meter.charge(1)?;
        let value = self.eval(item)?;
        let accu = self.take(slot)?;
        // A list of folded constants is not constructed and costs nothing; adding lists costs one.
        self.meter.charge(if folded { 1 } else { cost::LIST_COST + 1 })?;
        let Value::List(list) = accu else { return Err(EvalError::overload()) };
        Ok(Value::List(pushed(list, value, &mut self.meter.work)?))
    }

    fn insert(&mut self, slot: usize, args: &[Node]) -> Out<'a> {
        self.meter.charge(1)?;
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.push(self.eval(arg)?);
        }
        self.meter.charge(1)?;
        let Value::Map(Map::Owned(mut map)) = self.take(slot)? else { return Err(EvalError::overload()) };
        if Arc::get_mut(&mut map).is_none() {
            self.meter.work.spend(map.len())?;
        }
        library::insert_into(Arc::make_mut(&mut map), &values)?;
        Ok(Value::Map(Map::Owned(map)))
    }
}

/// A list with one element more. Copies only when the list is shared.
fn pushed<'a>(list: List<'a>, item: Value<'a>, work: &mut library::Work) -> Result<List<'a>, EvalError> {
    use super::value::Items;
    let Items::Owned(mut items) = list.items else {
        return compare::concat(&list, &vec![item].into(), work);
    };
    if Arc::get_mut(&mut items).is_none() {
        work.spend(items.len())?;
    }
    Arc::make_mut(&mut items).push(item);
    Ok(List { items: Items::Owned(items), identity: list.identity })
}

fn index<'a>(value: &Value<'a>, key: &Value<'_>) -> Result<Option<Value<'a>>, EvalError> {
    match value {
        Value::Map(map) => map.find(key),
        Value::List(list) => match Key::from_value(key) {
            Some(Key::Int(n)) => usize::try_from(n).ok().and_then(|i| list.get(i)).transpose(),
            Some(Key::Uint(n)) => usize::try_from(n).ok().and_then(|i| list.get(i)).transpose(),
            _ => Err(EvalError::failed(format!("unsupported index type '{}' in list", key.type_name()))),
        },
        _ => Err(EvalError::overload()),
    }
}

fn no_such_overload(call: &Call, args: &[Value<'_>]) -> EvalError {
    let types: Vec<&str> = args.iter().map(Value::type_name).collect();
    EvalError::NoSuchOverload(match (call.member, types.split_first()) {
        (true, Some((target, args))) => format!("{target}.{}({})", call.function, args.join(", ")),
        _ => format!("{}({})", call.function, types.join(", ")),
    })
}

/// Failures are values to most of the interpreter; running out of budget ends it.
fn unless_exceeded(result: Out<'_>) -> Result<Out<'_>, EvalError> {
    match result {
        Err(EvalError::CostExceeded) => Err(EvalError::CostExceeded),
        other => Ok(other),
    }
}
