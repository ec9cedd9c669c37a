//! Tokens to a syntax tree: recursive descent over the CEL grammar, with macros expanded as they are parsed.
//!
//! Depth is bounded per grammar rule as upstream bounds it, so that neither parsing nor anything that later
//! walks the tree can overflow the stack.

use super::ast::{Element, Entry, Expr, Kind, Literal, number};
use super::escaping::RESERVED;
use super::lexer::{Spanned, Token, lex};
use super::macros;
use super::source::Issue;

/// How deep one grammar rule may nest.
const MAX_RULE_DEPTH: usize = 250;
/// How many code points an expression may have.
const MAX_CODE_POINTS: usize = 100_000;
/// How deep the tree as a whole may be.
const MAX_TREE_DEPTH: usize = 500;
/// How many nodes macros may copy.
const MAX_COPIED_NODES: usize = 20_000;

const OPERANDS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, \
                        STRING, BYTES, IDENTIFIER}";

/// A numbered tree and how many nodes it has.
pub(crate) struct Parsed {
    pub root: Expr,
    pub nodes: usize,
}

pub(crate) fn parse(source: &str) -> Result<Parsed, Vec<Issue>> {
    let size = source.chars().count();
    if size > MAX_CODE_POINTS {
        let message =
            format!("expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}");
        return Err(vec![Issue::new(usize::MAX, message)]);
    }
    let tokens = lex(source)?;
    let mut parser = Parser { tokens, at: 0, depth: [0; 4], issues: Vec::new(), copies: MAX_COPIED_NODES };
    let mut root = match parser.expr() {
        Ok(root) => root,
        Err(issue) => {
            parser.issues.push(issue);
            return Err(parser.issues);
        }
    };
    if parser.peek() != &Token::Eof {
        parser.issues.push(parser.trailing());
    }
    if !parser.issues.is_empty() {
        return Err(parser.issues);
    }
    let nodes = number(&mut root);
    if tree_depth(&mut root) > MAX_TREE_DEPTH {
        return Err(vec![too_deep()]);
    }
    Ok(Parsed { root, nodes })
}

fn too_deep() -> Issue {
    Issue::new(usize::MAX, "max recursion depth exceeded")
}

fn tree_depth(e: &mut Expr) -> usize {
    let mut deepest = 0;
    e.children_mut(&mut |child| deepest = deepest.max(tree_depth(child)));
    deepest + 1
}

/// The grammar rules whose depth is counted.
#[derive(Clone, Copy)]
enum Rule {
    Expr,
    Relation,
    Calc,
    Member,
}

type Parse = Result<Expr, Issue>;

struct Parser {
    tokens: Vec<Spanned>,
    at: usize,
    depth: [usize; 4],
    issues: Vec<Issue>,
    /// How many more nodes macros may copy.
    copies: usize,
}

impl Parser {
    fn current(&self) -> &Spanned {
        // The lexer always ends with `Eof`, and `advance` never moves past it.
        &self.tokens[self.at]
    }

    fn peek(&self) -> &Token {
        &self.current().token
    }

    fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|t| &t.token)
    }

    fn pos(&self) -> usize {
        self.current().pos
    }

    fn advance(&mut self) -> Spanned {
        let token = self.current().clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(s) if *s == symbol)
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: &str, expecting: &str) -> Result<usize, Issue> {
        let pos = self.pos();
        if self.accept(symbol) { Ok(pos) } else { Err(self.unexpected(expecting)) }
    }

    fn unexpected(&self, expecting: &str) -> Issue {
        let text = &self.current().text;
        Issue::new(self.pos(), format!("Syntax error: mismatched input '{text}' expecting {expecting}"))
    }

    fn trailing(&self) -> Issue {
        let text = &self.current().text;
        let alone = matches!(self.peek_at(1), Some(Token::Eof) | None);
        let kind = if alone { "extraneous" } else { "mismatched" };
        Issue::new(self.pos(), format!("Syntax error: {kind} input '{text}' expecting <EOF>"))
    }

    fn enter(&mut self, rule: Rule) -> Result<(), Issue> {
        let depth = &mut self.depth[rule as usize];
        *depth += 1;
        if *depth > MAX_RULE_DEPTH { Err(too_deep()) } else { Ok(()) }
    }

    fn leave(&mut self, rule: Rule, levels: usize) {
        self.depth[rule as usize] -= levels;
    }

    pub(crate) fn expr(&mut self) -> Parse {
        self.enter(Rule::Expr)?;
        let condition = self.or()?;
        let result = if self.is("?") {
            let pos = self.advance().pos;
            let then = self.or()?;
            self.expect(":", "':'")?;
            let otherwise = self.expr()?;
            Expr::call(pos, "_?_:_", vec![condition, then, otherwise])
        } else {
            condition
        };
        self.leave(Rule::Expr, 1);
        Ok(result)
    }

    fn or(&mut self) -> Parse {
        let mut terms = vec![self.and()?];
        let mut ops = Vec::new();
        while self.is("||") {
            ops.push(self.advance().pos);
            terms.push(self.and()?);
        }
        Ok(balance("_||_", terms, &ops))
    }

    fn and(&mut self) -> Parse {
        let mut terms = vec![self.relation()?];
        let mut ops = Vec::new();
        while self.is("&&") {
            ops.push(self.advance().pos);
            terms.push(self.relation()?);
        }
        Ok(balance("_&&_", terms, &ops))
    }

    /// A left-associative chain of binary operators.
    fn chain(&mut self, rule: Rule, ops: &[(&str, &str)], next: fn(&mut Self) -> Parse) -> Parse {
        self.enter(rule)?;
        let mut levels = 1;
        let mut left = next(self)?;
        while let Some((_, function)) = ops.iter().find(|(symbol, _)| self.is(symbol)) {
            self.enter(rule)?;
            levels += 1;
            let pos = self.advance().pos;
            let right = next(self)?;
            left = Expr::call(pos, function, vec![left, right]);
        }
        self.leave(rule, levels);
        Ok(left)
    }

    fn relation(&mut self) -> Parse {
        const OPS: [(&str, &str); 7] = [
            ("<", "_<_"),
            ("<=", "_<=_"),
            (">=", "_>=_"),
            (">", "_>_"),
            ("==", "_==_"),
            ("!=", "_!=_"),
            ("in", "@in"),
        ];
        self.chain(Rule::Relation, &OPS, Self::sum)
    }

    fn sum(&mut self) -> Parse {
        self.chain(Rule::Calc, &[("+", "_+_"), ("-", "_-_")], Self::product)
    }

    fn product(&mut self) -> Parse {
        self.chain(Rule::Calc, &[("*", "_*_"), ("/", "_/_"), ("%", "_%_")], Self::unary)
    }

    fn unary(&mut self) -> Parse {
        let pos = self.pos();
        for (symbol, function) in [("!", "!_"), ("-", "-_")] {
            if !self.is(symbol) {
                continue;
            }
            let negative_number = matches!(self.peek_at(1), Some(Token::Int(_) | Token::Double(_)));
            if symbol == "-" && negative_number {
                return self.member();
            }
            let mut count = 0;
            while self.accept(symbol) {
                count += 1;
            }
            let operand = self.member()?;
            return Ok(if count % 2 == 0 { operand } else { Expr::call(pos, function, vec![operand]) });
        }
        self.member()
    }

    fn member(&mut self) -> Parse {
        self.enter(Rule::Member)?;
        let mut levels = 1;
        let mut operand = self.primary()?;
        loop {
            if self.is(".") {
                operand = self.selection(operand)?;
            } else if self.is("[") {
                let pos = self.advance().pos;
                let function = if self.accept("?") { "_[?_]" } else { "_[_]" };
                let index = self.expr()?;
                self.expect("]", "']'")?;
                operand = Expr::call(pos, function, vec![operand, index]);
            } else {
                break;
            }
            self.enter(Rule::Member)?;
            levels += 1;
        }
        self.leave(Rule::Member, levels);
        Ok(operand)
    }

    fn selection(&mut self, operand: Expr) -> Parse {
        let pos = self.advance().pos;
        let optional = self.accept("?");
        let Token::Ident(field) = self.peek().clone() else {
            return Err(self.unexpected("IDENTIFIER"));
        };
        let field_pos = self.advance().pos;
        if optional {
            let name = Expr::literal(field_pos, Literal::String(field));
            return Ok(Expr::call(pos, "_?._", vec![operand, name]));
        }
        if self.is("(") {
            let open = self.advance().pos;
            let args = self.arguments()?;
            return self.call(open, Some(operand), &field, args);
        }
        Ok(Expr::new(pos, Kind::Select { operand: Box::new(operand), field, test: false }))
    }

    fn call(&mut self, pos: usize, target: Option<Expr>, function: &str, args: Vec<Expr>) -> Parse {
        match macros::expand(pos, target, function, args, &mut self.copies)? {
            macros::Expansion::Macro(expr) => Ok(expr),
            macros::Expansion::Call(target, args) => {
                let target = target.map(Box::new);
                Ok(Expr::new(pos, Kind::Call { function: function.to_owned(), target, args }))
            }
        }
    }

    /// Arguments up to and including the closing parenthesis.
    fn arguments(&mut self) -> Result<Vec<Expr>, Issue> {
        let mut args = Vec::new();
        if self.accept(")") {
            return Ok(args);
        }
        loop {
            args.push(self.expr()?);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")", "')'")?;
        Ok(args)
    }

    fn primary(&mut self) -> Parse {
        let Spanned { token, pos, .. } = self.current().clone();
        match token {
            Token::Symbol("(") => {
                self.advance();
                let inner = self.expr()?;
                self.expect(")", "')'")?;
                Ok(inner)
            }
            Token::Symbol("[") => self.list(),
            Token::Symbol("{") => self.map(),
            Token::Symbol(".") => {
                self.advance();
                self.name(pos, true)
            }
            Token::Ident(_) => self.name(pos, false),
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> Parse {
        let pos = self.pos();
        let negative = self.is("-");
        if negative {
            self.advance();
        }
        let Spanned { token, .. } = self.current().clone();
        let literal = match token {
            Token::Int(text) => Literal::Int(int_literal(&text, negative, pos)?),
            Token::Double(text) => {
                let value = text.parse().ok().filter(|value: &f64| value.is_finite());
                let value = value.ok_or_else(|| Issue::new(pos, "invalid double literal"))?;
                Literal::Double(if negative { -value } else { value })
            }
            _ if negative => return Err(self.unexpected(OPERANDS)),
            Token::Uint(text) => Literal::Uint(uint_literal(&text, pos)?),
            Token::String(s) => Literal::String(s),
            Token::Bytes(b) => Literal::Bytes(b),
            Token::Symbol("true") => Literal::Bool(true),
            Token::Symbol("false") => Literal::Bool(false),
            Token::Symbol("null") => Literal::Null,
            _ => return Err(self.unexpected(OPERANDS)),
        };
        self.advance();
        Ok(Expr::literal(pos, literal))
    }

    /// An identifier, a call, or a message construction, whichever follows.
    fn name(&mut self, pos: usize, rooted: bool) -> Parse {
        let Token::Ident(word) = self.peek().clone() else {
            return Err(self.unexpected("IDENTIFIER"));
        };
        if let Some(name) = self.struct_name() {
            let name = if rooted { format!(".{name}") } else { name };
            let open = self.expect("{", "'{'")?;
            let fields = self.fields()?;
            return Ok(Expr::new(open, Kind::Struct { name, fields }));
        }
        self.advance();
        if RESERVED.contains(&word.as_str()) {
            return Err(Issue::new(pos, format!("reserved identifier: {word}")));
        }
        let name = if rooted { format!(".{word}") } else { word };
        if self.is("(") {
            let open = self.advance().pos;
            let args = self.arguments()?;
            return self.call(open, None, &name, args);
        }
        Ok(Expr::ident(pos, &name))
    }

    /// The message name when `a.b.C{` comes next; consumes up to the brace.
    fn struct_name(&mut self) -> Option<String> {
        let mut ahead = 0;
        let mut name = String::new();
        loop {
            let Some(Token::Ident(word)) = self.peek_at(ahead) else { return None };
            name.push_str(word);
            match self.peek_at(ahead + 1) {
                Some(Token::Symbol("{")) => break,
                Some(Token::Symbol(".")) => name.push('.'),
                _ => return None,
            }
            ahead += 2;
        }
        for _ in 0..=ahead {
            self.advance();
        }
        Some(name)
    }

    /// The fields of a message, their values as `dyn(…)`: fields are of several types.
    fn fields(&mut self) -> Result<Vec<Entry>, Issue> {
        let mut fields = Vec::new();
        while !self.accept("}") {
            let optional = self.accept("?");
            let Token::Ident(name) = self.peek().clone() else {
                return Err(self.unexpected("IDENTIFIER"));
            };
            let pos = self.advance().pos;
            self.expect(":", "':'")?;
            let value = self.expr()?;
            let at = value.pos;
            let value = if optional {
                value
            } else {
                Expr::new(at, Kind::Call { function: "dyn".into(), target: None, args: vec![value] })
            };
            fields.push(Entry { key: Expr::literal(pos, Literal::String(name)), value, optional });
            if !self.accept(",") {
                self.expect("}", "'}'")?;
                break;
            }
        }
        Ok(fields)
    }

    fn list(&mut self) -> Parse {
        let pos = self.advance().pos;
        let mut items = Vec::new();
        while !self.accept("]") {
            let optional = self.accept("?");
            items.push(Element { value: self.expr()?, optional });
            if !self.accept(",") {
                self.expect("]", "']'")?;
                break;
            }
        }
        Ok(Expr::new(pos, Kind::List(items)))
    }

    fn map(&mut self) -> Parse {
        let pos = self.advance().pos;
        let mut entries = Vec::new();
        while !self.accept("}") {
            let optional = self.accept("?");
            let key = self.expr()?;
            self.expect(":", "':'")?;
            entries.push(Entry { key, value: self.expr()?, optional });
            if !self.accept(",") {
                self.expect("}", "'}'")?;
                break;
            }
        }
        Ok(Expr::new(pos, Kind::Map(entries)))
    }
}

fn int_literal(text: &str, negative: bool, pos: usize) -> Result<i64, Issue> {
    let sign = if negative { "-" } else { "" };
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let value = match hex {
        Some(digits) => i64::from_str_radix(&format!("{sign}{digits}"), 16),
        None => format!("{sign}{text}").parse(),
    };
    value.map_err(|_| Issue::new(pos, "invalid int literal"))
}

fn uint_literal(text: &str, pos: usize) -> Result<u64, Issue> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let value = match hex {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    value.map_err(|_| Issue::new(pos, "invalid uint literal"))
}

/// A chain of `&&` or `||` as a balanced tree, so that its depth is logarithmic.
fn balance(function: &str, mut terms: Vec<Expr>, ops: &[usize]) -> Expr {
    if terms.len() <= 1 {
        return terms.pop().unwrap_or_else(|| Expr::literal(0, Literal::Null));
    }
    let middle = ops.len() / 2;
    let right = terms.split_off(middle + 1);
    let left = balance(function, terms, ops.get(..middle).unwrap_or(&[]));
    let right = balance(function, right, ops.get(middle + 1..).unwrap_or(&[]));
    Expr::call(ops.get(middle).copied().unwrap_or(0), function, vec![left, right])
}
