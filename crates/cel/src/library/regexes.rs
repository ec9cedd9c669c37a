//! Regular expressions: `matches`, `find`, `findAll`. Patterns are RE2's, matched by an engine of linear time.

use super::{Args, Out, Table, int, string};
use crate::value::{EvalError, Value};
use regex::Regex;
use std::cell::RefCell;
use std::collections::HashMap;
use transom_go::regexp::{self, Limits};

thread_local! {
    /// Patterns that were compiled before. Most come from rules and are used at every evaluation.
    static COMPILED: RefCell<HashMap<String, Regex>> = RefCell::new(HashMap::new());
}

const MAX_CACHED_PATTERNS: usize = 256;

/// The compiled pattern, or Go's error message.
pub(crate) fn compile(pattern: &str) -> Result<Regex, regexp::Error> {
    if let Some(found) = COMPILED.with_borrow(|c| c.get(pattern).cloned()) {
        return Ok(found);
    }
    let compiled = regexp::compile(pattern, Limits::default())?;
    COMPILED.with_borrow_mut(|c| {
        if c.len() >= MAX_CACHED_PATTERNS {
            c.clear();
        }
        c.insert(pattern.to_owned(), compiled.clone());
    });
    Ok(compiled)
}

fn regex(pattern: &Value<'_>, illegal: &str) -> Result<Regex, EvalError> {
    compile(string(pattern)?).map_err(|why| EvalError::failed(format!("{illegal}{why}")))
}

fn find_all<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let text = string(args.get(0)?)?;
    let regex = regex(args.get(1)?, "Illegal regex: ")?;
    let limit = match args.get(2) {
        Ok(n) => usize::try_from(int(n)?).unwrap_or(usize::MAX),
        Err(_) => usize::MAX,
    };
    Ok(Value::list(regex.find_iter(text).take(limit).map(|m| Value::text(m.as_str())).collect()))
}

pub(super) fn declare(t: &mut Table) {
    t.both("matches", ("matches", "matches_string"), "string, string", "bool", |_, a| {
        let text = string(a.get(0)?)?;
        Ok(Value::Bool(regex(a.get(1)?, "")?.is_match(text)))
    });
    t.member("find", "string_find_string", "string, string", "string", |_, a| {
        let text = string(a.get(0)?)?;
        let regex = regex(a.get(1)?, "Illegal regex: ")?;
        Ok(Value::text(regex.find(text).map_or("", |m| m.as_str())))
    });
    t.member("findAll", "string_find_all_string", "string, string", "list(string)", |_, a| find_all(a));
    t.member("findAll", "string_find_all_string_int", "string, string, int", "list(string)", |_, a| {
        find_all(a)
    });
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[test]
    fn errors_are_worded_as_go_words_them() {
        assert!(compile(r"^\d$").unwrap().is_match("3"));
        assert_eq!(compile(")").unwrap_err().to_string(), "error parsing regexp: unexpected ): `)`");
        assert_eq!(compile("(").unwrap_err().to_string(), "error parsing regexp: missing closing ): `(`");
    }
}
