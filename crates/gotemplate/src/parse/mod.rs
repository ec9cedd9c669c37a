//! The parser of templates: from text to trees. It accepts and refuses exactly what Go's does, with Go's messages, and limits how
//! deeply actions nest, so that no template exhausts the stack.
//!
//! It does not evaluate anything, and knows of functions only whether they exist.

pub(crate) mod ast;
mod expression;
mod lex;
mod number;

use std::collections::HashMap;
use std::sync::Arc;

use ast::{Action, Branch, BranchKind, Call, List, Node, Text, Tree};
use lex::{Item, ItemKind, Lexer};

use crate::error::Error;
use crate::functions::Callee;
use crate::value::{Str, Value};
use transom_go::fmt::sprintf;
use transom_go::strconv::unquote;

/// How deep control structures or parentheses may nest. Go allows 10 000 parentheses and any control structure.
pub(crate) const MAX_NESTING: usize = 2000;

pub(crate) struct Parsed {
    pub trees: HashMap<Str, Arc<Tree>>,
    pub deepest: usize,
}

/// What one tree being parsed has of its own: lookahead and variable scope. `define` and `block` start afresh.
struct Scope {
    lookahead: [Item; 3],
    peeked: usize,
    vars: Vec<Arc<str>>,
    action_line: usize,
    range_depth: usize,
}

impl Scope {
    fn new() -> Scope {
        let none = || Item { kind: ItemKind::Eof, pos: 0, text: String::new(), line: 0 };
        Scope {
            lookahead: [none(), none(), none()],
            peeked: 0,
            vars: vec![Arc::from("$")],
            action_line: 0,
            range_depth: 0,
        }
    }
}

pub(crate) struct Parser<'a> {
    name: &'a str,
    lexer: Lexer<'a>,
    scope: Scope,
    resolve: &'a dyn Fn(&str) -> Result<Callee, String>,
    trees: HashMap<Str, Arc<Tree>>,
    variable_ids: HashMap<Arc<str>, u32>,
    depth: usize,
    deepest: usize,
}

/// What closes a list of nodes.
enum Close {
    End,
    Else,
}

impl Close {
    fn describe(&self) -> &'static str {
        match self {
            Close::End => "{{end}}",
            Close::Else => "{{else}}",
        }
    }
}

enum Parsing {
    Node(Node),
    Close(Close),
}

type Parse<T> = Result<T, Error>;

pub(crate) fn parse<'a>(
    name: &'a str,
    text: &'a str,
    (left, right): (&'a str, &'a str),
    resolve: &'a dyn Fn(&str) -> Result<Callee, String>,
) -> Result<Parsed, Error> {
    let mut lexer = Lexer::new(text, left, right);
    lexer.break_is_keyword = resolve("break").is_err();
    lexer.continue_is_keyword = resolve("continue").is_err();
    let mut parser = Parser {
        name,
        lexer,
        scope: Scope::new(),
        resolve,
        trees: HashMap::new(),
        variable_ids: HashMap::from([(Arc::from("$"), 0)]),
        depth: 0,
        deepest: 0,
    };
    let root = parser.root()?;
    parser.add(Str::from(name), root)?;
    Ok(Parsed { trees: parser.trees, deepest: parser.deepest })
}

