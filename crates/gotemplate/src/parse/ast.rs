//! The parsed template. Every node has its byte offset, and is printed as Go's error messages quote it.

use std::fmt;
use std::sync::Arc;

use crate::functions::Callee;
use crate::value::{Str, Value};
use transom_go::fmt::sprintf;

/// A defined template: the root one, or one from `define` or `block`.
#[derive(Debug)]
pub(crate) struct Tree {
    pub name: Arc<str>,
    pub root: List,
}

#[derive(Debug, Default)]
pub(crate) struct List {
    pub nodes: Vec<Node>,
}

impl List {
    /// Only white space and comments: such a definition may be replaced by another of the same name.
    pub(crate) fn is_blank(&self) -> bool {
        self.nodes.iter().all(|node| match node {
            Node::Text(text) => text.text.trim_ascii().is_empty(),
            _ => false,
        })
    }
}

#[derive(Debug)]
pub(crate) enum Node {
    Text(Text),
    Action(Action),
    Branch(Branch),
    Template(Call),
    Break(usize),
    Continue(usize),
}

#[derive(Debug)]
pub(crate) struct Text {
    pub pos: usize,
    pub text: Box<[u8]>,
}

#[derive(Debug)]
pub(crate) struct Action {
    pub pos: usize,
    pub pipe: Pipe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BranchKind {
    If,
    Range,
    With,
}

impl BranchKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            BranchKind::If => "if",
            BranchKind::Range => "range",
            BranchKind::With => "with",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub kind: BranchKind,
    pub pos: usize,
    pub pipe: Pipe,
    pub list: List,
    pub otherwise: Option<List>,
}

/// `{{template "name" pipe}}`.
#[derive(Debug)]
pub(crate) struct Call {
    pub pos: usize,
    pub name: Str,
    pub pipe: Option<Pipe>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub pos: usize,
    pub assign: bool,
    pub declared: Vec<Variable>,
    pub commands: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub pos: usize,
    pub args: Vec<Operand>,
}

#[derive(Debug)]
pub(crate) struct Operand {
    pub pos: usize,
    pub term: Term,
}

#[derive(Debug)]
pub(crate) enum Term {
    Bool(bool),
    Dot,
    Nil,
    Number(Box<Number>),
    Str { quoted: Box<str>, value: Str },
    Field(Vec<Str>),
    Variable(Variable),
    Chain(Box<Operand>, Vec<Str>),
    Identifier(Callee),
    Pipe(Box<Pipe>),
}

/// `$name.field…`; `id` is the name interned, so that lookups compare integers.
#[derive(Debug)]
pub(crate) struct Variable {
    pub id: u32,
    pub name: Arc<str>,
    pub fields: Vec<Str>,
}

/// A numeric constant in every type it fits.
#[derive(Debug)]
pub(crate) struct Number {
    pub text: Box<str>,
    pub int: Option<i64>,
    pub uint: Option<u64>,
    pub float: Option<f64>,
    pub complex: Option<(f64, f64)>,
}

impl fmt::Display for List {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.nodes.iter().try_for_each(|node| node.fmt(out))
    }
}

impl fmt::Display for Node {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Text(text) => out.write_str(&String::from_utf8_lossy(&text.text)),
            Node::Action(action) => action.fmt(out),
            Node::Branch(branch) => branch.fmt(out),
            Node::Template(call) => call.fmt(out),
            Node::Break(_) => out.write_str("{{break}}"),
            Node::Continue(_) => out.write_str("{{continue}}"),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{{{{{}}}}}", self.pipe)
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{{{{{} {}}}}}{}", self.kind.name(), self.pipe, self.list)?;
        if let Some(otherwise) = &self.otherwise {
            write!(out, "{{{{else}}}}{otherwise}")?;
        }
        out.write_str("{{end}}")
    }
}

impl fmt::Display for Call {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{{{{template {}", sprintf("%q", &[Value::Str(self.name.clone())]))?;
        if let Some(pipe) = &self.pipe {
            write!(out, " {pipe}")?;
        }
        out.write_str("}}")
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, variable) in self.declared.iter().enumerate() {
            let separator = if position > 0 { ", " } else { "" };
            write!(out, "{separator}{variable}")?;
        }
        if !self.declared.is_empty() {
            out.write_str(if self.assign { " = " } else { " := " })?;
        }
        for (position, command) in self.commands.iter().enumerate() {
            let separator = if position > 0 { " | " } else { "" };
            write!(out, "{separator}{command}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, arg) in self.args.iter().enumerate() {
            if position > 0 {
                out.write_str(" ")?;
            }
            arg.write_nested(out)?;
        }
        Ok(())
    }
}

impl Operand {
    /// Pipelines inside commands and chains are shown in parentheses.
    fn write_nested(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.term {
            Term::Pipe(pipe) => write!(out, "({pipe})"),
            _ => fmt::Display::fmt(self, out),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.term {
            Term::Bool(value) => write!(out, "{value}"),
            Term::Dot => out.write_str("."),
            Term::Nil => out.write_str("nil"),
            Term::Number(number) => out.write_str(&number.text),
            Term::Str { quoted, .. } => out.write_str(quoted),
            Term::Field(fields) => write_fields(out, fields),
            Term::Variable(variable) => variable.fmt(out),
            Term::Chain(operand, fields) => {
                operand.write_nested(out)?;
                write_fields(out, fields)
            }
            Term::Identifier(callee) => out.write_str(callee.name()),
            Term::Pipe(pipe) => pipe.fmt(out),
        }
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)?;
        write_fields(out, &self.fields)
    }
}

fn write_fields(out: &mut fmt::Formatter<'_>, fields: &[Str]) -> fmt::Result {
    fields.iter().try_for_each(|field| write!(out, ".{}", field.lossy()))
}
