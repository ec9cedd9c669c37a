//! Pipelines, commands and operands.

use std::sync::Arc;

use super::ast::{Command, Operand, Pipe, Term, Variable};
use super::lex::{Item, ItemKind};
use super::{Parse, Parser, number};
use crate::value::{Str, Value};
use transom_go::fmt::sprintf;

impl Parser<'_> {
    pub(super) fn pipeline(&mut self, context: &str, end: ItemKind) -> Parse<Pipe> {
        let pos = self.peek_non_space().pos;
        let mut pipe = Pipe { pos, assign: false, declared: Vec::new(), commands: Vec::new() };
        self.declarations(&mut pipe, context)?;
        loop {
            let item = self.next_non_space();
            match item.kind {
                kind if kind == end => {
                    self.check_pipeline(&pipe, context)?;
                    return Ok(pipe);
                }
                ItemKind::Bool
                | ItemKind::CharConstant
                | ItemKind::Complex
                | ItemKind::Dot
                | ItemKind::Field
                | ItemKind::Identifier
                | ItemKind::Number
                | ItemKind::Nil
                | ItemKind::RawString
                | ItemKind::String
                | ItemKind::Variable
                | ItemKind::LeftParen => {
                    self.backup();
                    pipe.commands.push(self.command()?);
                }
                _ => return self.unexpected(&item, context),
            }
        }
    }

    /// `$x :=`, `$x =`, and in `range` also `$k, $v :=`.
    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Parse<()> {
        while self.peek_non_space().kind == ItemKind::Variable {
            let variable = self.next();
            let after = self.peek().clone();
            let next = self.peek_non_space().clone();
            match next.kind {
                ItemKind::Assign | ItemKind::Declare => {
                    pipe.assign = next.kind == ItemKind::Assign;
                    self.next_non_space();
                    self.declare(pipe, &variable);
                    return Ok(());
                }
                ItemKind::Char if next.text == "," => {
                    self.next_non_space();
                    self.declare(pipe, &variable);
                    if context != "range" || pipe.declared.len() >= 2 {
                        return self.error(format!("too many declarations in {context}"));
                    }
                    let kind = self.peek_non_space().kind;
                    if !matches!(kind, ItemKind::Variable | ItemKind::RightDelim | ItemKind::RightParen) {
                        return self.error("range can only initialize variables");
                    }
                }
                _ if after.kind == ItemKind::Space => {
                    self.backup3(variable, after);
                    return Ok(());
                }
                _ => {
                    self.backup2(variable);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn declare(&mut self, pipe: &mut Pipe, item: &Item) {
        let variable = self.variable(&item.text, Vec::new());
        self.scope.vars.push(variable.name.clone());
        pipe.declared.push(variable);
    }

    fn variable(&mut self, name: &str, fields: Vec<Str>) -> Variable {
        let name: Arc<str> = Arc::from(name);
        let fresh = u32::try_from(self.variable_ids.len()).unwrap_or(u32::MAX);
        let id = *self.variable_ids.entry(name.clone()).or_insert(fresh);
        Variable { id, name, fields }
    }

    fn check_pipeline(&mut self, pipe: &Pipe, context: &str) -> Parse<()> {
        if pipe.commands.is_empty() {
            return self.error(format!("missing value for {context}"));
        }
        for (stage, command) in pipe.commands.iter().enumerate().skip(1) {
            let constant = matches!(
                command.args[0].term,
                Term::Bool(_) | Term::Dot | Term::Nil | Term::Number(_) | Term::Str { .. }
            );
            if constant {
                return self.error(format!("non executable command in pipeline stage {}", stage + 1));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Parse<Command> {
        let mut command = Command { pos: self.peek_non_space().pos, args: Vec::new() };
        loop {
            self.peek_non_space();
            if let Some(operand) = self.operand()? {
                command.args.push(operand);
            }
            let item = self.next();
            match item.kind {
                ItemKind::Space => {}
                ItemKind::RightDelim | ItemKind::RightParen => {
                    self.backup();
                    break;
                }
                ItemKind::Pipe => break,
                _ => return self.unexpected(&item, "operand"),
            }
        }
        if command.args.is_empty() {
            return self.error("empty command");
        }
        Ok(command)
    }

    /// A term, possibly followed by fields: `.x.y`, `$x.y`, `(pipeline).x`.
    fn operand(&mut self) -> Parse<Option<Operand>> {
        let Some(mut operand) = self.term()? else { return Ok(None) };
        if self.peek().kind != ItemKind::Field {
            return Ok(Some(operand));
        }
        let pos = self.peek().pos;
        let mut fields = Vec::new();
        while self.peek().kind == ItemKind::Field {
            let item = self.next();
            fields.push(Str::from(&item.text[1..]));
        }
        let term = match operand.term {
            Term::Field(mut first) => {
                first.extend(fields);
                Term::Field(first)
            }
            Term::Variable(mut variable) => {
                variable.fields.extend(fields);
                Term::Variable(variable)
            }
            Term::Bool(_) | Term::Str { .. } | Term::Number(_) | Term::Nil | Term::Dot => {
                let shown = Value::str(operand.to_string());
                return self.error(sprintf("unexpected . after term %q", &[shown]));
            }
            term => {
                operand.term = term;
                Term::Chain(Box::new(operand), fields)
            }
        };
        Ok(Some(Operand { pos, term }))
    }

    fn term(&mut self) -> Parse<Option<Operand>> {
        let item = self.next_non_space();
        let term = match item.kind {
            ItemKind::Identifier => match (self.resolve)(&item.text) {
                Ok(callee) => Term::Identifier(callee),
                Err(message) => return self.error(message),
            },
            ItemKind::Dot => Term::Dot,
            ItemKind::Nil => Term::Nil,
            ItemKind::Variable => self.use_variable(&item)?,
            ItemKind::Field => Term::Field(vec![Str::from(&item.text[1..])]),
            ItemKind::Bool => Term::Bool(item.text == "true"),
            ItemKind::CharConstant | ItemKind::Complex | ItemKind::Number => {
                match number::parse(&item.text, item.kind) {
                    Ok(number) => Term::Number(Box::new(number)),
                    Err(message) => return self.error(message),
                }
            }
            ItemKind::LeftParen => {
                let inner =
                    |parser: &mut Self| parser.pipeline("parenthesized pipeline", ItemKind::RightParen);
                Term::Pipe(Box::new(self.nested("max expression depth exceeded", inner)?))
            }
            ItemKind::String | ItemKind::RawString => {
                let value = self.unquote(&item.text)?;
                Term::Str { quoted: item.text.into_boxed_str(), value }
            }
            _ => {
                self.backup();
                return Ok(None);
            }
        };
        Ok(Some(Operand { pos: item.pos, term }))
    }

    fn use_variable(&mut self, item: &Item) -> Parse<Term> {
        if self.scope.vars.iter().any(|name| **name == *item.text) {
            return Ok(Term::Variable(self.variable(&item.text, Vec::new())));
        }
        self.error(sprintf("undefined variable %q", &[Value::str(item.text.as_str())]))
    }
}
