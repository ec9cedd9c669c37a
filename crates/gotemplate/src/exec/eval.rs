//! Pipelines, commands, operands, fields.

use super::{At, Eval, Exec, Reached};
use crate::error::Cause;
use crate::functions::Type;
use crate::parse::ast::{Command, Number, Operand, Pipe, Term, Variable};
use crate::template::MissingKey;
use crate::value::{Key, Str, Value};

impl<'t> Exec<'t, '_> {
    pub(super) fn pipeline(&mut self, dot: &Reached, pipe: &'t Pipe) -> Eval<Reached> {
        self.at = Some(At::Pipe(pipe));
        let mut value: Option<Value> = None;
        for command in &pipe.commands {
            value = Some(self.command(dot, command, value.take())?.opened().value);
        }
        let value = Reached::plain(value.unwrap_or(Value::Missing));
        for variable in &pipe.declared {
            if pipe.assign {
                self.set_var(variable, value.clone())?;
            } else {
                self.vars.push((variable.id, value.clone()));
            }
        }
        Ok(value)
    }

    pub(super) fn set_var(&mut self, variable: &Variable, value: Reached) -> Eval<()> {
        match self.vars.iter_mut().rev().find(|(id, _)| *id == variable.id) {
            Some(slot) => {
                slot.1 = value;
                Ok(())
            }
            None => self.fail(format!("undefined variable: {}", variable.name)),
        }
    }

    fn command(&mut self, dot: &Reached, command: &'t Command, last: Option<Value>) -> Eval<Reached> {
        self.spend(1)?;
        let first = &command.args[0];
        match &first.term {
            Term::Field(fields) => {
                self.at = Some(At::Operand(first));
                self.fields(dot, dot.clone(), first, fields, (&command.args, last))
            }
            Term::Chain(inner, fields) => self.chain(dot, first, (inner, fields), (&command.args, last)),
            Term::Identifier(callee) => {
                self.at = Some(At::Operand(first));
                self.function(dot, callee, At::Command(command), &command.args, last)
            }
            Term::Pipe(pipe) => {
                self.not_a_function(&command.args, &last)?;
                self.nested(|exec| exec.pipeline(dot, pipe))
            }
            Term::Variable(variable) => self.variable(dot, first, variable, (&command.args, last)),
            _ => {
                self.at = Some(At::Operand(first));
                self.not_a_function(&command.args, &last)?;
                self.constant(dot, first)
            }
        }
    }

    fn constant(&mut self, dot: &Reached, operand: &'t Operand) -> Eval<Reached> {
        match &operand.term {
            Term::Bool(value) => Ok(Reached::plain(Value::Bool(*value))),
            Term::Dot => Ok(dot.clone()),
            Term::Nil => self.fail("nil is not a command"),
            Term::Number(number) => self.ideal_constant(operand, number).map(Reached::plain),
            Term::Str { value, .. } => Ok(Reached::plain(Value::Str(value.clone()))),
            _ => self.fail(format!("can't evaluate command {operand}")),
        }
    }

    /// The type Go gives an untyped constant: complex, float64 or int.
    pub(super) fn ideal_constant(&mut self, operand: &'t Operand, number: &Number) -> Eval<Value> {
        self.at = Some(At::Operand(operand));
        let text = &*number.text;
        let lower = text.to_ascii_lowercase();
        let hex_int = lower.len() > 2 && lower.starts_with("0x") && !lower.contains('p');
        if let Some((re, im)) = number.complex {
            return Ok(Value::Complex(re, im));
        }
        match number.float {
            Some(float)
                if !hex_int && !text.starts_with('\'') && text.contains(['.', 'e', 'E', 'p', 'P']) =>
            {
                return Ok(Value::Float(float));
            }
            _ => {}
        }
        match (number.int, number.uint) {
            (Some(int), _) => Ok(Value::int(int)),
            (None, Some(_)) => self.fail(format!("{text} overflows int")),
            (None, None) => Ok(Value::Missing),
        }
    }

    fn not_a_function(&self, args: &'t [Operand], last: &Option<Value>) -> Eval<()> {
        if args.len() > 1 || last.is_some() {
            return self.fail(format!("can't give argument to non-function {}", args[0]));
        }
        Ok(())
    }

    pub(super) fn variable(
        &mut self,
        dot: &Reached,
        operand: &'t Operand,
        variable: &'t Variable,
        (args, last): (&'t [Operand], Option<Value>),
    ) -> Eval<Reached> {
        self.at = Some(At::Operand(operand));
        let found = self.vars.iter().rev().find(|(id, _)| *id == variable.id).map(|(_, value)| value.clone());
        let Some(value) = found else { return self.fail(format!("undefined variable: {}", variable.name)) };
        if variable.fields.is_empty() {
            self.not_a_function(args, &last)?;
            return Ok(value);
        }
        self.fields(dot, value, operand, &variable.fields, (args, last))
    }

    pub(super) fn chain(
        &mut self,
        dot: &Reached,
        operand: &'t Operand,
        (inner, fields): (&'t Operand, &'t [Str]),
        rest: (&'t [Operand], Option<Value>),
    ) -> Eval<Reached> {
        self.at = Some(At::Operand(operand));
        if let Term::Nil = inner.term {
            return self.fail(format!("indirection through explicit nil in {operand}"));
        }
        let receiver = self.operand(dot, inner)?;
        self.fields(dot, receiver, operand, fields, rest)
    }

    /// An operand that is not a constant, as it was reached.
    pub(super) fn operand(&mut self, dot: &Reached, operand: &'t Operand) -> Eval<Reached> {
        self.at = Some(At::Operand(operand));
        self.spend(1)?;
        match &operand.term {
            Term::Dot => Ok(dot.clone()),
            Term::Field(fields) => self.fields(dot, dot.clone(), operand, fields, (&[], None)),
            Term::Variable(variable) => self.variable(dot, operand, variable, (&[], None)),
            Term::Pipe(pipe) => self.nested(|exec| exec.pipeline(dot, pipe)),
            Term::Identifier(callee) => self.function(dot, callee, At::Operand(operand), &[], None),
            Term::Chain(inner, fields) => {
                self.nested(|exec| exec.chain(dot, operand, (inner, fields), (&[], None)))
            }
            _ => self.constant(dot, operand),
        }
    }

    /// `receiver.a.b.c`; only the last field may take arguments.
    fn fields(
        &mut self,
        dot: &Reached,
        mut receiver: Reached,
        operand: &'t Operand,
        fields: &'t [Str],
        (args, last): (&'t [Operand], Option<Value>),
    ) -> Eval<Reached> {
        let Some((name, chain)) = fields.split_last() else { return Ok(receiver) };
        for name in chain {
            receiver = self.field(dot, name, operand, (&[], None), receiver)?;
        }
        self.field(dot, name, operand, (args, last), receiver)
    }

    fn field(
        &mut self,
        dot: &Reached,
        name: &'t Str,
        operand: &'t Operand,
        (args, last): (&'t [Operand], Option<Value>),
        receiver: Reached,
    ) -> Eval<Reached> {
        let shown = || name.lossy().into_owned();
        let missing_key = self.template.missing_key;
        match &receiver.value {
            Value::Missing if missing_key == MissingKey::Error => {
                let cause = Cause::NoKey { key: shown() };
                return self.error(format!("nil data; no entry for key \"{}\"", shown()), cause);
            }
            Value::Missing => return Ok(receiver),
            Value::Nil => {
                let problem = format!("nil pointer evaluating interface {{}}.{}", shown());
                return self.error(problem, Cause::NilField { field: shown() });
            }
            _ => {}
        }
        if let Some(method) = super::methods::find(&receiver.value, name) {
            return self.method(dot, method, &receiver.value, operand, (args, last));
        }
        let has_args = args.len() > 1 || last.is_some();
        match &receiver.value {
            Value::Struct(shape) => {
                if let Some(value) = shape.field(&name.lossy()) {
                    if has_args {
                        let problem = format!("{} has arguments but cannot be invoked as function", shown());
                        return self.fail(problem);
                    }
                    return Ok(Reached::plain(value.clone()));
                }
            }
            Value::Map(map) => {
                if has_args {
                    return self.fail(format!("{} is not a method but has arguments", shown()));
                }
                let found = map.get(&Key::Str(name.clone()));
                let value = match (found, missing_key) {
                    (Some(value), _) => value,
                    (None, MissingKey::Invalid) => return Ok(Reached::plain(Value::Missing)),
                    (None, MissingKey::Zero) => map.ty().zero(),
                    (None, MissingKey::Error) => {
                        let cause = Cause::NoKey { key: shown() };
                        return self.error(format!("map has no entry for key \"{}\"", shown()), cause);
                    }
                };
                return Ok(Reached::element(value, map.ty().holds_any()));
            }
            _ => {}
        }
        let type_name = receiver.type_name();
        let problem = format!("can't evaluate field {} in type {type_name}", shown());
        self.error(problem, Cause::NoField { field: shown(), type_name })
    }

    /// One argument, checked against the parameter's type.
    pub(super) fn argument(&mut self, dot: &Reached, ty: Type, operand: &'t Operand) -> Eval<Reached> {
        let value = match &operand.term {
            Term::Nil => {
                self.at = Some(At::Operand(operand));
                return match ty.nil() {
                    Some(value) => Ok(Reached::plain(value)),
                    None => self.fail(format!("cannot assign nil to {}", ty.name())),
                };
            }
            Term::Bool(_) | Term::Number(_) | Term::Str { .. } => {
                self.spend(1)?;
                return self.constant_argument(ty, operand).map(Reached::plain);
            }
            _ => self.operand(dot, operand)?,
        };
        self.validate(value, ty)
    }

    fn constant_argument(&mut self, ty: Type, operand: &'t Operand) -> Eval<Value> {
        self.at = Some(At::Operand(operand));
        let found = match (ty, &operand.term) {
            (Type::Any | Type::Reflect, Term::Bool(value)) | (Type::Bool, Term::Bool(value)) => {
                Some(Value::Bool(*value))
            }
            (Type::Any | Type::Reflect | Type::Str, Term::Str { value, .. }) => {
                Some(Value::Str(value.clone()))
            }
            (Type::Any | Type::Reflect, Term::Number(number)) => {
                return self.ideal_constant(operand, number);
            }
            (Type::Int, Term::Number(number)) => number.int.map(Value::int),
            (Type::Duration, Term::Number(number)) => {
                number.int.map(|value| Value::Named(crate::value::Named::Duration, value))
            }
            (Type::Uint32, Term::Number(number)) => number
                .uint
                .map(|value| Value::Uint(crate::value::UintKind::Uint32, value & u64::from(u32::MAX))),
            (Type::Float, Term::Number(number)) => number.float.map(Value::Float),
            _ => None,
        };
        let expected = match ty {
            _ if found.is_some() => return Ok(found.unwrap_or(Value::Missing)),
            Type::Bool => "bool",
            Type::Str => "string",
            Type::Int | Type::Duration => "integer",
            Type::Uint32 => "unsigned integer",
            Type::Float => "float",
            _ => return self.fail(format!("can't handle {operand} for arg of type {}", ty.name())),
        };
        self.fail(format!("expected {expected}; found {operand}"))
    }

    pub(super) fn validate(&self, value: Reached, ty: Type) -> Eval<Reached> {
        let wrong = |found: Option<&str>| Cause::WrongType {
            expected: ty.name().to_owned(),
            found: found.map(str::to_owned),
        };
        match &value.value {
            Value::Missing => match ty.nil() {
                Some(nil) => Ok(Reached::plain(nil)),
                None => self.error(format!("invalid value; expected {}", ty.name()), wrong(None)),
            },
            Value::Nil if !matches!(ty, Type::Any | Type::Reflect) => self.error(
                format!("wrong type for value; expected {}; got interface {{}}", ty.name()),
                wrong(Some("nil")),
            ),
            concrete if ty.accepts(concrete) => Ok(value),
            concrete => {
                let found = concrete.type_name();
                self.error(
                    format!("wrong type for value; expected {}; got {found}", ty.name()),
                    wrong(Some(&found)),
                )
            }
        }
    }
}
