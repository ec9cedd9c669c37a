//! Go's text/template with sprig, exact and bounded. Knows nothing of Kubernetes.
//!
//! ```
//! use transom_gotemplate::{Functions, Limits, Options, Template, Value};
//!
//! let template = Template::parse("greeting", r#"hello {{ .name | upper | quote }}"#, &Options::default())?;
//! let data = Value::from(serde_json::json!({ "name": "ada" }));
//! assert_eq!(template.execute(&data, &Functions::default(), &Limits::default())?, r#"hello "ADA""#);
//! # Ok::<(), transom_gotemplate::Error>(())
//! ```
//!
//! The path of a template: `parse` (lexer, then parser) makes trees; `exec` walks them over `value`s, calling
//! `functions` (the language's own), `sprig` and `yaml`. The Go packages those rest on, `fmt` among them, are `transom_go`.
//! `limits` bound every execution, `context` brings the clock and randomness in.

#![warn(missing_docs)]

mod context;
mod error;
mod exec;
mod functions;
mod limits;
mod parse;
mod sprig;
mod stack;
mod template;
mod value;
mod yaml;

pub use context::{Context, Reproducible, System};
pub use error::{Cause, Error, Failure};
pub use functions::{CallError, Env, Functions, Type, native_names};
pub use limits::{Exceeded, Limits};
pub use template::{MissingKey, OptionError, Options, Template};
pub use value::{
    Form, IntKind, Key, Kind, List, ListType, Map, MapType, Named, NestedTooDeeply, Str, Struct, UintKind,
    Value,
};
