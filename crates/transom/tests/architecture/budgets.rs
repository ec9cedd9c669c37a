//! Budgets: the size of files, functions and crates.

use super::{root, sources};
use std::collections::BTreeSet;
use std::path::Path;

const MAX_FILE_LINES: usize = 500;
/// Files that may be larger: their own limit, and why.
const LARGER_FILES: &[(&str, usize, &str)] = &[
    (
        "crates/builtins/examples/differential/generate/patch_and_transform.rs",
        650,
        "generates requests: one list of cases",
    ),
    (
        "crates/builtins/examples/differential/generate/template.rs",
        600,
        "generates requests: one list of cases",
    ),
    ("crates/builtins/src/strict.rs", 525, "one decoder"),
    ("crates/builtins/tests/go_templating/table.rs", 575, "a table of cases"),
    ("crates/controllers/tests/life/fixture.rs", 650, "the harness of these tests"),
];
/// Lines of source in a crate, without tests and generated files.
const MAX_CRATE_LINES: usize = 15_000;
/// Crates that may be larger: their own limit, and why.
const LARGER_CRATES: &[(&str, usize, &str)] = &[];
/// 95 of 100 functions of the whole workspace have at most this many lines, from brace to brace.
const P95_FUNCTION_LINES: usize = 31;
/// The same for a single crate: crates of parsers and tables have longer functions.
const P95_FUNCTION_LINES_OF_CRATE: usize = 37;
const MAX_FUNCTION_LINES: usize = 80;

/// The crates of the workspace.
fn crates() -> Vec<(String, std::path::PathBuf)> {
    let entries = std::fs::read_dir(root().join("crates")).expect("the folder of crates").flatten();
    let mut crates: Vec<_> =
        entries.map(|e| (e.file_name().to_string_lossy().into_owned(), e.path())).collect();
    crates.sort();
    crates
}

/// The source files of a crate that are neither tests nor generated.
fn source_files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    sources(&folder.join("src"), &mut files);
    files.retain(|file| {
        let path = file.to_string_lossy();
        !["/tests/", "/tests.rs", "/generated", "/proto/"].iter().any(|part| path.contains(part))
    });
    let read = |file| std::fs::read_to_string(file).expect("a source file");
    files
        .into_iter()
        .map(read)
        .filter(|text| !text.contains("@generated"))
        .map(|t| without_tests(&t))
        .collect()
}

/// The source up to its module of tests, which is the last one in a file.
pub(super) fn without_tests(text: &str) -> String {
    let tests = text.match_indices("#[cfg(test)]\nmod ").find(|(at, _)| {
        let rest = &text[at + "#[cfg(test)]\nmod ".len()..];
        rest.split_once('\n').is_some_and(|(line, _)| line.ends_with('{'))
    });
    tests.map_or(text, |(at, _)| &text[..at]).to_owned()
}

/// The source with comments, strings and characters blanked out. Lines stay where they are.
pub(super) fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let end = at + skipped(rest).unwrap_or(0);
        if end == at {
            let c = rest.chars().next().unwrap_or_default();
            code.push(c);
            at += c.len_utf8();
        } else {
            code.extend(text[at..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

/// The length of the comment, string or character at the start of the text.
pub(super) fn skipped(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(text.find("*/").map_or(text.len(), |end| end + 2));
    }
    if let Some(raw) = text.strip_prefix('r')
        && let hashes = raw.len() - raw.trim_start_matches('#').len()
        && raw[hashes..].starts_with('"')
    {
        let close = format!("\"{}", "#".repeat(hashes));
        let start = 1 + hashes + 1;
        return Some(text[start..].find(&close).map_or(text.len(), |end| start + end + close.len()));
    }
    if text.starts_with('"') {
        return Some(quoted(text, '"'));
    }
    // A character, not a lifetime.
    let mut characters = text.chars();
    match (characters.next(), characters.next(), characters.next()) {
        (Some('\''), Some('\\'), _) => Some(quoted(text, '\'')),
        (Some('\''), Some(c), Some('\'')) => Some(2 + c.len_utf8()),
        _ => None,
    }
}

/// The length of a quoted text with its quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The lengths of the functions with a body, nested ones included.
fn function_lines(text: &str) -> Vec<usize> {
    let code = code_only(text);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let starts = code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with(is_word));
    starts.filter_map(|(at, _)| body_lines(&code[at..])).collect()
}

fn body_lines(function: &str) -> Option<usize> {
    let (mut depth, mut brackets, mut start) = (0usize, 0i32, None);
    for (at, c) in function.char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            // A declaration without a body, or the type of a function.
            ';' | ',' | '=' if depth == 0 && brackets <= 0 && !function[..at].contains('(') => return None,
            ';' if depth == 0 && brackets == 0 => return None,
            '{' if brackets == 0 || depth > 0 => {
                depth += 1;
                start.get_or_insert(at);
            }
            '}' if depth == 1 && start.is_some() => {
                return Some(1 + function[start.unwrap_or_default()..at].matches('\n').count());
            }
            '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        // The type `fn(…)` inside of a signature closes more than it opens.
        if brackets < 0 && depth == 0 {
            return None;
        }
    }
    None
}

