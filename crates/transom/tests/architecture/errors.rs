//! Errors have types where crates meet: what a crate offers to others has no `Result<_, String>` in its signature, so that
//! callers can tell errors apart and read their sources. This is a search in the text of the sources: a `pub fn` counts even
//! in a private module, and what is for its own crate only is `pub(crate)`.

use super::budgets::{code_only, skipped, without_tests};
use super::{root, sources};
use std::collections::BTreeSet;

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

/// Errors that print a cause which is their source as well, so that a chain has it twice: each with its line.
fn causes_printed_twice(source: &str) -> Vec<(usize, String)> {
    let source = without_tests(source);
    // Attributes are looked for in the code, and read with their strings.
    let code = code_only(&source);
    let start = "#[error(";
    let twice = code.match_indices(start).filter_map(|(at, _)| {
        let inside = at + start.len();
        let end = inside + closing(&code[inside..]);
        let printed = printed_names(&source[inside..end]);
        let cause = causes(declaration(&code[end..])).into_iter().find(|cause| printed.contains(cause))?;
        Some((1 + code[..at].matches('\n').count(), cause))
    });
    twice.collect()
}

/// The position of the bracket that closes what is open at the start of a text without strings.
fn closing(code: &str) -> usize {
    let mut depth = 0;
    let closes = |(_, c): &(usize, char)| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        depth < 0
    };
    code.char_indices().find(closes).map_or(code.len(), |(at, _)| at)
}

/// The names of fields in a format string and its arguments.
fn printed_names(attribute: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let format = skipped(attribute.trim_start()).unwrap_or_default();
    let (format, arguments) = attribute.trim_start().split_at(format);
    let format = format.replace("{{", "");
    let placeholders = format.split('{').skip(1).map(|text| text.split(|c| !is_name(c)).next().unwrap_or(""));
    // What is asked of a field is not its text.
    let words = arguments.split_inclusive(|c| !is_name(c)).filter(|word| !word.ends_with('.'));
    placeholders.chain(words.map(|word| word.trim_end_matches(|c| !is_name(c)))).map(str::to_owned).collect()
}

/// What stands after an attribute, up to the end of the variant or type: other attributes are left out.
fn declaration(code: &str) -> &str {
    let mut rest = code.trim_start_matches([')', ']']).trim_start();
    while let Some(attribute) = rest.strip_prefix("#[") {
        rest = attribute[closing(attribute)..].trim_start_matches(']').trim_start();
    }
    let body = rest.find(['{', '(']).map_or(rest.len(), |at| at + 1);
    match rest.find([',', ';']) {
        Some(end) if end < body => &rest[..end],
        _ => &rest[..body + closing(&rest[body..])],
    }
}

/// The fields of a declaration that are sources: by their attribute, or by their name.
fn causes(declaration: &str) -> Vec<String> {
    let fields = declaration.split_once(['{', '(']).map_or("", |(_, fields)| fields);
    let fields = format!("{fields},>");
    let fields = arguments(&fields);
    let cause = |(index, field): (usize, &&str)| {
        let marked = field.contains("#[source]") || field.contains("#[from]");
        let code = field.rsplit(']').next().unwrap_or_default().trim();
        let name = code.trim_start_matches("pub ").split_once(':').filter(|(_, rest)| !rest.starts_with(':'));
        let name = name.map_or_else(|| index.to_string(), |(name, _)| name.trim().to_owned());
        (marked || name == "source").then_some(name)
    };
    fields.iter().enumerate().filter_map(cause).collect()
}

#[test]
fn causes_that_are_printed_twice_are_found() {
    for twice in [
        "#[error(\"a: {source}\")]\nstruct A {\n    b: u8,\n    source: io::Error,\n}",
        "enum A {\n    #[error(\"{0}\")]\n    B(#[from] c::Error),\n}",
        "enum A {\n    #[error(\"{b:?}: {error}\")]\n    B {\n        b: BTreeMap<C, D>,\n        #[source]\n        error: E,\n    },\n}",
        "#[error(\"a: {}\", chain(.0))]\n#[expect(missing_docs, reason = \"(\")]\npub struct A(#[source] Box<dyn Error>);",
        "enum A {\n    #[error(\"{0}: {1}\")]\n    B(C, #[source] D),\n}",
    ] {
        assert_eq!(causes_printed_twice(twice).len(), 1, "{twice}");
    }
    for once in [
        "#[error(\"{action}\")]\nstruct A {\n    action: String,\n    source: io::Error,\n}",
        "enum A {\n    #[error(transparent)]\n    B(#[from] C),\n    #[error(\"{0}\")]\n    D(String),\n}",
        "#[error(\"{}a\", if b.c() { d } else { e })]\nstruct A {\n    #[source]\n    b: B,\n}",
        "#[error(\"{{source}}\")]\nstruct A {\n    source: B,\n}",
        "enum A {\n    #[error(\"b\")]\n    B,\n    #[error(\"{why}\")]\n    C {\n        why: D,\n    },\n    E {\n        source: F,\n    },\n}",
        "/// #[error(\"{source}\")]\nstruct A {\n    source: B,\n}",
    ] {
        assert_eq!(causes_printed_twice(once), [], "{once}");
    }
}

#[test]
fn no_error_prints_its_source() {
    let crates = root().join("crates");
    let mut files = Vec::new();
    sources(&crates, &mut files);
    let mut problems = Vec::new();
    for file in files {
        let path = file.strip_prefix(&crates).unwrap().to_string_lossy().into_owned();
        let twice = causes_printed_twice(&std::fs::read_to_string(&file).unwrap());
        problems.extend(twice.into_iter().map(|(line, cause)| format!("{path}:{line}: {cause}")));
    }
    assert!(
        problems.is_empty(),
        "`error_chain::chain` prints the sources: leave them out of the text, or do not make them sources: {problems:#?}"
    );
}
