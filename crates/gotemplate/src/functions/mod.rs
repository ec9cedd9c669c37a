//! Functions and how they are called: typed signatures, the static tables, and what the embedding program adds.
//!
//! The evaluator checks arguments against the signature with Go's messages, so a function body may rely on the
//! kinds it declares.

mod compare;
mod env;
mod escape;
mod sequence;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

pub use env::{CallError, Env};

use crate::context::{Context, System};
use crate::value::{List, ListType, Map, MapType, Value};

/// A parameter type, as far as functions of templates declare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `interface {}`.
    Any,
    /// `reflect.Value`: the argument exactly as evaluated, absent or not. Only builtins take it.
    Reflect,
    /// A string.
    Str,
    /// An `int`.
    Int,
    /// A `uint32`.
    Uint32,
    /// A `float64`.
    Float,
    /// A boolean.
    Bool,
    /// `map[string]interface {}`.
    Map,
    /// `[]interface {}`.
    List,
    /// `time.Time`.
    Time,
    /// `time.Duration`.
    Duration,
    /// `*semver.Version`.
    Version,
    /// sprig's certificate with its key.
    Certificate,
}

impl Type {
    /// The type as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            Type::Any => "interface {}",
            Type::Reflect => "reflect.Value",
            Type::Str => "string",
            Type::Int => "int",
            Type::Uint32 => "uint32",
            Type::Float => "float64",
            Type::Bool => "bool",
            Type::Map => "map[string]interface {}",
            Type::List => "[]interface {}",
            Type::Time => "time.Time",
            Type::Duration => "time.Duration",
            Type::Version => "*semver.Version",
            Type::Certificate => "sprig.certificate",
        }
    }

    /// What nil becomes for this type, if it may be nil at all.
    pub fn nil(self) -> Option<Value> {
        match self {
            Type::Any => Some(Value::Nil),
            Type::Reflect => Some(Value::Missing),
            Type::Map => Some(Value::Map(Map::nil(MapType::StrAny))),
            Type::List => Some(Value::List(List::nil(ListType::Any))),
            _ => None,
        }
    }

    /// Whether a value can be passed as it is.
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Type::Any | Type::Reflect => true,
            Type::Map => matches!(value, Value::Map(map) if map.ty() == MapType::StrAny),
            Type::List => matches!(value, Value::List(list) if list.ty() == ListType::Any),
            other => value.type_name() == other.name(),
        }
    }
}

pub(crate) type Run = fn(&mut Env<'_>, &[Value]) -> Result<Value, CallError>;

/// A function of the language or of sprig.
pub(crate) struct Native {
    pub name: &'static str,
    pub params: &'static [Type],
    /// Whether the last parameter repeats.
    pub variadic: bool,
    pub run: Run,
}

pub(crate) const fn fixed(name: &'static str, params: &'static [Type], run: Run) -> Native {
    Native { name, params, variadic: false, run }
}

pub(crate) const fn variadic(name: &'static str, params: &'static [Type], run: Run) -> Native {
    Native { name, params, variadic: true, run }
}

/// Functions the evaluator runs itself, because they evaluate lazily or execute templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    And,
    Or,
    Call,
    Include,
}

/// What an identifier in a template resolved to when it was parsed.
#[derive(Clone)]
pub(crate) enum Callee {
    Native(&'static Native),
    Special(Special),
    /// Given by the embedding at execution.
    Custom(Arc<str>),
}

impl Callee {
    pub(crate) fn name(&self) -> &str {
        match self {
            Callee::Native(native) => native.name,
            Callee::Special(Special::And) => "and",
            Callee::Special(Special::Or) => "or",
            Callee::Special(Special::Call) => "call",
            Callee::Special(Special::Include) => "include",
            Callee::Custom(name) => name,
        }
    }

