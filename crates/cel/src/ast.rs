//! The syntax tree. Macros are already expanded: a comprehension is a [`Fold`], for every macro.

/// A constant written in the expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

/// One node. `id` is unique within its tree; `pos` is its position in the text, in code points.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub id: usize,
    pub pos: usize,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Literal(Literal),
    Ident(String),
    Select {
        operand: Box<Expr>,
        field: String,
        test: bool,
    },
    Call {
        function: String,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    List(Vec<Element>),
    Map(Vec<Entry>),
    /// A message; the values of its fields are wrapped in `dyn`.
    Struct {
        name: String,
        fields: Vec<Entry>,
    },
    Fold(Box<Fold>),
}

/// An element of a list literal; `[?x]` is optional.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub value: Expr,
    pub optional: bool,
}

/// An entry of a map literal; `{?k: v}` is optional.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: Expr,
    pub value: Expr,
    pub optional: bool,
}

/// `accu = init; for iter in range { if !cond { break } accu = step }; result`.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub range: Expr,
    pub iter: String,
    pub iter2: Option<String>,
    pub accu: String,
    pub init: Expr,
    pub cond: Expr,
    pub step: Expr,
    pub result: Expr,
}

impl Fold {
    /// Whether this only names a value (`cel.bind`, `optMap`, `sortBy`): it never iterates.
    pub(crate) fn is_binding(&self) -> bool {
        matches!(&self.range.kind, Kind::List(items) if items.is_empty())
            && matches!(self.cond.kind, Kind::Literal(Literal::Bool(false)))
    }
}

impl Expr {
    pub(crate) fn new(pos: usize, kind: Kind) -> Self {
        Self { id: 0, pos, kind }
    }

    pub(crate) fn literal(pos: usize, literal: Literal) -> Self {
        Self::new(pos, Kind::Literal(literal))
    }

    pub(crate) fn ident(pos: usize, name: &str) -> Self {
        Self::new(pos, Kind::Ident(name.to_owned()))
    }

    pub(crate) fn call(pos: usize, function: &str, args: Vec<Expr>) -> Self {
        Self::new(pos, Kind::Call { function: function.to_owned(), target: None, args })
    }

    pub(crate) fn member(pos: usize, target: Expr, function: &str, args: Vec<Expr>) -> Self {
        Self::new(pos, Kind::Call { function: function.to_owned(), target: Some(Box::new(target)), args })
    }

    pub(crate) fn list(pos: usize, items: Vec<Expr>) -> Self {
        let items = items.into_iter().map(|value| Element { value, optional: false }).collect();
        Self::new(pos, Kind::List(items))
    }

    /// The name that a chain of selections spells, such as `a.b.c`.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.clone()),
            Kind::Select { operand, field, test: false } => {
                Some(format!("{}.{field}", operand.qualified_name()?))
            }
            _ => None,
        }
    }

    /// Calls `f` on every node that hangs directly below this one.
    pub(crate) fn children_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match &mut self.kind {
            Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => f(operand),
            Kind::Call { target, args, .. } => {
                if let Some(target) = target {
                    f(target);
                }
                args.iter_mut().for_each(f);
            }
            Kind::List(items) => items.iter_mut().for_each(|e| f(&mut e.value)),
            Kind::Map(entries) | Kind::Struct { fields: entries, .. } => entries.iter_mut().for_each(|e| {
                f(&mut e.key);
                f(&mut e.value);
            }),
            Kind::Fold(fold) => {
                f(&mut fold.range);
                f(&mut fold.init);
                f(&mut fold.cond);
                f(&mut fold.step);
                f(&mut fold.result);
            }
        }
    }
}

/// Gives every node its own id, counted in order of the walk, and returns how many there are.
pub(crate) fn number(root: &mut Expr) -> usize {
    fn walk(e: &mut Expr, next: &mut usize) {
        e.id = *next;
        *next += 1;
        e.children_mut(&mut |child| walk(child, next));
    }
    let mut next = 0;
    walk(root, &mut next);
    next
}
