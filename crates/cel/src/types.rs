//! Static types, and the unification by which the checker infers them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of an expression as far as it is known before evaluation.
#[derive(Clone, Debug)]
pub enum Type {
    /// Not known before evaluation; agrees with everything.
    Dyn,
    /// The type of an expression already reported as wrong; agrees with everything.
    Error,
    /// The type of `null`.
    Null,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// `google.protobuf.Duration`
    Duration,
    /// The type of a type.
    Type(Arc<Type>),
    /// A list, by the type of its elements.
    List(Arc<Type>),
    /// A map, by the types of its keys and values.
    Map(Arc<Type>, Arc<Type>),
    /// `optional_type`, by the type of what it may hold.
    Optional(Arc<Type>),
    /// An object whose fields a schema names.
    Object(Arc<ObjectType>),
    /// A type of a library, such as `net.IP`.
    Opaque(&'static str),
    /// A type parameter: of a declaration (small numbers) or a free variable of the checker.
    Param(usize),
}

/// An object type: equal to another when the names are.
#[derive(Debug)]
pub struct ObjectType {
    /// The name, by which object types are equal.
    pub name: String,
    /// The types of its fields, by their escaped names.
    pub fields: BTreeMap<String, Type>,
}

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        use Type::{List, Map, Object, Opaque, Optional, Param};
        match (self, other) {
            (List(a), List(b)) | (Optional(a), Optional(b)) | (Type::Type(a), Type::Type(b)) => a == b,
            (Map(a, b), Map(c, d)) => a == c && b == d,
            (Object(a), Object(b)) => a.name == b.name,
            (Opaque(a), Opaque(b)) => a == b,
            (Param(a), Param(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::Type(t) => write!(f, "type({t})"),
            Self::List(t) => write!(f, "list({t})"),
            Self::Map(k, v) => write!(f, "map({k}, {v})"),
            Self::Optional(t) => write!(f, "optional_type({t})"),
            Self::Object(o) => f.write_str(&o.name),
            Self::Opaque(name) => f.write_str(name),
            Self::Param(n) => write!(f, "_var{n}"),
        }
    }
}

impl Type {
    /// The type of the variable `authorizer`.
    pub const AUTHORIZER: Self = Self::Opaque("kubernetes.authorization.Authorizer");
    /// The type of the variable `authorizer.requestResource`.
    pub const RESOURCE_CHECK: Self = Self::Opaque("kubernetes.authorization.ResourceCheck");

    /// A list.
    pub fn list(of: Type) -> Self {
        Self::List(Arc::new(of))
    }

    /// A map.
    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    /// An optional.
    pub fn optional(of: Type) -> Self {
        Self::Optional(Arc::new(of))
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// The type inside an optional, or the type itself; and whether it was one.
    pub(crate) fn unwrap_optional(&self) -> (Type, bool) {
        match self {
            Self::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        }
    }

    fn rebuild(&self, f: &mut dyn FnMut(&Type) -> Type) -> Type {
        match self {
            Self::List(t) => Self::list(f(t)),
            Self::Map(k, v) => Self::map(f(k), f(v)),
            Self::Optional(t) => Self::optional(f(t)),
            Self::Type(t) => Self::Type(Arc::new(f(t))),
            other => other.clone(),
        }
    }

    /// The same type with every parameter of a declaration moved to fresh variables.
    pub(crate) fn instantiate(&self, base: usize) -> Type {
        match self {
            Self::Param(n) => Self::Param(base + n),
            other => other.rebuild(&mut |t| t.instantiate(base)),
        }
    }

    fn is_equal_or_less_specific(&self, other: &Type) -> bool {
        match (self, other) {
            (Self::Dyn | Self::Param(_), _) => true,
            (_, Self::Dyn | Self::Param(_)) => false,
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => {
                a.is_equal_or_less_specific(b)
            }
            (Self::Map(a, b), Self::Map(c, d)) => {
                a.is_equal_or_less_specific(c) && b.is_equal_or_less_specific(d)
            }
            (Self::Type(_), Self::Type(_)) => true,
            (a, b) => a == b,
        }
    }
}

pub(crate) fn most_general(a: &Type, b: &Type) -> Type {
    if a.is_equal_or_less_specific(b) { a.clone() } else { b.clone() }
}

/// What is known about type variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Substitution(BTreeMap<usize, Type>);

impl Substitution {
    /// Whether a value of one type may stand for the other; learns about variables when so.
    pub(crate) fn assign(&mut self, a: &Type, b: &Type) -> bool {
        self.assign_all(std::slice::from_ref(a), std::slice::from_ref(b))
    }

    pub(crate) fn assign_all(&mut self, a: &[Type], b: &[Type]) -> bool {
        if a.len() != b.len() {
            return false;
        }
        let mut trial = self.clone();
        let agreed = a.iter().zip(b).all(|(a, b)| trial.unify(a, b));
        if agreed {
            *self = trial;
        }
        agreed
    }