    /// Like [`resolve`](Self::resolve), among the language's own functions only.
    pub(crate) fn resolve_plain(name: &str) -> Result<Callee, String> {
        match name {
            "and" | "or" | "call" => Self::resolve(name),
            _ => {
                let native = LANGUAGE.iter().flat_map(|table| table.iter()).find(|n| n.name == name);
                native.map(Callee::Native).ok_or_else(|| not_defined(name))
            }
        }
    }

    /// The function of this name that needs no registration, or why there is none.
    pub(crate) fn resolve(name: &str) -> Result<Callee, String> {
        match name {
            "and" => Ok(Callee::Special(Special::And)),
            "or" => Ok(Callee::Special(Special::Or)),
            "call" => Ok(Callee::Special(Special::Call)),
            "include" => Ok(Callee::Special(Special::Include)),
            _ => match NATIVES.get(name) {
                Some(native) => Ok(Callee::Native(native)),
                None => Err(crate::sprig::why_undefined(name)),
            },
        }
    }
}

/// Go's message for an unknown function.
pub(crate) fn not_defined(name: &str) -> String {
    transom_go::fmt::sprintf("function %q not defined", &[Value::str(name)])
}

impl std::fmt::Debug for Callee {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// The functions that every template of Go's has.
const LANGUAGE: [&[Native]; 3] = [compare::FUNCTIONS, escape::FUNCTIONS, sequence::FUNCTIONS];

static NATIVES: LazyLock<HashMap<&'static str, &'static Native>> = LazyLock::new(|| {
    // Later tables win: sprig's `slice` replaces the language's.
    let language = LANGUAGE.iter().flat_map(|table| table.iter());
    let all = language.chain(crate::sprig::functions()).chain(crate::yaml::FUNCTIONS);
    all.map(|native| (native.name, native)).collect()
});

/// Names of every function that needs no registration.
pub fn native_names() -> impl Iterator<Item = &'static str> {
    NATIVES.keys().copied().chain(["and", "or", "call", "include"])
}

type Closure = dyn Fn(&mut Env<'_>, &[Value]) -> Result<Value, CallError> + Send + Sync;

pub(crate) struct Custom {
    pub params: Vec<Type>,
    pub variadic: bool,
    pub run: Box<Closure>,
}

/// The functions an embedding adds, and the [`Context`] that all functions use.
pub struct Functions {
    custom: BTreeMap<Arc<str>, Custom>,
    context: Arc<dyn Context>,
}

impl Default for Functions {
    fn default() -> Functions {
        Functions { custom: BTreeMap::new(), context: Arc::new(System::default()) }
    }
}

impl Functions {
    /// The same functions with another clock and source of randomness.
    #[must_use]
    pub fn with_context(mut self, context: Arc<dyn Context>) -> Functions {
        self.context = context;
        self
    }

    /// Adds or replaces a function. Templates must be parsed with its name among [`crate::Options::functions`].
    /// What it does beyond looking at its arguments it counts with [`Env::spend`] and [`Env::allocate`].
    pub fn register(
        &mut self,
        name: &str,
        params: &[Type],
        run: impl Fn(&mut Env<'_>, &[Value]) -> Result<Value, CallError> + Send + Sync + 'static,
    ) {
        let custom = Custom { params: params.to_vec(), variadic: false, run: Box::new(run) };
        self.custom.insert(Arc::from(name), custom);
    }

    /// Like [`Functions::register`], with the last parameter repeating.
    pub fn register_variadic(
        &mut self,
        name: &str,
        params: &[Type],
        run: impl Fn(&mut Env<'_>, &[Value]) -> Result<Value, CallError> + Send + Sync + 'static,
    ) {
        self.register(name, params, run);
        if let Some(custom) = self.custom.get_mut(name) {
            custom.variadic = true;
        }
    }

    /// Names of the functions that were registered.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.custom.keys().map(|name| &**name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Custom> {
        self.custom.get(name)
    }

    pub(crate) fn context(&self) -> &dyn Context {
        &*self.context
    }
}
