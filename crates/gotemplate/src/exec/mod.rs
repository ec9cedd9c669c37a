//! The evaluator: walks a tree, writing output. `eval` computes operands and fields, `call` checks and calls.
//!
//! As in Go, `at` is the node that was evaluated last; error messages quote it.

mod call;
mod eval;
mod methods;

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use crate::error::{Cause, Error, Failure};
use crate::functions::{CallError, Env, Functions};
use crate::limits::{Exceeded, Limits};
use crate::parse::ast::{Branch, BranchKind, Call, Command, List, Node, Operand, Pipe, Tree};
use crate::stack;
use crate::template::Template;
use crate::value::{ListType, MapType, Str, Value};
use transom_go::fmt::FmtError;

/// How deep evaluation may recurse in all, over every template being executed.
const MAX_NESTING: usize = 20_000;

type Eval<T> = Result<T, Error>;

/// A value and whether it was reached through `interface {}`, which error messages tell apart from its own type.
#[derive(Clone, Debug)]
struct Reached {
    value: Value,
    boxed: bool,
}

impl Reached {
    fn plain(value: Value) -> Reached {
        Reached { value, boxed: false }
    }

    /// An element of a collection that holds `interface {}`, or not.
    fn element(value: Value, boxed: bool) -> Reached {
        Reached { value, boxed }
    }

    /// What a pipeline yields: its interface is opened, and a nil one leaves nothing.
    fn opened(self) -> Reached {
        match self.value {
            Value::Nil => Reached::plain(Value::Missing),
            value => Reached::plain(value),
        }
    }

    fn type_name(&self) -> String {
        if self.boxed || self.value.is_nil() {
            "interface {}".to_owned()
        } else {
            self.value.type_name().into_owned()
        }
    }
}