    fn unify(&mut self, a: &Type, b: &Type) -> bool {
        if let Type::Param(n) = b {
            let (valid, known) = self.bind(*n, b, a);
            if valid {
                return true;
            }
            if known {
                return false;
            }
        }
        if let Type::Param(n) = a {
            return self.bind(*n, a, b).0;
        }
        if a.is_dyn_or_error() || b.is_dyn_or_error() {
            return true;
        }
        match (a, b) {
            (Type::Null, other) | (other, Type::Null) => matches!(
                other,
                Type::Null
                    | Type::Opaque(_)
                    | Type::Optional(_)
                    | Type::Object(_)
                    | Type::Duration
                    | Type::Timestamp
            ),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.unify(a, b),
            (Type::Map(a, b), Type::Map(c, d)) => self.unify(a, c) && self.unify(b, d),
            (a, b) => a == b,
        }
    }

    /// Tries `with` as the meaning of variable `n`: whether it fits, and whether a meaning was known.
    fn bind(&mut self, n: usize, variable: &Type, with: &Type) -> (bool, bool) {
        if with == variable {
            return (true, true);
        }
        if let Some(known) = self.0.get(&n).cloned() {
            if known == *with {
                return (true, true);
            }
            if !self.unify(with, &known) {
                return (false, true);
            }
            let general = most_general(with, &known);
            if !self.occurs(n, &general) {
                self.0.insert(n, general);
            }
            return (true, true);
        }
        if self.occurs(n, with) {
            return (false, false);
        }
        self.0.insert(n, with.clone());
        (true, false)
    }

    fn occurs(&self, n: usize, within: &Type) -> bool {
        match within {
            Type::Param(m) => *m == n || self.0.get(m).is_some_and(|t| self.occurs(n, t)),
            Type::List(t) | Type::Optional(t) | Type::Type(t) => self.occurs(n, t),
            Type::Map(k, v) => self.occurs(n, k) || self.occurs(n, v),
            _ => false,
        }
    }

    /// The type with what is known filled in; what is not known becomes `dyn` when `free_is_dyn`.
    pub(crate) fn apply(&self, t: &Type, free_is_dyn: bool) -> Type {
        match t {
            Type::Param(n) => match self.0.get(n) {
                Some(known) => self.apply(known, free_is_dyn),
                None if free_is_dyn => Type::Dyn,
                None => t.clone(),
            },
            other => other.rebuild(&mut |t| self.apply(t, free_is_dyn)),
        }
    }
}

/// Reads a type as declarations spell it: `list(A)`, `map(K, V)`, `optional(V)`, `net.IP`.
pub(crate) fn parse_type(text: &str) -> Type {
    let text = text.trim();
    if let Some((head, rest)) = text.split_once('(') {
        let inner = parse_types(rest.strip_suffix(')').unwrap_or(rest));
        return match (head, inner.as_slice()) {
            ("list", [t]) => Type::list(t.clone()),
            ("map", [k, v]) => Type::map(k.clone(), v.clone()),
            ("optional", [t]) => Type::optional(t.clone()),
            ("type", [t]) => Type::Type(Arc::new(t.clone())),
            _ => Type::Error,
        };
    }
    match text {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "A" | "K" | "T" => Type::Param(0),
        "B" | "V" => Type::Param(1),
        _ => OPAQUE.iter().find(|n| **n == text).map_or(Type::Error, |n| Type::Opaque(n)),
    }
}

/// The types that Kubernetes' libraries add.
pub(crate) const OPAQUE: [&str; 11] = [
    "net.IP",
    "net.CIDR",
    "kubernetes.Quantity",
    "kubernetes.URL",
    "kubernetes.Semver",
    "kubernetes.NamedFormat",
    "kubernetes.authorization.Authorizer",
    "kubernetes.authorization.PathCheck",
    "kubernetes.authorization.GroupCheck",
    "kubernetes.authorization.ResourceCheck",
    "kubernetes.authorization.Decision",
];

/// Reads several types separated by commas.
pub(crate) fn parse_types(text: &str) -> Vec<Type> {
    let mut types = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                types.push(parse_type(&text[start..i]));
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        types.push(parse_type(&text[start..]));
    }
    types
}

/// The type that a name stands for in an expression, such as `int` or `google.protobuf.Timestamp`.
pub(crate) fn named_type(name: &str) -> Option<Type> {
    Some(match name {
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "type" => Type::Type(Arc::new(Type::Dyn)),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "optional_type" => Type::optional(Type::Dyn),
        "bool" | "int" | "uint" | "double" | "string" | "bytes" => parse_type(name),
        other => Type::Opaque(OPAQUE.iter().find(|n| **n == other)?),
    })
}
