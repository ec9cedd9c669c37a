//! The Common Expression Language as Kubernetes uses it: a [`Program`] is compiled once against an [`Env`] and
//! evaluated often, with a budget of cost.
//!
//! Text goes through `lexer`, `parser` (which expands `macros`), `check` (types from [`Decl`]arations) and `plan`;
//! `eval` runs the plan under a `cost` meter. Objects are never converted: `view` reads JSON on demand, through its
//! schema where there is one. Schemas are used only through the trait [`DocumentSchema`].
//!
//! Nothing here recurses deeper or works longer than a bound: expressions are bounded in size and depth, evaluations
//! in cost and in what they may build. There is no I/O, no clock and no randomness.
//!
//! It must not know OpenAPI, CustomResourceDefinitions or requests: schemas and authorizers are traits that its users implement.

#![warn(missing_docs)]

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
mod source;
mod time;
mod types;
mod value;
mod view;

pub use cost::{PER_CALL_LIMIT, PER_OBJECT_LIMIT};
pub use decl::{Decl, MAX_REQUEST_BYTES, Shape};
pub use escaping::{escape, unescape};
pub use estimate::Bounds;
pub use library::authorization::{AccessCheck, AccessDecider, AccessDecision, AccessQuestion};
pub use opaque::Opaque;
pub use program::{Bindings, CompileError, Env, Program};
pub use source::Issue;
pub use time::{Instant, parse_schema_duration};
pub use types::{ObjectType, Type};
pub use value::{EvalError, Identity, Key, List, Map, Message, Text, Value};
pub use view::{DocumentSchema, Members, Object};