/// The node an error message quotes.
#[derive(Clone, Copy)]
enum At<'t> {
    Node(&'t Node),
    Branch(&'t Branch),
    Template(&'t Call),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Operand(&'t Operand),
}

impl At<'_> {
    fn pos(&self) -> usize {
        match *self {
            At::Node(Node::Text(text)) => text.pos,
            At::Node(Node::Action(action)) => action.pos,
            At::Node(Node::Branch(branch)) | At::Branch(branch) => branch.pos,
            At::Node(Node::Template(call)) | At::Template(call) => call.pos,
            At::Node(&Node::Break(pos) | &Node::Continue(pos)) => pos,
            At::Pipe(pipe) => pipe.pos,
            At::Command(command) => command.pos,
            At::Operand(operand) => operand.pos,
        }
    }

    fn text(&self) -> String {
        let shown: &dyn Display = match self {
            At::Node(node) => *node,
            At::Branch(branch) => *branch,
            At::Template(call) => *call,
            At::Pipe(pipe) => *pipe,
            At::Command(command) => *command,
            At::Operand(operand) => *operand,
        };
        shown.to_string()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

struct Exec<'t, 'e> {
    template: &'t Template,
    functions: &'t Functions,
    env: Env<'e>,
    tree: &'t Tree,
    at: Option<At<'t>>,
    out: Vec<u8>,
    vars: Vec<(u32, Reached)>,
    /// Templates executing templates.
    depth: usize,
    nesting: usize,
    included: HashMap<Str, usize>,
}

pub(crate) fn execute(
    template: &Template,
    data: &Value,
    functions: &Functions,
    limits: &Limits,
) -> Result<String, Error> {
    let Some(tree) = template.trees.get(&Str::from(&*template.name)) else {
        return Err(Error::parse(&template.name, 0, "incomplete or empty template"));
    };
    let mut exec = Exec {
        template,
        functions,
        env: Env::new(limits, functions.context()),
        tree,
        at: None,
        out: Vec::new(),
        vars: Vec::new(),
        depth: 0,
        nesting: 0,
        included: HashMap::new(),
    };
    let data = Reached::plain(if data.is_nil() { Value::Missing } else { data.clone() });
    exec.run(tree, data)?;
    let out = std::mem::take(&mut exec.out);
    Ok(String::from_utf8(out).unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()))
}

impl<'t> Exec<'t, '_> {
    fn error<T>(&self, problem: impl Display, cause: Cause) -> Eval<T> {
        let Some(at) = &self.at else {
            return Err(Error::parse(&self.template.name, 0, &problem.to_string()));
        };
        let before = &self.template.text[..at.pos().min(self.template.text.len())];
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1);
        let snippet = stack::with_depth(self.template.deepest, || at.text());
        let name = &self.template.name;
        let executing = transom_go::fmt::sprintf("%q", &[Value::str(&*self.tree.name)]);
        Err(Error::from(Failure {
            message: format!(
                "template: {name}:{line}:{column}: executing {executing} at <{snippet}>: {problem}"
            ),
            template: name.to_string(),
            executing: Some(self.tree.name.to_string()),
            line,
            column: Some(column),
            snippet: Some(snippet),
            cause,
        }))
    }

    fn fail<T>(&self, problem: impl Display) -> Eval<T> {
        self.error(problem, Cause::Other)
    }

    fn exceeded<T>(&self, exceeded: Exceeded) -> Eval<T> {
        self.error(exceeded, Cause::Limit(exceeded))
    }

    fn spend(&mut self, steps: usize) -> Eval<()> {
        self.env.spend(steps).or_else(|exceeded| self.exceeded(exceeded))
    }

    /// Runs one level deeper, on more stack if need be.
    fn nested<T>(&mut self, body: impl FnOnce(&mut Self) -> Eval<T>) -> Eval<T> {
        if self.nesting >= MAX_NESTING {
            return self.exceeded(Exceeded::Nesting(MAX_NESTING));
        }
        self.nesting += 1;
        let result = stack::with_room(|| body(self));
        self.nesting -= 1;
        result
    }

    /// Executes `tree` with its own variables and `data` as dot.
    fn run(&mut self, tree: &'t Tree, data: Reached) -> Eval<()> {
        let dot = data.clone();
        let outer_vars = std::mem::replace(&mut self.vars, vec![(0, data)]);
        let outer_tree = std::mem::replace(&mut self.tree, tree);
        let result = self.nested(|exec| exec.list(&dot, &tree.root));
        self.vars = outer_vars;
        self.tree = outer_tree;
        result.map(|_| ())
    }

    fn list(&mut self, dot: &Reached, list: &'t List) -> Eval<Flow> {
        for node in &list.nodes {
            let flow = self.node(dot, node)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn node(&mut self, dot: &Reached, node: &'t Node) -> Eval<Flow> {
        self.at = Some(At::Node(node));
        self.spend(1)?;
        match node {
            Node::Text(text) => self.write(&text.text)?,
            Node::Action(action) => {
                let value = self.pipeline(dot, &action.pipe)?;
                if action.pipe.declared.is_empty() {
                    self.at = Some(At::Node(node));
                    self.print(&value.value)?;
                }
            }
            Node::Branch(branch) => {
                let mark = self.vars.len();
                let flow = self.nested(|exec| match branch.kind {
                    BranchKind::Range => exec.range(dot, branch),
                    _ => exec.if_or_with(dot, branch),
                })?;
                self.vars.truncate(mark);
                return Ok(flow);
            }
            Node::Template(call) => self.template(dot, call)?,
            Node::Break(_) => return Ok(Flow::Break),
            Node::Continue(_) => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn write(&mut self, bytes: &[u8]) -> Eval<()> {
        let limit = self.env.limits.output;
        if self.out.len().saturating_add(bytes.len()) > limit {
            return self.exceeded(Exceeded::Output(limit));
        }
        self.out.extend_from_slice(bytes);
        self.spend(bytes.len() / 64)
    }

    fn print(&mut self, value: &Value) -> Eval<()> {
        match value {
            Value::Missing | Value::Nil => self.write(b"<no value>"),
            Value::Str(text) => self.write(text),
            other => {
                let limit = self.env.limits.output;
                let before = self.out.len();
                let printed = transom_go::fmt::append(&mut self.out, other, limit);
                match printed {
                    Ok(()) => self.spend((self.out.len() - before) / 64),
                    Err(FmtError::TooLong) => self.exceeded(Exceeded::Output(limit)),
                    Err(problem) => self.fail(problem),
                }
            }
        }
    }

    fn if_or_with(&mut self, dot: &Reached, branch: &'t Branch) -> Eval<Flow> {
        let value = self.pipeline(dot, &branch.pipe)?;
        if value.value.truth() {
            let dot = if branch.kind == BranchKind::With { &value } else { dot };
            return self.list(dot, &branch.list);
        }
        match &branch.otherwise {
            Some(otherwise) => self.list(dot, otherwise),
            None => Ok(Flow::Next),
        }
    }

    fn range(&mut self, dot: &Reached, branch: &'t Branch) -> Eval<Flow> {
        self.at = Some(At::Branch(branch));
        let value = self.pipeline(dot, &branch.pipe)?.value;
        let ran = match &value {
            Value::Int(_, count) | Value::Named(_, count) => self.range_int(branch, &value, *count)?,
            Value::Uint(_, count) => {
                self.range_int(branch, &value, i64::try_from(*count).unwrap_or(i64::MAX))?
            }
            Value::List(list) => {
                let boxed = list.ty() == ListType::Any;
                let mut index = 0;
                while let Some(item) = list.get(index) {
                    let position = Value::int(i64::try_from(index).unwrap_or(i64::MAX));
                    if self.iterate(branch, Some(Reached::plain(position)), Reached::element(item, boxed))? {
                        break;
                    }
                    index += 1;
                }
                !list.is_empty()
            }
            Value::Map(map) => {
                let entries = map.to_vec();
                self.spend(entries.len() / 8)?;
                let (key_boxed, boxed) = (map.ty() == MapType::AnyAny, map.ty().holds_any());
                let ran = !entries.is_empty();
                for (key, item) in entries {
                    let key = Reached::element(key.to_value(), key_boxed);
                    if self.iterate(branch, Some(key), Reached::element(item, boxed))? {
                        break;
                    }
                }
                ran
            }
            Value::Missing | Value::Nil => false,
            other => {
                let shown = transom_go::fmt::sprint(std::slice::from_ref(other));
                return self.fail(format!("range can't iterate over {}", String::from_utf8_lossy(&shown)));
            }
        };
        match &branch.otherwise {
            Some(otherwise) if !ran => self.list(dot, otherwise),
            _ => Ok(Flow::Next),
        }
    }

    fn range_int(&mut self, branch: &'t Branch, value: &Value, count: i64) -> Eval<bool> {
        if branch.pipe.declared.len() > 1 {
            return self.fail(format!("can't use {count} to iterate over more than one variable"));
        }
        for number in 0..count {
            let item = match value {
                Value::Int(kind, _) => Value::Int(*kind, number),
                Value::Uint(kind, _) => Value::Uint(*kind, number.unsigned_abs()),
                Value::Named(named, _) => Value::Named(*named, number),
                _ => Value::int(number),
            };
            if self.iterate(branch, None, Reached::plain(item))? {
                break;
            }
        }
        Ok(count > 0)
    }

    /// One round of a range; true when the body broke out of it.
    fn iterate(&mut self, branch: &'t Branch, index: Option<Reached>, item: Reached) -> Eval<bool> {
        self.spend(1)?;
        let mark = self.vars.len();
        let dot = item.clone();
        let index = index.unwrap_or(Reached::plain(Value::Missing));
        match (branch.pipe.declared.as_slice(), branch.pipe.assign) {
            ([], _) => {}
            ([variable], true) => self.set_var(variable, item)?,
            ([key, variable, ..], true) => {
                self.set_var(key, index)?;
                self.set_var(variable, item)?;
            }
            ([_], false) => self.vars[mark - 1].1 = item,
            ([_, _, ..], false) => {
                self.vars[mark - 1].1 = item;
                self.vars[mark - 2].1 = index;
            }
        }
        let flow = self.list(&dot, &branch.list)?;
        self.vars.truncate(mark);
        Ok(flow == Flow::Break)
    }

    fn template(&mut self, dot: &Reached, call: &'t Call) -> Eval<()> {
        self.at = Some(At::Template(call));
        let Some(tree) = self.template.trees.get(&call.name) else {
            let name = transom_go::fmt::sprintf("%q", &[Value::Str(call.name.clone())]);
            return self.fail(format!("template {name} not defined"));
        };
        self.check_depth()?;
        let data = match &call.pipe {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Reached::plain(Value::Missing),
        };
        let tree: &'t Arc<Tree> = tree;
        self.depth += 1;
        self.run(tree, data)?;
        self.depth -= 1;
        self.at = Some(At::Template(call));
        Ok(())
    }

    fn check_depth(&self) -> Eval<()> {
        let limit = self.env.limits.depth;
        if self.depth >= limit { self.exceeded(Exceeded::Depth(limit)) } else { Ok(()) }
    }

    /// `include`: a template's output as a string.
    fn include(&mut self, name: &Str, data: Value) -> Result<Value, CallError> {
        const MAX_INCLUDES_OF_A_TEMPLATE: usize = 1000;
        let quoted = |text: &[u8]| transom_go::fmt::sprintf("%q", &[Value::str(text)]);
        let entered = self.included.entry(name.clone()).or_insert(0);
        if *entered > MAX_INCLUDES_OF_A_TEMPLATE {
            let name = name.lossy();
            return Err(format!(
                "rendering template has a nested reference name: {name}: unable to execute template"
            )
            .into());
        }
        *entered += 1;
        let Some(tree) = self.template.trees.get(name) else {
            let root = quoted(self.template.name.as_bytes());
            return Err(
                format!("template: no template {} associated with template {root}", quoted(name)).into()
            );
        };
        if self.depth >= self.env.limits.depth {
            return Err(Exceeded::Depth(self.env.limits.depth).into());
        }
        let outer = std::mem::take(&mut self.out);
        self.depth += 1;
        let data = Reached::plain(if data.is_nil() { Value::Missing } else { data });
        let outcome = self.run(tree, data);
        self.depth -= 1;
        let text = std::mem::replace(&mut self.out, outer);
        outcome.map_err(CallError::Nested)?;
        if let Some(entered) = self.included.get_mut(name) {
            *entered -= 1;
        }
        self.env.string(text)
    }
}