fn p95(lengths: &mut [usize]) -> usize {
    lengths.sort_unstable();
    lengths.get(lengths.len().saturating_sub(1) * 95 / 100).copied().unwrap_or_default()
}

#[test]
fn functions_are_measured_from_brace_to_brace() {
    let text = "/// fn not { this }\nfn one() -> char { '}' }\n\ntrait T {\n    fn none(&self);\n    fn two(&self) {\n\
                \u{20}       let _ = \"{\";\n    }\n}\nfn three(f: fn(u8) -> [u8; 2])\nwhere\n{\n    { f; }\n}\n";
    assert_eq!(function_lines(text), [1, 3, 3]);
}

#[test]
fn functions_and_crates_are_within_their_budgets() {
    let (mut problems, mut all) = (Vec::new(), Vec::new());
    println!("{:12} {:>6} {:>5} {:>4} {:>4}", "crate", "lines", "fns", "p95", "max");
    for (name, folder) in crates() {
        let files = source_files(&folder);
        let lines: usize = files.iter().map(|text| text.lines().count()).sum();
        let mut lengths: Vec<usize> = files.iter().flat_map(|text| function_lines(text)).collect();
        all.extend(lengths.iter().copied());
        let (p95, max) = (p95(&mut lengths), lengths.last().copied().unwrap_or_default());
        println!("{name:12} {lines:6} {:5} {p95:4} {max:4}", lengths.len());
        let larger = LARGER_CRATES.iter().find(|(larger, _, _)| *larger == name);
        let max_lines = larger.map_or(MAX_CRATE_LINES, |(_, lines, _)| *lines);
        for (what, value, limit) in [
            ("lines of source", lines, max_lines),
            ("lines in 95 % of its functions", p95, P95_FUNCTION_LINES_OF_CRATE),
            ("lines in its longest function", max, MAX_FUNCTION_LINES),
        ] {
            if value > limit {
                problems.push(format!("{name}: {value} {what}; at most {limit}"));
            }
        }
    }
    assert!(all.len() > 1_000, "the functions were not found");
    let whole = p95(&mut all);
    println!("{:12} {:>6} {:5} {whole:4}", "all", "", all.len());
    if whole > P95_FUNCTION_LINES {
        problems.push(format!("{whole} lines in 95 % of all functions; at most {P95_FUNCTION_LINES}"));
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn files_are_named_sized_and_described() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    assert!(files.len() > 20, "the sources were not found");
    let (mut problems, mut found) = (Vec::new(), BTreeSet::new());
    for file in files {
        let shown = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        let content = std::fs::read_to_string(&file).unwrap();
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if ["util", "utils", "common", "helper", "helpers", "misc"].contains(&stem.as_str()) {
            problems.push(format!("{shown}: name it by its domain"));
        }
        let lines = content.lines().count();
        let larger = LARGER_FILES.iter().find(|(larger, _, _)| *larger == shown);
        let limit = larger.map_or(MAX_FILE_LINES, |(_, limit, _)| *limit);
        if lines > limit && !content.contains("@generated") {
            problems.push(format!("{shown}: {lines} lines, at most {limit}; split it"));
        }
        if larger.is_some() {
            found.insert(shown.clone());
            if lines <= MAX_FILE_LINES {
                problems.push(format!("{shown}: is listed in LARGER_FILES, but is not larger"));
            }
        }
        if !content.starts_with("//!") && !content.contains("@generated") {
            problems.push(format!("{shown}: starts without a //! line that says what it holds"));
        }
        let ignored = concat!("#[", "ignore");
        if content.contains(ignored) {
            problems.push(format!("{shown}: an ignored test proves nothing"));
        }
    }
    let stale = LARGER_FILES.iter().filter(|(file, _, _)| !found.contains(*file));
    problems
        .extend(stale.map(|(file, _, _)| format!("{file}: is listed in LARGER_FILES, but does not exist")));
    assert!(problems.is_empty(), "{problems:#?}");
}
