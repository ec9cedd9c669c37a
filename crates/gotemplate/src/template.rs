//! The public API: parse once, share, execute many times.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::error::Error;
use crate::exec;
use crate::functions::{Callee, Functions};
use crate::limits::Limits;
use crate::parse::{self, ast::Tree};
use crate::value::{Str, Value};

/// What `.missing` of a map does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// Gives no value, on which further fields give no value either.
    #[default]
    Invalid,
    /// Gives the zero value of the element type, nil for most maps.
    Zero,
    /// Fails.
    Error,
}

/// How to read a template.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Empty means `{{`.
    pub left_delimiter: String,
    /// Empty means `}}`.
    pub right_delimiter: String,
    /// What a missing key does.
    pub missing_key: MissingKey,
    /// Names the embedding will register; calling any other unknown name is a syntax error, as in Go.
    pub functions: BTreeSet<String>,
    /// Only the language's own functions, without sprig's and the others.
    pub plain: bool,
}

/// An option that does not exist, worded as Go words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    /// The option is empty.
    #[error("empty option string")]
    Empty,
    /// It has another name or value than those that exist.
    #[error("unrecognized option: {0}")]
    Unrecognized(String),
}

impl Options {
    /// Applies an option in Go's spelling, such as `missingkey=error`.
    pub fn set(&mut self, option: &str) -> Result<(), OptionError> {
        self.missing_key = match option {
            "missingkey=default" | "missingkey=invalid" => MissingKey::Invalid,
            "missingkey=zero" => MissingKey::Zero,
            "missingkey=error" => MissingKey::Error,
            "" => return Err(OptionError::Empty),
            _ => return Err(OptionError::Unrecognized(option.to_owned())),
        };
        Ok(())
    }
}

/// A parsed template with everything it defines. Cheap to share between threads.
#[derive(Debug)]
pub struct Template {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    pub(crate) trees: HashMap<Str, Arc<Tree>>,
    pub(crate) missing_key: MissingKey,
    /// The deepest nesting in any tree, for callers that walk one recursively.
    pub(crate) deepest: usize,
}

impl Template {
    /// Parses a text; `name` is what errors call it.
    pub fn parse(name: &str, text: &str, options: &Options) -> Result<Template, Error> {
        let resolve = |word: &str| {
            if options.functions.contains(word) {
                return Ok(Callee::Custom(Arc::from(word)));
            }
            if options.plain { Callee::resolve_plain(word) } else { Callee::resolve(word) }
        };
        let delimiters = (options.left_delimiter.as_str(), options.right_delimiter.as_str());
        let parsed = parse::parse(name, text, delimiters, &resolve)?;
        Ok(Template {
            name: Arc::from(name),
            text: Arc::from(text),
            trees: parsed.trees,
            missing_key: options.missing_key,
            deepest: parsed.deepest,
        })
    }

    /// The name it was parsed with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names of the templates this text defines, itself included.
    pub fn defined(&self) -> impl Iterator<Item = &str> {
        self.trees.values().map(|tree| &*tree.name)
    }

    /// Renders with `data` as dot. The template may change maps inside `data`, as Go templates can.
    pub fn execute(&self, data: &Value, functions: &Functions, limits: &Limits) -> Result<String, Error> {
        exec::execute(self, data, functions, limits)
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        let trees = std::mem::take(&mut self.trees);
        crate::stack::with_depth(self.deepest, || drop(trees));
    }
}