impl Parser<'_> {
    fn next(&mut self) -> Item {
        if self.scope.peeked > 0 {
            self.scope.peeked -= 1;
        } else {
            self.scope.lookahead[0] = self.lexer.next_item();
        }
        self.scope.lookahead[self.scope.peeked].clone()
    }

    fn backup(&mut self) {
        self.scope.peeked += 1;
    }

    fn backup2(&mut self, first: Item) {
        self.scope.lookahead[1] = first;
        self.scope.peeked = 2;
    }

    fn backup3(&mut self, first: Item, second: Item) {
        self.scope.lookahead[1] = second;
        self.scope.lookahead[2] = first;
        self.scope.peeked = 3;
    }

    fn peek(&mut self) -> &Item {
        if self.scope.peeked == 0 {
            self.scope.peeked = 1;
            self.scope.lookahead[0] = self.lexer.next_item();
        }
        &self.scope.lookahead[self.scope.peeked - 1]
    }

    fn next_non_space(&mut self) -> Item {
        loop {
            let item = self.next();
            if item.kind != ItemKind::Space {
                return item;
            }
        }
    }

    fn peek_non_space(&mut self) -> &Item {
        self.next_non_space();
        self.backup();
        &self.scope.lookahead[self.scope.peeked - 1]
    }

    fn error<T>(&self, message: impl AsRef<str>) -> Parse<T> {
        Err(Error::parse(self.name, self.scope.lookahead[0].line, message.as_ref()))
    }

    fn unexpected<T>(&self, item: &Item, context: &str) -> Parse<T> {
        if item.kind != ItemKind::Error {
            return self.error(format!("unexpected {} in {context}", item.describe()));
        }
        let started = self.scope.action_line;
        if started == 0 || started == item.line {
            return self.error(item.describe());
        }
        let action = if item.text.ends_with(" action") { "" } else { " in action" };
        self.error(format!("{}{action} started at {}:{started}", item.describe(), self.name))
    }

    fn expect(&mut self, kind: ItemKind, context: &str) -> Parse<Item> {
        let item = self.next_non_space();
        if item.kind == kind { Ok(item) } else { self.unexpected(&item, context) }
    }

    /// Runs `body` one level deeper, on more stack if need be.
    fn nested<T>(&mut self, problem: &str, body: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_NESTING {
            return self.error(problem);
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let result = crate::stack::with_room(|| body(self));
        self.depth -= 1;
        result
    }

    fn root(&mut self) -> Parse<List> {
        let mut list = List::default();
        while self.peek().kind != ItemKind::Eof {
            if self.peek().kind == ItemKind::LeftDelim {
                let delim = self.next();
                if self.next_non_space().kind == ItemKind::Define {
                    self.in_new_scope(Parser::definition)?;
                    continue;
                }
                self.backup2(delim);
            }
            match self.text_or_action()? {
                Parsing::Node(node) => list.nodes.push(node),
                Parsing::Close(close) => return self.error(format!("unexpected {}", close.describe())),
            }
        }
        Ok(list)
    }

    fn in_new_scope<T>(&mut self, body: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let outer = std::mem::replace(&mut self.scope, Scope::new());
        let result = body(self)?;
        self.scope = outer;
        Ok(result)
    }

    fn definition(&mut self) -> Parse<()> {
        const CONTEXT: &str = "define clause";
        let item = self.next_non_space();
        let name = self.template_name(&item, CONTEXT)?;
        self.expect(ItemKind::RightDelim, CONTEXT)?;
        let (list, close) = self.item_list()?;
        if let Close::Else = close {
            return self.error(format!("unexpected {} in {CONTEXT}", close.describe()));
        }
        self.add(name, list)
    }

    fn add(&mut self, name: Str, root: List) -> Parse<()> {
        let replaceable = self.trees.get(&name).is_none_or(|tree| tree.root.is_blank());
        if replaceable {
            let shown = Arc::from(&*name.lossy());
            self.trees.insert(name, Arc::new(Tree { name: shown, root }));
        } else if !root.is_blank() {
            let message = sprintf("template: multiple definition of template %q", &[Value::Str(name)]);
            return self.error(message);
        }
        Ok(())
    }

    fn item_list(&mut self) -> Parse<(List, Close)> {
        let mut list = List::default();
        while self.peek_non_space().kind != ItemKind::Eof {
            match self.text_or_action()? {
                Parsing::Node(node) => list.nodes.push(node),
                Parsing::Close(close) => return Ok((list, close)),
            }
        }
        self.error("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Parse<Parsing> {
        let item = self.next_non_space();
        match item.kind {
            ItemKind::Text => {
                let text = item.text.into_bytes().into_boxed_slice();
                Ok(Parsing::Node(Node::Text(Text { pos: item.pos, text })))
            }
            ItemKind::LeftDelim => {
                self.scope.action_line = item.line;
                let parsed = self.action();
                self.scope.action_line = 0;
                parsed
            }
            _ => self.unexpected(&item, "input"),
        }
    }

    fn action(&mut self) -> Parse<Parsing> {
        const TOO_DEEP: &str = "exceeded max nesting of control structures";
        let item = self.next_non_space();
        let node = match item.kind {
            ItemKind::Block => self.nested(TOO_DEEP, Parser::block)?,
            ItemKind::Break => {
                self.loop_control("break")?;
                Node::Break(item.pos)
            }
            ItemKind::Continue => {
                self.loop_control("continue")?;
                Node::Continue(item.pos)
            }
            ItemKind::Else => return self.else_clause().map(Parsing::Close),
            ItemKind::End => {
                self.expect(ItemKind::RightDelim, "end")?;
                return Ok(Parsing::Close(Close::End));
            }
            ItemKind::If => self.nested(TOO_DEEP, |parser| parser.branch(BranchKind::If))?,
            ItemKind::Range => self.nested(TOO_DEEP, |parser| parser.branch(BranchKind::Range))?,
            ItemKind::With => self.nested(TOO_DEEP, |parser| parser.branch(BranchKind::With))?,
            ItemKind::Template => self.template()?,
            _ => {
                self.backup();
                let pos = self.peek().pos;
                let pipe = self.pipeline("command", ItemKind::RightDelim)?;
                Node::Action(Action { pos, pipe })
            }
        };
        Ok(Parsing::Node(node))
    }

    fn loop_control(&mut self, word: &str) -> Parse<()> {
        let item = self.next_non_space();
        if item.kind != ItemKind::RightDelim {
            return self.unexpected(&item, &format!("{{{{{word}}}}}"));
        }
        if self.scope.range_depth == 0 {
            return self.error(format!("{{{{{word}}}}} outside {{{{range}}}}"));
        }
        Ok(())
    }

    fn else_clause(&mut self) -> Parse<Close> {
        if !matches!(self.peek_non_space().kind, ItemKind::If | ItemKind::With) {
            self.expect(ItemKind::RightDelim, "else")?;
        }
        Ok(Close::Else)
    }

    fn branch(&mut self, kind: BranchKind) -> Parse<Node> {
        let outer_vars = self.scope.vars.len();
        let pipe = self.pipeline(kind.name(), ItemKind::RightDelim)?;
        let in_range = usize::from(kind == BranchKind::Range);
        self.scope.range_depth += in_range;
        let (list, close) = self.item_list()?;
        self.scope.range_depth -= in_range;
        let otherwise = match close {
            Close::End => None,
            Close::Else => Some(self.else_list(kind)?),
        };
        self.scope.vars.truncate(outer_vars);
        Ok(Node::Branch(Branch { kind, pos: pipe.pos, pipe, list, otherwise }))
    }

    fn else_list(&mut self, kind: BranchKind) -> Parse<List> {
        let chained = match (kind, self.peek().kind) {
            (BranchKind::If, ItemKind::If) => Some(BranchKind::If),
            (BranchKind::With, ItemKind::With) => Some(BranchKind::With),
            _ => None,
        };
        if let Some(kind) = chained {
            self.next();
            let node =
                self.nested("exceeded max nesting of control structures", |parser| parser.branch(kind))?;
            return Ok(List { nodes: vec![node] });
        }
        match self.item_list()? {
            (list, Close::End) => Ok(list),
            (_, close) => self.error(format!("expected end; found {}", close.describe())),
        }
    }

    fn block(&mut self) -> Parse<Node> {
        const CONTEXT: &str = "block clause";
        let item = self.next_non_space();
        let name = self.template_name(&item, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, ItemKind::RightDelim)?;
        let defined = name.clone();
        let close = self.in_new_scope(|parser| {
            let (list, close) = parser.item_list()?;
            if let Close::End = close {
                parser.add(defined, list)?;
            }
            Ok(close)
        })?;
        if let Close::Else = close {
            return self.error(format!("unexpected {} in {CONTEXT}", close.describe()));
        }
        Ok(Node::Template(Call { pos: item.pos, name, pipe: Some(pipe) }))
    }

    fn template(&mut self) -> Parse<Node> {
        const CONTEXT: &str = "template clause";
        let item = self.next_non_space();
        let name = self.template_name(&item, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().kind != ItemKind::RightDelim {
            self.backup();
            pipe = Some(self.pipeline(CONTEXT, ItemKind::RightDelim)?);
        }
        Ok(Node::Template(Call { pos: item.pos, name, pipe }))
    }

    fn template_name(&mut self, item: &Item, context: &str) -> Parse<Str> {
        match item.kind {
            ItemKind::String | ItemKind::RawString => self.unquote(&item.text),
            _ => self.unexpected(item, context),
        }
    }

    fn unquote(&self, literal: &str) -> Parse<Str> {
        match unquote(literal) {
            Some(bytes) => Ok(Str::from(bytes)),
            None => self.error("invalid syntax"),
        }
    }
}
