//! The Common Expression Language as Kubernetes uses it, and `x-kubernetes-validations`.
//!
//! Text goes through [`lexer`], [`parser`] (which expands [`macros`]), [`check`] (types from [`decl`]arations) and
//! [`plan`]; [`eval`] runs the plan under a [`cost`] meter. Objects are never converted: [`view`] reads JSON through
//! its schema on demand. [`Rules`] compiles the rules of a schema and applies them; [`Program`] is the same for one
//! expression of any other origin.
//!
//! Nothing here recurses deeper or works longer than a bound: expressions are bounded in size and depth, evaluations
//! in cost and in what they may build.

mod ast;
mod check;
mod compare;
mod cost;
mod decl;
mod escaping;
mod estimate;
mod eval;
mod lexer;
mod library;
mod literals;
mod macros;
mod opaque;
mod parser;
mod plan;
mod program;
mod rules;
mod source;
mod time;
mod types;
mod value;
mod view;

pub use cost::{PER_CALL_LIMIT, PER_OBJECT_LIMIT};
pub use escaping::{escape, unescape};
pub use estimate::Bounds;
pub use opaque::Opaque;
pub use program::{Bindings, CompileError, Env, Program};
pub use rules::{Limits, Report, RuleCost, RuleError, Rules};
pub use source::Issue;
pub use time::Instant;
pub use types::{Object, Type};
pub use value::{EvalError, Key, List, Map, Message, Text, Value};
