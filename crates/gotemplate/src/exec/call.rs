//! Calling functions and methods: counting and checking arguments, and turning their errors into ours.

use super::methods::Method;
use super::{At, Eval, Exec, Reached};
use crate::error::Cause;
use crate::functions::{CallError, Callee, Special, Type};
use crate::parse::ast::Operand;
use crate::value::Value;

/// A signature, of a built-in or a registered function.
struct Signature<'s> {
    name: &'s str,
    params: &'s [Type],
    variadic: bool,
}

impl Signature<'_> {
    fn param(&self, index: usize) -> Type {
        self.params.get(index).or(self.params.last()).copied().unwrap_or(Type::Any)
    }
}

impl<'t> Exec<'t, '_> {
    /// Calls what an identifier names. `args[0]` is the identifier itself when there are arguments.
    pub(super) fn function(
        &mut self,
        dot: &Reached,
        callee: &'t Callee,
        node: At<'t>,
        args: &'t [Operand],
        last: Option<Value>,
    ) -> Eval<Reached> {
        let args = args.get(1..).unwrap_or(&[]);
        match callee {
            Callee::Native(native) => {
                let signature =
                    Signature { name: native.name, params: native.params, variadic: native.variadic };
                let values = self.arguments(dot, &signature, args, last)?;
                self.charge(&values)?;
                let result = (native.run)(&mut self.env, &values);
                self.finish(native.name, node, result)
            }
            Callee::Custom(name) => {
                let functions = self.functions;
                let Some(custom) = functions.get(name) else {
                    return self.fail(format!("\"{name}\" is not a defined function"));
                };
                let signature = Signature { name, params: &custom.params, variadic: custom.variadic };
                let values = self.arguments(dot, &signature, args, last)?;
                self.charge(&values)?;
                let result = (custom.run)(&mut self.env, &values);
                self.finish(name, node, result)
            }
            Callee::Special(special) => self.special(dot, *special, node, args, last),
        }
    }

    fn special(
        &mut self,
        dot: &Reached,
        special: Special,
        node: At<'t>,
        args: &'t [Operand],
        last: Option<Value>,
    ) -> Eval<Reached> {
        const REFLECT: &[Type] = &[Type::Reflect, Type::Reflect];
        match special {
            Special::And | Special::Or => {
                let name = if special == Special::Or { "or" } else { "and" };
                self.check_count(&Signature { name, params: REFLECT, variadic: true }, args.len(), &last)?;
                let mut value = Reached::plain(Value::Missing);
                for arg in args {
                    value = self.argument(dot, Type::Reflect, arg)?;
                    if value.value.truth() == (special == Special::Or) {
                        return Ok(value);
                    }
                }
                match last {
                    Some(last) => Ok(Reached::plain(last)),
                    None => Ok(value),
                }
            }
            Special::Call => {
                let signature = Signature { name: "call", params: REFLECT, variadic: true };
                let shown = args.first().map_or_else(|| "<value>".to_owned(), ToString::to_string);
                let values = self.arguments(dot, &signature, args, last)?;
                let problem = match values.first() {
                    Some(callee) if !callee.is_nil() => {
                        format!("non-function {shown} of type {}", callee.type_name())
                    }
                    _ => "call of nil".to_owned(),
                };
                self.finish("call", node, Err(CallError::Message(problem)))
            }
            Special::Include => {
                let params = &[Type::Str, Type::Any];
                let signature = Signature { name: "include", params, variadic: false };
                let values = self.arguments(dot, &signature, args, last)?;
                let result = match values.as_slice() {
                    [Value::Str(name), data] => self.include(name, data.clone()),
                    _ => Err("include needs a name and data".into()),
                };
                self.finish("include", node, result)
            }
        }
    }

    pub(super) fn method(
        &mut self,
        dot: &Reached,
        method: &'static Method,
        receiver: &Value,
        operand: &'t Operand,
        (args, last): (&'t [Operand], Option<Value>),
    ) -> Eval<Reached> {
        let args = args.get(1..).unwrap_or(&[]);
        let signature = Signature { name: method.name, params: method.params, variadic: false };
        let values = self.arguments(dot, &signature, args, last)?;
        let result = (method.run)(receiver, &values).map_err(CallError::Message);
        self.finish(method.name, At::Operand(operand), result)
    }

    fn check_count(&self, signature: &Signature<'_>, given: usize, last: &Option<Value>) -> Eval<()> {
        let count = given + usize::from(last.is_some());
        let (name, wanted) = (signature.name, signature.params.len());
        if signature.variadic {
            let least = wanted.saturating_sub(1);
            if count < least {
                return self
                    .fail(format!("wrong number of args for {name}: want at least {least} got {given}"));
            }
        } else if count != wanted {
            return self.fail(format!("wrong number of args for {name}: want {wanted} got {count}"));
        }
        Ok(())
    }

    fn arguments(
        &mut self,
        dot: &Reached,
        signature: &Signature<'_>,
        args: &'t [Operand],
        last: Option<Value>,
    ) -> Eval<Vec<Value>> {
        self.check_count(signature, args.len(), &last)?;
        let mut values = Vec::with_capacity(args.len() + 1);
        for (index, arg) in args.iter().enumerate() {
            values.push(self.argument(dot, signature.param(index), arg)?.value);
        }
        if let Some(last) = last {
            let ty = signature.param(values.len());
            values.push(self.validate(Reached::plain(last), ty)?.value);
        }
        Ok(values)
    }

    /// A function may look at all of its arguments, so their size counts as work.
    fn charge(&mut self, values: &[Value]) -> Eval<()> {
        let size = |value: &Value| match value {
            Value::Str(text) => text.len() / 64,
            Value::List(list) => list.len() / 8,
            Value::Map(map) => map.len() / 8,
            _ => 0,
        };
        self.spend(values.iter().map(size).sum())
    }

    fn finish(&mut self, name: &str, node: At<'t>, result: Result<Value, CallError>) -> Eval<Reached> {
        let (message, cause) = match result {
            Ok(value) => return Ok(Reached::plain(value)),
            Err(CallError::Message(message)) => {
                let cause = Cause::Function { name: name.to_owned(), message: message.clone() };
                (message, cause)
            }
            Err(CallError::Nested(error)) => (error.message.clone(), error.cause.clone()),
            Err(CallError::Limit(exceeded)) => {
                self.at = Some(node);
                return self.exceeded(exceeded);
            }
        };
        self.at = Some(node);
        self.error(format!("error calling {name}: {message}"), cause)
    }
}
