//! Paths of the repository that documents name, in code spans and in links, exist.

use super::documents::{all_pages, is_fence};
use super::root;
use std::path::Path;

/// The folders of a crate that pages name without `crates` before the crate.
const OF_CRATES: &[&str] = &["src", "tests", "examples", "templates"];

/// The code spans of a line, and the targets of its links that are files.
fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap_or_default());
    files.filter(|target| !target.is_empty() && !target.contains(':'))
}

/// The part of a code span that can be a path: the first word, up to a placeholder, without a test (`a.rs::b`).
fn as_path(span: &str) -> Option<String> {
    let word = span.split([' ', '\'', '"']).next()?.split("::").next()?;
    let is_placeholder = |part: &&str| {
        part.contains(['*', '<', '{', '$']) || part.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    let parts: Vec<&str> =
        word.split('/').take_while(|part| !is_placeholder(part) || part.is_empty()).collect();
    let path = parts.join("/");
    path.trim_end_matches('/').contains('/').then_some(path)
}

/// Whether a path is meant as one of the repository, and whether it exists: from its root, from `crates`, or from the folder of
/// the page.
fn is_missing(path: &str, page_folder: &Path) -> bool {
    let mut parts = path.split('/');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if first.is_empty() || first == ".." || first == "." {
        return false;
    }
    let of_crate = OF_CRATES.contains(&second).then(|| root().join("crates"));
    let bases: Vec<_> = [root(), page_folder.to_owned()].into_iter().chain(of_crate).collect();
    bases.iter().any(|base| base.join(first).is_dir()) && !bases.iter().any(|base| base.join(path).exists())
}

/// The paths of a page that do not exist, each with its line.
fn missing(page: &str, page_folder: &Path) -> Vec<String> {
    let (mut in_code, mut found) = (false, Vec::new());
    for (n, line) in (1..).zip(page.lines()) {
        in_code ^= is_fence(line);
        if in_code {
            continue;
        }
        let spans = code_spans(line).filter_map(as_path).filter(|path| is_missing(path, page_folder));
        let links = links(line).filter(|link| !page_folder.join(link).exists()).map(str::to_owned);
        found.extend(spans.chain(links).map(|path| format!("{n}: {path}")));
    }
    found
}

#[test]
fn missing_paths_are_noticed() {
    let docs = root().join("docs");
    for exists in [
        "`docs/concepts.md` `crates/*/tests` `store/src/lib.rs::none` `fuzz/corpus/TARGET` `conformance/run none`",
        "`example.org/none` `../shared/none` [a](concepts.md#anchor) [b](https://example.org/none) [c](#anchor)",
        "```\n`docs/none.md`\n```",
    ] {
        assert_eq!(missing(exists, &docs), Vec::<String>::new(), "{exists}");
    }
    let wrong = "a\n`docs/none.md` and `store/src/none/`, `crates/none`\n[a](none.md#anchor)";
    assert_eq!(
        missing(wrong, &docs),
        ["2: docs/none.md", "2: store/src/none/", "2: crates/none", "3: none.md"]
    );
}

#[test]
fn paths_in_documents_exist() {
    let mut problems = Vec::new();
    for file in all_pages() {
        let page = std::fs::read_to_string(&file).unwrap();
        let folder = file.parent().expect("the folder of the page");
        let name = file.strip_prefix(root()).unwrap_or(&file).display();
        problems.extend(missing(&page, folder).into_iter().map(|path| format!("{name}:{path}")));
    }
    assert!(problems.is_empty(), "no such file or folder: {problems:#?}");
}
