//! Errors have types where crates meet: what a crate offers to others has no `Result<_, String>` in its signature, so that
//! callers can tell errors apart and read their sources. This is a search in the text of the sources: a `pub fn` counts even
//! in a private module, and what is for its own crate only is `pub(crate)`.

use super::budgets::{code_only, without_tests};
use super::{root, sources};

/// Files that may, and why. Clap's value parsers need not be here: they may return any error.
const EXEMPT: &[(&str, &str)] = &[("testkit/src/tables.rs", "a failed case of a table is a text for people")];

/// What the sources of a crate offer to others and its error is a text, each with its line.
fn text_errors(source: &str) -> Vec<(usize, String)> {
    let code = code_only(&without_tests(source));
    let offered = functions(&code).into_iter().chain(aliases(&code));
    let line = |at: usize| 1 + code[..at].matches('\n').count();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    offered.filter(|(_, text)| has_text_error(text)).map(|(at, text)| (line(at), words(text))).collect()
}

/// Public functions and the methods of public traits: where each begins, and its signature.
fn functions(code: &str) -> Vec<(usize, &str)> {
    let traits: Vec<_> =
        code.match_indices("pub trait ").map(|(at, _)| at..at + body_end(&code[at..])).collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let all = code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with(is_word));
    let is_offered = |at: usize| {
        // With the parenthesis as a delimiter, nothing is left of `pub(crate)`.
        let qualifiers = code[..at].rsplit([';', '{', '}', ')', ']']).next().unwrap_or_default();
        qualifiers.trim_start().starts_with("pub ") || traits.iter().any(|body| body.contains(&at))
    };
    let offered = all.map(|(at, _)| at).filter(|at| is_offered(*at));
    offered.map(|at| (at, signature(&code[at..]))).collect()
}

/// Public names of types, and the errors of traits such as `FromStr`.
fn aliases(code: &str) -> Vec<(usize, &str)> {
    let starts = ["pub type ", "type Err = String;", "type Error = String;"];
    let all = starts.iter().flat_map(|start| code.match_indices(start));
    all.map(|(at, _)| (at, code[at..].split_inclusive(';').next().unwrap_or_default())).collect()
}

/// The position after the brackets that a text opens first.
fn body_end(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

fn signature(function: &str) -> &str {
    let mut depth = 0;
    let ends = |(_, c): &(usize, char)| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        depth == 0 && matches!(c, '{' | ';')
    };
    let end = function.char_indices().find(ends).map_or(function.len(), |(at, _)| at);
    &function[..end]
}

fn has_text_error(signature: &str) -> bool {
    let is_text = |text: &&str| matches!(*text, "String" | "std::string::String");
    let mut results = signature.match_indices("Result<");
    let of_trait = ["type Err = String;", "type Error = String;"].contains(&signature);
    of_trait
        || results.any(|(at, start)| arguments(&signature[at + start.len()..]).get(1).is_some_and(is_text))
}

/// The arguments of a generic type, up to the bracket that closes them.
fn arguments(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' if text[..at].ends_with('-') => {}
            '>' if depth == 0 => {
                found.push(text[start..at].trim());
                break;
            }
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

#[test]
fn texts_in_place_of_errors_are_found() {
    for offered in [
        "pub fn a() -> Result<(), String> {}",
        "pub async fn a(\n    b: u8,\n) -> Result<\n    Vec<(u8, u8)>,\n    String,\n> {\n}",
        "pub const fn a(f: impl Fn(u8) -> Result<u8, String>) {}",
        "#[async_trait]\npub trait A: Send {\n    async fn a(&self) -> Result<u8, String>;\n}",
        "pub type A = Arc<dyn Fn(&B<C, D>) -> Result<E, String> + Send>;",
        "impl FromStr for A {\n    type Err = String;\n}",
    ] {
        assert_eq!(text_errors(offered).len(), 1, "{offered}");
    }
    for own in [
        "fn a() -> Result<(), String> {}",
        "pub(crate) async fn a() -> Result<(), String> {}",
        "pub fn a() -> Result<String> {}\nfn b() -> Result<(), String> {}",
        "pub fn a() -> Result<BTreeMap<String, String>, Error> {\n    let b: Result<u8, String> = c();\n}",
        "trait A {\n    fn a(&self) -> Result<u8, String>;\n}",
        "/// pub fn a() -> Result<(), String>\npub fn a() {}",
        "#[cfg(test)]\nmod tests {\n    pub fn a() -> Result<(), String> {}\n}",
    ] {
        assert_eq!(text_errors(own), [], "{own}");
    }
}

#[test]
fn what_crates_offer_has_typed_errors() {
    let crates = root().join("crates");
    let (mut files, mut problems, mut exempt) = (Vec::new(), Vec::new(), Vec::new());
    sources(&crates, &mut files);
    for file in files {
        let path = file.strip_prefix(&crates).unwrap().to_string_lossy().into_owned();
        if !path.contains("/src/") || ["/tests", "_tests.rs"].iter().any(|part| path.contains(part)) {
            continue;
        }
        let found = text_errors(&std::fs::read_to_string(&file).unwrap());
        match EXEMPT.iter().find(|(listed, _)| path == *listed) {
            Some(_) if found.is_empty() => {
                problems.push(format!("{path}: listed in EXEMPT, but needs it no longer"));
            }
            Some((listed, _)) => exempt.push(*listed),
            None => problems.extend(found.iter().map(|(line, text)| format!("{path}:{line}: {text}"))),
        }
    }
    let stale = EXEMPT.iter().filter(|(listed, _)| !exempt.contains(listed));
    problems.extend(stale.map(|(listed, _)| format!("{listed}: listed in EXEMPT, but does not exist")));
    assert!(
        problems.is_empty(),
        "give these an error type (thiserror), with the cause as its source: {problems:#?}"
    );
}
